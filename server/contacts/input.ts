import type { Attrs, StoredValue } from '../../storage/contacts.ts'
import { type FieldRow, markFieldsUsed } from '../../storage/custom-fields.ts'
import { findLabels, insertTags, type Label, lockGroups } from '../../storage/labels.ts'
import { fold } from '../../storage/text.ts'
import type { FieldTypes } from '../../storage/values.ts'
import { type Context, seesManagerFields } from '../context.ts'
import { nearest } from '../nearest.ts'
import { type FieldError, pointerOf, Problem } from '../problem.ts'
import { parseValue } from './attributes.ts'

/** What the values given for a contact come to: stored values, or null to clear, by field. */
export type ValueChanges = Map<FieldRow, StoredValue | null>

/** Checks `attributes` and `email` together, since `email` is the custom field of that key. Agents can neither see nor set manager-only fields. */
export const readValues = (ctx: Context, fields: readonly FieldRow[], given: { attributes?: Record<string, unknown> | undefined; email?: string | null | undefined }): ValueChanges => {
  const visible = fields.filter((f) => f.visibility !== 'manager_only' || seesManagerFields(ctx.actor))
  const byKey = new Map(visible.map((f) => [f.key, f]))
  const changes: ValueChanges = new Map()
  const errors: FieldError[] = []
  const take = (key: string, raw: unknown, pointer: string) => {
    const field = byKey.get(key)
    if (!field) return void errors.push(unknownKey(key, pointer, [...byKey.keys()]))
    if (field.read_only) return void errors.push({ pointer, code: 'read_only', detail: 'is read-only', fix: 'Leave it out.' })
    const parsed = parseValue(field, raw)
    if ('fault' in parsed) errors.push({ pointer, code: 'invalid_value', detail: parsed.fault, fix: parsed.fix, ...(parsed.allowed ? { allowed: parsed.allowed } : {}) })
    else changes.set(field, 'clear' in parsed ? null : parsed.value)
  }
  for (const [key, raw] of Object.entries(given.attributes ?? {})) take(key, raw, pointerOf(['attributes', key]))
  if (given.email !== undefined) take('email', given.email, '#/email')
  if (errors.length > 0) throw new Problem('invalid_input', errors.length === 1 ? `${errors[0]!.pointer!.slice(2)} ${errors[0]!.detail}.` : `${errors.length} fields are wrong.`, { errors: errors.slice(0, 50) })
  return changes
}

const unknownKey = (key: string, pointer: string, valid: string[]): FieldError => {
  const near = nearest(key, valid)
  return {
    pointer, code: 'unknown_attribute', detail: 'is not a custom field', allowed: valid,
    fix: near ? `Did you mean ${near}?` : 'Use one of the listed keys, or create the field first.',
  }
}

/** The attributes after the changes, and the fields whose value differs. */
export const applyValues = (attrs: Attrs, changes: ValueChanges): { attrs: Attrs; changed: FieldRow[] } => {
  const next: Attrs = { ...attrs }
  const changed: FieldRow[] = []
  for (const [field, value] of changes) {
    if (JSON.stringify(next[field.id] ?? null) === JSON.stringify(value)) continue
    if (value === null) delete next[field.id]
    else next[field.id] = value
    changed.push(field)
  }
  return { attrs: next, changed }
}

export const typesOf = (fields: readonly FieldRow[]): FieldTypes => new Map(fields.map((field) => [field.id, field.type]))

/** Notes the first value of a field. */
export const noteUse = async (ctx: Context, changes: ValueChanges): Promise<void> => {
  const fresh = [...changes].filter(([field, value]) => value !== null && !field.used).map(([field]) => field.id)
  if (fresh.length > 0) await markFieldsUsed(ctx.tx, ctx.actor.workspace.id, fresh)
}

/** The distinct ids of a list, as text, in their order. */
export const distinctIds = (ids: readonly (string | number)[] | undefined): string[] => [...new Set((ids ?? []).map(String))]

const isId = (value: string | number): boolean => typeof value === 'number' || /^[1-9]\d{0,18}$/.test(value)

/**
 * Resolves tags given by name or id: an integer, or a digit string that is an existing tag's id, is an id; any other string is a name.
 * With `create`, unknown names become tags and unknown integers are refused; without, both are ignored. Tags that a dry run makes for itself are marked.
 */
export const resolveTags = async (ctx: Context, given: readonly (string | number)[], create: boolean): Promise<(Label & { rehearsed?: true })[]> => {
  if (given.length === 0) return []
  const workspaceId = ctx.actor.workspace.id
  const ids = given.filter(isId).map(String)
  const names = given.filter((g): g is string => typeof g === 'string')
  let found = await findLabels(ctx.tx, workspaceId, 'tag', ids, names.map(fold))
  const there = new Set(found.map((t) => t.id))
  const has = (tag: string | number) => found.some((t) => (isId(tag) && t.id === String(tag)) || (typeof tag === 'string' && t.name_key === fold(tag)))
  const missing = given.filter((g) => !has(g))
  if (create && missing.length > 0) {
    const unknown = missing.filter((m) => typeof m === 'number')
    if (unknown.length > 0) throw unknownIds('tags', 'tag', given, unknown.map(String))
    // Of several spellings the first one names the tag.
    const distinct = new Map((missing as string[]).map((name) => [fold(name), name] as const).toReversed())
    await insertTags(ctx.tx, workspaceId, [...distinct.values()], ctx.now)
    found = await findLabels(ctx.tx, workspaceId, 'tag', ids, names.map(fold))
  }
  const chosen = new Map<string, Label & { rehearsed?: true }>()
  for (const tag of given) {
    const match = (isId(tag) ? found.find((t) => t.id === String(tag)) : undefined) ?? found.find((t) => typeof tag === 'string' && t.name_key === fold(tag))
    if (match) chosen.set(match.id, { id: match.id, name: match.name, ...(ctx.dryRun && !there.has(match.id) ? { rehearsed: true } : {}) })
  }
  return [...chosen.values()]
}

/** Resolves group ids; unknown ones are refused. */
export const resolveGroups = async (ctx: Context, given: readonly (string | number)[] | undefined): Promise<Label[]> => {
  const ids = distinctIds(given)
  if (ids.length === 0) return []
  const found = await lockGroups(ctx.tx, ctx.actor.workspace.id, ids)
  const missing = ids.filter((id) => !found.some((g) => g.id === id))
  if (missing.length > 0) throw unknownIds('group_ids', 'group', given!, missing)
  return found
}

const unknownIds = (field: string, noun: string, given: readonly (string | number)[], missing: readonly string[]): Problem =>
  new Problem('invalid_input', `There is no ${noun} with the id ${missing.join(', ')}.`, {
    errors: missing.map((id) => ({
      pointer: pointerOf([field, given.findIndex((g) => String(g) === id)]), code: `unknown_${noun}`, detail: `is not the id of a ${noun} of this workspace`,
      fix: `List the ${noun}s to find its id.`,
    })),
  })
