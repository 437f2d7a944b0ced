import type { Context } from '../../handler.ts'
import { listFields } from '../../../storage/contacts/custom-fields.ts'
import { isObject } from '../../../catalog/values.ts'
import type { Actor } from '../../kernel/context.ts'
import {
  canSeeChannel,
  canSeeField,
  canSeeManagerFields,
  listVisibleChannels,
} from '../../visibility/policy.ts'

type StoredFilter = Record<string, unknown>
/** What stands for a key, a value or an id that the reader may not see. */
const HIDDEN = '****'

/**
 * Returns what leaves out of a saved filter the custom fields and channels that the actor may not see. A
 * condition on a custom field keeps its place, but neither key, operator nor value.
 */
export const loadConditionView = async ({
  tx,
  actor,
}: Pick<Context, 'tx' | 'actor'>): Promise<(filter: StoredFilter) => StoredFilter> => {
  if (canSeeManagerFields(actor) && listVisibleChannels(actor) === null) return (filter) => filter
  const fields = await listFields(tx, actor.workspace.id)
  const visibleKeys = new Set(fields.filter((field) => canSeeField(actor, field)).map(({ key }) => key))
  return (filter) => hideConditions({ actor, visibleKeys }, filter)
}

type Viewer = { actor: Actor; visibleKeys: ReadonlySet<string> }

const hideConditions = <T>(viewer: Viewer, node: T): T => {
  if (Array.isArray(node)) return node.map((item) => hideConditions(viewer, item)) as T
  if (!isObject(node)) return node
  return Object.fromEntries(
    Object.entries(node).map(([key, member]) => [key, hideMember(viewer, key, member)]),
  ) as T
}

const hideMember = (viewer: Viewer, key: string, member: unknown): unknown => {
  if (key === 'attributes' && isObject(member))
    return Object.fromEntries(
      Object.entries(member).map(([quantifier, record]) => [quantifier, hideRecord(viewer, record)]),
    )
  if (key === 'email' && !viewer.visibleKeys.has('email')) return { eq: HIDDEN }
  if (key === 'channelId') return hideChannels(viewer.actor, member)
  return hideConditions(viewer, member)
}

/** The key of a deleted field is hidden from agents too: it may have been a manager-only one. */
const hideRecord = ({ actor, visibleKeys }: Viewer, record: unknown): unknown => {
  const name = isObject(record) && isObject(record['attributeName']) ? record['attributeName']['eq'] : null
  return canSeeManagerFields(actor) || visibleKeys.has(String(name))
    ? record
    : { attributeName: { eq: HIDDEN } }
}

const hideChannels = (actor: Actor, operand: unknown): unknown => {
  if (Array.isArray(operand)) return operand.map((item) => hideChannels(actor, item))
  if (isObject(operand))
    return Object.fromEntries(Object.entries(operand).map(([op, value]) => [op, hideChannels(actor, value)]))
  const isId = typeof operand === 'string' || typeof operand === 'number'
  return isId && !canSeeChannel(actor, String(operand)) ? HIDDEN : operand
}
