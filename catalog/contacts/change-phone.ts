import { z } from 'zod'
import { DryRunWarnings } from '../fields.ts'
import { defineOperation } from '../operation.ts'
import { Contact, ContactId, PhoneInput, contact } from './schemas.ts'

/** For how many days messages from a number that a contact had find the contact. */
export const FORMER_PHONE_DAYS = 7

export const changePhone = defineOperation({
  name: 'crm_change_phone',
  cli: 'contacts change-phone',
  routes: ['POST /v1/contacts/{contact_id}/phone'],
  since: '2026-10-01',
  stability: 'stable',
  summary: 'Give a contact a new phone number',
  forModels: 'For a customer with a new number. Conversations, tags and values stay with the contact.',
  description:
    'The contact keeps its conversations, tags, groups and values, and its user id at the messaging ' +
    `app unless that is the old number; messages go to the new number. For ${FORMER_PHONE_DAYS} days, ` +
    'while one of its conversations is open, a message from the old number still arrives in it, unless ' +
    'it has another user id. Otherwise such a message creates a new contact, because the number may ' +
    'have a new owner. Another spelling of the current number changes nothing. 409 `phone_taken` when ' +
    'another contact has the new number: merge them with `crm_merge_contacts`. With hidden phone ' +
    'numbers, a dry run does not show whether a contact has the number, with `warnings`, and real ' +
    'calls are limited to a number of different phones a day (429, reason `phone_budget`).',
  words: 'change the phone number, replace, new number of a customer, moved to another number',
  scope: 'crm:write',
  dryRun: true,
  idempotency: 'optional',
  repeatable: true,
  confirm: 'rotate',
  versioned: { kind: 'contact', by: 'contact_id', at: 'contact' },
  emits: ['contact.updated/1'],
  input: z.object({
    contact_id: ContactId,
    phone: PhoneInput.describe(
      'The new number in international format with country code, such as `+1 555 010 0042`; local numbers starting ' +
        'with 0 are refused.',
    ),
  }),
  output: z.object({
    contact: Contact.describe('The contact.'),
    changed: z.boolean().describe('False: it had this number.'),
    warnings: DryRunWarnings,
  }),
  errors: ['not_found', 'conflict', 'confirm_required', 'precondition_failed'],
  examples: [
    {
      title: 'A new number',
      input: { contact_id: '42', phone: '+1 555 010 0142' },
      output: { contact: { ...contact, phone: '15550100142' }, changed: true },
    },
  ],
})
