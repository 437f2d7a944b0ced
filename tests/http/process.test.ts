import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { sql } from 'kysely'
import { errors } from '../../catalog/errors.ts'
import { createDatabase, databases, type TestDatabase, withStorage } from '../databases.ts'
import { type ServerProcess, startCommand, startProcess } from '../process.ts'
import { createOwnerKey, readMemory } from './owner-key.ts'
import { exchange } from './raw-socket.ts'
import { waitUntil } from '../wait-until.ts'

const MIB = 1024 * 1024
const METRICS_TOKEN = 'metrics-of-this-test'

/** Waits until a URL answers with this status. */
const waitForStatus = (url: string, status: number): Promise<void> =>
  waitUntil(`${url} answers ${status}`, async () => (await fetch(url)).status === status)

describe('HTTP: a server process that is stopped', () => {
  for (const count of [1, 2].slice(0, databases.length))
    it(`is not ready first, and goes on answering for the grace (${count} of its processes)`, async () => {
      const database = await createDatabase(count === 1 ? 'embedded' : 'postgresql')
      try {
        const flags = ['--processes', String(count), ...database.flags]
        const server = await startProcess(flags, { WCRM_SHUTDOWN_GRACE: '600', WCRM_SECRET: 'x'.repeat(32) })
        assert.equal((await fetch(`${server.url}/readyz`)).status, 200)
        const stopped = server.stop()
        await waitForStatus(`${server.url}/readyz`, 503)
        assert.equal((await fetch(`${server.url}/healthz`)).status, 200)
        assert.equal((await fetch(`${server.url}/v1/me`)).status, 401)
        // A second signal ends the grace.
        void server.stop()
        assert.equal(await stopped, 0)
      } finally {
        await database.remove()
      }
    })

  it('writes the reads of an agent that were in flight', async () => {
    const database = await createDatabase('embedded')
    try {
      const key = await createOwnerKey(database.location)
      await withStorage(database.location, ({ db }) => sql`update api_keys set agent = true`.execute(db))
      const server = await startProcess(database.flags)
      const post = (name: string, length: number, body: string): string =>
        `POST /v1/ops/${name} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${length}\r\n\r\n${body}`
      const { hostname, port } = new URL(server.url)
      const socket = connect({ host: hostname, port: Number(port) })
      let received = ''
      socket.setEncoding('latin1').on('data', (text: string) => {
        received += text
      })
      const upsert = '{"phone":"+15550100042"}'
      socket.write(post('crm_upsert_contact', upsert.length, upsert) + post('crm_search_contacts', 2, '{'))
      while (!received.includes('"phone"')) await once(socket, 'data')
      const stopped = server.stop()
      const closed = once(socket, 'close')
      await waitForStatus(`${server.url}/healthz`, 503)
      socket.write('}')
      assert.equal(await stopped, 0)
      await closed
      assert.match(received, /^HTTP\/1\.1 200 [^]*HTTP\/1\.1 200 /)
      const { rows } = await withStorage(database.location, ({ db }) =>
        sql`select operation from audit_log where operation = 'crm_search_contacts'`.execute(db),
      )
      assert.equal(rows.length, 1)
    } finally {
      await database.remove()
    }
  })
})

/** A server as people run it, since what listens and stops there is not what other tests start. */
describe('HTTP: a server process', () => {
  let database: TestDatabase
  let key: string
  let server: ServerProcess & { said: { metrics_url: string } }
  before(async () => {
    database = await createDatabase('embedded')
    key = await createOwnerKey(database.location)
    server = await startCommand<{ metrics_url: string }>(
      ['serve', '--port', '0', '--json', '--no-demo', ...database.flags],
      { WCRM_METRICS_LISTEN: '127.0.0.1:0', WCRM_METRICS_TOKEN: METRICS_TOKEN },
    )
  })
  after(async () => {
    assert.equal(await server.stop(), 0)
    await database.remove()
  })

  const head = (path: string, bearer: string, ...headers: string[]): string =>
    [
      `POST ${path} HTTP/1.1`,
      'Host: localhost',
      `Authorization: Bearer ${bearer}`,
      'Content-Type: application/json',
      ...headers,
      '',
      '',
    ].join('\r\n')

  it('has every metric of the dashboard and of the alert rules, and every error code that they name', async () => {
    const authorization = { Authorization: `Bearer ${METRICS_TOKEN}` }
    const shown = await (await fetch(server.said.metrics_url, { headers: authorization })).text()
    const types = new Map([...shown.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [name, type]))
    for (const file of ['dashboard.json', 'rules.yaml']) {
      const text = await readFile(new URL(`../../deploy/monitoring/${file}`, import.meta.url), 'utf8')
      const names = new Set(text.match(/\b(?:wcrm|nodejs|process)_\w+/g))
      assert.ok(names.size > 3, file)
      for (const name of names) {
        const histogram = name.replace(/_(?:bucket|sum|count)$/, '')
        assert.ok(types.has(name) || types.get(histogram) === 'histogram', `${file}: ${name}`)
      }
      for (const [, codes] of text.matchAll(/\bcode=~?\\?"([^"\\]+)/g))
        for (const code of codes!.split('|')) assert.ok(code in errors, `${file}: ${code}`)
    }
  })

  it('serves its metrics on their own port alone, with the token', async () => {
    const authorization = { Authorization: `Bearer ${METRICS_TOKEN}` }
    const metrics = await fetch(server.said.metrics_url, { headers: authorization })
    assert.match(await metrics.text(), /^# HELP/m)
    assert.equal((await fetch(server.said.metrics_url)).status, 401)
    for (const [path, status] of [
      ['/healthz', 200],
      ['/readyz', 200],
      ['/v1/me', 404],
    ] as const)
      assert.equal((await fetch(server.said.metrics_url.replace('/metrics', path))).status, status, path)
    assert.equal((await fetch(`${server.url}/metrics`, { headers: authorization })).status, 404)
  })

  it('a second one whose port for metrics is taken says so, and ends', async () => {
    const other = await createDatabase('embedded')
    const { port } = new URL(server.said.metrics_url)
    try {
      await assert.rejects(
        startProcess(other.flags, { WCRM_METRICS_LISTEN: port }),
        new RegExp(`exited with 1: .*port ${port} is in use; each server .*\\(WCRM_METRICS_LISTEN\\)`),
      )
    } finally {
      await other.remove()
    }
  })

  it('outlives 26 MB in chunks on /mcp, read to the end or aborted', async () => {
    const piece = `${MIB.toString(16)}\r\n${' '.repeat(MIB)}\r\n`
    const bytes = head('/mcp', key, 'Transfer-Encoding: chunked') + piece.repeat(26) + '0\r\n\r\n'
    assert.match((await exchange(server.url, bytes, { quietMs: 5000 })).text, /^HTTP\/1\.1 413 /)
    await exchange(server.url, bytes, { abortAfter: 25.5 * MIB })
    assert.equal((await fetch(`${server.url}/healthz`)).status, 200)
  })

  it('keeps its memory while 60 clients without a key send 24 MiB each', async () => {
    const bytes = Buffer.concat([
      Buffer.from(head('/v1/contacts/import', 'wc_live_none', `Content-Length: ${24 * MIB}`)),
      Buffer.alloc(24 * MIB, ' '),
    ])
    const start = readMemory(server.pid)
    let highest = 0
    const watch = setInterval(() => {
      highest = Math.max(highest, readMemory(server.pid))
    }, 20)
    const replies = await Promise.all(
      Array.from({ length: 60 }, () => exchange(server.url, bytes, { enough: /\r\n\r\n/, quietMs: 9000 })),
    )
    clearInterval(watch)
    // The first failures get 401, those after the limit of failures 429.
    for (const { text } of replies) assert.match(text, /^HTTP\/1\.1 4(01|29) /)
    // Bodies that are kept would be 1,440 MB. How much garbage there is depends on the machine (16 to 82 MB seen).
    const growth = Math.round((highest - start) / MIB)
    assert.ok(growth < (60 * 24) / 8, `grew by ${growth} MB`)
  })
})
