import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { sql } from 'kysely'
import { resolveProviderSettings, WEBHOOK_PATH } from '../../server/provider/settings.ts'
import { doAs } from '../calls.ts'
import { makeWorkspace, type TestServer, type TestWorkspace } from '../servers.ts'

/** Bodies as the provider writes them, signed, for tests of what they do. */
export type Part = Record<string, unknown>

const appSecret = resolveProviderSettings({}, 'a secret of at least sixteen', 'http://localhost').appSecret
export const verifyToken = resolveProviderSettings(
  {},
  'a secret of at least sixteen',
  'http://localhost',
).verifyToken

export const signatureOf = (body: string | Buffer, secret = appSecret): string =>
  `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`

export const post = (
  server: Pick<TestServer, 'url'>,
  body: string | Buffer,
  headers: Record<string, string> = { 'X-Hub-Signature-256': signatureOf(body) },
): Promise<Response> =>
  fetch(`${server.url}${WEBHOOK_PATH}`, {
    method: 'POST',
    body: body as string,
    headers: { 'Content-Type': 'application/json', ...headers },
  })

export const bodyOf = (account: string, ...changes: Part[]): string =>
  JSON.stringify({ object: 'whatsapp_business_account', entry: [{ id: account, changes }] })

let serial = 0
/** A message id that no other message has. */
export const randomWamid = (): string => `wamid.${process.pid}.${++serial}`

/** Seconds as the provider writes them. */
export const secondsOf = (iso: string): string => String(Math.floor(Date.parse(iso) / 1000))

/** A workspace with what the provider says to it. `say` posts and waits until all of it is worked off. */
export const customerScene = async (server: TestServer, fields: Parameters<typeof makeWorkspace>[1] = {}) => {
  const workspace = await makeWorkspace(server, fields)
  const [account, number] = [`77${workspace.id}`, `88${workspace.id}`]
  const value = (parts: Part): Part => ({
    field: 'messages',
    value: {
      messaging_product: 'whatsapp',
      metadata: { display_phone_number: '15550100001', phone_number_id: number },
      ...parts,
    },
  })
  const deliver = async (...changes: Part[]): Promise<void> => {
    assert.equal((await post(server, bodyOf(account, ...changes))).status, 200)
    await server.app.jobs.job('provider-updates').runOnce()
  }
  return {
    server,
    workspace,
    account,
    number,
    value,
    deliver,
    run: doAs(server, workspace.owner.key),
    ...eyes(server, workspace),
  }
}
export type CustomerScene = Awaited<ReturnType<typeof customerScene>>

/** A message of a customer, a text when nothing else is given. */
export const messageOf = (from: string | null, more: Part = {}): Part & { id: string } => ({
  ...(from === null ? {} : { from }),
  id: randomWamid(),
  timestamp: secondsOf(new Date().toISOString()),
  type: 'text',
  text: { body: 'hello' },
  ...more,
})

export const personOf = (waId: string | null, name?: string, userId?: string): Part => ({
  ...(name === undefined ? {} : { profile: { name } }),
  ...(waId === null ? {} : { wa_id: waId }),
  ...(userId === undefined ? {} : { user_id: userId }),
})

const eyes = ({ db }: TestServer, workspace: TestWorkspace) => ({
  contacts: async () => [
    ...(
      await sql<{
        id: string
        name: string | null
        phone: string | null
        chatapp_user_id: string | null
        dnd: boolean
        last_activity_at: string | null
      }>`
    select id, name, phone, chatapp_user_id, dnd, last_activity_at from contacts where workspace_id = ${workspace.id} order by contacts.id`.execute(
        db,
      )
    ).rows,
  ],
  messages: async () => [
    ...(
      await sql<{
        id: string
        conversation_id: string
        type: string
        direction: string
        status: string
        text: string | null
        content: Part | null
        reply_to_id: string | null
        provider_id: string
        created_at: string
        episode: number
      }>`
    select id, conversation_id, type, direction, status, text, content, reply_to_id, provider_id, created_at, episode from messages where workspace_id = ${workspace.id} order by created_at, messages.id`.execute(
        db,
      )
    ).rows,
  ],
  events: async () => [
    ...(
      await sql<{
        type: string
        data: Record<string, Part>
      }>`select type, data from events where workspace_id = ${workspace.id} order by id`.execute(db)
    ).rows,
  ],
  updates: async () => [
    ...(
      await sql<{ kind: string; state: string; attempts: number; payload: unknown }>`
    select kind, state, attempts, payload from provider_updates
      where subject ~ ${`^(77|88|99)${workspace.id}$`} order by id`.execute(db)
    ).rows,
  ],
})

/** A message that was sent to a customer, as the provider knows it. */
export const plantSent = async (
  { server: { db, app }, workspace, run }: CustomerScene,
  phone: string,
  more: { reference?: string; providerId?: string | null; status?: string } = {},
): Promise<{ id: string; wamid: string; conversationId: string }> => {
  const { id: contactId } = (await run('crm_upsert_contact', { phone })) as { id: string }
  const wamid = randomWamid()
  const now = app.now()
  const {
    rows: [row],
  } = await sql<{ id: string; conversation_id: string }>`
    with h as (select id from channels where workspace_id = ${workspace.id} limit 1), v as (
      insert into conversations (workspace_id, contact_id, channel_id, state, created_at, updated_at) select ${workspace.id}::bigint, ${contactId}::bigint, id, 'open', ${now}::timestamptz, ${now}::timestamptz from h returning id, channel_id)
    insert into messages (workspace_id, conversation_id, channel_id, direction, type, status, text, provider_id, reference, created_at, sent_at)
    select ${workspace.id}::bigint, id, channel_id, 'outbound', 'TEXT', ${more.status ?? 'sent'}, 'hi', ${more.providerId === undefined ? wamid : more.providerId}, ${more.reference ?? null}, ${now}::timestamptz, ${now}::timestamptz from v
    returning id, conversation_id`.execute(db)
  return { id: row!.id, wamid, conversationId: row!.conversation_id }
}
