import { enableCompileCache } from 'node:module'
import type { Io } from './io.ts'

// Everything else is loaded by `import()`: static imports would run before the compile cache is enabled.
enableCompileCache()

type LocalCommand = { run: (argv: string[], io: Io) => Promise<number> }

/**
 * Commands that parse their own flags. Each is a module that exports `run`; its path is built from the name,
 * so that one command never loads, or type-checks against, the others.
 */
const LOCAL_COMMANDS = ['inbox', 'serve', 'worker', 'admin', 'mcp', 'sandbox']

const runLocalCommand = async (name: string, argv: string[], io: Io): Promise<number> => {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  const { run } = (await import(new URL(`./${name}.${extension}`, import.meta.url).href)) as LocalCommand
  return run(argv, io)
}

const API_KEY = /wc_(?:live|test)_[0-9A-Za-z]{40}/

/** Throws a usage error: whatever the word was meant to be, nothing is done with it. */
const refuseApiKey = async (): Promise<never> => {
  const { usageError } = await import('./error.ts')
  throw usageError(
    'There is an API key on the command line, where other users of this machine can see it, and your shell ' +
      'keeps it. Store it with wcrm login, which reads it from standard input, or set WCRM_API_KEY. If others ' +
      'may have seen it, replace it on the server: wcrm admin keys rotate.',
  )
}

/**
 * Runs the words after `wcrm`. Returns the exit code and never ends the process. Exit codes: 0 done, 1
 * unexpected, 2 invalid, 3 not found, 4 not permitted, 5 conflict, 6 not confirmed, 7 rate limited, 8
 * unavailable, 9 partly failed.
 */
export const runCommandLine = async (argv: readonly string[], io: Io): Promise<number> => {
  const [first = ''] = argv
  try {
    if (argv.some((word) => API_KEY.test(word))) await refuseApiKey()
    if (LOCAL_COMMANDS.includes(first)) return await runLocalCommand(first, argv.slice(1), io)
    const { runProgram } = await import('./program.ts')
    return await runProgram(argv, io)
  } catch (error) {
    const { reportError } = await import('./report-error.ts')
    return await reportError(io, error, undefined, argv.includes('--json'))
  }
}

/** Runs the command line of this process. A reader that closes the pipe early (`| head`) is not an error. */
export const main = async (): Promise<void> => {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0)
    throw error
  })
  process.exitCode = await runCommandLine(process.argv.slice(2), process)
}

if (import.meta.main) await main()
