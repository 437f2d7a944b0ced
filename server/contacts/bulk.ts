import { touchContacts } from '../../storage/contacts.ts'
import {
  type Label,
  type LabelKind,
  linkLabels,
  lockContacts,
  lockGroup,
  unlinkLabels,
} from '../../storage/labels.ts'
import type { Context } from '../core/context.ts'
import type { Handler, InputOf, OutputOf } from '../core/handler.ts'
import { notFound } from '../core/problem.ts'
import { distinctIds, resolveTags } from './input.ts'

const MOST_FAILURES = 50
type Output = OutputOf<'crm_tag_contacts'>

/** Ids that may differ in spelling but name the same contact count once. */
const answer = (requested: readonly string[], found: readonly string[]): Output => {
  const there = new Set(found)
  const missing = requested.filter((id) => !there.has(id))
  return {
    requested: requested.length,
    succeeded: found.length,
    failed: missing.length,
    failures: missing
      .slice(0, MOST_FAILURES)
      .map((id) => ({ id, code: 'not_found', message: `No contact with the id ${id}.` })),
    // One transaction does it all, so nothing is ever left for later.
    stopped_early: false,
    matched: found.length,
  }
}

/** One event for each set of labels that contacts really gained or lost. */
const note = (
  ctx: Context,
  kind: LabelKind,
  added: boolean,
  labels: readonly Label[],
  pairs: readonly { label: string; contact: string }[],
): void => {
  const byContact = new Map<string, string[]>()
  for (const { label, contact } of pairs) byContact.set(contact, [...(byContact.get(contact) ?? []), label])
  const byLabels = new Map<string, string[]>()
  for (const [contact, ids] of byContact) {
    const key = ids.toSorted().join(' ')
    byLabels.set(key, [...(byLabels.get(key) ?? []), contact])
  }
  for (const [ids, contacts] of byLabels) {
    const these = labels.filter((l) => ids.split(' ').includes(l.id))
    if (kind === 'tag')
      ctx.emit(added ? 'contact.tags_added/1' : 'contact.tags_removed/1', {
        contact_ids: contacts,
        tags: these,
      })
    else
      ctx.emit(added ? 'contact.groups_added/1' : 'contact.groups_removed/1', {
        contact_ids: contacts,
        groups: these,
      })
  }
}

const relabel = async (
  ctx: Context,
  kind: LabelKind,
  added: boolean,
  labels: readonly Label[],
  given: readonly (string | number)[],
): Promise<Output> => {
  const workspaceId = ctx.actor.workspace.id
  const requested = distinctIds(given)
  const found = await lockContacts(ctx.tx, workspaceId, requested)
  if (found.length > 0 && labels.length > 0) {
    const work = added ? linkLabels : unlinkLabels
    const pairs = await work(
      ctx.tx,
      workspaceId,
      kind,
      labels.map((l) => l.id),
      found,
    )
    await touchContacts(ctx.tx, workspaceId, [...new Set(pairs.map((p) => p.contact))], ctx.now)
    note(ctx, kind, added, labels, pairs)
  }
  return answer(requested, found)
}

export const tagContacts: Handler<InputOf<'crm_tag_contacts'>, Output> = async (ctx, input) =>
  await relabel(ctx, 'tag', true, await resolveTags(ctx, input.tags, true), input.contact_ids)

export const untagContacts: Handler<InputOf<'crm_untag_contacts'>, Output> = async (ctx, input) =>
  await relabel(ctx, 'tag', false, await resolveTags(ctx, input.tags, false), input.contact_ids)

const groupOf = async (ctx: Context, id: string): Promise<Label> => {
  const group = await lockGroup(ctx.tx, ctx.actor.workspace.id, id)
  if (!group) throw notFound('group', id)
  return { id: group.id, name: group.name }
}

export const addContactsToGroup: Handler<InputOf<'crm_add_contacts_to_group'>, Output> = async (ctx, input) =>
  await relabel(ctx, 'group', true, [await groupOf(ctx, input.group_id)], input.contact_ids)

export const removeContactsFromGroup: Handler<InputOf<'crm_remove_contacts_from_group'>, Output> = async (
  ctx,
  input,
) => await relabel(ctx, 'group', false, [await groupOf(ctx, input.group_id)], input.contact_ids)
