import { callAs, doAs } from '../calls.ts'
import { makeWorkspace, type TestServer, type TestWorkspace } from '../servers.ts'
import { createSandboxDriver, generatePhone } from './fixtures.ts'

/** Creates a workspace with one conversation, whose window is open; `reply` sends a reply in it. */
export const createReplyScene = async (server: TestServer, given?: TestWorkspace) => {
  const workspace = given ?? (await makeWorkspace(server))
  const phone = generatePhone()
  const call = callAs(server, workspace.owner.key)
  const run = doAs(server, workspace.owner.key)
  const sandbox = createSandboxDriver(server, workspace)
  await sandbox.say({ from: `+${phone}`, name: 'Ada', text: 'Hello' })
  const { id, contact, channel } = (await run('inbox_search_conversations')).data[0]
  return {
    workspace,
    phone,
    id: id as string,
    contactId: contact.id as string,
    channelId: channel.id as string,
    call,
    run,
    sandbox,
    reply: (input: object, options: object = {}) =>
      call('messaging_send_reply', { conversation_id: id, ...input }, { confirm: 'send', ...options }),
  }
}
