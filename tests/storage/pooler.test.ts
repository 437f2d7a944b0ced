import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import type { Db } from '../../storage/database.ts'
import type { OpenOptions, Storage } from '../../storage/open.ts'
import { SESSION_DEFAULTS } from '../../storage/client/session-settings.ts'
import { createDatabase, databases, withStorage } from '../databases.ts'
import { sqlTemplates } from './sql-templates.ts'

const describeSessions = (way: 'direct' | 'pooled'): void => {
  const isPooled = way === 'pooled'

  const withOwnStorage = async (
    options: OpenOptions,
    work: (storage: Storage) => Promise<void>,
  ): Promise<void> => {
    const created = await createDatabase('postgresql')
    try {
      await withStorage(created[way]!, work, options)
    } finally {
      await created.remove()
    }
  }

  it('are found to be those of a pooler, or direct', async () => {
    await withOwnStorage({}, async ({ access }) => {
      assert.equal(access.pooled, isPooled)
    })
  })

  it('have the settings of the service for every kind of statement', async () => {
    const settings = sql<{ settings: string }>`
      select concat_ws(' ', current_setting('statement_timeout'), current_setting('lock_timeout'),
        current_setting('idle_in_transaction_session_timeout'), current_setting('jit'),
        current_setting('TimeZone'), ${''}::text) as settings`
    const load = async (db: Db) => (await settings.execute(db)).rows[0]!.settings.trim()
    await withOwnStorage({}, async ({ db, heavy }) => {
      for (let round = 0; round < 3; round++) {
        assert.equal(await load(db), '15s 2s 30s off UTC')
        assert.equal(await db.transaction().execute(load), '15s 2s 30s off UTC')
        assert.equal(await load(heavy), '5s 2s 30s off UTC')
      }
      const { rows } = await sql<{ mode: string }>`
        /* custom plan */ select current_setting('plan_cache_mode') as mode, ${1}::int`.execute(heavy)
      // Without prepared statements every plan is made anew.
      assert.ok(isPooled || rows[0]!.mode === 'force_custom_plan')
    })
  })

  it('do not depend on what is set for the database', async () => {
    const names = Object.keys(SESSION_DEFAULTS).filter((name) => !name.startsWith('default_'))
    const shown = sql<{ values: string[]; level: string }>`
      select array(select current_setting(n) from unnest(${names}::text[]) as n) as values,
        current_setting('transaction_isolation') as level`
    const load = async (db: Db) => (await shown.execute(db)).rows[0]!
    const values = names.map((name) => String(SESSION_DEFAULTS[name]))
    const unusual = ['German, DMY', 'iso_8601', 'escape', '-5', 'off', 'on']
    assert.equal(names.length, unusual.length)
    const { direct, pooled, remove } = await createDatabase('postgresql')
    try {
      await withStorage(direct, async ({ db }) => {
        const { rows } = await sql<{ name: string }>`select current_database() as name`.execute(db)
        const settings = Object.fromEntries(names.map((name, i) => [name, unusual[i]!]))
        for (const [name, value] of Object.entries({
          ...settings,
          TimeZone: 'Asia/Kolkata',
          default_transaction_isolation: 'serializable',
        }))
          await sql`alter database ${sql.id(rows[0]!.name)} set ${sql.id(name)} = ${sql.lit(value)}`.execute(
            db,
          )
      })
      await withStorage(isPooled ? pooled! : direct, async ({ db, heavy }) => {
        const expected = { values, level: 'read committed' }
        for (const each of [db, heavy]) {
          assert.deepEqual(await load(each), expected)
          assert.deepEqual(await each.transaction().execute(load), expected)
        }
        const level = await db.transaction().setIsolationLevel('repeatable read').execute(load)
        assert.equal(level.level, 'repeatable read')
        const { rows } = await sql`
          select '2026-02-01T12:00:00.5Z'::timestamptz as at, 0.1::float8 + 0.2 as n, decode('00ff', 'hex') as bytes,
            (null::int = null) is null as unknown`.execute(db)
        assert.deepEqual(rows, [
          { at: '2026-02-01T12:00:00.500Z', n: 0.1 + 0.2, bytes: Buffer.from([0, 255]), unknown: true },
        ])
      })
    } finally {
      await remove()
    }
  })

  it('keep the plans of statements, but for a pooler that does not', async () => {
    await withOwnStorage({ connections: 1 }, async ({ db, access }) => {
      const countPrepared = async (text: string): Promise<string> => {
        const { rows } = await sql<{ n: string }>`
          select count(*)::text as n from pg_prepared_statements where statement = ${text}`.execute(db)
        return rows[0]!.n
      }
      await sql`select ${1}::int as kept`.execute(db)
      await sql`/* custom plan */ select ${1}::int as planned_anew`.execute(db)
      assert.equal(await countPrepared('select $1::int as kept'), access.prepare ? '1' : '0')
      assert.equal(await countPrepared('/* custom plan */ select $1::int as planned_anew'), '0')
    })
  })

  it('end a statement at its deadline', async () => {
    await withOwnStorage({ statementTimeout: 200 }, async ({ db }) => {
      const sleep = (on: Db) => sql`select pg_sleep(${5}::float8)`.execute(on)
      await assert.rejects(sleep(db), { code: '57014' })
      await assert.rejects(db.transaction().execute(sleep), { code: '57014' })
      assert.equal((await sql`select ${1}::int as one`.execute(db)).rows.length, 1)
    })
  })

  it('give every caller the rows of its own statement', async () => {
    await withOwnStorage({ connections: 8 }, async ({ db }) => {
      const run = async (on: Db, hint: string, n: number) =>
        (await sql<{ n: number }>`${sql.raw(hint)} select ${n}::int as n`.execute(on)).rows[0]?.n
      const numbers = Array.from({ length: 400 }, (_, n) => n)
      const found = await Promise.all(
        numbers.map((n) =>
          n % 4 === 0
            ? db
                .transaction()
                .execute(async (tx) => ((await run(tx, '', -1)) === -1 ? run(tx, '', n) : undefined))
            : run(db, n % 4 === 1 ? '/* quick */' : '', n),
        ),
      )
      assert.deepEqual(found, numbers)
    })
  })
}

const skip = !databases.includes('postgresql')
const skipPooled = !process.env.WCRM_TEST_POOLER_URL && 'PgBouncer is not installed'
describe('Sessions of PostgreSQL', { skip }, () => describeSessions('direct'))
describe('Sessions of PostgreSQL through a pooler', { skip: skipPooled }, () => describeSessions('pooled'))

/** What a session keeps, and a transaction through a pooler may not rely on. */
const OF_A_SESSION = new RegExp(
  [
    String.raw`pg_(?:try_)?advisory_lock`,
    String.raw`^\s*(?:listen|notify|prepare|set (?!local\b))`,
    String.raw`\b(?:temp|temporary) table`,
    String.raw`set_config\([^)]*false`,
  ].join('|'),
  'i',
)

describe('Statements of storage/', () => {
  it('rely on nothing that a session keeps', () => {
    const found = sqlTemplates().filter(({ chunks }) => OF_A_SESSION.test(chunks.join('$')))
    assert.deepEqual(
      found.map(({ file, line }) => `${file}:${line}`),
      [],
    )
    assert.ok(OF_A_SESSION.test('select pg_advisory_lock($)') && OF_A_SESSION.test('set jit = off'))
  })
})
