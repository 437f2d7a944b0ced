import { createHmac } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before } from 'node:test'
import { startServer, type TestServer } from '../servers.ts'

/** A message as the provider received it; `reference` is ours. */
export type ReceivedMessage = { id: string; reference: string; phoneNumberId: string }

/** What the provider does with a call: whether it accepts the message, and whether it responds. */
type CallOutcome =
  | 'accept'
  | 'accept without response'
  | 'drop'
  | 'accept when released'
  | 'refuse when released'

const APP_SECRET = 'an app secret'

const UNSUPPORTED = {
  error: {
    message: '(#100) Unsupported get request',
    type: 'GraphMethodException',
    code: 100,
    fbtrace_id: 'A1',
  },
}

const UNDELIVERABLE = {
  error: { message: '(#131026) Message undeliverable', code: 131026, fbtrace_id: 'A1' },
}

const readText = async (request: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

/**
 * Starts a provider that has no look-up of messages, as the true one. `outcomes` are those of the next calls;
 * without one, it accepts the message. `asked`: paths of requests for anything but a send.
 */
export const startMessageProvider = async () => {
  const received: ReceivedMessage[] = []
  const outcomes: CallOutcome[] = []
  const asked: string[] = []
  let customer: { wa_id?: string; user_id?: string } = { wa_id: '1' }
  let arrived = Promise.withResolvers<void>()
  let released = Promise.withResolvers<void>()
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await readText(request)
    const respond = (status: number, value: unknown): void => {
      response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(value))
    }
    if (request.method !== 'POST' || !request.url!.endsWith('/messages')) {
      asked.push(`${request.method} ${request.url}`)
      return respond(400, UNSUPPORTED)
    }
    const outcome = outcomes.shift() ?? 'accept'
    const id = `wamid.${received.length + 1}`
    if (outcome !== 'drop')
      received.push({
        id,
        reference: (JSON.parse(body) as { biz_opaque_callback_data: string }).biz_opaque_callback_data,
        phoneNumberId: request.url!.split('/').at(-2)!,
      })
    if (outcome === 'drop' || outcome === 'accept without response') {
      request.socket.destroy()
      return
    }
    if (outcome.endsWith('when released')) {
      arrived.resolve()
      await released.promise
    }
    if (outcome === 'refuse when released') return respond(400, UNDELIVERABLE)
    respond(200, {
      messaging_product: 'whatsapp',
      contacts: [{ input: '1', ...customer }],
      messages: [{ id }],
    })
  }
  const server: Server = createServer((request, response) => void handle(request, response))
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    received,
    outcomes,
    asked,
    /** Sets how its responses name the customer from now on. */
    nameCustomer: (named: { wa_id?: string; user_id?: string }) => {
      customer = named
    },
    /** Options of a server that has this provider. */
    config: {
      providerUrl: url,
      providerToken: 'a token',
      providerAppSecret: APP_SECRET,
      providerVerifyToken: 'a verify token',
    },
    /** Resolves when a call with an outcome `… when released` has arrived; `release` lets it respond. */
    waitForCall: () => arrived.promise,
    release: () => {
      released.resolve()
      arrived = Promise.withResolvers<void>()
      released = Promise.withResolvers<void>()
    },
    close: async () => {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }
}

/** A template of the account of a workspace. */
export type MessageProvider = Awaited<ReturnType<typeof startMessageProvider>>

/** Starts such a provider and a server that sends by it, for the tests of a suite, and hands them over. */
export const useMessageProvider = (
  database: string,
  use: (started: { provider: MessageProvider; server: TestServer }) => void,
): void => {
  let close = async (): Promise<void> => {}
  before(async () => {
    const provider = await startMessageProvider()
    const server = await startServer(database, { provider: { ...provider.config } })
    close = async () => {
      await server.close()
      await provider.close()
    }
    use({ provider, server })
  })
  after(() => close())
}

export const createTemplate = (workspaceId: string) => ({
  account_id: `77${workspaceId}`,
  name: 'order_update',
  language: 'en_US',
  category: 'UTILITY',
  status: 'APPROVED',
  components: [{ type: 'BODY', text: 'Your order is on its way.' }],
})

/** Delivers statuses of a message to the server, in this order, and waits until they are applied. */
export const deliverStatuses = (
  server: TestServer,
  workspaceId: string,
  { id, reference }: ReceivedMessage,
  ...names: string[]
): Promise<void> => {
  const statuses = names.map((status) => ({
    id,
    status,
    timestamp: String(Math.floor(Date.now() / 1000)),
    recipient_id: '15550100001',
    biz_opaque_callback_data: reference,
    ...(status === 'failed' ? { errors: [{ code: 131026, title: 'Message undeliverable' }] } : {}),
  }))
  return deliver(server, workspaceId, { statuses })
}

/** Delivers statuses and messages of customers to the number of a workspace, and waits until they are applied. */
export const deliver = async (server: TestServer, workspaceId: string, updates: object): Promise<void> => {
  const value = {
    messaging_product: 'whatsapp',
    metadata: { display_phone_number: '15550100001', phone_number_id: `88${workspaceId}` },
    ...updates,
  }
  const body = JSON.stringify({
    object: 'whatsapp_business_account',
    entry: [{ id: `77${workspaceId}`, changes: [{ field: 'messages', value }] }],
  })
  const response = await fetch(`${server.url}/provider/webhook`, {
    method: 'POST',
    body,
    headers: {
      'Content-Type': 'application/json',
      'X-Hub-Signature-256': `sha256=${createHmac('sha256', APP_SECRET).update(body).digest('hex')}`,
    },
  })
  if (response.status !== 200) throw new Error(`The webhook answered ${response.status}.`)
  while ((await server.app.jobs.job('provider-updates').runOnce()) > 0);
}
