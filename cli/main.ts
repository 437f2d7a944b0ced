import { enableCompileCache } from 'node:module'
import type { Io } from './io.ts'

// Commander and the rest come in by `import()`: the compile cache is open by then, which a static import
// would not see.
enableCompileCache()

type Local = { run: (argv: string[], io: Io) => Promise<number> }

/**
 * Commands that parse their own flags. Built from strings, so that starting one never loads, or type-checks
 * against, the others.
 */
const own = ['serve', 'worker', 'admin', 'mcp', 'sandbox']

const runOwn = async (name: string, argv: string[], io: Io): Promise<number> => {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  const { run: runIt } = (await import(new URL(`./${name}.${extension}`, import.meta.url).href)) as Local
  return runIt(argv, io)
}

/**
 * The command line: the words after `wcrm`, and what it may touch of the process. Gives the exit code;
 * never ends the process. Exit codes: 0 done, 1 unexpected, 2 invalid, 3 not found, 4 not permitted, 5
 * conflict, 6 not confirmed, 7 rate limited, 8 unavailable, 9 partly failed.
 */
export const run = async (argv: readonly string[], io: Io): Promise<number> => {
  const [first = ''] = argv
  try {
    if (own.includes(first)) return await runOwn(first, argv.slice(1), io)
    const { runProgram } = await import('./program.ts')
    return await runProgram(argv, io)
  } catch (error) {
    const { report } = await import('./report.ts')
    return report(io, error, undefined, argv.includes('--json'))
  }
}

/** Runs the process's own command line. A reader that has seen enough (`| head`) is no error. */
export const main = async (): Promise<void> => {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0)
    throw error
  })
  process.exitCode = await run(process.argv.slice(2), process)
}

if (import.meta.main) await main()
