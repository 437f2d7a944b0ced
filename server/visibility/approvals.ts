import type { z } from 'zod'
import type { Approval, ApprovalStatus } from '../../catalog/approvals.ts'
import { findOperation } from '../../catalog/index.ts'
import type { EventData } from '../../catalog/events.ts'
import type { ApprovalReader, ApprovalRow } from '../../storage/agents/approvals.ts'
import type { Actor } from '../kernel/context.ts'
import { showContactName, showQuotingText } from './phones.ts'
import { canSeeChannel, canSeeManagerFields, listVisibleChannels } from './policy.ts'
import { compareViews } from './replays.ts'

/** The status at this time: the job that ends what expired may not have come yet. */
export const getStatus = (
  { status, expires_at: expiresAt }: Pick<ApprovalRow, 'status' | 'expires_at'>,
  now: string,
): ApprovalStatus => (status === 'pending' && expiresAt <= now ? 'expired' : status)

/**
 * Whose requests a key may read: an agent its own, also those of keys that took each other's place; managers all; other
 * staff those of their own keys.
 */
export const toReader = (actor: Actor): ApprovalReader => ({
  familyId: actor.key.agent ? actor.key.familyId : null,
  staffId: canSeeManagerFields(actor) ? null : actor.staff.id,
  channels: listVisibleChannels(actor),
  ownStaffId: actor.staff.id,
})

/** Whether this reader may know of a request. What is on a channel that they do not see does not exist. */
export const canSeeApproval = (actor: Actor, row: ApprovalRow): boolean => {
  const { familyId, staffId, channels, ownStaffId } = toReader(actor)
  const isVisible =
    channels === null ||
    (row.channel_ids.every((id) => canSeeChannel(actor, id)) &&
      // That of a send to a phone is not known before it is sent.
      (row.channel_ids.length > 0 || row.operation.startsWith('crm_') || row.staff_id === ownStaffId))
  return (
    (familyId === null || row.family_id === familyId) &&
    (staffId === null || row.staff_id === staffId) &&
    isVisible
  )
}

/**
 * Returns which parts of a request a reader may see, who may see less than the agent could when it asked. Calls on
 * contacts may hold anything that contacts have, under any name, so they are shown whole or not at all. What a send
 * tells is of its own channel, which the reader sees where they see the request.
 */
export const getVisibleParts = (
  actor: Actor,
  { view, operation, input }: ApprovalRow,
): { input: boolean; preview: boolean } => {
  const sees = compareViews(actor, view)
  const isOnContacts = operation.startsWith('crm_') || 'filter' in input
  const seesInput = !isOnContacts || (sees.fields && sees.phones)
  const seesChannels = sees.channels || findOperation(operation)?.confirm === 'send'
  return { input: seesInput, preview: seesInput && seesChannels && sees.fields && sees.phones }
}

/** Returns a request as this reader may see it. */
export const showApproval = (actor: Actor, row: ApprovalRow, now: string): z.input<typeof Approval> => ({
  id: row.id,
  status: getStatus(row, now),
  operation: row.operation,
  asked_by: {
    staff: { id: row.staff_id, name: row.staff_name },
    key: { id: row.key_id, name: row.key_name },
  },
  reason: row.reason,
  asked_for: row.asked_for,
  contact:
    row.contact_id === null ? null : { id: row.contact_id, name: showContactName(actor, row.contact_name) },
  requested_at: row.requested_at,
  expires_at: row.expires_at,
  decided_by: row.decided_by === null ? null : { id: row.decided_by, name: row.decided_by_name },
  decided_at: row.decided_at,
  note: row.note,
  outcome:
    row.outcome_status === null
      ? null
      : {
          status: row.outcome_status,
          ...(row.outcome && 'code' in row.outcome
            ? {
                code: row.outcome.code,
                reason: row.outcome.reason,
                detail: showQuotingText(actor, row.outcome.detail),
              }
            : { code: null, reason: null, detail: null, ...row.outcome }),
        },
  ended_at: row.ended_at,
})

/** Returns what events tell of a request: nothing of the call itself. */
export const toEventApproval = (
  row: Pick<ApprovalRow, 'id' | 'operation' | 'staff_id' | 'key_id' | 'channel_ids' | 'expires_at'>,
  status: ApprovalStatus,
): EventData<'approval.decided/1'>['approval'] => ({
  id: row.id,
  status,
  operation: row.operation,
  staff_id: row.staff_id,
  key_id: row.key_id,
  channel_ids: row.channel_ids,
  expires_at: row.expires_at,
})
