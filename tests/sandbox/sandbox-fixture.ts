import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe } from 'node:test'
import { pino } from 'pino'
import { nodeHandler } from '../../server/http/node.ts'
import { createSandbox, type Sandbox } from '../../packages/sandbox/emulator/sandbox.ts'
import type { Db } from '../../storage/database.ts'
import { DEFAULT_SANDBOX_SETTINGS } from '../../packages/sandbox/storage/settings.ts'
import { databases, onMigratedDatabase } from '../databases.ts'

/** A response of the sandbox. Tests access JSON bodies without types. */
export type SandboxReply = { status: number; body: any; headers: Headers }
/** One entry of `changes` in a webhook body, with the account it belongs to. */
type WebhookChange = { field: string; account: string; value: Record<string, any> }
/** The sandbox as a client of the provider sees it: over HTTP, with a receiver for its webhooks. */
export type SandboxFixture = {
  db: Db
  url: string
  /** A phone number and an account that no other test uses. */
  number: string
  account: string
  sandbox: Sandbox
  clock: { offsetMs: number }
  /** Changes that the receiver accepted, in the order of arrival. */
  changes: WebhookChange[]
  /** Bodies and signatures of all webhooks that arrived, rejected ones included. */
  webhooks: { body: string; signature: string | undefined }[]
  /** HTTP statuses of the receiver's next responses, one each; 200 when the list is empty. */
  hookStatuses: number[]
  call: (
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ) => Promise<SandboxReply>
  control: (method: string, path: string, body?: unknown) => Promise<SandboxReply>
  /** Creates another instance on the same database, as a restarted or second server would. */
  createInstance: () => Sandbox
}

const SANDBOX_TOKEN = 'EAAsandbox-token'
export const APP_SECRET = 'an app secret'

const startHttpServer = async (
  handle: Parameters<typeof createServer>[1],
): Promise<{ server: Server; url: string }> => {
  const server = createServer(handle)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

const readBody = async (request: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

type SandboxTest = (side: SandboxFixture) => Promise<void>
export type WithSandbox = (test: SandboxTest, ids?: { number: string; account: string }) => Promise<void>

/**
 * Defines a suite on every database. Each test gets a phone number and an account of its own; afterwards the
 * settings of the sandbox are the defaults again.
 */
export const everySandbox = (title: string, define: (withSandbox: WithSandbox) => void): void => {
  for (const database of databases) {
    describe(`${title} (${database})`, () => {
      const opened = Promise.withResolvers<Db>()
      const finished = Promise.withResolvers<void>()
      let open: Promise<void>
      let count = 0
      before(async () => {
        open = onMigratedDatabase(database, async (db) => {
          opened.resolve(db)
          await finished.promise
        })
        await Promise.race([opened.promise, open])
      })
      after(async () => {
        finished.resolve()
        await open
      })
      define(async (test, ids) => {
        count++
        await runSandboxTest(
          await opened.promise,
          ids ?? { number: `10654035200${count}`, account: `10229012900${count}` },
          test,
        )
      })
    })
  }
}

/** Starts a receiver of webhooks that keeps the changes of this account. */
const startReceiver = async (account: string) => {
  const changes: WebhookChange[] = []
  const webhooks: SandboxFixture['webhooks'] = []
  const hookStatuses: number[] = []
  const receiver = await startHttpServer(
    (request, response) =>
      void (async () => {
        const query = new URL(request.url!, 'http://x').searchParams
        if (request.method === 'GET')
          return response
            .writeHead(query.get('hub.verify_token') === 'right' ? 200 : 403)
            .end(query.get('hub.challenge'))
        const body = await readBody(request)
        const status = hookStatuses.shift() ?? 200
        webhooks.push({ body, signature: request.headers['x-hub-signature-256'] as string | undefined })
        const entries = (JSON.parse(body) as { entry: { id: string; changes: WebhookChange[] }[] }).entry
        if (status === 200)
          for (const { id, changes: entryChanges } of entries)
            if (id === account) changes.push(...entryChanges.map((change) => ({ ...change, account: id })))
        response.writeHead(status).end()
      })(),
  )
  return { receiver, changes, webhooks, hookStatuses }
}

/** Returns a caller of the sandbox's API. Forms, bytes and strings are sent as they are, the rest as JSON. */
const createCaller =
  (url: string): SandboxFixture['call'] =>
  async (method, path, body, headers = {}) => {
    const isRaw = body instanceof FormData || body instanceof Uint8Array || typeof body === 'string'
    const response = await fetch(`${url}/${path}`, {
      method,
      headers: {
        Authorization: `Bearer ${SANDBOX_TOKEN}`,
        ...(body === undefined || isRaw ? {} : { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: isRaw ? (body as FormData) : JSON.stringify(body) }),
    })
    const type = response.headers.get('content-type') ?? ''
    return {
      status: response.status,
      headers: response.headers,
      body: type.startsWith('application/json')
        ? await response.json()
        : Buffer.from(await response.arrayBuffer()),
    }
  }

const runSandboxTest = async (
  db: Db,
  { number, account }: { number: string; account: string },
  test: SandboxTest,
): Promise<void> => {
  const { receiver, changes, webhooks, hookStatuses } = await startReceiver(account)
  const clock = { offsetMs: 0 }
  const log = pino({ level: process.env.WCRM_TEST_LOG ?? 'silent' })
  const createInstance = (): Sandbox =>
    createSandbox({
      db,
      now: () => new Date(Date.now() + clock.offsetMs).toISOString(),
      token: SANDBOX_TOKEN,
      appSecret: APP_SECRET,
      verifyToken: 'right',
      callbackUrl: () => `${receiver.url}/hook`,
      log,
      clock: {
        offsetMs: () => clock.offsetMs,
        setOffset: async (ms) => {
          clock.offsetMs = ms
        },
      },
    })
  const sandbox = createInstance()
  const handle = nodeHandler(
    (request) => sandbox.fetch(request, new URL(request.url).pathname.replace('/base', '')),
    { publicUrl: 'http://sandbox', log },
  )
  const apiServer = await startHttpServer((request, response) => {
    void handle(request, response)
  })
  const url = `${apiServer.url}/base`
  const call = createCaller(url)
  const control: SandboxFixture['control'] = (method, path, body) =>
    call(method, path === '' ? 'control' : `control/${path}`, body)
  try {
    await control('PUT', 'numbers', {
      numbers: [
        {
          id: number,
          account_id: account,
          display_phone_number: '+1 650-555-1111',
          verified_name: 'Lucky Shrub',
        },
      ],
    })
    await test({
      db,
      url,
      number,
      account,
      sandbox,
      clock,
      changes,
      webhooks,
      hookStatuses,
      call,
      control,
      createInstance,
    })
  } finally {
    await control('DELETE', 'faults')
    await control('POST', 'settings', { ...DEFAULT_SANDBOX_SETTINGS })
    hookStatuses.length = 0
    await sandbox.drain()
    for (const { server } of [apiServer, receiver]) {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    }
  }
}

export const buildTextMessage = (
  to: string,
  body: string,
  fields: Record<string, unknown> = {},
): Record<string, unknown> => ({
  messaging_product: 'whatsapp',
  recipient_type: 'individual',
  to,
  type: 'text',
  text: { body },
  ...fields,
})
