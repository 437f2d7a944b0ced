import type { Context, CallOptions, OutputOf } from '../../handler.ts'
import { isOutcomeUnknown } from '../../kernel/open-outcomes.ts'
import {
  lockTemplate,
  lockTemplatesByIds,
  type TemplateDetails,
  updateTemplateRow,
} from '../../../storage/templates/templates.ts'
import { defineProviderHandler } from '../../provider/provider-handler.ts'
import { Problem } from '../../kernel/problem.ts'
import { lookUpOutcome } from '../../provider/port.ts'
import { type BusinessAccount, findAccount, listConnectedAccounts } from './accounts.ts'

type Output = OutputOf<'messaging_archive_templates'>
type ArchiveFailure = Output['failed'][number]

const FAILURE_REASONS = {
  not_found: 'The template does not exist in this workspace.',
  account_not_connected: "No channel of the template's business account is connected.",
  not_submitted: 'The template was never submitted to the provider.',
  refused_by_whatsapp:
    'The provider refused to archive the template; it archives approved and rejected ones only.',
} as const satisfies Record<ArchiveFailure['code'], string>

/** A template that the provider is requested to archive. */
type TemplateToArchive = { id: string; providerId: string; name: string; status: string }
/** Ids in the requested order. `failed`, `archived`: templates that need no call. */
type ArchiveIntent = {
  ids: string[]
  archived: string[]
  failed: ArchiveFailure[]
  groups: { accountId: string; templates: TemplateToArchive[] }[]
}
/** Our ids of the templates that the provider archived. */
type ArchiveResult = { archived: string[] }

const toFailure = (code: ArchiveFailure['code'], id: string, name?: string): ArchiveFailure => ({
  id,
  ...(name === undefined ? {} : { name }),
  code,
  reason: FAILURE_REASONS[code],
})

export const archiveTemplates = defineProviderHandler<
  'messaging_archive_templates',
  ArchiveIntent,
  ArchiveResult
>({
  prepare: async (ctx, input) => {
    const ids = [...new Set(input.ids.map(String))]
    const rows = new Map(
      (await lockTemplatesByIds(ctx.tx, ctx.actor.workspace.id, ids)).map((row) => [row.id, row]),
    )
    const accounts = await listConnectedAccounts(ctx)
    const intent: ArchiveIntent = { ids, archived: [], failed: [], groups: [] }
    for (const id of ids) classify(intent, id, rows.get(id), accounts)
    return intent
  },
  call: async ({ groups }, options) => {
    const archived: string[] = []
    for (const group of groups) archived.push(...(await archiveGroup(group, options, archived.length > 0)))
    return { archived }
  },
  findOutcome: async ({ groups }, options) => {
    const archived: string[] = []
    for (const { accountId, templates } of groups) {
      const found = await lookUpOutcome(findArchived(accountId, templates, options))
      archived.push(...templates.filter(({ providerId }) => found.has(providerId)).map(({ id }) => id))
    }
    // What is not archived may have been refused, which only another call finds out.
    const wanted = groups.reduce((n, { templates }) => n + templates.length, 0)
    return archived.length === wanted ? { archived } : undefined
  },
  mayRepeat: true,
  complete: async (ctx, intent, { archived }) => {
    // Locked in one order, the same as for the provider's updates.
    for (const id of archived.toSorted((a, b) => Number(BigInt(a) - BigInt(b)))) await markArchived(ctx, id)
    const done = new Set([...intent.archived, ...archived])
    const refused = intent.groups
      .flatMap(({ templates }) => templates)
      .filter(({ id }) => !done.has(id))
      .map(({ id, name }) => toFailure('refused_by_whatsapp', id, name))
    const failed = new Map([...intent.failed, ...refused].map((one) => [one.id, one]))
    return {
      archived: intent.ids.filter((id) => done.has(id)),
      failed: intent.ids.flatMap((id) => failed.get(id) ?? []),
    }
  },
  dryRunResult: ({ groups }) => ({
    archived: groups
      .flatMap(({ templates }) => templates)
      .filter(({ status }) => status === 'APPROVED' || status === 'REJECTED')
      .map(({ id }) => id),
  }),
})

const classify = (
  { archived, failed, groups }: ArchiveIntent,
  id: string,
  row: TemplateDetails | undefined,
  accounts: readonly BusinessAccount[],
): void => {
  if (!row) return void failed.push(toFailure('not_found', id))
  if (row.status === 'ARCHIVED') return void archived.push(id)
  const account = findAccount(accounts, row.account_id)
  if (!account) return void failed.push(toFailure('account_not_connected', id, row.name))
  if (row.provider_id === null) return void failed.push(toFailure('not_submitted', id, row.name))
  const wanted = { id, providerId: row.provider_id, name: row.name, status: row.status }
  const group = groups.find(({ accountId }) => accountId === account.id)
  if (group) group.templates.push(wanted)
  else groups.push({ accountId: account.id, templates: [wanted] })
}

/**
 * Returns our ids of templates archived now or before. `anyArchived`: templates of another account are
 * archived already.
 */
const archiveGroup = async (
  { accountId, templates }: ArchiveIntent['groups'][number],
  options: CallOptions,
  anyArchived: boolean,
): Promise<string[]> => {
  const earlier = options.again
    ? await lookUpOutcome(findArchived(accountId, templates, options))
    : new Set<string>()
  const open = templates.filter(({ providerId }) => !earlier.has(providerId))
  const done = new Set([
    ...earlier,
    ...(open.length === 0 ? [] : await callArchive(accountId, open, options, anyArchived)),
  ])
  const refused = open.filter(({ providerId }) => !done.has(providerId))
  // A template that was archived elsewhere counts as archived. When the list cannot be read, the refusal
  // counts.
  if (refused.length > 0)
    for (const id of await findArchived(accountId, refused, options).catch(() => [])) done.add(id)
  return templates.filter(({ providerId }) => done.has(providerId)).map(({ id }) => id)
}

const findArchived = async (
  accountId: string,
  templates: readonly TemplateToArchive[],
  { services: { provider }, signal }: CallOptions,
): Promise<Set<string>> => {
  const lists = await Promise.all(
    [...new Set(templates.map(({ name }) => name))].map((name) =>
      provider.listTemplates(accountId, name, signal),
    ),
  )
  return new Set(
    lists
      .flat()
      .filter(({ status }) => status === 'ARCHIVED')
      .map(({ id }) => id),
  )
}

/**
 * Archives templates; returns the provider's ids of those it archived. A refusal of the whole call counts for
 * each of them, unless the provider cannot be used at all.
 */
const callArchive = async (
  accountId: string,
  templates: readonly TemplateToArchive[],
  { services: { provider }, signal }: CallOptions,
  anyArchived: boolean,
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
    if (!(error instanceof Problem) || isOutcomeUnknown(error)) throw error
    const refused = error.status < 500 || error.code === 'upstream_error'
    if (refused && (anyArchived || error.extras.reason !== 'provider_access')) return []
    // Without a reason its outcome counts as unknown, so that the retry looks up what was archived.
    if (anyArchived)
      throw new Problem(
        'upstream_unavailable',
        `Some of the templates are archived, others are not yet. ${error.message} ` +
          'Retry with the same Idempotency-Key.',
        {},
        error.headers,
      )
    throw error
  }
}

const markArchived = async (ctx: Context<'template.archived/1'>, id: string): Promise<void> => {
  const workspaceId = ctx.actor.workspace.id
  const row = await lockTemplate(ctx.tx, workspaceId, id)
  if (!row) return
  if (row.status !== 'ARCHIVED')
    await updateTemplateRow(ctx.tx, workspaceId, id, { status: 'ARCHIVED', archived_at: ctx.now }, ctx.now)
  ctx.emit('template.archived/1', {
    template: { id, name: row.name, language: row.language, category: row.category, status: 'ARCHIVED' },
  })
}
