import assert from 'node:assert/strict'
import { unsealHeaders, unsealSecrets } from '../../server/domains/webhooks/secrets.ts'
import { findEndpoint } from '../../storage/webhooks/webhooks.ts'
import { callAs } from '../calls.ts'
import type { Door, Reply, Scene } from '../doors.ts'
import type { TestServer } from '../servers.ts'

export const url = 'https://example.com/hooks'

export const SECRET = /^whsec_([A-Za-z0-9+/]{43}=)$/

export const createEndpoint = async (
  call: Door['call'],
  input: Record<string, unknown> = {},
): Promise<Reply> => {
  const reply = await call('webhooks_create_endpoint', { url, ...input })
  assert.equal(reply.status, 201, reply.text)
  return reply
}

/** Returns the row of an endpoint with its secrets and headers unsealed. */
export const loadStored = async ({ db, app }: TestServer, workspaceId: string, id: string) => {
  const row = (await findEndpoint(db, workspaceId, id))!
  return { ...row, secrets: unsealSecrets(app, row, app.now()), headers: unsealHeaders(app, row) }
}

/** Returns a call that can confirm: the transport's own, or REST where the transport cannot (MCP). */
export const confirmingCall = ({ door, server, workspace }: Scene): Door['call'] =>
  door.confirms ? door.call : callAs(server, workspace.owner.key)

/** Returns the status, the pointer and the code of the first field error. */
export const toFieldError = ({ status, body }: Reply) => [
  status,
  body.errors?.[0]?.pointer ?? body.errors?.[0]?.parameter,
  body.errors?.[0]?.code,
]
