import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import type { Reply } from '../doors.ts'
import type { TestServer, TestWorkspace } from '../servers.ts'

/** A phone that no other test has: faults are ordered by it, and the sandbox is the server's. */
export const anyPhone = (): string =>
  `1555${randomInt(10 ** 7)
    .toString()
    .padStart(7, '0')}`

type Settling = TestServer & { settle: () => Promise<void> }
/** What the provider holds of a message: as it was posted, and how far it came. */
export type AtProvider = {
  id: string
  status: string
  to?: string
  type: string
  biz_opaque_callback_data: string
  [part: string]: unknown
}

/** Asks the sandbox through the door that drives it. */
export const asking =
  (server: { url: string }, { owner }: Pick<TestWorkspace, 'owner'>) =>
  async <T>(method: string, path: string, body?: object): Promise<T> => {
    const response = await fetch(`${server.url}/sandbox/${path}`, {
      method,
      headers: {
        Authorization: `Bearer ${owner.key}`,
        ...(body ? { 'Content-Type': 'application/json' } : {}),
      },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
    const text = await response.text()
    assert.ok(response.ok, `${method} ${path}: ${text}`)
    return JSON.parse(text) as T
  }

/** Drives the sandbox through its door, in a workspace. */
export const sandboxOf = (
  server: Pick<Settling, 'url' | 'settle'>,
  workspace: Pick<TestWorkspace, 'owner'>,
) => {
  const ask = asking(server, workspace)
  return {
    /** A customer writes, and we have heard of it. */
    say: async (say: object): Promise<void> => {
      await ask('POST', 'say', say)
      await server.settle()
    },
    status: async (messageId: string, status: string, code?: number): Promise<void> => {
      await ask('POST', 'status', { message_id: messageId, status, ...(code === undefined ? {} : { code }) })
      await server.settle()
    },
    fault: (fault: object) => ask('POST', 'faults', { on: 'messages', times: 1, ...fault }),
    advance: (by: string) => ask('POST', 'clock', { advance: by }),
    /** Messages to a phone, or to all. */
    sent: async (to?: string): Promise<AtProvider[]> =>
      (await ask<{ data: AtProvider[] }>('GET', `messages${to === undefined ? '' : `?to=${to}`}`)).data,
  }
}

/** The status, and what a problem says to programs. */
export const refusal = ({ status, body }: Reply): unknown[] => [
  status,
  body.code,
  ...(body.reason === undefined ? [] : [body.reason]),
  ...(body.errors ?? []).map((e: { pointer?: string; code: string }) => `${e.pointer ?? ''} ${e.code}`),
]
