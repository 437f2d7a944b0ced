import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { sql } from 'kysely'
import type { Location } from '../../storage/open.ts'
import { callAs } from '../calls.ts'
import { createDatabase, databases, type TestDatabase, withStorage } from '../databases.ts'
import type { Reply } from '../doors.ts'
import {
  type Cluster,
  createKeys,
  type Decision,
  type Keys,
  listRounds,
  startCluster,
  toMark,
} from './approvals-scene.ts'
import {
  createCaller,
  listProviderMessages,
  markOf,
  openConversations,
  prepareWorkspace,
} from './sends-scene.ts'

const ASK_COUNT = 100
const CUSTOMER_COUNT = 12
const CONCURRENCY = 10
/** One server is killed in each part but the last, in which both are. */
const PART_COUNT = 5
const PART_SIZE = ASK_COUNT / PART_COUNT
/** Answers in a part: see `listRounds` and `askFor`. */
const ANSWERS_PER_PART = (PART_SIZE / 10) * 28
const CALL_LIMIT_MS = 30_000
const END_LIMIT_MS = 40_000

/** Counts, and tells when a count is reached. */
const createCounter = () => {
  let count = 0
  const waiting = new Map<number, () => void>()
  return {
    add: (): void => {
      count++
      waiting.get(count)?.()
    },
    reach: async (goal: number): Promise<void> => {
      if (count < goal) await new Promise<void>((reached) => waiting.set(goal, reached))
    },
  }
}

type Counter = ReturnType<typeof createCounter>
type CallMore = { idempotencyKey?: string; server?: number }
type Call = (key: string, op: string, input: Record<string, unknown>, more?: CallMore) => Promise<Reply>

/** Answers that ask for the same call again: nothing was done, or it is being done. */
const isTransient = ({ status, body }: Reply): boolean =>
  status === 503 ||
  (status === 504 && body.reason === undefined) ||
  (status === 409 && ['still_running', 'deleted_meanwhile'].includes(body.reason))

/** Returns a client that calls the given server, or any, and repeats what a dead one did not answer. */
const createClient =
  ({ urls, ready }: Cluster, counter: Counter): Call =>
  async (key, op, input, { server, idempotencyKey } = {}) => {
    const until = performance.now() + CALL_LIMIT_MS
    for (;;) {
      const n = server ?? randomInt(urls.length)
      await ready(n)
      const options = idempotencyKey === undefined ? {} : { idempotencyKey }
      const reply = await callAs({ url: urls[n]! }, key)(op, input, options).catch((error: unknown) => {
        // What fetch throws where a connection breaks.
        if (!(error instanceof TypeError)) throw error
        return undefined
      })
      if (reply && !isTransient(reply)) {
        counter.add()
        return reply
      }
      assert.ok(performance.now() < until, `${op} had no answer: ${reply?.text}`)
      await pause(20)
    }
  }

type Asked = { n: number; id: string; status: 'approved' | 'declined'; text: string }

const toAsk = (n: number, conversations: readonly string[]) =>
  [
    'messaging_send_reply',
    { conversation_id: conversations[n % CUSTOMER_COUNT]!, text: toMark(n) },
    { idempotencyKey: `request-${n}` },
  ] as const

/** Asks, sometimes on both servers at once. Returns the id of the one request. */
const askFor = async (
  call: Call,
  { agent }: Keys,
  n: number,
  conversations: readonly string[],
): Promise<string> => {
  const [op, input, options] = toAsk(n, conversations)
  const servers = n % 5 === 0 ? [{ server: 0 }, { server: 1 }] : [{}]
  const replies = await Promise.all(servers.map((one) => call(agent, op, input, { ...options, ...one })))
  for (const { status, text } of replies) assert.equal(status, 202, text)
  const ids = new Set(replies.map(({ body }) => body.approval.id as string))
  assert.equal(ids.size, 1, `${toMark(n)} was asked for twice`)
  return [...ids][0]!
}

/** Has people decide, and returns the decision that counts: there is exactly one. */
const decide = async (call: Call, { people }: Keys, n: number, id: string): Promise<Asked> => {
  const counting = new Map<string, Decision>()
  for (const round of listRounds(n)) {
    await Promise.all(
      round.map(async (decision) => {
        const { person, op, text, server, idempotencyKey } = decision
        const input = { approval_id: id, ...(text === undefined ? {} : { text }) }
        const more = { idempotencyKey, ...(server === undefined ? {} : { server }) }
        const reply = await call(people[person]!, op, input, more)
        if (reply.status === 200) counting.set(idempotencyKey, decision)
        else assert.deepEqual([reply.status, reply.body.reason], [409, 'already_decided'], reply.text)
      }),
    )
  }
  assert.equal(counting.size, 1, `${toMark(n)}: ${[...counting.keys()].join(', ')} count`)
  const [{ op, text }] = [...counting.values()] as [Decision]
  return { n, id, status: op === 'approvals_approve' ? 'approved' : 'declined', text: text ?? toMark(n) }
}

/** Ends all leases, as if their time had passed while no server was up. */
const expireLeases = (location: Location, workspaceId: string): Promise<void> =>
  withStorage(location, async ({ db }) => {
    await sql`
      update idempotency set lease_until = clock_timestamp()
      where workspace_id = ${workspaceId} and state = 'running'`.execute(db)
    await sql`
      update runs set run_after = clock_timestamp()
      where workspace_id = ${workspaceId} and kind = 'approved_calls'`.execute(db)
  })

/** Asks for everything and has it decided, while servers are killed. */
const askAll = async (
  { kill }: Cluster,
  counter: Counter,
  work: (n: number) => Promise<Asked>,
  whileDown: () => Promise<void>,
): Promise<Asked[]> => {
  const parts = Array.from({ length: PART_COUNT }, () => Promise.withResolvers<void>())
  const killAll = async (): Promise<void> => {
    for (const [part, { resolve }] of parts.entries()) {
      resolve()
      await counter.reach(part * ANSWERS_PER_PART + randomInt(5, ANSWERS_PER_PART - 5))
      await pause(randomInt(0, 30))
      await (part === PART_COUNT - 1 ? kill([0, 1], whileDown) : kill([part % 2]))
    }
  }
  const queue = Array.from({ length: ASK_COUNT }, (_, n) => n)
  const asked: Asked[] = []
  const worker = async (): Promise<void> => {
    for (let n = queue.shift(); n !== undefined; n = queue.shift()) {
      await parts[Math.floor(n / PART_SIZE)]!.promise
      asked.push(await work(n))
    }
  }
  await Promise.all([killAll(), ...Array.from({ length: CONCURRENCY }, worker)])
  return asked.toSorted((a, b) => a.n - b.n)
}

/** Waits until all requests have ended, and returns their details. `giveUp` is called when none does any more. */
const awaitEnds = async (
  call: Call,
  key: string,
  asked: readonly Asked[],
  giveUp: (open: readonly Asked[]) => Promise<boolean>,
): Promise<Map<string, any>> => {
  const ended = new Map<string, any>()
  const until = performance.now() + END_LIMIT_MS
  let isGivenUp = false
  for (let open = asked; open.length > 0;) {
    const details = await Promise.all(
      open.map(({ id }) => call(key, 'approvals_get', { approval_id: id, wait_seconds: 5 })),
    )
    for (const { body } of details)
      if (!['pending', 'approved'].includes(body.status)) ended.set(body.id, body)
    const rest = open.filter(({ id }) => !ended.has(id))
    assert.ok(performance.now() < until, `${rest.map(({ n }) => toMark(n)).join(', ')} did not end`)
    if (!isGivenUp && rest.length > 0 && rest.length === open.length) isGivenUp = await giveUp(rest)
    open = rest
  }
  return ended
}

/** Asserts that each request has one event of each kind, and that each run is audited once. */
const assertRecorded = (location: Location, workspaceId: string, asked: readonly Asked[], done: number) =>
  withStorage(location, async ({ db }) => {
    const { rows: events } = await sql<{ type: string; id: string; status: string }>`
      select type, data->'approval'->>'id' as id, data->'approval'->>'status' as status from events
      where workspace_id = ${workspaceId} and type like 'approval.%'`.execute(db)
    const expected = asked.map(({ id, status }) => [
      id,
      [`approval.decided/1 ${status}`, 'approval.requested/1 pending'],
    ])
    const found = Object.groupBy(events, ({ id }) => id)
    assert.deepEqual(
      Object.entries(found)
        .map(([id, own]) => [id, own!.map(({ type, status }) => `${type} ${status}`).toSorted()] as const)
        .toSorted(([a], [b]) => Number(a) - Number(b)),
      expected.toSorted(([a], [b]) => Number(a) - Number(b)),
    )
    const { rows: audited } = await sql<{ what: string; n: string }>`
      select operation || ' ' || outcome as what, count(*) as n from audit_log
      where workspace_id = ${workspaceId} and operation = 'messaging_send_reply' and code is distinct from 'declined'
      group by 1`.execute(db)
    const counts = Object.fromEntries(audited.map(({ what, n }) => [what, Number(n)]))
    assert.equal(counts['messaging_send_reply done'], done, JSON.stringify(counts))
    assert.equal(counts['messaging_send_reply refused'], ASK_COUNT, JSON.stringify(counts))
  })

/** Asserts that the agent, which asks for everything again, is told what became of it. */
const assertRepeats = async (
  call: Call,
  agent: string,
  asked: readonly Asked[],
  { ended, conversations }: { ended: ReadonlyMap<string, any>; conversations: readonly string[] },
): Promise<void> => {
  for (const { n, id, text } of asked) {
    const [op, input, options] = toAsk(n, conversations)
    const { status, body, headers } = await call(agent, op, input, options)
    const said = ended.get(id).status as string
    if (said === 'done')
      assert.deepEqual(
        [status, headers['idempotent-replayed'], body.message?.text],
        [201, 'true', text],
        toMark(n),
      )
    else if (said === 'declined')
      assert.deepEqual([status, body.code, body.approval_id], [403, 'declined', id], toMark(n))
    else assert.deepEqual([status, body.reason, body.approval_id], [409, 'not_confirmed', id], toMark(n))
  }
}

const run = async (place: TestDatabase, folder: string, test: TestContext): Promise<void> => {
  const { key: owner, workspaceId } = await prepareWorkspace(place.location)
  const keys = await createKeys(place.location, workspaceId)
  const cluster = await startCluster(place, folder)
  try {
    const { sandbox, urls } = cluster
    const rest = createCaller(() => urls[0]!, owner)
    const conversations = await openConversations(sandbox, rest)
    const counter = createCounter()
    const call = createClient(cluster, counter)
    const asked = await askAll(
      cluster,
      counter,
      async (n) => await decide(call, keys, n, await askFor(call, keys, n, conversations)),
      () => expireLeases(place.location, workspaceId),
    )
    const listTexts = async (): Promise<string[]> => (await listProviderMessages(sandbox)).map(markOf)
    const ended = await awaitEnds(call, keys.people[0]!, asked, async (open) => {
      // Killed before their request left: nobody may send them again, and after a day they have failed.
      const texts = await listTexts()
      if (open.some(({ text }) => texts.includes(text))) return false
      assert.equal((await rest('POST', '/sandbox/clock', { advance: '25h' })).status, 200)
      return true
    })
    const withStatus = (status: string): Asked[] => asked.filter(({ id }) => ended.get(id).status === status)
    const [done, failed] = [withStatus('done'), withStatus('failed')]
    test.diagnostic(`${done.length} done, ${withStatus('declined').length} declined, ${failed.length} failed`)
    assert.deepEqual(
      withStatus('declined'),
      asked.filter(({ status }) => status === 'declined'),
    )
    for (const { id } of failed) assert.equal(ended.get(id).outcome.reason, 'not_confirmed')
    assert.equal(new Set(asked.map(({ id }) => id)).size, ASK_COUNT)
    assert.equal(done.length + failed.length + withStatus('declined').length, ASK_COUNT)
    assert.ok(failed.length < ASK_COUNT / 5, `${failed.length} failed`)
    assert.deepEqual((await listTexts()).toSorted(), done.map(({ text }) => text).toSorted())
    await assertRepeats(call, keys.agent, asked, { ended, conversations })
    assert.deepEqual((await listTexts()).length, done.length)
    await assertRecorded(place.location, workspaceId, asked, done.length)
  } finally {
    await cluster.close()
  }
}

describe(
  'Approvals: servers killed while people decide',
  { skip: databases.includes('postgresql') ? false : 'WCRM_TEST_POSTGRES_URL is not set' },
  () => {
    it(
      'each of 100 requests ends once, and what was approved is sent once',
      { timeout: 150_000 },
      async (test) => {
        const place = await createDatabase('postgresql')
        const folder = mkdtempSync(join(tmpdir(), 'wcrm-approvals-'))
        try {
          await run(place, folder, test)
        } finally {
          await place.remove()
          rmSync(folder, { recursive: true, force: true })
        }
      },
    )
  },
)
