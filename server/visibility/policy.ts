import type { Actor } from '../kernel/context.ts'

/*
 * What a staff member may see, in one place. Reads, filters, sorts, counts, dry runs, imports, events,
 * delivery logs, saved filters and errors all ask here, so that they agree.
 */

/** Whether phones are hidden from a caller: by the staff member or by the key (`toActor`). */
export const hasHiddenPhones = ({ staff }: Actor): boolean => staff.hidePhoneNumbers

/** Owners and admins are managers too; agents are the others. */
export const isManager = ({ staff }: Pick<Actor, 'staff'>): boolean => staff.role !== 'agent'

/** Managers see manager-only fields. */
export const canSeeManagerFields = (actor: Actor): boolean => isManager(actor)

/**
 * Whether a caller sees the metadata of contacts: nobody knows what integrations write into it, so only those from whom
 * nothing of a contact is hidden.
 */
export const canSeeMetadata = (actor: Actor): boolean => canSeeManagerFields(actor) && !hasHiddenPhones(actor)

/** Whether a staff member may see a custom field and its values. */
export const canSeeField = (
  actor: Actor,
  { visibility }: { visibility: 'visible_to_all' | 'manager_only' },
): boolean => visibility !== 'manager_only' || canSeeManagerFields(actor)

/** Returns the channels to which a staff member is limited; null: all. */
export const listVisibleChannels = ({ staff }: Actor): readonly string[] | null => staff.channelIds

/**
 * Whether a staff member may see and use a channel and what is on it. What is on a deleted channel (null) is
 * visible only to staff with access to all channels.
 */
export const canSeeChannel = (actor: Actor, channelId: string | null): boolean => {
  const visible = listVisibleChannels(actor)
  return visible === null || (channelId !== null && visible.includes(channelId))
}
