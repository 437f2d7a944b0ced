import { lockTemplate, lockTemplatesOf, type StoredTemplate, writeTemplate } from '../../storage/templates.ts'
import type { Context } from '../core/context.ts'
import { inThreeParts } from '../messaging/send.ts'
import type { How, InputOf, OutputOf } from '../core/handler.ts'
import { Problem } from '../core/problem.ts'
import { lookUp, outcomeUnknown } from '../provider/port.ts'
import { type Account, accountOf, connectedAccounts } from './accounts.ts'

type Output = OutputOf<'messaging_archive_templates'>
type Failed = Output['failed'][number]

const reasons = {
  not_found: 'There is no such template in this workspace.',
  account_not_connected: "No channel of the template's business account is connected.",
  not_submitted: 'The template was never submitted to the provider.',
  refused_by_whatsapp:
    'The provider refused to archive the template; it archives approved and rejected ones only.',
} as const satisfies Record<Failed['code'], string>

/** One that the provider is asked to archive. */
type Wanted = { id: string; providerId: string; name: string; status: string }
/** In the order asked for. `failed`, `archived`: what needed no call. */
type Intent = {
  ids: string[]
  archived: string[]
  failed: Failed[]
  groups: { accountId: string; templates: Wanted[] }[]
}
/** Ours ids that the provider archived. */
type Result = { archived: string[] }

const failure = (code: Failed['code'], id: string, name?: string): Failed => ({
  id,
  ...(name === undefined ? {} : { name }),
  code,
  reason: reasons[code],
})

export const archiveTemplates = inThreeParts<InputOf<'messaging_archive_templates'>, Output, Intent, Result>({
  prepare: async (ctx, input) => {
    const ids = [...new Set(input.ids.map(String))]
    const rows = new Map(
      (await lockTemplatesOf(ctx.tx, ctx.actor.workspace.id, ids)).map((row) => [row.id, row]),
    )
    const accounts = await connectedAccounts(ctx)
    const intent: Intent = { ids, archived: [], failed: [], groups: [] }
    for (const id of ids) sort(intent, id, rows.get(id), accounts)
    return intent
  },
  call: async ({ groups }, how) => {
    const archived: string[] = []
    for (const group of groups) archived.push(...(await archiveGroup(group, how, archived.length > 0)))
    return { archived }
  },
  settle: async (ctx, intent, { archived }) => {
    // In one order, as the provider's updates lock them.
    for (const id of archived.toSorted((a, b) => Number(BigInt(a) - BigInt(b)))) await markArchived(ctx, id)
    const done = new Set([...intent.archived, ...archived])
    const refused = intent.groups
      .flatMap(({ templates }) => templates)
      .filter(({ id }) => !done.has(id))
      .map(({ id, name }) => failure('refused_by_whatsapp', id, name))
    const failed = new Map([...intent.failed, ...refused].map((one) => [one.id, one]))
    return {
      archived: intent.ids.filter((id) => done.has(id)),
      failed: intent.ids.flatMap((id) => failed.get(id) ?? []),
    }
  },
  rehearse: ({ groups }) => ({
    archived: groups
      .flatMap(({ templates }) => templates)
      .filter(({ status }) => status === 'APPROVED' || status === 'REJECTED')
      .map(({ id }) => id),
  }),
})

const sort = (
  { archived, failed, groups }: Intent,
  id: string,
  row: StoredTemplate | undefined,
  accounts: readonly Account[],
): void => {
  if (!row) return void failed.push(failure('not_found', id))
  if (row.status === 'ARCHIVED') return void archived.push(id)
  const account = accountOf(accounts, row.account_id)
  if (!account) return void failed.push(failure('account_not_connected', id, row.name))
  if (row.provider_id === null) return void failed.push(failure('not_submitted', id, row.name))
  const wanted = { id, providerId: row.provider_id, name: row.name, status: row.status }
  const group = groups.find(({ accountId }) => accountId === account.id)
  if (group) group.templates.push(wanted)
  else groups.push({ accountId: account.id, templates: [wanted] })
}

/** Our ids of those archived, now or before. `begun`: those of another account are archived already. */
const archiveGroup = async (
  { accountId, templates }: Intent['groups'][number],
  how: How,
  begun: boolean,
): Promise<string[]> => {
  const there = how.again ? await lookUp(archivedAlready(accountId, templates, how)) : new Set<string>()
  const open = templates.filter(({ providerId }) => !there.has(providerId))
  const done = new Set([...there, ...(open.length === 0 ? [] : await archive(accountId, open, how, begun))])
  const refused = open.filter(({ providerId }) => !done.has(providerId))
  // Archived by somebody else meanwhile is archived too; when that cannot be found out, the refusal stands.
  if (refused.length > 0)
    for (const id of await archivedAlready(accountId, refused, how).catch(() => [])) done.add(id)
  return templates.filter(({ providerId }) => done.has(providerId)).map(({ id }) => id)
}

const archivedAlready = async (
  accountId: string,
  templates: readonly Wanted[],
  { provider, signal }: How,
): Promise<Set<string>> => {
  const held = await Promise.all(
    [...new Set(templates.map(({ name }) => name))].map((name) =>
      provider.listTemplates(accountId, name, signal),
    ),
  )
  return new Set(
    held
      .flat()
      .filter(({ status }) => status === 'ARCHIVED')
      .map(({ id }) => id),
  )
}

/**
 * The provider's ids of those it archived. A refusal of the whole call is one of each of them, unless it
 * says that the provider cannot be used at all.
 */
const archive = async (
  accountId: string,
  templates: readonly Wanted[],
  { provider, signal }: How,
  begun: boolean,
): Promise<string[]> => {
  try {
    return (
      await provider.archiveTemplates(
        accountId,
        templates.map(({ providerId }) => providerId),
        signal,
      )
    ).archived
  } catch (error) {
    if (!(error instanceof Problem) || outcomeUnknown(error)) throw error
    const refused = error.status < 500 || error.code === 'upstream_error'
    if (refused && (begun || error.extras.reason !== 'provider_access')) return []
    // Without a reason its outcome counts as unknown, so that what was archived is found out and written by
    // the retry.
    if (begun)
      throw new Problem(
        'upstream_unavailable',
        `Some of the templates are archived, others are not yet. ${error.message} Retry with the same Idempotency-Key.`,
        {},
        error.headers,
      )
    throw error
  }
}

const markArchived = async (ctx: Context, id: string): Promise<void> => {
  const workspaceId = ctx.actor.workspace.id
  const row = await lockTemplate(ctx.tx, workspaceId, id)
  if (!row) return
  if (row.status !== 'ARCHIVED')
    await writeTemplate(ctx.tx, workspaceId, id, { status: 'ARCHIVED', archived_at: ctx.now }, ctx.now)
  ctx.emit('template.archived/1', {
    template: { id, name: row.name, language: row.language, category: row.category, status: 'ARCHIVED' },
  })
}
