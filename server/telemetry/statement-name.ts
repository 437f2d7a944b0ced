/** What is shown of a statement's text. */
const MAX_TEXT_LENGTH = 2000

/** The text of a statement without the hints to the driver, the word it begins with, and the table that it is about. */
export const describeStatement = (
  sql: string,
): { text: string; word: string; table: string | undefined; name: string } => {
  const text = sql.replaceAll(/\/\*.*?\*\//gs, '').trim()
  const word = /^[a-z]+/i.exec(text)?.[0].toLowerCase() ?? 'statement'
  const table = /\b(?:from|into|update)\s+(?:only\s+)?"?([a-z_]+)"?/i.exec(text)?.[1]?.toLowerCase()
  return { text: text.slice(0, MAX_TEXT_LENGTH), word, table, name: table ? `${word} ${table}` : word }
}
