import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { after, before, describe, it } from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import { sql } from 'kysely'
import postgres from 'postgres'
import { runCommandLine } from '../../cli/main.ts'
import { parsePhone } from '../../server/contacts/phone.ts'
import { createDemo } from '../../server/demo/demo.ts'
import { generateContacts } from '../../server/demo/generate.ts'
import { createPhone } from '../../server/demo/people.ts'
import { renderAdminManPage } from '../../scripts/man-admin.ts'
import { listBackupTables } from '../../storage/backup/schema.ts'
import type { Db } from '../../storage/database.ts'
import { migrate, openStorage, type Storage } from '../../storage/open.ts'
import { serveStorage } from '../servers.ts'

const home = mkdtempSync(join(tmpdir(), 'wcrm-admin-'))
const opened = new Set<Storage>()
after(async () => {
  // A test that failed leaves its database open, and its thread would keep the process alive.
  for (const storage of opened) await storage.close()
  rmSync(home, { recursive: true, force: true })
})

/** A folder for an embedded database, made from the prepared one where there is one. */
const newFolder = (): string => {
  const folder = mkdtempSync(join(home, 'data-'))
  const template = process.env.WCRM_TEST_TEMPLATE
  if (template) cpSync(template, folder, { recursive: true })
  return folder
}

const superuser = process.env.WCRM_TEST_POSTGRES_URL
const onPostgres = superuser ? {} : { skip: 'WCRM_TEST_POSTGRES_URL is not set' }

/** Gives the URL of a new database, which is gone afterwards. */
const withDatabase = async (work: (url: string) => Promise<void>): Promise<void> => {
  const name = `wcrm_${randomUUID().replaceAll('-', '')}`
  const admin = postgres(superuser!, { max: 1, onnotice: () => {} })
  await admin.unsafe(`create database ${name}`)
  try {
    await work(Object.assign(new URL(superuser!), { pathname: `/${name}` }).href)
  } finally {
    await admin.unsafe(`drop database ${name} with (force)`)
    await admin.end()
  }
}

const textOf = (stream: PassThrough): string => {
  const chunks: Buffer[] = []
  for (let chunk = stream.read() as Buffer | null; chunk !== null; chunk = stream.read() as Buffer | null)
    chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

const wcrm = async (...words: string[]): Promise<{ exit: number; out: string; err: string }> => {
  const stdin = new PassThrough(),
    stdout = new PassThrough(),
    stderr = new PassThrough()
  const exit = await runCommandLine(['admin', ...words], { stdin, stdout, stderr, env: {} })
  return { exit, out: textOf(stdout), err: textOf(stderr) }
}

/** Runs a command that must be done, and gives what it printed as JSON. */
const done = async (...words: string[]): Promise<any> => {
  const { exit, out, err } = await wcrm(...words, '--json')
  assert.equal(exit, 0, err)
  return JSON.parse(out)
}

/** Runs a command that must be refused: nothing on stdout, the problem on stderr. */
const refused = async (exit: number, pattern: RegExp, ...words: string[]): Promise<void> => {
  const answer = await wcrm(...words, '--json')
  assert.equal(answer.exit, exit, answer.err)
  assert.equal(answer.out, '')
  assert.match((JSON.parse(answer.err) as { detail: string }).detail, pattern)
}

const open = async (folder: string): Promise<Storage> => {
  const storage = await openStorage({ dataDir: folder }, { noTimeout: true })
  const tracked: Storage = {
    ...storage,
    close: async () => {
      if (opened.delete(tracked)) await storage.close()
    },
  }
  opened.add(tracked)
  await migrate(storage.db)
  return tracked
}

describe('wcrm admin', () => {
  const folder = newFolder()
  const at = ['--data', folder]
  // An owner of the folder, as a running server is: opening it for each command would take a second.
  before(async () => {
    await open(folder)
  })

  it('creates and updates workspaces, teams, staff and channels', async () => {
    await refused(3, /no workspace yet/, 'staff', 'list', ...at)
    const workspace = await done(
      'workspaces',
      'create',
      '--name',
      'Acme',
      '--timezone',
      'europe/berlin',
      '--contact-limit',
      '10',
      ...at,
    )
    assert.deepEqual(
      { ...workspace, created_at: '' },
      {
        id: '1',
        name: 'Acme',
        timezone: 'Europe/Berlin',
        features: ['api_access'],
        contact_limit: 10,
        template_limit: null,
        created_at: '',
      },
    )
    assert.deepEqual(await done('workspaces', 'update', '--features', '', '--contact-limit', 'none', ...at), {
      ...workspace,
      features: [],
      contact_limit: null,
    })
    assert.deepEqual(await done('teams', 'create', '--name', 'Support', ...at), {
      id: '1',
      name: 'Support',
      staff_ids: [],
    })
    const channel = await done(
      'channels',
      'create',
      '--type',
      'chatapp',
      '--name',
      'Line',
      '--identifier',
      '+1 555 010 0001',
      '--account',
      '77:Main',
      '--default',
      ...at,
    )
    assert.deepEqual(
      [channel.identifier, channel.account_id, channel.account_name, channel.is_default, channel.status],
      ['15550100001', '77', 'Main', true, 'connected'],
    )
    const second = await done(
      'channels',
      'create',
      '--type',
      'web',
      '--name',
      'Site',
      '--identifier',
      'acme.example',
      '--status',
      'unknown',
      '--default',
      ...at,
    )
    assert.deepEqual(
      (await done('channels', 'list', ...at)).data.map((c: { is_default: boolean }) => c.is_default),
      [false, true],
    )
    const staff = await done(
      'staff',
      'create',
      '--name',
      'Zoë',
      '--role',
      'agent',
      '--hide-phone-numbers',
      '--teams',
      '1',
      '--channels',
      `${channel.id},${second.id}`,
      ...at,
    )
    assert.deepEqual(staff, {
      id: '1',
      name: 'Zoë',
      role: 'agent',
      enabled: true,
      hide_phone_numbers: true,
      reports: false,
      channel_ids: ['1', '2'],
      team_ids: ['1'],
    })
    assert.deepEqual((await done('teams', 'list', ...at)).data, [
      { id: '1', name: 'Support', staff_ids: ['1'] },
    ])
    assert.deepEqual(
      await done(
        'staff',
        'update',
        '1',
        '--no-hide-phone-numbers',
        '--disabled',
        '--channels',
        'all',
        '--teams',
        '',
        ...at,
      ),
      { ...staff, enabled: false, hide_phone_numbers: false, channel_ids: null, team_ids: [] },
    )
  })

  it('creates API keys and shows them once', async () => {
    const made = await done(
      'keys',
      'create',
      '--staff',
      '1',
      '--scopes',
      'crm:write,mcp:read',
      '--test',
      '--agent',
      '--expires',
      '2027-01-31',
      ...at,
    )
    assert.match(made.key, /^wc_test_[0-9A-Za-z]{40}$/)
    assert.deepEqual(
      [made.scopes, made.agent, made.expires_at],
      [['mcp:read', 'crm:write'], true, '2027-01-31T23:00:00.000Z'],
    )
    const { key: _, ...kept } = made
    assert.deepEqual((await done('keys', 'list', ...at)).data, [kept])
    assert.equal((await done('keys', 'create', '--staff', '1', '--scopes', 'all', ...at)).scopes.length, 5)
  })

  it('a usage error names the flag', async () => {
    await refused(
      2,
      /--timezone does not accept "Mars\/Olympus"/,
      'workspaces',
      'create',
      '--name',
      'X',
      '--timezone',
      'Mars/Olympus',
      ...at,
    )
    await refused(
      2,
      /--role does not accept "boss"/,
      'staff',
      'create',
      '--name',
      'X',
      '--role',
      'boss',
      ...at,
    )
    await refused(
      2,
      /--scopes does not accept "crm:read"/,
      'keys',
      'create',
      '--staff',
      '1',
      '--scopes',
      'crm:read',
      ...at,
    )
    await refused(
      2,
      /--expires must be a date/,
      'keys',
      'create',
      '--staff',
      '1',
      '--scopes',
      'all',
      '--expires',
      'tomorrow',
      ...at,
    )
    await refused(2, /--staff must be an id/, 'keys', 'create', '--staff', 'Zoë', '--scopes', 'all', ...at)
    await refused(2, /required option '--scopes/, 'keys', 'create', '--staff', '1', ...at)
    await refused(2, /unknown option '--colour'/, 'keys', 'list', '--colour', ...at)
    await refused(2, /nothing to change/, 'staff', 'update', '1', ...at)
    await refused(
      3,
      /no team 9/,
      'staff',
      'create',
      '--name',
      'X',
      '--role',
      'agent',
      '--teams',
      '1,9',
      ...at,
    )
    await refused(3, /no staff member 9/, 'staff', 'update', '9', '--reports', ...at)
    await refused(3, /no key 99/, 'keys', 'revoke', '99', ...at)
    await refused(2, /mutually exclusive/, 'keys', 'list', '--database-url', 'postgres://x', ...at)
    assert.equal((await wcrm('staff')).exit, 2)
  })

  it('workspaces are isolated', async () => {
    const other = await done('workspaces', 'create', '--name', 'Other', ...at)
    await refused(2, /There are 2 workspaces/, 'staff', 'list', ...at)
    await refused(3, /no workspace 9/, 'staff', 'list', '--workspace', '9', ...at)
    assert.deepEqual((await done('staff', 'list', '--workspace', other.id, ...at)).data, [])
    await refused(
      3,
      /no staff member 1/,
      'keys',
      'create',
      '--staff',
      '1',
      '--scopes',
      'all',
      '--workspace',
      other.id,
      ...at,
    )
    await refused(
      3,
      /no channel 1/,
      'channels',
      'update',
      '1',
      '--name',
      'Stolen',
      '--workspace',
      other.id,
      ...at,
    )
  })

  it('prints tables and records without --json; help lists all commands', async () => {
    assert.match((await wcrm('teams', 'list', '--workspace', '1', ...at)).out, /^1\tSupport\t/)
    assert.match(
      (await wcrm('staff', 'update', '1', '--enabled', '--workspace', '1', ...at)).out,
      /^id: 1\nname: Zoë\n/,
    )
    const help = (await wcrm('--help')).out
    for (const command of [
      'workspaces create --name',
      'staff update <id>',
      'keys revoke <id>',
      'backup <file>',
      'move --to <url>',
    ])
      assert.ok(help.includes(`wcrm admin ${command}`), command)
  })

  it('the man page is up to date', () => {
    assert.equal(
      readFileSync(new URL('../../man/wcrm-admin.1', import.meta.url), 'utf8'),
      renderAdminManPage(),
    )
  })
})

it('works beside a running server on the embedded database', async () => {
  const folder = newFolder()
  const storage = await open(folder)
  const server = await serveStorage(storage, 'embedded')
  const at = ['--data', folder]
  const status = async (key: string) =>
    (await fetch(`${server.url}/v1/me`, { headers: { Authorization: `Bearer ${key}` } })).status
  try {
    await done('workspaces', 'create', '--name', 'Acme', ...at)
    await done('staff', 'create', '--name', 'Ann', '--role', 'owner', ...at)
    const { id, key } = await done('keys', 'create', '--staff', '1', '--scopes', 'all', ...at)
    assert.equal(await status(key), 200)
    const file = join(home, 'beside.gz')
    assert.equal((await done('backup', file, ...at)).tables.api_keys, 1)
    await done('keys', 'revoke', id, ...at)
    const revoked = performance.now()
    while ((await status(key)) === 200)
      assert.ok(performance.now() - revoked < 1000, 'the key works a second after it was revoked')
    await refused(5, /A server is running on/, 'restore', file, ...at)
    await refused(5, /A server is running on/, 'move', '--to', 'postgres://127.0.0.1:1/none', ...at)
  } finally {
    await server.close()
    await storage.close()
  }
})

/** Rows that a backup could lose something of, beside the lifelike ones. */
const plantOddities = async (db: Db, workspaceId: string): Promise<void> => {
  await sql`update contact_facts set attrs = attrs || '{"991": 12345678901234567890.123456789000, "992": null, "993": 1e-30, "994": "\\u0001 \\" \\\\ 🦊"}'::jsonb where contact_id = 1`.execute(
    db,
  )
  await sql`update contacts set name = ${'tab\t line\r\n quote" back\\slash {braces} \u2028 \u{1f9d1}\u200d\u{1f680}'}, last_activity_at = '0001-01-01 00:00:00.001+00 BC' where id = 2`.execute(
    db,
  )
  await sql`update staff set name = '', channel_ids = '{}' where id = 3`.execute(db)
  await sql`update channels set name = null, identifier = 'NULL' where id = 3`.execute(db)
  const bytes = Buffer.from(Array.from({ length: 256 }, (_, i) => i))
  await sql`
    insert into idempotency (workspace_id, staff_id, key, operation, fingerprint, state, intent, lease_until, created_at, expires_at)
    values (${workspaceId}, 1, 'a', 'x', ${bytes}, 'running', 'null', '2026-01-01 00:00:00.123456+00', 'infinity', '-infinity'), (${workspaceId}, 1, 'b', 'x', '', 'running', null, null, now(), now())`.execute(
    db,
  )
  await sql`insert into settings values ('secret_fingerprint', 'none of ours')`.execute(db)
  await sql`select setval('contacts_id_seq', 5000)`.execute(db)
}

/**
 * Events whose order by transaction is not that of their ids, from a cluster that has given out many
 * transaction ids.
 */
const plantEvents = async (db: Db, workspaceId: string): Promise<void> => {
  const rows = Array.from({ length: 3000 }, (_, i) => ({
    id: `evt_${String((i * 7919) % 3000).padStart(4, '0')}`,
    xid: String(2_000_000_000_000 + Math.floor(i / 2)),
    w: i % 3 === 0 ? '77' : workspaceId,
  }))
  await sql`
    insert into events (workspace_id, id, type, xid, occurred_at, data)
    select w, id, 'contact.created/1', xid::xid8, now(), '{"n": 1.50}' from unnest(${rows.map((r) => r.w)}::bigint[], ${rows.map((r) => r.id)}::text[], ${rows.map((r) => r.xid)}::text[]) as u (w, id, xid)`.execute(
    db,
  )
}

/** Every row of every kept table, as the database's own text; transaction ids are left out. */
const allRows = async (db: Db): Promise<Record<string, string[]>> => {
  const rows: Record<string, string[]> = {}
  for (const { name, columns } of await listBackupTables(db)) {
    const shown = sql.join(columns.filter((c) => c.type !== 'xid8').map((c) => sql.ref(c.name)))
    rows[name] = (
      await sql<{ row: string }>`select row(${shown})::text as row from ${sql.table(name)}`.execute(db)
    ).rows
      .map((r) => r.row)
      .sort()
  }
  return rows
}

const eventOrder = async (db: Db): Promise<string[]> =>
  (
    await sql<{
      id: string
    }>`select workspace_id || ' ' || id as id from events e order by workspace_id, e.xid, e.id`.execute(db)
  ).rows.map((r) => r.id)

describe('admin: backup, restore and move', () => {
  const folder = newFolder()
  const file = join(home, 'whole.gz')
  let rows: Record<string, string[]>
  let order: string[]
  let apiKey: string

  before(async () => {
    const storage = await open(folder)
    const demo = (await createDemo(storage.db, '2026-11-01T10:00:00.000Z', 'https://crm.example.com'))!
    apiKey = demo.apiKey
    await plantOddities(storage.db, demo.workspaceId)
    await plantEvents(storage.db, demo.workspaceId)
    rows = await allRows(storage.db)
    order = await eventOrder(storage.db)
    await storage.close()
    const { tables, bytes } = await done('backup', file, '--data', folder)
    assert.deepEqual(
      tables,
      Object.fromEntries(Object.entries(rows).map(([name, found]) => [name, found.length])),
    )
    assert.equal(bytes, statSync(file).size)
    assert.equal(statSync(file).mode & 0o777, 0o600)
  })

  /** What must hold of a database that was filled from the one above. */
  const requireSame = async ({ db }: Storage): Promise<void> => {
    const found = await allRows(db)
    assert.deepEqual(Object.keys(found), Object.keys(rows))
    // One row at a time: a difference of whole tables fills the screen.
    for (const [table, wanted] of Object.entries(rows)) {
      assert.equal(found[table]!.length, wanted.length, table)
      for (const [i, row] of wanted.entries()) assert.equal(found[table]![i], row)
    }
    assert.ok((await eventOrder(db)).join() === order.join(), 'events are in the same order')
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
    const target = newFolder()
    const { exit, err } = await wcrm('restore', file, '--data', target)
    assert.equal(exit, 0, err)
    assert.match(err, /needs the secret/)
    const storage = await open(target)
    await requireSame(storage)
    await requireKeyWorks(storage, 'embedded')
    await storage.close()
    await refused(2, /not empty/, 'restore', file, '--data', target)
    await done('backup', join(home, 'again.gz'), '--data', target)
  })

  it('restore refuses a damaged file and changes nothing', async () => {
    const target = newFolder()
    const bytes = readFileSync(file)
    const lines = gunzipSync(bytes).toString().split('\n')
    const write = (name: string, content: Buffer): string => {
      writeFileSync(join(home, name), content)
      return join(home, name)
    }
    const packed = (name: string, some: readonly string[]) => write(name, gzipSync(some.join('\n')))
    await refused(
      2,
      /truncated/,
      'restore',
      write('cut.gz', bytes.subarray(0, bytes.length / 2)),
      '--data',
      target,
    )
    await refused(
      2,
      /the address is incomplete/,
      'restore',
      packed('endless.gz', lines.slice(0, -2)),
      '--data',
      target,
    )
    await refused(
      2,
      /checksum/,
      'restore',
      packed(
        'changed.gz',
        lines.map((line) => line.replace('Olivia', 'Oliver')),
      ),
      '--data',
      target,
    )
    await refused(
      2,
      /checksum/,
      'restore',
      packed(
        'fewer.gz',
        lines.filter((line) => !line.includes('Olivia')),
      ),
      '--data',
      target,
    )
    await refused(
      2,
      /another schema .*0000-older is not known here/,
      'restore',
      packed('older.gz', [lines[0]!.replace('0001-spine', '0000-older'), ...lines.slice(1)]),
      '--data',
      target,
    )
    await refused(
      2,
      /another form of the table/,
      'restore',
      packed(
        'form.gz',
        lines.map((line) => line.replace('"name":"emoji"', '"name":"icon"')),
      ),
      '--data',
      target,
    )
    await refused(2, /not a backup/, 'restore', packed('other.gz', ['hello']), '--data', target)
    await refused(
      2,
      /cannot be decompressed/,
      'restore',
      write('plain.gz', Buffer.from('hello')),
      '--data',
      target,
    )
    await refused(3, /does not exist/, 'restore', join(home, 'missing.gz'), '--data', target)
    assert.deepEqual((await done('workspaces', 'list', '--data', target)).data, [])
    await refused(3, /no database/, 'backup', join(home, 'none.gz'), '--data', join(home, 'nothing'))
    assert.ok(!existsSync(join(home, 'none.gz')))
  })

  it('moves to PostgreSQL and back', onPostgres, () =>
    withDatabase(async (url) => {
      const { tables } = await done('move', '--to', url, '--data', folder)
      assert.equal(tables.contacts, 200)
      const storage = await openStorage({ databaseUrl: url })
      await requireSame(storage)
      await requireKeyWorks(storage, 'postgresql')
      await refused(5, /A server is using/, 'move', '--to', url, '--database-url', url)
      await storage.close()
      await refused(2, /not empty/, 'move', '--to', url, '--data', folder)
      const [back, target] = [join(home, 'back.gz'), newFolder()]
      await done('backup', back, '--database-url', url)
      await done('restore', back, '--data', target)
      const again = await open(target)
      const { rows: last } = await sql<{ id: string }>`select last_value as id from contacts_id_seq`.execute(
        again.db,
      )
      assert.equal(last[0]!.id, '5001')
      await sql`select setval('contacts_id_seq', 5000)`.execute(again.db)
      // The key was used meanwhile.
      await sql`update api_keys set last_used_at = null`.execute(again.db)
      await requireSame(again)
      await again.close()
    }),
  )
})

describe('admin demo: generated contacts', () => {
  it('phones are valid and unique', () => {
    const phones = new Set<string>()
    for (const n of [...Array.from({ length: 3000 }, (_, i) => i), 999_999, 4_999_999]) {
      const { phone } = createPhone(n)
      assert.deepEqual(parsePhone(phone), { digits: phone })
      assert.ok(!phones.has(phone), phone)
      phones.add(phone)
    }
  })

  it('the same seed generates the same contacts, and counters match', async () => {
    const storage = await open(newFolder())
    const now = '2026-11-01T10:00:00.000Z'
    const people = async (name: string, seed: number) => {
      const [workspace] = (
        await sql<{
          id: string
        }>`insert into workspaces (name, created_at) values (${name}, ${now}) returning id`.execute(
          storage.db,
        )
      ).rows
      await generateContacts(storage.db, workspace!.id, { contacts: 300, seed, now })
      const { rows } = await sql<{ row: string }>`
        select row(name, phone, email, created_at, updated_at, last_activity_at)::text as row from contacts where workspace_id = ${workspace!.id} order by id`.execute(
        storage.db,
      )
      return { id: workspace!.id, rows }
    }
    const [one, two, three] = [await people('one', 1), await people('two', 1), await people('three', 2)]
    assert.deepEqual(one.rows, two.rows)
    assert.notDeepEqual(one.rows, three.rows)
    assert.equal((await generateContacts(storage.db, one.id, { contacts: 50, seed: 1, now })).created, 50)
    const { rows: wrong } = await sql`
      select subject from (
        select workspace_id, 'contacts' as subject, count(*) as n from contacts group by 1
        union all select workspace_id, 'tag:' || tag_id, count(*) from contact_tags group by 1, 2
        union all select workspace_id, 'group:' || group_id, count(*) from contact_groups group by 1, 2) as real
      full join (select workspace_id, subject, sum(n) as n from counters group by 1, 2) as kept using (workspace_id, subject)
      where real.n is distinct from kept.n`.execute(storage.db)
    assert.equal(wrong.length, 0)
    await storage.close()
  })

  it('the demo workspace has contacts', async () => {
    const storage = await open(newFolder())
    const { workspaceId } = (await createDemo(storage.db, '2026-11-01T10:00:00.000Z'))!
    const one = async (query: ReturnType<typeof sql<{ n: string }>>) =>
      Number((await query.execute(storage.db)).rows[0]!.n)
    assert.equal(
      await one(
        sql`select count(distinct type) as n from custom_fields where workspace_id = ${workspaceId} and used`,
      ),
      16,
    )
    assert.equal(await one(sql`select count(distinct role) as n from staff`), 4)
    assert.ok(
      (await one(sql`select count(*) as n from channels where type = 'chatapp' and status = 'connected'`)) >=
        2,
    )
    assert.equal(
      await one(
        sql`select max(n) as n from (select count(*) as n from conversations group by contact_id) as c`,
      ),
      12,
    )
    assert.equal(
      await one(
        sql`select count(*) as n from contacts where updated_at < created_at or created_at > '2026-11-01T10:00:00Z' or last_activity_at > '2026-11-01T10:00:00Z'`,
      ),
      0,
    )
    assert.ok((await one(sql`select count(*) as n from contacts where starred`)) > 0)
    assert.ok((await one(sql`select count(*) as n from contact_attributes where bool_value`)) > 0)
    assert.ok((await one(sql`select sum(unread_count) as n from conversations where state = 'open'`)) > 0)
    assert.equal(await one(sql`select sum(unread_count) as n from conversations where state <> 'open'`), 0)
    assert.equal(
      await one(
        sql`select count(*) as n from saved_filters f join staff s on s.id = f.owner_staff_id and s.role = 'manager'`,
      ),
      3,
    )
    const statuses = async (of: string) =>
      (
        await sql<{ status: string }>`select distinct status from ${sql.table(of)} order by 1`.execute(
          storage.db,
        )
      ).rows.map((row) => row.status)
    assert.deepEqual(await statuses('broadcasts'), ['cancelled', 'completed', 'running', 'scheduled'])
    assert.deepEqual(await statuses('broadcast_recipients'), [
      'delivered',
      'failed',
      'pending',
      'read',
      'sent',
    ])
    assert.ok((await one(sql`select count(*) as n from broadcast_recipients where responded`)) > 0)
    // A reply is activity, of the contact and of a conversation, and nothing happens before the contact,
    // the broadcast or the message, or in the future.
    assert.equal(
      await one(sql`
      select count(*) as n from contacts c left join (select contact_id, max(last_activity_at) as at from conversations group by 1) as v on v.contact_id = c.id
      where c.last_activity_at is distinct from v.at`),
      0,
    )
    assert.equal(
      await one(sql`
      select count(*) as n from broadcast_recipients r join broadcasts b on b.id = r.broadcast_id join contacts c on c.id = r.contact_id
      where r.sent_at < b.started_at or r.sent_at < c.created_at or r.delivered_at < r.sent_at or r.read_at < r.delivered_at or r.responded_at < r.read_at or r.responded_at > c.last_activity_at
        or greatest(r.sent_at, r.delivered_at, r.read_at, r.failed_at) > '2026-11-01T10:00:00Z' or c.dnd or r.responded <> (r.responded_at is not null)`),
      0,
    )
    await storage.close()
  })
})
