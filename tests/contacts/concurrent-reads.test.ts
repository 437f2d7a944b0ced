import assert from 'node:assert/strict'
import { it } from 'node:test'
import { createChannel } from '../../storage/admin.ts'
import { readContact } from '../../storage/contact-reads.ts'
import type { TimelineScope } from '../../storage/contacts.ts'
import { statementChannel } from '../../storage/statement-channel.ts'
import { callAs, doAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { plantConversation } from '../inbox/conversations.ts'
import { makeWorkspace, type TestServer } from '../servers.ts'

/** Contacts with conversations in two channels, and the second of these. */
const makeContacts = async (server: TestServer) => {
  const workspace = await makeWorkspace(server)
  const run = doAs(server, workspace.owner.key)
  const other = { type: 'web', name: 'Web', status: 'connected' as const }
  const { id: channelId } = await createChannel(server.db, workspace.id, other, server.app.now())
  const ids: string[] = []
  for (let n = 0; n < 8; n++) {
    const { contactId } = await plantConversation(server, workspace.id, n % 2 === 0 ? {} : { channelId })
    await run('crm_tag_contacts', { contact_ids: [contactId], tags: [`T${n % 3}`] })
    ids.push(contactId)
  }
  return { workspace, channelId, ids }
}

/** Returns what `work` returns, and how many statements read contacts meanwhile. */
const countReads = async <T>(work: () => Promise<T>): Promise<{ result: T; statements: number }> => {
  let statements = 0
  const listener = {
    start: ({ text }: { text: string }): void => {
      if (/from contacts c left join contact_facts/.test(text)) statements++
    },
  }
  statementChannel.subscribe(listener as never)
  try {
    const result = await work()
    return { result, statements }
  } finally {
    statementChannel.unsubscribe(listener as never)
  }
}

everyDatabase('Contacts that are read at the same time', (server) => {
  it('are each what their reader sees alone', async () => {
    const { workspace, channelId, ids } = await makeContacts(server())
    const staff = [
      await workspace.staff({ channel_ids: [] }),
      await workspace.staff({ channel_ids: [channelId] }),
      await workspace.staff({ hide_phone_numbers: true }),
      (await makeWorkspace(server())).owner,
    ]
    const keys = [workspace.owner, ...staff].map(({ key }) => key)
    const reads = [...ids, ids[0]!, '999999999'].flatMap((id) => keys.map((key) => ({ id, key })))
    const read = async ({ id, key }: { id: string; key: string }) => {
      const { status, body } = await callAs(server(), key)('crm_get_contact', { contact_id: id })
      const { request_id: _, ...rest } = body
      return { status, rest }
    }
    const alone: unknown[] = []
    for (const one of reads) alone.push(await read(one))
    assert.deepEqual(await Promise.all(reads.map(read)), alone)
  })

  it('share statements with those that show the same conversations', async () => {
    const { workspace, channelId, ids } = await makeContacts(server())
    const scopes: TimelineScope[] = ['all', 'none', [], [channelId]]
    const reads = [...ids, ids[0]!, '999999999'].flatMap((id) => scopes.map((scope) => ({ id, scope })))
    const read = ({ id, scope }: { id: string; scope: TimelineScope }) =>
      readContact(server().db, workspace.id, id, scope)
    const alone: unknown[] = []
    for (const one of reads) alone.push(await read(one))
    const together = await countReads(() => Promise.all(reads.map(read)))
    assert.deepEqual(together.result, alone)
    // Two begin at once, and the others wait for them.
    assert.equal(together.statements, scopes.length * 3)
  })
})
