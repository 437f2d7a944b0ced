import { createTeam, type StaffFields } from '../../storage/workspace/admin.ts'
import { callAs, doAs } from '../calls.ts'
import { makeWorkspace, type TestKey, type TestServer, type TestWorkspace } from '../servers.ts'

/** The business time of the tests of quick messages. */
export const QUICK_MESSAGES_NOW = '2026-10-01T09:30:00.000Z'
export const FILE_URL = 'https://files.example.com/menu.pdf'

/** Creates a team with these members, and returns its id. */
export const createTeamWithMembers = async (
  { db, app }: TestServer,
  workspaceId: string,
  name: string,
  members: readonly Pick<TestKey, 'staffId'>[] = [],
): Promise<string> => {
  const { id } = await createTeam(db, workspaceId, name, app.now())
  for (const { staffId } of members)
    await db
      .insertInto('team_members')
      .values({ workspace_id: workspaceId, team_id: id, staff_id: staffId })
      .execute()
  return id
}

/** Inserts a quick message, which may be one that no operation can create. Returns its id. */
export const insertQuickMessageRow = async (
  { db, app }: TestServer,
  workspaceId: string,
  {
    code = `q-${Math.random().toString(36).slice(2)}`,
    ...fields
  }: { code?: string; [column: string]: unknown },
): Promise<string> =>
  (
    await db
      .insertInto('quick_messages')
      .values({
        workspace_id: workspaceId,
        code,
        code_key: code.toLowerCase(),
        title: null,
        type: 'TEXT',
        description: null,
        text: null,
        media_url: null,
        file_name: null,
        template_name: null,
        visibility: 'company',
        team_id: null,
        owner_staff_id: null,
        created_at: app.now(),
        updated_at: app.now(),
        ...fields,
      })
      .returning('id')
      .executeTakeFirstOrThrow()
  ).id

export const selectQuickMessageRows = async (
  { db }: Pick<TestServer, 'db'>,
  { id }: Pick<TestWorkspace, 'id'>,
): Promise<object[]> => [
  ...(await db
    .selectFrom('quick_messages')
    .selectAll()
    .where('workspace_id', '=', id)
    .orderBy('id')
    .execute()),
]

/** Creates a workspace for tests of quick messages; `member` adds a staff member. */
export const createQuickMessageScene = async (server: TestServer) => {
  const workspace = await makeWorkspace(server)
  return {
    workspace,
    run: doAs(server, workspace.owner.key),
    call: callAs(server, workspace.owner.key),
    member: async (fields: Partial<StaffFields> = {}) => {
      const key = await workspace.staff(fields)
      return { ...key, call: callAs(server, key.key), run: doAs(server, key.key) }
    },
    listRows: () => selectQuickMessageRows(server, workspace),
  }
}
