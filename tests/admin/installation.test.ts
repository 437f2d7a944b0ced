import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { sql } from 'kysely'
import { createWorkspace } from '../../storage/workspace/admin.ts'
import type { Db } from '../../storage/database.ts'
import { createDatabase, databases, withStorage } from '../databases.ts'
import { runAdminWith } from './admin-commands.ts'

const NOW = '2024-10-01T09:30:00.000Z'

const home = mkdtempSync(join(tmpdir(), 'wcrm-installation-'))
after(() => rmSync(home, { recursive: true, force: true }))

type Row = { check: string; status: string; about: string; detail: string; fix: string }

const runDoctor = async (env: Record<string, string>) => {
  const { exit, out, err } = await runAdminWith({ HOME: home, WCRM_MEDIA: home, ...env }, 'doctor', '--json')
  assert.ok(exit === 0 || exit === 1, err)
  return { exit, rows: JSON.parse(out).data as Row[] }
}

const show = (rows: readonly Row[]): string[] =>
  rows.map(({ check, status, about }) => `${status} ${check}: ${about}`)

/** A database of its own; not behind a pooler, whose sessions would keep their settings. */
const withDatabase = async (work: (url: string, db: Db) => Promise<void>): Promise<void> => {
  const { direct, remove } = await createDatabase('postgresql')
  try {
    await withStorage(direct, ({ db }) => work((direct as { databaseUrl: string }).databaseUrl, db))
  } finally {
    await remove()
  }
}

const skip = databases.includes('postgresql') ? false : 'PostgreSQL is not installed'

describe('wcrm admin doctor, of an installation on PostgreSQL', { skip }, () => {
  it('finds nothing in a new one', () =>
    withDatabase(async (url) => {
      const { exit, rows } = await runDoctor({ WCRM_DATABASE_URL: url, WCRM_PROVIDER: 'none' })
      // The cluster of the tests trades safety for time.
      const unsafe = ['fsync', 'full_page_writes', 'synchronous_commit', 'data_checksums']
      assert.deepEqual(show(rows.filter(({ about }) => !unsafe.includes(about))), [])
      assert.equal(exit, rows.some(({ status }) => status === 'problem') ? 1 : 0)
    }))

  it('finds what was planted, and says what to do about each', () =>
    withDatabase(async (url, db) => {
      const { id } = await createWorkspace(db, { name: 'Shop' }, NOW)
      await sql`
        update pg_index set indisvalid = false where indexrelid = 'contacts_pkey'::regclass`.execute(db)
      await sql`
        insert into servers (id, secrets, seen_at, version, clock_ahead_ms) values
          ('a', '{}', clock_timestamp(), '0.1.0', 60000), ('b', '{}', clock_timestamp(), null, null)`.execute(
        db,
      )
      await sql`
        with member as (
          insert into staff (workspace_id, name, role, created_at)
          values (${id}, 'Olivia', 'owner', ${NOW}) returning id)
        insert into api_keys (workspace_id, hash, staff_id, scopes, api_version, created_at)
        select ${id}, '\\x00', id, '{}', '2026-01-01', ${NOW} from member`.execute(db)
      await sql`
        insert into runs (workspace_id, kind, subject, needs_version, run_after)
        values (${id}, 'erasures', '1', '1000 steps', clock_timestamp() - interval '6 minutes')`.execute(db)
      const name = new URL(url).pathname.slice(1)
      await sql`alter database ${sql.id(name)} set synchronous_commit = off`.execute(db)
      const secret = 'a secret of sixteen and more'
      const { exit, rows } = await runDoctor({
        WCRM_DATABASE_URL: url,
        WCRM_PROVIDER: 'sandbox',
        WCRM_PUBLIC_URL: 'https://crm.example.com',
        WCRM_SECRET: secret,
      })
      assert.equal(exit, 1)
      const found = show(rows)
      for (const line of [
        'problem database_settings: synchronous_commit',
        'problem tables: contacts_pkey',
        'problem later_erasures: erasures',
        'problem servers: clock',
        'warning servers: versions',
        'problem provider: provider',
        'warning secrets: WCRM_SECRET',
        'warning secrets: API keys',
      ])
        assert.ok(found.includes(line), `${line} is missing in ${found.join(', ')}`)
      for (const { detail, fix } of rows) assert.match(`${detail}|${fix}`, /^[^|]+\.\|[^|]+\.$/)
      assert.ok(!JSON.stringify(rows).includes(secret))
    }))

  it('looks into the schema of the tables, also where another one is first in the search path', () =>
    withDatabase(async (url, db) => {
      await sql`
        update pg_index set indisvalid = false where indexrelid = 'contacts_pkey'::regclass`.execute(db)
      await sql`create schema "Other"`.execute(db)
      const name = new URL(url).pathname.slice(1)
      await sql`alter database ${sql.id(name)} set search_path = "Other", public`.execute(db)
      const { rows } = await runDoctor({ WCRM_DATABASE_URL: url, WCRM_PROVIDER: 'none' })
      const found = rows.filter(({ check }) => check === 'tables')
      assert.deepEqual(show(found), ['problem tables: search_path', 'problem tables: contacts_pkey'])
      assert.match(found[0]!.detail, /schema public, .* in "Other",/)
    }))

  it('reports a check that takes too long, and makes the others', () =>
    withDatabase(async (url, db) => {
      const [held, locked] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      const holding = db.transaction().execute(async (tx) => {
        await sql`lock table servers in access exclusive mode`.execute(tx)
        locked.resolve()
        await held.promise
      })
      await locked.promise
      const { rows } = await runDoctor({ WCRM_DATABASE_URL: url, WCRM_PROVIDER: 'sandbox' })
      held.resolve()
      await holding
      assert.match(rows.find(({ check }) => check === 'servers')!.detail, /more than 5 seconds/)
      assert.ok(show(rows).includes('warning provider: provider'))
    }))
})

it('on the embedded database, a sandbox is a problem at a public address alone', async () => {
  const folder = join(home, 'embedded')
  const init = await runAdminWith(
    { HOME: home },
    'init',
    '--workspace=Shop',
    '--owner=Olivia',
    `--data=${folder}`,
  )
  assert.equal(init.exit, 0, init.err)
  assert.deepEqual((await runDoctor({ WCRM_DATA: folder })).rows, [])
  const { exit, rows } = await runDoctor({ WCRM_DATA: folder, WCRM_PUBLIC_URL: 'https://crm.example.com' })
  assert.deepEqual([exit, show(rows)], [1, ['problem provider: provider']])
})
