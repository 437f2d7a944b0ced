import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import type { Db } from '../../storage/database.ts'
import { moveDueTimes } from '../../storage/work/due-times.ts'
import { databases, onMigratedDatabase } from '../databases.ts'

/** How the columns are named that hold when something goes on by itself, by the clock of the database. */
const WAITS =
  /^(?:next_(?:(?:attempt|probe)_)?at|lease_until|run_(?:after|until)|due_at|called_at|removable_at)$/
/** They go by business time. */
const OTHER_CLOCK = 'reply_waits'

/** What rows have while they wait, where not every row of the table waits. */
const waiting: Readonly<Record<string, readonly Record<string, unknown>[]>> = {
  // The file of a deleted message, which may still be written.
  media: [{ state: 'lost', key: '1/2' }],
  provider_updates: [{ state: 'waiting' }],
  webhook_deliveries: [{ status: 'pending' }],
  approvals: [{ status: 'approved' }],
  idempotency: [{ state: 'running' }],
}

type Column = { table: string; column: string; type: string; required: boolean }

const listColumns = async (db: Db): Promise<Column[]> =>
  (
    await sql<Column>`
      select t.table_name as table, c.column_name as column, c.udt_name as type,
        c.is_nullable = 'NO' and c.column_default is null and c.is_identity = 'NO'
          and c.is_generated = 'NEVER' as required
      from information_schema.tables t
      join information_schema.columns c on c.table_schema = t.table_schema and c.table_name = t.table_name
      join pg_class p on p.oid = format('%I.%I', t.table_schema, t.table_name)::regclass and not p.relispartition
      where t.table_schema = current_schema() and t.table_type = 'BASE TABLE'`.execute(db)
  ).rows

/** Any value of a type. */
const fill = (type: string): string =>
  ({ text: 'x', jsonb: '{}', bytea: '', bool: 'false', timestamptz: '2026-10-01', date: '2026-10-01' })[
    type
  ] ?? (type.startsWith('_') ? '{}' : '1')

const minutesAhead = (minutes: number) => sql`clock_timestamp() + ${minutes}::int * interval '1 minute'`

for (const database of databases)
  describe(`Due times and a clock of the database that is set back (${database})`, () => {
    it('all that waits for longer than a lease is due earlier by as much, once', () =>
      onMigratedDatabase(database, async (db) => {
        const columns = await listColumns(db)
        const waits = columns.filter(({ table, column }) => WAITS.test(column) && table !== OTHER_CLOCK)
        const tables = Object.entries(Object.groupBy(waits, ({ table }) => table))
        assert.ok(tables.length >= 10, `${tables.length} tables`)
        await db.transaction().execute(async (tx) => {
          // A row may be of no record that there is, and of a kind that there is not.
          await sql`set local session_replication_role = replica`.execute(tx)
          const names = tables.map(([table]) => table)
          const { rows: checks } = await sql<{ table: string; name: string }>`
            select conrelid::regclass::text as table, conname as name from pg_constraint
            where contype = 'c' and conislocal and conrelid::regclass::text = any(${names})`.execute(tx)
          for (const { table, name } of checks)
            await sql`alter table ${sql.table(table)} drop constraint ${sql.ref(name)}`.execute(tx)
          for (const [table, due] of tables)
            for (const row of waiting[table] ?? [{}]) {
              const values = Object.fromEntries([
                ...columns
                  .filter((one) => one.table === table && one.required)
                  .map(({ column, type }) => [column, fill(type)]),
                ...due!.map(({ column }) => [column, minutesAhead(125)]),
                ...Object.entries(row),
              ])
              await tx
                .insertInto(table as never)
                .values(values as never)
                .execute()
            }
        })
        const readMinutes = async (): Promise<string[]> => {
          const read: string[] = []
          for (const { table, column } of waits) {
            const { rows } = await sql<{ minutes: number }>`
              select round(extract(epoch from ${sql.ref(column)} - clock_timestamp()) / 60)::int as minutes
              from ${sql.table(table)}`.execute(db)
            for (const { minutes } of rows) read.push(`${table}.${column} ${minutes}`)
          }
          return read
        }
        const expected = (minutes: number) =>
          waits.flatMap(({ table, column }) =>
            (waiting[table] ?? [{}]).map(() => `${table}.${column} ${minutes}`),
          )
        assert.deepEqual(await readMinutes(), expected(125))
        assert.equal(await moveDueTimes(db, 120 * 60_000), true)
        assert.deepEqual(await readMinutes(), expected(5))
        // Another server saw the same; and what waits for less than a lease may have begun since.
        assert.equal(await moveDueTimes(db, 120 * 60_000), false)
        await sql`delete from settings where key = 'clock_set_back_at'`.execute(db)
        assert.equal(await moveDueTimes(db, 120 * 60_000), true)
        assert.deepEqual(await readMinutes(), expected(5))
      }))
  })
