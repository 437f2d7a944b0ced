/** The quotes that are open at a place in a line. `ansi`: those of `$'…'`. */
export type OpenQuote = 'none' | 'single' | 'double' | 'ansi'

/** A line of bash up to the cursor. */
export type BashLine = {
  /** The words, as the command gets them; the last one is what is typed so far. */
  readonly words: readonly string[]
  /** The part of the last word that stays in the line, as the command gets it, and the quote that is open behind it. */
  readonly kept: string
  readonly quote: OpenQuote
  /** The last word is the file of a redirection. */
  readonly isRedirected: boolean
}

type Scan = { text: string; quote: OpenQuote; starts: number; words: string[]; isRedirected: boolean }

const isSpace = (c: string): boolean => c === ' ' || c === '\t' || c === '\n'

/** Reads one character inside of quotes, or the one after a backslash. Returns how many were read. */
const readQuoted = (line: string, at: number, scan: Scan): number => {
  const c = line[at]!
  const next = line[at + 1]
  if (c === { single: "'", double: '"', ansi: "'", none: '' }[scan.quote]) {
    scan.quote = 'none'
    return 1
  }
  const escapes =
    c === '\\' && (scan.quote === 'ansi' || (scan.quote === 'double' && /["$`\\]/.test(next ?? '')))
  if (escapes) {
    scan.text += next ?? ''
    return 2
  }
  scan.text += c
  return 1
}

const endWord = (scan: Scan, at: number, hasText: boolean): void => {
  if (hasText) {
    scan.words.push(scan.text)
    scan.isRedirected = false
  }
  scan.text = ''
  scan.starts = at
}

/** Reads one character outside of quotes. Returns how many were read. */
const readPlain = (line: string, at: number, scan: Scan): number => {
  const c = line[at]!
  const inWord = at > scan.starts
  if (isSpace(c)) endWord(scan, at + 1, inWord)
  else if (c === '<' || c === '>') {
    // A number before it names a descriptor.
    endWord(scan, at + 1, inWord && !/^\d+$/.test(line.slice(scan.starts, at)))
    scan.isRedirected = true
  } else if (/[;|&()]/.test(c)) {
    endWord(scan, at + 1, false)
    scan.words = []
    scan.isRedirected = false
  } else if (c === "'" || c === '"') scan.quote = c === "'" ? 'single' : 'double'
  else if (c === '$' && line[at + 1] === "'") {
    scan.quote = 'ansi'
    return 2
  } else if (c === '\\') {
    scan.text += line[at + 1] ?? ''
    return 2
  } else scan.text += c
  return 1
}

const scanLine = (line: string): Scan => {
  const scan: Scan = { text: '', quote: 'none', starts: 0, words: [], isRedirected: false }
  for (let at = 0; at < line.length;)
    at += scan.quote === 'none' ? readPlain(line, at, scan) : readQuoted(line, at, scan)
  return scan
}

/**
 * Reads a command line as bash does. `tail`: what bash is about to replace, the end of the line; bash divides words at
 * `=`, `:` and `@` too.
 */
export const readBashLine = (line: string, tail: string): BashLine | undefined => {
  if (!line.endsWith(tail)) return undefined
  const scan = scanLine(line)
  const head = line.slice(0, line.length - tail.length)
  if (head.length < scan.starts) return undefined
  const kept = scanLine(head)
  const words = [...scan.words, scan.text]
  const first = words.findIndex((word) => !/^\w+=/.test(word))
  return {
    words: first === -1 ? words : words.slice(first),
    kept: kept.text,
    quote: kept.quote,
    isRedirected: scan.isRedirected,
  }
}

/** Quotes a text for the place where bash puts it. It holds no control characters. */
export const quoteForBash = (text: string, quote: OpenQuote): string => {
  if (quote === 'single') return text.replaceAll("'", "'\\''")
  if (quote === 'ansi') return text.replaceAll(/['\\]/g, '\\$&')
  // History expansion happens in double quotes, and a backslash before it would stay.
  if (quote === 'double') return text.replaceAll(/["$`\\]/g, '\\$&').replaceAll('!', `"'!'"`)
  return text.replaceAll(/[^\w%+=:,./@-]/gu, (c) => (c.codePointAt(0)! < 128 ? `\\${c}` : c))
}
