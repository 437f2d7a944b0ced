import { currentVersion, findOperation } from '../../catalog/index.ts'
import { defaultPolicy } from '../../catalog/policy.ts'
import { createKey } from '../../storage/access/admin-keys.ts'
import { findBoundFacts } from '../../storage/agents/policy.ts'
import { decideApproval, insertApproval } from '../../storage/agents/approvals.ts'
import type { Db } from '../../storage/database.ts'
import { createApiKey, hashApiKey } from '../api-keys.ts'
import { computeFingerprint } from '../kernel/idempotency.ts'
import { createRequestId } from '../ids.ts'
import { MINUTE_MS, toIso } from './time.ts'

/** How long a person may take: the demo workspace is looked at for days. */
const EXPIRES_AFTER_SECONDS = 7 * 24 * 3600

/** The conversation of a customer who wrote today: that of the examples of the catalog. */
const CONVERSATION_ID = '381'

const OPERATION = 'messaging_send_reply'

type DemoAsk = { text: string; reason: string; minutesAgo: number; declined?: { note: string } }

/** In order of their ids: the examples of the catalog read the first, and decide on the second. */
const asks: readonly DemoAsk[] = [
  {
    text: 'Your new bag arrives tomorrow, I promise.',
    reason: 'The customer waits for the new bag.',
    minutesAgo: 45,
    declined: { note: 'We do not promise a day.' },
  },
  {
    text: 'Your new bag has just left our roastery. Here is a coffee on us, for the trouble.',
    reason: 'The courier has collected the parcel.',
    minutesAgo: 10,
  },
]

/**
 * Creates the key of an AI agent that asks a person before it replies, and two replies that it asked for: one was
 * declined, the other waits. Nobody knows the text of the key.
 */
export const createDemoApprovals = async (
  tx: Db,
  workspaceId: string,
  { declinedBy, now }: { declinedBy: { staffId: string; keyId: string }; now: string },
): Promise<void> => {
  const facts = await findBoundFacts(tx, workspaceId, { conversationId: CONVERSATION_ID })
  if (!facts?.assigned_staff_id || facts.channel_id === null) return
  const agent = await createKey(
    tx,
    workspaceId,
    hashApiKey(createApiKey(false)),
    {
      staff_id: facts.assigned_staff_id,
      scopes: ['mcp:read', 'messaging:write', 'inbox:write'],
      name: 'assistant',
      agent: true,
      api_version: currentVersion,
      policy: { ...defaultPolicy, expires_after: EXPIRES_AFTER_SECONDS },
    },
    now,
  )
  for (const { text, reason, minutesAgo, declined } of asks) {
    const requestedMs = Date.parse(now) - minutesAgo * MINUTE_MS
    const input = { conversation_id: CONVERSATION_ID, text }
    const id = await insertApproval(tx, {
      workspace_id: workspaceId,
      key_id: agent.id,
      staff_id: agent.staff_id,
      operation: OPERATION,
      input,
      secrets: null,
      digest: computeFingerprint(findOperation(OPERATION)!, input),
      idempotency_key: null,
      door: 'mcp',
      client: null,
      request_id: createRequestId(),
      reason,
      asked_for: ['verb'],
      preview: { dry_run: true, conversation_id: CONVERSATION_ID, message: { type: 'TEXT', text } },
      plan: null,
      summary_version: null,
      summary_salt: null,
      view: { fields: false, channels: [facts.channel_id], agent: agent.id },
      contact_id: facts.contact_id,
      channel_ids: [facts.channel_id],
      requested_at: toIso(requestedMs),
      expires_at: toIso(requestedMs + EXPIRES_AFTER_SECONDS * 1000),
    })
    if (declined)
      await decideApproval(tx, workspaceId, id!, {
        status: 'declined',
        now: toIso(requestedMs + 5 * MINUTE_MS),
        staffId: declinedBy.staffId,
        keyId: declinedBy.keyId,
        note: declined.note,
        edited: null,
        runSeconds: 0,
      })
  }
}
