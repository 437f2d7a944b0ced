import type { Handler } from '../../handler.ts'
import {
  type ConsentChangeRow,
  countConsentChanges,
  listConsentChanges,
} from '../../../storage/contacts/consents.ts'
import { hasContacts } from '../../../storage/labels/labels.ts'
import { lockContact } from '../../../storage/contacts/contacts.ts'
import type { Actor } from '../../kernel/context.ts'
import { createPage } from '../../kernel/paging.ts'
import { invalidField, notFound } from '../../kernel/problem.ts'
import { toChangeContext } from '../../change-context.ts'
import { hasHiddenPhones, listVisibleChannels } from '../../visibility/policy.ts'
import { addConsent } from './record.ts'

/** A proof may quote a phone, or a message on a channel that the staff member does not see. */
const canSeeProof = (actor: Actor): boolean => !hasHiddenPhones(actor) && listVisibleChannels(actor) === null

const showConsent = (actor: Actor, row: ConsentChangeRow & { holds: boolean }) => ({
  id: row.id,
  contact_id: row.contact_id,
  purpose: row.purpose,
  channel: row.channel,
  state: row.state,
  source: row.source,
  proof: canSeeProof(actor) ? row.proof : null,
  staff_id: row.staff_id,
  at: row.at,
  recorded_at: row.recorded_at,
  holds: row.holds,
})

export const recordConsent: Handler<'crm_record_consent'> = async (ctx, input) => {
  const { contact_id: contactId, purpose, channel, state, source, proof = null } = input
  const at = input.at === undefined ? ctx.now : new Date(input.at).toISOString()
  if (at > ctx.now)
    throw invalidField('at', 'future', 'is in the future', { fix: 'Send a time that has passed.' })
  if (!(await lockContact(ctx.tx, ctx.actor.workspace.id, contactId))) throw notFound('contact', contactId)
  const change = {
    contact_id: contactId,
    purpose,
    channel,
    state,
    source,
    proof,
    staff_id: ctx.actor.staff.id,
    at,
  }
  const { changed, ...added } = await addConsent(toChangeContext(ctx), change)
  const consent = showConsent(ctx.actor, { ...change, ...added, recorded_at: ctx.now })
  return { consent: { ...consent, id: ctx.dryRun ? null : added.id }, changed }
}

export const listConsents: Handler<'crm_list_consents'> = async (ctx, input) => {
  const { contact_id: contactId, purpose, ...page } = input
  const workspaceId = ctx.actor.workspace.id
  if (!(await hasContacts(ctx.tx, workspaceId, [contactId]))) throw notFound('contact', contactId)
  return await createPage({
    cursors: ctx.cursors,
    input: page,
    load: (after, limit) =>
      listConsentChanges(ctx.tx, workspaceId, contactId, { purpose }, after && after[0]!, limit),
    count: () => countConsentChanges(ctx.tx, workspaceId, contactId, { purpose }),
    toPosition: (row) => [row.id],
    toItem: (row) => showConsent(ctx.actor, row),
  })
}
