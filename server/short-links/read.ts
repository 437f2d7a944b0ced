import {
  countShortLinks,
  pageOfShortLinks,
  readShortLink,
  type ShortLinkFilter,
  type ShortLinkRow,
} from '../../storage/short-links.ts'
import type { Context } from '../core/context.ts'
import { mayUse } from '../inbox/access.ts'
import type { Handler, InputOf, OutputOf } from '../core/handler.ts'
import { pageOf } from '../core/paging.ts'
import { notFound } from '../core/problem.ts'
import { showLink } from './view.ts'

/** A link to a number that the staff member may use. Throws 404 for any other. */
export const reachLink = async ({ tx, actor }: Context, id: string): Promise<ShortLinkRow> => {
  const row = await readShortLink(tx, actor.workspace.id, id)
  if (!row || !mayUse(actor, row.channel_id)) throw notFound('short link', id)
  return row
}

export const getShortLink: Handler<
  InputOf<'messaging_get_short_link'>,
  OutputOf<'messaging_get_short_link'>
> = async (ctx, { short_link_id: id }) => showLink(ctx.publicUrl, await reachLink(ctx, id))

export const listShortLinks: Handler<
  InputOf<'messaging_list_short_links'>,
  OutputOf<'messaging_list_short_links'>
> = async (ctx, input) => {
  const { tx, actor, publicUrl } = ctx
  const own = actor.staff.channelIds
  const filter: ShortLinkFilter = {
    channelIds:
      input.channel_id === undefined ? own : mayUse(actor, input.channel_id) ? [input.channel_id] : [],
    search: input.search,
  }
  return await pageOf(
    ctx.cursors,
    input,
    (after, limit) =>
      pageOfShortLinks(
        tx,
        actor.workspace.id,
        filter,
        after && { createdAt: after[0]!, id: after[1]! },
        limit,
      ),
    () => countShortLinks(tx, actor.workspace.id, filter),
    (row) => [row.created_at, row.id],
    (row) => showLink(publicUrl, row),
  )
}
