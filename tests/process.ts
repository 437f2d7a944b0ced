import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

/** The server as it is run: a process of its own. */
export type ServerProcess = { url: string; kill: (signal: NodeJS.Signals) => Promise<void> }

/** Starts `wcrm serve` with these flags on a free port, and waits until it says that it is ready. */
export const startProcess = (
  flags: readonly string[],
  env: Record<string, string> = {},
): Promise<ServerProcess> => startCommand(['serve', '--port', '0', '--json', '--no-demo', ...flags], env)

/**
 * Starts a command that serves, and waits for its first line, which is JSON with its URL: all of it is
 * answered too.
 */
export const startCommand = async <T>(
  words: readonly string[],
  env: Record<string, string> = {},
): Promise<ServerProcess & { said: T }> => {
  const child: ChildProcess = spawn(process.execPath, ['bin/wcrm.js', ...words], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env.PATH,
      HOME: '/nonexistent',
      WCRM_LOG_LEVEL: 'error',
      WCRM_LIMIT_READ: '1000000',
      WCRM_LIMIT_WRITE: '1000000',
      ...env,
    },
  })
  const exited = once(child, 'exit')
  let complaints = ''
  child.stderr!.on('data', (chunk: Buffer) => {
    complaints += chunk.toString()
  })
  const [line] = await Promise.race([
    once(createInterface({ input: child.stdout! }), 'line') as Promise<[string]>,
    exited.then(([code]) => {
      throw new Error(`the server ended with ${code}: ${complaints}`)
    }),
  ])
  const said = JSON.parse(line) as T & { url: string }
  return {
    url: said.url,
    said,
    kill: async (signal) => {
      child.kill(signal)
      await exited
    },
  }
}
