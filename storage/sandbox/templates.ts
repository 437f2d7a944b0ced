import { sql } from 'kysely'
import type { Db } from '../database.ts'

export type SandboxTemplate = {
  id: string
  seq: string
  account_id: string
  name: string
  language: string
  category: string
  previous_category: string | null
  status: string
  kept_status: string | null
  parameter_format: string
  components: Record<string, unknown>[]
  rejected_reason: string
  created_at: string
  review_at: string | null
  archived_at: string | null
  deleted_at: string | null
}
export type NewTemplate = Pick<
  SandboxTemplate,
  | 'id'
  | 'account_id'
  | 'name'
  | 'language'
  | 'category'
  | 'status'
  | 'parameter_format'
  | 'components'
  | 'created_at'
  | 'review_at'
>

/** Writes a template; false when its id, or its name in this language, is taken. */
export const insertSandboxTemplate = async (db: Db, t: NewTemplate): Promise<boolean> =>
  (
    await sql`
    insert into sandbox_templates (id, account_id, name, language, category, status, parameter_format, components, created_at, review_at)
    values (${t.id}, ${t.account_id}, ${t.name}, ${t.language}, ${t.category}, ${t.status}, ${t.parameter_format}, ${JSON.stringify(t.components)}::json, ${t.created_at}::timestamptz, ${t.review_at}::timestamptz)
    on conflict do nothing returning 1`.execute(db)
  ).rows.length > 0

export const findSandboxTemplate = async (db: Db, id: string): Promise<SandboxTemplate | undefined> =>
  (
    await sql<SandboxTemplate>`select * from sandbox_templates where id = ${id} and deleted_at is null`.execute(
      db,
    )
  ).rows[0]

export const lockSandboxTemplate = async (tx: Db, id: string): Promise<SandboxTemplate | undefined> =>
  (
    await sql<SandboxTemplate>`select * from sandbox_templates where id = ${id} and deleted_at is null for update`.execute(
      tx,
    )
  ).rows[0]

/** The languages of a template name, for a send. */
export const templateByName = async (
  db: Db,
  accountId: string,
  name: string,
  language: string,
): Promise<SandboxTemplate | undefined> =>
  (
    await sql<SandboxTemplate>`
    select * from sandbox_templates where account_id = ${accountId} and name = ${name} and language = ${language} and deleted_at is null`.execute(
      db,
    )
  ).rows[0]

/** Whether a name in a language was deleted since `since`, so that it cannot be taken yet. */
export const wasDeletedSince = async (
  db: Db,
  accountId: string,
  name: string,
  language: string,
  since: string,
): Promise<boolean> =>
  (
    await sql`
    select 1 from sandbox_templates where account_id = ${accountId} and name = ${name} and language = ${language} and deleted_at > ${since}::timestamptz limit 1`.execute(
      db,
    )
  ).rows.length > 0

export type TemplateQuery = {
  name?: string | undefined
  status?: readonly string[] | undefined
  category?: readonly string[] | undefined
  language?: readonly string[] | undefined
  after?: string | undefined
  before?: string | undefined
}

/** Newest first; `after` and `before` are sequence numbers. */
export const listSandboxTemplates = async (
  db: Db,
  accountId: string | undefined,
  by: TemplateQuery,
  limit: number,
): Promise<SandboxTemplate[]> => {
  const among = (column: string, values: readonly string[] | undefined) =>
    values === undefined ? sql`` : sql`and ${sql.ref(column)} = any(${values}::text[])`
  const { rows } = await sql<SandboxTemplate>`
    select * from sandbox_templates where deleted_at is null
      ${accountId === undefined ? sql`` : sql`and account_id = ${accountId}`}
      ${by.name === undefined ? sql`` : sql`and name = ${by.name}`}
      ${among('status', by.status)} ${among('category', by.category)} ${among('language', by.language)}
      ${by.after === undefined ? sql`` : sql`and seq < ${by.after}::bigint`}
      ${by.before === undefined ? sql`` : sql`and seq > ${by.before}::bigint`}
    order by seq ${by.before === undefined ? sql`desc` : sql`asc`} limit ${limit}`.execute(db)
  return by.before === undefined ? rows : [...rows].reverse()
}

export type TemplateChange = Partial<
  Pick<
    SandboxTemplate,
    | 'category'
    | 'previous_category'
    | 'status'
    | 'kept_status'
    | 'components'
    | 'rejected_reason'
    | 'review_at'
    | 'archived_at'
    | 'deleted_at'
  >
>

/** Writes a locked template as it is after a change. */
export const writeSandboxTemplate = async (
  tx: Db,
  template: SandboxTemplate,
  change: TemplateChange,
): Promise<SandboxTemplate> => {
  const t = { ...template, ...change }
  await sql`
    update sandbox_templates set category = ${t.category}, previous_category = ${t.previous_category}, status = ${t.status}, kept_status = ${t.kept_status},
      components = ${JSON.stringify(t.components)}::json, rejected_reason = ${t.rejected_reason}, review_at = ${t.review_at}::timestamptz,
      archived_at = ${t.archived_at}::timestamptz, deleted_at = ${t.deleted_at}::timestamptz
    where id = ${t.id}`.execute(tx)
  return t
}

/**
 * Locked templates whose review is due, or which were archived before `gone`; others that a server works on
 * are passed over.
 */
export const lockDueTemplates = async (tx: Db, now: string, gone: string): Promise<SandboxTemplate[]> =>
  (
    await sql<SandboxTemplate>`
    select * from sandbox_templates where (review_at <= ${now}::timestamptz or archived_at <= ${gone}::timestamptz) and deleted_at is null
    order by seq limit 100 for update skip locked`.execute(tx)
  ).rows

/** True when a template waits for the reviewer or for its end, so that most looks need no transaction. */
export const hasDueTemplates = async (db: Db, now: string, gone: string): Promise<boolean> =>
  (
    await sql`select 1 from sandbox_templates where (review_at <= ${now}::timestamptz or archived_at <= ${gone}::timestamptz) and deleted_at is null limit 1`.execute(
      db,
    )
  ).rows.length > 0
