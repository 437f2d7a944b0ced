import { callAs, doAs } from '../calls.ts'
import { makeWorkspace, type TestServer } from '../servers.ts'

/** Returns the phone number with this number as its last seven digits. */
export const formatPhone = (n: number): string => `1555${String(n).padStart(7, '0')}`

export type ContactImportScene = Awaited<ReturnType<typeof createImportScene>>

/** Creates a workspace for import tests. */
export const createImportScene = async (
  server: TestServer,
  fields: Parameters<typeof makeWorkspace>[1] = {},
) => {
  const workspace = await makeWorkspace(server, fields)
  return {
    workspace,
    run: doAs(server, workspace.owner.key),
    call: callAs(server, workspace.owner.key),
  }
}

type ImportEvent = { type: string; data: Record<string, unknown> }

/** Returns the events of a workspace in the order in which they were emitted. */
export const listImportEvents = async (
  { db }: Pick<TestServer, 'db'>,
  workspaceId: string,
): Promise<ImportEvent[]> =>
  (await db
    .selectFrom('events')
    .select(['type', 'data'])
    .where('workspace_id', '=', workspaceId)
    .orderBy('xid')
    .orderBy('id')
    .execute()) as ImportEvent[]

/** Returns the action of each row, in the order of the rows. */
export const toActions = (body: { results: { action: string }[] }): string[] =>
  body.results.map((result) => result.action)
