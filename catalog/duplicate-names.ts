import { escapePointer } from './values.ts'

/** An object or array that is being read: the names so far, and where in it the scan is. */
type Level = { names: Set<string> | undefined; at: string | number }

/** Returns the index of the quote that ends the string that begins at `start`. */
const findStringEnd = (text: string, start: number): number => {
  for (let end = text.indexOf('"', start + 1); ; end = text.indexOf('"', end + 1)) {
    let escapes = 0
    while (text[end - 1 - escapes] === '\\') escapes++
    if (escapes % 2 === 0) return end
  }
}

/**
 * Finds a name that one object gives twice, in text that JSON.parse accepts. JSON.parse keeps the last of them,
 * other parsers the first, so that the parts of a system would disagree on what was said: on `dry_run`, for
 * one. RFC 7493 (I-JSON), section 2.3, forbids it. Returns a JSON Pointer with `#`.
 */
export const findDuplicateName = (text: string): string | undefined => {
  const levels: Level[] = []
  let isName = false
  for (let i = 0; i < text.length; i++) {
    const level = levels.at(-1)
    switch (text[i]) {
      case '{':
        levels.push({ names: new Set(), at: '' })
        isName = true
        break
      case '[':
        levels.push({ names: undefined, at: 0 })
        isName = false
        break
      case '}':
      case ']':
        levels.pop()
        isName = false
        break
      case ',':
        isName = level?.names !== undefined
        if (typeof level?.at === 'number') level.at++
        break
      case '"': {
        const end = findStringEnd(text, i)
        if (isName && level?.names) {
          const name = JSON.parse(text.slice(i, end + 1)) as string
          level.at = name
          if (level.names.has(name))
            return ['#', ...levels.map(({ at }) => escapePointer(String(at)))].join('/')
          level.names.add(name)
          isName = false
        }
        i = end
        break
      }
    }
  }
  return undefined
}

/** Parses JSON in which no object gives a name twice. Throws an error that says what is wrong. */
export const parseUniqueJson = (text: string): unknown => {
  const value: unknown = JSON.parse(text)
  const pointer = findDuplicateName(text)
  if (pointer === undefined) return value
  throw new Error(`${pointer} is given twice`)
}
