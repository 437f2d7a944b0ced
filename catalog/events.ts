import { z } from 'zod'
import { Id, Timestamp } from './fields.ts'

/**
 * Every event type the service writes: what it means, the shape of its `data`, and a sample (contract 6). An event is written in the transaction
 * of the change that caused it. Phones are whole here; whoever shows an event masks it for its reader.
 */
type EventType<S extends z.ZodObject = z.ZodObject> = { readonly description: string; readonly data: S; readonly sample: z.input<S> }

const eventType = <S extends z.ZodObject>(description: string, data: S, sample: z.input<S>): EventType<S> => ({ description, data, sample })

const EventContact = z.object({
  id: Id.describe('Contact id.'),
  name: z.string().nullable().describe('Name.'),
  phone: z.string().nullable().describe('E.164 digits.'),
  dnd: z.boolean().describe('Do-not-disturb.'),
  starred: z.boolean().describe('Starred.'),
  created_at: Timestamp.describe('When it was made.'),
  updated_at: Timestamp.describe('When it was last changed.'),
}).describe('The contact.')
const contact = {
  id: '42', name: 'Ada Lovelace', phone: '15550100042', dnd: false, starred: false,
  created_at: '2026-10-01T09:30:00.000Z', updated_at: '2026-10-01T09:30:00.000Z',
}

const Tags = z.object({
  contact_ids: z.array(Id).describe('Contacts that changed, at most 500.'),
  tags: z.array(z.object({ id: Id.describe('Tag id.'), name: z.string().describe('Tag name.') })).describe('The tags.'),
})
const tags = { contact_ids: ['42'], tags: [{ id: '7', name: 'VIP' }] }

const Groups = z.object({
  contact_ids: z.array(Id).describe('Contacts that changed, at most 500.'),
  groups: z.array(z.object({ id: Id.describe('Group id.'), name: z.string().describe('Group name.') })).describe('The groups.'),
})
const groups = { contact_ids: ['42'], groups: [{ id: '3', name: 'VIP' }] }

const EventGroup = z.object({ group: z.object({ id: Id.describe('Group id.'), name: z.string().describe('Name.'), emoji: z.string().nullable().describe('Emoji.') }).describe('The group.') })
const group = { group: { id: '3', name: 'VIP', emoji: '⭐' } }

export const eventTypes = {
  'contact.created/1': eventType('A contact was created.', z.object({ contact: EventContact }), { contact }),
  'contact.updated/1': eventType('Fields of a contact changed.',
    z.object({ contact: EventContact, changes: z.array(z.string()).describe('Names of the fields that changed; `attributes.<key>` for custom fields.') }),
    { contact, changes: ['name', 'attributes.plan'] }),
  'contact.deleted/1': eventType('A contact was deleted.', z.object({ contact: z.object({ id: Id.describe('Contact id.') }).describe('The contact that is gone.') }), { contact: { id: '42' } }),
  'contact.tags_added/1': eventType('Tags were added to contacts.', Tags, tags),
  'contact.tags_removed/1': eventType('Tags were removed from contacts.', Tags, tags),
  'contact.groups_added/1': eventType('Contacts were added to groups.', Groups, groups),
  'contact.groups_removed/1': eventType('Contacts were removed from groups.', Groups, groups),
  'group.created/1': eventType('A group was created.', EventGroup, group),
  'group.deleted/1': eventType('A group was deleted.', EventGroup, group),
} as const

export type EventTypeId = keyof typeof eventTypes
export type EventData<T extends EventTypeId> = z.input<(typeof eventTypes)[T]['data']>
