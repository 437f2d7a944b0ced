import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { sql } from 'kysely'
import { readConfig } from '../../server/config.ts'
import { deleteOldEvents } from '../../server/domains/events/retention.ts'
import { retentionJobs } from '../../server/jobs/retention.ts'
import { webhookDeliveryRetentionJob } from '../../server/domains/webhooks/delivery-job.ts'
import { firstIdAt } from '../../storage/access/audit.ts'
import { dropPartitionsBefore } from '../../storage/migrations/partitions.ts'
import { countPartitions } from '../../storage/work/retention.ts'
import { encodeUlidTime } from '../../storage/events/ulid-time.ts'
import { databases } from '../databases.ts'
import { runCli } from '../doors.ts'
import { makeWorkspace, startServer } from '../servers.ts'

type Row = {
  kind: string
  keeps: string
  keeps_hours: number | null
  set_by: string
  oldest: string | null
  due: number | null
  partitions: number | null
  due_partitions: number | null
  rows: number | null
  bytes: number | null
}

const HOUR_MS = 3_600_000
const after7Days = (at: string): string => new Date(Date.parse(at) + 7 * 24 * HOUR_MS).toISOString()
const ulidAt = (at: string): string => `${encodeUlidTime(Date.parse(at))}${'0'.repeat(16)}`

/** The columns of a row of each kind whose time began at `at`; `n` tells rows apart. */
const kinds: Record<string, [table: string, row: (at: string, n: number) => Record<string, unknown>]> = {
  events: [
    'events',
    (at) => ({ id: `evt_${ulidAt(at)}`, type: 'group.created/1', occurred_at: at, data: '{}' }),
  ],
  webhook_deliveries: [
    'webhook_deliveries',
    (at, n) => ({
      id: `dlv_${ulidAt(at)}`,
      endpoint_id: 'whe_1',
      event_id: `evt_${n}`,
      event_type: 'test/1',
      status: 'dead',
      created_at: at,
    }),
  ],
  audit_log: [
    'audit_log',
    (at) => ({
      id: firstIdAt(at),
      staff_id: 1,
      key_id: 1,
      door: 'rest',
      operation: 'x',
      outcome: 'done',
      dry_run: false,
      confirmed: false,
      request_id: 'req_1',
    }),
  ],
  idempotency: [
    'idempotency',
    (at, n) => ({
      staff_id: 1,
      key: `key-${n}`,
      operation: 'x',
      fingerprint: '\\x00',
      state: 'done',
      created_at: at,
      expires_at: new Date(Date.parse(at) + 24 * HOUR_MS).toISOString(),
    }),
  ],
  provider_updates: [
    'provider_updates',
    (at) => ({ dedupe: at, kind: 'other', state: 'done', next_attempt_at: at, received_at: at }),
  ],
  jobs: [
    'bulk_jobs',
    (at) => ({
      state: 'done',
      operation: 'x',
      input: '{}',
      staff_id: 1,
      key_id: 1,
      door: 'rest',
      request_id: 'req_1',
      created_at: at,
      finished_at: at,
      total: 0,
    }),
  ],
  plans: [
    'bulk_jobs',
    (at) => ({
      state: 'planned',
      operation: 'x',
      input: '{}',
      staff_id: 1,
      key_id: 1,
      door: 'rest',
      request_id: 'req_1',
      created_at: at,
      expires_at: at,
      total: 0,
    }),
  ],
  approvals: [
    'approvals',
    (at) => ({
      key_id: 1,
      staff_id: 1,
      operation: 'x',
      input: '{}',
      digest: '\\x00',
      door: 'mcp',
      view: '{}',
      request_id: 'req_1',
      asked_for: '{}',
      status: 'declined',
      requested_at: at,
      expires_at: at,
      ended_at: at,
    }),
  ],
  merges: [
    'contact_merges',
    (at, n) => ({ contact_id: n, into_id: 100, merged_at: at, before: '{}', after: '{}' }),
  ],
  former_phones: ['contact_former_ids', (at, n) => ({ id_key: `${n}`, contact_id: n, changed_at: at })],
  exports: ['exports', (at) => ({ kind: 'person', state: 'failed', staff_id: 1, created_at: at })],
  export_files: [
    'exports',
    (at) => ({ kind: 'person', state: 'done', staff_id: 1, created_at: at, file_until: after7Days(at) }),
  ],
  phone_budgets: ['phone_budgets', (at) => ({ staff_id: 1, day: at, phones: '{}' })],
  contact_views: ['contact_budgets', (at) => ({ key_id: 1, day: at, used: 1 })],
  contact_reads: [
    'contact_reads',
    (at) => ({ key_id: 1, operation: 'x', hour: at, audit_id: 1, calls: 1, contacts: '{}' }),
  ],
}

/** What a job of its own deletes, or that goes with its partition. */
const unplanted = ['filter_memberships', 'webhook_attempts']

for (const database of databases)
  describe(`wcrm admin retention, beside a running server (${database})`, () => {
    let server: Awaited<ReturnType<typeof startServer>>
    before(async () => {
      server = await startServer(database)
    })
    after(() => server.close())

    const run = async (env: Record<string, string> = {}, ...flags: string[]) => {
      const { location } = server
      const where =
        'databaseUrl' in location && location.databaseUrl
          ? ['--database-url', location.databaseUrl]
          : ['--data', (location as { dataDir: string }).dataDir]
      return await runCli(['admin', 'retention', ...where, ...flags], env)
    }
    const show = async (env: Record<string, string> = {}): Promise<Map<string, Row>> => {
      const { exit, stdout, stderr } = await run(env, '--json')
      assert.equal(exit, 0, stderr)
      return new Map((JSON.parse(stdout).data as Row[]).map((row) => [row.kind, row]))
    }
    const plant = async (workspaceId: string, kind: string, at: string, n: number): Promise<void> => {
      const [table, toRow] = kinds[kind]!
      const row = { ...(table === 'provider_updates' ? {} : { workspace_id: workspaceId }), ...toRow(at, n) }
      await sql`
        insert into ${sql.table(table)} (${sql.join(Object.keys(row).map((name) => sql.ref(name)))})
        select ${sql.join(Object.keys(row).map((name) => sql.ref(name)))}
        from jsonb_populate_record(null::${sql.table(table)}, ${JSON.stringify(row)}::jsonb)`
        .execute(server.db)
        .catch((error: Error) => assert.fail(`${kind}: ${error.message}`))
    }

    it('shows as due what the jobs delete, and then the row that is the oldest', async () => {
      const { id } = await makeWorkspace(server)
      const empty = await show()
      for (const kind of Object.keys(kinds))
        assert.deepEqual([empty.get(kind)?.oldest, empty.get(kind)?.due], [null, 0], kind)
      assert.deepEqual(
        [...empty]
          .filter(([kind, { keeps_hours: hours }]) => hours !== null && !(kind in kinds))
          .map(([k]) => k),
        unplanted.toReversed(),
      )
      const planted = new Map<string, [old: string, young: string]>()
      for (const kind of Object.keys(kinds)) {
        const hours = empty.get(kind)!.keeps_hours!
        const times = [hours + 0.5, hours - 0.5].map((h) =>
          new Date(Date.parse(server.app.now()) - h * HOUR_MS).toISOString(),
        )
        planted.set(kind, times as [string, string])
        for (const [n, at] of times.entries()) await plant(id, kind, at, n + 1)
      }
      const full = await show()
      for (const [kind, [old]] of planted)
        assert.deepEqual([full.get(kind)?.oldest, full.get(kind)?.due], [old, 1], kind)
      const { signal } = new AbortController()
      for (const job of [...retentionJobs(server.app), webhookDeliveryRetentionJob(server.app)])
        await job.run(signal)
      const swept = await show()
      for (const [kind, [, young]] of planted)
        assert.deepEqual([swept.get(kind)?.oldest, swept.get(kind)?.due], [young, 0], kind)
    })

    it('says how long, what sets it, and how much there is', async () => {
      const rows = await show({ WCRM_AUDIT_RETENTION_DAYS: '90' })
      const periods = [...rows.values()].map((row) => `${row.kind}: ${row.keeps}, ${row.set_by}`)
      assert.deepEqual(periods.slice(0, 5), [
        'events: 400 days, WCRM_EVENT_RETENTION_DAYS',
        'webhook_deliveries: 30 days, WCRM_WEBHOOK_RETENTION_DAYS',
        'webhook_attempts: 30 days, WCRM_WEBHOOK_RETENTION_DAYS',
        'audit_log: 90 days, WCRM_AUDIT_RETENTION_DAYS',
        'idempotency: 24 h, fixed',
      ])
      assert.equal(periods.at(-1), 'messages: no limit, deletion or erasure')
      const { partitions, due_partitions: due, bytes } = rows.get('events')!
      assert.ok(partitions! >= 3 && due === 0 && bytes! > 100_000)
      assert.equal(rows.get('approvals')!.partitions, null)
      await sql`analyze approvals`.execute(server.db)
      assert.equal((await show()).get('approvals')!.rows, 1)
      const text = await run()
      assert.match(text.stdout, /^events\t400 days\tWCRM_EVENT_RETENTION_DAYS\t/m)
    })

    it('counts an event only when no delivery needs it, and no event where there is no limit', async () => {
      const { id } = await makeWorkspace(server)
      const old = new Date(Date.parse(server.app.now()) - 500 * 24 * HOUR_MS).toISOString()
      await plant(id, 'events', old, 1)
      assert.equal((await show()).get('events')!.due, 1)
      const unlimited = (await show({ WCRM_EVENT_RETENTION_DAYS: 'none' })).get('events')!
      assert.deepEqual([unlimited.keeps, unlimited.oldest, unlimited.due], ['no limit', old, 0])
      await sql`
        insert into webhook_deliveries (workspace_id, id, endpoint_id, event_id, event_type, status, created_at)
        values (${id}, ${`dlv_${ulidAt(old)}`}, 'whe_1', ${`evt_${ulidAt(old)}`}, 'test/1', 'pending', ${old})`.execute(
        server.db,
      )
      assert.equal((await show()).get('events')!.due, 0)
      const { app } = server
      await deleteOldEvents({ ...app, config: { ...app.config, eventRetentionDays: null } })
      await deleteOldEvents(app)
      assert.equal((await show()).get('events')!.oldest, old)
      await sql`update webhook_deliveries set status = 'dead' where workspace_id = ${id}`.execute(server.db)
      assert.equal(await deleteOldEvents(app), 1)
      assert.notEqual((await show()).get('events')!.oldest, old)
    })

    it('counts the partitions that are dropped', async () => {
      const later = new Date(Date.parse(server.app.now()) + 45 * 24 * HOUR_MS).toISOString()
      for (const table of ['events', 'audit_log', 'webhook_attempts'] as const) {
        const { partitions, due } = (await countPartitions(server.db, table, later))!
        assert.ok(due > 0 && due <= partitions, table)
        assert.equal(await dropPartitionsBefore(server.db, table, later), due, table)
        assert.deepEqual(await countPartitions(server.db, table, later), {
          partitions: partitions - due,
          due: 0,
        })
      }
    })
  })

describe('The configuration of retention', () => {
  it('has defaults that end, and a word for no limit', () => {
    const days = (env: Record<string, string>) => {
      const { eventRetentionDays, webhookRetentionDays, auditRetentionDays } = readConfig({}, env)
      return [eventRetentionDays, webhookRetentionDays, auditRetentionDays]
    }
    assert.deepEqual(days({}), [400, 30, 400])
    assert.deepEqual(days({ WCRM_EVENT_RETENTION_DAYS: '' }), [400, 30, 400])
    assert.deepEqual(days({ WCRM_EVENT_RETENTION_DAYS: 'none' }), [null, 30, 400])
    assert.deepEqual(
      days({ WCRM_EVENT_RETENTION_DAYS: '14', WCRM_AUDIT_RETENTION_DAYS: '36500' }),
      [14, 30, 36_500],
    )
  })

  it('refuses other values, and says which are good', async () => {
    const event = 'WCRM_EVENT_RETENTION_DAYS: must be a number of days from 14 to 3650, or none: no limit'
    const upTo = (name: string, days: number): string => `${name}: must be a number of days from 1 to ${days}`
    const refused: [name: string, values: string[], message: string][] = [
      ['WCRM_EVENT_RETENTION_DAYS', ['0', '13', '3651', '20.5', 'forever', 'None'], event],
      [
        'WCRM_WEBHOOK_RETENTION_DAYS',
        ['0', 'none', '1.5', '3651'],
        upTo('WCRM_WEBHOOK_RETENTION_DAYS', 3650),
      ],
      ['WCRM_AUDIT_RETENTION_DAYS', ['none'], upTo('WCRM_AUDIT_RETENTION_DAYS', 36_500)],
    ]
    for (const [name, value, message] of refused.flatMap(([name, values, message]) =>
      values.map((value) => [name, value, message] as const),
    )) {
      assert.throws(() => readConfig({}, { [name]: value }), { message }, `${name}=${value}`)
      const { exit, stderr } = await runCli(['serve', '--port', '0'], { [name]: value })
      assert.deepEqual([exit, stderr.includes(message)], [2, true], stderr)
    }
  })
})
