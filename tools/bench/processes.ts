import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'

/** `api_key`: of the demo workspace, where one was created. */
export type RunningServer = { url: string; api_key?: string; pid: number; stop: () => Promise<void> }

const resolveFile = (file: string): string => fileURLToPath(new URL(file, import.meta.url))

/** Starts a Node process that prints one JSON line with its `url` when it is ready. */
export const startServer = async (
  args: string[],
  env: Record<string, string> = {},
): Promise<RunningServer> => {
  const child: ChildProcess = spawn(process.execPath, args, {
    env: { ...process.env, WCRM_SHUTDOWN_GRACE: '0', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const ready = await new Promise<{ url: string; api_key?: string }>((resolve, reject) => {
    createInterface({ input: child.stdout! }).once('line', (line) =>
      resolve(JSON.parse(line) as { url: string; api_key?: string }),
    )
    child.once('exit', (code) => reject(new Error(`${args[0]} exited with ${code} before it was ready`)))
  })
  return {
    ...ready,
    pid: child.pid!,
    stop: async () => {
      child.kill('SIGTERM')
      await exited
    },
  }
}

export const startBareServer = (databaseUrl: string, workspaceId: string): Promise<RunningServer> =>
  startServer([resolveFile('bare/server.ts'), databaseUrl, workspaceId])

const UNREACHABLE_LIMIT = '100000000'

const UNLIMITED = {
  WCRM_LIMIT_READ: UNREACHABLE_LIMIT,
  WCRM_LIMIT_WRITE: UNREACHABLE_LIMIT,
  WCRM_LIMIT_WORKSPACE_READ: UNREACHABLE_LIMIT,
  WCRM_LIMIT_WORKSPACE_WRITE: UNREACHABLE_LIMIT,
}

/** Starts a server on an embedded database as `npm start` does; in an empty folder, with a demo workspace. */
export const startEmbedded = (dataDir: string, launcher: string): Promise<RunningServer> =>
  startServer([launcher, 'serve', '--data', dataDir, '--port', '0', '--json'], {
    ...UNLIMITED,
    WCRM_LOG_LEVEL: 'warn',
    XDG_CONFIG_HOME: dirname(dataDir),
  })

/**
 * Starts one server process, as users start it, with limits that no benchmark reaches. `profile`: a folder
 * for a CPU profile.
 */
export const startProduct = (
  database: string | { dataDir: string },
  launcher: string,
  profile?: string,
): Promise<RunningServer> =>
  startServer(
    [
      ...(profile ? ['--cpu-prof', `--cpu-prof-dir=${profile}`] : []),
      launcher,
      'serve',
      ...(typeof database === 'string' ? ['--database-url', database] : ['--data', database.dataDir]),
      '--port',
      '0',
      '--no-demo',
      '--json',
    ],
    {
      WCRM_SECRET: 'a secret for benchmarks only',
      WCRM_LOG_LEVEL: 'warn',
      WCRM_PROVIDER: 'sandbox',
      ...UNLIMITED,
    },
  )

/** Returns the resident memory in MB; undefined where the system does not report it. */
export const readResidentMemoryMb = (pid: number): number | undefined => {
  try {
    return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024
  } catch {
    return undefined
  }
}
