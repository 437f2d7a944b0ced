// A shop that tells its customers by a message that an order is on its way; see README.md.
//
// POST /orders      {"id": "1001", "name": "Ada", "phone": "+1 555 010 0042"}
// GET  /orders/ID   the order, with the status of its message
// POST /webhooks    where wcrm sends what becomes of messages

import { createServer, type IncomingMessage } from 'node:http'
import { createClient, isWcrmError, verifyWebhook, WebhookVerificationError } from '@wcrm/client'
import { type Order, openStore } from './store.ts'

const readSetting = (name: string): string => {
  const value = process.env[name]
  if (!value) throw new Error(`set ${name}: README.md says where it comes from`)
  return value
}

const secret = readSetting('WEBHOOK_SECRET')
const wcrm = createClient({ url: readSetting('WCRM_URL'), apiKey: readSetting('WCRM_API_KEY') })
const { SHOP_FILE = 'shop.sqlite', PORT = '8791', CHECK_SECONDS = '60' } = process.env
const store = openStore(SHOP_FILE)

/**
 * Tells the customer. The keys follow from the order, so whoever repeats this, after a crash or a lost answer, gets
 * the first answer again, and the customer one message.
 */
const confirmOrder = async ({ id, name, phone }: Order): Promise<void> => {
  await wcrm.contacts.upsert({ phone, name, tags: ['Customer'] }, { idempotencyKey: `order-${id}-contact` })
  const { message } = await wcrm.messages.sendTemplate(
    { phone, template: { name: 'order_update', language: 'en_US', body: [name] } },
    { confirm: 'send', idempotencyKey: `order-${id}-message` },
  )
  if (message.id !== null) store.setMessage(id, message.id)
}

/** Sends the message of an order, or reads what became of it. */
const checkOrder = async (order: Order): Promise<void> => {
  if (order.messageId === null) return await confirmOrder(order)
  store.noteStatus(order.messageId, (await wcrm.messages.get({ message_id: order.messageId })).status)
}

/** Does what is left to do: messages that were not sent, and statuses whose webhooks did not arrive. */
const checkOrders = async (): Promise<void> => {
  for (const order of store.listOpen())
    await checkOrder(order).catch((error: unknown) => console.error(`order ${order.id}:`, error))
}

const readBody = async (request: IncomingMessage): Promise<string> => {
  request.setEncoding('utf8')
  let body = ''
  for await (const chunk of request) {
    body += chunk
    if (body.length > 1_000_000) throw new SyntaxError('The body is too large.')
  }
  return body
}

const readField = (body: object, name: string): string => {
  const value: unknown = Object.entries(body).find(([key]) => key === name)?.[1]
  if (typeof value !== 'string' || value === '') throw new SyntaxError(`${name} is missing.`)
  return value
}

type Answer = { status: number; body?: object | undefined }

const takeOrder = async (request: IncomingMessage): Promise<Answer> => {
  const body: unknown = JSON.parse(await readBody(request))
  if (typeof body !== 'object' || body === null) throw new SyntaxError('An order is an object.')
  const id = readField(body, 'id')
  store.addOrder({ id, name: readField(body, 'name'), phone: readField(body, 'phone') })
  const order = store.findOrder(id)
  if (order?.messageId === null) await confirmOrder(order)
  return { status: 201, body: store.findOrder(id) }
}

const takeWebhook = async (request: IncomingMessage): Promise<Answer> => {
  const event = await verifyWebhook({ secret, headers: request.headers, body: await readBody(request) })
  store.takeWebhook(event.id, () => {
    switch (event.type) {
      case 'message.sent':
      case 'message.delivered':
      case 'message.read':
      case 'message.failed':
        store.noteStatus(event.data.message.id, event.data.message.status)
    }
  })
  return { status: 204 }
}

const serve = async (request: IncomingMessage): Promise<Answer> => {
  const route = `${request.method} ${request.url}`
  if (route === 'POST /webhooks') return await takeWebhook(request)
  if (route === 'POST /orders') return await takeOrder(request)
  const [, id] = /^GET \/orders\/([^/]+)$/.exec(route) ?? []
  const order = id === undefined ? undefined : store.findOrder(decodeURIComponent(id))
  return order ? { status: 200, body: order } : { status: 404 }
}

/** What the caller did wrong is a 4xx; with a 5xx the caller, or wcrm for a webhook, tries again. */
const toAnswer = (error: unknown): Answer => {
  const message = error instanceof Error ? error.message : String(error)
  if (error instanceof WebhookVerificationError) return { status: 401 }
  if (error instanceof SyntaxError || error instanceof URIError)
    return { status: 400, body: { error: message } }
  if (isWcrmError(error) && error.status >= 400 && error.status < 500)
    return { status: 422, body: { error: message } }
  console.error(message)
  return { status: 500 }
}

const server = createServer((request, response) => {
  void serve(request)
    .catch(toAnswer)
    .then(({ status, body }) => {
      response.writeHead(status, { 'Content-Type': 'application/json' })
      response.end(body && JSON.stringify(body))
    })
})

const repeatChecks = async (): Promise<void> => {
  await checkOrders()
  setTimeout(() => void repeatChecks(), Number(CHECK_SECONDS) * 1000)
}

server.listen(Number(PORT), '127.0.0.1', () => {
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : PORT
  console.log(JSON.stringify({ url: `http://127.0.0.1:${port}` }))
  void repeatChecks()
})
