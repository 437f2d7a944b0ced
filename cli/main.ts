import type { Io } from './io.ts'

type LocalCommand = { run: (argv: string[], io: Io) => Promise<number> }

/**
 * Commands that parse their own flags. Each is a module that exports `run`; its path is built from the name,
 * so that one command never loads, or type-checks against, the others.
 */
export const LOCAL_COMMANDS = [
  'inbox',
  'serve',
  'worker',
  'admin',
  'mcp',
  'sandbox',
  'status',
  'profiles',
  'listen',
  'trigger',
  'switch',
  'api',
  'ops',
  'schema',
]

const runLocalCommand = async (name: string, argv: string[], io: Io): Promise<number> => {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  const { run } = (await import(new URL(`./${name}.${extension}`, import.meta.url).href)) as LocalCommand
  return run(argv, io)
}

/** What Node reads in place of bytes that are not UTF-8. */
const REPLACEMENT = '\ufffd'

const API_KEY = /wc_(?:live|test)_[0-9A-Za-z]{40}/

/** Throws a usage error, whatever the word was for. */
const refuseApiKey = async (): Promise<never> => {
  const { usageError } = await import('./error.ts')
  throw usageError(
    'There is an API key on the command line, where other users of this machine can see it, and your shell ' +
      'keeps it. Store it with wcrm login, which reads it from standard input, or set WCRM_API_KEY. If others ' +
      'may have seen it, replace it on the server: wcrm admin keys rotate.',
  )
}

/** Commands that call no server with a stored key. */
const WITHOUT_PROFILE = ['serve', 'worker', 'admin']

/**
 * Takes `--profile NAME` (`-p NAME`) from the words, wherever it stands, and gives the command an environment
 * in which only that profile counts.
 */
const applyProfile = async (
  argv: readonly string[],
  io: Io,
): Promise<{ words: readonly string[]; io: Io }> => {
  const end = argv.includes('--') ? argv.indexOf('--') : argv.length
  const at = argv.findIndex(
    (word, i) => i < end && (word === '-p' || word === '--profile' || word.startsWith('--profile=')),
  )
  if (at === -1 || WITHOUT_PROFILE.includes(argv[0] ?? '')) return { words: argv, io }
  const isOneWord = argv[at]!.startsWith('--profile=')
  const name = isOneWord ? argv[at]!.slice('--profile='.length) : (argv[at + 1] ?? '')
  const { requireProfileName } = await import('./credentials.ts')
  const env = {
    ...io.env,
    WCRM_PROFILE: requireProfileName(name),
    WCRM_API_KEY: undefined,
    WCRM_URL: undefined,
  }
  // The streams of a process are made when they are first used: a copy of it would make all of them.
  const own = Object.create(io, { env: { value: env }, profile: { value: name } }) as Io
  return { words: argv.toSpliced(at, isOneWord ? 1 : 2), io: own }
}

/** Moves flags that precede a command with flags of its own behind it: `--json status` is `status --json`. */
const moveLeadingFlags = async (words: readonly string[]): Promise<readonly string[]> => {
  if (!words[0]?.startsWith('-')) return words
  const { findGroupIndex } = await import('./command-line.ts')
  const at = findGroupIndex(words)
  return LOCAL_COMMANDS.includes(words[at] ?? '')
    ? [words[at]!, ...words.slice(0, at), ...words.slice(at + 1)]
    : words
}

/**
 * Runs the words after `wcrm`. Returns the exit code and never ends the process. Exit codes: 0 done, 1
 * unexpected, 2 invalid, 3 not found, 4 not permitted, 5 conflict, 6 not confirmed, 7 rate limited, 8
 * unavailable, 9 partly failed.
 */
export const runCommandLine = async (argv: readonly string[], given: Io): Promise<number> => {
  // What is typed so far may hold anything, also a key.
  if (argv[0] === '__complete') return await (await import('./complete.ts')).run(argv.slice(1), given)
  let io = given
  try {
    if (argv.some((word) => API_KEY.test(word))) await refuseApiKey()
    const applied = await applyProfile(argv, given)
    io = applied.io
    const words = await moveLeadingFlags(applied.words)
    const [first = ''] = words
    if (LOCAL_COMMANDS.includes(first)) return await runLocalCommand(first, words.slice(1), io)
    const { runProgram } = await import('./program.ts')
    return await runProgram(words, io)
  } catch (error) {
    const { reportError } = await import('./report-error.ts')
    return await reportError(io, error, { json: argv.includes('--json') })
  }
}

/**
 * Reports words of bytes that are not UTF-8. Node has replaced them by a character that nobody types, which would be
 * searched for or saved in their place.
 */
const reportBrokenText = async (argv: readonly string[]): Promise<number> => {
  const [{ usageError }, { reportError }] = await Promise.all([
    import('./error.ts'),
    import('./report-error.ts'),
  ])
  const word = argv.find((each) => each.includes(REPLACEMENT))!
  const error = usageError(
    `An argument is not UTF-8 text: ${JSON.stringify(word)}. Set the terminal to UTF-8, or give the value in a file.`,
  )
  return await reportError(process, error, { json: argv.includes('--json') })
}

/** Runs the command line of this process. A reader that closes the pipe early (`| head`) is not an error. */
export const main = async (): Promise<void> => {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0)
    // The command has done its work; only its output is lost.
    process.stderr.write(`wcrm: cannot write the output: ${error.message}\n`)
    process.exit(1)
  })
  // What cannot be said there, on a full disk for example, is no reason to end.
  process.stderr.on('error', () => {})
  const argv = process.argv.slice(2)
  const isBroken = argv[0] !== '__complete' && argv.some((word) => word.includes(REPLACEMENT))
  process.exitCode = await (isBroken ? reportBrokenText(argv) : runCommandLine(argv, process))
  // A look-up of an address that takes long cannot be cancelled, and the shell waits for the end.
  if (argv[0] === '__complete') process.exit()
}
