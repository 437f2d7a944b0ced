import { spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { quoteForBash, readBashLine } from './completion/bash.ts'
import { isFirstIn } from './completion/cache.ts'
import { type Candidates, findCandidates } from './completion/candidates.ts'
import type { GeneratedCompletions } from './completion/tree.ts'
import { type Io, readStream } from './io.ts'

/** The end of everything, in milliseconds since the process began; the shell's own part follows. */
const DEADLINE_MS = 240

/** In place of a shell: fills the cache. */
const LATER = 'later'

/** How long a process of its own waits for names that came too late, for the next time. */
const LATER_MS = 5000

/** Asks again, without anybody waiting. */
const askLater = (words: readonly string[], { env }: Io): void => {
  try {
    if (!isFirstIn(env, LATER_MS)) return
    const child = spawn(process.execPath, [...process.execArgv, process.argv[1]!, '__complete', LATER], {
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
      env,
    })
    child.on('error', () => {})
    child.stdin!.on('error', () => {})
    child.stdin!.end(words.map((word) => `${word}\0`).join(''))
    child.unref()
  } catch {
    /* Where no process may be started, the next key press asks again. */
  }
}

const complete = (words: readonly string[], io: Io, deadline = DEADLINE_MS): Promise<Candidates> =>
  findCandidates(words, {
    env: io.env,
    deadline,
    generated: JSON.parse(
      readFileSync(new URL('./completions.json', import.meta.url), 'utf8'),
    ) as GeneratedCompletions,
    onLate: () => {
      if (deadline === DEADLINE_MS) askLater(words, io)
    },
  })

/**
 * Renders what a shell's script reads. The first line says how: `files` or `folders` where the shell completes paths
 * itself, else `words`; `open` where no space follows; and how many characters of the word are before the path. Then a
 * line for each candidate, with a tab before what it is about.
 */
const render = ({ paths, open, before, items }: Candidates): string =>
  [
    `${paths ?? 'words'} ${open ? 'open' : 'closed'} ${[...before].length}`,
    ...items.map(({ value, about }) => `${before}${value}${about === '' ? '' : `\t${about}`}`),
  ].join('\n')

/** Codes of `COMP_TYPE` that put a candidate into the line one after the other. */
const MENU_TYPES = ['37', '42']

/** Lists the files that begin with a path; folders end with a slash. */
const listFiles = (path: string, foldersOnly: boolean): string[] => {
  const folder = path.slice(0, path.lastIndexOf('/') + 1)
  const name = path.slice(folder.length)
  return readdirSync(folder || '.', { withFileTypes: true })
    .filter((entry) => entry.name.startsWith(name) && (name !== '' || !entry.name.startsWith('.')))
    .filter((entry) => !/\p{Cc}/u.test(entry.name) && (!foldersOnly || entry.isDirectory()))
    .map((entry) => `${folder}${entry.name}${entry.isDirectory() ? '/' : ''}`)
}

/**
 * Bash completes paths itself where they are all that it replaces; where `--plan=` or `@` before them is too, they are
 * words like others.
 */
const withPaths = (found: Candidates, typed: string, kept: string): Candidates => {
  if (!found.paths || found.before.length <= kept.length) return found
  const files = listFiles(typed.slice(found.before.length), found.paths === 'folders')
  return {
    ...found,
    paths: undefined,
    open: files.every((file) => file.endsWith('/')),
    items: files.map((value) => ({ value, about: '' })),
  }
}

/** For bash, which has no descriptions, they follow the words in a list: nothing of it can get into the line. */
const completeBash = async (
  [line = '', tail = '', type = '']: readonly string[],
  io: Io,
): Promise<string> => {
  const read = readBashLine(line, tail)
  if (!read) return ''
  if (read.isRedirected) return 'files closed 0'
  const found = withPaths(await complete(read.words, io), read.words.at(-1)!, read.kept)
  const words = found.items
    .map(({ value, about }) => ({ word: `${found.before}${value}`, about }))
    // What stays in the line has to fit.
    .filter(({ word }) => word.startsWith(read.kept))
    .map(({ word, about }) => ({ value: quoteForBash(word.slice(read.kept.length), read.quote), about }))
  const isList = words.length > 1 && !MENU_TYPES.includes(type)
  return render({
    ...found,
    before: '',
    items: words.map(({ value, about }) => ({
      value: isList && about !== '' ? `${value}  (${about})` : value,
      about: '',
    })),
  })
}

/**
 * `wcrm __complete SHELL`: reads words from standard input, each ended by a zero, and prints what the last one may
 * become. They are no arguments: other users of the machine can see those. Prints no errors. Returns 0.
 */
export const run = async (argv: readonly string[], io: Io): Promise<number> => {
  try {
    const input = (await readStream(io.stdin)).toString('utf8')
    const words = input.split('\0').slice(0, -1)
    const deadline = argv[0] === LATER ? performance.now() + LATER_MS : DEADLINE_MS
    const text =
      argv[0] === 'bash' ? await completeBash(words, io) : render(await complete(words, io, deadline))
    if (text !== '') io.stdout.write(`${text}\n`)
  } catch {
    /* A key press that completes nothing is better than a message in the line. */
  }
  return 0
}
