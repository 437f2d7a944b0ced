import { MAX_ROW_CHARACTERS, type ImportSource, readText, unreadableFileError } from './source.ts'

/**
 * Yields the non-blank lines of the file with their numbers. Throws a usage error when a line is too long.
 */
export async function* readNdjsonLines(
  source: ImportSource,
  onBytes?: (bytes: Buffer) => void,
): AsyncGenerator<{ line: number; text: string }> {
  let incomplete = ''
  let line = 0
  const toLine = (text: string) => ({ line: ++line, text })
  for await (const chunk of readText(source, onBytes)) {
    const lines = (incomplete + chunk).split('\n')
    incomplete = lines.pop()!
    if (incomplete.length > MAX_ROW_CHARACTERS)
      throw unreadableFileError(
        source.name,
        `is too long in line ${line + lines.length + 1}`,
        'Write one JSON object per line.',
      )
    yield* lines.map(toLine).filter(({ text }) => text.trim() !== '')
  }
  if (incomplete.trim() !== '') yield toLine(incomplete)
}
