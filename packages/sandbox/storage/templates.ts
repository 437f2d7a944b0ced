import { sql } from 'kysely'
import type { Db, TableRow } from '../../../storage/database.ts'

/** `components`: as they were submitted. `seq`: a number that grows with each template. */
export type SandboxTemplate = TableRow<'sandbox_templates'>
export type NewSandboxTemplate = Pick<
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

/** Inserts those of which no other has the id, or the name in the language. Returns how many. */
export const insertSandboxTemplates = async (
  db: Db,
  templates: readonly NewSandboxTemplate[],
): Promise<number> => {
  // `json` keeps the components as they were submitted.
  const { rows } = await sql`
    insert into sandbox_templates
      (id, account_id, name, language, category, status, parameter_format, components, created_at, review_at)
    select * from json_to_recordset(${JSON.stringify(templates)}::json) as t (id text, account_id text, name text,
      language text, category text, status text, parameter_format text, components json, created_at timestamptz,
      review_at timestamptz)
    on conflict do nothing returning id`.execute(db)
  return rows.length
}

/** Returns those of the templates whose account, name and language no template has. */
export const listUnknownTemplates = async <
  T extends Pick<SandboxTemplate, 'account_id' | 'name' | 'language'>,
>(
  db: Db,
  templates: readonly T[],
): Promise<T[]> => {
  const { rows } = await sql<{ index: number }>`
    select (n - 1)::int as index
    from unnest(${templates.map((t) => t.account_id)}::text[], ${templates.map((t) => t.name)}::text[],
      ${templates.map((t) => t.language)}::text[]) with ordinality as t (account_id, name, language, n)
    where not exists (select from sandbox_templates s where s.account_id = t.account_id and s.name = t.name
      and s.language = t.language and s.deleted_at is null)
    order by n`.execute(db)
  return rows.map(({ index }) => templates[index]!)
}

const selectTemplates = (db: Db) =>
  db.selectFrom('sandbox_templates').selectAll().where('deleted_at', 'is', null)

export const findSandboxTemplate = (db: Db, id: string): Promise<SandboxTemplate | undefined> =>
  selectTemplates(db).where('id', '=', id).executeTakeFirst()

export const lockSandboxTemplate = (tx: Db, id: string): Promise<SandboxTemplate | undefined> =>
  selectTemplates(tx).where('id', '=', id).forUpdate().executeTakeFirst()

export const findSandboxTemplateByName = (
  db: Db,
  accountId: string,
  name: string,
  language: string,
): Promise<SandboxTemplate | undefined> =>
  selectTemplates(db)
    .where('account_id', '=', accountId)
    .where('name', '=', name)
    .where('language', '=', language)
    .executeTakeFirst()

/** True when a template of this name and language was deleted after `since`, which blocks the name. */
export const wasTemplateDeletedSince = async (
  db: Db,
  accountId: string,
  name: string,
  language: string,
  since: string,
): Promise<boolean> => {
  const row = await db
    .selectFrom('sandbox_templates')
    .select('id')
    .where('account_id', '=', accountId)
    .where('name', '=', name)
    .where('language', '=', language)
    .where('deleted_at', '>', since)
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}

export type SandboxTemplateQuery = {
  name?: string | undefined
  status?: readonly string[] | undefined
  category?: readonly string[] | undefined
  language?: readonly string[] | undefined
  after?: string | undefined
  before?: string | undefined
}

/** Lists templates, newest first; `after` and `before` are sequence numbers. */
export const listSandboxTemplates = async (
  db: Db,
  accountId: string | undefined,
  by: SandboxTemplateQuery,
  limit: number,
): Promise<SandboxTemplate[]> => {
  let query = selectTemplates(db).limit(limit)
  if (accountId !== undefined) query = query.where('account_id', '=', accountId)
  if (by.name !== undefined) query = query.where('name', '=', by.name)
  for (const column of ['status', 'category', 'language'] as const) {
    const values = by[column]
    if (values !== undefined) query = query.where(sql<boolean>`${sql.ref(column)} = any(${values}::text[])`)
  }
  if (by.after !== undefined) query = query.where('seq', '<', by.after)
  if (by.before === undefined) return query.orderBy('seq', 'desc').execute()
  const rows = await query.where('seq', '>', by.before).orderBy('seq').execute()
  return rows.reverse()
}

export type SandboxTemplateChange = Partial<
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

/** Updates a locked template; returns it after the change. */
export const updateSandboxTemplate = async (
  tx: Db,
  template: SandboxTemplate,
  change: SandboxTemplateChange,
): Promise<SandboxTemplate> => {
  const { components, ...columns } = change
  await tx
    .updateTable('sandbox_templates')
    .set({
      ...columns,
      components: sql`${JSON.stringify(components ?? template.components)}::json`,
    })
    .where('id', '=', template.id)
    .execute()
  return { ...template, ...change }
}

/** Compares on the clock of the template's account. */
const isDue = (now: string, archivedBefore: string) => {
  const offset = sql`coalesce((select max(n.clock_offset_ms) from sandbox_numbers n
    where n.account_id = sandbox_templates.account_id), 0) * interval '1 millisecond'`
  return sql<boolean>`(review_at is not null and review_at <= ${now}::timestamptz + ${offset}
    or archived_at is not null and archived_at <= ${archivedBefore}::timestamptz + ${offset})`
}

/**
 * Locks templates whose review is due, or which were archived before `archivedBefore`; skips those that
 * another server has locked.
 */
export const lockDueSandboxTemplates = (
  tx: Db,
  now: string,
  archivedBefore: string,
): Promise<SandboxTemplate[]> =>
  selectTemplates(tx)
    .where(isDue(now, archivedBefore))
    .orderBy('seq')
    .limit(100)
    .forUpdate()
    .skipLocked()
    .execute()

/** True when a template is due, so that most runs need no transaction. */
export const hasDueSandboxTemplates = async (db: Db, now: string, archivedBefore: string): Promise<boolean> =>
  (await selectTemplates(db).where(isDue(now, archivedBefore)).limit(1).executeTakeFirst()) !== undefined
