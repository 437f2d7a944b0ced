import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { request } from 'node:http'
import { after, before, describe, it, type TestContext } from 'node:test'
import { createChannel } from '../../storage/workspace/admin.ts'
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

/** Whether a process is gone, or waits for whoever inherited it to notice. */
const hasEnded = (pid: number): boolean => {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.startsWith('Z')
  } catch {
    return true
  }
}

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

/** Adds a channel to the workspace, by which customers can write. */
const addChannel = (location: TestDatabase['location']): Promise<void> =>
  withStorage(location, async ({ db }) => {
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

/** Has a customer write, and waits until the conversation is there: only the process that leads applies the message. */
const converse = async (url: string, headers: Record<string, string>): Promise<void> => {
  const body = { from: '+15550100999', text: 'Hello' }
  const say = async (): Promise<boolean> =>
    (await send(`${url}/sandbox/say`, 'POST', headers, body)).status < 300
  await waitUntil('it is said', () => say().catch(() => false))
  await waitUntil('it is found', async () => {
    const found = await send(`${url}/v1/conversations`, 'GET', headers).catch(() => undefined)
    return found?.status === 200 && found.json().data.length > 0
  })
}

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
      await addChannel(database.location)
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
      await converse(server.url, headers)
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

describe(
  'A process of several that hangs',
  { skip: databases.length === 1 || process.platform !== 'linux', concurrency: true },
  () => {
    const startServer = async (t: TestContext) => {
      const database = await createDatabase('postgresql')
      t.after(() => database.remove())
      const headers = { Authorization: `Bearer ${await createOwnerKey(database.location)}` }
      await addChannel(database.location)
      const server = await startProcess(['--processes', '2', ...database.flags], {
        WCRM_SECRET: 'a secret of several processes',
      })
      t.after(() => server.kill('SIGKILL'))
      return { server, headers }
    }

    it('is killed, and another takes over its work', async (t) => {
      const { server, headers } = await startServer(t)
      const [leader] = listWorkers(server.pid)
      process.kill(leader!, 'SIGSTOP')
      await converse(server.url, headers)
      assert.ok(hasEnded(leader!))
      assert.match(
        server.log(),
        new RegExp(`"pid":${leader},"msg":"A server process does not respond; killing it`),
      )
      await waitUntil('it is ready', async () => {
        const ready = await send(`${server.url}/readyz`).catch(() => undefined)
        return ready?.status === 200
      })
      assert.equal(await server.stop(), 0)
    })

    it('does not outlive the others that are stopped', async (t) => {
      const { server } = await startServer(t)
      const workers = listWorkers(server.pid)
      process.kill(workers.at(-1)!, 'SIGSTOP')
      assert.equal(await server.stop(), 0)
      await waitUntil('all have ended', () => workers.every(hasEnded))
    })
  },
)
