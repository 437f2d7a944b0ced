import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

/** A server in its own process, as in production. `kill` sends the signal and waits for the end. */
export type ServerProcess = {
  url: string
  pid: number
  /** What it has written to stderr so far: its log. */
  log: () => string
  kill: (signal: NodeJS.Signals) => Promise<void>
  /** Sends SIGTERM. Returns the exit code; null when the signal ended the process. */
  stop: () => Promise<number | null>
}

/** The environment of a process of a test: with the compile cache, without keys or settings. */
export const processEnvironment: Readonly<Record<string, string | undefined>> = {
  PATH: process.env.PATH,
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
  HOME: '/nonexistent',
}

/** Starts `wcrm serve` with these flags on a free port, and waits until it is ready. */
export const startProcess = (
  flags: readonly string[],
  env: Record<string, string> = {},
  wrapper: readonly string[] = [],
): Promise<ServerProcess> =>
  startCommand(['serve', '--port', '0', '--json', '--no-demo', ...flags], env, wrapper)

/**
 * Starts a command that serves, and waits for its first line: JSON that holds its URL. `said` is all of it.
 * `wrapper` are words before the command, such as `unshare`.
 */
export const startCommand = async <T>(
  words: readonly string[],
  env: Record<string, string> = {},
  wrapper: readonly string[] = [],
): Promise<ServerProcess & { said: T }> => {
  const [program, ...args] = [...wrapper, process.execPath, 'bin/wcrm.js', ...words]
  const child: ChildProcess = spawn(program!, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...processEnvironment,
      TMPDIR: process.env.TMPDIR,
      WCRM_LOG_LEVEL: 'error',
      WCRM_SHUTDOWN_GRACE: '0',
      WCRM_LIMIT_READ: '1000000',
      WCRM_LIMIT_WRITE: '1000000',
      ...(env.WCRM_PROVIDER_URL === undefined ? { WCRM_PROVIDER: 'sandbox' } : {}),
      ...env,
    },
  })
  const exited = once(child, 'exit')
  let errors = ''
  child.stderr!.on('data', (chunk: Buffer) => {
    errors += chunk.toString()
  })
  const [line] = await Promise.race([
    once(createInterface({ input: child.stdout! }), 'line') as Promise<[string]>,
    exited.then(([code]) => {
      throw new Error(`the server exited with ${code}: ${errors}`)
    }),
  ])
  const said = JSON.parse(line) as T & { url: string }
  return {
    url: said.url,
    pid: child.pid!,
    log: () => errors,
    said,
    kill: async (signal) => {
      child.kill(signal)
      await exited
    },
    stop: async () => {
      child.kill('SIGTERM')
      const [code] = (await exited) as [number | null]
      return code
    },
  }
}
