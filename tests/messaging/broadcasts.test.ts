import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { sql } from 'kysely'
import type { TableRow } from '../../storage/database.ts'
import { fold } from '../../storage/text.ts'
import { doAs, plantContact } from '../calls.ts'
import { everyDatabase, everyDoor } from '../doors.ts'
import { refusal } from './sends.ts'
import { makeWorkspace, type TestServer, type TestWorkspace } from '../servers.ts'
import { runs } from '../level.ts'

const now = '2026-10-01T09:30:00.000Z'
const clock = { now: () => now }
const hours = (n: number): string => new Date(Date.parse(now) + n * 3_600_000).toISOString()

type Fields = Partial<
  Pick<TableRow<'broadcasts'>, 'name' | 'status' | 'started_at' | 'scheduled_at' | 'created_at'>
> & { channel_id?: string }

const plantBroadcast = async (
  { db }: TestServer,
  { id: workspaceId }: TestWorkspace,
  fields: Fields = {},
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
        started_at: now,
        created_at: hours(-1),
        ...fields,
        name_key: fold(fields.name ?? 'Autumn blend'),
      })
      .returning('id')
      .executeTakeFirstOrThrow()
  ).id

type Recipient = Pick<TableRow<'broadcast_recipients'>, 'status'> &
  Partial<Record<'responded' | 'opted_out', boolean>> &
  Partial<Record<`${'sent' | 'delivered' | 'read' | 'failed' | 'responded'}_at`, string>>

const plantRecipients = async (
  { db }: TestServer,
  workspaceId: string,
  broadcastId: string,
  recipients: readonly (Recipient & { contact_id: string })[],
): Promise<void> => {
  await sql`
    insert into broadcast_recipients (workspace_id, broadcast_id, contact_id, status, responded, opted_out, sent_at, delivered_at, read_at, failed_at, responded_at)
    select ${workspaceId}::bigint, ${broadcastId}::bigint, contact_id, status, coalesce(responded, false), coalesce(opted_out, false), sent_at, delivered_at, read_at, failed_at, responded_at
    from jsonb_to_recordset(${JSON.stringify(recipients)}::text::jsonb) as r (contact_id bigint, status text, responded boolean, opted_out boolean, sent_at timestamptz, delivered_at timestamptz,
      read_at timestamptz, failed_at timestamptz, responded_at timestamptz)`.execute(db)
}

const contacts = async (server: TestServer, { id }: TestWorkspace, n: number): Promise<string[]> => {
  const ids = []
  for (let i = 1; i <= n; i++)
    ids.push(
      await plantContact(
        server.db,
        id,
        {
          name: `Person ${i}`,
          phone: `1555010${1000 + i}`,
          email: null,
          attrs: {},
          tagIds: [],
          groupIds: [],
        },
        now,
      ),
    )
  return ids
}

everyDoor(
  'Broadcasts',
  (test) => {
    test('list, get with totals, list recipients', async ({ call, server, workspace }) => {
      const people = await contacts(server, workspace, 6)
      const [{ id: channel }] = (await call('workspace_channels')).body.data
      const id = await plantBroadcast(server, workspace, { channel_id: channel, scheduled_at: hours(-1) })
      const seen = {
        status: 'read' as const,
        sent_at: hours(0.1),
        delivered_at: hours(0.2),
        read_at: hours(0.3),
      }
      const rows: Recipient[] = [
        { status: 'pending' },
        { status: 'sent', sent_at: hours(0.1) },
        { status: 'delivered', sent_at: hours(0.1), delivered_at: hours(0.2) },
        seen,
        { ...seen, responded: true, opted_out: true, responded_at: hours(0.4) },
        { status: 'failed', failed_at: hours(0.1) },
      ]
      await plantRecipients(
        server,
        workspace.id,
        id,
        rows.map((row, i) => ({ ...row, contact_id: people[i]! })),
      )
      const broadcast = {
        id,
        name: 'Autumn blend',
        status: 'completed',
        template_name: 'autumn_blend',
        channel_id: channel,
        scheduled_at: hours(-1),
        started_at: now,
        totals: { recipients: 6, sent: 4, delivered: 3, read: 2, failed: 1, responded: 1, opted_out: 1 },
      }
      assert.deepEqual((await call('messaging_get_broadcast', { broadcast_id: id })).body, broadcast)
      assert.deepEqual((await call('messaging_list_broadcasts')).body, {
        data: [broadcast],
        total: 1,
        next_cursor: null,
      })
      const { body } = await call('messaging_list_broadcast_recipients', { broadcast_id: id })
      assert.deepEqual(body, {
        data: rows.map(({ status, ...row }, i) => ({
          contact: { id: people[i], name: `Person ${i + 1}`, phone: `1555010${1001 + i}` },
          message_status: status,
          responded: false,
          opted_out: false,
          sent_at: null,
          delivered_at: null,
          read_at: null,
          failed_at: null,
          responded_at: null,
          ...row,
        })),
        total: 6,
        next_cursor: null,
      })
      for (const [status, expected] of [
        ['pending', [0]],
        ['sent', [1]],
        ['delivered', [2]],
        ['read', [3, 4]],
        ['failed', [5]],
        ['responded', [4]],
        ['not_responded', [0, 1, 2, 3, 5]],
      ] as const) {
        const found = (
          await call('messaging_list_broadcast_recipients', { broadcast_id: id, message_status: status })
        ).body
        assert.deepEqual(
          [found.data, found.total],
          [expected.map((i): unknown => body.data[i]), expected.length],
          status,
        )
        // A contact filter of the same words finds the same people.
        assert.equal(
          (
            await call('crm_count_contacts', {
              filter: { broadcasts: { some: { id: { eq: id }, message_status: { eq: status } } } },
            })
          ).body.count,
          expected.length,
          status,
        )
      }
      const none = '999999999'
      for (const reply of [
        await call('messaging_get_broadcast', { broadcast_id: none }),
        await call('messaging_list_broadcast_recipients', { broadcast_id: none }),
      ])
        assert.deepEqual(refusal(reply), [404, 'not_found'])
    })

    test('totals and rows survive the deletion of a contact, and hidden phones are masked', async ({
      call,
      as,
      server,
      workspace,
      door,
    }) => {
      const people = await contacts(server, workspace, 2)
      const id = await plantBroadcast(server, workspace)
      await plantRecipients(
        server,
        workspace.id,
        id,
        people.map((contact_id) => ({ contact_id, status: 'read' as const })),
      )
      const agent = as((await workspace.staff({ hide_phone_numbers: true })).key)
      const shown = async (): Promise<({ id: string } | null)[]> =>
        (await agent('messaging_list_broadcast_recipients', { broadcast_id: id })).body.data.map(
          (r: { contact: unknown }) => r.contact,
        )
      assert.deepEqual(
        await shown(),
        people.map((contact, i) => ({ id: contact, name: `Person ${i + 1}`, phone: `********00${i + 1}` })),
      )
      if (!door.confirms) return
      await call('crm_delete_contact', { contact_id: people[0] }, { confirm: 'delete' })
      assert.deepEqual(
        (await shown()).map((contact) => contact && contact.id),
        [null, people[1]],
      )
      assert.equal((await call('messaging_get_broadcast', { broadcast_id: id })).body.totals.recipients, 2)
    })
  },
  clock,
)

everyDatabase(
  'Broadcasts',
  (server) => {
    const scene = async () => {
      const workspace = await makeWorkspace(server())
      return { workspace, run: doAs(server(), workspace.owner.key) }
    }

    it('list is newest first, with status and name filters', async () => {
      const { workspace, run } = await scene()
      const made: Fields[] = [
        { name: 'Began', started_at: hours(-2), scheduled_at: hours(-9) },
        { name: 'To come', status: 'scheduled', started_at: null, scheduled_at: hours(5) },
        {
          name: 'Called off',
          status: 'cancelled',
          started_at: null,
          scheduled_at: null,
          created_at: hours(-3),
        },
        { name: 'Runs', status: 'running', started_at: hours(-1) },
        { name: 'Ümläut 100%', started_at: hours(-4) },
        { name: 'Same time', started_at: hours(-4) },
      ]
      for (const fields of made) await plantBroadcast(server(), workspace, fields)
      const names = async (input: Record<string, unknown>) => {
        const { data, total } = await run('messaging_list_broadcasts', input)
        assert.equal(total, data.length)
        return data.map((row: { name: string }) => row.name)
      }
      const all = ['To come', 'Runs', 'Began', 'Called off', 'Same time', 'Ümläut 100%']
      assert.deepEqual(await names({}), all)
      assert.deepEqual(await names({ status: 'completed' }), ['Began', 'Same time', 'Ümläut 100%'])
      assert.deepEqual(await names({ status: 'scheduled' }), ['To come'])
      assert.deepEqual(await names({ search: 'ÜMLÄ' }), ['Ümläut 100%'])
      assert.deepEqual(await names({ search: '%' }), ['Ümläut 100%'])
      assert.deepEqual(await names({ search: '_' }), [])
      assert.deepEqual(await names({ search: 'a', status: 'completed' }), ['Began', 'Same time'])
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
      const { workspace, run } = await scene()
      const [{ id: channel }] = (await run('workspace_channels')).data
      const [mine, theirs, nowhere] = [
        await plantBroadcast(server(), workspace, { channel_id: channel }),
        await plantBroadcast(server(), workspace, { channel_id: '999999' }),
        await plantBroadcast(server(), workspace),
      ]
      const seen = async (channelIds: string[] | null) => {
        const agent = doAs(server(), (await workspace.staff({ channel_ids: channelIds })).key)
        const listed = (await agent('messaging_list_broadcasts')).data.map((row: { id: string }) => row.id)
        for (const id of [mine, theirs, nowhere])
          for (const op of ['messaging_get_broadcast', 'messaging_list_broadcast_recipients']) {
            if (listed.includes(id)) await agent(op, { broadcast_id: id })
            else await assert.rejects(agent(op, { broadcast_id: id }), /not_found/)
          }
        return listed.sort()
      }
      assert.deepEqual(await seen([channel]), [mine])
      assert.deepEqual(await seen([]), [])
      assert.deepEqual(await seen(null), [mine, theirs, nowhere].sort())
    })

    it('pages of recipients neither repeat nor skip a row, for every status', async () => {
      const { workspace, run } = await scene()
      const id = await plantBroadcast(server(), workspace)
      const other = await plantBroadcast(server(), workspace)
      const statuses = ['pending', 'sent', 'delivered', 'read', 'failed'] as const
      const rows = Array.from({ length: 67 }, (_, i) => ({
        contact_id: String(5000 + i),
        status: statuses[(i * i) % 5]!,
        responded: i % 7 < 2,
      }))
      await plantRecipients(server(), workspace.id, id, rows)
      await plantRecipients(
        server(),
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
      const { workspace, run } = await scene()
      const ids = [await plantBroadcast(server(), workspace), await plantBroadcast(server(), workspace)]
      const { db } = server()
      const status = fc.constantFrom('pending', 'sent', 'delivered', 'read', 'failed')
      const some = fc.uniqueArray(fc.nat(14), { minLength: 1, maxLength: 8 })
      const step = fc.record({
        act: fc.constantFrom('put', 'change', 'change', 'remove', 'move'),
        people: some,
        broadcasts: fc.subarray([0, 1], { minLength: 1 }),
        status,
        responded: fc.boolean(),
        opted_out: fc.boolean(),
      })
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 8 }), async (steps) => {
          await sql`delete from broadcast_recipients where workspace_id = ${workspace.id}`.execute(db)
          for (const { act, people, broadcasts, status: to, responded, opted_out: out } of steps) {
            const which = sql`workspace_id = ${workspace.id} and contact_id = any(${people}::bigint[]) and broadcast_id = any(${broadcasts.map((b) => ids[b]!)}::bigint[])`
            const values = sql`status = ${to}, responded = ${responded}, opted_out = ${out}`
            if (act === 'put') {
              await sql`
            insert into broadcast_recipients (workspace_id, broadcast_id, contact_id, status, responded, opted_out)
            select ${workspace.id}::bigint, b, c, ${to}, ${responded}, ${out} from unnest(${broadcasts.map((b) => ids[b]!)}::bigint[]) b, unnest(${people}::bigint[]) c
            on conflict (workspace_id, broadcast_id, contact_id) do update set ${values}`.execute(db)
            } else if (act === 'change')
              await sql`update broadcast_recipients set ${values} where ${which}`.execute(db)
            else if (act === 'remove') await sql`delete from broadcast_recipients where ${which}`.execute(db)
            else
              await sql`update broadcast_recipients set broadcast_id = ${ids[0]!}::bigint, contact_id = contact_id + 100 where ${which} and contact_id < 100
          and not exists (select 1 from broadcast_recipients x where x.workspace_id = broadcast_recipients.workspace_id and x.broadcast_id = ${ids[0]!}::bigint and x.contact_id = broadcast_recipients.contact_id + 100)
          and broadcast_id = ${ids[1]!}::bigint`.execute(db)
          }
          for (const id of ids) {
            const {
              rows: [counted],
            } = await sql`
          select count(*)::int as recipients, count(*) filter (where status in ('sent', 'delivered', 'read'))::int as sent, count(*) filter (where status in ('delivered', 'read'))::int as delivered,
            count(*) filter (where status = 'read')::int as read, count(*) filter (where status = 'failed')::int as failed, count(*) filter (where responded)::int as responded,
            count(*) filter (where opted_out)::int as opted_out
          from broadcast_recipients where workspace_id = ${workspace.id} and broadcast_id = ${id}`.execute(db)
            assert.deepEqual((await run('messaging_get_broadcast', { broadcast_id: id })).totals, {
              ...(counted as object),
            })
          }
        }),
        { numRuns: runs(20, 80) },
      )
    })

    it('counters stay exact with concurrent writers', async () => {
      const { workspace, run } = await scene()
      const ids = [await plantBroadcast(server(), workspace), await plantBroadcast(server(), workspace)]
      const people = Array.from({ length: 40 }, (_, i) => String(i + 1))
      for (const id of ids)
        await plantRecipients(
          server(),
          workspace.id,
          id,
          people.map((contact_id) => ({ contact_id, status: 'pending' as const })),
        )
      // Each writer takes both broadcasts in one statement, in an order of its own.
      await Promise.all(
        people.map((contact, i) =>
          sql`
      update broadcast_recipients r set status = ${i % 4 === 0 ? 'failed' : 'sent'} from (select * from unnest(${i % 2 === 0 ? ids : ids.toReversed()}::bigint[]) as b) as o
      where r.workspace_id = ${workspace.id} and r.contact_id = ${contact}::bigint and r.broadcast_id = o.b`.execute(
            server().db,
          ),
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
