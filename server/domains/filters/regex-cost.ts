/**
 * Estimates what a regular expression costs PostgreSQL, before PostgreSQL sees it: compiling one of a few
 * dozen characters can take minutes. The unit is about one state of the automaton that it is compiled to.
 * The syntax is that of PostgreSQL's advanced regular expressions.
 */
export type RegexEstimate = {
  cost: number
  backReferences: number
  /** Another syntax, which is not estimated: `(?b)`, `(?e)`. */
  isForeign: boolean
}

/**
 * What part of an expression becomes: its states, whether it matches the empty text, and how much more each
 * state costs where the part is repeated.
 */
type Part = { size: number; isNullable: boolean; loopFactor: number }

const CLASS_SIZE = 3
/** Constraints (`^`, `\y`, look-around) are moved through the automaton, and copied on the way. */
const CONSTRAINT_SIZE = 8
const CONSTRAINT_LOOP_FACTOR = 8
/** A back-reference is compiled with the groups before it. */
const BACK_REFERENCE_SIZE = 8
const BACK_REFERENCE_LOOP_FACTOR = 4

type Scanner = {
  readonly chars: readonly string[]
  at: number
  readonly isExpanded: boolean
  readonly charSize: number
  backReferences: number
  /** Size of the groups so far. */
  groupSize: number
  isBroken: boolean
}

export const estimateRegex = (pattern: string): RegexEstimate => {
  const { body, options } = splitOptions(pattern)
  if (options.includes('q')) return { cost: [...body].length, backReferences: 0, isForeign: false }
  const scanner: Scanner = {
    chars: [...body],
    at: 0,
    isExpanded: options.includes('x'),
    charSize: options.includes('i') ? 2 : 1,
    backReferences: 0,
    groupSize: 0,
    isBroken: false,
  }
  const part = scanAlternatives(scanner)
  // A closing parenthesis without an opening one, or anything else that is no expression here.
  const isBroken = scanner.isBroken || scanner.at < scanner.chars.length
  return {
    cost: Math.ceil(isBroken ? Math.max(part.size, estimateBroken(body)) : part.size),
    backReferences: scanner.backReferences,
    isForeign: /[be]/.test(options),
  }
}

/** `***=` and `***:` say what follows; `(?xyz)` at the beginning are options. */
const splitOptions = (pattern: string): { body: string; options: string } => {
  if (pattern.startsWith('***=')) return { body: pattern.slice(4), options: 'q' }
  const rest = pattern.startsWith('***:') ? pattern.slice(4) : pattern
  const [whole, options] = /^\(\?([a-z]+)\)/.exec(rest) ?? ['', '']
  return { body: rest.slice(whole.length), options: options! }
}

/** An expression that this does not understand: as if each of its repetitions enclosed all of it. */
const estimateBroken = (body: string): number => {
  const bounds = [...body.matchAll(/\{(?:\d*,)?(\d+)/g)].map(([, bound]) => Math.max(1, Number(bound)))
  const loops = body.replaceAll(/[^*+?]/g, '').length
  return body.length * bounds.reduce((product, bound) => product * bound, 1) * 2 ** loops
}

const join = (parts: readonly Part[]): Part => ({
  size: parts.reduce((sum, { size }) => sum + size, 0),
  isNullable: parts.every(({ isNullable }) => isNullable),
  loopFactor: Math.max(1, ...parts.map(({ loopFactor }) => loopFactor)),
})

const scanAlternatives = (scanner: Scanner): Part => {
  const branches = [scanBranch(scanner)]
  while (scanner.chars[scanner.at] === '|') {
    scanner.at++
    branches.push(scanBranch(scanner))
  }
  return {
    ...join(branches),
    size: branches.reduce((sum, { size }) => sum + size + 1, -1),
    isNullable: branches.some(({ isNullable }) => isNullable),
  }
}

const scanBranch = (scanner: Scanner): Part => {
  const parts: Part[] = []
  for (;;) {
    skipSpace(scanner)
    const char = scanner.chars[scanner.at]
    if (char === undefined || char === '|' || char === ')') return join(parts)
    const atom = scanAtom(scanner, char)
    skipSpace(scanner)
    parts.push(scanQuantifier(scanner, atom))
  }
}

const skipSpace = (scanner: Scanner): void => {
  if (!scanner.isExpanded) return
  for (;;) {
    const char = scanner.chars[scanner.at]
    if (char === undefined || !/[\s#]/.test(char)) return
    if (char === '#')
      while (scanner.at < scanner.chars.length && scanner.chars[scanner.at] !== '\n') scanner.at++
    else scanner.at++
  }
}

const one = (size: number): Part => ({ size, isNullable: false, loopFactor: 1 })
const constraint = (size: number): Part => ({
  size,
  isNullable: true,
  loopFactor: CONSTRAINT_LOOP_FACTOR,
})

const scanAtom = (scanner: Scanner, char: string): Part => {
  switch (char) {
    case '(':
      return scanGroup(scanner)
    case '[':
      return scanBracket(scanner)
    case '\\':
      return scanEscape(scanner)
  }
  scanner.at++
  if (char === '^' || char === '$') return constraint(CONSTRAINT_SIZE)
  if (char === '.') return one(CLASS_SIZE)
  if (/[*+?]/.test(char) || (char === '{' && /\d/.test(scanner.chars[scanner.at] ?? '')))
    scanner.isBroken = true
  return one(scanner.charSize)
}

const startsWith = ({ chars, at }: Scanner, text: string): boolean =>
  [...text].every((char, n) => chars[at + n] === char)

const scanGroup = (scanner: Scanner): Part => {
  if (startsWith(scanner, '(?#')) {
    while (scanner.at < scanner.chars.length && scanner.chars[scanner.at] !== ')') scanner.at++
    scanner.at++
    return { size: 0, isNullable: true, loopFactor: 1 }
  }
  const look = ['(?=', '(?!', '(?<=', '(?<!'].find((text) => startsWith(scanner, text))
  const isCapturing = !look && !startsWith(scanner, '(?:')
  scanner.at += look?.length ?? (isCapturing ? 1 : 3)
  if (!look && scanner.chars[scanner.at] === '?') scanner.isBroken = true
  const inner = scanAlternatives(scanner)
  if (scanner.chars[scanner.at] !== ')') scanner.isBroken = true
  scanner.at++
  if (isCapturing) scanner.groupSize += inner.size
  return look ? constraint(CONSTRAINT_SIZE + 2 * inner.size) : { ...inner, size: inner.size + 1 }
}

/** A bracket expression; `]` first in it is a member, and `[:`, `[.`, `[=` open a class or an element. */
const scanBracket = (scanner: Scanner): Part => {
  const { chars } = scanner
  if (startsWith(scanner, '[[:<:]]') || startsWith(scanner, '[[:>:]]')) {
    scanner.at += 7
    return constraint(CONSTRAINT_SIZE)
  }
  scanner.at++
  if (chars[scanner.at] === '^') scanner.at++
  let members = 0
  for (let isFirst = true; ; isFirst = false) {
    const char = chars[scanner.at]
    if (char === undefined) {
      scanner.isBroken = true
      break
    }
    scanner.at++
    if (char === ']' && !isFirst) break
    members++
    if (char === '\\') scanner.at++
    else if (char === '[' && /[:.=]/.test(chars[scanner.at] ?? '')) {
      const end = chars.findIndex((c, n) => n > scanner.at && c === chars[scanner.at] && chars[n + 1] === ']')
      if (end < 0) scanner.isBroken = true
      else scanner.at = end + 2
    }
  }
  return one(CLASS_SIZE + members / 4)
}

const scanEscape = (scanner: Scanner): Part => {
  const text = scanner.chars.slice(scanner.at + 1, scanner.at + 10).join('')
  const [escape] = /^(?:x[\dA-Fa-f]+|u[\dA-Fa-f]{4}|U[\dA-Fa-f]{8}|c.|\d+|.)/su.exec(text) ?? ['']
  scanner.at += 1 + [...escape].length
  if (escape === '') scanner.isBroken = true
  if (/^[1-9]/.test(escape)) {
    scanner.backReferences++
    return {
      size: BACK_REFERENCE_SIZE + scanner.groupSize,
      isNullable: true,
      loopFactor: BACK_REFERENCE_LOOP_FACTOR,
    }
  }
  if (/^[AmMyYZ]$/.test(escape)) return constraint(CONSTRAINT_SIZE)
  return one(/^[dswDSW]$/.test(escape) ? CLASS_SIZE : scanner.charSize)
}

const scanQuantifier = (scanner: Scanner, part: Part): Part => {
  const rest = scanner.chars.slice(scanner.at, scanner.at + 12).join('')
  const [whole, min, range, max] = /^(?:[*+?]|\{(\d+)(?:(,)(\d*))?\})\??/.exec(rest) ?? []
  if (whole === undefined) {
    if (/^\{\d/.test(rest)) scanner.isBroken = true
    return part
  }
  scanner.at += whole.length
  if (min === undefined)
    return repeat(part, whole.startsWith('+') ? 1 : 0, whole.startsWith('?') ? 1 : Infinity)
  return repeat(part, Number(min), range === undefined ? Number(min) : max === '' ? Infinity : Number(max))
}

/** Each counted repetition is a copy. Copies that may match nothing are connected each with each. */
const repeat = (part: Part, min: number, max: number): Part => {
  const copies = Math.max(1, max === Infinity ? min : max)
  const isNullable = part.isNullable || min === 0
  const links = part.isNullable ? copies ** 2 / 8 : max > min ? copies ** 2 / 32 : 0
  const { loopFactor } = part
  const size = copies * part.size + links
  return {
    size: (max > 1 ? size * loopFactor * (loopFactor >= CONSTRAINT_LOOP_FACTOR ? copies : 1) : size) + 1,
    isNullable,
    loopFactor,
  }
}
