import assert from 'node:assert/strict'
import { it } from 'node:test'
import { catalog } from '../../catalog/index.ts'
import { countLabelled } from '../../storage/contacts/matches.ts'
import { doAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { plantConversation } from '../inbox/conversations.ts'
import { makeWorkspace, type TestServer, type TestWorkspace } from '../servers.ts'
import { recordTexts } from '../statements.ts'

type Records = { contact_ids: string[]; conversation_ids: string[]; group: string; staff: string }

/** The input of each operation that changes many records, without which. Undefined: it must not be measured. */
const inputs: Record<string, ((records: Records) => Record<string, unknown>) | undefined> = {
  crm_tag_contacts: () => ({ tags: ['VIP'] }),
  crm_untag_contacts: () => ({ tags: ['VIP'] }),
  crm_add_contacts_to_group: ({ group }) => ({ group_id: group }),
  crm_remove_contacts_from_group: ({ group }) => ({ group_id: group }),
  crm_update_contacts: () => ({ attributes: { plan: 'pro' }, dnd: false, starred: true }),
  crm_delete_contacts: () => ({}),
  inbox_assign_conversations: ({ staff }) => ({ staff_id: staff }),
  inbox_close_conversations: () => ({ reason: 'Done' }),
  // It begins a job, which sends to one person after the other.
  messaging_send_bulk: undefined,
  // It begins a job, which writes a file.
  crm_export_contacts: undefined,
}

const recordsOf = (shape: Record<string, unknown>): 'contact_ids' | 'conversation_ids' | undefined =>
  (['contact_ids', 'conversation_ids'] as const).find((field) => Object.hasOwn(shape, field))

const makeRecords = async (server: TestServer, workspace: TestWorkspace, count: number): Promise<Records> => {
  const run = doAs(server, workspace.owner.key)
  await run('crm_create_custom_field', { key: 'plan', type: 'text' })
  const { group } = await run('crm_create_group', { name: 'Regulars' })
  const rows = Array.from({ length: count }, (_, n) => ({
    phone: `+1555010${1000 + n}`,
    attributes: { plan: 'basic' },
    dnd: true,
  }))
  await run('crm_import_contacts', { rows })
  const { data } = await run('crm_search_contacts', { limit: 100 })
  const contacts: string[] = data.map(({ id }: { id: string }) => id)
  const conversations: string[] = []
  for (const contactId of contacts)
    conversations.push((await plantConversation(server, workspace.id, { contactId })).id)
  return {
    contact_ids: contacts,
    conversation_ids: conversations,
    group: group.id,
    staff: workspace.owner.staffId,
  }
}

everyDatabase('Changes of many records', (server) => {
  for (const { name, input } of catalog) {
    const field = recordsOf(input.shape)
    if (field === undefined || (Object.hasOwn(inputs, name) && inputs[name] === undefined)) continue
    it(`send no statement for each record: ${name}`, async () => {
      const counts: number[] = []
      for (const size of [3, 24]) {
        const workspace = await makeWorkspace(server())
        const records = await makeRecords(server(), workspace, size)
        const run = doAs(server(), workspace.owner.key)
        const given = { ...inputs[name]!(records), [field]: records[field] }
        // So that there is something to take away.
        if (name === 'crm_untag_contacts') await run('crm_tag_contacts', given)
        if (name === 'crm_remove_contacts_from_group') await run('crm_add_contacts_to_group', given)
        const texts = await recordTexts(async () => {
          const { succeeded, job } = await run(name, given)
          assert.deepEqual([succeeded, job], [size, undefined])
        })
        counts.push(texts.length)
      }
      // A job of the server may send one meanwhile. One for each record would be 21 more.
      assert.ok(counts[1]! < counts[0]! + 10, `${counts[0]} and ${counts[1]} statements`)
    })
  }

  it('count what a dry run would change in statements of a bounded size', async () => {
    const workspace = await makeWorkspace(server())
    const { contact_ids: ids } = await makeRecords(server(), workspace, 3)
    const run = doAs(server(), workspace.owner.key)
    await run('crm_tag_contacts', { contact_ids: ids, tags: ['VIP'] })
    const { data } = await run('crm_list_tags')
    const batches = Array.from({ length: 90 }, (_, n) => (n % 40 === 0 ? `{${ids[n / 40]}}` : '{0}'))
    const request = { labelIds: [data[0].id], batches, atLeast: 1 }
    const texts = await recordTexts(
      async () => assert.equal(await countLabelled(server().db, workspace.id, 'tag', request), ids.length),
      (text) => text.includes('select l.contact_id from matches'),
    )
    assert.equal(texts.length, 3)
  })
})
