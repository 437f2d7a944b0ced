import { sql } from 'kysely'
import type { Db } from '../database.ts'
import { toStorableId } from '../values/ids.ts'

/** A template as a send needs it. `components` are in the provider's shape. */
export type TemplateRow = {
  id: string
  account_id: string | null
  provider_id: string | null
  name: string
  language: string
  category: string | null
  status: string
  components: unknown
}

/**
 * Finds the template of this name and language that a channel of this account can send: the account's own,
 * or else one without an account.
 */
export const findTemplate = async (
  tx: Db,
  workspaceId: string,
  accountId: string | null,
  name: string,
  language: string,
): Promise<TemplateRow | undefined> =>
  (
    await sql<TemplateRow>`
    select id, account_id, provider_id, name, language, category, status, components from templates
    where workspace_id = ${workspaceId} and name = ${name} and language = ${language}
      and (account_id is null or ${accountId}::text is null or account_id = ${accountId}::text)
    order by (account_id is null), id limit 1`.execute(tx)
  ).rows[0]

/** A template with everything that is returned of it. */
export type TemplateDetails = TemplateRow & {
  account_name: string | null
  sub_category: string | null
  rejection_reason: string | null
  quality_rating: string | null
  meta_errors: unknown
  archived_at: string | null
  created_at: string
  updated_at: string
  version: number
}

const columns = [
  'id',
  'account_id',
  'account_name',
  'provider_id',
  'name',
  'language',
  'category',
  'sub_category',
  'status',
  'rejection_reason',
  'quality_rating',
  'components',
  'meta_errors',
  'archived_at',
  'created_at',
  'updated_at',
  'version',
] as const

const selectTemplates = (tx: Db, workspaceId: string) =>
  tx.selectFrom('templates').select(columns).where('workspace_id', '=', workspaceId)

export const loadTemplate = async (
  tx: Db,
  workspaceId: string,
  id: string,
): Promise<TemplateDetails | undefined> =>
  selectTemplates(tx, workspaceId).where('id', '=', toStorableId(id)).executeTakeFirst()

export const lockTemplate = async (
  tx: Db,
  workspaceId: string,
  id: string,
): Promise<TemplateDetails | undefined> =>
  selectTemplates(tx, workspaceId).where('id', '=', toStorableId(id)).forUpdate().executeTakeFirst()

/** Locks the existing templates of these ids, in the order in which the provider's updates lock them too. */
export const lockTemplatesByIds = async (
  tx: Db,
  workspaceId: string,
  ids: readonly string[],
): Promise<TemplateDetails[]> =>
  selectTemplates(tx, workspaceId)
    .where(sql<boolean>`id = any(${ids.map(toStorableId)}::bigint[])`)
    .orderBy('id')
    .forUpdate()
    .execute()

/**
 * Locks the templates of an account, and those of none, in the order in which the provider's updates lock them too.
 * `name`: only those with it.
 */
export const lockAccountTemplates = async (
  tx: Db,
  workspaceId: string,
  accountId: string,
  name: string | undefined,
): Promise<TemplateDetails[]> =>
  selectTemplates(tx, workspaceId)
    .where(sql<boolean>`coalesce(account_id, ${accountId}) = ${accountId}`)
    .$if(name !== undefined, (query) => query.where('name', '=', name!))
    .orderBy('id')
    .forUpdate()
    .execute()

/** `status`, `category` and `language` ignore case; `ids`: only these. */
export type TemplateFilter = {
  status?: string | undefined
  category?: string | undefined
  language?: string | undefined
  ids?: readonly string[] | undefined
}

const matches = (workspaceId: string, { status, category, language, ids }: TemplateFilter) => {
  const is = (column: string, value: string | undefined) =>
    value === undefined ? sql`` : sql`and lower(${sql.ref(column)} collate "C") = ${value.toLowerCase()}`
  return sql<boolean>`
    workspace_id = ${workspaceId} ${is('status', status)} ${is('category', category)}
    ${is('language', language)} ${ids === undefined ? sql`` : sql`and id = any(${ids}::bigint[])`}`
}

/** Lists a page of templates by name, then id. */
export const listTemplateRows = async (
  tx: Db,
  workspaceId: string,
  filter: TemplateFilter,
  after: { name: string; id: string } | null,
  limit: number,
): Promise<TemplateDetails[]> =>
  tx
    .selectFrom('templates')
    .select(columns)
    .where(matches(workspaceId, filter))
    .$if(after !== null, (query) =>
      query.where(sql<boolean>`(name, id) > (${after!.name}, ${after!.id}::bigint)`),
    )
    .orderBy('name')
    .orderBy('id')
    .limit(limit)
    .execute()

/**
 * Lists templates that can be sent to start a conversation, of one of these accounts or of none (null: of any):
 * for service before marketing, then the newest first.
 */
export const listSendableTemplates = async (
  tx: Db,
  workspaceId: string,
  accountIds: readonly string[] | null,
  limit: number,
): Promise<TemplateRow[]> =>
  (
    await sql<TemplateRow>`
    select id, account_id, provider_id, name, language, category, status, components from templates
    where workspace_id = ${workspaceId} and status = 'APPROVED' and category in ('UTILITY', 'MARKETING')
      and (account_id is null or ${accountIds}::text[] is null or account_id = any(${accountIds}::text[]))
    order by category = 'UTILITY' desc, updated_at desc, id desc limit ${limit}`.execute(tx)
  ).rows

export const countTemplates = async (tx: Db, workspaceId: string, filter: TemplateFilter): Promise<number> =>
  Number(
    (
      await sql<{ n: string }>`
      select count(*) as n from templates where ${matches(workspaceId, filter)}`.execute(tx)
    ).rows[0]!.n,
  )

/**
 * Lists the texts that a search matches. An account holds at most 6,000 templates, so all are read, and
 * folded outside of SQL.
 */
export const listTemplateTexts = async (
  tx: Db,
  workspaceId: string,
  filter: TemplateFilter,
): Promise<{ id: string; name: string; body: string | null }[]> =>
  (
    await sql<{ id: string; name: string; body: string | null }>`
    select id, name, jsonb_path_query_first(
      components, '$[*] ? (@.type like_regex "^body$" flag "i").text') #>> '{}' as body
    from templates where ${matches(workspaceId, filter)}`.execute(tx)
  ).rows

/** Serialises concurrent submissions of a workspace, so that they do not exceed the plan together. */
export const lockTemplateLimit = async (tx: Db, workspaceId: string): Promise<void> => {
  await sql`
    select pg_advisory_xact_lock(hashtextextended(${`template_limit ${workspaceId}`}, 0))`.execute(tx)
}

/** Counts templates against the plan: all but archived ones and those the provider deleted. */
export const countTemplatesInPlan = async (tx: Db, workspaceId: string): Promise<number> =>
  Number(
    (
      await tx
        .selectFrom('templates')
        .select((select) => select.fn.countAll<string>().as('n'))
        .where('workspace_id', '=', workspaceId)
        .where('status', 'not in', ['ARCHIVED', 'DELETED'])
        .executeTakeFirstOrThrow()
    ).n,
  )

export type PendingTemplate = {
  account_id: string
  account_name: string | null
  name: string
  language: string
  category: string | null
  status: string
  components: readonly unknown[]
  submitted_by: string | null
}

/**
 * Inserts a template that is about to be submitted, replacing one that the provider deleted. Waits for
 * concurrent inserts of this name. Returns the id; undefined when the account has a template of this name and
 * language.
 */
export const insertPendingTemplate = async (
  tx: Db,
  workspaceId: string,
  template: PendingTemplate,
  now: string,
): Promise<string | undefined> => {
  const { account_id, account_name, name, language, category, status, components, submitted_by } = template
  await tx
    .deleteFrom('templates')
    .where('workspace_id', '=', workspaceId)
    .where('name', '=', name)
    .where('language', '=', language)
    .where('account_id', '=', account_id)
    .where('status', '=', 'DELETED')
    .execute()
  const { rows } = await sql<{ id: string }>`
    insert into templates (workspace_id, account_id, account_name, name, language, category, status,
      components, submitted_by, created_at, updated_at)
    select ${workspaceId}, ${account_id}, ${account_name}, ${name}, ${language}, ${category}, ${status},
      ${JSON.stringify(components)}::jsonb, ${submitted_by}::bigint, ${now}::timestamptz,
      ${now}::timestamptz
    where not exists (
      select 1 from templates where workspace_id = ${workspaceId} and name = ${name}
        and language = ${language} and account_id is null)
    on conflict do nothing returning id`.execute(tx)
  return rows[0]?.id
}

/** A template that the provider has and this service does not know yet. */
export type ReadTemplate = Omit<PendingTemplate, 'submitted_by'> &
  Pick<TemplateDetails, 'provider_id' | 'rejection_reason' | 'quality_rating' | 'archived_at'>

/** Inserts templates, but for those whose account has one of the name and language. Returns the new ones. */
export const insertReadTemplates = async (
  tx: Db,
  workspaceId: string,
  templates: readonly ReadTemplate[],
  now: string,
): Promise<Pick<TemplateDetails, 'id' | 'name' | 'language' | 'status'>[]> => {
  if (templates.length === 0) return []
  const { rows } = await sql<Pick<TemplateDetails, 'id' | 'name' | 'language' | 'status'>>`
    insert into templates (workspace_id, account_id, account_name, provider_id, name, language, category, status,
      rejection_reason, quality_rating, components, archived_at, created_at, updated_at)
    select ${workspaceId}, t.*, ${now}::timestamptz, ${now}::timestamptz
    from jsonb_to_recordset(${JSON.stringify(templates)}::jsonb) as t (account_id text, account_name text,
      provider_id text, name text, language text, category text, status text, rejection_reason text,
      quality_rating text, components jsonb, archived_at timestamptz)
    on conflict do nothing returning id, name, language, status`.execute(tx)
  return rows
}

/** Deletes a template, such as one that the provider refused. */
export const deleteTemplateRow = async (tx: Db, workspaceId: string, id: string): Promise<void> => {
  await tx.deleteFrom('templates').where('workspace_id', '=', workspaceId).where('id', '=', id).execute()
}

export type TemplateChange = Partial<
  Pick<
    TemplateDetails,
    'provider_id' | 'status' | 'category' | 'rejection_reason' | 'quality_rating' | 'archived_at'
  >
> & { components?: readonly unknown[]; meta_errors?: unknown }

/** Updates the given columns of a locked template. */
export const updateTemplateRow = async (
  tx: Db,
  workspaceId: string,
  id: string,
  { components, meta_errors: errors, ...change }: TemplateChange,
  now: string,
): Promise<void> => {
  await tx
    .updateTable('templates')
    .set({
      ...change,
      updated_at: now,
      ...(components === undefined ? {} : { components: sql`${JSON.stringify(components)}::jsonb` }),
      ...(errors === undefined
        ? {}
        : { meta_errors: errors === null ? null : sql`${JSON.stringify(errors)}::jsonb` }),
    })
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .execute()
}

/** A channel with its account at the provider. */
export type AccountChannel = {
  id: string
  type: string
  status: string
  account_id: string | null
  account_name: string | null
}

export const listAccountChannels = async (tx: Db, workspaceId: string): Promise<AccountChannel[]> =>
  tx
    .selectFrom('channels')
    .select(['id', 'type', 'status', 'account_id', 'account_name'])
    .where('workspace_id', '=', workspaceId)
    .orderBy('is_default', 'desc')
    .orderBy('id')
    .execute()

/** What is read of templates at the provider, as runs: the subject is the account, or account and name. */
export const TEMPLATE_READS = 'template_reads'

/** Has the templates of this name, or all, read from the account at the provider, for each workspace that uses it. */
export const insertTemplateReads = async (
  tx: Db,
  accountId: string,
  name: string | null,
  seconds: number,
): Promise<void> => {
  await sql`
    insert into runs (workspace_id, kind, subject, run_after)
    select distinct workspace_id, ${TEMPLATE_READS}, ${name === null ? accountId : `${accountId} ${name}`},
      clock_timestamp() + ${seconds}::float8 * interval '1 second'
    from channels where account_id = ${accountId} and type = 'chatapp'
    on conflict (workspace_id, kind, subject) do update set run_after = excluded.run_after, lease = null`.execute(
    tx,
  )
}

/** The template that a channel was refused, locked. */
export const lockRefusedTemplate = async (
  tx: Db,
  workspaceId: string,
  { phoneNumberId, name, language }: { phoneNumberId: string; name: string; language: string },
): Promise<TemplateDetails | undefined> => {
  const { rows } = await sql<{ id: string }>`
    select t.id from templates t join channels c on c.workspace_id = t.workspace_id
    where t.workspace_id = ${workspaceId} and c.provider_phone_number_id = ${phoneNumberId}
      and t.name = ${name} and t.language = ${language} and coalesce(t.account_id, c.account_id) = c.account_id
    order by (t.account_id is null), t.id limit 1`.execute(tx)
  return rows[0] && (await lockTemplate(tx, workspaceId, rows[0].id))
}
