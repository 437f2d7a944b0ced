import { sql } from 'kysely'
import type { Db } from './database.ts'

/** A template as a send needs it. `components` are in the provider's shape. */
export type TemplateRow = {
  id: string; account_id: string | null; provider_id: string | null; name: string; language: string; category: string | null; status: string; components: unknown
}

/** The template of this name and language that a channel of this account can send: the account's own, else one of no account. */
export const findTemplate = async (tx: Db, workspaceId: string, accountId: string | null, name: string, language: string): Promise<TemplateRow | undefined> =>
  (await sql<TemplateRow>`
    select id, account_id, provider_id, name, language, category, status, components from templates
    where workspace_id = ${workspaceId} and name = ${name} and language = ${language}
      and (account_id is null or ${accountId}::text is null or account_id = ${accountId}::text)
    order by (account_id is null), id limit 1`.execute(tx)).rows[0]

export type NewTemplate = {
  account_id: string | null; account_name?: string | null; provider_id?: string | null; name: string; language: string; category: string | null; sub_category?: string | null
  status: string; rejection_reason?: string | null; components: readonly unknown[]; submitted_by?: string | null
}

/** Breaks the unique key when the account has a template of this name and language. Answers its id. */
export const insertTemplate = async (tx: Db, workspaceId: string, template: NewTemplate, now: string): Promise<string> => {
  const { components, ...columns } = template
  const { id } = await tx.insertInto('templates').values({
    account_name: null, provider_id: null, sub_category: null, rejection_reason: null, submitted_by: null, meta_errors: null, archived_at: null, ...columns,
    workspace_id: workspaceId, components: sql`${JSON.stringify(components)}::jsonb`, created_at: now, updated_at: now,
  }).returning('id').executeTakeFirstOrThrow()
  return id
}
