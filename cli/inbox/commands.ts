import { escapeControlCharacters } from '../text.ts'
import { type Inbox, notify } from './data.ts'
import { ask, openPager } from './overlays.ts'

// Any other command, run in this process with the same key; its output fills a pane.

/** Splits a line into words as a shell does: quotes keep spaces together. */
export const splitWords = (line: string): string[] =>
  [...line.matchAll(/(?:[^\s'"]+|'[^']*'|"[^"]*")+/g)].map(([word]) =>
    word.replaceAll(/'([^']*)'|"([^"]*)"/g, (_, single?: string, double?: string) => single ?? double ?? ''),
  )

/** Commands that need the terminal for themselves, or never end. */
const OWN_TERMINAL = ['inbox', 'serve', 'worker', 'mcp', 'sandbox', 'login', 'listen', 'admin']

const run = async (inbox: Inbox, line: string): Promise<void> => {
  const [first, ...rest] = splitWords(line)
  const words = first === 'wcrm' ? rest : [first ?? '', ...rest]
  if (words[0] === undefined || words[0] === '') return
  if (OWN_TERMINAL.includes(words[0]) || words.includes('--follow'))
    return notify(inbox, `wcrm ${words[0]} needs a terminal of its own.`)
  const title = `wcrm ${words.join(' ')}`
  const pager = openPager(inbox, ['Running …'], title)
  const { printed, exitCode } = await inbox.runCommand(words)
  pager.lines = printed.replace(/\n$/, '').split('\n').map(escapeControlCharacters)
  if (exitCode !== 0) pager.title = `${title}  (exit code ${exitCode})`
  inbox.changed()
}

export const askCommand = (inbox: Inbox): void =>
  void ask(inbox, { label: 'wcrm', submit: (line) => void run(inbox, line) })
