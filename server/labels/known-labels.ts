import type { Label, LabelKind } from '../../storage/labels.ts'
import { fold } from '../../storage/text.ts'

/**
 * The labels that calls named lately, by id and by folded name. They may have changed since: a statement that relies on
 * them looks whether they have. Ids of other databases may be among them, for the same reason.
 */
const known = new Map<string, Label>()
const MAX_KNOWN = 20_000

/** A label as a client names it that may be an id. */
export const isIdText = (ref: string | number): boolean =>
  typeof ref === 'number' || /^[1-9]\d{0,18}$/.test(ref)

const idKey = (workspaceId: string, kind: LabelKind, id: string): string => `${workspaceId} ${kind} id ${id}`
const nameKey = (workspaceId: string, kind: LabelKind, name: string): string =>
  `${workspaceId} ${kind} name ${fold(name)}`

/** Keeps labels that were read, for `recallLabels`. */
export const keepLabels = (workspaceId: string, kind: LabelKind, labels: readonly Label[]): void => {
  for (const { id, name } of labels)
    for (const key of [idKey(workspaceId, kind, id), nameKey(workspaceId, kind, name)]) {
      known.delete(key)
      known.set(key, { id, name })
      if (known.size > MAX_KNOWN) known.delete(known.keys().next().value!)
    }
}

/**
 * Returns the distinct labels that these refs mean, in their order: digits are an id, any other text is a name.
 * Undefined unless all of them were read lately.
 */
export const recallLabels = (
  workspaceId: string,
  kind: LabelKind,
  refs: readonly (string | number)[],
): Label[] | undefined => {
  const labels = new Map<string, Label>()
  for (const ref of refs) {
    const key = isIdText(ref)
      ? idKey(workspaceId, kind, String(ref))
      : nameKey(workspaceId, kind, String(ref))
    const label = known.get(key)
    if (!label) return undefined
    labels.set(label.id, label)
  }
  return [...labels.values()]
}
