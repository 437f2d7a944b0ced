import type { Context, InputOf } from '../../handler.ts'
import { buildLabelChange, changeContactLabels } from '../../../storage/labels/changes.ts'
import {
  countLabels,
  findLabels,
  type Label,
  type LabelKind,
  type LabelRow,
  listLabelNames,
  listLabelPage,
} from '../../../storage/labels/labels.ts'
import { fold } from '../../../storage/values/text.ts'
import { type BulkOutput, listMissing, toBulkOutput } from '../bulk-jobs/output.ts'
import { createPage } from '../../kernel/paging.ts'
import { toPointer, Problem } from '../../kernel/problem.ts'
import { findNearestName } from '../../nearest-name.ts'
import { isIdText, findCachedLabels } from './label-cache.ts'

/** What tags and groups have in common: both are names that contacts carry. */

/** Labels as a client gives them: ids, as numbers or digits, and for tags also names. */
export type LabelRefs = readonly (string | number)[]

/** Returns the distinct ids of a list, as text, in their order. */
export const distinctIds = (ids: LabelRefs): string[] => [...new Set(ids.map(String))]

/** Returns a 400 that points at each unknown id of `field`. */
export const unknownLabelIds = (
  kind: LabelKind,
  field: string,
  given: LabelRefs,
  missing: readonly string[],
): Problem =>
  new Problem('invalid_input', `There is no ${kind} with the id ${missing.join(', ')}.`, {
    errors: missing.map((id) => ({
      pointer: toPointer([field, given.findIndex((g) => String(g) === id)]),
      code: `unknown_${kind}`,
      detail: `is not the id of a ${kind} of this workspace`,
      fix: `List the ${kind}s to find its id.`,
    })),
  })

/** How many names an error compares an unknown one with. */
const MAX_COMPARED_NAMES = 5000

/** Returns the names that an unknown one is compared with. */
export const loadLabelNames = ({ tx, actor }: Context, kind: LabelKind): Promise<string[]> =>
  listLabelNames(tx, actor.workspace.id, kind, MAX_COMPARED_NAMES)

/** Returns that of the `known` names that is most similar, if any is. */
export const findNearestLabel = (name: string, known: readonly string[]): string | undefined => {
  const byKey = new Map(known.map((one) => [fold(one), one]))
  const nearestKey = findNearestName(fold(name), [...byKey.keys()])
  return nearestKey === undefined ? undefined : byKey.get(nearestKey)
}

/** Returns a 400 that points at a name that none of the `known` labels has, with the nearest one. */
export const unknownLabelName = (
  kind: LabelKind,
  path: readonly (string | number)[],
  name: string,
  known: readonly string[],
): Problem => {
  const nearest = findNearestLabel(name, known)
  return new Problem('invalid_input', `There is no ${kind} with the name ${JSON.stringify(name)}.`, {
    errors: [
      {
        pointer: toPointer(path),
        code: `unknown_${kind}`,
        detail: `is not the name of a ${kind} of this workspace`,
        fix:
          nearest === undefined
            ? `List the ${kind}s to find its name.`
            : `Did you mean ${JSON.stringify(nearest)}?`,
      },
    ],
  })
}

/**
 * Returns the ids of labels that a filter names by id or name, in their order. Digits are an id, known or not.
 * `pathOf`: where a ref is in the input. Throws 400 for an unknown name.
 */
export const resolveLabelIds = async (
  ctx: Context,
  kind: LabelKind,
  refs: LabelRefs,
  pathOf: (index: number) => readonly (string | number)[],
): Promise<string[]> => {
  const names = refs.filter((ref) => typeof ref === 'string' && !isIdText(ref)).map(String)
  if (names.length === 0) return distinctIds(refs)
  const found = await findLabels(ctx.tx, ctx.actor.workspace.id, kind, [], names.map(fold))
  const idByName = new Map(found.map(({ id, name_key: key }) => [key, id]))
  const unknown = names.find((name) => !idByName.has(fold(name)))
  if (unknown !== undefined)
    throw unknownLabelName(kind, pathOf(refs.indexOf(unknown)), unknown, await loadLabelNames(ctx, kind))
  return distinctIds(refs.map((ref) => (isIdText(ref) ? ref : idByName.get(fold(String(ref)))!)))
}

type LabelPage<Out> = { data: Out[]; total: number | null; next_cursor: string | null }

/** Returns a page of tags or groups, by name. */
export const listLabels = <Out>(
  ctx: Context,
  kind: LabelKind,
  input: InputOf<'crm_list_tags'>,
  show: (row: LabelRow) => Out,
): Promise<LabelPage<Out>> =>
  createPage({
    cursors: ctx.cursors,
    input,
    load: (after, limit) =>
      listLabelPage(ctx.tx, ctx.actor.workspace.id, kind, {
        search: input.search,
        after: after && { nameKey: after[0]!, id: after[1]! },
        limit,
      }),
    count: () => countLabels(ctx.tx, ctx.actor.workspace.id, kind, input.search),
    toPosition: (row) => [row.name_key, row.id],
    toItem: show,
  })

/** Contacts that gained or lost the same labels; one event covers them. */
type LabelChange = { labels: Label[]; contactIds: string[] }
type LabelsChanged = { output: BulkOutput<never>; changes: LabelChange[] }

/**
 * Adds the labels to, or removes them from, those of these contacts that exist. Returns the output, and the
 * actual changes.
 */
export const changeLabels = async (
  ctx: Context,
  kind: LabelKind,
  action: 'add' | 'remove',
  labels: readonly Label[],
  contactIds: LabelRefs,
): Promise<LabelsChanged> => {
  const requested = distinctIds(contactIds)
  const request = { kind, action, labels, contactIds: requested, now: ctx.now }
  const { contacts, pairs } = await changeContactLabels(ctx.tx, ctx.actor.workspace.id, request)
  return {
    output: toBulkOutput(ctx, requested, listMissing(requested, contacts)),
    changes: groupByLabels(labels, pairs),
  }
}

/**
 * The same for one contact, with cached labels: one round trip instead of three. The contact is assumed to exist, and
 * to gain or lose all of them, or none. Undefined where a label is not cached, or the call may not be optimistic.
 */
export const changeLabelsOptimistically = (
  ctx: Context,
  kind: LabelKind,
  action: 'add' | 'remove',
  refs: LabelRefs,
  contactIds: LabelRefs,
): LabelsChanged | undefined => {
  const requested = distinctIds(contactIds)
  if (!ctx.pending.mayBeOptimistic || requested.length !== 1) return undefined
  const labels = findCachedLabels(ctx, kind, refs)
  if (!labels) return undefined
  const request = { kind, action, labels, contactIds: requested, now: ctx.now }
  ctx.pending.deferred = buildLabelChange(ctx.actor.workspace.id, request)
  return { output: toBulkOutput(ctx, requested, []), changes: [{ labels, contactIds: requested }] }
}

/** Groups contacts by the set of labels that they gained or lost. */
const groupByLabels = (
  labels: readonly Label[],
  pairs: readonly { label: string; contact: string }[],
): LabelChange[] => {
  const idsByContact = new Map<string, Set<string>>()
  for (const { label, contact } of pairs) {
    const ids = idsByContact.get(contact) ?? new Set()
    idsByContact.set(contact, ids.add(label))
  }
  const changes = new Map<string, LabelChange>()
  for (const [contact, ids] of idsByContact) {
    const key = [...ids].toSorted().join(' ')
    const change = changes.get(key) ?? {
      labels: labels.filter(({ id }) => ids.has(id)).map(({ id, name }) => ({ id, name })),
      contactIds: [],
    }
    change.contactIds.push(contact)
    changes.set(key, change)
  }
  return [...changes.values()]
}

/** Throws 409 `name_taken` when another label of the kind has the name. */
export const requireFreeName = async (
  ctx: Context,
  kind: LabelKind,
  id: string,
  name: string,
): Promise<void> => {
  const [other] = (await findLabels(ctx.tx, ctx.actor.workspace.id, kind, [], [fold(name)])).filter(
    (label) => label.id !== id,
  )
  if (other)
    throw new Problem(
      'conflict',
      `The ${kind} ${other.id} has the name "${other.name}". Choose another name.`,
      {
        reason: 'name_taken',
      },
    )
}
