import {
  countQuickMessages,
  deleteQuickMessage as deleteRow,
  insertQuickMessage,
  lockQuickMessage,
  pageOfQuickMessages,
  type QuickMessage,
  type QuickMessageFields,
  updateQuickMessage as updateRow,
} from '../../storage/quick-messages.ts'
import type { Context } from '../core/context.ts'
import type { Handler, InputOf, OutputOf } from '../core/handler.ts'
import { pageOf } from '../core/paging.ts'
import { invalidField } from '../core/problem.ts'
import { checkContent, claimCode, isBlank, teamOf } from './check.ts'
import {
  reachQuickMessage,
  requireEditable,
  requireOwnerForPrivate,
  showQuickMessage,
  viewerOf,
} from './rights.ts'

export const listQuickMessages: Handler<
  InputOf<'messaging_list_quick_messages'>,
  OutputOf<'messaging_list_quick_messages'>
> = (ctx, input) => {
  const [workspaceId, viewer] = [ctx.actor.workspace.id, viewerOf(ctx.actor)]
  return pageOf(
    ctx.cursors,
    input,
    (after, limit) => pageOfQuickMessages(ctx.tx, workspaceId, viewer, input, after && after[0]!, limit),
    () => countQuickMessages(ctx.tx, workspaceId, viewer, input),
    (row) => [row.code_key],
    (row) => showQuickMessage(ctx.actor, row),
  )
}

/** The record as it is now; what is not written has no time. */
const written = async (ctx: Context, id: string) => {
  const row = await lockQuickMessage(ctx.tx, ctx.actor.workspace.id, viewerOf(ctx.actor), id)
  return { ...showQuickMessage(ctx.actor, row!), ...(ctx.dryRun ? { updated_at: null } : {}) }
}

const orNull = (text: string | undefined): string | null => (isBlank(text) ? null : text!)

export const createQuickMessage: Handler<
  InputOf<'messaging_create_quick_message'>,
  OutputOf<'messaging_create_quick_message'>
> = async (ctx, input) => {
  const { code, type, visibility } = input
  if (type === 'TEXT' && input.text === undefined)
    throw invalidField('text', 'required', 'is required with type TEXT', { fix: 'Write the message.' })
  if (type !== 'TEXT' && input.media_url === undefined)
    throw invalidField('media_url', 'required', `is required with type ${type}`, {
      fix: 'Give the public https address of the file.',
    })
  await checkContent(ctx, type, input)
  const teamId = await teamOf(ctx, visibility, input.team_id, null)
  await claimCode(ctx, code)
  const id = await insertQuickMessage(
    ctx.tx,
    ctx.actor.workspace.id,
    ctx.actor.staff.id,
    {
      code,
      type,
      visibility,
      team_id: teamId,
      title: input.title ?? null,
      description: orNull(input.description),
      text: orNull(input.text),
      media_url: input.media_url ?? null,
      file_name: input.file_name ?? null,
    },
    ctx.now,
  )
  return { ...(await written(ctx, id)), ...(ctx.dryRun ? { id: null } : {}) }
}

export const updateQuickMessage: Handler<
  InputOf<'messaging_update_quick_message'>,
  OutputOf<'messaging_update_quick_message'>
> = async (ctx, input) => {
  const row = await reachQuickMessage(ctx, input.quick_message_id)
  requireEditable(row)
  await checkContent(ctx, row.type, input)
  if (input.visibility === 'private' && row.visibility !== 'private') requireOwnerForPrivate(ctx.actor, row)
  const next = await changed(ctx, row, input)
  if (next.code !== row.code) await claimCode(ctx, next.code, row.id)
  ctx.note(row, next)
  const fields = Object.keys(next) as (keyof QuickMessageFields)[]
  if (fields.some((field) => next[field] !== row[field]))
    await updateRow(ctx.tx, ctx.actor.workspace.id, row.id, next, ctx.now)
  return await written(ctx, row.id)
}

const changed = async (
  ctx: Context,
  row: QuickMessage,
  input: InputOf<'messaging_update_quick_message'>,
): Promise<QuickMessageFields> => {
  const visibility = input.visibility ?? row.visibility
  return {
    code: input.code ?? row.code,
    title: input.title ?? row.title,
    type: row.type,
    visibility,
    team_id: await teamOf(ctx, visibility, input.team_id, row.team_id),
    description: input.description === undefined ? row.description : orNull(input.description),
    text: input.text === undefined ? row.text : orNull(input.text),
    media_url: input.media_url ?? row.media_url,
    file_name: input.file_name ?? row.file_name,
  }
}

export const deleteQuickMessage: Handler<
  InputOf<'messaging_delete_quick_message'>,
  OutputOf<'messaging_delete_quick_message'>
> = async (ctx, { quick_message_id: id }) => {
  const { code, type, title, visibility } = await reachQuickMessage(ctx, id)
  ctx.note({ code, type, title, visibility }, null)
  await deleteRow(ctx.tx, ctx.actor.workspace.id, id)
  return { id, deleted: true }
}
