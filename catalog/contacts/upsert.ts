import { z } from 'zod'
import { Id, IdInput, idOf, VisibleName } from '../fields.ts'
import { mark, marks, toMarkedJsonSchema } from '../marks.ts'
import { defineOperation } from '../operation.ts'
import { TagRef } from '../tags.ts'
import { untrusted } from '../text.ts'
import { MetadataInput } from './metadata.ts'
import {
  Attributes,
  Contact,
  ContactExternalId,
  Email,
  Name,
  PhoneInput,
  TagName,
  contact,
  since,
} from './schemas.ts'

/** What a contact's answer looks like where a dry run may have made it. */
const WouldBeContact = z.object({
  ...Contact.shape,
  id: idOf('contact').nullable().describe('Contact id; null when a dry run would create it.'),
  tags: z
    .array(
      z.object({
        ...TagRef.shape,
        id: Id.nullable().describe('Tag id; null when a dry run would create it.'),
      }),
    )
    .describe('Tags by name.'),
})

const upsertFields = {
  phone: PhoneInput.optional()
    .describe(
      'International format with country code, such as `+1 555 010 0042`; local numbers starting with 0 ' +
        'are refused. All spellings of a number are one contact. Required for a new contact.',
    )
    .meta({ examples: ['+15550100042'] }),
  external_id: ContactExternalId.nullable()
    .optional()
    .describe(
      'Id of the contact in another system, 1 to 255 characters, unique in the workspace. Finds the contact, ' +
        'alone or beside `phone`; null clears it.',
    ),
  name: Name.optional().describe('Name, 1 to 255 characters.'),
  email: Email.optional().describe('Email address, at most 255 characters; empty clears it.'),
  attributes: Attributes.optional(),
  metadata: MetadataInput.optional(),
  dnd: z
    .boolean()
    .optional()
    .describe('True: do-not-disturb. `false` does not undo an opt-out; crm_update_contact does.'),
  starred: z.boolean().optional().describe('Starred.'),
  group_ids: z
    .array(mark(IdInput, { idOf: 'group' }))
    .max(50)
    .optional()
    .describe('Groups to add, at most 50.'),
  tags: z.array(TagName).max(20).optional().describe('Tags to add, at most 20 names or ids.'),
}

export const upsertContact = defineOperation({
  name: 'crm_upsert_contact',
  cli: 'contacts upsert',
  routes: ['POST /v1/contacts'],
  since,
  stability: 'stable',
  summary: 'Create a contact, or update the one with this phone number or external id',
  forModels:
    'Send `phone`, `external_id` or both; a new contact needs `phone`. Safe to repeat. ' +
    'Tags and groups are added, never removed; unknown tag names are created, ' +
    'unknown group ids refused.',
  description:
    'Repeated calls are safe. Send `phone`, `external_id` or both: a missing one is added to the ' +
    'contact, an existing one is never replaced. If they belong to different contacts it is a 409 ' +
    '`identity_conflict`; an unknown `external_id` without a phone is a 404. Groups and tags are ' +
    'added; existing ones are kept. Unknown tag names are created; unknown group ids are refused. A ' +
    'name that is only a phone number is not stored. With hidden phone numbers, a dry run returns the ' +
    'result for an unknown number, with `warnings`, and real calls are limited to a number of ' +
    'different phones a day (429, reason `phone_budget`).',
  words: 'create a contact, add a new customer, new lead, save a contact, register a client, person',
  scope: 'crm:write',
  dryRun: true,
  idempotency: 'optional',
  effect: 'replaces',
  repeatable: true,
  versioned: { kind: 'contact', at: 'contact' },
  emits: ['contact.created/1', 'contact.updated/1', 'contact.tags_added/1', 'contact.groups_added/1'],
  input: z.object(upsertFields),
  output: z.object({
    id: idOf('contact').nullable().describe('Contact id; null when a dry run would create it.'),
    action: z.enum(['created', 'updated', 'unchanged']).describe('What was done.'),
    contact: WouldBeContact.describe('The contact in full.'),
    warnings: z
      .array(z.string())
      .optional()
      .describe(
        'What was not done as sent, such as `dnd: false` for a contact that opted out; in a dry run with hidden ' +
          'phone numbers also what it cannot show.',
      ),
  }),
  errors: ['not_found', 'forbidden', 'conflict', 'upstream_error'],
  examples: [
    {
      title: 'A contact with an attribute and a tag',
      input: {
        phone: '+1 555 010 0042',
        external_id: 'C-1043',
        name: 'Ada Lovelace',
        email: 'ada@example.com',
        attributes: { plan: 'pro' },
        tags: ['VIP'],
      },
      output: { id: '42', action: 'created', contact: { ...contact, external_id: 'C-1043' } },
    },
  ],
})

/**
 * A row of an import: what an upsert takes. Each is checked by itself, so that a bad one does not stop the
 * others.
 */
export const ImportRow = z.strictObject({
  ...upsertFields,
  group_names: z.array(VisibleName(100)).max(50).optional().describe('Groups to add by name, at most 50.'),
})

export const importContacts = defineOperation({
  name: 'crm_import_contacts',
  cli: 'contacts import',
  routes: ['POST /v1/contacts/import'],
  since,
  stability: 'stable',
  summary: 'Create or update up to 500 contacts in one call',
  description:
    'Each row is an upsert and is validated separately: invalid rows are listed in `failures`, the ' +
    'others are written. All rows run in one transaction, in order, so two rows with the same phone or ' +
    'external id are one contact. Unknown tag names are created; a row with an unknown group fails, ' +
    'unless `create_missing_groups` is set. A name that is only a phone number is not stored. With ' +
    'hidden phone numbers, imports and their dry runs are refused (403, reason `phone_hidden`).',
  words:
    'import customers from a spreadsheet, upload CSV, bulk create contacts, load a list, batch upsert, ' +
    'migrate, Excel, sync from a shop or another CRM, hundreds at once',
  scope: 'crm:write',
  dryRun: true,
  idempotency: 'optional',
  effect: 'replaces',
  repeatable: true,
  itemwise: 'rows',
  maxBytes: 24 * 1024 * 1024,
  emits: [
    'contact.created/1',
    'contact.updated/1',
    'contact.tags_added/1',
    'contact.groups_added/1',
    'group.created/1',
  ],
  input: z.object({
    create_missing_groups: z
      .boolean()
      .optional()
      .describe('True: groups in `group_names` that do not exist are created.'),
    // For the documentation and the marks only; the handler validates the rows.
    rows: z
      .array(
        z
          .unknown()
          .meta(z.toJSONSchema(ImportRow, { io: 'input' }))
          .register(marks, toMarkedJsonSchema(ImportRow)),
      )
      .min(1)
      .max(500)
      .describe(
        '1 to 500 rows with the fields of an upsert: `phone`, `external_id`, `name`, `email`, ' +
          '`attributes`, `metadata`, `dnd`, `starred`, `group_ids`, `group_names`, `tags`.',
      )
      .register(marks, { private: 'personal' }),
  }),
  output: z.object({
    requested: z.int().describe('Rows sent.'),
    succeeded: z.int().describe('Rows done.'),
    failed: z.int().describe('Rows that failed.'),
    created: z.int().describe('Contacts created.'),
    updated: z.int().describe('Rows that changed a contact.'),
    unchanged: z.int().describe('Rows that changed nothing.'),
    results: z
      .array(
        z.object({
          row: z.int().describe('Which row, from 0.'),
          action: z.enum(['created', 'updated', 'unchanged', 'failed']).describe('What was done.'),
          id: idOf('contact')
            .nullable()
            .describe('Contact id; null for a row that failed, and for one that a dry run would create.'),
        }),
      )
      .describe('A result for each row, in their order.'),
    failures: z
      .array(
        z.object({
          row: z.int().describe('Which row, from 0.'),
          code: z.string().describe('Error code, such as `invalid_input`.'),
          message: untrusted(z.string().describe('What is wrong.')),
          errors: z
            .array(
              z.object({
                pointer: z.string().describe('Which field, as a JSON Pointer into the request.'),
                code: z.string().describe('Kind of error; stable.'),
                detail: untrusted(z.string().describe('What is wrong.')),
                fix: z.string().optional().describe('How to fix it.'),
                allowed: z.array(z.unknown()).optional().describe('The allowed values.'),
              }),
            )
            .describe('The first 5 invalid fields.'),
        }),
      )
      .describe('The rows that failed.'),
  }),
  errors: ['forbidden', 'conflict', 'upstream_error'],
  examples: [
    {
      title: 'One of two rows is invalid',
      input: {
        rows: [{ phone: '+1 555 010 0042', name: 'Ada Lovelace', tags: ['VIP'] }, { phone: '030 1234' }],
      },
      output: {
        requested: 2,
        succeeded: 1,
        failed: 1,
        created: 1,
        updated: 0,
        unchanged: 0,
        results: [
          { row: 0, action: 'created', id: '42' },
          { row: 1, action: 'failed', id: null },
        ],
        failures: [
          {
            row: 1,
            code: 'invalid_input',
            message: 'phone is a local number: it starts with 0.',
            errors: [
              {
                pointer: '#/rows/1/phone',
                code: 'invalid_phone',
                detail: 'is a local number: it starts with 0',
                fix: 'Send it in international format, with the country code and without the leading 0.',
              },
            ],
          },
        ],
      },
    },
  ],
})
