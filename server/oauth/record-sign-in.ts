import { normalizeClientName } from '../kernel/call.ts'
import { findKeyById } from '../../storage/access/keys.ts'
import { recordControl } from '../guards/audit/record.ts'
import type { App } from '../app.ts'
import { toActor } from '../kernel/authenticate.ts'
import { createRequestId } from '../ids.ts'

/**
 * Writes to the audit trail that a person signed in on a page with a login code, which made a key. `name`: what
 * for, such as `oauth.connect`; `userAgent`: of the browser.
 */
export const recordSignIn = async (
  app: App,
  {
    workspaceId,
    keyId,
    userAgent,
    name,
    input,
  }: {
    workspaceId: string
    keyId: string
    userAgent: string | undefined
    name: string
    input: Record<string, unknown>
  },
): Promise<void> => {
  const row = await findKeyById(app.db, workspaceId, keyId)
  if (!row) return
  await recordControl(app, {
    actor: toActor(row),
    trace: {
      door: 'rest',
      client: normalizeClientName(userAgent),
      requestId: createRequestId(),
      confirmed: true,
    },
    name,
    input,
    target: { type: 'key', id: keyId },
    outcome: { outcome: 'done' },
    limited: true,
  })
}
