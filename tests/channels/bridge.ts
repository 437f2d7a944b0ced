import assert from 'node:assert/strict'
import { Webhook } from 'standardwebhooks'
import { createChannelToken, hashApiKey } from '../../server/api-keys.ts'
import { deliverDueReplies } from '../deliver-due.ts'
import { addSigningSecret } from '../../server/domains/channels/secrets.ts'
import { createSigningSecret } from '../../server/domains/webhooks/secrets.ts'
import { createChannel } from '../../storage/workspace/admin.ts'
import { addChannelToken, upsertChannelSecrets } from '../../storage/channels/secrets.ts'
import { callAs, doAs } from '../calls.ts'
import { makeWorkspace, type TestServer, type TestWorkspace } from '../servers.ts'
import { type Received, type Receiver, startReceiver } from '../webhooks/receiver.ts'

export type OwnChannel = { id: string; secret: string; token: string }

/** Creates a bridged channel, as `wcrm admin channels create --url` does. */
export const createOwnChannel = async (
  { db, app }: Pick<TestServer, 'db' | 'app'>,
  workspaceId: string,
  url: string | null,
  type = 'custom',
): Promise<OwnChannel> => {
  const fields = { type, name: `Own ${type}`, identifier: 'own', status: 'connected' as const, url }
  const { id } = await createChannel(db, workspaceId, fields, app.now())
  const [secret, token] = [createSigningSecret(), createChannelToken()]
  const key = { workspace_id: workspaceId, channel_id: id }
  await upsertChannelSecrets(db, addSigningSecret(app, key, secret)!)
  await addChannelToken(db, workspaceId, id, hashApiKey(token), 0)
  return { id, secret, token }
}

/** The JSON answer to a post of a bridge. */
export type Posted = { status: number; body: any; headers: Headers }

export const postAs = async (
  server: Pick<TestServer, 'url'>,
  channel: Pick<OwnChannel, 'id' | 'token'>,
  what: 'inbound' | 'statuses' | `inbound?${string}`,
  body: unknown,
): Promise<Posted> => {
  const response = await fetch(`${server.url}/channels/${channel.id}/${what}`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${channel.token}`, 'Content-Type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  return { status: response.status, body: await response.json(), headers: response.headers }
}

/** Posts what must be taken. Returns the answer's body. */
export const post = async (...args: Parameters<typeof postAs>): Promise<any> => {
  const { status, body } = await postAs(...args)
  assert.ok(status < 300, JSON.stringify(body))
  return body
}

/** Returns a delivered reply after its signature was checked as a bridge should. */
export const openDelivery = ({ headers, body }: Received, secret: string): any =>
  new Webhook(secret).verify(body, headers)

export type BridgeScene = {
  server: TestServer
  workspace: TestWorkspace
  channel: OwnChannel
  bridge: Receiver
  call: ReturnType<typeof callAs>
  run: ReturnType<typeof doAs>
  inbound: (message: object) => Promise<Posted>
  status: (status: object) => Promise<Posted>
  /** A customer says hello; returns the ids of the conversation and the contact. */
  hello: (from?: string) => Promise<{ conversation: string; contact: string; message: string }>
  reply: (conversation: string, input?: object) => ReturnType<ReturnType<typeof callAs>>
  /** Delivers what is due, and waits until it is recorded. */
  deliver: () => Promise<void>
}

/**
 * A workspace with a channel of its own, whose bridge records what it gets. The deliveries of this server, which has
 * `ownJobs`, are stopped: `deliver` makes them.
 */
export const createBridgeScene = async (server: TestServer, type = 'custom'): Promise<BridgeScene> => {
  await server.app.jobs.job('channel-deliveries').stop()
  const workspace = await makeWorkspace(server)
  const bridge = await startReceiver()
  const channel = await createOwnChannel(server, workspace.id, bridge.url, type)
  const [call, run] = [callAs(server, workspace.owner.key), doAs(server, workspace.owner.key)]
  let said = 0
  return {
    server,
    workspace,
    channel,
    bridge,
    call,
    run,
    inbound: (message) => postAs(server, channel, 'inbound', message),
    status: (status) => postAs(server, channel, 'statuses', status),
    hello: async (from = 'visitor-1') => {
      const message = { id: `hello-${++said}`, from: { id: from, name: 'Ada' }, text: 'Hello' }
      const answer = await post(server, channel, 'inbound', message)
      return {
        conversation: answer.conversation_id,
        contact: answer.contact_id,
        message: answer.message_id,
      }
    },
    reply: (conversation, input = { text: 'Hi Ada' }) =>
      call('messaging_send_reply', { conversation_id: conversation, ...input }, { confirm: 'send' }),
    deliver: async () => void (await deliverDueReplies(server.app)),
  }
}

/** Makes every waiting reply of a workspace due now. */
export const makeDue = async ({ db }: Pick<TestServer, 'db'>, workspaceId: string): Promise<void> => {
  await db
    .updateTable('runs')
    .set({ run_after: new Date(Date.now() - 1000).toISOString(), lease: null })
    .where('workspace_id', '=', workspaceId)
    .where('kind', '=', 'channel_deliveries')
    .execute()
}
