import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

export type Example = {
  /** The next line that it printed, as JSON; undefined when it has ended. */
  line: () => Promise<any>
  /** Ends it with this signal. */
  kill: (signal: NodeJS.Signals) => Promise<void>
}

/** Starts a file of an example as a process of its own, on the client library's source. */
export const startExample = (file: string, env: Record<string, string>): Example => {
  const child = spawn(process.execPath, ['--import', './tests/examples/library.ts', `examples/${file}`], {
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  return {
    line: async () => {
      const { value, done } = await lines.next()
      return done ? undefined : JSON.parse(value)
    },
    kill: async (signal) => {
      child.kill(signal)
      await exited
    },
  }
}
