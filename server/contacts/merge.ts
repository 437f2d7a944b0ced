import {
  type MergeableContact,
  type MergedContact,
  moveContactRecords,
  type MovedLabels,
  readMergeableContacts,
  updateMergedContact,
} from '../../storage/contact-merge.ts'
import { type FieldRow, listFields } from '../../storage/custom-fields.ts'
import { findLabels } from '../../storage/labels.ts'
import type { ConversationContext } from '../inbox/conversation-context.ts'
import type { Metadata } from '../../storage/contact-values.ts'
import { Problem } from '../core/problem.ts'
import { toChangeName } from './edit.ts'
import { mergeMetadata } from './metadata.ts'
import { eventContact } from './view.ts'

/** The events of a merge: of the contact that stays, and of the one that is deleted. */
export type MergeEvent =
  | 'contact.updated/1'
  | 'contact.deleted/1'
  | 'contact.tags_added/1'
  | 'contact.groups_added/1'

type MergeContext = ConversationContext<MergeEvent>

/**
 * Merges two contacts of one person, both locked by the caller in the order of their ids, before any
 * conversation. `keepId` stays; the other is deleted and its records move (`moveContactRecords`).
 *
 * What the one that stays has, wins: name, phone, user id, email, external id, web visitor id, custom values and
 * metadata of the other only fill what is missing. Do-not-disturb and the star of either hold, and so do its tags and
 * groups. Conversations move whole: two on one channel stay two, and the next message goes on in the later one.
 */
export const mergeContacts = async (
  context: MergeContext,
  keepId: string,
  otherId: string,
  reason: 'same_customer',
): Promise<void> => {
  const { tx, workspaceId, now } = context
  const rows = await readMergeableContacts(tx, workspaceId, [keepId, otherId])
  const [kept, other] = [keepId, otherId].map((id) => rows.find((row) => row.id === id))
  if (!kept || !other) return
  const fields = await listFields(tx, workspaceId)
  const labels = await moveContactRecords(tx, workspaceId, other.id, kept.id)
  const merged = combine(kept, other, fields)
  await updateMergedContact(tx, workspaceId, merged, now)
  context.emit('contact.deleted/1', { contact: { id: other.id, merged_into: kept.id, reason } })
  const changes = listChanges(kept, merged, fields)
  if (changes.length > 0)
    context.emit('contact.updated/1', {
      contact: eventContact({
        ...kept,
        ...merged,
        phone: merged.line?.phone ?? null,
        updated_at: now,
      }),
      changes,
    })
  await emitMovedLabels(context, kept.id, labels)
}

const later = (a: string | null, b: string | null): string | null =>
  a === null || (b !== null && Date.parse(b) > Date.parse(a)) ? b : a

const toLine = ({ phone, phone_key: key }: MergeableContact): MergedContact['line'] =>
  phone === null ? null : { phone, key: key ?? phone }

const combine = (
  kept: MergeableContact,
  other: MergeableContact,
  fields: readonly FieldRow[],
): MergedContact => {
  const filled = fields.filter(({ id }) => kept.attrs[id] === undefined && other.attrs[id] !== undefined)
  const hasPhone = kept.phone !== null
  return {
    id: kept.id,
    name: kept.name ?? other.name,
    line: toLine(hasPhone ? kept : other),
    provider_phone: hasPhone ? kept.provider_phone : other.provider_phone,
    chatapp_user_id: kept.chatapp_user_id ?? other.chatapp_user_id,
    web_visitor_id: kept.web_visitor_id ?? other.web_visitor_id,
    email: kept.email ?? other.email,
    external_id: kept.external_id ?? other.external_id,
    metadata: fillMetadata(kept.metadata, other.metadata),
    dnd: kept.dnd || other.dnd,
    starred: kept.starred || other.starred,
    last_activity_at: later(kept.last_activity_at, other.last_activity_at),
    values: {
      attrs: { ...kept.attrs, ...Object.fromEntries(filled.map(({ id }) => [id, other.attrs[id]!])) },
      changed: new Map(filled.map(({ id, type }) => [id, type])),
    },
  }
}

/** Returns metadata with the keys of the other contact that it lacks, as many as it may have; undefined without any. */
const fillMetadata = (kept: Metadata | null, other: Metadata | null): Metadata | undefined => {
  const missing = Object.entries(other ?? {}).filter(([key]) => kept?.[key] === undefined)
  let filled: Metadata | undefined
  for (const [key, value] of missing) {
    try {
      filled = mergeMetadata(filled ?? kept ?? {}, { [key]: value })
    } catch (error) {
      if (!(error instanceof Problem)) throw error
    }
  }
  return filled
}

const COLUMNS = ['name', 'chatapp_user_id', 'web_visitor_id', 'external_id', 'dnd', 'starred'] as const

/** Returns the names of what changed, as events carry them. */
const listChanges = (
  kept: MergeableContact,
  merged: MergedContact,
  fields: readonly FieldRow[],
): string[] => [
  ...COLUMNS.filter((name) => kept[name] !== merged[name]),
  ...(merged.metadata ? ['metadata'] : []),
  ...(kept.phone === (merged.line?.phone ?? null) ? [] : ['phone']),
  ...fields.filter(({ id }) => merged.values.changed.has(id)).map(({ key }) => toChangeName(key)),
]

const emitMovedLabels = async (
  context: MergeContext,
  contactId: string,
  { tagIds, groupIds }: MovedLabels,
): Promise<void> => {
  const { tx, workspaceId } = context
  const find = async (kind: 'tag' | 'group', ids: readonly string[]) =>
    ids.length === 0
      ? []
      : (await findLabels(tx, workspaceId, kind, ids, [])).map(({ id, name }) => ({ id, name }))
  const tags = await find('tag', tagIds)
  const groups = await find('group', groupIds)
  if (tags.length > 0) context.emit('contact.tags_added/1', { contact_ids: [contactId], tags })
  if (groups.length > 0) context.emit('contact.groups_added/1', { contact_ids: [contactId], groups })
}
