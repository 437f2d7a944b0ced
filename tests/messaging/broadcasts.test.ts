import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import fc from 'fast-check'
import type { Db, TableRow } from '../../storage/database.ts'
import { fold } from '../../storage/values/text.ts'
import { doAs, plantContact } from '../calls.ts'
import { makeWorkspace, type TestServer } from '../servers.ts'
import { everyDatabase, everyDoor } from '../doors.ts'
import { summarizeReply } from './fixtures.ts'
import { runs } from '../level.ts'

/** The business time of the tests of broadcasts. */
const BROADCASTS_NOW = '2026-10-01T09:30:00.000Z'
/** Returns the time so many hours after it. */
const hoursLater = (hours: number): string =>
  new Date(Date.parse(BROADCASTS_NOW) + hours * 3_600_000).toISOString()

type BroadcastFields = Partial<
  Pick<TableRow<'broadcasts'>, 'name' | 'status' | 'started_at' | 'scheduled_at' | 'created_at'>
> & { channel_id?: string }

const insertBroadcastRow = async (
  db: Db,
  workspaceId: string,
  fields: BroadcastFields = {},
): Promise<string> =>
  (
    await db
      .insertInto('broadcasts')
      .values({
        workspace_id: workspaceId,
        name: 'Autumn blend',
        status: 'completed',
        template_name: 'autumn_blend',
        channel_id: null,
        scheduled_at: null,
        started_at: BROADCASTS_NOW,
        created_at: hoursLater(-1),
        ...fields,
        name_key: fold(fields.name ?? 'Autumn blend'),
      })
      .returning('id')
      .executeTakeFirstOrThrow()
  ).id

type RecipientFields = Pick<TableRow<'broadcast_recipients'>, 'status'> &
  Partial<Record<'responded' | 'opted_out', boolean>> &
  Partial<Record<`${'sent' | 'delivered' | 'read' | 'failed' | 'responded'}_at`, string>>

const insertRecipients = async (
  db: Db,
  workspaceId: string,
  broadcastId: string,
  recipients: readonly (RecipientFields & { contact_id: string })[],
): Promise<void> => {
  await sql`
    insert into broadcast_recipients (workspace_id, broadcast_id, contact_id, status, responded, opted_out,
      sent_at, delivered_at, read_at, failed_at, responded_at)
    select ${workspaceId}::bigint, ${broadcastId}::bigint, contact_id, status, coalesce(responded, false),
      coalesce(opted_out, false), sent_at, delivered_at, read_at, failed_at, responded_at
    from jsonb_to_recordset(${JSON.stringify(recipients)}::text::jsonb) as r (
      contact_id bigint, status text, responded boolean, opted_out boolean, sent_at timestamptz,
      delivered_at timestamptz, read_at timestamptz, failed_at timestamptz, responded_at timestamptz)
  `.execute(db)
}

/** Inserts this many contacts, and returns their ids. */
const insertBroadcastContacts = async (
  { db }: TestServer,
  workspaceId: string,
  count: number,
): Promise<string[]> => {
  const ids: string[] = []
  for (let i = 1; i <= count; i++) {
    const contact = { name: `Person ${i}`, phone: `1555010${1000 + i}`, email: null }
    ids.push(
      await plantContact(
        db,
        workspaceId,
        { ...contact, attrs: {}, tagIds: [], groupIds: [] },
        BROADCASTS_NOW,
      ),
    )
  }
  return ids
}

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

/** A change of recipients; `broadcasts` are indexes. */
const step = fc.record({
  change: fc.constantFrom('upsert', 'update', 'update', 'delete', 'move'),
  contacts: fc.uniqueArray(fc.nat(14), { minLength: 1, maxLength: 8 }),
  broadcasts: fc.subarray([0, 1], { minLength: 1 }),
  status: fc.constantFrom('pending', 'sent', 'delivered', 'read', 'failed'),
  responded: fc.boolean(),
  optedOut: fc.boolean(),
})
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

/** Changes recipients with one statement. `move` gives those of the second broadcast to the first. */
const changeRecipients = async (
  db: Db,
  workspaceId: string,
  ids: readonly string[],
  { change, contacts, broadcasts, status, responded, optedOut }: Step,
): Promise<void> => {
  const broadcastIds = broadcasts.map((index) => ids[index]!)
  const where = sql`workspace_id = ${workspaceId} and contact_id = any(${contacts}::bigint[])
    and broadcast_id = any(${broadcastIds}::bigint[])`
  const set = sql`status = ${status}, responded = ${responded}, opted_out = ${optedOut}`
  const statements = {
    upsert: sql`
      insert into broadcast_recipients (
        workspace_id, broadcast_id, contact_id, status, responded, opted_out)
      select ${workspaceId}::bigint, b, c, ${status}, ${responded}, ${optedOut}
      from unnest(${broadcastIds}::bigint[]) b, unnest(${contacts}::bigint[]) c
      on conflict (workspace_id, broadcast_id, contact_id) do update set ${set}`,
    update: sql`update broadcast_recipients set ${set} where ${where}`,
    delete: sql`delete from broadcast_recipients where ${where}`,
    move: sql`
      update broadcast_recipients
      set broadcast_id = ${ids[0]!}::bigint, contact_id = contact_id + 100
      where ${where} and contact_id < 100 and broadcast_id = ${ids[1]!}::bigint and not exists (
        select 1 from broadcast_recipients x
        where x.workspace_id = broadcast_recipients.workspace_id and x.broadcast_id = ${ids[0]!}::bigint
          and x.contact_id = broadcast_recipients.contact_id + 100)`,
  }
  await statements[change].execute(db)
}

const countRecipients = async (db: Db, workspaceId: string, broadcastId: string): Promise<object> => {
  const { rows } = await sql<object>`
    select count(*)::int as recipients,
      count(*) filter (where status in ('sent', 'delivered', 'read'))::int as sent,
      count(*) filter (where status in ('delivered', 'read'))::int as delivered,
      count(*) filter (where status = 'read')::int as read,
      count(*) filter (where status = 'failed')::int as failed,
      count(*) filter (where responded)::int as responded,
      count(*) filter (where opted_out)::int as opted_out
    from broadcast_recipients
    where workspace_id = ${workspaceId} and broadcast_id = ${broadcastId}`.execute(db)
  return { ...rows[0]! }
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

    it('counters match the recipients after any sequence of changes', async () => {
      const { db } = server()
      const { workspace, run } = await createScene()
      const ids = [await insertBroadcastRow(db, workspace.id), await insertBroadcastRow(db, workspace.id)]
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 8 }), async (steps) => {
          await sql`delete from broadcast_recipients where workspace_id = ${workspace.id}`.execute(db)
          for (const change of steps) await changeRecipients(db, workspace.id, ids, change)
          for (const id of ids)
            assert.deepEqual(
              (await run('messaging_get_broadcast', { broadcast_id: id })).totals,
              await countRecipients(db, workspace.id, id),
            )
        }),
        { numRuns: runs(20, 80) },
      )
    })

    it('counters stay exact with concurrent writers', async () => {
      const { workspace, run } = await createScene()
      const ids = [
        await insertBroadcastRow(server().db, workspace.id),
        await insertBroadcastRow(server().db, workspace.id),
      ]
      const contactIds = Array.from({ length: 40 }, (_, i) => String(i + 1))
      for (const id of ids)
        await insertRecipients(
          server().db,
          workspace.id,
          id,
          contactIds.map((contact_id) => ({ contact_id, status: 'pending' as const })),
        )
      // Each writer updates both broadcasts with one statement, in different orders.
      await Promise.all(
        contactIds.map((contact, i) =>
          sql`
            update broadcast_recipients r set status = ${i % 4 === 0 ? 'failed' : 'sent'}
            from (select * from unnest(${i % 2 === 0 ? ids : ids.toReversed()}::bigint[]) as b) as o
            where r.workspace_id = ${workspace.id} and r.contact_id = ${contact}::bigint
              and r.broadcast_id = o.b`.execute(server().db),
        ),
      )
      for (const id of ids)
        assert.deepEqual((await run('messaging_get_broadcast', { broadcast_id: id })).totals, {
          recipients: 40,
          sent: 30,
          delivered: 0,
          read: 0,
          failed: 10,
          responded: 0,
          opted_out: 0,
        })
    })
  },
  clock,
)
