import { doAs } from '../calls.ts'
import type { TestServer, TestWorkspace } from '../servers.ts'

export type AuditRow = {
  id: string
  at: string
  actor: { staff_id: string; name: string }
  key_id: string
  door: string
  client: string | null
  operation: string
  target: { type: string; id: string } | null
  outcome: string
  code: string | null
  dry_run: boolean
  confirmed: boolean
  request_id: string
  changes: {
    input: Record<string, unknown>
    before?: Record<string, unknown>
    after?: Record<string, unknown>
    result?: Record<string, unknown>
  } | null
}

/** Returns the audit trail as the owner of the workspace reads it, newest first. */
export const listAudit = async (
  server: Pick<TestServer, 'url'>,
  { owner }: Pick<TestWorkspace, 'owner'>,
  filter: Record<string, unknown> = {},
): Promise<AuditRow[]> =>
  (await doAs(server, owner.key)('audit_list', { limit: 100, ...filter })).data as AuditRow[]

/** Returns operation, outcome, code, dry run and confirmation of each row. */
export const summarize = (rows: readonly AuditRow[]) =>
  rows.map((r) => [r.operation, r.outcome, r.code, r.dry_run, r.confirmed])
