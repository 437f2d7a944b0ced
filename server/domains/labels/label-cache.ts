import type { Context } from '../../handler.ts'
import type { Label, LabelKind } from '../../../storage/labels/labels.ts'
import { fold } from '../../../storage/values/text.ts'

/*
 * The labels that calls named lately, by id and by folded name. They may have changed since: an optimistic change
 * checks whether they have.
 */

const MAX_CACHED = 20_000

/** A label as a client names it that may be an id. */
export const isIdText = (ref: string | number): boolean =>
  typeof ref === 'number' || /^[1-9]\d{0,18}$/.test(ref)

const idKey = (workspaceId: string, kind: LabelKind, id: string): string => `${workspaceId} ${kind} id ${id}`
const nameKey = (workspaceId: string, kind: LabelKind, name: string): string =>
  `${workspaceId} ${kind} name ${fold(name)}`
/** The key of a label as a client names it: digits are an id, any other text is a name. */
const refKey = (workspaceId: string, kind: LabelKind, ref: string | number): string =>
  (isIdText(ref) ? idKey : nameKey)(workspaceId, kind, String(ref))

/**
 * Caches the labels that these refs were found to mean; refs of none are forgotten. Those of a dry run are not cached:
 * they may be undone with it.
 */
export const cacheLabels = (
  { actor, dryRun, services: { labelCache } }: Pick<Context, 'actor' | 'dryRun' | 'services'>,
  kind: LabelKind,
  refs: readonly (string | number)[],
  found: readonly Label[],
): void => {
  if (dryRun) return
  const workspaceId = actor.workspace.id
  for (const ref of refs) labelCache.delete(refKey(workspaceId, kind, ref))
  for (const { id, name } of found)
    for (const key of [idKey(workspaceId, kind, id), nameKey(workspaceId, kind, name)]) {
      labelCache.delete(key)
      labelCache.set(key, { id, name })
      if (labelCache.size > MAX_CACHED) labelCache.delete(labelCache.keys().next().value!)
    }
}

/** Returns the distinct labels that these refs mean, in their order; undefined unless all of them are cached. */
export const findCachedLabels = (
  { actor, services: { labelCache } }: Pick<Context, 'actor' | 'services'>,
  kind: LabelKind,
  refs: readonly (string | number)[],
): Label[] | undefined => {
  const labels = new Map<string, Label>()
  for (const ref of refs) {
    const label = labelCache.get(refKey(actor.workspace.id, kind, ref))
    if (!label) return undefined
    labels.set(label.id, label)
  }
  return [...labels.values()]
}
