/** What the product may send to a terminal beside text, apart from line breaks. */
// eslint-disable-next-line no-control-regex -- escape sequences begin with one
const SEQUENCE = /\u001b\[(\??)(\d*)([A-Za-z])/y

/**
 * Returns the lines that a terminal shows after a text was written to it. Throws for a control character that is
 * none of the product's own: it came from the data.
 */
export const showScreen = (written: string): string[] => {
  const lines: string[] = ['']
  let [row, column] = [0, 0]
  const move = (to: number): void => {
    row = Math.max(0, to)
    while (lines.length <= row) lines.push('')
  }
  for (let at = 0; at < written.length;) {
    SEQUENCE.lastIndex = at
    const [found, mode, count, letter] = SEQUENCE.exec(written) ?? []
    const text = /[^\p{Cc}]*/uy
    text.lastIndex = at
    const plain = text.exec(written)![0]
    if (plain !== '') {
      lines[row] =
        lines[row]!.slice(0, column).padEnd(column) + plain + lines[row]!.slice(column + plain.length)
      column += plain.length
    } else if (written[at] === '\n') move(row + 1)
    else if (written[at] === '\r') column = 0
    else if (letter === 'A') move(row - Number(count || 1))
    else if (letter === 'B') move(row + Number(count || 1))
    else if (letter === 'G') column = Number(count || 1) - 1
    else if (letter === 'K') lines[row] = count === '2' ? '' : lines[row]!.slice(0, column)
    else if (letter === 'J') lines.splice(row, Infinity, lines[row]!.slice(0, column))
    else if (!mode && letter !== 'm')
      throw new Error(`a control character was printed: ${JSON.stringify(written.slice(at, at + 40))}`)
    at += found?.length ?? Math.max(1, plain.length)
  }
  while (lines.at(-1) === '') lines.pop()
  return lines
}
