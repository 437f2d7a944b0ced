import { metadataLimits } from '../../../catalog/contacts/metadata.ts'
import type { Metadata } from '../../../storage/contacts/values.ts'
import type { Actor } from '../../kernel/context.ts'
import { invalidField, Problem, toPointer } from '../../kernel/problem.ts'
import { canSeeMetadata } from '../../visibility/policy.ts'

/** Keys and their new values; null and empty text delete a key. */
export type MetadataChanges = Readonly<Record<string, string | null>>

/** Throws 403 `field_hidden` for metadata of somebody who may not see it. */
export const refuseHiddenMetadata = (actor: Actor, metadata: MetadataChanges | undefined): void => {
  if (metadata === undefined || canSeeMetadata(actor)) return
  const fix = 'Leave it out, or use a key of an owner, admin or manager who sees phone numbers.'
  throw new Problem('forbidden', `You may not see metadata, so you may not change it. ${fix}`, {
    reason: 'field_hidden',
    errors: [{ pointer: toPointer(['metadata']), code: 'field_hidden', detail: 'is hidden from you', fix }],
  })
}

/**
 * Returns the metadata after the changes, its keys in alphabetical order: named keys are set or deleted, the others
 * stay. Throws 400 where the result would be too large.
 */
export const mergeMetadata = (stored: Metadata, changes: MetadataChanges): Metadata => {
  const next = new Map(Object.entries(stored))
  for (const [key, value] of Object.entries(changes)) {
    if (value === null || value === '') next.delete(key)
    else next.set(key, value)
  }
  if (next.size > metadataLimits.keys)
    throw invalidField(
      'metadata',
      'too_many_keys',
      `would have ${next.size} keys; at most ${metadataLimits.keys} are kept`,
      { fix: 'Delete keys by sending null for them.' },
    )
  const merged = Object.fromEntries([...next].toSorted(([a], [b]) => (a < b ? -1 : 1)))
  const bytes = Buffer.byteLength(JSON.stringify(merged))
  if (bytes > metadataLimits.bytes)
    throw invalidField(
      'metadata',
      'too_large',
      `would have ${bytes} bytes as JSON; at most ${metadataLimits.bytes} are kept`,
      { fix: 'Shorten or delete values.' },
    )
  return merged
}

/** Returns the metadata after the changes; undefined when nothing differs. Throws 400 as `mergeMetadata` does. */
export const changeMetadata = (
  stored: Metadata | null | undefined,
  changes: MetadataChanges | undefined,
): Metadata | undefined => {
  if (changes === undefined) return undefined
  const before = stored ?? {}
  const after = mergeMetadata(before, changes)
  const isSame =
    Object.keys(before).length === Object.keys(after).length &&
    Object.entries(after).every(([key, value]) => before[key] === value)
  return isSame ? undefined : after
}

/** Returns the keys that changes name, as the audit trail calls them, with their values. */
export const auditMetadata = (
  stored: Metadata | null | undefined,
  changes: MetadataChanges | undefined,
): Record<string, unknown> =>
  Object.fromEntries(
    Object.keys(changes ?? {}).map((key) => [
      `metadata.${key}`,
      stored && Object.hasOwn(stored, key) ? stored[key] : null,
    ]),
  )
