import type { Argument, Command, Help } from 'commander'
import type { Io } from './io.ts'

const MIN_WIDTH = 40
const MAX_WIDTH = 120
const DEFAULT_WIDTH = 80

/** Below this width a description stands under its term instead of beside it. */
const MIN_WIDTH_OF_COLUMNS = 60
const INDENT = 6

/** Stands before each line that is said about the term of an item, until the item is laid out. */
export const LINE_OF_ITEM = '\t'

/** Characters of one cell each. To load string-width takes longer than all else that help does. */
const ONE_CELL_EACH = /^[\x20-\x7e\t\n…–—→×]*$/

type Measure = (text: string) => number

type Stream = { readonly isTTY?: boolean | undefined; readonly columns?: number | undefined }

/** The width of help: that of the terminal within bounds that can be read; 80 where there is none. */
export const helpWidth = ({ isTTY, columns }: Stream): number =>
  Math.min(MAX_WIDTH, Math.max(MIN_WIDTH, (isTTY && columns) || DEFAULT_WIDTH))

/** A line of help with a term and what is said about it, to be laid out. */
export const helpItem = (term: string, about: string): string =>
  about === '' ? `  ${term}` : `  ${term}${LINE_OF_ITEM}${about}`

/** Breaks a word that is longer than a line. */
const breakWord = (word: string, width: number, measure: Measure): string[] => {
  if (measure(word) <= width) return [word]
  const parts = ['']
  for (const sign of word) {
    if (measure(parts.at(-1)! + sign) > width) parts.push('')
    parts[parts.length - 1] += sign
  }
  return parts
}

/** Breaks a line of text at its spaces. */
const wrapText = (text: string, width: number, measure: Measure): string[] => {
  const lines: string[] = []
  for (const word of text.split(' ').flatMap((each) => breakWord(each, width, measure))) {
    const last = lines.at(-1)
    if (last !== undefined && measure(last) + 1 + measure(word) <= width)
      lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  return lines
}

/** Where JSON may be broken without a change of what it means: between its tokens. */
const splitJson = (json: string, after: RegExp): string[] => {
  const parts = ['']
  let isText = false
  for (const [i, sign] of [...json].entries()) {
    parts[parts.length - 1] += sign
    if (sign === '"' && json[i - 1] !== '\\') isText = !isText
    if (!isText && after.test(sign)) parts.push('')
  }
  return parts
}

const JSON_WORD = /^'[[{]/
const FLAG = /^--?[\w-]+$/

/** A part of a command that stays whole; `space` stands before it, and is empty within JSON. */
type CommandPart = { readonly text: string; readonly space: string }

const splitCommand = (command: string, width: number, measure: Measure): CommandPart[] =>
  (command.match(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g) ?? []).flatMap((word) => {
    if (!JSON_WORD.test(word) || measure(word) <= width) return [{ text: word, space: ' ' }]
    const parts = splitJson(word, /,/).flatMap((part) =>
      measure(part) <= width ? [part] : splitJson(part, /[:[{]/),
    )
    return parts.filter((text) => text !== '').map((text, i) => ({ text, space: i === 0 ? ' ' : '' }))
  })

/** Puts a flag and its value together, where they fit in a line: read apart, `--confirm` seems to have none. */
const joinFlags = (parts: readonly CommandPart[], width: number, measure: Measure): CommandPart[] => {
  const joined: CommandPart[] = []
  for (const part of parts) {
    const last = joined.at(-1)
    const text = `${last?.text} ${part.text}`
    if (last && FLAG.test(last.text) && part.space && !part.text.startsWith('-') && measure(text) <= width)
      joined[joined.length - 1] = { ...last, text }
    else joined.push(part)
  }
  return joined
}

/**
 * Breaks a command so that it can be copied: between words with a backslash, and within quoted JSON, where a line
 * break means nothing. A longer word stays whole.
 */
const wrapCommand = (command: string, width: number, measure: Measure): string[] => {
  // A line that goes on ends with a space and a backslash.
  const parts = joinFlags(splitCommand(command, width - 2, measure), width - 2, measure)
  const lines: string[] = []
  for (const [i, { text, space }] of parts.entries()) {
    const last = lines.at(-1)
    const ending = parts[i + 1]?.space ? 2 : 0
    if (last !== undefined && measure(last + space + text) + ending <= width)
      lines[lines.length - 1] = last + space + text
    else {
      if (last !== undefined && space !== '') lines[lines.length - 1] = `${last} \\`
      lines.push(text)
    }
  }
  return lines
}

const layOutItem = (line: string, column: number, width: number, measure: Measure): string[] => {
  const [term = '', ...about] = line.split(LINE_OF_ITEM)
  const isBeside = width >= MIN_WIDTH_OF_COLUMNS
  const at = isBeside ? column + 2 : INDENT
  const lines = about
    .flatMap((text) => wrapText(text, width - at, measure))
    .map((each) => ' '.repeat(at) + each)
  if (!isBeside || measure(term) > column) return [...layOutLine(term, width, measure), ...lines]
  return [term + lines[0]!.slice(measure(term)), ...lines.slice(1)]
}

const layOutLine = (line: string, width: number, measure: Measure): string[] => {
  if (line.startsWith('  $ '))
    return wrapCommand(line.slice(4), width - INDENT, measure).map(
      (each, i) => (i === 0 ? '  $ ' : ' '.repeat(INDENT)) + each,
    )
  const indent = /^ */.exec(line)![0]
  // What goes on below begins further right, so that it is not taken for an item of its own.
  const isItem = (indent !== '' && indent.length < INDENT) || line.startsWith('Usage: ')
  const inner = isItem ? `${indent}    ` : indent
  const [first = '', ...rest] = wrapText(
    line.trimStart(),
    width - Math.max(indent.length, inner.length),
    measure,
  )
  return [indent + first, ...rest.map((each) => inner + each)]
}

const lay = (text: string, width: number, measure: Measure): string => {
  const lines = text.split('\n')
  const terms = lines
    .filter((line) => line.includes(LINE_OF_ITEM))
    .map((line) => measure(line.split(LINE_OF_ITEM)[0]!))
  // A few long terms do not take the room of all descriptions: theirs begin a line below.
  const limit = Math.max(26, Math.floor(width * 0.35))
  const column = Math.max(0, ...terms.filter((size) => size <= limit))
  return lines
    .flatMap((line) =>
      line.includes(LINE_OF_ITEM)
        ? layOutItem(line, column, width, measure)
        : layOutLine(line, width, measure),
    )
    .join('\n')
}

/** Lays out a text of help for a width: every line of it is wrapped here. */
export const layOutHelp = async (text: string, width: number): Promise<string> =>
  lay(text, width, ONE_CELL_EACH.test(text) ? ({ length }) => length : (await import('./table.ts')).measure)

const argumentTerm = (argument: Argument): string => {
  const term = `${argument.name()}${argument.variadic ? '...' : ''}`
  return argument.required ? `<${term}>` : `[${term}]`
}

/** Help as it is before its layout: items with a separator, texts in one line. */
const unwrapped: Partial<Help> = {
  formatItem: (term, _width, description) => helpItem(term, description),
  boxWrap: (text) => text,
  // Aliases, and that every command has options, would make each line longer.
  subcommandTerm: (command) => [command.name(), ...command.registeredArguments.map(argumentTerm)].join(' '),
  commandUsage: (command) => {
    const names = [command.usage()]
    for (let at: Command | null = command; at; at = at.parent) names.unshift(at.name())
    return names.join(' ')
  },
}

/** What commander wrote: help for standard output, and errors or help for standard error. */
export type CollectedHelp = { out: string; error: string }

/** Collects what a command and its subcommands write, so that it can be laid out. */
export const collectHelp = (
  command: Command,
  help: Partial<Help> = {},
  texts: CollectedHelp = { out: '', error: '' },
): CollectedHelp => {
  command
    .helpOption('-h, --help', 'show this help')
    .configureHelp({ ...unwrapped, ...help })
    .exitOverride()
    .configureOutput({
      writeOut: (text) => {
        texts.out += text
      },
      writeErr: (text) => {
        texts.error += text
      },
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    })
  for (const subcommand of command.commands) collectHelp(subcommand, help, texts)
  return texts
}

/** Writes help that was collected for standard output. */
export const writeHelp = async (io: Io, { out }: CollectedHelp): Promise<void> =>
  void io.stdout.write(await layOutHelp(out, helpWidth(io.stdout)))

/** Writes help that was collected for standard error. */
export const writeErrorHelp = async (io: Io, { error }: CollectedHelp): Promise<void> =>
  void io.stderr.write(await layOutHelp(error, helpWidth(io.stderr)))
