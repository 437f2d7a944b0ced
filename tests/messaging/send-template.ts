import { insertTemplate, type NewTemplate } from '../templates/insert-template.ts'
import { callAs, doAs } from '../calls.ts'
import { makeWorkspace, type TestServer, type TestWorkspace } from '../servers.ts'
import { createSandboxDriver, generatePhone } from './fixtures.ts'

/** The values of the template that tests send unless they name another one. */
export const ORDER_UPDATE = { name: 'order_update', language: 'en_US', body: ['Ada', '17'] }
const ORDER_UPDATE_BODY = { type: 'BODY', text: 'Hello {{1}}, your order {{2}} is on its way.' }

/** Inserts templates into a workspace, and makes them known to the sandbox. */
export const insertSandboxTemplates = async (
  server: TestServer,
  workspace: TestWorkspace,
  ...templates: Partial<NewTemplate>[]
): Promise<void> => {
  for (const template of templates) {
    await insertTemplate(
      server.db,
      workspace.id,
      {
        account_id: `77${workspace.id}`,
        name: 'order_update',
        language: 'en_US',
        category: 'UTILITY',
        status: 'APPROVED',
        components: [ORDER_UPDATE_BODY],
        ...template,
      },
      server.app.now(),
    )
  }
  await server.sync(workspace.id)
}

/** Creates a workspace with these templates; `send` sends one to a phone number that has no contact. */
export const createTemplateScene = async (
  server: TestServer,
  templates: readonly Partial<NewTemplate>[] = [{}],
) => {
  const workspace = await makeWorkspace(server)
  await insertSandboxTemplates(server, workspace, ...templates)
  const phone = generatePhone()
  const call = callAs(server, workspace.owner.key)
  return {
    workspace,
    phone,
    call,
    run: doAs(server, workspace.owner.key),
    sandbox: createSandboxDriver(server, workspace),
    send: (input: object, options: object = {}) =>
      call(
        'messaging_send_template',
        { phone: `+${phone}`, template: ORDER_UPDATE, ...input },
        { confirm: 'send', ...options },
      ),
  }
}
