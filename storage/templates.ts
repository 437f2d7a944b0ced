import { sql } from 'kysely'
import type { Db } from './database.ts'
import { toStorableId } from './ids.ts'

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
 * The template of this name and language that a channel of this account can send: the account's own, else
 * one of no account.
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

export type NewTemplate = {
  account_id: string | null
  account_name?: string | null
  provider_id?: string | null
  name: string
  language: string
  category: string | null
  sub_category?: string | null
  status: string
  rejection_reason?: string | null
  components: readonly unknown[]
  submitted_by?: string | null
}

/** Breaks the unique key when the account has a template of this name and language. Answers its id. */
export const insertTemplate = async (
  tx: Db,
  workspaceId: string,
  template: NewTemplate,
  now: string,
): Promise<string> => {
  const { components, ...columns } = template
  const { id } = await tx
    .insertInto('templates')
    .values({
      account_name: null,
      provider_id: null,
      sub_category: null,
      rejection_reason: null,
      submitted_by: null,
      meta_errors: null,
      archived_at: null,
      ...columns,
      workspace_id: workspaceId,
      components: sql`${JSON.stringify(components)}::jsonb`,
      created_at: now,
      updated_at: now,
    })
    .returning('id')
    .executeTakeFirstOrThrow()
  return id
}

/** A template with all that is shown of it. */
export type TemplateDetails = TemplateRow & {
  account_name: string | null
  sub_category: string | null
  rejection_reason: string | null
  meta_errors: unknown
  archived_at: string | null
  created_at: string
  updated_at: string
}

const columns = sql.raw(
  'id, account_id, account_name, provider_id, name, language, category, sub_category, status, rejection_reason, components, meta_errors, archived_at, created_at, updated_at',
)

export const loadTemplate = async (
  tx: Db,
  workspaceId: string,
  id: string,
): Promise<TemplateDetails | undefined> =>
  (
    await sql<TemplateDetails>`select ${columns} from templates where workspace_id = ${workspaceId} and id = ${toStorableId(id)}::bigint`.execute(
      tx,
    )
  ).rows[0]

export const lockTemplate = async (
  tx: Db,
  workspaceId: string,
  id: string,
): Promise<TemplateDetails | undefined> =>
  (
    await sql<TemplateDetails>`select ${columns} from templates where workspace_id = ${workspaceId} and id = ${toStorableId(id)}::bigint for update`.execute(
      tx,
    )
  ).rows[0]

/** Those of these ids that there are, locked in the order in which the provider's updates lock them too. */
export const lockTemplatesByIds = async (
  tx: Db,
  workspaceId: string,
  ids: readonly string[],
): Promise<TemplateDetails[]> =>
  (
    await sql<TemplateDetails>`
    select ${columns} from templates where workspace_id = ${workspaceId} and id = any(${ids.map(toStorableId)}::bigint[]) order by id for update`.execute(
      tx,
    )
  ).rows

/** `status`, `category` and `language` ignore case; `ids`: only these. */
export type TemplateFilter = {
  status?: string | undefined
  category?: string | undefined
  language?: string | undefined
  ids?: readonly string[] | undefined
}

const matching = (workspaceId: string, { status, category, language, ids }: TemplateFilter) => {
  const is = (column: string, value: string | undefined) =>
    value === undefined ? sql`` : sql`and lower(${sql.ref(column)}) = ${value.toLowerCase()}`
  return sql`workspace_id = ${workspaceId} ${is('status', status)} ${is('category', category)} ${is('language', language)} ${ids === undefined ? sql`` : sql`and id = any(${ids}::bigint[])`}`
}

/** Templates by name, then id. */
export const listTemplateRows = async (
  tx: Db,
  workspaceId: string,
  filter: TemplateFilter,
  after: { name: string; id: string } | null,
  limit: number,
): Promise<TemplateDetails[]> =>
  (
    await sql<TemplateDetails>`
    select ${columns} from templates where ${matching(workspaceId, filter)} ${after === null ? sql`` : sql`and (name, id) > (${after.name}, ${after.id}::bigint)`}
    order by name, id limit ${limit}`.execute(tx)
  ).rows

export const countTemplates = async (tx: Db, workspaceId: string, filter: TemplateFilter): Promise<number> =>
  Number(
    (
      await sql<{
        n: string
      }>`select count(*) as n from templates where ${matching(workspaceId, filter)}`.execute(tx)
    ).rows[0]!.n,
  )

/**
 * What a search looks into. An account holds at most 6,000 templates, so they are read whole and folded
 * outside of SQL.
 */
export const listTemplateTexts = async (
  tx: Db,
  workspaceId: string,
  filter: TemplateFilter,
): Promise<{ id: string; name: string; body: string | null }[]> =>
  (
    await sql<{ id: string; name: string; body: string | null }>`
    select id, name, jsonb_path_query_first(components, '$[*] ? (@.type like_regex "^body$" flag "i").text') #>> '{}' as body
    from templates where ${matching(workspaceId, filter)}`.execute(tx)
  ).rows

/** Makes concurrent submissions of a workspace wait for each other, so that none exceeds the plan. */
export const lockTemplateLimit = async (tx: Db, workspaceId: string): Promise<void> => {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`template_limit ${workspaceId}`}, 0))`.execute(tx)
}

/** Templates that count against the plan: all but those archived and those the provider deleted. */
export const countTemplatesInPlan = async (tx: Db, workspaceId: string): Promise<number> =>
  Number(
    (
      await sql<{
        n: string
      }>`select count(*) as n from templates where workspace_id = ${workspaceId} and status not in ('ARCHIVED', 'DELETED')`.execute(
        tx,
      )
    ).rows[0]!.n,
  )

/**
 * Writes a template that is about to be submitted, in place of one that the provider deleted. Waits for
 * others who write this name; undefined when the account has a template of this name and language.
 */
export const insertPendingTemplate = async (
  tx: Db,
  workspaceId: string,
  template: Required<Pick<NewTemplate, 'account_name' | 'submitted_by'>> &
    NewTemplate & { account_id: string },
  now: string,
): Promise<string | undefined> => {
  const { account_id, account_name, name, language, category, status, components, submitted_by } = template
  await sql`
    delete from templates where workspace_id = ${workspaceId} and name = ${name} and language = ${language} and account_id = ${account_id} and status = 'DELETED'`.execute(
    tx,
  )
  const { rows } = await sql<{ id: string }>`
    insert into templates (workspace_id, account_id, account_name, name, language, category, status, components, submitted_by, created_at, updated_at)
    select ${workspaceId}, ${account_id}, ${account_name}, ${name}, ${language}, ${category}, ${status}, ${JSON.stringify(components)}::jsonb, ${submitted_by}::bigint, ${now}::timestamptz, ${now}::timestamptz
    where not exists (select 1 from templates where workspace_id = ${workspaceId} and name = ${name} and language = ${language} and account_id is null)
    on conflict do nothing returning id`.execute(tx)
  return rows[0]?.id
}

/** Takes back a template that the provider refused. */
export const deleteTemplateRow = async (tx: Db, workspaceId: string, id: string): Promise<void> => {
  await sql`delete from templates where workspace_id = ${workspaceId} and id = ${id}::bigint`.execute(tx)
}

export type TemplateChange = Partial<
  Pick<TemplateDetails, 'provider_id' | 'status' | 'category' | 'rejection_reason' | 'archived_at'>
> & { components?: readonly unknown[]; meta_errors?: unknown }

/** Writes what is given of a locked template. */
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

/** A channel as it speaks for an account of the provider's. */
export type AccountChannel = {
  id: string
  type: string
  status: string
  account_id: string | null
  account_name: string | null
}

export const listAccountChannels = async (tx: Db, workspaceId: string): Promise<AccountChannel[]> =>
  (
    await sql<AccountChannel>`select id, type, status, account_id, account_name from channels where workspace_id = ${workspaceId} order by is_default desc, id`.execute(
      tx,
    )
  ).rows
