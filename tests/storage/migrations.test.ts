import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import type { CustomFieldType } from '../../catalog/custom-fields.ts'
import { migrate } from '../../storage/migrate.ts'
import { databases, onEmptyDatabase } from '../databases.ts'

type Given = { type: CustomFieldType; value: unknown; rows: Record<string, unknown>[] }

/** A stored value and its index rows; none for a value that does not fit its field. */
const given: Given[] = [
  { type: 'text', value: 'Straße 5', rows: [{ text_key: 'strasse 5', free: true }] },
  { type: 'textarea', value: 'x'.repeat(3000), rows: [{ text_key: 'x'.repeat(3000), free: true }] },
  { type: 'email', value: 'Ada@Example.com', rows: [{ text_key: 'ada@example.com', free: true }] },
  { type: 'url', value: 'https://example.com/A', rows: [{ text_key: 'https://example.com/a', free: true }] },
  { type: 'phone', value: '15550100001', rows: [{ text_key: '15550100001', free: true }] },
  { type: 'select', value: 'Red', rows: [{ text_key: 'red', free: false }] },
  { type: 'radio', value: 'gone', rows: [{ text_key: 'gone', free: false }] },
  {
    type: 'multiselect',
    value: ['B', 'A'],
    rows: [
      { n: 0, text_key: 'b', free: false },
      { n: 1, text_key: 'a', free: false },
    ],
  },
  { type: 'int', value: 9007199254740991, rows: [{ number_value: '9007199254740991' }] },
  { type: 'number', value: -12.5, rows: [{ number_value: '-12.5' }] },
  { type: 'float', value: 1e-7, rows: [{ number_value: '0.0000001' }] },
  {
    type: 'decimal',
    value: '12345678901234567890.12345678',
    rows: [{ number_value: '12345678901234567890.12345678' }],
  },
  { type: 'checkbox', value: false, rows: [{ bool_value: false }] },
  { type: 'boolean', value: true, rows: [{ bool_value: true }] },
  { type: 'date', value: '2026-02-28', rows: [{ time: '2026-02-28 00:00:00' }] },
  { type: 'date', value: '0000-02-29', rows: [{ time: '0001-02-29 00:00:00 BC' }] },
  { type: 'datetime', value: '2026-10-01T09:30:00.123Z', rows: [{ time: '2026-10-01 09:30:00.123' }] },
  { type: 'int', value: true, rows: [] },
  { type: 'boolean', value: 'yes', rows: [] },
]

/** More contacts than are read at a time. */
const MANY = 5003
const blank = { n: 0, text_key: null, free: false, number_value: null, bool_value: null, time: null }

for (const database of databases) {
  describe(`Migrations (${database})`, () => {
    it('creates the index rows of existing values, but none for deleted fields', async () => {
      await onEmptyDatabase(database, async (db) => {
        await migrate(db, { to: '0001-spine' })
        const field = async (
          workspaceId: number,
          key: string,
          type: CustomFieldType,
          deleted = false,
        ): Promise<string> =>
          (
            await sql<{ id: string }>`
          insert into custom_fields (workspace_id, key, label, type, created_at, deleted_at)
          values (${workspaceId}, ${key}, ${key}, ${type}, '2026-10-01',
            ${deleted ? '2026-10-02' : null}::timestamptz)
          returning id`.execute(db)
          ).rows[0]!.id
        const attrs: Record<string, unknown> = {}
        const wanted: Record<string, unknown>[] = []
        for (const [i, { type, value, rows }] of given.entries()) {
          const id = await field(1, `f_${i}`, type)
          attrs[id] = value
          wanted.push(...rows.map((row) => ({ field_id: id, ...blank, ...row })))
        }
        attrs[await field(1, 'gone', 'text', true)] = 'not found'
        await sql`
          insert into contact_facts (workspace_id, contact_id, attrs)
          values (1, 7, ${JSON.stringify(attrs)}::jsonb)`.execute(db)
        const nick = await field(2, 'nick', 'text')
        await sql`
          insert into contact_facts (workspace_id, contact_id, attrs)
          select 2, i, jsonb_build_object(${nick}::text, 'N' || i) from generate_series(1, ${MANY}::int) as i`.execute(
          db,
        )

        await migrate(db)
        const { rows } = await sql`
          select field_id, n, text_key, free, number_value, bool_value,
            (time_value at time zone 'UTC')::text as time
          from contact_attributes
          where workspace_id = 1 and contact_id = 7 order by field_id, n`.execute(db)
        assert.deepEqual([...rows], wanted)
        const {
          rows: [many],
        } = await sql`
          select count(*)::int as n, count(distinct contact_id)::int as contacts,
            bool_and(text_key = 'n' || contact_id and field_id = ${nick} and free) as right
          from contact_attributes where workspace_id = 2`.execute(db)
        assert.deepEqual(many, { n: MANY, contacts: MANY, right: true })
        assert.deepEqual((await sql`select count(*)::int as n from contact_attributes`.execute(db)).rows[0], {
          n: wanted.length + MANY,
        })
      })
    })

    it('counts the recipients of broadcasts, and makes quick messages searchable by their text', async () => {
      await onEmptyDatabase(database, async (db) => {
        await migrate(db, { to: '0004-sandbox' })
        await sql`
          insert into broadcast_recipients (workspace_id, broadcast_id, contact_id, status, responded)
          select 1 + i % 2, 5, i, case when i % 3 = 0 then 'read' else 'pending' end, i % 6 = 0
          from generate_series(1, 60) as i`.execute(db)
        await sql`
          insert into quick_messages (workspace_id, code, code_key, title, type, text, created_at, updated_at) values
            (1, 'Straße', 'strasse', 'Weg', 'TEXT', 'Die Straße', '2026-10-01', '2026-10-01'),
            (2, 'b', 'b', null, 'IMAGE', null, '2026-10-01', '2026-10-01')`.execute(db)
        await migrate(db)
        const { rows } = await sql`
            select workspace_id, broadcast_id, pending, read, sent, responded
            from broadcast_counts order by 1`.execute(db)
        assert.deepEqual(
          [...rows],
          [
            { workspace_id: '1', broadcast_id: '5', pending: '20', read: '10', sent: '0', responded: '10' },
            { workspace_id: '2', broadcast_id: '5', pending: '20', read: '10', sent: '0', responded: '0' },
          ],
        )
        assert.deepEqual(
          (await sql<{ search: string }>`select search from quick_messages order by id`.execute(db)).rows.map(
            (row) => row.search,
          ),
          ['strasse\u001Fweg\u001Fdie strasse', 'b\u001F\u001F'],
        )
      })
    })

    it('removes names that are the phone, and no others', async () => {
      await onEmptyDatabase(database, async (db) => {
        await migrate(db, { to: '0008-reports' })
        const names = [
          ['15550100042', null],
          ['+1 (555) 010-0042', null],
          ['0555 010 0042', null],
          ['１５５５\u200b０１０００４２', null],
          ['١٥٥٥٠١٠٠٠٤٢', null],
          ['15550100043', '15550100043'],
          ['0100', '0100'],
          ['Ada 15550100042', 'Ada 15550100042'],
          ['李 15550100042', '李 15550100042'],
          ['', ''],
        ] as const
        for (const [i, [name]] of names.entries())
          await sql`
            insert into contacts (workspace_id, phone, name, name_key, search, created_at, updated_at)
            values (${i + 1}, '15550100042', ${name}, ${name}, ${`${name}\n15550100042`}, '2026-10-01', '2026-10-01')
          `.execute(db)
        await migrate(db)
        const { rows } = await sql<{ name: string | null; name_key: string; search: string }>`
          select name, name_key, search from contacts order by workspace_id`.execute(db)
        assert.deepEqual(
          rows.map(({ name, name_key, search }) => [name, name_key, search]),
          names.map(([, kept]) => [kept, kept ?? '', `${kept ?? ''}\n15550100042`]),
        )
      })
    })

    it('keeps conversations, with no unread messages', async () => {
      await onEmptyDatabase(database, async (db) => {
        await migrate(db, { to: '0001-spine' })
        await sql`
          insert into conversations (workspace_id, contact_id, state, created_at)
          values (1, 1, 'open', '2026-10-01')`.execute(db)
        await migrate(db)
        assert.deepEqual(
          (await sql`select workspace_id, state, unread_count from conversations`.execute(db)).rows[0],
          { workspace_id: '1', state: 'open', unread_count: 0 },
        )
      })
    })
  })
}
