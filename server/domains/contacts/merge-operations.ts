import type { Context, EmitsOf, Handler, OutputOf } from '../../handler.ts'
import { isDeepStrictEqual } from 'node:util'
import { UNDO_DAYS } from '../../../catalog/contacts/merge.ts'
import { lockContacts, type MergeableContact, type MovedLabels } from '../../../storage/contacts/merge.ts'
import {
  type ContactMerge,
  deleteEmptyFacts,
  expireMergesBefore,
  type Facts,
  findIdentityHolder,
  findMerge,
  readMergedFacts,
  type RestoredContact,
  restoreKeptContact,
  restoreMergedContact,
} from '../../../storage/contacts/merges.ts'
import { type FieldTypes, writeMetadata, writeValues } from '../../../storage/contacts/values.ts'
import { lockContact, readContact } from '../../../storage/contacts/contacts.ts'
import { type FieldRow, listFields } from '../../../storage/contacts/custom-fields.ts'
import type { App } from '../../app.ts'
import { invalidField, notFound, Problem } from '../../kernel/problem.ts'
import { toChangeContext } from '../../change-context.ts'
import { changeInBatches } from '../../work/change-in-batches.ts'
import { daysAgo } from '../../work/partitions.ts'
import { canSeeField, canSeeMetadata, hasHiddenPhones } from '../../visibility/policy.ts'
import { toChangeName } from './edit.ts'
import { requireRoomForContact } from './limit.ts'
import { type Merge, mergeContacts as merge, readMovedLabels } from './merge.ts'
import { withTimeline } from './timeline.ts'
import { eventContact, showContact } from './view.ts'

/** Columns that both contacts of a merge may have, as `prefer_other` names them. */
const COLUMNS = [
  'name',
  'phone',
  'external_id',
  'chatapp_user_id',
  'username',
  'web_visitor_id',
] as const satisfies readonly (keyof MergeableContact)[]

const showOne = async (ctx: Context, id: string) => {
  const read = await withTimeline(ctx, (timeline) =>
    readContact(ctx.tx, ctx.actor.workspace.id, id, timeline),
  )
  return showContact(ctx.actor, read!.contact, read!.fields, 'full')
}

/** Throws 400 for a custom field that does not exist, or is hidden, and for hidden metadata. */
const requireKnownFields = async (ctx: Context, names: readonly string[]): Promise<void> => {
  const attributes = names.filter((name) => name.startsWith('attributes.'))
  const fields = attributes.length === 0 ? [] : await listFields(ctx.tx, ctx.actor.workspace.id)
  const known = new Set(
    fields.filter((field) => canSeeField(ctx.actor, field)).map(({ key }) => `attributes.${key}`),
  )
  for (const [i, name] of names.entries()) {
    const isKnown =
      name === 'metadata' ? canSeeMetadata(ctx.actor) : !attributes.includes(name) || known.has(name)
    if (!isKnown)
      throw invalidField(
        'prefer_other',
        'unknown_field',
        `names ${name}, which is no field that you may see`,
        {
          path: [i],
          fix: 'crm_list_custom_fields shows the keys.',
        },
      )
  }
}

/**
 * Returns, of each field of which the other contact has a value, which value the one that stays has. By what it took:
 * whether both have the same is not told, for one of them may be hidden.
 */
const listWinners = (
  { actor }: Pick<Context, 'actor'>,
  { other, taken, fields }: Merge,
): OutputOf<'crm_merge_contacts'>['fields'] => {
  const names = [
    ...COLUMNS.filter((name) => other[name] !== null),
    ...fields
      .filter((field) => other.attrs[field.id] !== undefined && canSeeField(actor, field))
      .map(({ key }) => toChangeName(key)),
  ]
  return names.map((name) => ({ name, winner: taken.has(name) ? 'other' : 'kept' }))
}

export const mergeContacts: Handler<'crm_merge_contacts'> = async (ctx, input) => {
  const { contact_id: id, other_contact_id: otherId, prefer_other: names = [] } = input
  const workspaceId = ctx.actor.workspace.id
  if (id === otherId)
    throw invalidField('other_contact_id', 'same_contact', 'is the contact that stays', {
      fix: 'Send the id of another contact of the same person.',
    })
  await requireKnownFields(ctx, names)
  const locked = await lockContacts(ctx.tx, workspaceId, [id, otherId])
  for (const each of [id, otherId]) if (!locked.includes(each)) throw notFound('contact', each)
  // The value of the field `email` is named like the column that follows it.
  const preferOther = new Set(names.map((name) => (name === 'attributes.email' ? 'email' : name)))
  const done = await merge(toChangeContext(ctx), id, otherId, {
    reason: 'request',
    preferOther,
    hidesPhones: hasHiddenPhones(ctx.actor),
  })
  return {
    contact: await showOne(ctx, id),
    other_contact_id: otherId,
    fields: listWinners(ctx, done!),
    undo_until: daysAgo(ctx.now, -UNDO_DAYS),
  }
}

const noMerge = (detail: string, reason: 'merge_expired' | 'merged_again'): Problem =>
  new Problem('conflict', `${detail} Nothing was changed.`, { reason })

/** Finds the merge, with its contact that stays locked. Throws 404 and 409. */
const lockMerge = async (ctx: Context, id: string): Promise<ContactMerge> => {
  const workspaceId = ctx.actor.workspace.id
  const found = await findMerge(ctx.tx, workspaceId, id)
  const keptId = found?.into_id
  if (keptId === undefined)
    throw new Problem('not_found', `No contact with the id ${id} was merged into another one.`)
  if (!(await lockContact(ctx.tx, workspaceId, keptId))) {
    const next = await findMerge(ctx.tx, workspaceId, keptId)
    throw next
      ? noMerge(
          `Contact ${keptId}, into which ${id} was merged, was merged into ${next.into_id}: undo that first.`,
          'merged_again',
        )
      : notFound('contact', keptId)
  }
  // Another call may have undone it while this one waited for the lock.
  const merge = await findMerge(ctx.tx, workspaceId, id)
  if (!merge) throw new Problem('not_found', `No contact with the id ${id} was merged into another one.`)
  if (!merge.is_undoable || merge.merged_at < daysAgo(ctx.now, UNDO_DAYS))
    throw noMerge(`The merge of contact ${id} is more than ${UNDO_DAYS} days old.`, 'merge_expired')
  return merge
}

/**
 * Returns a record with the members that a merge changed as they were before it, but for those that changed since, and
 * the names of those that differ from now.
 */
const restoreMembers = <T>(
  was: Readonly<Record<string, T>>,
  merged: Readonly<Record<string, T>>,
  now: Readonly<Record<string, T>>,
): { restored: Record<string, T>; changed: string[] } => {
  const restored = { ...now }
  const changed: string[] = []
  for (const name of new Set([...Object.keys(was), ...Object.keys(merged)])) {
    if (isDeepStrictEqual(was[name], merged[name]) || !isDeepStrictEqual(now[name], merged[name])) continue
    changed.push(name)
    if (was[name] === undefined) delete restored[name]
    else restored[name] = was[name]
  }
  return { restored, changed }
}

const noFacts: Facts = { attrs: {}, metadata: null }

/** Throws 403 where what comes back would tell whether a hidden phone is the one that was written since. */
const requireSeenPhones = (
  { actor }: Context,
  fields: readonly FieldRow[],
  states: readonly Facts[],
): void => {
  if (!hasHiddenPhones(actor)) return
  const field = fields.find(({ id, type }) => type === 'phone' && states.some(({ attrs }) => id in attrs))
  if (field)
    throw new Problem(
      'forbidden',
      `The contacts have phone numbers in ${field.key}, which are hidden from you. Ask somebody who sees them.`,
      { reason: 'phone_hidden' },
    )
}

/** Gives the contact that stays its values back. Returns the names of what changed. */
const restoreValues = async (
  ctx: Context,
  id: string,
  keptId: string,
  fields: readonly FieldRow[],
): Promise<string[]> => {
  const workspaceId = ctx.actor.workspace.id
  const facts = await readMergedFacts(ctx.tx, workspaceId, id)
  const [was, merged, now] = [facts.before ?? noFacts, facts.after ?? noFacts, facts.now ?? noFacts]
  requireSeenPhones(ctx, fields, [was, merged, now])
  const values = restoreMembers(was.attrs, merged.attrs, now.attrs)
  const types: FieldTypes = new Map(
    fields.filter((field) => values.changed.includes(field.id)).map((field) => [field.id, field.type]),
  )
  if (types.size > 0) await writeValues(ctx.tx, workspaceId, keptId, values.restored, types)
  const metadata = restoreMembers(was.metadata ?? {}, merged.metadata ?? {}, now.metadata ?? {})
  if (metadata.changed.length > 0) {
    const isEmpty = was.metadata === null && Object.keys(metadata.restored).length === 0
    await writeMetadata(ctx.tx, workspaceId, keptId, isEmpty ? null : metadata.restored)
  }
  if (facts.before === null) await deleteEmptyFacts(ctx.tx, workspaceId, keptId)
  return [
    ...fields.filter((field) => types.has(field.id)).map(({ key }) => toChangeName(key)),
    ...(metadata.changed.length > 0 ? ['metadata'] : []),
  ]
}

/** Throws 409 when another contact has the phone or the external id of the contact that is to come back. */
const requireFreeIdentity = async (ctx: Context, id: string): Promise<void> => {
  const holder = await findIdentityHolder(ctx.tx, ctx.actor.workspace.id, id)
  if (holder === undefined) return
  throw new Problem(
    'conflict',
    `Contact ${holder} has the phone or the external id of contact ${id} now. Nothing was changed.`,
    { reason: 'identity_conflict' },
  )
}

type UndoContext = Context<EmitsOf<'crm_undo_contact_merge'>>

const emitLabels = async (
  ctx: UndoContext,
  contactId: string,
  moved: MovedLabels,
  change: 'added' | 'removed',
): Promise<void> => {
  const { tags, groups } = await readMovedLabels(ctx.tx, ctx.actor.workspace.id, moved)
  if (tags.length > 0) ctx.emit(`contact.tags_${change}/1`, { contact_ids: [contactId], tags })
  if (groups.length > 0) ctx.emit(`contact.groups_${change}/1`, { contact_ids: [contactId], groups })
}

/** Emits what became of the contact that stayed. */
const emitKept = (ctx: UndoContext, kept: RestoredContact, values: readonly string[]): void => {
  const changes = [...kept.changed.filter((name) => name !== 'email'), ...values]
  if (changes.length > 0)
    ctx.emit('contact.updated/1', { contact: eventContact({ ...kept, updated_at: ctx.now }), changes })
}

export const undoContactMerge: Handler<'crm_undo_contact_merge'> = async (ctx, { merged_contact_id: id }) => {
  const workspaceId = ctx.actor.workspace.id
  await requireRoomForContact(ctx)
  const { into_id: keptId } = await lockMerge(ctx, id)
  const fields = await listFields(ctx.tx, workspaceId)
  const changedValues = await restoreValues(ctx, id, keptId, fields)
  const kept = await restoreKeptContact(ctx.tx, workspaceId, id, ctx.now)
  await requireFreeIdentity(ctx, id)
  const labels = await restoreMergedContact(ctx.tx, workspaceId, id)
  emitKept(ctx, kept, changedValues)
  await emitLabels(ctx, keptId, labels.removed, 'removed')
  const { contact: back } = (await readContact(ctx.tx, workspaceId, id, 'none'))!
  ctx.emit('contact.created/1', { contact: eventContact(back) })
  await emitLabels(ctx, id, labels.added, 'added')
  return { contact: await showOne(ctx, id), kept_contact: await showOne(ctx, keptId) }
}

/** Forgets what undoes merges that are too old to be undone. Returns their count. */
export const expireMerges = (app: App, signal: AbortSignal): Promise<number> => {
  const before = daysAgo(app.now(), UNDO_DAYS)
  return changeInBatches((limit) => expireMergesBefore(app.db, before, limit), signal)
}
