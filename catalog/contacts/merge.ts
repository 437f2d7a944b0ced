import { z } from 'zod'
import { ContactName, ContactPhone, EXPENSIVE_READ, Id, idOf, list, page, Timestamp } from '../fields.ts'
import { defineOperation } from '../operation.ts'
import { untrusted } from '../text.ts'
import { Contact, ContactId, contact } from './schemas.ts'

const since = '2026-10-01'

/** For how many days a merge can be undone. */
export const UNDO_DAYS = 7

const FieldName = z
  .string()
  .max(70)
  .regex(
    /^(?:name|phone|email|external_id|chatapp_user_id|username|web_visitor_id|metadata|attributes\..+)$/,
    {
      error:
        'must be name, phone, email, external_id, chatapp_user_id, username, web_visitor_id, metadata or ' +
        'attributes.<key>',
    },
  )

const ComparedContact = z.object({
  name: ContactName,
  phone: ContactPhone.describe('E.164 digits without `+`; masked if phone numbers are hidden from you.'),
  created_at: Timestamp.describe('When it was created.'),
})

/** Why two contacts may be one person, the strongest first. */
export const duplicateReasons = ['user_id', 'phone', 'email', 'name'] as const

export const findDuplicates = defineOperation({
  name: 'crm_find_duplicates',
  cli: 'contacts duplicates',
  routes: ['GET /v1/contacts/duplicates'],
  since,
  stability: 'beta',
  summary: 'List pairs of contacts that may be one person',
  forModels:
    'The strongest reason first: the same user id at the provider, a phone that is in a custom field of the ' +
    'other, the same email, the same name with a conversation on one channel. Compare both before ' +
    '`crm_merge_contacts`. A page may have few rows, or none, and go on: follow `next_cursor`.',
  description:
    'By the strongest reason first: `user_id`, the same id at the provider; `phone`, one has the number of the ' +
    'other, in any spelling, in a custom field of the type phone, or both have it there; `email`, the same in a ' +
    'custom field of the type email, ignoring case; `name`, the same name, ignoring case, and a conversation on ' +
    'the same channel. Each contact is paired with the oldest one: `crm_merge_contacts` takes the ids of a row. ' +
    'Values that more than 20 contacts have are ignored. A page ends where it would read too much, with fewer ' +
    'rows or none and `next_cursor`. Only what you may see counts: with hidden phone numbers there are no pairs ' +
    'by phone, nor by names and ids that hold numbers. It is ' +
    EXPENSIVE_READ,
  heavy: true,
  slim: [
    'contact_id',
    'contact.name',
    'other_contact_id',
    'other_contact.name',
    'reasons.kind',
    'reasons.value',
  ],
  words:
    'duplicate contacts, find doubles, same person twice, contacts to merge, clean up contacts, possible ' +
    'duplicates, deduplicate, same email, same phone number',
  scope: 'mcp:read',
  view: [
    { path: 'contact_id', title: 'contact' },
    { path: 'contact.name', title: 'name' },
    { path: 'other_contact_id', title: 'other' },
    { path: 'other_contact.name', title: 'other name' },
    { path: 'reasons' },
  ],
  input: z.object(page),
  output: z.object(
    list(
      z.object({
        contact_id: idOf('contact').describe('The older one, which stays in a merge with these ids.'),
        other_contact_id: idOf('contact').describe('The other one.'),
        contact: ComparedContact.describe('The older one.'),
        other_contact: ComparedContact.describe('The other one.'),
        reasons: z
          .array(
            z.object({
              kind: z.enum(duplicateReasons).describe('What both share.'),
              value: untrusted(z.string().describe('The value that both have.'), { phone: 'text' }),
              channel_ids: z
                .array(Id)
                .optional()
                .describe('With `name`: the channels on which both have conversations.'),
            }),
          )
          .describe('The strongest first.'),
      }),
    ),
  ),
  errors: [],
  examples: [
    {
      title: 'Who is there twice',
      input: { limit: 1 },
      output: {
        data: [
          {
            contact_id: '42',
            other_contact_id: '43',
            contact: {
              name: 'Ada Lovelace',
              phone: '15550100042',
              created_at: '2026-09-01T09:30:00.000Z',
            },
            other_contact: { name: 'Ada', phone: null, created_at: '2026-10-01T09:30:00.000Z' },
            reasons: [{ kind: 'email', value: 'ada@example.com' }],
          },
        ],
        next_cursor: null,
      },
    },
  ],
})

export const mergeContacts = defineOperation({
  name: 'crm_merge_contacts',
  cli: 'contacts merge',
  routes: ['POST /v1/contacts/{contact_id}/merge'],
  since,
  stability: 'stable',
  summary: 'Merge two contacts of one person',
  description:
    'The contact `contact_id` stays and gets the conversations, tags, groups, broadcast recipients and ' +
    'bridge ids of the other one. The other one is deleted; `crm_get_contact` with its id returns the ' +
    'contact that stays. Its own fields win; those of the other fill gaps, and replace the fields in ' +
    '`prefer_other`. Do-not-disturb and the star apply if either had them. A dry run shows the result ' +
    'for each field. A message from a number that neither keeps creates a new contact. Until ' +
    '`undo_until`, `crm_undo_contact_merge` restores the other contact.',
  words:
    'merge duplicates, duplicate contacts, combine, deduplicate, dedupe, join two customers, same ' +
    'person twice',
  scope: 'crm:write',
  dryRun: true,
  idempotency: 'optional',
  repeatable: true,
  confirm: 'delete',
  versioned: { kind: 'contact', by: 'contact_id', at: 'contact' },
  emits: ['contact.updated/1', 'contact.deleted/1', 'contact.tags_added/1', 'contact.groups_added/1'],
  input: z.object({
    contact_id: ContactId.describe('The contact that stays.'),
    other_contact_id: ContactId.describe('The contact that is merged into it.'),
    prefer_other: z
      .array(FieldName)
      .max(100)
      .optional()
      .describe(
        'Fields for which the value of the other contact wins, if it has one: `name`, `phone`, `email`, ' +
          '`external_id`, `chatapp_user_id`, `username`, `web_visitor_id`, `metadata`, `attributes.<key>`.',
      ),
  }),
  output: z.object({
    contact: Contact.describe('The contact that stays.'),
    other_contact_id: idOf('contact').describe('The contact that was merged into it.'),
    fields: z
      .array(
        z.object({
          name: z.string().describe('Field, as `prefer_other` names it.'),
          winner: z.enum(['kept', 'other']).describe('Whose value the contact has now.'),
        }),
      )
      .describe('Fields for which the other contact has a value.'),
    undo_until: Timestamp.describe('When the merge can no longer be undone.'),
  }),
  errors: ['not_found', 'confirm_required', 'precondition_failed'],
  examples: [
    {
      title: 'Keep contact 42, with the name of contact 43',
      input: { contact_id: '42', other_contact_id: '43', prefer_other: ['name'] },
      output: {
        contact,
        other_contact_id: '43',
        fields: [
          { name: 'name', winner: 'other' },
          { name: 'phone', winner: 'kept' },
        ],
        undo_until: '2026-10-08T09:30:00.000Z',
      },
    },
  ],
})

export const undoContactMerge = defineOperation({
  name: 'crm_undo_contact_merge',
  cli: 'contacts undo-merge',
  routes: ['POST /v1/contacts/{merged_contact_id}/undo-merge'],
  since,
  stability: 'stable',
  summary: 'Undo a merge of contacts',
  description:
    'Restores a contact that was merged within the last 7 days, by `crm_merge_contacts` or because the ' +
    'provider reported both as one customer, with its id, fields, tags, groups and conversations. The ' +
    'contact that stayed gets its previous fields back, except those that changed since; messages that ' +
    'arrived since stay in their conversations. Tags, groups and custom fields that were deleted since ' +
    'are not restored. 409 when another contact now has its phone or external id, or when the contact ' +
    'that stayed was itself merged: undo that first.',
  words: 'unmerge contacts, split a merged contact, revert a merge, wrong merge, separate',
  scope: 'crm:write',
  dryRun: true,
  idempotency: 'optional',
  effect: 'replaces',
  repeatable: true,
  // It takes back what a person did with two records, an opt-out that one of them brought too.
  asks: true,
  emits: [
    'contact.created/1',
    'contact.updated/1',
    'contact.tags_added/1',
    'contact.tags_removed/1',
    'contact.groups_added/1',
    'contact.groups_removed/1',
  ],
  input: z.object({
    merged_contact_id: ContactId.describe('The contact that was merged into another one.'),
  }),
  output: z.object({
    contact: Contact.describe('The contact that is back.'),
    kept_contact: Contact.describe('The contact into which it had been merged.'),
  }),
  errors: ['not_found', 'conflict', 'forbidden'],
  examples: [
    {
      title: 'Undo the merge of contact 201 into 42',
      input: { merged_contact_id: '201' },
      output: {
        contact: { ...contact, id: '201', external_id: null },
        kept_contact: contact,
      },
    },
  ],
})
