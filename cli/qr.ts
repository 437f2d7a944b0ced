import { toString } from 'qrcode'
import type { TerminalStyle } from './table.ts'

/** The empty border that ISO/IEC 18004 requires, in modules. */
const QUIET_ZONE_MODULES = 4
/** Black on white whatever the colours of the terminal are. */
const BLACK_ON_WHITE = '\x1B[38;5;16;48;5;231m'
const RESET = '\x1B[0m'

/**
 * Draws the QR code of a link for a terminal, two modules to a character. Empty when the terminal is too
 * narrow. Without colour the light modules are drawn: most terminals are dark, and not every reader accepts
 * an inverted code.
 */
export const drawQrCode = async (url: string, { width, color }: TerminalStyle): Promise<string> => {
  const drawn = await toString(url, {
    type: 'utf8',
    margin: QUIET_ZONE_MODULES,
    ...(color ? {} : { color: { dark: '#ffffff', light: '#000000' } }),
  })
  const rows = drawn.split('\n')
  if (rows[0]!.length > width) return ''
  return rows.map((row) => `${color ? `${BLACK_ON_WHITE}${row}${RESET}` : row}\n`).join('')
}
