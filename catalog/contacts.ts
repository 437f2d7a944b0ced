import { z } from 'zod'
import {
  bulkResult,
  Cursor,
  deleted,
  Id,
  IdInput,
  IdOrName,
  Limit,
  NextCursor,
  Timestamp,
  Total,
} from './fields.ts'
import { Filter, ResolvedDates, SavedFilterIdInput, Warnings } from './filters.ts'
import { GroupRef } from './groups.ts'
import { operation } from './operation.ts'
import { TagRef } from './tags.ts'

const since = '2026-10-01'

export const Attribute = z.object({
  key: z.string().describe('Custom field key.'),
  label: z.string().nullable().describe('What people see.'),
  type: z.string().nullable().describe('Custom field type.'),
  value: z
    .union([z.string(), z.number()])
    .nullable()
    .describe(
      'As the panel shows it: checkbox and boolean as Yes or No, date as YYYY-MM-DD, datetime as YYYY-MM-DD HH:MM:SS in UTC, multiselect as comma-joined text, ' +
        'int, float and number as numbers, decimal as a string with 8 decimals.',
    ),
  display: z
    .string()
    .nullable()
    .describe('The value as text; option labels for select, radio and multiselect.'),
  typed_value: z
    .union([z.string(), z.number(), z.boolean(), z.array(z.string())])
    .nullable()
    .describe(
      'Number, true or false, YYYY-MM-DD, ISO 8601 UTC, array of option values, or string, by type; null when empty or unreadable.',
    ),
})

const ContactConversation = z.object({
  id: Id.describe('Conversation id.'),
  channel_id: Id.nullable().describe('Channel.'),
  state: z.string().nullable().describe('`open` or `closed`.'),
  assigned: z.boolean().describe('True: a staff member or a team has it.'),
  assigned_staff_id: Id.nullable().describe('Staff member who has it.'),
  created_at: Timestamp.nullable().describe('When it began.'),
  last_activity_at: Timestamp.nullable().describe('Latest activity.'),
})

export const Contact = z
  .object({
    id: Id.describe('Contact id.'),
    name: z.string().nullable().describe('Name.'),
    phone: z
      .string()
      .nullable()
      .describe("E.164 digits without `+`, or masked when the workspace hides numbers from the key's owner."),
    phone_masked: z.boolean().describe('True: `phone` is masked.'),
    chatapp_user_id: z
      .string()
      .nullable()
      .describe('Id at the messaging app; shows no phone digits to staff from whom phones are hidden.'),
    dnd: z.boolean().describe('Do-not-disturb: receives no broadcasts or marketing.'),
    starred: z.boolean().nullable().describe('Starred; null only when it could not be read.'),
    created_at: Timestamp.nullable().describe('When it was made.'),
    updated_at: Timestamp.nullable().describe('When it was last changed.'),
    email: z
      .string()
      .nullable()
      .optional()
      .describe('Value of the `email` custom field; absent from summary rows.'),
    web_visitor_id: z.string().nullable().describe('Id of the web chat visitor.'),
    tags: z.array(TagRef).optional().describe('Tags by name; absent from summary rows.'),
    groups: z.array(GroupRef).optional().describe('Groups by name; absent from summary rows.'),
    attributes: z
      .array(Attribute)
      .max(100)
      .describe(
        'Custom field values that the staff member may see, at most 100; text over 2000 characters is clipped.',
      ),
    conversations: z.array(ContactConversation).max(10).describe('Newest first, at most 10.'),
    last_activity_at: Timestamp.nullable().describe('Latest conversation activity.'),
    unavailable: z
      .array(z.enum(['profile_extras', 'conversations']))
      .optional()
      .describe('Parts that could not be read this time; retry later.'),
  })
  .meta({ id: 'Contact' })

const Name = z.string().trim().min(1).max(255)
const Email = z.union(
  [z.literal(''), z.email().max(255)],
  'must be an email address of at most 255 characters, or empty to clear it',
)
const Attributes = z
  .record(z.string(), z.unknown())
  .describe(
    'Custom field key to value; null or an empty string clears a value. Unknown keys are refused with the list of valid ones.',
  )
  .meta({ examples: [{ plan: 'pro' }] })
const TagName = IdOrName(100)
const contactIds = z.array(IdInput).min(1).max(500).describe('1 to 500 contact ids; duplicates count once.')
const ContactId = Id.describe('Contact id.')

/** What a contact's answer looks like where a dry run may have made it. */
const WouldBeContact = z.object({
  ...Contact.shape,
  id: Id.nullable().describe('Contact id; null when a dry run would create it.'),
  tags: z
    .array(
      z.object({
        ...TagRef.shape,
        id: Id.nullable().describe('Tag id; null when a dry run would create it.'),
      }),
    )
    .describe('Tags by name.'),
})

const contact = {
  id: '42',
  name: 'Ada Lovelace',
  phone: '15550100042',
  phone_masked: false,
  chatapp_user_id: '15550100042',
  dnd: false,
  starred: false,
  created_at: '2026-10-01T09:30:00.000Z',
  updated_at: '2026-10-01T09:30:00.000Z',
  email: 'ada@example.com',
  web_visitor_id: null,
  tags: [{ id: '7', name: 'VIP' }],
  groups: [],
  attributes: [
    {
      key: 'email',
      label: 'Email',
      type: 'email',
      value: 'ada@example.com',
      display: 'ada@example.com',
      typed_value: 'ada@example.com',
    },
    { key: 'plan', label: 'Plan', type: 'select', value: 'pro', display: 'Pro', typed_value: 'pro' },
  ],
  conversations: [],
  last_activity_at: null,
}
const { email: _email, tags: _tags, groups: _groups, ...summary } = contact

const list = {
  data: z.array(Contact).describe('The rows of this page.'),
  total: Total,
  approximate: z.boolean().nullable().describe('True: `total` is an estimate; null where `total` is.'),
  resolved_dates: ResolvedDates,
  warnings: Warnings,
  next_cursor: NextCursor,
}

export const searchContacts = operation({
  name: 'crm_search_contacts',
  cli: 'contacts search',
  since,
  stability: 'stable',
  routes: [
    {
      route: 'GET /v1/contacts',
      fields: [
        'query',
        'group_ids',
        'tag_ids',
        'starred',
        'dnd',
        'not_in_any_group',
        'detail',
        'limit',
        'cursor',
      ],
    },
    {
      route: 'POST /v1/contacts/search',
      fields: ['filter', 'saved_filter_id', 'sort', 'detail', 'limit', 'cursor'],
    },
  ],
  summary: 'List or search contacts',
  description:
    'Newest first unless `sort` says otherwise. All conditions must hold. `total` comes with the first page; `approximate` says when it is an estimate. ' +
    "Where phones are hidden from the key's owner, digits in `query`, and comparing or sorting by phone, are refused with the reason `phone_hidden`.",
  scope: 'mcp:read',
  input: z.object({
    query: z
      .string()
      .trim()
      .min(1)
      .max(100)
      .optional()
      .describe('Name or phone contains this, ignoring case; `%` and `_` are taken literally.'),
    group_ids: z.array(IdInput).max(50).optional().describe('In any of these groups, at most 50.'),
    tag_ids: z.array(IdInput).max(50).optional().describe('With any of these tags, at most 50.'),
    starred: z.boolean().optional().describe('Only starred, or only not starred.'),
    dnd: z.boolean().optional().describe('Only do-not-disturb, or only not.'),
    not_in_any_group: z
      .boolean()
      .optional()
      .describe('True: only contacts in no group; false: only contacts in at least one.'),
    filter: Filter.optional(),
    saved_filter_id: SavedFilterIdInput.optional(),
    sort: z
      .strictObject({
        field: z.enum(['createdAt', 'updatedAt', 'name', 'phoneNumber', 'id']).describe('What to sort by.'),
        direction: z.enum(['asc', 'desc']).default('desc').describe('Direction; `desc` when absent.'),
      })
      .optional()
      .describe(
        'Order; `createdAt` descending when absent. Contacts without a name or phone sort as empty text.',
      ),
    detail: z.enum(['summary', 'full']).default('summary').describe('`full` adds email, tags and groups.'),
    limit: Limit,
    cursor: Cursor,
  }),
  output: z.object(list),
  errors: ['forbidden', 'not_found', 'service_unconfigured'],
  examples: [
    {
      title: 'Find by name',
      input: { query: 'ada', limit: 1 },
      output: {
        data: [summary],
        total: 1,
        approximate: false,
        resolved_dates: [],
        warnings: [],
        next_cursor: null,
      },
    },
    {
      title: 'New this week, by name',
      input: { filter: { createdAt: { gte: '-7d' } }, sort: { field: 'name', direction: 'asc' as const } },
      output: {
        data: [summary],
        total: 1,
        approximate: false,
        resolved_dates: [{ path: '#/filter/createdAt/gte', input: '-7d', value: '2026-09-24T09:30:00.000Z' }],
        warnings: [],
        next_cursor: null,
      },
    },
  ],
})

export const getContact = operation({
  name: 'crm_get_contact',
  cli: 'contacts get',
  routes: ['GET /v1/contacts/{contact_id}'],
  since,
  stability: 'stable',
  summary: 'Read one contact in full',
  scope: 'mcp:read',
  input: z.object({ contact_id: ContactId }),
  output: z.object(Contact.shape),
  errors: ['not_found'],
  examples: [{ title: 'Read a contact', input: { contact_id: '42' }, output: contact }],
})

const upsertFields = {
  phone: z
    .string()
    .trim()
    .min(3)
    .max(32)
    .describe(
      'International format with country code, such as `+1 555 010 0042`; local numbers starting with 0 are refused.',
    )
    .meta({ examples: ['+15550100042'] }),
  name: Name.optional().describe('Name, 1 to 255 characters.'),
  email: Email.optional().describe('Email address, at most 255 characters; empty clears it.'),
  attributes: Attributes.optional(),
  group_ids: z.array(IdInput).max(50).optional().describe('Groups to add, at most 50.'),
  tags: z.array(TagName).max(20).optional().describe('Tags to add, at most 20 names or ids.'),
}

export const upsertContact = operation({
  name: 'crm_upsert_contact',
  cli: 'contacts upsert',
  routes: ['POST /v1/contacts'],
  since,
  stability: 'stable',
  summary: 'Create a contact, or update the one with this phone number',
  description:
    'Repeated calls are safe. Groups and tags passed are added; those it has are kept. Unknown tag names are created; unknown group ids are refused.',
  scope: 'crm:write',
  dryRun: true,
  idempotency: 'optional',
  repeatable: true,
  emits: ['contact.created/1', 'contact.updated/1', 'contact.tags_added/1', 'contact.groups_added/1'],
  input: z.object(upsertFields),
  output: z.object({
    id: Id.nullable().describe('Contact id; null when a dry run would create it.'),
    action: z.enum(['created', 'updated', 'unchanged']).describe('What was done.'),
    contact: WouldBeContact.describe('The contact in full.'),
  }),
  errors: ['forbidden', 'conflict', 'upstream_error'],
  examples: [
    {
      title: 'A contact with an attribute and a tag',
      input: {
        phone: '+1 555 010 0042',
        name: 'Ada Lovelace',
        email: 'ada@example.com',
        attributes: { plan: 'pro' },
        tags: ['VIP'],
      },
      output: { id: '42', action: 'created', contact },
    },
  ],
})

/**
 * A row of an import: what an upsert takes. Each is checked by itself, so that a bad one does not stop the
 * others.
 */
export const ImportRow = z.strictObject(upsertFields)

export const importContacts = operation({
  name: 'crm_import_contacts',
  cli: 'contacts import',
  routes: ['POST /v1/contacts/import'],
  since,
  stability: 'stable',
  summary: 'Create or update up to 500 contacts in one call',
  description:
    'Each row is an upsert and is checked by itself: rows that are wrong are answered in `failures`, the others are done. All of them are one transaction, in their order, so that ' +
    'two rows with one phone make one contact. Unknown tag names are created; unknown group ids fail their row.',
  scope: 'crm:write',
  dryRun: true,
  idempotency: 'optional',
  repeatable: true,
  itemwise: 'rows',
  maxBytes: 24 * 1024 * 1024,
  emits: ['contact.created/1', 'contact.updated/1', 'contact.tags_added/1', 'contact.groups_added/1'],
  input: z.object({
    // Documents show what a row is; the handler checks it.
    rows: z
      .array(z.unknown().meta(z.toJSONSchema(ImportRow, { io: 'input' })))
      .min(1)
      .max(500)
      .describe(
        '1 to 500 rows with the fields of an upsert: `phone` (required), `name`, `email`, `attributes`, `group_ids`, `tags`.',
      ),
  }),
  output: z.object({
    requested: z.int().describe('Rows sent.'),
    succeeded: z.int().describe('Rows done.'),
    failed: z.int().describe('Rows that failed.'),
    created: z.int().describe('Contacts created.'),
    updated: z.int().describe('Rows that changed a contact.'),
    unchanged: z.int().describe('Rows whose contact was so already.'),
    results: z
      .array(
        z.object({
          row: z.int().describe('Which row, from 0.'),
          action: z.enum(['created', 'updated', 'unchanged', 'failed']).describe('What was done.'),
          id: Id.nullable().describe(
            'Contact id; null for a row that failed, and for one that a dry run would create.',
          ),
        }),
      )
      .describe('A result for each row, in their order.'),
    failures: z
      .array(
        z.object({
          row: z.int().describe('Which row, from 0.'),
          code: z.string().describe('Error code, such as `invalid_input`.'),
          message: z.string().describe('What is wrong, in one sentence.'),
          errors: z
            .array(
              z.object({
                pointer: z.string().describe('Which field, as a JSON Pointer into the request.'),
                code: z.string().describe('What kind of fault.'),
                detail: z.string().describe('What is wrong.'),
                fix: z.string().optional().describe('The mend.'),
                allowed: z.array(z.unknown()).optional().describe('What may stand there.'),
              }),
            )
            .describe('The fields that are wrong, the first 5 of them.'),
        }),
      )
      .describe('The rows that failed.'),
  }),
  errors: ['conflict', 'upstream_error'],
  examples: [
    {
      title: 'One of two rows is wrong',
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

export const updateContact = operation({
  name: 'crm_update_contact',
  cli: 'contacts update',
  routes: ['PATCH /v1/contacts/{contact_id}'],
  since,
  stability: 'stable',
  summary: 'Change a contact',
  description: 'Omitted fields stay.',
  scope: 'crm:write',
  dryRun: true,
  idempotency: 'optional',
  repeatable: true,
  emits: ['contact.updated/1'],
  input: z.object({
    contact_id: ContactId,
    name: Name.nullable().optional().describe('Name, 1 to 255 characters; null clears it.'),
    email: Email.nullable()
      .optional()
      .describe('Email address, at most 255 characters; null or empty clears it.'),
    attributes: Attributes.optional(),
    dnd: z.boolean().optional().describe('Do-not-disturb.'),
    starred: z.boolean().optional().describe('Starred.'),
  }),
  output: z.object(Contact.shape),
  errors: ['not_found', 'forbidden', 'conflict'],
  examples: [
    {
      title: 'Star a contact',
      input: { contact_id: '42', starred: true },
      output: { ...contact, starred: true },
    },
  ],
})

export const deleteContact = operation({
  name: 'crm_delete_contact',
  cli: 'contacts delete',
  routes: ['DELETE /v1/contacts/{contact_id}'],
  since,
  stability: 'stable',
  summary: 'Delete a contact',
  description: 'Its conversations stay, without a contact.',
  scope: 'crm:write',
  dryRun: true,
  idempotency: 'optional',
  confirm: 'delete',
  repeatable: true,
  emits: ['contact.deleted/1'],
  input: z.object({ contact_id: ContactId }),
  output: z.object(deleted),
  errors: ['not_found', 'conflict', 'confirm_required'],
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

export const tagContacts = operation({
  name: 'crm_tag_contacts',
  cli: 'contacts tag',
  routes: ['POST /v1/contacts/tag'],
  since,
  stability: 'stable',
  summary: 'Add tags to contacts',
  description: 'Unknown tag names are created. Tagging twice is harmless.',
  scope: 'crm:write',
  dryRun: true,
  idempotency: 'optional',
  repeatable: true,
  emits: ['contact.tags_added/1'],
  input: z.object({
    contact_ids: contactIds,
    tags: z.array(TagName).min(1).max(20).describe('1 to 20 tag names or ids.'),
  }),
  output: z.object(bulkResult),
  errors: ['conflict'],
  examples: [
    { title: 'One of two is missing', input: { contact_ids: ['42', '43'], tags: ['VIP'] }, output: bulk },
  ],
})

export const untagContacts = operation({
  name: 'crm_untag_contacts',
  cli: 'contacts untag',
  routes: ['POST /v1/contacts/untag'],
  since,
  stability: 'stable',
  summary: 'Remove tags from contacts',
  description: 'Unknown tags are ignored.',
  scope: 'crm:write',
  dryRun: true,
  idempotency: 'optional',
  repeatable: true,
  emits: ['contact.tags_removed/1'],
  input: z.object({
    contact_ids: contactIds,
    tags: z.array(TagName).min(1).max(20).describe('1 to 20 tag names or ids.'),
  }),
  output: z.object(bulkResult),
  errors: ['conflict'],
  examples: [
    { title: 'One of two is missing', input: { contact_ids: ['42', '43'], tags: ['VIP'] }, output: bulk },
  ],
})
