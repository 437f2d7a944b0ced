import type { EventData, EventTypeId } from '../../catalog/events.ts'
import type { BatchCall } from '../../storage/bulk-jobs.ts'
import type { EventRow } from '../../storage/events.ts'

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

/** Returns the contacts that changed, by the events of the change, and the calls that take it back. */
export const toUndoCalls = (events: readonly EventRow[]): { changed: string[]; calls: BatchCall[] } => {
  const calls = events.flatMap(({ type, data }) => inverse[type as EventTypeId]?.(data as never) ?? [])
  return { changed: [...new Set(calls.flatMap(({ input }) => input['contact_ids'] as string[]))], calls }
}
