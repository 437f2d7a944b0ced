import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { sql } from 'kysely'
import { resolveSandboxSettings, WEBHOOK_PATH } from '../../server/provider/settings.ts'
import { doAs } from '../calls.ts'
import { makeWorkspace, type TestServer, type TestWorkspace } from '../servers.ts'

/** An object in a webhook body, in the format of the provider. */
export type WebhookPart = Record<string, unknown>

const settings = resolveSandboxSettings('a secret of at least sixteen', 'http://localhost')
const { appSecret } = settings
export const { verifyToken } = settings

export const signWebhookBody = (body: string | Buffer, secret = appSecret): string =>
  `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`

export const postWebhook = (
  server: Pick<TestServer, 'url'>,
  body: string | Buffer,
  headers: Record<string, string> = { 'X-Hub-Signature-256': signWebhookBody(body) },
): Promise<Response> =>
  fetch(`${server.url}${WEBHOOK_PATH}`, {
    method: 'POST',
    body: body as string,
    headers: { 'Content-Type': 'application/json', ...headers },
  })

export const buildWebhookBody = (account: string, ...changes: WebhookPart[]): string =>
  JSON.stringify({ object: 'whatsapp_business_account', entry: [{ id: account, changes }] })

let serial = 0
/** Returns a unique message id in the format of the provider. */
export const createWamid = (): string => `wamid.${process.pid}.${++serial}`

/** Returns Unix seconds as the provider writes them: a decimal string. */
export const toUnixSeconds = (iso: string): string => String(Math.floor(Date.parse(iso) / 1000))

/**
 * Creates a workspace with a connected channel. `deliver` posts a webhook and applies its updates. `contacts`
 * and the like read rows.
 */
export const createCustomerFixture = async (
  server: TestServer,
  fields: Parameters<typeof makeWorkspace>[1] = {},
) => {
  const workspace = await makeWorkspace(server, fields)
  const [account, number] = [`77${workspace.id}`, `88${workspace.id}`]
  const value = (parts: WebhookPart): WebhookPart => ({
    field: 'messages',
    value: {
      messaging_product: 'whatsapp',
      metadata: { display_phone_number: '15550100001', phone_number_id: number },
      ...parts,
    },
  })
  const deliver = async (...changes: WebhookPart[]): Promise<void> => {
    assert.equal((await postWebhook(server, buildWebhookBody(account, ...changes))).status, 200)
    await server.app.jobs.job('provider-updates').runOnce()
  }
  const { rows } = await sql<{ id: string }>`
    select coalesce(max(id), 0) as id from provider_updates`.execute(server.db)
  return {
    server,
    workspace,
    account,
    number,
    value,
    deliver,
    run: doAs(server, workspace.owner.key),
    ...createReaders(server, workspace, rows[0]!.id),
  }
}
export type CustomerFixture = Awaited<ReturnType<typeof createCustomerFixture>>

/** Builds a message of a customer; a text message by default. */
export const buildCustomerMessage = (
  from: string | null,
  fields: WebhookPart = {},
): WebhookPart & { id: string } => ({
  ...(from === null ? {} : { from }),
  id: createWamid(),
  timestamp: toUnixSeconds(new Date().toISOString()),
  type: 'text',
  text: { body: 'hello' },
  ...fields,
})

export const buildCustomerProfile = (waId: string | null, name?: string, userId?: string): WebhookPart => ({
  ...(name === undefined ? {} : { profile: { name } }),
  ...(waId === null ? {} : { wa_id: waId }),
  ...(userId === undefined ? {} : { user_id: userId }),
})

type ContactRow = {
  id: string
  name: string | null
  phone: string | null
  chatapp_user_id: string | null
  dnd: boolean
  last_activity_at: string | null
}
type MessageRow = {
  id: string
  conversation_id: string
  type: string
  direction: string
  status: string
  text: string | null
  content: WebhookPart | null
  reply_to_id: string | null
  provider_id: string
  created_at: string
  episode: number
}

/**
 * Reads rows of the workspace, of provider updates those after the given one: a subject that another workspace
 * used before is not its own. The arrays are plain copies, for `deepEqual`.
 */
const createReaders = ({ db }: TestServer, workspace: TestWorkspace, lastUpdateId: string) => ({
  contacts: async () => {
    const { rows } = await sql<ContactRow>`
      select id, name, phone, chatapp_user_id, dnd, last_activity_at
      from contacts where workspace_id = ${workspace.id} order by contacts.id`.execute(db)
    return [...rows]
  },
  messages: async () => {
    const { rows } = await sql<MessageRow>`
      select id, conversation_id, type, direction, status, text, content, reply_to_id, provider_id,
        created_at, episode
      from messages where workspace_id = ${workspace.id} order by created_at, messages.id`.execute(db)
    return [...rows]
  },
  events: async () => {
    const { rows } = await sql<{ type: string; data: Record<string, WebhookPart> }>`
      select type, data from events where workspace_id = ${workspace.id} order by id`.execute(db)
    return [...rows]
  },
  updates: async () => {
    const { rows } = await sql<{ kind: string; state: string; attempts: number; payload: unknown }>`
      select kind, state, attempts, payload from provider_updates
      where subject ~ ${`^(77|88|99)${workspace.id}$`} and id > ${lastUpdateId} order by id`.execute(db)
    return [...rows]
  },
})

/** Inserts a message that was sent to a customer. Returns its ids. */
export const insertSentMessage = async (
  { server: { db, app }, workspace, run }: CustomerFixture,
  phone: string,
  fields: { reference?: string; providerId?: string | null; status?: string; createdAt?: string } = {},
): Promise<{ id: string; wamid: string; conversationId: string }> => {
  const { id: contactId } = (await run('crm_upsert_contact', { phone })) as { id: string }
  const wamid = createWamid()
  const now = fields.createdAt ?? app.now()
  const providerId = fields.providerId === undefined ? wamid : fields.providerId
  const { rows } = await sql<{ id: string; conversation_id: string }>`
    with
      channel as (select id from channels where workspace_id = ${workspace.id} limit 1),
      conversation as (
        insert into conversations (workspace_id, contact_id, channel_id, state, created_at, updated_at)
        select ${workspace.id}::bigint, ${contactId}::bigint, id, 'open', ${now}::timestamptz,
          ${now}::timestamptz
        from channel
        returning id, channel_id
      )
    insert into messages (
      workspace_id, conversation_id, channel_id, direction, type, status, text, provider_id, reference,
      created_at, sent_at)
    select ${workspace.id}::bigint, id, channel_id, 'outbound', 'TEXT', ${fields.status ?? 'sent'}, 'hi',
      ${providerId}, ${fields.reference ?? null}, ${now}::timestamptz, ${now}::timestamptz
    from conversation
    returning id, conversation_id`.execute(db)
  return { id: rows[0]!.id, wamid, conversationId: rows[0]!.conversation_id }
}
