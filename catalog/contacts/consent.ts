import { z } from 'zod'
import { ConsentSource, ConsentState } from '../consent-events.ts'
import { Id, idOf, listWithTotal, page, StoredInstant, Timestamp } from '../fields.ts'
import { defineOperation } from '../operation.ts'
import { untrusted } from '../text.ts'
import { ContactId } from './schemas.ts'

const since = '2026-10-01'

/** Key of a purpose or of a type of channel. */
const Key = z.string().regex(/^[a-z][a-z0-9_]{0,39}$/, 'must be 1 to 40 letters a-z, digits and _')

const Consent = z
  .object({
    id: Id.nullable().describe('Id of the record; null in a dry run.'),
    contact_id: idOf('contact').describe('Contact.'),
    purpose: Key.describe('What the consent is for, such as `marketing`.'),
    channel: Key.describe('Type of channel, such as `chatapp`, or `all`.'),
    state: ConsentState.describe('`granted` or `withdrawn`.'),
    source: ConsentSource.describe(
      'Source: `form`, `import`, `staff`, `reply` (the customer wrote a word such as STOP), or ' +
        '`provider`.',
    ),
    proof: untrusted(
      z
        .string()
        .nullable()
        .describe(
          'Proof. Null without one, and for staff with hidden phone numbers or limited to some channels.',
        ),
    ),
    staff_id: Id.nullable().describe('Staff member who recorded it.'),
    at: Timestamp.describe('When the customer said so.'),
    recorded_at: Timestamp.describe('When it was recorded.'),
    holds: z.boolean().describe('True: this record is in effect for its purpose and channel.'),
  })
  .meta({ id: 'Consent' })

const consent = {
  id: '31',
  contact_id: '42',
  purpose: 'marketing',
  channel: 'all',
  state: 'granted' as const,
  source: 'form' as const,
  proof: 'Newsletter form, box ticked',
  staff_id: '5',
  at: '2026-10-01T09:30:00.000Z',
  recorded_at: '2026-10-01T09:30:00.000Z',
  holds: true,
}

export const recordConsent = defineOperation({
  name: 'crm_record_consent',
  cli: 'contacts record-consent',
  routes: ['POST /v1/contacts/{contact_id}/consents'],
  since,
  stability: 'beta',
  summary: 'Record that a contact granted or withdrew consent',
  description:
    'The history is append-only. After a withdrawal of `marketing`, marketing templates are refused ' +
    'with 409 `consent_withdrawn` on that type of channel, until a later grant. A record whose `at` is ' +
    "earlier than the one in effect is stored, but changes nothing else. For a grant, an AI agent's " +
    'key asks a person.',
  words:
    'opt in, opt out, customer opted out, consent granted or withdrawn, subscribe, unsubscribe, no ' +
    'more marketing, stop messages, permission to write',
  scope: 'crm:write',
  dryRun: true,
  idempotency: 'optional',
  effect: 'adds',
  repeatable: false,
  asks: { state: ['granted'] },
  emits: ['consent.changed/1'],
  input: z.object({
    contact_id: ContactId,
    purpose: Key.default('marketing').describe('What the consent is for; `marketing` when absent.'),
    channel: Key.default('all').describe('Type of channel, such as `chatapp`; `all` when absent.'),
    state: ConsentState.describe('`granted` or `withdrawn`.'),
    source: z
      .enum(['form', 'import', 'staff'])
      .default('staff')
      .describe('How it came; `staff` when absent.'),
    proof: z.string().trim().min(1).max(2000).optional().describe('What proves it, 1 to 2000 characters.'),
    at: StoredInstant('Send the day on which the customer said so.')
      .optional()
      .describe('When the customer granted or withdrew it, not in the future; now when absent.'),
  }),
  output: z.object({
    consent: Consent.describe('The record.'),
    changed: z.boolean().describe('False: the state was the same before, or a later record exists.'),
  }),
  errors: ['not_found'],
  examples: [
    {
      title: 'A box ticked on a form',
      input: { contact_id: '42', state: 'granted', source: 'form', proof: 'Newsletter form, box ticked' },
      output: { consent, changed: true },
    },
  ],
})

export const listConsents = defineOperation({
  name: 'crm_list_consents',
  cli: 'contacts consents',
  routes: ['GET /v1/contacts/{contact_id}/consents'],
  since,
  stability: 'beta',
  summary: 'List what a contact consented to',
  description: 'The whole history, latest record first; `holds` marks the records in effect.',
  words:
    'consent history, opt-in status, did the customer agree to marketing, permission, subscribed, ' +
    'unsubscribed',
  scope: 'mcp:read',
  view: [
    { path: 'purpose' },
    { path: 'channel' },
    { path: 'state' },
    { path: 'source' },
    { path: 'at' },
    { path: 'proof', wrap: true },
  ],
  input: z.object({
    contact_id: ContactId,
    purpose: Key.optional().describe('Only for this purpose.'),
    ...page,
  }),
  output: z.object(listWithTotal(Consent)),
  errors: ['not_found'],
  examples: [
    {
      title: 'One form',
      input: { contact_id: '42' },
      output: { data: [consent], total: 1, next_cursor: null },
    },
  ],
})
