import { sql } from 'kysely'

/** The key that wrote a message, and who approved it. */
export type AuthorKey = {
  id: string
  name: string | null
  agent: boolean
  approved_by: string | null
  approver_name: string | null
}

/**
 * SQL for the key of a message `m`: an `AuthorKey`, null when no key wrote it. Looked up for each row that has
 * one, since a join would be made for all.
 */
export const authorKeyColumn = sql.raw(`
  case when m.key_id is not null then (
    select json_build_object('id', k.id::text, 'name', k.name, 'agent', k.agent,
      'approved_by', m.approved_by::text, 'approver_name', case when m.approved_by is not null then (
        select a.name from staff a where a.workspace_id = m.workspace_id and a.id = m.approved_by) end)
    from api_keys k where k.workspace_id = m.workspace_id and k.id = m.key_id) end`)
