import { optionTypes } from '../../catalog/custom-fields.ts'
import {
  deleteField,
  type FieldOption,
  type FieldRow,
  insertField,
  listFields,
  lockField,
  updateField,
} from '../../storage/custom-fields.ts'
import { fold } from '../../storage/text.ts'
import { type Context, seesManagerFields } from '../core/context.ts'
import type { Handler, InputOf, OutputOf } from '../core/handler.ts'
import { pageOfFew } from '../core/paging.ts'
import { invalidField, notFound, Problem } from '../core/problem.ts'

const MOST_FIELDS = 200

const show = (field: FieldRow) => ({
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

export const listCustomFields: Handler<
  InputOf<'crm_list_custom_fields'>,
  OutputOf<'crm_list_custom_fields'>
> = async (ctx, input) => {
  // At most 200, so they are read whole and chosen from here.
  const wanted = input.search === undefined ? undefined : fold(input.search)
  const fields = (await listFields(ctx.tx, ctx.actor.workspace.id)).filter(
    (f) =>
      (seesManagerFields(ctx.actor) || f.visibility !== 'manager_only') &&
      (input.type === undefined || f.type === input.type) &&
      (wanted === undefined || fold(f.key).includes(wanted) || fold(f.label).includes(wanted)),
  )
  return await pageOfFew(ctx.cursors, input, fields, show)
}

const requireManager = (ctx: Context): void => {
  if (!seesManagerFields(ctx.actor))
    throw new Problem('forbidden', 'Only managers and above may change custom fields.', {
      reason: 'manager_only',
    })
}

const checkOptions = (
  type: FieldRow['type'],
  options: FieldOption[] | undefined,
  required: boolean,
): void => {
  const picks = optionTypes.includes(type)
  if (picks && required && !options)
    throw invalidField('options', 'required', `is required for the type ${type}`, {
      fix: 'Send at least one {label, value}.',
    })
  if (!picks && options)
    throw invalidField('options', 'not_allowed', `is not for the type ${type}`, { fix: 'Leave options out.' })
  const values = (options ?? []).map((o) => o.value)
  const twice = values.findIndex((v, i) => values.indexOf(v) < i)
  if (twice >= 0)
    throw invalidField('options', 'duplicate', `holds the value "${values[twice]}" twice`, {
      path: [twice, 'value'],
      fix: 'Send each value once.',
    })
}

export const createCustomField: Handler<
  InputOf<'crm_create_custom_field'>,
  OutputOf<'crm_create_custom_field'>
> = async (ctx, input) => {
  requireManager(ctx)
  checkOptions(input.type, input.options, true)
  const workspaceId = ctx.actor.workspace.id
  if ((await listFields(ctx.tx, workspaceId)).length >= MOST_FIELDS) {
    throw new Problem('conflict', `A workspace has at most ${MOST_FIELDS} custom fields.`, {
      reason: 'too_many_fields',
      limit: MOST_FIELDS,
    })
  }
  const made = await insertField(
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
  if (!made)
    throw new Problem('conflict', `There is a custom field with the key ${input.key} already.`, {
      reason: 'duplicate',
    })
  return { ...show(made), id: ctx.dryRun ? null : made.id }
}

const lockVisible = async (ctx: Context, id: string): Promise<FieldRow> => {
  const field = await lockField(ctx.tx, ctx.actor.workspace.id, id)
  if (!field || (field.visibility === 'manager_only' && !seesManagerFields(ctx.actor)))
    throw notFound('custom field', id)
  requireManager(ctx)
  return field
}

export const updateCustomField: Handler<
  InputOf<'crm_update_custom_field'>,
  OutputOf<'crm_update_custom_field'>
> = async (ctx, input) => {
  const field = await lockVisible(ctx, input.custom_field_id)
  checkOptions(field.type, input.options, false)
  const next: FieldRow = {
    ...field,
    label: input.label ?? field.label,
    options: input.options ?? field.options,
    visibility: input.visibility ?? field.visibility,
  }
  await updateField(ctx.tx, ctx.actor.workspace.id, next)
  ctx.note(show(field), show(next))
  return show(next)
}

export const deleteCustomField: Handler<
  InputOf<'crm_delete_custom_field'>,
  OutputOf<'crm_delete_custom_field'>
> = async (ctx, input) => {
  const field = await lockVisible(ctx, input.custom_field_id)
  if (field.key === 'email')
    throw new Problem('conflict', 'The email field is built in and cannot be deleted.', {
      reason: 'built_in',
    })
  await deleteField(ctx.tx, ctx.actor.workspace.id, field.id, ctx.now)
  ctx.note(show(field), null)
  return { id: field.id, deleted: true }
}
