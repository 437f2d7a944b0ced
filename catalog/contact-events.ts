import { z } from 'zod'
import { defineEventType } from './event-type.ts'
import { Id, Timestamp } from './fields.ts'

const EventContact = z
  .object({
    id: Id.describe('Contact id.'),
    name: z.string().nullable().describe('Name.'),
    phone: z.string().nullable().describe('E.164 digits.'),
    external_id: z
      .string()
      .nullable()
      .optional()
      .describe('Your id of the contact; absent from events from before external ids existed.'),
    dnd: z.boolean().describe('Do-not-disturb.'),
    starred: z.boolean().describe('Starred.'),
    created_at: Timestamp.describe('When it was created.'),
    updated_at: Timestamp.describe('When it was last changed.'),
  })
  .describe('The contact.')
const contact = {
  id: '42',
  name: 'Ada Lovelace',
  phone: '15550100042',
  external_id: 'C-1042',
  dnd: false,
  starred: false,
  created_at: '2026-10-01T09:30:00.000Z',
  updated_at: '2026-10-01T09:30:00.000Z',
}

const Tags = z.object({
  contact_ids: z.array(Id).describe('Contacts that changed, at most 500.'),
  tags: z
    .array(z.object({ id: Id.describe('Tag id.'), name: z.string().describe('Tag name.') }))
    .describe('The tags.'),
})
const tags = { contact_ids: ['42'], tags: [{ id: '7', name: 'VIP' }] }

const Groups = z.object({
  contact_ids: z.array(Id).describe('Contacts that changed, at most 500.'),
  groups: z
    .array(z.object({ id: Id.describe('Group id.'), name: z.string().describe('Group name.') }))
    .describe('The groups.'),
})
const groups = { contact_ids: ['42'], groups: [{ id: '3', name: 'VIP' }] }

/** Events of contacts, and of what was put on them. */
export const contactEvents = {
  'contact.created/1': defineEventType(
    'A contact was created, or came back from a merge that was undone.',
    z.object({ contact: EventContact }),
    {
      contact,
    },
  ),
  'contact.updated/1': defineEventType(
    'Fields of a contact changed.',
    z.object({
      contact: EventContact,
      changes: z
        .array(z.string())
        .describe('Names of the fields that changed; `attributes.<key>` for custom fields.'),
    }),
    { contact, changes: ['name', 'attributes.plan'] },
  ),
  'contact.deleted/1': defineEventType(
    'A contact was deleted, or merged into another one.',
    z.object({
      contact: z
        .object({
          id: Id.describe('Contact id.'),
          merged_into: Id.optional().describe('The contact that now has its conversations, tags and values.'),
          reason: z
            .enum(['same_customer', 'request'])
            .optional()
            .describe(
              'Why it was merged: the provider reported both as one customer, or by request ' +
                '(`crm_merge_contacts`).',
            ),
        })
        .describe('The deleted contact.'),
    }),
    { contact: { id: '42' } },
  ),
  'contact.erased/1': defineEventType(
    'A person was erased: erase your copies too. `contact.deleted/1` comes with it.',
    z.object({ contact: z.object({ id: Id.describe('Contact id.') }).describe('The contact.') }),
    { contact: { id: '42' } },
  ),
  'contact.tags_added/1': defineEventType('Tags were added to contacts.', Tags, tags),
  'contact.tags_removed/1': defineEventType('Tags were removed from contacts.', Tags, tags),
  'contact.groups_added/1': defineEventType('Contacts were added to groups.', Groups, groups),
  'contact.groups_removed/1': defineEventType('Contacts were removed from groups.', Groups, groups),
}
