import { LONGEST_ROW, type Source, textOf, unreadable } from './source.ts'

/** The lines of the file that hold something, and their numbers. */
export async function* ndjsonLines(
  source: Source,
  onBytes?: (bytes: Buffer) => void,
): AsyncGenerator<{ line: number; text: string }> {
  let rest = ''
  let line = 0
  const told = (text: string) => ({ line: ++line, text })
  for await (const piece of textOf(source, onBytes)) {
    const lines = (rest + piece).split('\n')
    rest = lines.pop()!
    if (rest.length > LONGEST_ROW)
      throw unreadable(
        source.name,
        `has no end to line ${line + lines.length + 1}`,
        'Write one JSON object a line.',
      )
    yield* lines.map(told).filter(({ text }) => text.trim() !== '')
  }
  if (rest.trim() !== '') yield told(rest)
}
