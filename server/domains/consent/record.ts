import {
  findConsent,
  insertConsentChange,
  listWithdrawals,
  type NewConsentChange,
} from '../../../storage/contacts/consents.ts'
import type { ChangeContext } from '../../change-context.ts'

/** The purpose that marketing templates need. */
export const MARKETING = 'marketing'
/** Every type of channel. */
export const ALL_CHANNELS = 'all'

export type ConsentContext = ChangeContext<'consent.changed/1'>

/** Records what a locked contact consented to, and emits the event when that changes something. */
export const addConsent = async (
  { tx, workspaceId, now, emit }: ConsentContext,
  change: Omit<NewConsentChange, 'recorded_at'>,
): Promise<{ id: string; holds: boolean; changed: boolean }> => {
  const added = await insertConsentChange(tx, workspaceId, { ...change, recorded_at: now })
  const { contact_id, purpose, channel, state, source, at } = change
  if (added.changed)
    emit('consent.changed/1', {
      consent: { id: added.id, contact_id, purpose, channel, state, source, at },
    })
  return added
}

/** Records what a customer says of marketing, by a word or at the provider. It holds on all channels. */
export const addMarketingConsent = async (
  context: ConsentContext,
  contactId: string,
  said: Pick<NewConsentChange, 'state' | 'source' | 'proof' | 'at'> & { staff_id?: string },
): Promise<void> => {
  await addConsent(context, {
    staff_id: null,
    ...said,
    contact_id: contactId,
    purpose: MARKETING,
    channel: ALL_CHANNELS,
  })
}

/**
 * Records a word that a customer wrote. START only takes back a STOP: of a customer who wrote none it says nothing of
 * marketing, and it does not undo what was withdrawn in another way.
 */
export const addConsentWord = async (
  context: ConsentContext,
  contactId: string,
  said: Pick<NewConsentChange, 'state' | 'proof' | 'at'>,
): Promise<void> => {
  if (said.state === 'granted') {
    const consent = await findConsent(context.tx, context.workspaceId, contactId, MARKETING, ALL_CHANNELS)
    if (consent?.state !== 'withdrawn' || consent.source !== 'reply') return
  }
  await addMarketingConsent(context, contactId, { ...said, source: 'reply' })
}

/**
 * Undoes opt-outs of contacts at the provider, as do-not-disturb that is turned off does. A withdrawal of another
 * source stays.
 */
export const liftProviderOptOuts = async (
  context: ConsentContext,
  contactIds: readonly string[],
  staffId: string,
): Promise<void> => {
  const { tx, workspaceId, now } = context
  const request = { purpose: MARKETING, channel: ALL_CHANNELS, source: 'provider' } as const
  for (const { contact_id: contactId, at } of await listWithdrawals(tx, workspaceId, contactIds, request))
    await addMarketingConsent(context, contactId, {
      state: 'granted',
      source: 'staff',
      proof: 'Do-not-disturb was turned off.',
      // Not before what it undoes: the provider's clock may be ahead.
      at: at > now ? at : now,
      staff_id: staffId,
    })
}
