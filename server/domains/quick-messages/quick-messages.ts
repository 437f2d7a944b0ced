import type { Context, Handler, InputOf } from '../../handler.ts'
import { isBlank } from '../../../catalog/values.ts'
import {
  countQuickMessages,
  deleteQuickMessageRow,
  insertQuickMessage,
  lockQuickMessage,
  listQuickMessageRows,
  type QuickMessageRow,
  type QuickMessageFields,
  updateQuickMessageRow,
} from '../../../storage/messages/quick-messages.ts'
import { createPage } from '../../kernel/paging.ts'
import { invalidField } from '../../kernel/problem.ts'
import { checkContent, isWithText, claimCode, resolveTeam } from './check.ts'
import {
  lockChangeableQuickMessage,
  requireEditable,
  requireOwnerForPrivate,
  showQuickMessage,
  toViewer,
} from './rights.ts'

export const listQuickMessages: Handler<'messaging_list_quick_messages'> = (ctx, input) => {
  const [workspaceId, viewer] = [ctx.actor.workspace.id, toViewer(ctx.actor)]
  return createPage({
    cursors: ctx.cursors,
    input,
    load: (after, limit) =>
      listQuickMessageRows(
        ctx.tx,
        workspaceId,
        viewer,
        input,
        after && { codeKey: after[0]!, id: after[1]! },
        limit,
      ),
    count: () => countQuickMessages(ctx.tx, workspaceId, viewer, input),
    toPosition: (row) => [row.code_key, row.id],
    toItem: (row) => showQuickMessage(ctx.actor, row),
  })
}

/** Returns the current quick message; in a dry run without a time of change. */
const readShownQuickMessage = async (ctx: Context, id: string) => {
  const row = await lockQuickMessage(ctx.tx, ctx.actor.workspace.id, toViewer(ctx.actor), id)
  return { ...showQuickMessage(ctx.actor, row!), ...(ctx.dryRun ? { updated_at: null } : {}) }
}

const blankToNull = (text: string | undefined): string | null => (isBlank(text) ? null : text!)

/** Returns the input without values that are empty. An empty file name clears that of a document. */
const withoutEmpty = <T extends { media_url?: string | undefined; team_id?: string | undefined }>(
  input: T,
): T => ({
  ...input,
  media_url: input.media_url || undefined,
  team_id: input.team_id || undefined,
})

export const createQuickMessage: Handler<'messaging_create_quick_message'> = async (ctx, given) => {
  const input = { ...withoutEmpty(given), file_name: given.file_name || undefined }
  const { code, type, visibility } = input
  if (isWithText(type) && input.text === undefined)
    throw invalidField('text', 'required', `is required with type ${type}`, { fix: 'Write the message.' })
  if (type === 'INTERACTIVE' && input.interactive === undefined)
    throw invalidField('interactive', 'required', 'is required with type INTERACTIVE', {
      fix: 'Send the buttons, the list, the link or the location request.',
    })
  if (!isWithText(type) && input.media_url === undefined)
    throw invalidField('media_url', 'required', `is required with type ${type}`, {
      fix: 'Send the public https address of the file.',
    })
  await checkContent(ctx, type, input)
  const teamId = await resolveTeam(ctx, visibility, input.team_id, null)
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
      description: blankToNull(input.description),
      text: blankToNull(input.text),
      media_url: input.media_url ?? null,
      file_name: input.file_name ?? null,
      interactive: input.interactive ?? null,
    },
    ctx.now,
  )
  return { ...(await readShownQuickMessage(ctx, id)), ...(ctx.dryRun ? { id: null } : {}) }
}

export const updateQuickMessage: Handler<'messaging_update_quick_message'> = async (ctx, given) => {
  const row = await lockChangeableQuickMessage(ctx, given.quick_message_id)
  const clearsFileName = given.file_name === ''
  const input = { ...withoutEmpty(given), file_name: given.file_name || undefined }
  requireEditable(row)
  await checkContent(ctx, row.type, input)
  if (input.visibility === 'private' && row.visibility !== 'private') requireOwnerForPrivate(ctx.actor, row)
  const changed = await applyChanges(ctx, row, input)
  const next = clearsFileName ? { ...changed, file_name: null } : changed
  // Whoever sees more of it may see others with its code.
  if (next.code !== row.code || next.visibility !== row.visibility || next.team_id !== row.team_id)
    await claimCode(ctx, next.code, row.id)
  ctx.auditChange(row, next)
  const fields = Object.keys(next) as (keyof QuickMessageFields)[]
  if (fields.some((field) => next[field] !== row[field]))
    await updateQuickMessageRow(ctx.tx, ctx.actor.workspace.id, row.id, next, ctx.now)
  return await readShownQuickMessage(ctx, row.id)
}

const applyChanges = async (
  ctx: Context,
  row: QuickMessageRow,
  input: InputOf<'messaging_update_quick_message'>,
): Promise<QuickMessageFields> => {
  const visibility = input.visibility ?? row.visibility
  return {
    code: input.code ?? row.code,
    title: input.title ?? row.title,
    type: row.type,
    visibility,
    team_id: await resolveTeam(ctx, visibility, input.team_id, row.team_id),
    description: input.description === undefined ? row.description : blankToNull(input.description),
    text: input.text === undefined ? row.text : blankToNull(input.text),
    media_url: input.media_url ?? row.media_url,
    file_name: input.file_name ?? row.file_name,
  }
}

export const deleteQuickMessage: Handler<'messaging_delete_quick_message'> = async (
  ctx,
  { quick_message_id: id },
) => {
  const { code, type, title, visibility } = await lockChangeableQuickMessage(ctx, id)
  ctx.auditChange({ code, type, title, visibility }, null)
  await deleteQuickMessageRow(ctx.tx, ctx.actor.workspace.id, id)
  return { id, deleted: true }
}
