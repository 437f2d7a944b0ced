import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { sql } from 'kysely'
import { freePort } from '../../scripts/free-port.ts'
import { createDatabase, withStorage } from '../databases.ts'
import { type ServerProcess, startProcess } from '../process.ts'
import {
  type Call,
  createCaller,
  listProviderMessages,
  prepareWorkspace,
  type SandboxProcess,
  startSandbox,
} from './sends-scene.ts'

/** Contacts. */
const COUNT = Number(process.env.WCRM_BULK_COUNT ?? 2000)
/** Servers are killed when so much of it is sent. */
const KILLS = [0.15, 0.35, 0.55, 0.8]
/** Most messages on their way in a server that is killed (server/domains/bulk-messages/run.ts). */
const IN_FLIGHT = 24

const phoneOf = (n: number): string => `4930${String(10_000_000 + n)}`

/** What a contact is, by its number: who declined, whom the provider refuses, and who is there twice. */
const kindOf = (n: number): 'plain' | 'dnd' | 'withdrawn' | 'refused' | 'slow' | 'double' =>
  ({ 3: 'dnd', 13: 'withdrawn', 7: 'refused', 11: 'slow', 17: 'double' } as const)[
    n % 20 === 3 ? 3 : n % 50
  ] ?? 'plain'

type Scene = {
  call: Call
  sandbox: SandboxProcess
  killServer: () => Promise<void>
  close: () => Promise<void>
}

const startScene = async (flags: readonly string[], key: string, serverCount: number): Promise<Scene> => {
  const folder = mkdtempSync(join(tmpdir(), 'wcrm-bulk-'))
  const sandbox = await startSandbox(folder, await freePort(), 'http://127.0.0.1:9/provider/webhook')
  const { token, app_secret: appSecret, verify_token: verifyToken } = sandbox.said
  const env = {
    WCRM_PROVIDER: 'sandbox',
    WCRM_PROVIDER_URL: sandbox.url,
    WCRM_PROVIDER_TOKEN: token,
    WCRM_PROVIDER_APP_SECRET: appSecret,
    WCRM_PROVIDER_VERIFY_TOKEN: verifyToken,
  }
  const servers: ServerProcess[] = []
  for (let n = 0; n < serverCount; n++) servers.push(await startProcess(flags, env))
  return {
    call: createCaller(
      () => servers[randomInt(0, Math.max(1, servers.length))]?.url ?? 'http://127.0.0.1:1',
      key,
    ),
    sandbox,
    killServer: async () => {
      const server = servers.shift()
      await server?.kill('SIGKILL')
      servers.push(await startProcess(flags, env))
    },
    close: async () => {
      for (const server of servers) await server.kill('SIGTERM')
      await sandbox.kill('SIGTERM')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

const control = async (
  { url, said: { token } }: SandboxProcess,
  path: string,
  body: object,
): Promise<void> => {
  const response = await fetch(`${url}/control/${path}`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  })
  assert.ok(response.ok, await response.text())
}

/** A server that was killed answers nothing. */
const insist = async (call: Call, ...request: Parameters<Call>): Promise<any> => {
  for (let n = 0; ; n++) {
    const reply = await call(...request).catch(() => undefined)
    if (reply && reply.status < 300) return reply.body
    assert.ok(n < 100, JSON.stringify(reply))
    await pause(300)
  }
}

const importContacts = async (call: Call, count: number): Promise<void> => {
  for (let n = 0; n < count; n += 500) {
    const rows = Array.from({ length: Math.min(500, count - n) }, (_, i) => ({
      phone: `+${phoneOf(n + i)}`,
      ...((n + i) % 3 === 0 ? {} : { name: `Ada ${n + i}` }),
    }))
    await insist(call, 'POST', '/v1/contacts/import', { rows })
  }
}

/** Every kind but the plain: what staff and the provider know of them. */
const prepareKinds = async (
  { call, sandbox }: Scene,
  location: Parameters<typeof withStorage>[0],
  workspaceId: string,
  count: number,
): Promise<void> => {
  const of = (kind: string): string[] =>
    Array.from({ length: count }, (_, n) => n).flatMap((n) => (kindOf(n) === kind ? [phoneOf(n)] : []))
  await withStorage(location, async ({ db }) => {
    await sql`
      update contacts set dnd = true
      where workspace_id = ${workspaceId} and phone = any(${of('dnd')}::text[])`.execute(db)
    // The same user id as the contact before.
    for (const phone of of('double'))
      await sql`update contacts set chatapp_user_id = ${`DE.D${phone}`} where workspace_id = ${workspaceId}
        and phone in (${phone}, ${String(BigInt(phone) - 1n)})`.execute(db)
    const { rows } = await sql<{ id: string }>`
      select id from contacts where workspace_id = ${workspaceId} and phone = any(${of('withdrawn')}::text[])`.execute(
      db,
    )
    for (const { id } of rows)
      await insist(call, 'POST', `/v1/contacts/${id}/consents`, { state: 'withdrawn', source: 'staff' })
  })
  for (const to of of('refused'))
    await control(sandbox, 'faults', { on: 'messages', to: `+${to}`, code: 131026 })
  for (const to of of('slow'))
    await control(sandbox, 'faults', { on: 'messages', to: `+${to}`, code: 131056, times: 1 })
}

type Job = { state: string; total: number; done: number; problem: unknown }

/** Kills servers, loses answers and throttles while a broadcast is sent, until it is done. */
const disturb = async (
  { call, sandbox, killServer }: Scene,
  jobId: string,
): Promise<{ kills: number; job: Job }> => {
  const left = [...KILLS]
  for (;;) {
    const job: Job = await insist(call, 'GET', `/v1/jobs/${jobId}`)
    if (job.state !== 'running') return { kills: KILLS.length - left.length, job }
    if (left.length > 0 && job.done >= left[0]! * job.total) {
      left.shift()
      await killServer()
    }
    await control(sandbox, 'faults', { on: 'messages', drop_answer: true, times: 2 })
    if (randomInt(0, 20) === 0) await control(sandbox, 'faults', { on: 'messages', code: 130429, times: 1 })
    await pause(500)
  }
}

const run = async (count: number): Promise<void> => {
  const place = await createDatabase('postgresql')
  let scene: Scene | undefined
  try {
    const { key, workspaceId } = await prepareWorkspace(place.location)
    await withStorage(place.location, ({ db }) =>
      sql`update templates set category = 'MARKETING' where workspace_id = ${workspaceId}`.execute(db),
    )
    scene = await startScene(place.flags, key, 2)
    const { call, sandbox } = scene
    await importContacts(call, count)
    // This call makes the server register its number and template with the sandbox.
    await insist(call, 'GET', '/sandbox/templates')
    await insist(call, 'POST', '/sandbox/account', { action: 'limit', value: 'TIER_UNLIMITED' })
    await prepareKinds(scene, place.location, workspaceId, count)
    const template = {
      name: 'order_update',
      language: 'en_US',
      body: [{ field: 'name', fallback: 'there' }],
    }
    const input = {
      filter: { phoneNumber: { startsWith: '4930' } },
      template,
      per_second: 1000,
      stop_at_error_percent: 100,
    }
    const startedAt = performance.now()
    const show = { 'Api-Plan': 'show' }
    const { plan } = await insist(call, 'POST', '/v1/messages/bulk?dry_run=true', input, show)
    const rehearsedAt = performance.now()
    const begun = await insist(call, 'POST', '/v1/messages/bulk', input, { 'Api-Plan': plan.token })
    const begunAt = performance.now()
    const { kills, job } = await disturb(scene, begun.job.id)
    const seconds = (performance.now() - begunAt) / 1000
    assert.equal(job.state, 'done', JSON.stringify(job))

    const expected = new Set<string>()
    for (let n = 0; n < count; n++) {
      const isFirstOfDouble = kindOf(n + 1) === 'double' && n + 1 < count
      if (['plain', 'slow'].includes(kindOf(n)) || isFirstOfDouble) expected.add(phoneOf(n))
    }
    // What a killed server had begun is looked up at the provider.
    const settle = async () => {
      for (let n = 0; n < 60; n++) {
        const { totals } = await insist(call, 'GET', `/v1/broadcasts/${begun.broadcast.id}`)
        const open = totals.recipients - totals.sent - totals.failed
        const held = await listProviderMessages(sandbox)
        if (totals.sent === held.length) return { totals, open, held }
        await pause(1000)
      }
      throw new Error('What the provider holds is not what is stored.')
    }
    const { totals, open, held } = await settle()
    const to = held.map((message) => (message as unknown as { to: string }).to)
    assert.equal(new Set(to).size, to.length, 'somebody has two messages')
    assert.deepEqual(
      to.filter((phone) => !expected.has(phone)),
      [],
      'somebody has a message who should have none',
    )
    const missing = [...expected].filter((phone) => !to.includes(phone))
    assert.ok(open <= kills * IN_FLIGHT, `${open} are not known`)
    // Their server was killed between the commit and the call; some would have been refused.
    const waiting = await insist(
      call,
      'GET',
      `/v1/broadcasts/${begun.broadcast.id}/recipients?message_status=pending&limit=100`,
    )
    const unknown = new Set(waiting.data.map((one: any) => one.contact.phone))
    assert.deepEqual(
      missing.filter((phone) => !unknown.has(phone)),
      [],
      'somebody was left out',
    )
    assert.deepEqual(
      to.filter((phone) => unknown.has(phone)),
      [],
      'a message is not known',
    )
    process.stdout.write(
      `${count} contacts, ${totals.recipients} recipients, ${to.length} sent once, ` +
        `${totals.failed} refused, ${open} unknown after ${kills} kills; rehearsed in ` +
        `${Math.round(rehearsedAt - startedAt)} ms, begun in ${Math.round(begunAt - rehearsedAt)} ms, ` +
        `${Math.round(seconds)} s, ${(to.length / seconds).toFixed(1)} messages/s\n`,
    )
  } finally {
    await scene?.close()
    await place.remove()
  }
}

describe('A broadcast, servers killed and answers lost (postgresql)', () => {
  it('reaches each recipient once, and nobody who declined', { timeout: 3_600_000 }, () => run(COUNT))
})
