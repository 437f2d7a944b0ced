import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { sql } from 'kysely'
import type { Db } from '../../storage/database.ts'
import { insertEvents, scanEvents } from '../../storage/events/events.ts'
import { doAs } from '../calls.ts'
import { databases } from '../databases.ts'
import { plantConversation } from '../inbox/conversations.ts'
import { runs } from '../level.ts'
import { makeWorkspace, startSharedServers, type TestKey, type TestServer } from '../servers.ts'
import { groupEvent, type ShownEvent } from './event-fixture.ts'

type Call = [operation: string, input: Record<string, unknown>]
/** Two changes of one record, each of which undoes the other. `shows`: what an event says of which one it was. */
type Toggle = { calls: [Call, Call]; types: string[]; shows: (event: ShownEvent) => unknown }
type Ids = Record<'contact' | 'other' | 'phone' | 'group' | 'tag' | 'conversation' | 'staff', string>

type EventsPage = { data: ShownEvent[]; next_cursor: string | null }

const byType = ({ type }: ShownEvent): string => type

/** Each by its name. Changes of many labels, many contacts or new names take other paths than those of one. */
const toggles: Record<string, (ids: Ids) => Toggle> = {
  'tag of a contact': ({ contact }) => ({
    calls: [
      ['crm_tag_contacts', { contact_ids: [contact], tags: ['VIP'] }],
      ['crm_untag_contacts', { contact_ids: [contact], tags: ['VIP'] }],
    ],
    types: ['contact.tags_added', 'contact.tags_removed'],
    shows: byType,
  }),
  'tags of contacts': ({ contact, other }) => ({
    calls: [
      ['crm_tag_contacts', { contact_ids: [contact, other], tags: ['VIP'] }],
      ['crm_untag_contacts', { contact_ids: [other, contact], tags: ['VIP'] }],
    ],
    types: ['contact.tags_added', 'contact.tags_removed'],
    shows: byType,
  }),
  'group of a contact': ({ contact, group }) => ({
    calls: [
      ['crm_add_contacts_to_group', { contact_ids: [contact], group_id: group }],
      ['crm_remove_contacts_from_group', { contact_ids: [contact], group_id: group }],
    ],
    types: ['contact.groups_added', 'contact.groups_removed'],
    shows: byType,
  }),
  'name of a contact': ({ contact, phone }) => ({
    calls: [
      ['crm_update_contact', { contact_id: contact, name: 'Ada' }],
      ['crm_upsert_contact', { phone, name: 'Grace', tags: ['Press'] }],
    ],
    types: ['contact.updated'],
    shows: ({ data }) => data['contact']!['name'],
  }),
  'state of a conversation': ({ conversation }) => ({
    calls: [
      ['inbox_close_conversation', { conversation_id: conversation }],
      ['inbox_reopen_conversation', { conversation_id: conversation }],
    ],
    types: ['conversation.closed', 'conversation.reopened'],
    shows: byType,
  }),
  'assignee of a conversation': ({ conversation, staff }) => ({
    calls: [
      ['inbox_assign_conversation', { conversation_id: conversation, staff_id: staff }],
      ['inbox_unassign_conversation', { conversation_id: conversation }],
    ],
    types: ['conversation.assigned', 'conversation.unassigned'],
    shows: byType,
  }),
  'name of a tag': ({ tag }) => ({
    calls: [
      ['crm_rename_tag', { tag_id: tag, name: 'Gold' }],
      ['crm_rename_tag', { tag_id: tag, name: 'Silver' }],
    ],
    types: ['tag.renamed'],
    shows: ({ data }) => data['tag']!['name'],
  }),
}

const makeIds = async (server: TestServer, workspaceId: string, { key, staffId }: TestKey): Promise<Ids> => {
  const run = doAs(server, key)
  const phone = '+15550100081'
  const contact = (await run('crm_upsert_contact', { phone, tags: ['VIP', 'Press'] })).id
  const other = (await run('crm_upsert_contact', { phone: '+15550100082', tags: ['VIP'] })).id
  const { group } = await run('crm_create_group', { name: 'Regulars' })
  const { data: tags } = await run('crm_list_tags', { search: 'Press' })
  const conversation = (await plantConversation(server, workspaceId, { contactId: contact })).id
  return { contact, other, phone, group: group.id, tag: tags[0].id, conversation, staff: staffId }
}

const CALLERS = 12
const rounds = runs(20, 200)

describe('Events of one record', { skip: databases.length === 1 }, () => {
  let shared: Awaited<ReturnType<typeof startSharedServers>>
  before(async () => {
    shared = await startSharedServers(2)
  })
  after(async () => {
    await shared.close()
  })

  for (const [name, toToggle] of Object.entries(toggles)) {
    it(`are listed in the order of its changes, however many change it at once: ${name}`, async () => {
      const { servers } = shared
      const workspace = await makeWorkspace(servers[0]!)
      const { key } = workspace.owner
      const { calls, types, shows } = toToggle(await makeIds(servers[0]!, workspace.id, workspace.owner))
      const run = doAs(servers[0]!, key)
      const { next_cursor: begin }: EventsPage = await run('events_list', { after: 'now' })
      const change = async (caller: number): Promise<void> => {
        const runOn = doAs(servers[caller % 2]!, key)
        for (let n = 0; n < rounds;)
          try {
            await runOn(...calls[(caller + (n >> 1)) % 2 === 0 ? 0 : 1])
            n++
          } catch (error) {
            // On a busy machine it may wait longer for the others than a change waits, and is then asked to come again.
            if (!String(error).includes('"code":"timeout"')) throw error
          }
      }
      await Promise.all(Array.from({ length: CALLERS }, (_, caller) => change(caller)))
      const shown: unknown[] = []
      for (let after: string | null = begin; after !== null;) {
        const page: EventsPage = await run('events_list', { types, limit: 100, after })
        shown.push(...page.data.map(shows))
        after = page.next_cursor
      }
      assert.ok(shown.length > CALLERS, `${shown.length} changes: too few to prove anything`)
      // A change that changes nothing has no event, so two of one kind never follow each other.
      const repeated = shown.flatMap((value, at) => (value === shown[at - 1] ? [at] : []))
      assert.deepEqual(repeated, [], `of ${shown.length} events`)
    })
  }

  it('are listed in the order of the statements that wrote them, whichever transaction began first', async () => {
    const [{ db }, other] = shared.servers as [TestServer, TestServer]
    const workspace = await makeWorkspace(shared.servers[0]!)
    const begin = async (on: Db) => {
      const tx = await on.startTransaction().execute()
      await sql`select pg_current_xact_id()`.execute(tx)
      return tx
    }
    const transactions = [await begin(db), await begin(other.db), await begin(db), await begin(other.db)]
    const names = ['first', 'second', 'third', 'fourth']
    // The youngest transaction changes the record first, the oldest last.
    for (const [at, tx] of transactions.toReversed().entries()) {
      await insertEvents(tx, workspace.id, [groupEvent(names[at]!)])
      await tx.commit().execute()
    }
    const { events } = await scanEvents(db, workspace.id, undefined, {}, 10)
    assert.deepEqual(
      events.map(({ data }) => (data as { group: { name: string } }).group.name),
      names,
    )
  })
})
