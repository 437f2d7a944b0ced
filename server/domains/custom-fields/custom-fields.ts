import type { Context, Handler } from '../../handler.ts'
import { optionTypes } from '../../../catalog/custom-fields.ts'
import {
  deleteField,
  type FieldOption,
  type FieldRow,
  insertField,
  listFields,
  lockFieldLimit,
  listFieldsInUse,
  lockField,
  updateField,
} from '../../../storage/contacts/custom-fields.ts'
import { fold } from '../../../storage/values/text.ts'
import { createPageOfRows } from '../../kernel/paging.ts'
import { invalidField, notFound, Problem } from '../../kernel/problem.ts'
import { listFiltersNaming } from '../saved-filters/naming.ts'
import { canSeeField, canSeeManagerFields } from '../../visibility/policy.ts'

const MAX_CUSTOM_FIELDS = 200

const showField = (field: FieldRow) => ({
  id: field.id,
  key: field.key,
  label: field.label,
  type: field.type,
  options: field.options,
  read_only: field.read_only,
  visibility: field.visibility,
  in_use: field.used,
  created_at: field.created_at,
})

export const listCustomFields: Handler<'crm_list_custom_fields'> = async (ctx, input) => {
  // A workspace has at most 200 fields, so all are read and filtered here.
  const search = input.search === undefined ? undefined : fold(input.search)
  const fields = (await listFields(ctx.tx, ctx.actor.workspace.id)).filter(
    (f) =>
      canSeeField(ctx.actor, f) &&
      (input.type === undefined || f.type === input.type) &&
      (search === undefined || fold(f.key).includes(search) || fold(f.label).includes(search)),
  )
  return await createPageOfRows(ctx.cursors, input, await withUse(ctx, fields), showField)
}

/** Returns the fields with `used` as it is now: values may have been cleared since. */
const withUse = async (ctx: Context, fields: readonly FieldRow[]): Promise<FieldRow[]> => {
  const inUse = fields.some((field) => field.used)
    ? await listFieldsInUse(ctx.tx, ctx.actor.workspace.id)
    : new Set()
  return fields.map((field) => ({ ...field, used: inUse.has(field.id) }))
}

const requireManager = (ctx: Context): void => {
  if (!canSeeManagerFields(ctx.actor))
    throw new Problem('forbidden', 'Only managers, admins and owners may change custom fields.', {
      reason: 'manager_only',
    })
}

const checkOptions = (
  type: FieldRow['type'],
  options: FieldOption[] | undefined,
  required: boolean,
): void => {
  const hasOptions = optionTypes.includes(type)
  if (hasOptions && required && !options)
    throw invalidField('options', 'required', `is required for the type ${type}`, {
      fix: 'Send at least one {label, value}.',
    })
  if (!hasOptions && options)
    throw invalidField('options', 'not_allowed', `is not allowed for the type ${type}`, {
      fix: 'Leave options out.',
    })
  const values = (options ?? []).map((o) => o.value)
  const duplicate = values.findIndex((v, i) => values.indexOf(v) < i)
  if (duplicate >= 0)
    throw invalidField('options', 'duplicate', `contains the value "${values[duplicate]}" twice`, {
      path: [duplicate, 'value'],
      fix: 'Send each value once.',
    })
}

export const createCustomField: Handler<'crm_create_custom_field'> = async (ctx, input) => {
  requireManager(ctx)
  checkOptions(input.type, input.options, true)
  const workspaceId = ctx.actor.workspace.id
  await lockFieldLimit(ctx.tx, workspaceId)
  if ((await listFields(ctx.tx, workspaceId)).length >= MAX_CUSTOM_FIELDS) {
    throw new Problem('conflict', `A workspace has at most ${MAX_CUSTOM_FIELDS} custom fields.`, {
      reason: 'too_many_fields',
      limit: MAX_CUSTOM_FIELDS,
    })
  }
  const created = await insertField(
    ctx.tx,
    workspaceId,
    {
      key: input.key,
      label: input.label ?? input.key,
      type: input.type,
      options: input.options ?? null,
      visibility: input.visibility,
    },
    ctx.now,
  )
  if (!created)
    throw new Problem('conflict', `A custom field with the key ${input.key} already exists.`, {
      reason: 'duplicate',
    })
  return { ...showField(created), id: ctx.dryRun ? null : created.id }
}

/**
 * Returns the field, locked. Throws 404 when it does not exist or the actor may not see it, and 403
 * `manager_only`.
 */
const lockChangeableField = async (ctx: Context, id: string): Promise<FieldRow> => {
  const field = await lockField(ctx.tx, ctx.actor.workspace.id, id)
  if (!field || !canSeeField(ctx.actor, field)) throw notFound('custom field', id)
  requireManager(ctx)
  return (await withUse(ctx, [field]))[0]!
}

export const updateCustomField: Handler<'crm_update_custom_field'> = async (ctx, input) => {
  const field = await lockChangeableField(ctx, input.custom_field_id)
  checkOptions(field.type, input.options, false)
  const next: FieldRow = {
    ...field,
    label: input.label ?? field.label,
    options: input.options ?? field.options,
    visibility: input.visibility ?? field.visibility,
  }
  const filters = await listFiltersNaming(ctx.tx, ctx.actor.workspace.id, { input, isDeletion: false })
  await updateField(ctx.tx, ctx.actor.workspace.id, next)
  ctx.auditChange(showField(field), showField(next))
  return { ...showField(next), ...(filters.length > 0 ? { saved_filters: filters } : {}) }
}

export const deleteCustomField: Handler<'crm_delete_custom_field'> = async (ctx, input) => {
  const field = await lockChangeableField(ctx, input.custom_field_id)
  if (field.key === 'email')
    throw new Problem('conflict', 'The email field is built in and cannot be deleted.', {
      reason: 'built_in',
    })
  const filters = await listFiltersNaming(ctx.tx, ctx.actor.workspace.id, { input, isDeletion: true })
  await deleteField(ctx.tx, ctx.actor.workspace.id, field.id, ctx.now)
  ctx.auditChange(showField(field), null)
  return { id: field.id, deleted: true, saved_filters: filters }
}
