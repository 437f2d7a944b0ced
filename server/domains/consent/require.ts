import type { Context } from '../../handler.ts'
import { findConsent, listConsentStates } from '../../../storage/contacts/consents.ts'
import type { Recipient } from '../../../storage/messages/sends.ts'
import { Problem } from '../../kernel/problem.ts'
import { ALL_CHANNELS, MARKETING } from './record.ts'

export const doNotDisturbProblem = (
  what: 'broadcasts' | 'marketing templates',
  extras: Record<string, unknown> = {},
): Problem =>
  new Problem('conflict', `The contact is set to do not disturb, so ${what} are not sent.`, {
    reason: 'do_not_disturb',
    ...extras,
  })

/**
 * Throws 409 when the contact, which the caller has locked, declines marketing: by do-not-disturb, or by having
 * withdrawn the consent. Every send of marketing asks it in the transaction that writes the message.
 */
export const requireMarketingAllowed = async (
  ctx: Context,
  { id, dnd }: Pick<Recipient, 'id' | 'dnd'>,
  channelType: string,
): Promise<void> => {
  if (dnd) throw doNotDisturbProblem('marketing templates')
  const consent = await findConsent(ctx.tx, ctx.actor.workspace.id, id, MARKETING, channelType)
  if (consent?.state === 'withdrawn')
    throw new Problem(
      'conflict',
      `The contact withdrew the consent to marketing at ${consent.at}, so marketing templates are not sent. ` +
        'Templates of other categories are; a later grant is recorded with crm_record_consent.',
      { reason: 'consent_withdrawn' },
    )
}

/** Returns who of some contacts withdrew the consent to marketing on a type of channel, as a send would find it. */
export const loadMarketingWithdrawals = async (
  ctx: Context,
  contactIds: readonly string[],
): Promise<(contactId: string | null, channelType: string) => boolean> => {
  const states = await listConsentStates(ctx.tx, ctx.actor.workspace.id, contactIds, MARKETING)
  return (contactId, channelType) =>
    states.findLast(
      ({ contact_id: id, channel }) =>
        id === contactId && (channel === ALL_CHANNELS || channel === channelType),
    )?.state === 'withdrawn'
}
