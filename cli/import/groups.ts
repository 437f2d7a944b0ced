import { randomUUID } from 'node:crypto'
import { usageError } from '../error.ts'
import { fetchAllPages } from '../pages.ts'
import { BATCH_FAILURES, createPatientPolicy, type ServerConnection } from '../remote.ts'
import { callUnlessAsked } from './asked.ts'
import { findNearestColumnName } from './columns.ts'

/** The ids of groups by the name, or the id, that rows give; null for a group that a dry run would create. */
export type GroupIds = ReadonlyMap<string, string | null>

type Group = { readonly id: string; readonly name: string }

const MAX_LISTED_NAMES = 10

const foldName = (name: string): string => name.normalize('NFC').toLowerCase()

/**
 * Resolves groups by name (ignoring case) or by id. Missing groups are created when `create` is set;
 * otherwise throws a usage error.
 */
export const resolveImportGroups = async (
  to: ServerConnection,
  names: readonly string[],
  { create, dryRun }: { create: boolean; dryRun: boolean },
): Promise<GroupIds> => {
  if (names.length === 0) return new Map()
  const { value: list } = await fetchAllPages(to, 'crm_list_groups', { limit: 100 })
  const groups = list['data'] as Group[]
  const idsByName = new Map(groups.map((group) => [foldName(group.name), group.id]))
  const ids = new Map<string, string | null>()
  for (const name of names) {
    const id = idsByName.get(foldName(name)) ?? groups.find((group) => group.id === name)?.id
    if (id !== undefined) ids.set(name, id)
  }
  const missing = names.filter((name) => !ids.has(name))
  if (missing.length > 0 && !create) throw missingGroupsError(missing, groups)
  for (const name of missing) ids.set(name, await createGroup(to, name, dryRun))
  return ids
}

const missingGroupsError = (missing: readonly string[], groups: readonly Group[]): Error => {
  const nearest = findNearestColumnName(
    missing[0]!,
    groups.map((group) => group.name),
  )
  const listed = missing
    .slice(0, MAX_LISTED_NAMES)
    .map((name) => `"${name}"`)
    .join(', ')
  const more = missing.length > MAX_LISTED_NAMES ? ` and ${missing.length - MAX_LISTED_NAMES} more` : ''
  return usageError(
    `There is no group ${listed}${more}.`,
    'file',
    `${nearest === undefined ? '' : `Did you mean ${nearest}? `}--create-groups creates missing groups.`,
  )
}

/** Returns the id of the new group; null in a dry run. */
const createGroup = async (to: ServerConnection, name: string, dryRun: boolean): Promise<string | null> => {
  const input = { name, ...(dryRun ? { dry_run: true } : {}) }
  const idempotencyKey = randomUUID()
  const policy = createPatientPolicy(to, { onWait: () => {}, failures: BATCH_FAILURES })
  const value = await callUnlessAsked(to, 'crm_create_group', input, { idempotencyKey, policy })
  return (value['group'] as { id: string | null }).id
}
