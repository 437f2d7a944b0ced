import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import type { Reply } from '../doors.ts'
import type { TestServer, TestWorkspace } from '../servers.ts'

/** Returns a random phone number: tests share one sandbox, whose faults are set by phone number. */
export const generatePhone = (): string =>
  `1555${randomInt(10 ** 7)
    .toString()
    .padStart(7, '0')}`

/** A message at the provider, as it was posted, with its status. */
type PostedMessage = {
  id: string
  status: string
  to?: string
  type: string
  biz_opaque_callback_data: string
  [part: string]: unknown
}

/** Returns a client of the control API of the sandbox, for one workspace. */
export const createSandboxRequest =
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

/** Returns functions that drive the sandbox of a workspace through its control API. */
export const createSandboxDriver = (
  server: Pick<TestServer, 'url' | 'settle'>,
  workspace: Pick<TestWorkspace, 'owner'>,
) => {
  const request = createSandboxRequest(server, workspace)
  return {
    /** Sends a message from a customer, and waits until it is processed. */
    say: async (message: object): Promise<void> => {
      await request('POST', 'say', message)
      await server.settle()
    },
    status: async (messageId: string, status: string, code?: number): Promise<void> => {
      await request('POST', 'status', {
        message_id: messageId,
        status,
        ...(code === undefined ? {} : { code }),
      })
      await server.settle()
    },
    fault: (fault: object) => request('POST', 'faults', { on: 'messages', times: 1, ...fault }),
    advance: (by: string) => request('POST', 'clock', { advance: by }),
    /** Returns the messages sent to a phone number, or to all. */
    sent: async (to?: string): Promise<PostedMessage[]> =>
      (await request<{ data: PostedMessage[] }>('GET', `messages${to === undefined ? '' : `?to=${to}`}`))
        .data,
  }
}

/** Returns the status, code, reason and field errors of a problem. */
export const summarizeReply = ({ status, body }: Reply): unknown[] => [
  status,
  body.code,
  ...(body.reason === undefined ? [] : [body.reason]),
  ...(body.errors ?? []).map((e: { pointer?: string; code: string }) => `${e.pointer ?? ''} ${e.code}`),
]

/** Returns the types of the events of a workspace, oldest first. */
export const listEmittedEventTypes = async (
  { db }: Pick<TestServer, 'db'>,
  { id }: Pick<TestWorkspace, 'id'>,
): Promise<string[]> =>
  (await db.selectFrom('events').select('type').where('workspace_id', '=', id).orderBy('id').execute()).map(
    ({ type }) => type,
  )
