import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe } from 'node:test'
import { pino } from 'pino'
import { MAX_BODY_BYTES } from '../../server/http/body.ts'
import { nodeHandler } from '../../server/http/node.ts'
import { createSandbox, type Sandbox } from '../../server/sandbox/emulator/sandbox.ts'
import type { Db } from '../../storage/database.ts'
import { DEFAULT_SANDBOX_SETTINGS } from '../../storage/sandbox/settings.ts'
import { databases, onMigratedDatabase } from '../databases.ts'

/** The sandbox as a client of the provider sees it: over HTTP, and with a receiver for its webhooks. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests look into answers freely
export type Reply = { status: number; body: any; headers: Headers }
type Change = { field: string; account: string; value: Record<string, any> }
export type Side = {
  db: Db
  url: string
  /** A number and an account of the test's own. */
  number: string
  account: string
  sandbox: Sandbox
  clock: { offsetMs: number }
  /** Webhooks that came, as changes in their order. */
  changes: Change[]
  /** Bodies and signatures of webhooks. */
  webhooks: { body: string; signature: string | undefined }[]
  /** What the receiver answers; the next of `answers` first. */
  answers: number[]
  call: (method: string, path: string, body?: unknown, headers?: Record<string, string>) => Promise<Reply>
  control: (method: string, path: string, body?: unknown) => Promise<Reply>
  /** The sandbox as a server that starts anew would make it. */
  another: () => Sandbox
}

export const TOKEN = 'EAAsandbox-token'
export const SECRET = 'an app secret'

const listen = async (
  handle: Parameters<typeof createServer>[1],
): Promise<{ server: Server; url: string }> => {
  const server = createServer(handle)
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

const textOf = async (request: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

type Work = (side: Side) => Promise<void>
export type WithSandbox = (work: Work, own?: { number: string; account: string }) => Promise<void>

/** Tests on every database; each makes its own number and account, and leaves the sandbox as a new one is. */
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
      define(async (work, own) => {
        count++
        await runSide(
          await opened.promise,
          own ?? { number: `10654035200${count}`, account: `10229012900${count}` },
          work,
        )
      })
    })
  }
}

const runSide = async (
  db: Db,
  { number, account }: { number: string; account: string },
  work: Work,
): Promise<void> => {
  const changes: Change[] = []
  const webhooks: Side['webhooks'] = []
  const answers: number[] = []
  const receiver = await listen(
    (request, response) =>
      void (async () => {
        const query = new URL(request.url!, 'http://x').searchParams
        if (request.method === 'GET')
          return response
            .writeHead(query.get('hub.verify_token') === 'right' ? 200 : 403)
            .end(query.get('hub.challenge'))
        const body = await textOf(request)
        const status = answers.shift() ?? 200
        webhooks.push({ body, signature: request.headers['x-hub-signature-256'] as string | undefined })
        const entries = (JSON.parse(body) as { entry: { id: string; changes: Change[] }[] }).entry
        if (status === 200)
          for (const { id, changes: own } of entries)
            if (id === account) changes.push(...own.map((change) => ({ ...change, account: id })))
        response.writeHead(status).end()
      })(),
  )
  const clock = { offsetMs: 0 }
  const another = (): Sandbox =>
    createSandbox({
      db,
      now: () => new Date(Date.now() + clock.offsetMs).toISOString(),
      token: TOKEN,
      appSecret: SECRET,
      verifyToken: 'right',
      callbackUrl: () => `${receiver.url}/hook`,
      log: pino({ level: process.env.WCRM_TEST_LOG ?? 'silent' }),
      clock: {
        offsetMs: () => clock.offsetMs,
        setOffset: async (ms) => {
          clock.offsetMs = ms
        },
      },
    })
  const sandbox = another()
  const handle = nodeHandler(
    (request) => sandbox.fetch(request, new URL(request.url).pathname.replace('/base', '')),
    { maxRequestBodySize: MAX_BODY_BYTES },
  )
  const served = await listen((request, response) => {
    void handle(request, response)
  })
  const url = `${served.url}/base`
  const call: Side['call'] = async (method, path, body, headers = {}) => {
    const raw = body instanceof FormData || body instanceof Uint8Array || typeof body === 'string'
    const response = await fetch(`${url}/${path}`, {
      method,
      headers: {
        Authorization: `Bearer ${TOKEN}`,
        ...(body === undefined || raw ? {} : { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: raw ? (body as FormData) : JSON.stringify(body) }),
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
  const control: Side['control'] = (method, path, body) =>
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
    await work({
      db,
      url,
      number,
      account,
      sandbox,
      clock,
      changes,
      webhooks,
      answers,
      call,
      control,
      another,
    })
  } finally {
    await control('DELETE', 'faults')
    await control('POST', 'settings', { ...DEFAULT_SANDBOX_SETTINGS })
    answers.length = 0
    await sandbox.drain()
    for (const { server } of [served, receiver]) {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    }
  }
}

export const text = (
  to: string,
  body: string,
  more: Record<string, unknown> = {},
): Record<string, unknown> => ({
  messaging_product: 'whatsapp',
  recipient_type: 'individual',
  to,
  type: 'text',
  text: { body },
  ...more,
})
