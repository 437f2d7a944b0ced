import {
  countTemplates,
  pageOfTemplates,
  readTemplate,
  type TemplateFilter,
  templateTexts,
} from '../../storage/templates.ts'
import { fold } from '../../storage/text.ts'
import type { Context } from '../core/context.ts'
import type { Handler, InputOf, OutputOf } from '../core/handler.ts'
import { pageOf } from '../core/paging.ts'
import { notFound } from '../core/problem.ts'
import { showTemplate } from './view.ts'

type ListInput = InputOf<'messaging_list_templates'>

export const listTemplates: Handler<ListInput, OutputOf<'messaging_list_templates'>> = async (ctx, input) => {
  const { tx, actor } = ctx
  const filter = await filterOf(ctx, input)
  return await pageOf(
    ctx.cursors,
    input,
    (after, limit) =>
      pageOfTemplates(tx, actor.workspace.id, filter, after && { name: after[0]!, id: after[1]! }, limit),
    () => countTemplates(tx, actor.workspace.id, filter),
    (row) => [row.name, row.id],
    (row) => showTemplate(actor, row),
  )
}

const filterOf = async (
  { tx, actor }: Context,
  { search, status, category, language }: ListInput,
): Promise<TemplateFilter> => {
  // People write `en-US` too.
  const filter = { status, category, language: language?.replaceAll('-', '_') }
  if (search === undefined) return filter
  const sought = fold(search)
  const texts = await templateTexts(tx, actor.workspace.id, filter)
  return {
    ...filter,
    ids: texts
      .filter(({ name, body }) => fold(name).includes(sought) || fold(body ?? '').includes(sought))
      .map(({ id }) => id),
  }
}

export const getTemplate: Handler<
  InputOf<'messaging_get_template'>,
  OutputOf<'messaging_get_template'>
> = async ({ tx, actor }, { template_id: id }) => {
  const row = await readTemplate(tx, actor.workspace.id, id)
  if (!row) throw notFound('template', id)
  return showTemplate(actor, row)
}
