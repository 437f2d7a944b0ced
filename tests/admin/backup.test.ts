import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import { sql } from 'kysely'
import postgres from 'postgres'
import { createDemo } from '../../server/demo/demo.ts'
import { listBackupTables } from '../../storage/backup/schema.ts'
import type { Db } from '../../storage/database.ts'
import { openStorage, type Storage } from '../../storage/open.ts'
import { createDatabase, databases as kinds, type TestDatabase, withStorage } from '../databases.ts'
import { processEnvironment, startProcess } from '../process.ts'
import { serveStorage } from '../servers.ts'
import { waitUntil } from '../wait-until.ts'
import { createSeal } from '../../cli/admin/backup-file.ts'
import { fail, runAdmin, succeed, useAdminDatabases } from './admin-commands.ts'

const databases = useAdminDatabases()

const superuserUrl = process.env.WCRM_TEST_POSTGRES_URL
const onPostgres = superuserUrl ? {} : { skip: 'WCRM_TEST_POSTGRES_URL is not set' }

/** Calls `work` with the URL of a new PostgreSQL database with its tables in this schema; it is dropped afterwards. */
const withDatabase = async (schema: string, work: (url: string) => Promise<void>): Promise<void> => {
  const name = `wcrm_${randomUUID().replaceAll('-', '')}`
  const admin = postgres(superuserUrl!, { max: 1, onnotice: () => {} })
  await admin.unsafe(`create database ${name}`)
  await admin.unsafe(`alter database ${name} set search_path = ${schema}`)
  const url = Object.assign(new URL(superuserUrl!), { pathname: `/${name}` }).href
  const own = postgres(url, { max: 1, onnotice: () => {} })
  try {
    await own.unsafe(`create schema if not exists ${schema}`)
    await own.end()
    await work(url)
  } finally {
    await admin.unsafe(`drop database ${name} with (force)`)
    await admin.end()
  }
}

/** Runs `wcrm` as a process. */
const runProcess = async (...argv: string[]): Promise<{ code: number | null; said: string }> => {
  const env = { ...processEnvironment, TMPDIR: process.env.TMPDIR }
  const child = spawn(process.execPath, ['bin/wcrm.js', ...argv], { env })
  let said = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      said += chunk.toString()
    })
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, said }
}

/** Locks a table of a PostgreSQL database during `work`, which waits for somebody who waits for it, and releases it. */
const whileLocked = async (
  { direct }: TestDatabase,
  lock: string,
  work: (untilWaits: () => Promise<void>, release: () => void) => Promise<void>,
): Promise<void> => {
  // Sessions of the product would count as servers.
  const own = postgres((direct as { databaseUrl: string }).databaseUrl, { max: 2, onnotice: () => {} })
  const locked = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  const holding = own.begin(async (tx) => {
    await tx.unsafe(`lock table ${lock}`)
    locked.resolve()
    await released.promise
  })
  const isAwaited = async (): Promise<boolean> => {
    const [row] =
      await own`select count(*)::int as n from pg_locks where locktype = 'relation' and not granted
      and database = (select oid from pg_database where datname = current_database())`
    return row!['n'] > 0
  }
  try {
    await locked.promise
    await work(() => waitUntil('somebody waits for the lock', isAwaited), released.resolve)
  } finally {
    released.resolve()
    await holding
    await own.end()
  }
}

const flagsOf = ({ direct }: TestDatabase): string[] =>
  'databaseUrl' in direct ? ['--database-url', direct.databaseUrl] : ['--data', direct.dataDir]

/** Adds values that a backup could change: numerics, control characters, old times, infinities, bytes. */
const plantEdgeCases = async (db: Db, workspaceId: string): Promise<void> => {
  await sql`update contact_facts set attrs = attrs || '{"991": 12345678901234567890.123456789000, "992": null,
    "993": 1e-30, "994": "\\u0001 \\" \\\\ 🦊"}'::jsonb where contact_id = 1`.execute(db)
  await sql`update contacts
    set name = ${'tab\t line\r\n quote" back\\slash {braces} \u2028 \u{1f9d1}\u200d\u{1f680}'},
      last_activity_at = '0001-01-01 00:00:00.001+00 BC' where id = 2`.execute(db)
  await sql`update staff set name = '', channel_ids = '{}' where id = 3`.execute(db)
  await sql`update channels set name = null, identifier = 'NULL' where id = 3`.execute(db)
  const bytes = Buffer.from(Array.from({ length: 256 }, (_, i) => i))
  await sql`
    insert into idempotency (workspace_id, staff_id, key, operation, fingerprint, state, intent, lease_until,
      created_at, expires_at)
    values (${workspaceId}, 1, 'a', 'x', ${bytes}, 'running', 'null', '2026-01-01 00:00:00.123456+00',
      'infinity', '-infinity'), (${workspaceId}, 1, 'b', 'x', '', 'running', null, null, now(),
        now())`.execute(db)
  await sql`insert into settings values ('secret_fingerprint', 'none of ours')`.execute(db)
  await sql`select setval('contacts_id_seq', 5000)`.execute(db)
}

/**
 * Adds events whose order by transaction differs from that of their ids, as in a cluster that has assigned
 * many transaction ids.
 */
const plantEvents = async (db: Db, workspaceId: string): Promise<void> => {
  const rows = Array.from({ length: 3000 }, (_, i) => ({
    id: `evt_${String((i * 7919) % 3000).padStart(4, '0')}`,
    xid: String(2_000_000_000_000 + Math.floor(i / 2)),
    w: i % 3 === 0 ? '77' : workspaceId,
  }))
  await sql`
    insert into events (workspace_id, id, type, xid, occurred_at, data)
    select w, id, 'contact.created/1', xid::xid8, now(), '{"n": 1.50}'
      from unnest(${rows.map((r) => r.w)}::bigint[], ${rows.map((r) => r.id)}::text[],
        ${rows.map((r) => r.xid)}::text[]) as u (w, id, xid)`.execute(db)
}

/** Returns all rows of each table of a backup as the database's text, without transaction ids. */
const readAllRows = async (db: Db): Promise<Record<string, string[]>> => {
  const rows: Record<string, string[]> = {}
  for (const { name, columns } of await listBackupTables(db)) {
    const selected = sql.join(
      columns.filter(({ type }) => type !== 'xid8').map((column) => sql.ref(column.name)),
    )
    rows[name] = (
      await sql<{ row: string }>`select row(${selected})::text as row from ${sql.table(name)}`.execute(db)
    ).rows
      .map((r) => r.row)
      .sort()
  }
  return rows
}

/** Returns the ids of all events in the order of the event log. */
const readEventOrder = async (db: Db): Promise<string[]> =>
  (
    await sql<{
      id: string
    }>`select workspace_id || ' ' || id as id from events e order by workspace_id, e.xid, e.id`.execute(db)
  ).rows.map((r) => r.id)

/** A file as `wcrm admin backup` writes it, of other lines. */
const pack = (lines: readonly string[]): Buffer => {
  const content = gzipSync(lines.join('\n'))
  return Buffer.concat([content, createSeal(createHash('sha256').update(content).digest())])
}

/** The lines of a backup with the sums of other lines. */
const sumAgain = (lines: readonly string[]): string[] => {
  const whole = createHash('sha256').update(`${lines[0]}\n`)
  let part = createHash('sha256')
  const summed = lines.slice(1, -1).map((line) => {
    if (line.startsWith('{"table":')) part = createHash('sha256')
    if (!line.startsWith('{"end":')) {
      part.update(`${line}\n`)
      return line
    }
    const end = JSON.stringify({ ...JSON.parse(line), sha256: part.digest('hex') })
    whole.update(`${end}\n`)
    return end
  })
  const trailer = { ...JSON.parse(lines.at(-1)!), sha256: whole.digest('hex') }
  return [lines[0]!, ...summed, JSON.stringify(trailer), '']
}

describe('admin: backup, restore and move', () => {
  const folder = databases.newFolder()
  const file = join(databases.home, 'whole.gz')
  let rows: Record<string, string[]>
  let order: string[]
  let apiKey: string

  before(async () => {
    const storage = await databases.open(folder)
    const demo = (await createDemo(storage.db, '2026-11-01T10:00:00.000Z', {
      publicUrl: 'https://crm.example.com',
    }))!
    apiKey = demo.apiKey
    await plantEdgeCases(storage.db, demo.workspaceId)
    await plantEvents(storage.db, demo.workspaceId)
    rows = await readAllRows(storage.db)
    order = await readEventOrder(storage.db)
    await storage.close()
    const { tables, bytes } = await succeed('backup', file, '--data', folder)
    assert.deepEqual(
      tables,
      Object.fromEntries(Object.entries(rows).map(([name, found]) => [name, found.length])),
    )
    assert.equal(bytes, statSync(file).size)
    assert.equal(statSync(file).mode & 0o777, 0o600)
  })

  /** Requires the content of the database above. */
  const requireSameContent = async ({ db }: Storage): Promise<void> => {
    const found = await readAllRows(db)
    assert.deepEqual(Object.keys(found), Object.keys(rows))
    // Row by row: the difference of whole tables would be too long to read.
    for (const [table, expected] of Object.entries(rows)) {
      assert.equal(found[table]!.length, expected.length, table)
      for (const [i, row] of expected.entries()) assert.equal(found[table]![i], row)
    }
    assert.ok((await readEventOrder(db)).join() === order.join(), 'events are in the same order')
    const hidden =
      await sql`select 1 from events where xid >= pg_snapshot_xmin(pg_current_snapshot())`.execute(db)
    assert.equal(hidden.rows.length, 0, 'old events come before new ones')
    const next = await sql<{ id: string }>`select nextval('contacts_id_seq') as id`.execute(db)
    assert.equal(next.rows[0]!.id, '5001')
  }

  const requireKeyWorks = async (storage: Storage, database: string): Promise<void> => {
    const server = await serveStorage(storage, database)
    const answer = await fetch(`${server.url}/v1/contacts?limit=1`, {
      headers: { Authorization: `Bearer ${apiKey}` },
    })
    assert.equal(((await answer.json()) as { total: number }).total, 200)
    await server.close()
  }

  it('a backup of an embedded database restores all rows', async () => {
    const target = databases.newFolder()
    const { exit, err } = await runAdmin('restore', file, '--data', target)
    assert.equal(exit, 0, err)
    assert.match(err, /needs the secret/)
    const storage = await databases.open(target)
    await requireSameContent(storage)
    await requireKeyWorks(storage, 'embedded')
    await storage.close()
    await fail(2, /not empty/, 'restore', file, '--data', target)
    await succeed('backup', join(databases.home, 'again.gz'), '--data', target)
  })

  it('restore refuses a damaged file and changes nothing', async () => {
    const bytes = readFileSync(file)
    const lines = gunzipSync(bytes).toString().split('\n')
    const target = join(databases.home, 'never-made')
    const refuse = async (detail: RegExp, name: string, content: Buffer): Promise<void> => {
      const damaged = join(databases.home, name)
      writeFileSync(damaged, content)
      await fail(2, detail, 'restore', damaged, '--data', target)
      assert.ok(!existsSync(target), `${name} made a database`)
    }
    const [header = '', ...rest] = lines
    await refuse(/truncated/, 'cut.gz', bytes.subarray(0, bytes.length / 2))
    await refuse(/its end is missing/, 'endless.gz', pack(lines.slice(0, -2)))
    await refuse(/data after its end/, 'longer.gz', pack([...lines.slice(0, -1), '[]', '']))
    await refuse(/not part of the backup/, 'noise.gz', pack([header, 'noise', ...rest]))
    await refuse(
      /the checksum of the table contacts does not match/,
      'changed.gz',
      pack(lines.map((line) => line.replace('Olivia', 'Oliver'))),
    )
    await refuse(
      /the table contacts is not complete/,
      'fewer.gz',
      pack(lines.filter((line) => !line.includes('Olivia'))),
    )
    const older = header.replace('0001-baseline', '0000-older')
    await refuse(
      /another schema .*0000-older is not known here/,
      'older.gz',
      pack(sumAgain([older, ...rest.slice(0, -1)])),
    )
    await refuse(/not a backup/, 'other.gz', pack(['hello']))
    await refuse(/not a backup/, 'empty.gz', pack([]))
    await refuse(/cannot be decompressed/, 'plain.gz', Buffer.from('hello'))
    await fail(3, /does not exist/, 'restore', join(databases.home, 'missing.gz'), '--data', target)
    const none = join(databases.home, 'none.gz')
    await fail(3, /no database/, 'backup', none, '--data', join(databases.home, 'nothing'))
    assert.ok(!existsSync(none))
  })

  it('restore refuses a whole file that does not fit the schema, and changes nothing', async () => {
    const target = databases.newFolder()
    const lines = gunzipSync(readFileSync(file)).toString().trimEnd().split('\n')
    const changed = lines.map((line) => line.replace('"name":"emoji"', '"name":"icon"'))
    const form = join(databases.home, 'form.gz')
    writeFileSync(form, pack(sumAgain(changed)))
    await fail(2, /another form of the table/, 'restore', form, '--data', target)
    assert.deepEqual((await succeed('workspaces', 'list', '--data', target)).data, [])
  })

  for (const database of kinds)
    it(`nobody writes to the source of a move (${database})`, onPostgres, async () => {
      const [source, target] = [await createDatabase(database), await createDatabase('postgresql')]
      const sourceFlags = flagsOf(source)
      const start = () => startProcess([...sourceFlags, ...source.flags.slice(2)])
      const run = (...argv: string[]) => runProcess('admin', ...argv, ...sourceFlags)
      const move = () => run('move', '--to', flagsOf(target)[1]!)
      try {
        await succeed('workspaces', 'create', '--name', 'Early', ...sourceFlags)
        if (database === 'postgresql') {
          // The move has seen no server, and waits to lock the others out.
          const [first] = await withStorage(source.direct, ({ db }) => listBackupTables(db))
          await whileLocked(source, `${first!.name} in row exclusive mode`, async (untilWaits, release) => {
            const moving = move()
            await untilWaits()
            const server = await start()
            await succeed('workspaces', 'create', '--name', 'Late', ...sourceFlags)
            release()
            const { code, said } = await moving
            assert.equal(code, 5, said)
            assert.match(said, /A server is using this PostgreSQL database/)
            await server.kill('SIGKILL')
          })
        }
        await whileLocked(target, 'workspaces in access share mode', async (untilWaits, release) => {
          const moving = move()
          await untilWaits()
          await assert.rejects(start(), /exited with 1: .*(is in use by|what locks its tables)/s)
          if (database === 'embedded') {
            const { code, said } = await run('workspaces', 'create', '--name', 'Late')
            assert.equal(code, 1, said)
            assert.match(said, /is in use by/)
          }
          release()
          const { code, said } = await moving
          assert.equal(code, 0, said)
        })
        const { data } = await succeed('workspaces', 'list', ...flagsOf(target))
        const late = database === 'postgresql' ? ['Late'] : []
        assert.deepEqual(
          data.map(({ name }: { name: string }) => name),
          ['Early', ...late],
        )
      } finally {
        await Promise.all([source.remove(), target.remove()])
      }
    })

  for (const schema of ['public', 'crm'])
    it(`moves to PostgreSQL and back, with the tables in the schema ${schema}`, onPostgres, () =>
      withDatabase(schema, async (url) => {
        const { tables } = await succeed('move', '--to', url, '--data', folder)
        assert.equal(tables.contacts, 200)
        const storage = await openStorage({ databaseUrl: url })
        await requireSameContent(storage)
        await requireKeyWorks(storage, 'postgresql')
        await fail(5, /A server is using/, 'move', '--to', url, '--database-url', url)
        await storage.close()
        await fail(2, /not empty/, 'move', '--to', url, '--data', folder)
        const [backFile, target] = [join(databases.home, `back-${schema}.gz`), databases.newFolder()]
        await succeed('backup', backFile, '--database-url', url)
        await succeed('restore', backFile, '--data', target)
        const restored = await databases.open(target)
        const { rows: sequence } = await sql<{ id: string }>`select last_value as id
        from contacts_id_seq`.execute(restored.db)
        assert.equal(sequence[0]!.id, '5001')
        await sql`select setval('contacts_id_seq', 5000)`.execute(restored.db)
        // Using the key changed it.
        await sql`update api_keys set last_used_at = null`.execute(restored.db)
        await requireSameContent(restored)
        await restored.close()
      }),
    )
})
