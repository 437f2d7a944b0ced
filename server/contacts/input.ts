import type { Attrs, StoredValue } from '../../storage/contacts.ts'
import { type FieldRow, markFieldsUsed } from '../../storage/custom-fields.ts'
import { findLabels, insertTags, type Label, lockGroups } from '../../storage/labels.ts'
import { fold } from '../../storage/text.ts'
import type { FieldTypes } from '../../storage/values.ts'
import { type Context, seesManagerFields } from '../core/context.ts'
import { nearest } from '../nearest.ts'
import { type FieldError, invalidField, pointerOf, Problem } from '../core/problem.ts'
import { parseValue } from './attributes.ts'
import { parsePhone } from './phone.ts'

/** The digits of the phone that names a contact. */
export const readPhone = (given: string): string => {
  const phone = parsePhone(given)
  if ('fault' in phone) throw invalidField('phone', 'invalid_phone', phone.fault, { fix: phone.fix })
  return phone.digits
}

/** What the values given for a contact come to: stored values, or null to clear, by field. */
export type ValueChanges = Map<FieldRow, StoredValue | null>

const MOST_ERRORS = 50

type GivenValues = { attributes?: Record<string, unknown> | undefined; email?: string | null | undefined }

/** The fields that values can be given for, by key. Agents can neither see nor set manager-only fields. */
export const givableFields = (ctx: Context, fields: readonly FieldRow[]): ReadonlyMap<string, FieldRow> =>
  new Map(
    fields
      .filter((f) => f.visibility !== 'manager_only' || seesManagerFields(ctx.actor))
      .map((f) => [f.key, f]),
  )

/** Checks `attributes` and `email` together, since `email` is the custom field of that key. */
export const readValues = (byKey: ReadonlyMap<string, FieldRow>, given: GivenValues): ValueChanges => {
  const changes: ValueChanges = new Map()
  const errors: FieldError[] = []
  const take = (key: string, raw: unknown, pointer: string) => {
    const field = byKey.get(key)
    if (!field) return void errors.push(unknownKey(key, pointer, [...byKey.keys()]))
    if (field.read_only)
      return void errors.push({ pointer, code: 'read_only', detail: 'is read-only', fix: 'Leave it out.' })
    const parsed = parseValue(field, raw)
    if ('fault' in parsed)
      errors.push({
        pointer,
        code: 'invalid_value',
        detail: parsed.fault,
        fix: parsed.fix,
        ...(parsed.allowed ? { allowed: parsed.allowed } : {}),
      })
    else changes.set(field, 'clear' in parsed ? null : parsed.value)
  }
  for (const [key, raw] of Object.entries(given.attributes ?? {})) {
    if (errors.length === MOST_ERRORS) break
    take(key, raw, pointerOf(['attributes', key]))
  }
  if (given.email !== undefined) take('email', given.email, '#/email')
  if (errors.length > 0)
    throw new Problem(
      'invalid_input',
      errors.length === 1
        ? `${errors[0]!.pointer!.slice(2)} ${errors[0]!.detail}.`
        : `${errors.length} fields are wrong.`,
      { errors: errors.slice(0, MOST_ERRORS) },
    )
  return changes
}

const unknownKey = (key: string, pointer: string, valid: string[]): FieldError => {
  const near = nearest(key, valid)
  return {
    pointer,
    code: 'unknown_attribute',
    detail: 'is not a custom field',
    allowed: valid,
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

export const typesOf = (fields: readonly FieldRow[]): FieldTypes =>
  new Map(fields.map((field) => [field.id, field.type]))

/** Notes the first value of a field. */
export const noteUse = async (
  ctx: Context,
  changes: Iterable<readonly [FieldRow, StoredValue | null]>,
): Promise<void> => {
  const fresh = new Set<string>()
  for (const [field, value] of changes) if (value !== null && !field.used) fresh.add(field.id)
  if (fresh.size > 0) await markFieldsUsed(ctx.tx, ctx.actor.workspace.id, [...fresh])
}

/** The distinct ids of a list, as text, in their order. */
export const distinctIds = (ids: readonly (string | number)[] | undefined): string[] => [
  ...new Set((ids ?? []).map(String)),
]

const isId = (value: string | number): boolean => typeof value === 'number' || /^[1-9]\d{0,18}$/.test(value)

type Given = readonly (string | number)[]
/** Tags by id and by folded name. */
export type KnownTags = { byId: ReadonlyMap<string, Label>; byName: ReadonlyMap<string, Label> }

/** The tags that these may mean. */
export const findTags = async (ctx: Context, given: Given): Promise<KnownTags> => {
  const names = given.filter((g): g is string => typeof g === 'string')
  const found =
    given.length === 0
      ? []
      : await findLabels(
          ctx.tx,
          ctx.actor.workspace.id,
          'tag',
          given.filter(isId).map(String),
          names.map(fold),
        )
  return {
    byId: new Map(found.map(({ id, name }) => [id, { id, name }])),
    byName: new Map(found.map(({ id, name, name_key: key }) => [key, { id, name }])),
  }
}

/** An integer, or a digit string that is an existing tag's id, is an id; any other string is a name. */
const tagOf = ({ byId, byName }: KnownTags, given: string | number): Label | undefined =>
  (isId(given) ? byId.get(String(given)) : undefined) ??
  (typeof given === 'string' ? byName.get(fold(given)) : undefined)

/** The distinct tags among the known ones, in the order given. */
export const chooseTags = (known: KnownTags, given: Given): Label[] => [
  ...new Map(given.flatMap((g) => tagOf(known, g) ?? []).map((tag) => [tag.id, tag])).values(),
]

/** The names that are to become tags; unknown integers are refused. `field` is the one they were given in. */
export const tagsToMake = (known: KnownTags, given: Given, field = 'tags'): string[] => {
  const missing = given.filter((g) => !tagOf(known, g))
  const unknown = missing.filter((m) => typeof m === 'number')
  if (unknown.length > 0) throw unknownIds(field, 'tag', given, unknown.map(String))
  return missing as string[]
}

/**
 * Makes tags of these names, if any, and answers anew what the given ones may mean. Of several spellings
 * the first one names the tag.
 */
export const makeTags = async (
  ctx: Context,
  known: KnownTags,
  names: readonly string[],
  given: Given,
): Promise<KnownTags> => {
  if (names.length === 0) return known
  await insertTags(
    ctx.tx,
    ctx.actor.workspace.id,
    [...new Map(names.map((name) => [fold(name), name] as const).toReversed()).values()],
    ctx.now,
  )
  return await findTags(ctx, given)
}

/**
 * Resolves tags given by name or id. With `create`, unknown names become tags; without, they are ignored.
 * Tags that a dry run makes for itself are marked.
 */
export const resolveTags = async (
  ctx: Context,
  given: Given,
  create: boolean,
): Promise<(Label & { rehearsed?: true })[]> => {
  const there = await findTags(ctx, given)
  const known = create ? await makeTags(ctx, there, tagsToMake(there, given), given) : there
  return chooseTags(known, given).map((tag) =>
    ctx.dryRun && !there.byId.has(tag.id) ? { ...tag, rehearsed: true } : tag,
  )
}

/** Resolves group ids; unknown ones are refused. */
export const resolveGroups = async (ctx: Context, given: Given | undefined): Promise<Label[]> =>
  chooseGroups(await findGroups(ctx, given ?? []), given ?? [])

/** Those of these groups that there are; they stay until contacts are in them. */
export const findGroups = async (ctx: Context, given: Given): Promise<Label[]> => {
  const ids = distinctIds(given)
  return ids.length === 0 ? [] : await lockGroups(ctx.tx, ctx.actor.workspace.id, ids)
}

/** The groups with these ids, in the order of the known ones; unknown ids are refused. */
export const chooseGroups = (known: readonly Label[], given: Given): Label[] => {
  const ids = new Set(distinctIds(given))
  const chosen = known.filter((group) => ids.has(group.id))
  if (chosen.length < ids.size)
    throw unknownIds(
      'group_ids',
      'group',
      given,
      [...ids].filter((id) => !chosen.some((g) => g.id === id)),
    )
  return chosen
}

const unknownIds = (
  field: string,
  noun: string,
  given: readonly (string | number)[],
  missing: readonly string[],
): Problem =>
  new Problem('invalid_input', `There is no ${noun} with the id ${missing.join(', ')}.`, {
    errors: missing.map((id) => ({
      pointer: pointerOf([field, given.findIndex((g) => String(g) === id)]),
      code: `unknown_${noun}`,
      detail: `is not the id of a ${noun} of this workspace`,
      fix: `List the ${noun}s to find its id.`,
    })),
  })
