import { sql } from 'kysely'
import type { Reply } from '../doors.ts'
import type { TestServer, TestWorkspace } from '../servers.ts'

/** The time of the test server. */
export const SAVED_FILTERS_NOW = '2026-10-01T09:30:00.000Z'
/** Options of the test server. */
export const serverOptions = { now: () => SAVED_FILTERS_NOW }
export const toPhone = (n: number) => `+1555010004${n}`
export const NAME_CONTAINS_ADA = { name: { contains: 'ada' } }

/** Returns the status, code and reason of a refusal. */
export const toRefusal = ({ status, body }: Reply) => [status, body.code, body.reason]
/** Lists the names of the fields that errors are about. */
export const listErrorFields = ({ body }: Reply): string[] =>
  body.errors.map((e: { pointer?: string; parameter?: string }) =>
    (e.pointer ?? e.parameter)!.split('/').at(-1),
  )

/**
 * Inserts a row that no operation creates: of another kind, without an owner, or with a filter that
 * today's rules refuse. Returns its id.
 */
export const insertSavedFilter = async (
  server: TestServer,
  workspace: TestWorkspace,
  row: { kind?: string; owner?: string | null; filter?: unknown; name?: string },
): Promise<string> => {
  const {
    kind = 'contact',
    owner = workspace.owner.staffId,
    filter = NAME_CONTAINS_ADA,
    name = 'Inserted',
  } = row
  const { rows } = await sql<{ id: string }>`
    insert into saved_filters (workspace_id, kind, name, name_key, owner_staff_id, filter,
      created_at, updated_at)
    values (${workspace.id}, ${kind}, ${name}, ${name.toLowerCase()}, ${owner},
      ${JSON.stringify(filter)}::jsonb, ${SAVED_FILTERS_NOW}, ${SAVED_FILTERS_NOW})
    returning id`.execute(server.db)
  return rows[0]!.id
}

/** Loads the saved filters of a workspace from the table. */
export const loadRows = async (server: TestServer, workspace: TestWorkspace): Promise<unknown[]> =>
  (
    await sql`
      select id, name, description, filter, updated_at from saved_filters
      where workspace_id = ${workspace.id} order by id`.execute(server.db)
  ).rows.map((row) => ({ ...(row as object) }))
