import { z } from 'zod'
import { BY_FILTER, target, targetAlternatives, targetResult } from '../bulk-jobs.ts'
import { deleted } from '../fields.ts'
import { defineOperation } from '../operation.ts'
import {
  Attributes,
  Contact,
  ContactExternalId,
  ContactId,
  Email,
  Name,
  TagName,
  contact,
  since,
} from './schemas.ts'
import { MetadataInput } from './metadata.ts'

export const updateContact = defineOperation({
  name: 'crm_update_contact',
  cli: 'contacts update',
  routes: ['PATCH /v1/contacts/{contact_id}'],
  since,
  stability: 'stable',
  summary: 'Change a contact',
  forModels: 'Omitted fields do not change.',
  description:
    'Omitted fields do not change. A name that is only a phone number is refused. With hidden phone ' +
    'numbers, writing a custom field of the type `phone` always counts as a change.',
  words:
    'edit a contact, change name or email of a customer, set a custom field or attribute value, remove ' +
    'clear set dnd do not disturb, star, block, mute, favorite, blacklist, birthday, address, correct ' +
    'a wrong name, fix a typo, surname',
  scope: 'crm:write',
  dryRun: true,
  idempotency: 'optional',
  effect: 'replaces',
  repeatable: true,
  versioned: { kind: 'contact', by: 'contact_id' },
  asks: { dnd: [false] },
  emits: ['contact.updated/1', 'consent.changed/1'],
  input: z.object({
    contact_id: ContactId,
    name: Name.nullable().optional().describe('Name, 1 to 255 characters; null clears it.'),
    email: Email.nullable()
      .optional()
      .describe('Email address, at most 255 characters; null or empty clears it.'),
    external_id: ContactExternalId.nullable()
      .optional()
      .describe(
        'Id of the contact in another system, 1 to 255 characters, unique in the workspace; null clears it.',
      ),
    attributes: Attributes.optional(),
    metadata: MetadataInput.optional(),
    dnd: z
      .boolean()
      .optional()
      .describe("Do-not-disturb. `false` undoes an opt-out: an AI agent's key asks a person."),
    starred: z.boolean().optional().describe('Starred.'),
  }),
  output: z.object(Contact.shape),
  errors: ['not_found', 'forbidden', 'conflict', 'precondition_failed'],
  examples: [
    {
      title: 'Star a contact',
      input: { contact_id: '42', starred: true },
      output: { ...contact, starred: true },
    },
  ],
})

export const deleteContact = defineOperation({
  name: 'crm_delete_contact',
  cli: 'contacts delete',
  routes: ['DELETE /v1/contacts/{contact_id}'],
  since,
  stability: 'stable',
  summary: 'Delete a contact',
  description: 'Its conversations remain, without a contact.',
  words: 'delete a customer, remove a contact, lead',
  scope: 'crm:write',
  dryRun: true,
  idempotency: 'optional',
  confirm: 'delete',
  repeatable: true,
  versioned: { kind: 'contact', by: 'contact_id' },
  emits: ['contact.deleted/1'],
  input: z.object({ contact_id: ContactId }),
  output: z.object(deleted),
  errors: ['not_found', 'conflict', 'confirm_required', 'precondition_failed'],
  examples: [{ title: 'Delete a contact', input: { contact_id: '42' }, output: { id: '42', deleted: true } }],
})

const bulk = {
  requested: 2,
  succeeded: 1,
  failed: 1,
  failures: [{ id: '43', code: 'not_found', message: 'No contact with the id 43.' }],
  stopped_early: false,
  matched: 1,
}

export const tagContacts = defineOperation({
  name: 'crm_tag_contacts',
  cli: 'contacts tag',
  routes: ['POST /v1/contacts/tag'],
  since,
  stability: 'stable',
  summary: 'Add tags to contacts',
  forModels: 'Unknown tag names are created. Tagging twice is harmless. By filter: dry run first.',
  description: `Unknown tag names are created. Tagging twice is harmless. ${BY_FILTER}`,
  words: 'add tag to contact, label a customer, tag customers, bulk tag, tag everyone of a filter, mark as',
  scope: 'crm:write',
  dryRun: true,
  idempotency: 'optional',
  effect: 'adds',
  repeatable: true,
  emits: ['contact.tags_added/1'],
  input: z.object({
    ...target,
    tags: z.array(TagName).min(1).max(20).describe('1 to 20 tag names or ids.'),
  }),
  output: z.object(targetResult),
  alternatives: targetAlternatives,
  heavy: ['filter', 'saved_filter_id'],
  jobs: true,
  errors: ['conflict', 'forbidden', 'not_found', 'service_unconfigured'],
  examples: [
    {
      title: 'One of two contacts does not exist',
      input: { contact_ids: ['42', '43'], tags: ['VIP'] },
      output: bulk,
    },
  ],
})

export const untagContacts = defineOperation({
  name: 'crm_untag_contacts',
  cli: 'contacts untag',
  routes: ['POST /v1/contacts/untag'],
  since,
  stability: 'stable',
  summary: 'Remove tags from contacts',
  forModels: 'Unknown tags are ignored. By filter: dry run first.',
  description: `Unknown tags are ignored. ${BY_FILTER}`,
  words: 'remove tag from contact, unlabel, untag customers, take a label away',
  scope: 'crm:write',
  dryRun: true,
  idempotency: 'optional',
  effect: 'replaces',
  repeatable: true,
  emits: ['contact.tags_removed/1'],
  input: z.object({
    ...target,
    tags: z.array(TagName).min(1).max(20).describe('1 to 20 tag names or ids.'),
  }),
  output: z.object(targetResult),
  alternatives: targetAlternatives,
  heavy: ['filter', 'saved_filter_id'],
  jobs: true,
  errors: ['conflict', 'forbidden', 'not_found', 'service_unconfigured'],
  examples: [
    {
      title: 'One of two contacts does not exist',
      input: { contact_ids: ['42', '43'], tags: ['VIP'] },
      output: bulk,
    },
  ],
})
