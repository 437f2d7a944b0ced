import type { Context, Handler } from '../../handler.ts'
import { findConversationChannel } from '../../../storage/conversations/lists.ts'
import { findMessageByExternalId, listMessagePage, readMessage } from '../../../storage/messages/lists.ts'
import { notFound, Problem } from '../../kernel/problem.ts'
import { showMessage } from './view.ts'
import { canSeeChannel } from '../../visibility/policy.ts'

/** Throws 404. */
const findId = async ({ tx, actor }: Context, externalId: string): Promise<string> => {
  const found = await findMessageByExternalId(tx, actor.workspace.id, externalId)
  if (found && canSeeChannel(actor, found.channel_id)) return found.id
  throw new Problem('not_found', `No message with the external id ${externalId}.`)
}

export const getMessage: Handler<'messaging_get_message'> = async (ctx, input) => {
  const id = input.message_id ?? (await findId(ctx, input.external_id!))
  const message = await readMessage(ctx.tx, ctx.actor.workspace.id, id)
  if (!message || !canSeeChannel(ctx.actor, message.channel_id)) throw notFound('message', id)
  return showMessage(ctx, message)
}

export const listMessages: Handler<'inbox_list_messages'> = async (
  ctx,
  { conversation_id: id, cursor, limit },
) => {
  const position = ctx.cursors.open(cursor)
  const after = position && { createdAt: String(position[0]), id: String(position[1]) }
  const workspaceId = ctx.actor.workspace.id
  const channel = await findConversationChannel(ctx.tx, workspaceId, id)
  if (channel === undefined || !canSeeChannel(ctx.actor, channel)) throw notFound('conversation', id)
  const rows = await listMessagePage(ctx.tx, workspaceId, id, after, limit + 1)
  const last = rows.length > limit ? rows[limit - 1]! : undefined
  return {
    data: rows.slice(0, limit).map((row) => showMessage(ctx, row)),
    next_cursor: last ? ctx.cursors.seal([last.created_at, last.id]) : null,
  }
}
