/** What a page may take that a client did not ask to be longer, in tokens. */
export const DEFAULT_PAGE_TOKENS = 5_000
/** What any answer may take, in tokens. Clients cut or refuse what is much longer. */
export const MAX_ANSWER_TOKENS = 20_000

const [OTHER, LOWER, UPPER, DIGIT, SYNTAX] = [0, 1, 2, 3, 4]
/** How many characters of a kind in a row make one token at most. */
const RUN = [1, 5, 2, 3, 3]
const KINDS = Uint8Array.from({ length: 128 }, (_, code) => {
  const character = String.fromCharCode(code)
  if (/[a-z]/.test(character)) return LOWER
  if (/[A-Z]/.test(character)) return UPPER
  if (/\d/.test(character)) return DIGIT
  return /[\s"',:{}[\]]/.test(character) ? SYNTAX : OTHER
})

/** Tokens of a UTF-16 unit beyond ASCII, by script, as o200k has them where it knows no longer words. */
const weigh = (unit: number): number => {
  if (unit < 0x250) return 1
  if (unit >= 0x370 && unit < 0x700) return 0.7
  const isEastAsian = (unit >= 0x3000 && unit < 0xa000) || (unit >= 0xac00 && unit < 0xd7b0)
  return isEastAsian ? 1.8 : 2
}

/**
 * Estimates how many tokens a text takes; too high for nearly all, since what a hostile text takes counts too.
 * It takes some nanoseconds a character.
 */
export const estimateTokens = (text: string): number => {
  let tokens = 0
  let last = OTHER
  let run = 0
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    if (unit >= 128) {
      tokens += weigh(unit)
      last = OTHER
      continue
    }
    const kind = KINDS[unit]!
    if (kind === last && run < RUN[kind]!) run++
    // A word may begin with a capital, and with a space or quote before it.
    else if (kind === LOWER && last === UPPER) run = 2
    else if (kind <= UPPER && kind !== OTHER && last === SYNTAX && run === 1) run = 1
    else {
      tokens++
      run = 1
    }
    last = kind
  }
  return tokens
}

/** Parts of a token, which the length of every run divides. */
const PARTS = 30
/** What a character of ASCII takes at most after another one: a run begins, or goes on. */
const PAIRS = Uint8Array.from({ length: 128 * 128 }, (_, at) => {
  const kind = KINDS[at & 127]!
  return KINDS[at >> 7] === kind ? PARTS / RUN[kind]! : PARTS
})

/** Returns a number that `estimateTokens` does not exceed, in less than half of its time. */
const boundTokens = (text: string): number => {
  let parts = 0
  let last = 0
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    parts += unit < 128 ? PAIRS[(last << 7) | unit]! : 2 * PARTS
    last = unit < 128 ? unit : 0
  }
  return parts / PARTS
}

/** Whether a text takes at most this many tokens, of which a character has one for each of its bytes at most. */
export const fits = (text: string, budget: number): boolean =>
  (text.length <= budget && Buffer.byteLength(text) <= budget) ||
  boundTokens(text) <= budget ||
  estimateTokens(text) <= budget

/** The longest text and list that are shown, in the order in which they are tried. */
const CUTS = [
  { text: 8000, items: 500 },
  { text: 4000, items: 200 },
  { text: 2000, items: 100 },
  { text: 1000, items: 50 },
  { text: 400, items: 25 },
  { text: 150, items: 12 },
  { text: 60, items: 5 },
] as const

const cut = (value: unknown, to: (typeof CUTS)[number]): unknown => {
  if (typeof value === 'string')
    return value.length > to.text
      ? // Never half of a pair.
        `${value.slice(0, to.text).replace(/[\ud800-\udbff]$/, '')}… [${value.length - to.text} characters cut]`
      : value
  if (Array.isArray(value)) {
    const shown = value.slice(0, to.items).map((item) => cut(item, to))
    return value.length > to.items ? [...shown, `… [${value.length - to.items} items cut]`] : shown
  }
  if (value === null || typeof value !== 'object') return value
  // A cursor that is cut is of no use.
  return Object.fromEntries(
    Object.entries(value).map(([name, child]) => [name, name === 'next_cursor' ? child : cut(child, to)]),
  )
}

/**
 * Returns an answer with its long texts and lists cut until it fits, as JSON text with `shortened`, which says
 * so. The answer itself where it fits.
 */
export const cutToBudget = (answer: Record<string, unknown>, json: string): string => {
  if (fits(json, MAX_ANSWER_TOKENS)) return json
  let shorter = json
  for (const to of CUTS) {
    shorter = JSON.stringify({
      ...(cut(answer, to) as object),
      shortened:
        `Texts longer than ${to.text} characters and lists longer than ${to.items} items were cut, to keep ` +
        'the answer small; each place says so.',
    })
    if (fits(shorter, MAX_ANSWER_TOKENS)) break
  }
  return shorter
}

/** The same for the JSON text of an answer that is not at hand as a value. */
export const fitToBudget = (json: string): string =>
  fits(json, MAX_ANSWER_TOKENS) ? json : cutToBudget(JSON.parse(json) as Record<string, unknown>, json)
