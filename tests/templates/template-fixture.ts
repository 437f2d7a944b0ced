import { insertTemplate, type NewTemplate } from './insert-template.ts'
import { callAs, doAs } from '../calls.ts'
import { makeWorkspace, type TestServer, type TestWorkspace } from '../servers.ts'
import { createTemplateDriver, orderDraft } from './drafts.ts'
import { plantSamples } from './samples.ts'

export const submit = { confirm: 'submit' }
export const archive = { confirm: 'archive' }

const insertTestTemplate = async (
  server: TestServer,
  workspace: TestWorkspace,
  template: Partial<NewTemplate>,
): Promise<string> =>
  await insertTemplate(
    server.db,
    workspace.id,
    {
      account_id: `77${workspace.id}`,
      name: orderDraft.name,
      language: 'en_US',
      category: 'UTILITY',
      status: 'APPROVED',
      components: [{ type: 'BODY', text: 'Hello' }],
      ...template,
    },
    server.app.now(),
  )

/** Creates a workspace with helpers for templates. `fields` are fields of the workspace. */
export const createTemplateFixture = async (
  server: TestServer,
  fields: Parameters<typeof makeWorkspace>[1] = {},
) => {
  const workspace = await makeWorkspace(server, fields)
  await plantSamples(server.db)
  const call = callAs(server, workspace.owner.key)
  let calls = 0
  return {
    workspace,
    call,
    run: doAs(server, workspace.owner.key),
    sandbox: createTemplateDriver(server, workspace),
    /** Calls `messaging_create_template` with a new idempotency key. */
    create: (template: object, input: object = {}, options: object = {}) =>
      call(
        'messaging_create_template',
        { template, ...input },
        { ...submit, idempotencyKey: `create-${workspace.id}-${calls++}`, ...options },
      ),
    /** Inserts an approved template. The sandbox has it only after `server.sync`. Returns its id. */
    insert: (template: Partial<NewTemplate>) => insertTestTemplate(server, workspace, template),
    /** Returns the type and the template of every event about templates, oldest first. */
    events: async () =>
      (
        await server.db
          .selectFrom('events')
          .select(['type', 'data'])
          .where('workspace_id', '=', workspace.id)
          .where('type', 'like', 'template.%')
          .orderBy('id')
          .execute()
      ).map(({ type, data }) => ({
        type,
        ...(data as { template: { id: string; status: string } }).template,
      })),
  }
}
