import { isDeepStrictEqual } from 'node:util'
import {
  type MergeableContact,
  type MergedContact,
  moveContactRecords,
  type MovedLabels,
  readMergeableContacts,
  updateMergedContact,
} from '../../../storage/contacts/merge.ts'
import { recordMerge, recordMergeResult } from '../../../storage/contacts/merges.ts'
import { type FieldRow, listFields } from '../../../storage/contacts/custom-fields.ts'
import type { Db } from '../../../storage/database.ts'
import { findLabels } from '../../../storage/labels/labels.ts'
import type { ChangeContext } from '../../change-context.ts'
import type { Metadata } from '../../../storage/contacts/values.ts'
import { Problem } from '../../kernel/problem.ts'
import { toChangeName } from './edit.ts'
import { mergeMetadata } from './metadata.ts'
import { eventContact } from './view.ts'

/** The events of a merge: of the contact that stays, and of the one that is deleted. */
export type MergeEvent =
  | 'contact.updated/1'
  | 'contact.deleted/1'
  | 'contact.tags_added/1'
  | 'contact.groups_added/1'

type MergeContext = ChangeContext<MergeEvent>

/**
 * `preferOther`: names, as events have them, of what the contact that stays takes from the other one. `hidesPhones`:
 * phones are hidden from whom asks for it. Phones in custom fields then count as changed whatever they were.
 */
export type MergeOptions = {
  reason: 'same_customer' | 'request'
  preferOther?: ReadonlySet<string>
  hidesPhones?: boolean
}

/** Both contacts as they were, and the one that stays as it is now. `taken`: names of what it took from the other. */
export type Merge = {
  kept: MergeableContact
  other: MergeableContact
  merged: MergedContact
  taken: ReadonlySet<string>
  fields: readonly FieldRow[]
}

/**
 * Merges two contacts of one person, both locked by the caller in the order of their ids, before any
 * conversation. `keepId` stays; the other is deleted and its records move (`moveContactRecords`).
 *
 * What the one that stays has, wins: name, phone, user id, email, external id, web visitor id, custom values and
 * metadata of the other only fill what is missing, but for what is preferred of the other. Do-not-disturb and the star
 * of either hold, and so do its tags and groups. Conversations move whole: two on one channel stay two, and the next
 * message goes on in the later one.
 */
export const mergeContacts = async (
  context: MergeContext,
  keepId: string,
  otherId: string,
  { reason, preferOther = new Set(), hidesPhones = false }: MergeOptions,
): Promise<Merge | undefined> => {
  const { tx, workspaceId, now } = context
  const rows = await readMergeableContacts(tx, workspaceId, [keepId, otherId])
  const [kept, other] = [keepId, otherId].map((id) => rows.find((row) => row.id === id))
  if (!kept || !other) return undefined
  const fields = await listFields(tx, workspaceId)
  await recordMerge(tx, workspaceId, { fromId: other.id, intoId: kept.id }, now)
  const labels = await moveContactRecords(tx, workspaceId, other.id, kept.id)
  const { merged, taken } = combine(kept, other, fields, { preferOther, hidesPhones })
  await updateMergedContact(tx, workspaceId, merged, now)
  await recordMergeResult(tx, workspaceId, other.id)
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
  return { kept, other, merged, taken, fields }
}

/** Returns what stands in for the name of a contact whom nobody has given one. */
export const usernameAsName = (username: string | null): string | null => username && `@${username}`

export const givenName = ({ name, username }: Pick<MergeableContact, 'name' | 'username'>): string | null =>
  name === usernameAsName(username) ? null : name

const later = (a: string | null, b: string | null): string | null =>
  a === null || (b !== null && Date.parse(b) > Date.parse(a)) ? b : a

const toLine = ({ phone, phone_key: key }: MergeableContact): MergedContact['line'] =>
  phone === null ? null : { phone, key: key ?? phone }

const combine = (
  kept: MergeableContact,
  other: MergeableContact,
  fields: readonly FieldRow[],
  { preferOther, hidesPhones }: Required<Omit<MergeOptions, 'reason'>>,
): Pick<Merge, 'merged' | 'taken'> => {
  const taken = new Set<string>()
  const takes = (name: string, own: unknown, others: unknown): boolean => {
    const isTaken = others != null && (own == null || preferOther.has(name))
    if (isTaken) taken.add(name)
    return isTaken
  }
  const pick = <K extends keyof MergeableContact>(name: K): MergeableContact[K] =>
    (takes(name, kept[name], other[name]) ? other : kept)[name]
  const filled = fields.filter(({ id, key }) => takes(toChangeName(key), kept.attrs[id], other.attrs[id]))
  const name = givenName(takes('name', givenName(kept), givenName(other)) ? other : kept)
  const ofPhone = takes('phone', kept.phone, other.phone) ? other : kept
  const ofUserId = takes('chatapp_user_id', kept.chatapp_user_id, other.chatapp_user_id) ? other : kept
  const ofUsername = takes('username', kept.username, other.username) ? other : kept
  const merged = {
    id: kept.id,
    name: name ?? usernameAsName(ofUsername.username),
    line: toLine(ofPhone),
    provider_phone: ofPhone.provider_phone,
    phone_told_at: ofPhone.phone_told_at,
    chatapp_user_id: ofUserId.chatapp_user_id,
    user_id_told_at: ofUserId.user_id_told_at,
    username: ofUsername.username,
    username_told_at: ofUsername.username_told_at,
    web_visitor_id: pick('web_visitor_id'),
    email: pick('email'),
    external_id: pick('external_id'),
    metadata: preferOther.has('metadata')
      ? fillMetadata(other.metadata, kept.metadata, kept.metadata)
      : fillMetadata(kept.metadata, other.metadata, kept.metadata),
    dnd: kept.dnd || other.dnd,
    starred: kept.starred || other.starred,
    last_activity_at: later(kept.last_activity_at, other.last_activity_at),
    values: {
      attrs: { ...kept.attrs, ...Object.fromEntries(filled.map(({ id }) => [id, other.attrs[id]!])) },
      changed: new Map(
        filled
          .filter(
            ({ id, type }) =>
              (hidesPhones && type === 'phone') || !isDeepStrictEqual(kept.attrs[id], other.attrs[id]),
          )
          .map(({ id, type }) => [id, type]),
      ),
    },
  }
  return { merged, taken }
}

/**
 * Returns metadata with the keys of another contact that it lacks, as many as it may have; undefined where that is what
 * `was` has.
 */
const fillMetadata = (
  first: Metadata | null,
  second: Metadata | null,
  was: Metadata | null,
): Metadata | undefined => {
  let filled = first ?? {}
  for (const [key, value] of Object.entries(second ?? {})) {
    if (Object.hasOwn(filled, key)) continue
    try {
      filled = mergeMetadata(filled, { [key]: value })
    } catch (error) {
      if (!(error instanceof Problem)) throw error
    }
  }
  return isDeepStrictEqual(filled, was ?? {}) ? undefined : filled
}

const COLUMNS = [
  'name',
  'chatapp_user_id',
  'username',
  'web_visitor_id',
  'external_id',
  'dnd',
  'starred',
] as const

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

/** Returns those of the labels that still exist, as events show them. */
export const readMovedLabels = async (tx: Db, workspaceId: string, { tagIds, groupIds }: MovedLabels) => {
  const find = async (kind: 'tag' | 'group', ids: readonly string[]) =>
    ids.length === 0
      ? []
      : (await findLabels(tx, workspaceId, kind, ids, [])).map(({ id, name }) => ({ id, name }))
  return { tags: await find('tag', tagIds), groups: await find('group', groupIds) }
}

const emitMovedLabels = async (
  { tx, workspaceId, emit }: MergeContext,
  contactId: string,
  moved: MovedLabels,
): Promise<void> => {
  const { tags, groups } = await readMovedLabels(tx, workspaceId, moved)
  if (tags.length > 0) emit('contact.tags_added/1', { contact_ids: [contactId], tags })
  if (groups.length > 0) emit('contact.groups_added/1', { contact_ids: [contactId], groups })
}
