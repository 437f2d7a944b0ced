import { escapeControlCharacters } from '../text.ts'
import { ask } from './changes.ts'
import { type Inbox, notify } from './data.ts'

// Any other command, run in this process with the same key; its output fills a pane.

/** Splits a line into words as a shell does: quotes keep spaces together. */
export const splitWords = (line: string): string[] =>
  [...line.matchAll(/(?:[^\s'"]+|'[^']*'|"[^"]*")+/g)].map(([word]) =>
    word.replaceAll(/'([^']*)'|"([^"]*)"/g, (_, single?: string, double?: string) => single ?? double ?? ''),
  )

/** Commands that need the terminal for themselves, or never end. */
const OWN_TERMINAL = ['inbox', 'serve', 'worker', 'mcp', 'sandbox', 'login', 'listen', 'admin']

const run = async (inbox: Inbox, line: string): Promise<void> => {
  const { state } = inbox
  const [first, ...rest] = splitWords(line)
  const words = first === 'wcrm' ? rest : [first ?? '', ...rest]
  if (words[0] === undefined || words[0] === '') return
  if (OWN_TERMINAL.includes(words[0]) || words.includes('--follow'))
    return notify(inbox, `wcrm ${words[0]} needs a terminal of its own.`)
  const title = `wcrm ${words.join(' ')}`
  state.pager = { title, lines: ['Running …'], scrolled: 0 }
  state.focus = 'pager'
  inbox.changed()
  const { printed, exitCode } = await inbox.runCommand(words)
  // It may have been left meanwhile, or another may run.
  if (state.pager?.title !== title) return
  const lines = printed.replace(/\n$/, '').split('\n').map(escapeControlCharacters)
  state.pager = { title: exitCode === 0 ? title : `${title}  (exit code ${exitCode})`, lines, scrolled: 0 }
  inbox.changed()
}

export const askCommand = (inbox: Inbox): void =>
  ask(inbox, { label: 'wcrm', choices: [], submit: (line) => void run(inbox, line) })
