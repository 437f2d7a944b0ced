import assert from 'node:assert/strict'
import { sql } from 'kysely'
import type { NewTemplate } from '../templates/insert-template.ts'
import { callAs } from '../calls.ts'
import type { Reply } from '../doors.ts'
import { createSandboxDriver } from '../messaging/fixtures.ts'
import { insertSandboxTemplates } from '../messaging/send-template.ts'
import { makeWorkspace, type TestServer, type TestWorkspace } from '../servers.ts'

export const TEMPLATE = {
  name: 'autumn_blend',
  language: 'en_US',
  body: [{ field: 'name', fallback: 'there' }, { text: 'Friday' }],
}
const AUTUMN_BLEND: Partial<NewTemplate> = {
  name: 'autumn_blend',
  category: 'MARKETING',
  components: [
    { type: 'BODY', text: 'Hello {{1}}, the autumn blend arrives on {{2}}.' },
    { type: 'FOOTER', text: 'Reply STOP to stop' },
  ],
}

/** Inserts the template into a workspace. */
export const insertAutumnBlend = (server: TestServer, workspace: TestWorkspace): Promise<void> =>
  insertSandboxTemplates(server, workspace, AUTUMN_BLEND)

export const runSends = ({ app }: TestServer): Promise<number> => app.jobs.job('bulk-sends').runOnce()

/**
 * Sends until so many recipients are counted in the job, which `read` returns: the server's own job may be sending to
 * some of them.
 */
export const sendToAll = async (
  server: TestServer,
  recipients: number,
  read: () => Promise<any>,
): Promise<any> => {
  for (let n = 0; ; n++) {
    await runSends(server)
    await server.settle()
    const job = await read()
    if (job.changed + job.failed >= recipients || n === 30) return job
  }
}

/** Makes whatever a broadcast waits for due now, as the passing of real time does. */
export const endWaits = ({ db }: TestServer, workspaceId: string) =>
  sql`update runs set run_after = now() where workspace_id = ${workspaceId} and kind = 'broadcasts'`.execute(
    db,
  )

/** Goes on with a broadcast whose recipients the provider has put off. */
export const goOn = async (server: TestServer, workspaceId: string): Promise<void> => {
  await endWaits(server, workspaceId)
  await sql`update broadcast_recipients set retry_at = null where workspace_id = ${workspaceId}`.execute(
    server.db,
  )
  await runSends(server)
  await server.settle()
}

/** Returns a phone of a country with this calling code, of tests alone. */
export const phoneOf = (workspaceId: string, n: number, prefix = '1555'): string =>
  `${prefix}${String(1000 + (Number(workspaceId) % 9000))}${String(n).padStart(3, '0')}`

/** A workspace with the template. `add` makes contacts. */
export const createBulkScene = async (
  server: TestServer,
  templates: readonly Partial<NewTemplate>[] = [],
) => {
  const workspace = await makeWorkspace(server)
  await insertSandboxTemplates(server, workspace, AUTUMN_BLEND, ...templates)
  const call = callAs(server, workspace.owner.key)
  const run = async (op: string, input: Record<string, unknown>): Promise<any> => {
    const { status, body, text } = await call(op, input)
    assert.ok(status < 300, `${op}: ${text}`)
    return body
  }
  const add = async (fields: Record<string, unknown>): Promise<string> =>
    (await run('crm_upsert_contact', fields)).id
  const send = (input: Record<string, unknown> = {}): Promise<Reply> =>
    call('messaging_send_bulk', { filter: {}, all: true, template: TEMPLATE, ...input }, { confirm: 'send' })
  return {
    workspace,
    call,
    run,
    add,
    send,
    sandbox: createSandboxDriver(server, workspace),
    rehearse: async (input: Record<string, unknown> = {}): Promise<any> =>
      run('messaging_send_bulk', { filter: {}, all: true, template: TEMPLATE, ...input, dry_run: true }),
    /** Begins a broadcast, and sends it. */
    sendAll: async (input: Record<string, unknown> = {}) => {
      const { status, body, text } = await send(input)
      assert.equal(status, 202, text)
      await runSends(server)
      await server.settle()
      return { jobId: String(body.job.id), broadcastId: String(body.broadcast.id), body }
    },
  }
}
export type BulkScene = Awaited<ReturnType<typeof createBulkScene>>
