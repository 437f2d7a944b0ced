import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { statementChannel, type StatementMessage } from '../../storage/client/statement-channel.ts'
import { isInSql, type SqlTemplate, sqlTemplates } from '../../tests/storage/sql-templates.ts'

// Loaded into every process of `run.ts`: writes the place of each raw SQL template of which it sends a statement.

const folder = process.env.WCRM_SENT_SQL!
const seen = new Set<string>()
let unsent: SqlTemplate[] | undefined

const note = ({ text }: StatementMessage): void => {
  if (seen.has(text)) return
  seen.add(text)
  // Most processes, such as those of commands, send none.
  unsent ??= sqlTemplates()
  const sent = unsent.filter((template) => isInSql(template, text))
  if (sent.length === 0) return
  unsent = unsent.filter((template) => !sent.includes(template))
  const places = sent.map(({ file, line }) => `${file}:${line}\n`)
  appendFileSync(join(folder, String(process.pid)), places.join(''))
}

statementChannel.start.subscribe((message) => note(message as StatementMessage))
