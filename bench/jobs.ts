import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import postgres from 'postgres'
import { createCases } from './cases.ts'
import { type Dataset, fillDatabase, prepareForCases } from './data.ts'
import { dropBenchDatabase, withPostgres } from './databases.ts'
import { sourceLauncher } from './launchers.ts'
import { type RunningServer, startProduct } from './processes.ts'
import { percentile } from './statistics.ts'

/**
 * Tags 400,000 of a million contacts by a plan, while reads come at a steady rate and one of two servers is killed five
 * times, then undoes it. Ends with an error unless exactly the contacts of the plan are tagged, and every row is as it
 * was afterwards. Prints how long it took, and how long reads took before and meanwhile.
 */
const { values: flags } = parseArgs({
  options: {
    contacts: { type: 'string', default: '1000000' },
    kills: { type: 'string', default: '5' },
    'reads-per-second': { type: 'string', default: '50' },
    'database-url': { type: 'string' },
  },
})
const print = (text: string): void => void process.stderr.write(`${text}\n`)

type Body = Record<string, any>

const createCaller =
  (servers: () => RunningServer, key: string) =>
  async (operation: string, input: Body): Promise<Body> => {
    const response = await fetch(`${servers().url}/v1/ops/${operation}`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
      body: JSON.stringify(input),
    })
    const body = (await response.json()) as Body
    if (response.status >= 300) throw new Error(`${operation}: ${JSON.stringify(body)}`)
    return body
  }

/** Sends reads of single contacts at a steady rate until it is stopped. Returns their milliseconds. */
const readSteadily = (dataset: Dataset, server: () => RunningServer) => {
  const { requests } = createCases(dataset).find(({ name }) => name === 'get by id')!.product
  const times: number[] = []
  let isOver = false
  const run = async () => {
    const pause = 1000 / Number(flags['reads-per-second'])
    const pending = new Set<Promise<void>>()
    for (let n = 0; !isOver; n++) {
      const { path } = requests[n % requests.length]!
      const startedAt = performance.now()
      const read = fetch(`${server().url}${path}`, { headers: { Authorization: `Bearer ${dataset.key}` } })
        .then((response) => response.text())
        .then(() => void times.push(performance.now() - startedAt))
        .catch(() => {})
      pending.add(read)
      void read.finally(() => pending.delete(read))
      await sleep(pause)
    }
    await Promise.all(pending)
  }
  const running = run()
  return {
    stop: async () => {
      isOver = true
      await running
      return [0.5, 0.99].map((share) => percentile(times, share).toFixed(1)).join(', ')
    },
  }
}

const waitFor = async (
  call: ReturnType<typeof createCaller>,
  id: string,
  onWait: (job: Body) => Promise<void>,
) => {
  for (;;) {
    const job = await call('jobs_get', { job_id: id })
    if (job.state !== 'running') return job
    await onWait(job)
    await sleep(500)
  }
}

const secondsSince = (startedAt: number): string => ((performance.now() - startedAt) / 1000).toFixed(1)

const digestTags = (sql: postgres.Sql) => sql`
  select count(*)::int as n, sum(hashtextextended(tag_id || ' ' || contact_id, 0)) as sum from contact_tags`

const measure = async (dataset: Dataset): Promise<void> => {
  const sql = postgres(dataset.databaseUrl, { max: 1, onnotice: () => {} })
  // The one that is killed, and the one that answers.
  let killed = await startProduct(dataset.databaseUrl, sourceLauncher)
  const stays = await startProduct(dataset.databaseUrl, sourceLauncher)
  const call = createCaller(() => stays, dataset.key)
  try {
    const [row] = await sql`
      select created_at from contacts where workspace_id = ${dataset.workspaceId}
      order by created_at offset ${Math.floor(Number(flags.contacts) * 0.4)} limit 1`
    const filter = { createdAt: { lt: row!['created_at'].toISOString() } }
    const before = await digestTags(sql)
    const quiet = readSteadily(dataset, () => stays)
    await sleep(10_000)
    print(`reads alone: median and p99 ${await quiet.stop()} ms`)

    const input = { filter, tags: ['bench job', 'bench 1'] }
    let startedAt = performance.now()
    const plan = await call('crm_tag_contacts', { ...input, dry_run: true })
    print(`plan of ${plan['matched']}: ${secondsSince(startedAt)} s`)
    const planned = await sql`
      select unnest(record_ids) as id from bulk_job_batches b join bulk_jobs j on j.id = b.job_id
      where j.plan_id = ${plan['plan_id']}`
    startedAt = performance.now()
    const { job } = await call('crm_tag_contacts', { ...input, plan_id: plan['plan_id'] })
    print(`begun: ${secondsSince(startedAt)} s`)
    const busy = readSteadily(dataset, () => stays)
    let kills = 0
    const done = await waitFor(call, job.id, async ({ done: count, total }) => {
      if (kills >= Number(flags.kills) || count < ((kills + 1) * total) / (Number(flags.kills) + 2)) return
      process.kill(killed.pid, 'SIGKILL')
      kills++
      killed = await startProduct(dataset.databaseUrl, sourceLauncher)
    })
    print(`reads meanwhile: median and p99 ${await busy.stop()} ms`)
    print(`${done.state}: ${done.changed} of ${done.total} in ${secondsSince(startedAt)} s, ${kills} kills`)
    const tagged = await sql`
      select contact_id as id from contact_tags where tag_id = (select id from tags where name = 'bench job')`
    const ids = new Set(tagged.map(({ id }) => String(id)))
    assert.equal(ids.size, planned.length)
    assert.ok(planned.every(({ id }) => ids.has(String(id))))

    startedAt = performance.now()
    const { job: undo } = await call('jobs_undo', { job_id: job.id })
    const undone = await waitFor(call, undo.id, async () => {})
    print(`undone: ${undone.changed} in ${secondsSince(startedAt)} s`)
    const after = await digestTags(sql)
    assert.deepEqual(after, before)
    print('every row as before')
  } finally {
    await Promise.all([killed.stop(), stays.stop()])
    await sql.end()
  }
}

await withPostgres(flags['database-url'], '2GB', async (adminUrl) => {
  print(`filling ${flags.contacts} contacts`)
  const dataset = await fillDatabase(adminUrl, Number(flags.contacts))
  await prepareForCases(dataset.databaseUrl, dataset.workspaceId)
  try {
    await measure(dataset)
  } finally {
    await dropBenchDatabase(adminUrl, dataset)
  }
})
