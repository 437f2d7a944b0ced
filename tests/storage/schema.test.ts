import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import { tables } from '../../storage/database.ts'
import type { Db } from '../../storage/database.ts'
import type { Column, Table } from '../../storage/tables/columns.ts'
import { databases, onMigratedDatabase } from '../databases.ts'

type SchemaColumn = {
  table: string
  column: string
  type: string
  nullable: boolean
  has_default: boolean
  generated: boolean
  check: string | null
}

const loadColumns = async (db: Db): Promise<SchemaColumn[]> => {
  const { rows } = await sql<SchemaColumn>`
    select c.relname as table, a.attname as column, format_type(a.atttypid, null) as type,
      not a.attnotnull as nullable, a.attgenerated <> '' as generated,
      a.attidentity <> '' or (a.atthasdef and a.attgenerated = '') as has_default,
      (select pg_get_constraintdef(k.oid) from pg_constraint k
        where k.conrelid = c.oid and k.contype = 'c' and k.conkey = array[a.attnum]) as check
    from pg_class c join pg_attribute a on a.attrelid = c.oid
    where c.relkind in ('r', 'p') and not c.relispartition and c.relnamespace = 'public'::regnamespace
      and a.attnum > 0 and not a.attisdropped and c.relname <> 'migrations'
    order by c.relname, a.attnum`.execute(db)
  return rows
}

/** Describes what statements depend on: `text, nullable, has a default, one of a, b`. */
const describeColumn = (
  type: string,
  properties: { nullable: boolean; hasDefault: boolean; generated: boolean },
  values: readonly string[] | undefined,
): string =>
  [
    type,
    properties.nullable ? 'nullable' : 'not null',
    ...(properties.hasDefault ? ['has a default'] : []),
    ...(properties.generated ? ['generated'] : []),
    ...(values ? [`one of ${values.join(' ')}`] : []),
  ].join(', ')

/** The values of `check (c in ('a', 'b'))`, as PostgreSQL writes it. */
const checkedValues = (check: string | null): string[] | undefined =>
  check?.includes('= ANY (ARRAY[')
    ? [...check.matchAll(/'([^']*)'::text/g)].map(([, value]) => value!)
    : undefined

const describeSchema = (columns: readonly SchemaColumn[]): Record<string, string> =>
  Object.fromEntries(
    columns.map((c) => [
      `${c.table}.${c.column}`,
      describeColumn(
        c.type,
        { nullable: c.nullable, hasDefault: c.has_default, generated: c.generated },
        checkedValues(c.check),
      ),
    ]),
  )

const describeDeclared = (declared: Readonly<Record<string, Table>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(declared).flatMap(([table, columns]) =>
      Object.entries(columns).map(([name, column]: [string, Column]) => [
        `${table}.${name}`,
        describeColumn(
          column.dataType,
          { nullable: column.isNullable, hasDefault: column.hasDefault, generated: column.isGenerated },
          column.values,
        ),
      ]),
    ),
  )

/** One line for each column that is missing, extra or of another type. */
const differences = (declared: Record<string, string>, actual: Record<string, string>): string[] =>
  [...new Set([...Object.keys(declared), ...Object.keys(actual)])]
    .sort()
    .filter((name) => declared[name] !== actual[name])
    .map(
      (name) =>
        `${name}: storage/tables declares ${declared[name] ?? 'nothing'}; ` +
        `the schema has ${actual[name] ?? 'nothing'}`,
    )

for (const database of databases) {
  describe(`Table types (${database})`, () => {
    it('are those of the migrated schema', async () => {
      await onMigratedDatabase(database, async (db) => {
        assert.deepEqual(differences(describeDeclared(tables), describeSchema(await loadColumns(db))), [])
      })
    })

    it('keep the microseconds of times when work is due: rounded, it would be due a little later', async () => {
      await onMigratedDatabase(database, async (db) => {
        const { rows } = await sql<{ column: string; type: string }>`
          select c.relname || '.' || a.attname as column, format_type(a.atttypid, a.atttypmod) as type
          from pg_class c join pg_attribute a on a.attrelid = c.oid
          where c.relkind in ('r', 'p') and c.relnamespace = 'public'::regnamespace
            and a.attname in ('run_after', 'next_attempt_at', 'next_probe_at')`.execute(db)
        assert.ok(rows.length >= 4, JSON.stringify(rows))
        assert.deepEqual(
          rows.filter(({ type }) => type !== 'timestamp with time zone'),
          [],
        )
      })
    })

    it('name each column that differs', async () => {
      await onMigratedDatabase(database, async (db) => {
        await sql`alter table contacts rename column email to mail`.execute(db)
        await sql`alter table staff alter channel_ids set not null`.execute(db)
        await sql`alter table media drop constraint media_state_check`.execute(db)
        assert.deepEqual(
          differences(describeDeclared(tables), describeSchema(await loadColumns(db))).map(
            (line) => line.split(':')[0],
          ),
          ['contacts.email', 'contacts.mail', 'media.state', 'staff.channel_ids'],
        )
      })
    })
  })
}
