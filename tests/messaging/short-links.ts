import { sql } from 'kysely'
import { createChannel } from '../../storage/admin.ts'
import { callAs, doAs } from '../calls.ts'
import { sandboxOf } from './sends.ts'
import { makeWorkspace, type TestServer, type TestWorkspace } from '../servers.ts'

export const OP = 'messaging_create_short_link'
let keyCount = 0
export const freshKey = (): string => `short-link-${process.pid}-${++keyCount}`
export const keyed = () => ({ idempotencyKey: freshKey() })

/** Returns the links of the workspace's numbers at the provider, newest first. */
export const atProvider = async (
  server: Pick<TestServer, 'url'>,
  { owner }: Pick<TestWorkspace, 'owner'>,
): Promise<{ code: string; prefilled_message: string; deep_link_url: string }[]> => {
  const response = await fetch(`${server.url}/sandbox/links`, {
    headers: { Authorization: `Bearer ${owner.key}` },
  })
  return (
    (await response.json()) as { data: { code: string; prefilled_message: string; deep_link_url: string }[] }
  ).data
}

export const eventsOf = async ({ db }: Pick<TestServer, 'db'>, workspaceId: string) => [
  ...(await db
    .selectFrom('events')
    .select(['type', 'data'])
    .where('workspace_id', '=', workspaceId)
    .where('type', 'like', 'short_link.%')
    .orderBy('id')
    .execute()),
]

export const addNumber = async (
  server: TestServer,
  workspaceId: string,
  fields: Partial<Parameters<typeof createChannel>[2]> = {},
): Promise<string> => {
  const { id } = await createChannel(
    server.db,
    workspaceId,
    {
      type: 'chatapp',
      name: 'Second line',
      identifier: '15550100002',
      status: 'connected',
      provider_phone_number_id: `99${workspaceId}`,
      ...fields,
    },
    server.app.now(),
  )
  await server.sync(workspaceId)
  return id
}
export const mainLine = async ({ db }: TestServer, workspaceId: string): Promise<string> =>
  (
    await db
      .selectFrom('channels')
      .select('id')
      .where('workspace_id', '=', workspaceId)
      .where('is_default', '=', true)
      .executeTakeFirstOrThrow()
  ).id

/** A workspace on this server, and what its short links are tested with; all calls share one key. */
export const createLinkScene = async (server: TestServer) => {
  const workspace = await makeWorkspace(server)
  const call = callAs(server, workspace.owner.key)
  const key = freshKey()
  return {
    workspace,
    call,
    run: doAs(server, workspace.owner.key),
    fault: (fault: object) => sandboxOf(server, workspace).fault({ on: 'links', ...fault }),
    make: (more: object = {}, idempotencyKey = key) =>
      call(OP, { message: 'Hi', ...more }, { idempotencyKey }),
    remove: (id: string, idempotencyKey: string) =>
      call('messaging_delete_short_link', { short_link_id: id }, { confirm: 'delete', idempotencyKey }),
    provider: () => atProvider(server, workspace),
    events: async () => (await eventsOf(server, workspace.id)).map(({ type }) => type),
    /** Sets the time of the last provider call to this many seconds ago. */
    age: (seconds: number) =>
      sql`
          update short_links set called_at = clock_timestamp() - ${seconds} * interval '1 second'
          where workspace_id = ${workspace.id} and url is null`.execute(server.db),
  }
}
