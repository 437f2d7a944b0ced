import assert from 'node:assert/strict'
import { it } from 'node:test'
import { doAs } from '../calls.ts'
import { everyDatabase, everyDoor } from '../doors.ts'
import { makeWorkspace, type TestServer } from '../servers.ts'
import {
  type BroadcastFields,
  BROADCASTS_NOW,
  hoursLater,
  insertBroadcastRow,
  insertBroadcastContacts,
  insertRecipients,
  type RecipientFields,
} from './broadcasts.ts'
import { summarizeReply } from './fixtures.ts'

const clock = { now: () => BROADCASTS_NOW }

/** A recipient in each state. */
const readFields = {
  status: 'read' as const,
  sent_at: hoursLater(0.1),
  delivered_at: hoursLater(0.2),
  read_at: hoursLater(0.3),
}
const RECIPIENTS: RecipientFields[] = [
  { status: 'pending' },
  { status: 'sent', sent_at: hoursLater(0.1) },
  { status: 'delivered', sent_at: hoursLater(0.1), delivered_at: hoursLater(0.2) },
  readFields,
  { ...readFields, responded: true, opted_out: true, responded_at: hoursLater(0.4) },
  { status: 'failed', failed_at: hoursLater(0.1) },
]

/** Inserts a broadcast with these recipients. */
const insertSentBroadcast = async (
  server: TestServer,
  workspaceId: string,
  fields: BroadcastFields = {},
): Promise<{ id: string; contactIds: string[] }> => {
  const contactIds = await insertBroadcastContacts(server, workspaceId, RECIPIENTS.length)
  const id = await insertBroadcastRow(server.db, workspaceId, fields)
  await insertRecipients(
    server.db,
    workspaceId,
    id,
    RECIPIENTS.map((row, i) => ({ ...row, contact_id: contactIds[i]! })),
  )
  return { id, contactIds }
}

everyDoor(
  'Broadcasts',
  (test) => {
    test('list and get, with totals', async ({ call, server, workspace }) => {
      const [{ id: channelId }] = (await call('workspace_channels')).body.data
      const { id } = await insertSentBroadcast(server, workspace.id, {
        channel_id: channelId,
        scheduled_at: hoursLater(-1),
      })
      const broadcast = {
        id,
        name: 'Autumn blend',
        status: 'completed',
        template_name: 'autumn_blend',
        channel_id: channelId,
        scheduled_at: hoursLater(-1),
        started_at: BROADCASTS_NOW,
        totals: { recipients: 6, sent: 4, delivered: 3, read: 2, failed: 1, responded: 1, opted_out: 1 },
        job_id: null,
        waiting: null,
      }
      assert.deepEqual((await call('messaging_get_broadcast', { broadcast_id: id })).body, broadcast)
      assert.deepEqual((await call('messaging_list_broadcasts')).body, {
        data: [broadcast],
        total: 1,
        next_cursor: null,
      })
      assert.deepEqual(summarizeReply(await call('messaging_get_broadcast', { broadcast_id: '999999999' })), [
        404,
        'not_found',
      ])
    })

    test('list recipients, by message status', async ({ call, server, workspace }) => {
      const { id, contactIds } = await insertSentBroadcast(server, workspace.id)
      const { body } = await call('messaging_list_broadcast_recipients', { broadcast_id: id })
      assert.deepEqual(body, {
        data: RECIPIENTS.map(({ status, ...row }, i) => ({
          contact: { id: contactIds[i], name: `Person ${i + 1}`, phone: `1555010${1001 + i}` },
          message_status: status,
          responded: false,
          opted_out: false,
          sent_at: null,
          delivered_at: null,
          read_at: null,
          failed_at: null,
          responded_at: null,
          error: null,
          ...row,
        })),
        total: 6,
        next_cursor: null,
      })
      for (const [status, indexes] of [
        ['pending', [0]],
        ['sent', [1]],
        ['delivered', [2]],
        ['read', [3, 4]],
        ['failed', [5]],
        ['responded', [4]],
        ['not_responded', [0, 1, 2, 3, 5]],
      ] as const) {
        const page = (
          await call('messaging_list_broadcast_recipients', { broadcast_id: id, message_status: status })
        ).body
        assert.deepEqual(
          [page.data, page.total],
          [indexes.map((i): unknown => body.data[i]), indexes.length],
          status,
        )
        // A contact filter with the same status matches the same contacts.
        const filter = { broadcasts: { some: { id: { eq: id }, message_status: { eq: status } } } }
        assert.equal((await call('crm_count_contacts', { filter })).body.count, indexes.length, status)
      }
      const unknown = await call('messaging_list_broadcast_recipients', { broadcast_id: '999999999' })
      assert.deepEqual(summarizeReply(unknown), [404, 'not_found'])
    })

    test('totals and rows survive the deletion of a contact, and hidden phones are masked', async ({
      call,
      as,
      server,
      workspace,
      door,
    }) => {
      const contactIds = await insertBroadcastContacts(server, workspace.id, 2)
      const id = await insertBroadcastRow(server.db, workspace.id)
      await insertRecipients(
        server.db,
        workspace.id,
        id,
        contactIds.map((contact_id) => ({ contact_id, status: 'read' as const })),
      )
      const agent = as((await workspace.staff({ hide_phone_numbers: true })).key)
      const listContacts = async (): Promise<({ id: string } | null)[]> =>
        (await agent('messaging_list_broadcast_recipients', { broadcast_id: id })).body.data.map(
          (r: { contact: unknown }) => r.contact,
        )
      assert.deepEqual(
        await listContacts(),
        contactIds.map((contact, i) => ({
          id: contact,
          name: `Person ${i + 1}`,
          phone: `********00${i + 1}`,
        })),
      )
      if (!door.confirms) return
      await call('crm_delete_contact', { contact_id: contactIds[0] }, { confirm: 'delete' })
      assert.deepEqual(
        (await listContacts()).map((contact) => contact && contact.id),
        [null, contactIds[1]],
      )
      assert.equal((await call('messaging_get_broadcast', { broadcast_id: id })).body.totals.recipients, 2)
    })
  },
  clock,
)

everyDatabase(
  'Broadcasts',
  (server) => {
    const createScene = async () => {
      const workspace = await makeWorkspace(server())
      return { workspace, run: doAs(server(), workspace.owner.key) }
    }

    it('list is newest first, with status and name filters', async () => {
      const { workspace, run } = await createScene()
      const broadcasts: BroadcastFields[] = [
        { name: 'Started', started_at: hoursLater(-2), scheduled_at: hoursLater(-9) },
        { name: 'Scheduled', status: 'scheduled', started_at: null, scheduled_at: hoursLater(5) },
        {
          name: 'Cancelled',
          status: 'cancelled',
          started_at: null,
          scheduled_at: null,
          created_at: hoursLater(-3),
        },
        { name: 'Running', status: 'running', started_at: hoursLater(-1) },
        { name: 'Ümläut 100%', started_at: hoursLater(-4) },
        { name: 'Same time', started_at: hoursLater(-4) },
      ]
      for (const fields of broadcasts) await insertBroadcastRow(server().db, workspace.id, fields)
      const listNames = async (input: Record<string, unknown>) => {
        const { data, total } = await run('messaging_list_broadcasts', input)
        assert.equal(total, data.length)
        return data.map((row: { name: string }) => row.name)
      }
      const all = ['Scheduled', 'Running', 'Started', 'Cancelled', 'Same time', 'Ümläut 100%']
      assert.deepEqual(await listNames({}), all)
      assert.deepEqual(await listNames({ status: 'completed' }), ['Started', 'Same time', 'Ümläut 100%'])
      assert.deepEqual(await listNames({ status: 'scheduled' }), ['Scheduled'])
      assert.deepEqual(await listNames({ search: 'ÜMLÄ' }), ['Ümläut 100%'])
      assert.deepEqual(await listNames({ search: '%' }), ['Ümläut 100%'])
      assert.deepEqual(await listNames({ search: '_' }), [])
      assert.deepEqual(await listNames({ search: 'a', status: 'completed' }), ['Started', 'Same time'])
      const paged: string[] = []
      let cursor: string | undefined
      do {
        const page = await run('messaging_list_broadcasts', { limit: 2, ...(cursor ? { cursor } : {}) })
        assert.equal(page.total, cursor ? null : all.length)
        paged.push(...page.data.map((row: { name: string }) => row.name))
        cursor = page.next_cursor
      } while (cursor)
      assert.deepEqual(paged, all)
    })

    it('staff with some channels see the broadcasts on those only', async () => {
      const { workspace, run } = await createScene()
      const [{ id: channel }] = (await run('workspace_channels')).data
      const [own, other, without] = [
        await insertBroadcastRow(server().db, workspace.id, { channel_id: channel }),
        await insertBroadcastRow(server().db, workspace.id, { channel_id: '999999' }),
        await insertBroadcastRow(server().db, workspace.id),
      ]
      const listVisible = async (channelIds: string[] | null) => {
        const agent = doAs(server(), (await workspace.staff({ channel_ids: channelIds })).key)
        const listed = (await agent('messaging_list_broadcasts')).data.map((row: { id: string }) => row.id)
        for (const id of [own, other, without])
          for (const op of ['messaging_get_broadcast', 'messaging_list_broadcast_recipients']) {
            if (listed.includes(id)) await agent(op, { broadcast_id: id })
            else await assert.rejects(agent(op, { broadcast_id: id }), /not_found/)
          }
        return listed.sort()
      }
      assert.deepEqual(await listVisible([channel]), [own])
      assert.deepEqual(await listVisible([]), [])
      assert.deepEqual(await listVisible(null), [own, other, without].sort())
    })

    it('pages of recipients neither repeat nor skip a row, for every status', async () => {
      const { workspace, run } = await createScene()
      const id = await insertBroadcastRow(server().db, workspace.id)
      const other = await insertBroadcastRow(server().db, workspace.id)
      const statuses = ['pending', 'sent', 'delivered', 'read', 'failed'] as const
      const rows = Array.from({ length: 67 }, (_, i) => ({
        contact_id: String(5000 + i),
        status: statuses[(i * i) % 5]!,
        responded: i % 7 < 2,
      }))
      await insertRecipients(server().db, workspace.id, id, rows)
      await insertRecipients(
        server().db,
        workspace.id,
        other,
        rows.map((row) => ({ ...row, responded: true })),
      )
      for (const status of [undefined, ...statuses, 'responded', 'not_responded']) {
        const expected = rows.filter(
          (row) =>
            status === undefined ||
            row.status === status ||
            status === (row.responded ? 'responded' : 'not_responded'),
        )
        const input = { broadcast_id: id, limit: 7, ...(status ? { message_status: status } : {}) }
        const found: string[] = []
        for (
          let page = await run('messaging_list_broadcast_recipients', input), first = true;
          ;
          page = await run('messaging_list_broadcast_recipients', { ...input, cursor: page.next_cursor }),
            first = false
        ) {
          assert.equal(page.total, first ? expected.length : null)
          found.push(
            ...page.data.map(
              (row: { message_status: string; responded: boolean; contact: null }) =>
                `${row.message_status} ${row.responded} ${row.contact}`,
            ),
          )
          if (page.next_cursor === null) break
        }
        assert.deepEqual(
          found,
          expected.map((row) => `${row.status} ${row.responded} null`),
          status ?? 'all',
        )
      }
    })
  },
  clock,
)
