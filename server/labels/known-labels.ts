import type { Label, LabelKind } from '../../storage/labels.ts'
import { fold } from '../../storage/text.ts'
import type { Context } from '../core/context.ts'

/*
 * The labels that calls named lately, by id and by folded name. They may have changed since: a statement that relies on
 * them looks whether they have.
 */

const MAX_KNOWN = 20_000

/** A label as a client names it that may be an id. */
export const isIdText = (ref: string | number): boolean =>
  typeof ref === 'number' || /^[1-9]\d{0,18}$/.test(ref)

const idKey = (workspaceId: string, kind: LabelKind, id: string): string => `${workspaceId} ${kind} id ${id}`
const nameKey = (workspaceId: string, kind: LabelKind, name: string): string =>
  `${workspaceId} ${kind} name ${fold(name)}`

/** Keeps labels that were read, for `recallLabels`. Those of a dry run may be undone with it. */
export const keepLabels = (
  { actor, dryRun, knownLabels }: Pick<Context, 'actor' | 'dryRun' | 'knownLabels'>,
  kind: LabelKind,
  labels: readonly Label[],
): void => {
  if (dryRun) return
  const workspaceId = actor.workspace.id
  for (const { id, name } of labels)
    for (const key of [idKey(workspaceId, kind, id), nameKey(workspaceId, kind, name)]) {
      knownLabels.delete(key)
      knownLabels.set(key, { id, name })
      if (knownLabels.size > MAX_KNOWN) knownLabels.delete(knownLabels.keys().next().value!)
    }
}

/**
 * Returns the distinct labels that these refs mean, in their order: digits are an id, any other text is a name.
 * Undefined unless all of them were read lately.
 */
export const recallLabels = (
  { actor, knownLabels }: Pick<Context, 'actor' | 'knownLabels'>,
  kind: LabelKind,
  refs: readonly (string | number)[],
): Label[] | undefined => {
  const workspaceId = actor.workspace.id
  const labels = new Map<string, Label>()
  for (const ref of refs) {
    const key = isIdText(ref)
      ? idKey(workspaceId, kind, String(ref))
      : nameKey(workspaceId, kind, String(ref))
    const label = knownLabels.get(key)
    if (!label) return undefined
    labels.set(label.id, label)
  }
  return [...labels.values()]
}
