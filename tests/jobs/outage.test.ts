import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { sql } from 'kysely'
import { type Cluster, postgresBinaries, startCluster } from '../../scripts/cluster.ts'
import { databases, withStorage } from '../databases.ts'
import { doorsOf } from '../doors.ts'
import { createOwnerKey } from '../http/owner-key.ts'
import { type ServerProcess, startProcess } from '../process.ts'
import { startReceiver } from '../webhooks/receiver.ts'
import { waitUntil } from '../wait-until.ts'

type Line = { msg: string; job?: string; code?: string; seconds?: number }

const BEGINS = /^The database cannot be reached/
const ENDS = 'The database can be reached again'

describe('The log of a server whose database is down', { skip: !databases.includes('postgresql') }, () => {
  let cluster: Cluster
  let server: ServerProcess
  let key: string
  before(async () => {
    cluster = await startCluster(postgresBinaries()!)
    key = await createOwnerKey({ databaseUrl: cluster.url })
  })
  after(async () => {
    await server.stop()
    cluster.stop()
  })

  const readLog = (): Line[] =>
    server
      .log()
      .split('\n')
      .filter((line) => line.startsWith('{') && line.endsWith('}'))
      .map((line) => JSON.parse(line) as Line)
  const count = (test: (line: Line) => boolean): number => readLog().filter(test).length
  const isFailure = ({ msg }: Line) => /^(Background job failed|Cannot record the results)/.test(msg)
  const readFailedJobs = async (): Promise<number> => {
    const text = await (await fetch(`${server.url}/metrics`)).text()
    const runs = text.matchAll(/^wcrm_job_run_duration_seconds_count\{[^}]*outcome="failed"[^}]*\} (\d+)$/gm)
    return [...runs].reduce((sum, [, number]) => sum + Number(number), 0)
  }

  it('has one line when it begins and one when it ends; other failures of jobs have one each', async () => {
    const answer = Promise.withResolvers<{ status: number }>()
    const receiver = await startReceiver(() => answer.promise)
    server = await startProcess(['--database-url', cluster.url], {
      WCRM_LOG_LEVEL: 'info',
      WCRM_SECRET: 'x'.repeat(32),
      WCRM_WEBHOOK_ALLOW: new URL(receiver.url).host,
    })
    try {
      const { call } = doorsOf(server.url, key)[0]!
      const endpoint = await call('webhooks_create_endpoint', {
        url: receiver.url,
        event_types: ['group.created/1'],
      })
      assert.equal(endpoint.status, 201, endpoint.text)
      await call('crm_create_group', { name: 'Before' })
      await waitUntil('the delivery begins', () => receiver.received.length === 1)

      cluster.crash()
      answer.resolve({ status: 200 })
      await waitUntil('many runs fail', async () => (await readFailedJobs()) >= 20)
      assert.equal(
        count(({ msg }) => BEGINS.test(msg)),
        1,
      )
      assert.deepEqual(readLog().filter(isFailure), [])
      assert.equal(
        count(({ msg }) => msg === ENDS),
        0,
      )

      cluster.start()
      await waitUntil('the end is logged', () => count(({ msg }) => msg === ENDS) === 1)
      assert.ok(readLog().find(({ msg }) => msg === ENDS)!.seconds! > 0)
      assert.equal((await call('crm_list_groups')).status, 200)

      await withStorage({ databaseUrl: cluster.url }, ({ db }) =>
        sql`alter table webhook_deliveries rename to moved`.execute(db),
      )
      const isOther = ({ job, code }: Line) => job === 'webhook-deliveries' && code === '42P01'
      await waitUntil('each failure of another kind is logged', () => count(isOther) >= 2)
      assert.equal(
        count(({ msg }) => BEGINS.test(msg)),
        1,
      )
    } finally {
      await receiver.close()
    }
  })
})
