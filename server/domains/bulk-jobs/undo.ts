import type { Services } from '../../app.ts'
import type { EventData, EventTypeId } from '../../../catalog/events.ts'
import type { BatchCall } from '../../../storage/work/bulk-jobs.ts'
import type { EventRow } from '../../../storage/events/events.ts'
import type { OperationName } from '../../../catalog/index.ts'
import { restoreContacts } from '../contacts/update-many.ts'
import type { UndoneRecord } from '../../kernel/context.ts'
import { restoreAssignments } from '../inbox/assign-many.ts'
import { restoreClosed } from '../inbox/close-many.ts'
import type { LocalHandler } from '../../kernel/handler.ts'
import type { BulkOutput } from './output.ts'
import { getIdField, listCallIds } from './records.ts'

type Tags = EventData<'contact.tags_added/1'>
type Groups = EventData<'contact.groups_added/1'>

const byTags =
  (operation: string) =>
  ({ contact_ids: ids, tags }: Tags): BatchCall[] => [
    { operation, input: { contact_ids: ids, tags: tags.map(({ id }) => Number(id)) } },
  ]

const byGroups =
  (operation: string) =>
  ({ contact_ids: ids, groups }: Groups): BatchCall[] =>
    groups.map(({ id }) => ({ operation, input: { contact_ids: ids, group_id: id } }))

/** The calls that take back what an event tells. */
const inverse: { [type in EventTypeId]?: (data: never) => BatchCall[] } = {
  'contact.tags_added/1': byTags('crm_untag_contacts'),
  'contact.tags_removed/1': byTags('crm_tag_contacts'),
  'contact.groups_added/1': byGroups('crm_remove_contacts_from_group'),
  'contact.groups_removed/1': byGroups('crm_add_contacts_to_group'),
}

type Restorer = LocalHandler<unknown, BulkOutput<unknown>, EventTypeId, Services>

/** What takes back changes of operations whose inverse is no operation. */
const restorers: { readonly [name in OperationName]?: Restorer } = {
  crm_update_contacts: restoreContacts as Restorer,
  inbox_assign_conversations: restoreAssignments as Restorer,
  inbox_close_conversations: restoreClosed as Restorer,
}

/** Returns what makes a call that takes back changes; undefined for a call of its operation. */
export const getRestorer = ({ operation, input }: BatchCall): Restorer | undefined =>
  'contacts' in input || 'conversations' in input ? restorers[operation as OperationName] : undefined

/** Returns the call that takes back what a call of an operation recorded. */
export const toRestoringCalls = (operation: string, undone: readonly UndoneRecord[] = []): BatchCall[] => {
  if (undone.length === 0) return []
  const idField = getIdField(operation)
  const ids = undone.map((one) => ('contact_id' in one ? one.contact_id : one.conversation_id))
  const records = idField === 'contact_ids' ? { contacts: undone } : { conversations: undone }
  return [{ operation, input: { [idField]: ids, ...records } }]
}

/** Why jobs of an operation cannot be undone; absent: they can. */
export const irreversible: { readonly [name in OperationName]?: string } = {
  crm_delete_contacts: 'Contacts that were deleted cannot be brought back.',
  messaging_send_bulk: 'Messages that were sent cannot be taken back.',
}

const listDeleted = ({ type, data }: EventRow): string[] =>
  type === 'contact.deleted/1' ? [(data as EventData<'contact.deleted/1'>).contact.id] : []

/** Returns the records that changed, and the calls that take it back. `recorded`: beside what the events tell. */
export const toUndoCalls = (
  events: readonly EventRow[],
  recorded: readonly BatchCall[],
): { changed: string[]; calls: BatchCall[] } => {
  const calls = [
    ...events.flatMap(({ type, data }) => inverse[type as EventTypeId]?.(data as never) ?? []),
    ...recorded,
  ]
  return { changed: [...new Set([...calls.flatMap(listCallIds), ...events.flatMap(listDeleted)])], calls }
}
