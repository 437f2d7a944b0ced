import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { it } from 'node:test'
import { catalog, type Operation } from '../../catalog/index.ts'
import { toArgv } from '../../cli/argv.ts'
import { readManifest } from '../../cli/manifest.ts'
import { finishBackgroundWork } from '../background.ts'
import { everyDatabase, runCli } from '../doors.ts'
import { runs } from '../level.ts'
import { makeWorkspace } from '../servers.ts'
import { buildExampleInputs, loadWorkspaceRows, seedWorld, type World } from '../world.ts'
import { readRepeat } from './read-repeat.ts'

/** What becomes of an answer on its way: the connection is cut, or a proxy answers in its place. */
const faults = ['dropped', 502, 503, 504] as const
type Fault = (typeof faults)[number]

/** What `npm test` tries; the soak tries every operation with every fault. */
const SAMPLE = [
  'crm_create_group',
  'messaging_send_reply',
  'inbox_add_note',
  'webhooks_create_endpoint',
  'crm_tag_contacts',
]
const isSoak = runs(0, 1) === 1

/** Deletions come last: the operations before them need what they delete. */
const changes: readonly Operation[] = catalog
  .filter((op) => op.dryRun && (isSoak || SAMPLE.includes(op.name)))
  .toSorted((a, b) => Number(/delete|archive/.test(a.name)) - Number(/delete|archive/.test(b.name)))

/** Starts a proxy that hands on every call, and loses the answers of one operation while it is `failing`. */
const startLossyProxy = async (target: string) => {
  const state: { failing: { operation: string; fault: Fault } | undefined; lost: number } = {
    failing: undefined,
    lost: 0,
  }
  const forward = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const { host: _host, connection: _connection, 'content-length': _length, ...headers } = request.headers
    const answer = await fetch(target + request.url!, {
      method: request.method!,
      headers: headers as Record<string, string>,
      ...(chunks.length > 0 ? { body: Buffer.concat(chunks) } : {}),
    })
    const body = Buffer.from(await answer.arrayBuffer())
    const { failing } = state
    if (failing && request.url === `/v1/ops/${failing.operation}`) {
      state.lost++
      if (failing.fault === 'dropped') request.socket.destroy()
      else response.writeHead(failing.fault, { 'Content-Type': 'text/html' }).end('<h1>Bad gateway</h1>')
      return
    }
    const {
      'content-encoding': _encoding,
      'content-length': _size,
      ...rest
    } = Object.fromEntries(answer.headers)
    response.writeHead(answer.status, rest).end(body)
  }
  const server = createServer((request, response) => void forward(request, response))
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    state,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

const specs = readManifest().commands

const toWords = (world: World, op: Operation): string[] => {
  const [input = {}] = buildExampleInputs(world, op)
  const spec = specs.find(({ operation, verb }) => operation === op.name && verb !== 'export')!
  return [...toArgv(spec, input), ...(op.confirm ? ['--confirm', op.confirm] : [])]
}

everyDatabase('Commands whose answer is lost', (server, database) => {
  const setUp = async (url: string) => {
    const workspace = await makeWorkspace(server())
    const world = await seedWorld(server(), workspace, 'Repeat', '0177')
    const env = { WCRM_URL: url, WCRM_API_KEY: workspace.owner.key, XDG_CONFIG_HOME: '/nonexistent' }
    const count = async (): Promise<Record<string, number>> => {
      // Counters are divided over rows that are chosen at random.
      const {
        counters: _,
        broadcast_counts: __,
        ...rows
      } = await loadWorkspaceRows(server().db, workspace.id)
      return Object.fromEntries(Object.entries(rows).map(([table, { length }]) => [table, length]))
    }
    /** Runs something, and tells by how many rows it changed each table. */
    const measure = async (work: () => Promise<number>) => {
      const before = await count()
      const exit = await work()
      // What a job does belongs to the call that began, resumed or approved it.
      await server().app.jobs.job('approvals').runOnce()
      await finishBackgroundWork(server(), workspace.id)
      const after = await count()
      const changed = Object.entries(after).filter(([table, n]) => n !== before[table])
      return { exit, rows: Object.fromEntries(changed.map(([table, n]) => [table, n - before[table]!])) }
    }
    return { world, env, measure, run: (words: string[]) => runCli(words, env) }
  }

  // The soak on both databases.
  const sample = database === 'embedded' ? [faults] : []
  const rounds = isSoak ? faults.map((fault) => [fault]) : sample
  for (const round of rounds)
    it(`the command on stderr finds out, and it is done once (${round.join(', ')})`, async (t) => {
      const proxy = await startLossyProxy(server().url)
      t.after(proxy.close)
      const [calm, disturbed] = [await setUp(server().url), await setUp(proxy.url)]
      const succeeded: string[] = []
      for (const [i, op] of changes.entries()) {
        const fault = round[i % round.length]!
        const once = await calm.measure(async () => (await calm.run(toWords(calm.world, op))).exit)
        const repeated = await disturbed.measure(async () => {
          proxy.state.failing = { operation: op.name, fault }
          const lost = await disturbed.run(toWords(disturbed.world, op))
          assert.deepEqual([lost.exit, lost.stdout], [8, ''], `${op.name}, ${fault}: ${lost.stderr}`)
          proxy.state.failing = undefined
          const { exit } = await disturbed.run(readRepeat(lost.stderr))
          return exit
        })
        assert.deepEqual(repeated, once, `${op.name}, ${fault}`)
        if (once.exit === 0) succeeded.push(op.name)
      }
      assert.ok(proxy.state.lost >= changes.length)
      assert.ok(succeeded.length >= changes.length * 0.6, `only these were done: ${succeeded.join(', ')}`)
    })
})
