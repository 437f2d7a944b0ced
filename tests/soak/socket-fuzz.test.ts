import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { describe, it } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { createDatabase, databases } from '../databases.ts'
import { createOwnerKey, readMemory } from '../http/owner-key.ts'
import { exchange } from '../http/raw-socket.ts'
import { fuzzSockets } from '../http/socket-fuzz.ts'
import { runs } from '../level.ts'
import { startProcess } from '../process.ts'

/** What a server may keep that it had not before: compiled code, pages of the heap. */
const MAX_GROWTH_BYTES = 96 * 1024 * 1024

/** Clients that begin and never go on: a request line, headers, a body. */
const stalled = (key: string): string[] => [
  '',
  'GET /v1/me HT',
  'GET /v1/me HTTP/1.1\r\nHost: localhost\r\n',
  `POST /v1/groups HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\n` +
    'Content-Type: application/json\r\nContent-Length: 50\r\n\r\n{"name"',
  `POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\n` +
    'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{',
  `GET /v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\n` +
    'Accept: text/event-stream\r\n\r\n',
]

for (const database of databases) {
  describe(`HTTP: 10,000 broken requests (${database})`, () => {
    it('the process lives, answers no 5xx, and its memory returns to near its start', async () => {
      const testDatabase = await createDatabase(database)
      const key = await createOwnerKey(testDatabase.location)
      const server = await startProcess(testDatabase.flags)
      try {
        const isAlive = async () => (await fetch(`${server.url}/healthz`)).status === 200
        const send = (count: number, seed: number) => fuzzSockets(server.url, key, { count, seed, isAlive })
        await send(runs(200, 1000), 1)
        const before = readMemory(server.pid)
        await send(runs(500, 10_000), 2)
        await pause(3000)
        const growth = readMemory(server.pid) - before
        assert.ok(growth < MAX_GROWTH_BYTES, `grew by ${Math.round(growth / 1024 / 1024)} MB`)
      } finally {
        await server.kill('SIGKILL')
        await testDatabase.remove()
      }
    })

    it('SIGTERM ends the process within 30 s, whatever its clients do', async () => {
      const testDatabase = await createDatabase(database)
      const key = await createOwnerKey(testDatabase.location)
      const server = await startProcess(testDatabase.flags)
      try {
        const { hostname, port } = new URL(server.url)
        const sockets = stalled(key).map((bytes) => {
          const socket = connect(Number(port), hostname, () => socket.write(bytes))
          return socket.on('error', () => {})
        })
        const load = Array.from({ length: 50 }, () =>
          fetch(`${server.url}/v1/contacts`, { headers: { Authorization: `Bearer ${key}` } }).catch(() => {}),
        )
        await pause(200)
        const startedAt = performance.now()
        assert.equal(await server.stop(), 0)
        assert.ok(performance.now() - startedAt < 30_000)
        await Promise.all(load)
        for (const socket of sockets) socket.destroy()
      } finally {
        await testDatabase.remove()
      }
    })
  })
}

describe('HTTP: headers that never end', () => {
  it('are given up after 15 seconds', async () => {
    const testDatabase = await createDatabase('embedded')
    const server = await startProcess(testDatabase.flags)
    try {
      const startedAt = performance.now()
      const slow = await exchange(server.url, 'GET /v1/me HTTP/1.1\r\nHost: localhost\r\n', {
        quietMs: 60_000,
      })
      const seconds = (performance.now() - startedAt) / 1000
      assert.match(slow.text, /^HTTP\/1\.1 408 /)
      // Looked for once a second.
      assert.ok(seconds > 14.5 && seconds < 18, `${seconds} s`)
    } finally {
      await server.stop()
      await testDatabase.remove()
    }
  })
})
