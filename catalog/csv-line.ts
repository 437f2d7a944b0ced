/**
 * Prefixes text that a spreadsheet would run as a formula with an apostrophe. Text that already has one before a
 * formula gets another, so that an import takes exactly what was added away.
 */
export const escapeFormula = (text: string): string => (/^'*[=+\-@\t\r]/.test(text) ? `'${text}` : text)

/**
 * Formats a CSV cell (RFC 4180). Control characters that a terminal would interpret are dropped. Text that a
 * spreadsheet would run as a formula gets an apostrophe: customers write it (OWASP, CSV injection).
 */
const csvCell = (text: string): string => {
  const safe = escapeFormula(text.replace(/(?![\t\n\r])\p{Cc}/gu, ''))
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

/** Formats a line of CSV. */
export const csvLine = (cells: readonly string[]): string => `${cells.map(csvCell).join(',')}\r\n`
