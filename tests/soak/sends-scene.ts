import assert from 'node:assert/strict'
import type { Server } from 'node:net'
import type { Server as HttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { createChannel } from '../../storage/workspace/admin.ts'
import type { Location } from '../../storage/open.ts'
import { createOwner } from '../http/owner-key.ts'
import { insertTemplate } from '../templates/insert-template.ts'
import { withStorage } from '../databases.ts'
import { type ServerProcess, startCommand } from '../process.ts'

const PROVIDER_NUMBER_ID = '100200777'
const CUSTOMER_COUNT = 40

/** Listens on a free port, or on this one; returns the URL. */
export const listen = async (server: Server | HttpServer, port = 0): Promise<string> => {
  await new Promise<void>((listening) => server.listen(port, '127.0.0.1', listening))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

export type SandboxSecrets = { token: string; app_secret: string; verify_token: string }
export type SandboxProcess = ServerProcess & { said: SandboxSecrets }

/** Starts a standalone sandbox, which keeps its state in this folder. */
export const startSandbox = (dataDir: string, port: number, webhookUrl: string): Promise<SandboxProcess> =>
  startCommand<SandboxSecrets>(
    `sandbox serve --port ${port} --data ${dataDir} --webhook-url ${webhookUrl} --json`.split(' '),
  )

/** Calls the control surface of a standalone sandbox. */
const control = async <T>(
  { url, said: { token } }: SandboxProcess,
  method: string,
  path: string,
  body?: unknown,
): Promise<T> => {
  const response = await fetch(`${url}/control/${path}`, {
    method,
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  assert.ok(response.ok, `${method} ${path}: ${text}`)
  return JSON.parse(text) as T
}

/** Creates a workspace with a number, an approved template and a key. */
export const prepareWorkspace = (location: Location): Promise<{ key: string; workspaceId: string }> =>
  withStorage(location, async ({ db }) => {
    const { key, workspaceId } = await createOwner(db)
    const now = new Date().toISOString()
    await createChannel(
      db,
      workspaceId,
      {
        type: 'chatapp',
        name: 'Line',
        identifier: '15550100001',
        status: 'connected',
        is_default: true,
        account_id: '77',
        provider_phone_number_id: PROVIDER_NUMBER_ID,
      },
      now,
    )
    await insertTemplate(
      db,
      workspaceId,
      {
        account_id: '77',
        name: 'order_update',
        language: 'en_US',
        category: 'UTILITY',
        status: 'APPROVED',
        components: [
          { type: 'BODY', text: 'Hello {{1}}, your order is on its way.', example: { body_text: [['Ada']] } },
        ],
      },
      now,
    )
    return { key, workspaceId }
  })

/** One send, with a mark that is part of what the provider receives. */
export type Send = { mark: string; path: string; body: unknown }
export type Reply = {
  status: number
  body: {
    code?: string
    reason?: string
    idempotency_key?: string
    message?: { id: string }
    message_id?: string
    data?: { id: string }[]
  }
  replayed: boolean
}
export type Call = (method: string, path: string, body?: unknown, headers?: object) => Promise<Reply>

/** Returns a client of the servers at these URLs, each call to one of them. */
export const createCaller = (getUrl: () => string, key: string): Call => {
  return async (method, path, body, headers) => {
    const response = await fetch(getUrl() + path, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      headers: {
        Authorization: `Bearer ${key}`,
        'Content-Type': 'application/json',
        'Api-Confirm': 'send',
        ...headers,
      },
    })
    return {
      status: response.status,
      body: (await response.json()) as Reply['body'],
      replayed: response.headers.get('idempotent-replayed') === 'true',
    }
  }
}

/** Has customers write, and returns the ids of their conversations. */
export const openConversations = async (sandbox: SandboxProcess, call: Call): Promise<string[]> => {
  // This call makes the server register its number and template with the sandbox.
  assert.equal((await call('GET', '/sandbox/templates')).status, 200)
  for (let n = 0; n < CUSTOMER_COUNT; n++)
    await control(sandbox, 'POST', 'say', {
      number_id: PROVIDER_NUMBER_ID,
      from: `1555011${1000 + n}`,
      text: 'Hello?',
    })
  for (;;) {
    const { body } = await call('GET', '/v1/conversations?limit=100')
    if (body.data?.length === CUSTOMER_COUNT) return body.data.map(({ id }) => id)
    await pause(200)
  }
}

/** Returns so many sends, replies and templates in turn. */
export const createSends = (count: number, conversations: readonly string[]): Send[] =>
  Array.from({ length: count }, (_, n): Send => {
    const mark = `mark-${String(n).padStart(4, '0')}`
    return n % 2 === 0
      ? {
          mark,
          path: `/v1/conversations/${conversations[(n / 2) % conversations.length]}/messages`,
          body: { text: mark },
        }
      : {
          mark,
          path: '/v1/messages/template',
          body: {
            phone: `+1555012${1000 + n}`,
            template: { name: 'order_update', language: 'en_US', body: [mark] },
          },
        }
  })

export type ProviderMessage = {
  id: string
  status: string
  text?: { body: string }
  template?: { components: { parameters: { text: string }[] }[] }
}

export const listProviderMessages = async (sandbox: SandboxProcess): Promise<ProviderMessage[]> =>
  (await control<{ data: ProviderMessage[] }>(sandbox, 'GET', `messages?number_id=${PROVIDER_NUMBER_ID}`))
    .data

export const markOf = (held: ProviderMessage): string =>
  held.text?.body ?? held.template!.components[0]!.parameters[0]!.text
