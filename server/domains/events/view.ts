import { listManagerOnlyKeys } from '../../../storage/contacts/custom-fields.ts'
import type { Db } from '../../../storage/database.ts'
import type { EventRow } from '../../../storage/events/events.ts'
import { toChangeName } from '../contacts/edit.ts'
import type { Actor } from '../../kernel/context.ts'
import { showRecord } from '../../visibility/records.ts'
import { canSeeManagerFields, canSeeMetadata, listVisibleChannels } from '../../visibility/policy.ts'

type Data = Record<string, unknown>
type ShownEvent = { id: string; type: string; occurred_at: string; data: Data }

const isContactUpdate = (type: string): boolean => type.startsWith('contact.updated/')

/** Leaves hidden fields out of the names of the fields that changed. */
const hideChanges = (data: Data, hidden: readonly string[]): Data => {
  const { changes } = data
  return Array.isArray(changes)
    ? { ...data, changes: changes.filter((name) => !hidden.includes(String(name))) }
    : data
}

/** What an agent asked for may tell of channels that its reader does not see. */
const hideSummary = ({ approval, ...rest }: Data): Data => {
  const { summary: _, ...shown } = approval as Data
  return { ...rest, approval: shown }
}

/** Returns the names of the manager-only fields that the staff member does not see. */
const listHiddenFields = async (db: Db, actor: Actor): Promise<string[]> =>
  canSeeManagerFields(actor) ? [] : (await listManagerOnlyKeys(db, actor.workspace.id)).map(toChangeName)

/**
 * Returns events as a staff member may see them. That a contact changed is no secret, for its `updated_at`
 * says so; which manager-only fields changed is not shown to agents.
 */
export const showEvents = async (
  db: Db,
  actor: Actor,
  events: readonly EventRow[],
): Promise<ShownEvent[]> => {
  const hidden =
    canSeeMetadata(actor) || !events.some(({ type }) => isContactUpdate(type))
      ? []
      : ['metadata', ...(await listHiddenFields(db, actor))]
  return events.map(({ id, type, occurred_at, data }) => {
    const visible = isContactUpdate(type)
      ? hideChanges(data as Data, hidden)
      : type.startsWith('approval.requested/') && listVisibleChannels(actor) !== null
        ? hideSummary(data as Data)
        : (data as Data)
    return { id, type, occurred_at, data: showRecord(actor, ['event', type], visible) }
  })
}
