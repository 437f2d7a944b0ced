import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { request } from 'node:http'
import { after, before, describe, it } from 'node:test'
import { createChannel } from '../../storage/admin.ts'
import { createDatabase, databases, type TestDatabase, withStorage } from '../databases.ts'
import { createOwnerKey } from '../http/owner-key.ts'
import { type ServerProcess, startProcess } from '../process.ts'
import { waitUntil } from '../wait-until.ts'

type Answer = { status: number; headers: Record<string, unknown>; text: string; json: () => any }

/** Sends a request over a connection of its own, so that any of the processes may get it. */
const send = (url: string, method = 'GET', headers: Record<string, string> = {}, body?: unknown) =>
  new Promise<Answer>((resolve, reject) => {
    const text = body === undefined ? undefined : JSON.stringify(body)
    const type = text === undefined ? {} : { 'Content-Type': 'application/json' }
    const req = request(url, { method, agent: false, headers: { ...type, ...headers } }, (res) => {
      const chunks: Buffer[] = []
      res.on('data', (chunk: Buffer) => chunks.push(chunk))
      res.once('error', reject)
      res.once('end', () => {
        const all = Buffer.concat(chunks).toString()
        resolve({ status: res.statusCode!, headers: res.headers, text: all, json: () => JSON.parse(all) })
      })
    })
    req.once('error', reject).setTimeout(10_000, () => req.destroy(new Error('no answer')))
    req.end(text)
  })

const readParent = (pid: string): number =>
  Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ')[1])

/** The processes that serve, the oldest first. */
const listWorkers = (pid: number): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        return readParent(name) === pid
      } catch {
        return false
      }
    })
    .map(Number)
    .toSorted((a, b) => a - b)

const WRITE_LIMIT = 90

describe(
  'Several processes of one server',
  { skip: databases.length === 1 || process.platform !== 'linux' },
  () => {
    let database: TestDatabase
    let server: ServerProcess
    let headers: Record<string, string>
    let limited: Record<string, string>
    before(async () => {
      database = await createDatabase('postgresql')
      const key = await createOwnerKey(database.location)
      headers = { Authorization: `Bearer ${key}` }
      await withStorage(database.location, async ({ db }) => {
        const { id } = await db.selectFrom('workspaces').select('id').executeTakeFirstOrThrow()
        const channel = {
          type: 'chatapp',
          name: 'Main',
          identifier: '15550100001',
          provider_phone_number_id: '700000000000001',
          status: 'connected',
          is_default: true,
        } as const
        await createChannel(db, id, channel, new Date().toISOString())
      })
      limited = { Authorization: `Bearer ${await createOwnerKey(database.location)}` }
      server = await startProcess(['--processes', '2', ...database.flags], {
        WCRM_SECRET: 'a secret of several processes',
        WCRM_LIMIT_WRITE: String(WRITE_LIMIT),
      })
    })
    after(async () => {
      await database.remove()
    })

    const countListedGroups = async (): Promise<number> => {
      const { text } = await send(`${server.url}/metrics`)
      const [, count] = /^wcrm_calls_total\{operation="crm_list_groups",door="rest",code="ok"\} (\d+)$/m.exec(
        text,
      )!
      return Number(count)
    }

    it('all give the same answers, and count together', async () => {
      const created = await send(`${server.url}/v1/groups`, 'POST', headers, { name: 'A' })
      assert.equal(created.status, 200)
      const paths = ['/v1/groups', '/openapi.json', '/v1/me']
      for (const path of paths) {
        const answers = await Promise.all(
          Array.from({ length: 12 }, () => send(`${server.url}${path}`, 'GET', headers)),
        )
        assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200])
        if (path !== '/v1/me') assert.equal(new Set(answers.map(({ text }) => text)).size, 1)
      }
      assert.equal(await countListedGroups(), 12)
      assert.equal((await send(`${server.url}/readyz`)).status, 200)
    })

    it('a rate limit is exact', async () => {
      const create = (n: number) => send(`${server.url}/v1/groups`, 'POST', limited, { name: `Group ${n}` })
      const startedAt = performance.now()
      let granted = 0
      for (let n = 0; n < WRITE_LIMIT + 40; n += 10) {
        const answers = await Promise.all(Array.from({ length: 10 }, (_, i) => create(n + i)))
        granted += answers.filter(({ status }) => status === 200).length
      }
      const refilled = ((performance.now() - startedAt) / 60_000) * WRITE_LIMIT
      assert.ok(granted >= WRITE_LIMIT - 1, `${granted} were granted`)
      assert.ok(granted <= WRITE_LIMIT + refilled + 1, `${granted} were granted`)
    })

    it('streams of all processes see an event', async () => {
      const streams = await Promise.all(
        Array.from({ length: 6 }, () =>
          fetch(`${server.url}/v1/events?types=group.created`, {
            headers: { ...headers, Accept: 'text/event-stream' },
          }),
        ),
      )
      await send(`${server.url}/v1/groups`, 'POST', headers, { name: 'streamed' })
      for (const stream of streams) {
        let text = ''
        const decoder = new TextDecoder()
        for await (const chunk of stream.body!) {
          text += decoder.decode(chunk as Uint8Array, { stream: true })
          if (text.includes('"streamed"')) break
        }
        assert.match(text, /"streamed"/)
      }
    })

    it('another process takes over the work of one that dies; the port stays', async () => {
      const [leader, other] = listWorkers(server.pid)
      process.kill(leader!, 'SIGKILL')
      await waitUntil('the leader is gone', () => !listWorkers(server.pid).includes(leader!))
      // The provider's webhook stores an update, and only the process that leads applies it.
      const phone = '+15550100999'
      const say = async (): Promise<boolean> =>
        (await send(`${server.url}/sandbox/say`, 'POST', headers, { from: phone, text: 'Hello' })).status <
        300
      await waitUntil('it is said', () => say().catch(() => false))
      await waitUntil('it is found', async () => {
        const found = await send(`${server.url}/v1/conversations`, 'GET', headers)
        return found.status === 200 && found.json().data.length > 0
      })
      await waitUntil('it is ready', async () => (await send(`${server.url}/readyz`)).status === 200)
      const after = listWorkers(server.pid)
      assert.equal(after.length, 2)
      assert.ok(after.includes(other!) && !after.includes(leader!))
    })

    it('what a process counted that does not answer is not taken away', async () => {
      const [stopped] = listWorkers(server.pid)
      process.kill(stopped!, 'SIGSTOP')
      const counted: number[] = []
      try {
        // A connection may go to the one that is stopped.
        await waitUntil('one answers', async () => {
          counted.push(await Promise.any([1, 2, 3, 4, 5, 6].map(countListedGroups)).catch(() => 0))
          return counted.at(-1)! > 0
        })
      } finally {
        process.kill(stopped!, 'SIGCONT')
      }
      assert.equal(counted.at(-1), 12)
    })

    it('processes that end before they serve again are started once more', async () => {
      const ready = listWorkers(server.pid)
      const ended = new Set(ready)
      for (const pid of ready) process.kill(pid, 'SIGKILL')
      // One more each, which cannot serve yet.
      while (ended.size < 2 * ready.length) {
        await waitUntil('another is started', () => listWorkers(server.pid).some((pid) => !ended.has(pid)))
        for (const pid of listWorkers(server.pid).filter((each) => !ended.has(each))) {
          ended.add(pid)
          process.kill(pid, 'SIGKILL')
        }
      }
      await waitUntil('it is ready', async () => {
        const ready = await send(`${server.url}/readyz`).catch(() => undefined)
        return ready?.status === 200
      })
      assert.equal(listWorkers(server.pid).length, 2)
      // What they counted until the last look counts on.
      assert.equal(await countListedGroups(), 12)
    })

    it('a signal ends all of them, and what they still answer', async () => {
      const streams = await Promise.all(
        Array.from({ length: 4 }, () =>
          fetch(`${server.url}/v1/events`, { headers: { ...headers, Accept: 'text/event-stream' } }),
        ),
      )
      const [code] = await Promise.all([server.stop(), ...streams.map((stream) => stream.text())])
      assert.equal(code, 0)
      assert.deepEqual(listWorkers(server.pid), [])
    })

    it('the embedded database has one process', () => {
      const { status, stderr } = spawnSync(
        process.execPath,
        ['bin/wcrm.js', 'serve', '--processes', '2', '--port', '0'],
        { encoding: 'utf8', env: { PATH: process.env.PATH } },
      )
      assert.equal(status, 2)
      assert.match(stderr, /several processes need PostgreSQL: give --database-url/)
    })
  },
)
