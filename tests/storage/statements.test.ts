import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import type { Db } from '../../storage/database.ts'
import { inSavepoint } from '../../storage/client/savepoint.ts'
import { databases, onMigratedDatabase } from '../databases.ts'
import { covers, loadStatements, type RecordedStatement, statementText } from './recorded-statements.ts'
import { type SqlTemplate, sqlTemplates } from './sql-templates.ts'

/** Templates that cannot be prepared: a text that their file holds, and why. */
const notPreparable: readonly { file: string; text: string; reason: string }[] = [
  { file: 'storage/client/savepoint.ts', text: 'savepoint part', reason: 'controls a transaction' },
  { file: 'storage/client/savepoint.ts', text: 'savepoint tried', reason: 'controls a transaction' },
  { file: 'storage/migrations/indexes.ts', text: 'set local', reason: 'a setting' },
  { file: 'storage/backup/dump.ts', text: 'set local', reason: 'settings' },
  { file: 'storage/backup/schema.ts', text: 'set local', reason: 'a setting' },
  { file: 'storage/backup/load.ts', text: 'analyze', reason: 'maintenance' },
  { file: 'storage/backup/load.ts', text: 'alter table', reason: 'a definition' },
  { file: 'storage/backup/load.ts', text: 'trigger user', reason: 'a definition' },
  { file: 'storage/demo/demo.ts', text: 'alter table', reason: 'a definition' },
  { file: 'storage/workspace/admin.ts', text: 'lock table', reason: 'a lock' },
  { file: 'storage/demo/demo.ts', text: 'vacuum analyze', reason: 'maintenance' },
  {
    file: 'storage/backup/order.ts',
    text: 'select distinct',
    reason: 'made for columns of a type that no table but events has today',
  },
  {
    file: 'storage/contacts/lists.ts',
    text: 'select count(*) as n from contacts c',
    reason:
      'reached when a scan finds a rare match among more than 20,000 contacts; tools/bench/filters.ts runs it',
  },
]

const isPreparable = (template: SqlTemplate): boolean =>
  !notPreparable.some(
    ({ file, text }) => file === template.file && template.chunks.some((chunk) => chunk.includes(text)),
  )

/** Has the database parse and analyze a statement, which fails when it names what does not exist. */
const prepare = async (tx: Db, { parameterTypes, ...statement }: RecordedStatement): Promise<void> => {
  const types = parameterTypes ? `(${parameterTypes.join(', ')})` : ''
  await inSavepoint(tx, async () => {
    await sql.raw(`prepare recorded${types} as ${statementText(statement)}`).execute(tx)
    await sql`deallocate recorded`.execute(tx)
  })
}

/** One line for each statement that the schema does not fit. */
const failures = async (tx: Db, statements: readonly RecordedStatement[]): Promise<string[]> => {
  const found: string[] = []
  for (const statement of statements)
    await prepare(tx, statement).catch((error: unknown) => {
      found.push(`${statement.from}: ${(error as Error).message}`)
    })
  return found
}

describe('Recorded statements', () => {
  it('hold every raw SQL template of storage/', () => {
    const statements = loadStatements()
    const missing = sqlTemplates()
      .filter(isPreparable)
      .filter((template) => !statements.some((statement) => covers(statement, template)))
      .map(({ file, line, chunks }) => `${file}:${line} ${chunks.join('…').slice(0, 80)}`)
    assert.deepEqual(missing, [], 'run npm run record-statements')
  })
})

for (const database of databases) {
  describe(`Recorded statements (${database})`, () => {
    it('fit the migrated schema', async () => {
      await onMigratedDatabase(database, async (db) => {
        await db.transaction().execute(async (tx) => {
          assert.deepEqual(await failures(tx, loadStatements()), [])
        })
      })
    })

    it('name each function that uses a column which was renamed', async () => {
      await onMigratedDatabase(database, async (db) => {
        await db.transaction().execute(async (tx) => {
          await sql`alter table webhook_endpoints rename column consecutive_failures to failures_in_a_row`.execute(
            tx,
          )
          const users = loadStatements().filter((s) => statementText(s).includes('consecutive_failures'))
          assert.ok(users.length > 0)
          assert.deepEqual(
            (await failures(tx, loadStatements())).map((line) => line.split(':')[0]),
            users.map(({ from }) => from),
          )
        })
      })
    })
  })
}
