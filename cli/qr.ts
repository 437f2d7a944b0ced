import { toString } from 'qrcode'
import type { Look } from './views.ts'

/** Modules of quiet around the code, as readers want them. */
const MARGIN = 4
/** Black on white whatever the terminal's own colours are. */
const BLACK_ON_WHITE = '\x1B[38;5;16;48;5;231m'
const RESET = '\x1B[0m'

/**
 * The QR code of a link for a terminal, two modules to a character; empty where the terminal is too narrow
 * for it. Without colour the light modules are drawn, since most terminals are dark and not every reader
 * takes a negative.
 */
export const drawQr = async (url: string, { width, color }: Look): Promise<string> => {
  const drawn = await toString(url, {
    type: 'utf8',
    margin: MARGIN,
    ...(color ? {} : { color: { dark: '#ffffff', light: '#000000' } }),
  })
  const rows = drawn.split('\n')
  if (rows[0]!.length > width) return ''
  return rows.map((row) => `${color ? `${BLACK_ON_WHITE}${row}${RESET}` : row}\n`).join('')
}
