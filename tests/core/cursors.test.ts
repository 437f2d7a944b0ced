import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { sql } from 'kysely'
import { createChannel, createTeam } from '../../storage/workspace/admin.ts'
import { findLabels, insertTags } from '../../storage/labels/labels.ts'
import { callAs, type ContactsPage, doAs, everyPage, plantContact } from '../calls.ts'
import { everyDatabase, runCli } from '../doors.ts'
import { makeWorkspace, type TestServer, type TestWorkspace } from '../servers.ts'
import { runs } from '../level.ts'

const toRows = (pages: readonly ContactsPage[]) => pages.flatMap((page) => page.data)
const toIds = (pages: readonly ContactsPage[]): string[] => toRows(pages).map((row) => row.id)

let clock = Date.UTC(2026, 9, 1)
const advanceClock = (ms: number): void => {
  clock += ms
}
const now = (): string => new Date(clock).toISOString()

/** Inserts contacts with many ties: few names, few creation times. */
const insertContacts = async (
  server: TestServer,
  workspace: TestWorkspace,
  count: number,
  from = 0,
): Promise<string[]> => {
  const ids: string[] = []
  for (let i = from; i < from + count; i++) {
    const created = new Date(clock + ((i * 7) % 5)).toISOString()
    ids.push(
      await plantContact(
        server.db,
        workspace.id,
        {
          phone: `1555010${String((i * 613) % 10_000).padStart(4, '0')}`,
          name: ['Ann', 'Bob', 'Cid', null][i % 4]!,
          email: null,
          attrs: {},
          tagIds: [],
          groupIds: [],
        },
        created,
      ),
    )
  }
  return ids
}

const sorts = fc.option(
  fc.record({
    field: fc.constantFrom('createdAt', 'updatedAt', 'name', 'phoneNumber', 'id'),
    direction: fc.constantFrom('asc', 'desc'),
  }),
  { nil: undefined },
)
const limits = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 4 })
const conditions = fc.constantFrom(
  {},
  { dnd: false },
  { starred: false, not_in_any_group: true },
  { query: 'b' },
  { query: '155501' },
)

everyDatabase(
  'Cursor pagination',
  (server) => {
    it('pages of any size together are the whole list, in order', async () => {
      const workspace = await makeWorkspace(server())
      const run = doAs(server(), workspace.owner.key)
      await insertContacts(server(), workspace, 40)
      await fc.assert(
        fc.asyncProperty(sorts, limits, conditions, async (sort, sizes, wanted) => {
          const input = { ...wanted, ...(sort ? { sort } : {}) }
          const whole = await run('crm_search_contacts', { ...input, limit: 100 })
          const pages = await everyPage(run, 'crm_search_contacts', input, sizes)
          assert.deepEqual(
            toIds(pages),
            whole.data.map((row: { id: string }) => row.id),
          )
          // Only the first page has a total.
          assert.deepEqual(
            pages.map((page) => page.total),
            pages.map((_, i) => (i === 0 ? whole.data.length : null)),
          )
        }),
        { numRuns: runs(6, 50) },
      )
    })

    it('a contact that exists throughout is shown once while others are created and deleted', async () => {
      await fc.assert(
        fc.asyncProperty(
          sorts,
          limits,
          fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 3 })), { minLength: 1, maxLength: 8 }),
          async (sort, sizes, changes) => {
            const workspace = await makeWorkspace(server())
            const run = doAs(server(), workspace.owner.key)
            const ids = await insertContacts(server(), workspace, 24)
            const gone = new Set<string>()
            let made = 100
            const pages = await everyPage(
              run,
              'crm_search_contacts',
              sort ? { sort } : {},
              sizes,
              async (page) => {
                const [pick, births] = changes[page % changes.length]!
                const victim = ids[pick % ids.length]!
                if (!gone.has(victim)) await run('crm_delete_contact', { contact_id: victim })
                gone.add(victim)
                // Creation stops at some point: a list that grows faster than it is read never ends.
                if (made >= 140) return
                await insertContacts(server(), workspace, births, made)
                made += births
              },
            )
            const seen = toIds(pages)
            assert.equal(new Set(seen).size, seen.length, 'no contact twice')
            for (const id of ids) assert.ok(gone.has(id) || seen.includes(id), `${id} is missing`)
          },
        ),
        { numRuns: runs(3, 24) },
      )
    })

    it('tags, groups, custom fields, staff, teams and channels are complete too', async () => {
      const workspace = await makeWorkspace(server())
      const run = doAs(server(), workspace.owner.key)
      for (const n of [1, 2, 3, 4, 5, 6, 7]) {
        await run('crm_create_group', { name: `Group ${n % 2 ? 'é' : 'E'}${n}` })
        await run('crm_create_custom_field', { key: `field_${n}`, type: 'text' })
        await workspace.staff({ name: `Staff ${n}` })
        await createTeam(server().db, workspace.id, `Team ${n}`, server().app.now())
        await createChannel(
          server().db,
          workspace.id,
          { type: 'web', name: `Channel ${n}` },
          server().app.now(),
        )
        await run('crm_upsert_contact', { phone: '+15550100001', tags: [`Tag ${n}`, `tàg ${n}`] })
      }
      for (const [op, count] of [
        ['crm_list_groups', 7],
        ['crm_list_custom_fields', 8],
        ['workspace_list_staff', 8],
        ['workspace_list_teams', 7],
        ['workspace_channels', 8],
        ['crm_list_tags', 14],
      ] as const) {
        const whole = await run(op, { limit: 100 })
        assert.equal(whole.total, count, op)
        for (const sizes of [[1], [2, 3], [7], [count], [count - 1]]) {
          const pages = await everyPage(run, op, {}, sizes)
          assert.deepEqual(toRows(pages), whole.data, op)
          assert.equal(pages[0]!.total, count, op)
        }
      }
    })

    it('tags with thousands of contacts', async () => {
      const workspace = await makeWorkspace(server())
      const run = doAs(server(), workspace.owner.key)
      const { db } = server()
      await insertTags(db, workspace.id, ['all', 'low', 'high', 'rare'], server().app.now())
      const tags = new Map(
        (await findLabels(db, workspace.id, 'tag', [], ['all', 'low', 'high', 'rare'])).map((t) => [
          t.name,
          t.id,
        ]),
      )
      const tag = (name: string): string => tags.get(name)!
      await sql`
      insert into contacts (workspace_id, phone, name, name_key, search, created_at, updated_at)
      select ${workspace.id}::bigint, (15550000000 + i)::text, 'Bulk ' || i, 'bulk ' || i,
        'bulk ' || i || chr(10) || (15550000000 + i),
        ${server().app.now()}::timestamptz, ${server().app.now()}::timestamptz
      from generate_series(1, 3600) as i`.execute(db)
      for (const [name, from, to] of [
        ['all', 1, 3600],
        ['low', 1, 2000],
        ['high', 1, 2400],
        ['rare', 3590, 3595],
      ] as const) {
        await sql`
        insert into contact_tags (workspace_id, tag_id, contact_id)
        select workspace_id, ${tag(name)}::bigint, id from contacts
        where workspace_id = ${workspace.id}
          and phone::bigint - 15550000000 between ${from} and ${to}`.execute(db)
      }
      // Autovacuum has not come by yet: without statistics each page takes a quarter of a second.
      await sql`analyze contacts, contact_tags, tags`.execute(db)
      const found = async (input: Record<string, unknown>): Promise<ContactsPage[]> =>
        await everyPage(run, 'crm_search_contacts', input, [100])
      const all = await found({ tag_ids: [tag('all')] })
      assert.equal(new Set(toIds(all)).size, 3600)
      assert.equal(toRows(all).length, 3600)
      assert.deepEqual([all[0]!.total, all[0]!.approximate], [3600, false])
      // Two tags on the same contacts: 4400 links, 2400 contacts.
      const both = await found({
        tag_ids: [tag('low'), tag('high')],
        sort: { field: 'name', direction: 'asc' },
      })
      assert.equal(toRows(both).length, 2400)
      assert.equal(new Set(toIds(both)).size, 2400)
      assert.equal(toRows(await found({ tag_ids: [tag('low')], query: 'BULK 19' })).length, 111)
      assert.equal(toRows(await found({ tag_ids: [tag('all'), tag('rare')], query: '359' })).length, 14)
      assert.deepEqual(
        toRows(await found({ tag_ids: [tag('rare')], sort: { field: 'id', direction: 'asc' } })).map(
          (c) => c.name,
        ),
        [3590, 3591, 3592, 3593, 3594, 3595].map((n) => `Bulk ${n}`),
      )
    })
  },
  { now },
)

everyDatabase(
  'Cursors',
  (server) => {
    const createFirstPage = async () => {
      const workspace = await makeWorkspace(server())
      const call = callAs(server(), workspace.owner.key)
      await insertContacts(server(), workspace, 6)
      const first = await call('crm_search_contacts', { limit: 2, query: '1' })
      return {
        workspace,
        call,
        first: first.body as ContactsPage,
        cursor: (first.body as ContactsPage).next_cursor!,
      }
    }
    const assertRefused = (reply: Awaited<ReturnType<ReturnType<typeof callAs>>>, reason: string): void => {
      assert.deepEqual(
        [reply.status, reply.body.code, reply.body.reason],
        [400, 'invalid_input', reason],
        reply.text,
      )
      assert.equal(reply.body.errors[0].pointer, '#/cursor')
      assert.ok(reply.body.errors[0].fix)
    }

    it('a cursor works only with the same list and filters; limit may change', async () => {
      const { call, first, cursor } = await createFirstPage()
      for (const input of [
        { cursor },
        { cursor, query: '15' },
        { cursor, query: '1', dnd: false },
        { cursor, query: '1', detail: 'full' },
        { cursor, query: '1', sort: { field: 'name' } },
      ]) {
        assertRefused(await call('crm_search_contacts', input), 'cursor_invalid')
      }
      assertRefused(await call('crm_list_tags', { cursor }), 'cursor_invalid')
      const rest = await call('crm_search_contacts', { cursor, query: '1', limit: 100 })
      assert.equal(rest.body.data.length, 4)
      assert.equal(rest.body.next_cursor, null)
      assert.ok(
        rest.body.data.every((row: { id: string }) => !first.data.some((shown) => shown.id === row.id)),
      )
      // An explicit default is the same filter.
      assert.equal((await call('crm_search_contacts', { cursor, query: '1', detail: 'summary' })).status, 200)
    })

    it('the command line takes a cursor of a page that was printed in another form', async () => {
      const { workspace, call } = await createFirstPage()
      const env = {
        WCRM_URL: server().url,
        WCRM_API_KEY: workspace.owner.key,
        XDG_CONFIG_HOME: '/nonexistent',
      }
      const second = (await call('crm_search_contacts', { limit: 4 })).body.data.slice(2)
      const ids = second.map((row: { id: string }) => row.id)
      for (const detail of ['summary', 'full']) {
        const first = await call('crm_search_contacts', { limit: 2, detail })
        const page = ['contacts', 'search', '--limit', '2', '--cursor', first.body.next_cursor]
        for (const form of [[], ['--csv'], ['--ndjson'], ['--quiet'], ['--columns', 'id']]) {
          const { exit, stdout, stderr } = await runCli([...page, ...form], env)
          assert.equal(exit, 0, stderr)
          for (const id of ids) assert.match(stdout, new RegExp(`\\b${id}\\b`), form.join(' '))
        }
      }
    })

    it('a cursor works with any key of its owner, and with no other', async () => {
      const { workspace, cursor } = await createFirstPage()
      const colleague = await workspace.staff({ role: 'owner' })
      assertRefused(
        await callAs(server(), colleague.key)('crm_search_contacts', { cursor, query: '1' }),
        'cursor_invalid',
      )
      const other = await makeWorkspace(server())
      assertRefused(
        await callAs(server(), other.owner.key)('crm_search_contacts', { cursor, query: '1' }),
        'cursor_invalid',
      )
      const second = await workspace.key(workspace.owner.staffId)
      assert.equal(
        (await callAs(server(), second.key)('crm_search_contacts', { cursor, query: '1' })).status,
        200,
      )
    })

    it('an altered or invented cursor is refused', async () => {
      const { call, cursor } = await createFirstPage()
      const refuse = async (text: string) =>
        assertRefused(await call('crm_search_contacts', { cursor: text, query: '1' }), 'cursor_invalid')
      const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
      await fc.assert(
        fc.asyncProperty(fc.nat(cursor.length - 1), fc.constantFrom(...alphabet), async (at, char) => {
          fc.pre(cursor[at] !== char)
          await refuse(`${cursor.slice(0, at)}${char}${cursor.slice(at + 1)}`)
        }),
        { numRuns: 60 },
      )
      for (const text of [
        'x',
        '0',
        'null',
        'e30',
        `${cursor}=`,
        `${cursor}A`,
        cursor.slice(1),
        cursor.slice(0, -1),
        ` ${cursor}`,
      ])
        await refuse(text)
    })

    it('a cursor reveals none of its contents', async () => {
      const { call } = await createFirstPage()
      const { body } = await call('crm_search_contacts', { limit: 1, sort: { field: 'phoneNumber' } })
      const readable = Buffer.from(body.next_cursor, 'base64url').toString('latin1')
      assert.ok(!readable.includes(body.data[0].phone.slice(-6)))
    })

    it('a cursor expires after 24 hours', async () => {
      const { call, cursor } = await createFirstPage()
      const ask = () => call('crm_search_contacts', { cursor, query: '1', limit: 1 })
      advanceClock(24 * 3600_000)
      const last = await ask()
      assert.equal(last.status, 200)
      advanceClock(1)
      assertRefused(await ask(), 'cursor_expired')
      // The cursor of each page expires separately.
      assert.equal(
        (await call('crm_search_contacts', { cursor: last.body.next_cursor, query: '1' })).status,
        200,
      )
    })
  },
  { now },
)
