import { z } from 'zod'
import { mark } from '../marks.ts'
import {
  ContactName,
  ContactPhone,
  EmailAddress,
  ExternalId,
  Id,
  idOf,
  IdOrName,
  Timestamp,
  Version,
  VisibleName,
} from '../fields.ts'
import { GroupRef } from '../groups.ts'
import { TagRef } from '../tags.ts'
import { untrusted } from '../text.ts'
import { Metadata } from './metadata.ts'

export const since = '2026-10-01'

export const Attribute = z.object({
  key: z.string().describe('Custom field key.'),
  label: z.string().nullable().describe('Label shown to people.'),
  type: z.string().nullable().describe('Custom field type.'),
  value: untrusted(
    z
      .union([z.string(), z.number()])
      .nullable()
      .describe(
        'Display value: checkbox and boolean as Yes or No, date as YYYY-MM-DD, datetime as YYYY-MM-DD ' +
          'HH:MM:SS in UTC, multiselect as comma-joined text, int, float and number as numbers, decimal as a ' +
          'string with 8 decimals.',
      ),
    { phone: 'value' },
  ),
  display: untrusted(
    z.string().nullable().describe('The value as text; option labels for select, radio and multiselect.'),
    { phone: 'value' },
  ),
  typed_value: untrusted(
    z
      .union([z.string(), z.number(), z.boolean(), z.array(z.string())])
      .nullable()
      .describe(
        'Number, true or false, YYYY-MM-DD, ISO 8601 UTC, array of option values, or string, by ' +
          'type; null when empty or unreadable.',
      ),
    { phone: 'value' },
  ),
  truncated: z.literal(true).optional().describe('Present if the text was truncated, after 2000 characters.'),
})

const ContactConversation = z.object({
  id: Id.describe('Conversation id.'),
  channel_id: Id.nullable().describe('Channel.'),
  state: z.string().nullable().describe('`open` or `closed`.'),
  assigned: z.boolean().describe('True: it is assigned to a staff member or a team.'),
  assigned_staff_id: Id.nullable().describe('Staff member it is assigned to.'),
  created_at: Timestamp.nullable().describe('When it started.'),
  last_activity_at: Timestamp.nullable().describe('Latest activity.'),
})

export const Contact = z
  .object({
    id: idOf('contact').describe('Contact id.'),
    name: ContactName,
    phone: ContactPhone.describe(
      "E.164 digits without `+`; masked if numbers are hidden from the key's owner.",
    ),
    phone_masked: mark(z.boolean().describe('True: `phone` is masked.'), { phone: 'masked' }),
    chatapp_user_id: untrusted(
      z
        .string()
        .nullable()
        .describe('Id at the messaging app; numbers in it are masked for staff with hidden phone numbers.'),
      { phone: 'text' },
    ),
    username: untrusted(
      z
        .string()
        .nullable()
        .describe(
          'Username at the messaging app, without `@`; numbers in it are masked as in `chatapp_user_id`.',
        ),
      { phone: 'text' },
    ),
    external_id: untrusted(
      z.string().nullable().describe('Id of the contact in another system, unique in the workspace.'),
    ),
    dnd: z.boolean().describe('Do-not-disturb: receives no broadcasts or marketing.'),
    starred: z.boolean().nullable().describe('Starred; null only when it could not be read.'),
    created_at: Timestamp.nullable().describe('When it was created.'),
    updated_at: Timestamp.nullable().describe('When it was last changed.'),
    email: untrusted(
      z
        .string()
        .nullable()
        .optional()
        .describe('Value of the `email` custom field; absent from summary rows.'),
    ),
    web_visitor_id: untrusted(z.string().nullable().describe('Id of the web chat visitor.'), {
      phone: 'text',
    }),
    tags: z.array(TagRef).optional().describe('Tags by name; absent from summary rows.'),
    groups: z.array(GroupRef).optional().describe('Groups by name; absent from summary rows.'),
    metadata: Metadata,
    attributes: z
      .array(Attribute)
      .max(100)
      .describe(
        'Custom field values that the staff member may see, at most 100; text is truncated after 2000 ' +
          'characters.',
      ),
    conversations: z.array(ContactConversation).max(10).describe('Newest first, at most 10.'),
    last_activity_at: Timestamp.nullable().describe('Latest conversation activity.'),
    version: Version,
    unavailable: z
      .array(z.enum(['profile_extras', 'conversations']))
      .optional()
      .describe('Parts that could not be read now; retry later.'),
  })
  .meta({ id: 'Contact' })

/** How much of a contact is read. */
export const CONTACT_DETAIL =
  '`ids`: the id alone. `compact`: name, phone, flags, external id, email, tags, groups, latest activity, and ' +
  'custom fields by their key in `attributes_map`. '

/** A contact in the detail that was asked for. */
export const ContactView = Contact.partial()
  .required({ id: true })
  .extend({
    attributes_map: untrusted(
      z
        .record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.array(z.string())]).nullable())
        .optional()
        .describe(
          'Values of custom fields by key, as `typed_value` or else as text; in the format of upserts. Only ' +
            'with `compact`, instead of `attributes`.',
        ),
    ),
  })
  .meta({
    id: 'ContactView',
    description: 'All fields of a contact but `attributes_map`, unless `detail` is `ids` or `compact`.',
  })

/** A phone in any international form. */
export const PhoneInput = mark(z.string().trim().min(3).max(32), { phone: 'number' })

export const Name = mark(VisibleName(255), { phone: 'name' })

export const Email = z.union(
  [z.literal(''), EmailAddress],
  'must be an email address of at most 255 characters, or empty to clear it',
)

export const Attributes = z
  .record(z.string(), z.unknown())
  .describe(
    'Custom field key to value; null or an empty string clears a value. Unknown keys are ' +
      'refused with the list of valid ones.',
  )
  .meta({ examples: [{ plan: 'pro' }] })

export const TagName = IdOrName(100)

export const ContactId = idOf('contact').describe('Contact id.')

/** What a search or a change by the external id of a contact takes. */
export const ContactExternalId = ExternalId.describe(
  'Id of the contact in another system; case matters.',
).meta({
  examples: ['C-1042'],
})

export const contact = {
  id: '42',
  name: 'Ada Lovelace',
  phone: '15550100042',
  phone_masked: false,
  chatapp_user_id: '15550100042',
  username: null,
  external_id: 'C-1042',
  dnd: false,
  starred: false,
  created_at: '2026-10-01T09:30:00.000Z',
  updated_at: '2026-10-01T09:30:00.000Z',
  email: 'ada@example.com',
  web_visitor_id: null,
  tags: [{ id: '7', name: 'VIP' }],
  groups: [],
  metadata: { erp_segment: 'B' },
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
  version: '3',
}

export const compactContact = {
  id: contact.id,
  name: contact.name,
  phone: contact.phone,
  dnd: contact.dnd,
  starred: contact.starred,
  external_id: contact.external_id,
  email: contact.email,
  tags: contact.tags,
  groups: contact.groups,
  attributes_map: { email: 'ada@example.com', plan: 'pro' },
  last_activity_at: contact.last_activity_at,
  version: contact.version,
}
