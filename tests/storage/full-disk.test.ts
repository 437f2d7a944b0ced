import assert from 'node:assert/strict'
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { inDatabaseOf, inNamespaces } from '../namespaces.ts'
import { type ServerProcess, startProcess } from '../process.ts'
import { waitUntil } from '../wait-until.ts'

const disk = mkdtempSync(join(tmpdir(), 'wcrm-disk-'))
const mount = `mount -t tmpfs -o size=160m tmpfs ${disk}`
const wrapper = inNamespaces(['--mount'], mount)
const template = process.env.WCRM_TEST_TEMPLATE

const init = `${process.execPath} bin/wcrm.js admin init --workspace Full --owner Olga --json --data ${disk}/data`

/** Mounts the disk, makes a workspace in a prepared database on it, and runs the command that follows. */
const onDisk = (words: readonly string[]): string[] => [
  ...words,
  'sh',
  '-c',
  [
    mount,
    `mkdir -m 700 ${disk}/data`,
    ...(template ? [`cp -r ${template}/. ${disk}/data`] : []),
    `${init} > ${disk}.json`,
    'exec "$@"',
  ].join(' && '),
  'sh',
]

describe('A full disk', { skip: wrapper ? false : 'this user may not mount a small disk' }, () => {
  let server: ServerProcess
  /** The disk as the server sees it: others do not have it mounted. */
  let seen: string
  let key: string
  before(async () => {
    server = await startProcess(
      ['--data', join(disk, 'data')],
      { WCRM_LOG_LEVEL: 'silent' },
      onDisk(wrapper!),
    )
    seen = `/proc/${server.pid}/root${disk}`
    key = (JSON.parse(readFileSync(`${disk}.json`, 'utf8')) as { key: string }).key
  })
  after(async () => {
    await server?.kill('SIGKILL')
    rmSync(disk, { recursive: true, force: true })
    rmSync(`${disk}.json`, { force: true })
  })

  const call = async (path: string, body?: unknown): Promise<{ status: number; body: any }> => {
    const response = await fetch(`${server.url}${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    return { status: response.status, body: await response.json() }
  }
  const upsert = (name: string) => call('/v1/contacts', { phone: '+15550100001', name })
  const listNames = async () =>
    (await call('/v1/contacts')).body.data?.map((contact: { name: string }) => contact.name)

  const fill = (): void => {
    const file = openSync(join(seen, 'fill'), 'w')
    try {
      for (const bytes of [1024 * 1024, 4096])
        try {
          for (;;) writeSync(file, Buffer.alloc(bytes))
        } catch (error) {
          assert.equal((error as NodeJS.ErrnoException).code, 'ENOSPC')
        }
    } finally {
      closeSync(file)
    }
  }

  it('stops changes and nothing else, even when it stops the database', async () => {
    assert.equal((await upsert('Before')).status, 200)
    await waitUntil('the space is reserved', () => existsSync(join(seen, 'data', 'reserve')))

    // A transaction that began earlier writes on until the database cannot go on.
    await inDatabaseOf(join(seen, 'data'), async (sql) => {
      // Not by `sql.begin`: postgres.js would send a rollback to a connection that is closed, which ends the process.
      await sql.unsafe('begin')
      fill()
      const work = sql.unsafe(
        "select pg_logical_emit_message(true, 'x', repeat('y', 1000000)) from generate_series(1, 40)",
      )
      // The database ends as it fails: the error may not arrive before that.
      await assert.rejects(work, { code: /^(53100|CONNECTION_CLOSED)$/ })
    })

    await waitUntil('it reads', async () => (await call('/v1/contacts')).status === 200)
    assert.deepEqual(await listNames(), ['Before'])
    assert.ok(!existsSync(join(seen, 'data', 'reserve')), 'the database did not stop')
    const { status, body } = await upsert('Refused')
    assert.deepEqual([status, body.reason], [503, 'disk_full'])
    assert.match(body.detail, /Free some space/)
    assert.doesNotMatch(body.detail, /not known/)
    assert.equal((await call('/readyz')).body.reason, 'disk_full')
    assert.deepEqual(await listNames(), ['Before'])

    rmSync(join(seen, 'fill'))
    await waitUntil('it writes', async () => (await upsert('After')).status === 200)
    assert.deepEqual(await listNames(), ['After'])
  })
})
