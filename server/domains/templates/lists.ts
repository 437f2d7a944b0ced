import type { Context, Handler, InputOf } from '../../handler.ts'
import {
  countTemplates,
  listTemplateRows,
  loadTemplate,
  type TemplateFilter,
  listTemplateTexts,
} from '../../../storage/templates/templates.ts'
import { fold } from '../../../storage/values/text.ts'
import { createPage } from '../../kernel/paging.ts'
import { notFound } from '../../kernel/problem.ts'
import { describeSend } from './send-schema.ts'
import { toDraft } from './to-draft.ts'
import { showTemplate } from './view.ts'

type ListInput = InputOf<'messaging_list_templates'>

export const listTemplates: Handler<'messaging_list_templates'> = async (ctx, input) => {
  const { tx, actor } = ctx
  const filter = await buildFilter(ctx, input)
  return await createPage({
    cursors: ctx.cursors,
    input,
    load: (after, limit) =>
      listTemplateRows(tx, actor.workspace.id, filter, after && { name: after[0]!, id: after[1]! }, limit),
    count: () => countTemplates(tx, actor.workspace.id, filter),
    toPosition: (row) => [row.name, row.id],
    toItem: (row) => showTemplate(actor, row),
  })
}

const buildFilter = async (
  { tx, actor }: Context,
  { search, status, category, language }: ListInput,
): Promise<TemplateFilter> => {
  // Language codes are also written `en-US`.
  const filter = { status, category, language: language?.replaceAll('-', '_') }
  if (search === undefined) return filter
  const folded = fold(search)
  const texts = await listTemplateTexts(tx, actor.workspace.id, filter)
  return {
    ...filter,
    ids: texts
      .filter(({ name, body }) => fold(name).includes(folded) || fold(body ?? '').includes(folded))
      .map(({ id }) => id),
  }
}

export const getTemplate: Handler<'messaging_get_template'> = async (ctx, { template_id: id }) => {
  const row = await loadTemplate(ctx.tx, ctx.actor.workspace.id, id)
  if (!row) throw notFound('template', id)
  const send = describeSend(row, ctx.now)
  return {
    ...showTemplate(ctx.actor, row),
    draft: toDraft(row) ?? null,
    send_schema: send?.schema ?? null,
    send_example: send?.example ?? null,
  }
}
