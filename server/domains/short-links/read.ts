import type { Context, Handler } from '../../handler.ts'
import {
  countShortLinks,
  listShortLinkRows,
  loadShortLink,
  type ShortLinkFilter,
  type ShortLinkRow,
} from '../../../storage/messages/short-links.ts'
import { createPage } from '../../kernel/paging.ts'
import { notFound } from '../../kernel/problem.ts'
import { showLink } from './view.ts'
import { canSeeChannel, listVisibleChannels } from '../../visibility/policy.ts'

/** Returns a link to a number that the actor may use. Throws 404. */
export const requireLink = async ({ tx, actor }: Context, id: string): Promise<ShortLinkRow> => {
  const row = await loadShortLink(tx, actor.workspace.id, id)
  if (!row || !canSeeChannel(actor, row.channel_id)) throw notFound('short link', id)
  return row
}

export const getShortLink: Handler<'messaging_get_short_link'> = async (ctx, { short_link_id: id }) =>
  showLink(ctx.services.config.publicUrl, await requireLink(ctx, id))

export const listShortLinks: Handler<'messaging_list_short_links'> = async (ctx, input) => {
  const { tx, actor } = ctx
  const { publicUrl } = ctx.services.config
  const allowed = listVisibleChannels(actor)
  const filter: ShortLinkFilter = {
    channelIds:
      input.channel_id === undefined
        ? allowed
        : canSeeChannel(actor, input.channel_id)
          ? [input.channel_id]
          : [],
    search: input.search,
  }
  return await createPage({
    cursors: ctx.cursors,
    input,
    load: (after, limit) =>
      listShortLinkRows(
        tx,
        actor.workspace.id,
        filter,
        after && { createdAt: after[0]!, id: after[1]! },
        limit,
      ),
    count: () => countShortLinks(tx, actor.workspace.id, filter),
    toPosition: (row) => [row.created_at, row.id],
    toItem: (row) => showLink(publicUrl, row),
  })
}
