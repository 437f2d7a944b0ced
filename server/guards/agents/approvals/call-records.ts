import type { Operation } from '../../../../catalog/index.ts'
import type { RecordKind } from '../../snapshot/read-records.ts'

type Json = Record<string, unknown>

/** What the records are called that have a name, by the fields of an input that hold their ids. */
export const records: Readonly<Record<string, { label: string; kind: RecordKind }>> = {
  contact_id: { label: 'Customer', kind: 'contact' },
  other_contact_id: { label: 'Other contact', kind: 'contact' },
  template_id: { label: 'Template', kind: 'template' },
  saved_filter_id: { label: 'Saved filter', kind: 'saved_filter' },
  short_link_id: { label: 'Short link', kind: 'short_link' },
  endpoint_id: { label: 'Webhook endpoint', kind: 'endpoint' },
  tag_id: { label: 'Tag', kind: 'tag' },
  other_tag_id: { label: 'Other tag', kind: 'tag' },
  group_id: { label: 'Group', kind: 'group' },
  custom_field_id: { label: 'Custom field', kind: 'custom_field' },
  quick_message_id: { label: 'Quick message', kind: 'quick_message' },
  staff_id: { label: 'Staff member', kind: 'staff' },
  team_id: { label: 'Team', kind: 'team' },
  channel_id: { label: 'Channel', kind: 'channel' },
  job_id: { label: 'Job', kind: 'job' },
  broadcast_id: { label: 'Broadcast', kind: 'broadcast' },
  delivery_id: { label: 'Delivery', kind: 'delivery' },
  conversation_id: { label: 'Conversation', kind: 'conversation' },
}

/** The one contact or conversation that a call is about has lines of its own. */
const DESCRIBED_APART = new Set(['contact_id', 'conversation_id'])

/** As many records of a list are named in a summary; of the others there is the id. */
const MAX_NAMED = 50

/** The records that an input names, one by one: `[field of the record, id]`. */
export const listReferences = (op: Operation, input: Json): [string, string][] =>
  Object.entries(input).flatMap(([name, value]) => {
    if (typeof value === 'string') return name in records && !DESCRIBED_APART.has(name) ? [[name, value]] : []
    const field =
      name === 'ids' && op.name === 'messaging_archive_templates' ? 'template_id' : name.replace(/s$/, '')
    if (!Array.isArray(value) || name === field || !(field in records)) return []
    return value.slice(0, MAX_NAMED).map((id): [string, string] => [field, String(id)])
  })
