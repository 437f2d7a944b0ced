import { sql } from 'kysely'
import { createChannel } from '../../storage/workspace/admin.ts'
import { callAs, doAs } from '../calls.ts'
import { createSandboxDriver } from './fixtures.ts'
import { makeWorkspace, type TestServer, type TestWorkspace } from '../servers.ts'

export const CREATE_SHORT_LINK = 'messaging_create_short_link'
let keyCount = 0
/** Returns an idempotency key that no other test uses. */
export const createIdempotencyKey = (): string => `short-link-${process.pid}-${++keyCount}`
export const withIdempotencyKey = () => ({ idempotencyKey: createIdempotencyKey() })

type ProviderLinkRow = { code: string; prefilled_message: string; deep_link_url: string }

/** Returns the links of the workspace's numbers at the provider, newest first. */
export const listProviderLinks = async (
  server: Pick<TestServer, 'url'>,
  { owner }: Pick<TestWorkspace, 'owner'>,
): Promise<ProviderLinkRow[]> => {
  const response = await fetch(`${server.url}/sandbox/links`, {
    headers: { Authorization: `Bearer ${owner.key}` },
  })
  return ((await response.json()) as { data: ProviderLinkRow[] }).data
}

export const listShortLinkEvents = async ({ db }: Pick<TestServer, 'db'>, workspaceId: string) => [
  ...(await db
    .selectFrom('events')
    .select(['type', 'data'])
    .where('workspace_id', '=', workspaceId)
    .where('type', 'like', 'short_link.%')
    .orderBy('id')
    .execute()),
]

export const createSecondChannel = async (
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
export const loadDefaultChannelId = async ({ db }: TestServer, workspaceId: string): Promise<string> =>
  (
    await db
      .selectFrom('channels')
      .select('id')
      .where('workspace_id', '=', workspaceId)
      .where('is_default', '=', true)
      .executeTakeFirstOrThrow()
  ).id

/** Creates a workspace for tests of short links; `createLink` uses the same idempotency key by default. */
export const createLinkScene = async (server: TestServer) => {
  const workspace = await makeWorkspace(server)
  const call = callAs(server, workspace.owner.key)
  const key = createIdempotencyKey()
  return {
    workspace,
    call,
    run: doAs(server, workspace.owner.key),
    fault: (fault: object) => createSandboxDriver(server, workspace).fault({ on: 'links', ...fault }),
    createLink: (input: object = {}, idempotencyKey = key) =>
      call(CREATE_SHORT_LINK, { message: 'Hi', ...input }, { idempotencyKey }),
    deleteLink: (id: string, idempotencyKey: string) =>
      call('messaging_delete_short_link', { short_link_id: id }, { confirm: 'delete', idempotencyKey }),
    listAtProvider: () => listProviderLinks(server, workspace),
    listEvents: async () => (await listShortLinkEvents(server, workspace.id)).map(({ type }) => type),
    /** Sets the time of the last provider call to this many seconds ago. */
    backdateCall: (seconds: number) =>
      sql`
        update short_links set called_at = clock_timestamp() - ${seconds} * interval '1 second'
        where workspace_id = ${workspace.id} and url is null`.execute(server.db),
  }
}
