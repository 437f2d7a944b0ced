import {
  insertReadTemplates,
  insertTemplateReads,
  listAccountChannels,
  lockAccountTemplates,
  lockRefusedTemplate,
  type ReadTemplate,
  TEMPLATE_READS,
  type TemplateChange,
  type TemplateDetails,
  updateTemplateRow,
} from '../../../storage/templates/templates.ts'
import type { EventRow } from '../../../storage/events/events.ts'
import { advanceRun, finishRun, type Run } from '../../../storage/work/runs.ts'
import type { App } from '../../app.ts'
import { type ChangeContext, toChangeContext } from '../../change-context.ts'
import { businessTime } from '../../clock.ts'
import type { Handler, OutputOf } from '../../handler.ts'
import { createEmit } from '../../kernel/emit.ts'
import type { LookUpOptions } from '../../kernel/handler.ts'
import { Problem } from '../../kernel/problem.ts'
import { withRetries } from '../../kernel/retry.ts'
import { withTransaction } from '../../kernel/write-call.ts'
import {
  isProviderConfigured,
  type Provider,
  type ProviderTemplate,
  requireProviderConfigured,
} from '../../provider/port.ts'
import { commitStep, createRunJob, type Progress } from '../../work/engine.ts'
import type { JobDefinition } from '../../work/runner.ts'
import { insertAllEvents, notifyEvents } from '../events/signal.ts'
import { asObject, asText, toStorableJson } from '../inbound/json.ts'
import { type BusinessAccount, listConnectedAccounts, notConnectedProblem } from './accounts.ts'
import { isSameTemplate } from './same-template.ts'
import { SUBMITTING, toStoredError } from './submission.ts'

/*
 * Templates as the provider has them: those of an account that has lived before, and what was changed elsewhere or told
 * while nobody listened.
 */

type Emits = 'template.status_changed/1'
type Output = OutputOf<'messaging_sync_templates'>
type Change = Output['changes'][number]

/** What the provider listed of an account; `at`: business time before it was asked. `name`: only those with it. */
type Listing = {
  account: BusinessAccount
  at: string
  name?: string | undefined
  templates: readonly ProviderTemplate[]
}
type Refused = { account: BusinessAccount; problem: Problem }

const MAX_CHANGES = 100
const DAY_SECONDS = 86_400
/** After a reading that failed. */
const RETRY_SECONDS = 3600
/** After a refused send: a template that was approved a moment ago is not everywhere at the provider yet. */
const VERIFY_SECONDS = 10
/** The provider keeps archived templates for 28 days. */
const ARCHIVE_MS = 28 * DAY_SECONDS * 1000

/** Throws only what is no `Problem`. */
const list = async (
  provider: Provider,
  { account, at, name }: Omit<Listing, 'templates'>,
  signal: AbortSignal,
): Promise<Listing | Refused> => {
  try {
    return { account, at, name, templates: await provider.listTemplates(account.id, name, signal) }
  } catch (error) {
    if (error instanceof Problem) return { account, problem: error }
    throw error
  }
}

const lookUp = async ({ actor, services, db, now, signal }: LookUpOptions<App>) => {
  requireProviderConfigured(services.provider)
  const accounts = await listConnectedAccounts({ tx: db, actor })
  if (accounts.length === 0)
    throw notConnectedProblem(
      'No channel of type chatapp with a business account is connected. Connect one first.',
    )
  return await Promise.all(accounts.map((account) => list(services.provider, { account, at: now }, signal)))
}

const sync: Handler<'messaging_sync_templates'> = async (ctx) => {
  const total = { read: 0, created: 0, updated: 0, unchanged: 0, gone: 0 }
  const changes: Change[] = []
  const problems: Output['problems'] = []
  for (const found of ctx.call.lookedUp as Awaited<ReturnType<typeof lookUp>>) {
    const { account } = found
    if ('problem' in found) {
      const { code, extras, message } = found.problem
      problems.push({
        business_account_id: account.id,
        business_account_name: account.name,
        code,
        reason: extras.reason ?? null,
        detail: message,
      })
      // Without the deadline of a call: an account may have thousands.
      await insertTemplateReads(ctx.tx, account.id, null, 0)
      continue
    }
    const made = await applyListing(toChangeContext(ctx), found)
    total.read += found.templates.length
    total.unchanged += made.unchanged
    for (const { change } of made.changes) total[change]++
    changes.push(
      ...made.changes.map((one) => (ctx.dryRun && one.change === 'created' ? { ...one, id: null } : one)),
    )
  }
  return { ...total, changes: changes.slice(0, MAX_CHANGES), problems }
}

export const syncTemplates = Object.assign(sync, { lookUp })

const keyOf = ({ name, language }: Pick<ProviderTemplate, 'name' | 'language'>): string =>
  `${name} ${language}`

const isDeleted = ({ status }: { status: string }): boolean =>
  status === 'DELETED' || status === 'PENDING_DELETION'

/** By name and language: beside a deleted template there may be a new one. */
const indexListed = (templates: readonly ProviderTemplate[]): Map<string, ProviderTemplate> => {
  const listed = new Map<string, ProviderTemplate>()
  for (const template of templates)
    if (!isDeleted(template) || !listed.has(keyOf(template))) listed.set(keyOf(template), template)
  return listed
}

/**
 * Stores what the provider listed. What changed here since it was asked is newer, and a template that is being
 * submitted is left to its call.
 */
const applyListing = async (
  context: ChangeContext<Emits>,
  { account, at, name, templates }: Listing,
): Promise<{ unchanged: number; changes: Change[] }> => {
  const { tx, workspaceId, now } = context
  const listed = indexListed(templates)
  const isOfAccount = (row: TemplateDetails): boolean =>
    row.account_id !== null || row.provider_id === null || listed.get(keyOf(row))?.id === row.provider_id
  const rows = (await lockAccountTemplates(tx, workspaceId, account.id, name)).filter(isOfAccount)
  const changes: Change[] = []
  for (const row of rows) {
    if (row.status === SUBMITTING || Date.parse(row.updated_at) > Date.parse(at)) continue
    const template = listed.get(keyOf(row))
    const change = template ? compare(row, template, now) : isGone(row, now) ? gone : undefined
    if (!change) continue
    await updateTemplateRow(tx, workspaceId, row.id, change, now)
    emitStatusChange(context, row, change)
    changes.push(toChange(row, change === gone ? 'gone' : 'updated', change.status ?? row.status, row.status))
  }
  const known = new Set(rows.map(keyOf))
  const unknown = [...listed.values()].filter((template) => !known.has(keyOf(template)))
  const created = await insertReadTemplates(
    tx,
    workspaceId,
    unknown.map((template) => toNewRow(account, template, now)),
    now,
  )
  changes.push(...created.map((row) => toChange(row, 'created', row.status, null)))
  const found = changes.filter(({ change }) => change !== 'gone').length
  return { unchanged: templates.length - found, changes }
}

const toChange = (
  { id, name, language }: Pick<TemplateDetails, 'id' | 'name' | 'language'>,
  change: Change['change'],
  status: string,
  previous: string | null,
): Change => ({ id, name, language, change, status, previous_status: previous })

const gone = { status: 'DELETED', rejection_reason: null, archived_at: null } satisfies TemplateChange

const isGone = ({ account_id, provider_id, status, archived_at: archivedAt }: TemplateDetails, now: string) =>
  account_id !== null &&
  provider_id !== null &&
  status !== 'DELETED' &&
  (archivedAt === null || Date.parse(now) - Date.parse(archivedAt) > ARCHIVE_MS)

/** States in which a template can be sent as one that is approved. */
const APPROVED_TOO = new Set(['REINSTATED', 'UNARCHIVED', 'FLAGGED'])

const isRefused = (status: string): boolean => ['REJECTED', 'PAUSED', 'DISABLED'].includes(status)

type Known = Pick<
  TemplateDetails,
  'category' | 'status' | 'rejection_reason' | 'quality_rating' | 'archived_at' | 'meta_errors'
>
const NEW: Known = {
  category: null,
  status: '',
  rejection_reason: null,
  quality_rating: null,
  archived_at: null,
  meta_errors: null,
}

/** The columns of a template, as the provider tells of it; what it does not tell is as it was. */
const toColumns = (row: Known, template: ProviderTemplate, now: string) => {
  const status = APPROVED_TOO.has(template.status) ? 'APPROVED' : template.status.slice(0, 100)
  // The reviewer's own words came with an update; the list has their code alone.
  const isWorded =
    row.status === status && asText(asObject(row.meta_errors)['reason']) === template.rejectedReason
  const reason = isWorded ? row.rejection_reason : (template.rejectedReason ?? row.rejection_reason)
  return {
    provider_id: template.id,
    status,
    category: template.category ?? row.category,
    rejection_reason: status === 'ARCHIVED' ? row.rejection_reason : isRefused(status) ? reason : null,
    quality_rating: toQuality(template.quality) ?? row.quality_rating,
    archived_at: status === 'ARCHIVED' ? (row.archived_at ?? now) : null,
  }
}

/** The rating of a template; null where the provider has none yet. */
export const toQuality = (score: string | null): string | null =>
  score !== null && /^(?:GREEN|YELLOW|RED)$/.test(score) ? score : null

const toNewRow = (
  { id: account_id, name: account_name }: BusinessAccount,
  template: ProviderTemplate,
  now: string,
): ReadTemplate =>
  toStorableJson({
    account_id,
    account_name,
    name: template.name,
    language: template.language,
    ...toColumns(NEW, template, now),
    components: template.components,
  }) as ReadTemplate

/** What is to be written of a known template; undefined when nothing is. */
const compare = (
  row: TemplateDetails,
  template: ProviderTemplate,
  now: string,
): TemplateChange | undefined => {
  const columns = toColumns(row, template, now)
  const isSame = isSameTemplate(row.components, template.components, columns.category)
  const names = Object.keys(columns) as (keyof typeof columns)[]
  if (isSame && names.every((name) => columns[name] === row[name])) return undefined
  return {
    ...columns,
    ...(isSame ? {} : { components: toStorableJson(template.components) as unknown[] }),
    ...(columns.status !== row.status && !isRefused(columns.status) ? { meta_errors: null } : {}),
  }
}

type Reviewed = Pick<TemplateDetails, 'status' | 'category' | 'rejection_reason'>

/** Tells of a change of a template's review, if there is one. */
export const emitStatusChange = (
  { emit }: ChangeContext<Emits>,
  before: Reviewed & Pick<TemplateDetails, 'id' | 'name' | 'language'>,
  change: Partial<Reviewed>,
): void => {
  const { id, name, language, status, category, rejection_reason: reason } = before
  const next = { status, category, rejection_reason: reason, ...change }
  if (next.status === status && next.category === category && next.rejection_reason === reason) return
  emit('template.status_changed/1', {
    template: {
      id,
      name,
      language,
      status: next.status,
      previous_status: status,
      category: next.category,
      rejection_reason: next.status === 'ARCHIVED' ? null : next.rejection_reason,
    },
  })
}

/** The provider refused to send a template that it does not have; it is asked once more a moment later. */
export const markMissing = async (
  context: ChangeContext<Emits>,
  sent: Parameters<typeof lockRefusedTemplate>[2],
  problem: Problem,
): Promise<void> => {
  const { tx, workspaceId, now } = context
  const row = await lockRefusedTemplate(tx, workspaceId, sent)
  if (!row || row.status !== 'APPROVED') return
  await updateTemplateRow(tx, workspaceId, row.id, { ...gone, meta_errors: toStoredError(problem, now) }, now)
  emitStatusChange(context, row, gone)
  if (row.account_id !== null) await insertTemplateReads(tx, row.account_id, row.name, VERIFY_SECONDS)
}

/** Reads the templates of each account once a day, and those of which an update told that nobody knows. */
export const templateReadsJob = (app: App): JobDefinition => {
  const reads = createRunJob(app, {
    kind: TEMPLATE_READS,
    job: 'template-reads',
    turns: 4,
    step: (run, { signal }) => readTemplates(app, run, signal),
  })
  return {
    ...reads,
    run: async (signal, nextWake) =>
      isProviderConfigured(app.provider) ? await reads.run(signal, nextWake) : {},
  }
}

const readTemplates = async (app: App, run: Run, signal: AbortSignal): Promise<Progress> => {
  const { workspace_id: workspaceId, subject } = run
  const [accountId, name] = subject.split(/ (.*)/s)
  const channel = (await listAccountChannels(app.db, workspaceId)).find(
    ({ type, account_id: id }) => type === 'chatapp' && id === accountId,
  )
  const account = channel && { id: accountId!, name: channel.account_name }
  const found =
    account && (await list(app.provider, { account, at: businessTime(app, workspaceId), name }, signal))
  // An update of which nobody knows is tried again, and asks again.
  if (!found || ('problem' in found && name !== undefined)) {
    await finishRun(app.db, run)
    return 'over'
  }
  if ('problem' in found) return { seconds: RETRY_SECONDS, tries: 1 }
  const news = await withRetries(() =>
    withTransaction(app, async (tx) => {
      const events: EventRow[] = []
      const now = businessTime(app, workspaceId)
      await applyListing({ tx, workspaceId, now, emit: createEmit(events, now) }, found)
      const told = await insertAllEvents(tx, [[workspaceId, events]])
      const isOurs = await commitStep(tx, name === undefined ? advanceRun(tx, run) : finishRun(tx, run))
      return isOurs ? told : undefined
    }),
  )
  for (const each of news ?? []) notifyEvents(app, each)
  return news && name === undefined ? { seconds: DAY_SECONDS, tries: 0 } : 'over'
}
