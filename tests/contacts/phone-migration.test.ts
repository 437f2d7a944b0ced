import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import { lineRules, toPhoneLine } from '../../server/contacts/phone-lines.ts'
import type { Db } from '../../storage/database.ts'
import { migrate } from '../../storage/migrate.ts'
import { databases, onEmptyDatabase } from '../databases.ts'
import { phonePairs } from './phone-pairs.ts'

const insertPhones = async (db: Db, phones: readonly (string | null)[], workspaceId = 1): Promise<void> => {
  await sql`
    insert into contacts (workspace_id, phone, name, name_key, search, created_at, updated_at)
    select ${workspaceId}, phone, 'Ada', 'ada', E'ada\n' || coalesce(phone, ''), '2026-10-01', '2026-10-02'
    from unnest(${phones}::text[]) with ordinality as u (phone, n) order by n`.execute(db)
}

type Row = { phone: string | null; phone_key: string | null; provider_phone: string | null; search: string }

const readRows = async (db: Db, workspaceId = 1): Promise<Row[]> => {
  const { rows } = await sql<Row>`
    select phone, phone_key, provider_phone, search from contacts where workspace_id = ${workspaceId}
      and updated_at = '2026-10-02' order by id`.execute(db)
  return rows.map((row) => ({ ...row }))
}

/** Digits of every number of the corpus, and of every rule's old forms. */
const corpus = [
  ...new Set(
    phonePairs
      .flatMap(({ same, different }) => [...same, ...different].flat())
      .map((text) => text.replaceAll(/\D/g, '').replace(/^0+/, ''))
      .filter((digits) => digits.length <= 15),
  ),
]

for (const database of databases) {
  describe(`Migration of phone lines (${database})`, () => {
    it('gives every phone the line that the service gives it', async () => {
      await onEmptyDatabase(database, async (db) => {
        await migrate(db, { to: '0018-own-channels' })
        // A workspace for each number, so that none meets a double.
        for (const [i, phone] of corpus.entries()) await insertPhones(db, [phone], i + 1)
        await migrate(db, { to: '0019-phone-lines' })
        const matched = new Set<unknown>()
        for (const [i, given] of corpus.entries()) {
          const { phone, key } = toPhoneLine(given)
          const rule = lineRules.find(({ old }) => old.test(given))
          if (rule) matched.add(rule)
          assert.deepEqual(
            await readRows(db, i + 1),
            [
              {
                phone,
                phone_key: key === phone ? null : key,
                provider_phone: given === phone ? null : given,
                search: `ada\n${phone}`,
              },
            ],
            given,
          )
        }
        assert.equal(matched.size, lineRules.length, 'the corpus has an old form of every rule')
      })
    })

    it('of several contacts with one line, the present spelling keeps it, else the oldest', async () => {
      await onEmptyDatabase(database, async (db) => {
        await migrate(db, { to: '0018-own-channels' })
        const phones = ['551187654321', '5511987654321', '541123456789', '5491123456789', '15550100042']
        await insertPhones(db, [...phones, null, null])
        await insertPhones(db, ['551187654321'], 2)
        await migrate(db)
        assert.deepEqual(
          (await readRows(db)).map(({ phone, phone_key: key }) => [phone, key]),
          [
            ['551187654321', null],
            ['5511987654321', null],
            ['541123456789', null],
            ['5491123456789', null],
            ['15550100042', null],
            [null, null],
            [null, null],
          ],
        )
        assert.deepEqual(await readRows(db, 2), [
          {
            phone: '5511987654321',
            phone_key: null,
            provider_phone: '551187654321',
            search: 'ada\n5511987654321',
          },
        ])
        await assert.rejects(
          sql`update contacts set phone_key = '5491123456789' where phone = '541123456789'`.execute(db),
          /contacts_line/,
        )
      })
    })
  })
}
