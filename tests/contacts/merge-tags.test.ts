import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import type { Db } from '../../storage/database.ts'
import { callAs, doAs } from '../calls.ts'
import { everyDatabase, everyDoor } from '../doors.ts'
import { makeWorkspace } from '../servers.ts'

const confirm = { confirm: 'delete' }

const linkTables = [
  ['contact_tags', 'contact_id'],
  ['conversation_tags', 'conversation_id'],
] as const

/** Makes a tag that one contact has. */
const makeTag = async (run: ReturnType<typeof doAs>, name: string, n: number): Promise<string> => {
  const { contact } = await run('crm_upsert_contact', { phone: `+1555010900${n}`, tags: [name] })
  return contact.tags[0].id as string
}

/** Has each statement fail that changes more than 50,000 rows of a table. */
const limitStatements = async (db: Db, table: string): Promise<void> => {
  await sql`create or replace function limit_statement() returns trigger language plpgsql as $$
    begin
      if (select count(*) from changed) > 50000 then raise exception 'too many rows in one statement'; end if;
      return null;
    end $$`.execute(db)
  for (const [event, rows] of [
    ['update', 'new'],
    ['delete', 'old'],
    ['insert', 'new'],
  ] as const)
    await sql`create trigger ${sql.ref(`limited_${event}`)} after ${sql.raw(event)} on ${sql.table(table)}
      referencing ${sql.raw(rows)} table as changed for each statement execute function limit_statement()`.execute(
      db,
    )
}

everyDoor('Tags that are merged', (test) => {
  test('become one, on contacts and in saved filters', async ({ call, door }) => {
    const make = async (phone: string, tags: string[]) =>
      (await call('crm_upsert_contact', { phone, tags })).body.id as string
    const [a, b, c] = [
      await make('+15550100001', ['VIP']),
      await make('+15550100002', ['V.I.P.', 'Press']),
      await make('+15550100003', ['VIP', 'V.I.P.']),
    ]
    const { data } = (await call('crm_list_tags')).body
    const idOf = (name: string) => data.find((tag: { name: string }) => tag.name === name).id as string
    const [vip, other, press] = [idOf('VIP'), idOf('V.I.P.'), idOf('Press')]
    const filter = {
      or: [
        { tags: { some: { name: { in: ['V.I.P.', 'VIP', 'Press'] } } } },
        { not: { tags: { none: { id: { eq: other } } } } },
        { and: [{ tags: { every: { name: { contains: 'V.I.P.' } } } }, { name: { eq: 'V.I.P.' } }] },
      ],
    }
    const saved = (await call('crm_create_saved_filter', { name: 'Important', filter })).body.saved_filter
    const untouched = { tags: { some: { id: { in: [press] } } } }
    const { id: pressFilter } = (await call('crm_create_saved_filter', { name: 'Press', filter: untouched }))
      .body.saved_filter
    const input = { tag_id: vip, other_tag_id: other }
    assert.equal((await call('crm_merge_tags', input)).status, 428)
    const expected = { tag: { id: vip, name: 'VIP' }, other_tag_id: other, contacts: 1, conversations: 0 }
    const rehearsed = await call('crm_merge_tags', { ...input, dry_run: true })
    assert.deepEqual(rehearsed.body, { ...expected, saved_filters: 1, dry_run: true })
    if (!door.confirms) return
    const merged = await call('crm_merge_tags', input, confirm)
    assert.deepEqual([merged.status, merged.body], [200, { ...expected, saved_filters: 1 }])
    const namesOf = async (id: string) =>
      (await call('crm_get_contact', { contact_id: id })).body.tags.map(({ name }: { name: string }) => name)
    assert.deepEqual(
      [await namesOf(a), await namesOf(b), await namesOf(c)],
      [['VIP'], ['Press', 'VIP'], ['VIP']],
    )
    const counts = (await call('crm_list_tags')).body.data
    assert.deepEqual(
      counts.map((tag: { name: string; contacts_count: number }) => [tag.name, tag.contacts_count]),
      [
        ['Press', 1],
        ['VIP', 3],
      ],
    )
    const now = (await call('crm_get_saved_filter', { saved_filter_id: saved.id })).body
    assert.deepEqual(now.filter, {
      or: [
        { tags: { some: { name: { in: ['VIP', 'Press'] } } } },
        { not: { tags: { none: { id: { eq: vip } } } } },
        { and: [{ tags: { every: { name: { contains: 'V.I.P.' } } } }, { name: { eq: 'V.I.P.' } }] },
      ],
    })
    assert.notEqual(now.version, saved.version)
    const kept = (await call('crm_get_saved_filter', { saved_filter_id: pressFilter })).body
    assert.deepEqual(kept.filter, untouched)
    assert.equal((await call('crm_merge_tags', input, confirm)).status, 404)
  })

  test('are two that exist', async ({ call, door }) => {
    const { contact } = (await call('crm_upsert_contact', { phone: '+15550100001', tags: ['VIP'] })).body
    const id = contact.tags[0].id as string
    const merge = async (input: Record<string, unknown>) =>
      (
        await call(
          'crm_merge_tags',
          door.confirms ? input : { ...input, dry_run: true },
          door.confirms ? confirm : {},
        )
      ).status
    assert.equal(await merge({ tag_id: id, other_tag_id: id }), 400)
    assert.equal(await merge({ tag_id: id, other_tag_id: '999999999' }), 404)
    assert.equal(await merge({ tag_id: '999999999', other_tag_id: id }), 404)
  })
})

everyDatabase('Tags of very many', (server) => {
  it('are merged in statements that each change few enough rows to end in time', async () => {
    const workspace = await makeWorkspace(server())
    const run = doAs(server(), workspace.owner.key)
    const [kept, other] = [await makeTag(run, 'Kept', 1), await makeTag(run, 'Other', 2)]
    const { db } = server()
    const give = (table: string, column: string, tag: string, from: number, to: number) =>
      sql`insert into ${sql.table(table)} (workspace_id, ${sql.ref(column)}, tag_id)
        select ${workspace.id}::bigint, n, ${tag}::bigint
        from generate_series(${from}::bigint, ${to}::bigint) as n`.execute(db)
    const first = 7_000_000_000
    for (const [table, column] of linkTables) {
      await give(table, column, kept, first, first + 999)
      await give(table, column, other, first, first + 60_999)
      await limitStatements(db, table)
    }
    try {
      const merged = await run('crm_merge_tags', { tag_id: kept, other_tag_id: other })
      assert.deepEqual([merged.contacts, merged.conversations], [60_001, 60_000])
    } finally {
      for (const [table] of linkTables)
        for (const event of ['update', 'delete', 'insert'])
          await sql`drop trigger ${sql.ref(`limited_${event}`)} on ${sql.table(table)}`.execute(db)
      await sql`drop function limit_statement()`.execute(db)
    }
    const [counted] = (await run('crm_list_tags', { search: 'Kept' })).data
    assert.equal(counted.contacts_count, 60_002)
    for (const [table] of linkTables) {
      const { rows } = await sql<{ tag_id: string; n: number }>`
        select tag_id, count(*)::int as n from ${sql.table(table)} where workspace_id = ${workspace.id}
        group by tag_id`.execute(db)
      assert.deepEqual([...rows], [{ tag_id: kept, n: table === 'contact_tags' ? 61_002 : 61_000 }])
    }
  })
})

/** Resolves when a statement waits for a lock. */
const untilOneWaits = async (db: Db, statement: string): Promise<void> => {
  for (let isWaiting = false; !isWaiting;) {
    const { rows } = await sql`
      select from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'
        and query like ${`%${statement}%`}`.execute(db)
    isWaiting = rows.length > 0
  }
}

everyDatabase('A tag into which another one is merged', (server, database) => {
  it(
    'is given to contacts meanwhile',
    { skip: database === 'embedded' && 'one statement runs at a time' },
    async () => {
      const workspace = await makeWorkspace(server())
      const run = doAs(server(), workspace.owner.key)
      const { db } = server()
      const [kept, other] = [await makeTag(run, 'Kept', 1), await makeTag(run, 'Other', 2)]
      const { id: withBoth } = await run('crm_upsert_contact', { phone: '+15550109003', tags: ['Other'] })
      const { id: plain } = await run('crm_upsert_contact', { phone: '+15550109004' })
      const merge = await db.transaction().execute(async (tx) => {
        // The merge waits for this row in the middle of its work.
        await sql`insert into contact_tags (workspace_id, tag_id, contact_id)
          values (${workspace.id}, ${kept}, ${withBoth})`.execute(tx)
        const merging = run('crm_merge_tags', { tag_id: kept, other_tag_id: other })
        await Promise.race([untilOneWaits(db, 'contact_tags'), merging])
        await run('crm_tag_contacts', { contact_ids: [plain], tags: ['Kept'] })
        return { merging }
      })
      assert.equal((await merge.merging).contacts, 1)
      const [counted] = (await run('crm_list_tags', {})).data
      const { rows } = await sql<{ n: number }>`
        select count(*)::int as n from contact_tags
        where workspace_id = ${workspace.id} and tag_id = ${kept}`.execute(db)
      // The row that was written directly is not counted.
      assert.deepEqual([rows[0]!.n, counted.contacts_count], [4, 3])
    },
  )
})

everyDatabase('Labels that end while they are given', (server, database) => {
  const rounds = database === 'embedded' ? 2 : 10

  it('a merge of tags leaves nothing of the other, nor of contacts that are deleted meanwhile', async () => {
    const workspace = await makeWorkspace(server())
    const run = doAs(server(), workspace.owner.key)
    const call = callAs(server(), workspace.owner.key)
    for (let round = 0; round < rounds; round++) {
      const digits = (i: number) => `+155503${String(round).padStart(2, '0')}00${i}`
      const ids = []
      for (let i = 0; i < 4; i++)
        ids.push(
          (await run('crm_upsert_contact', { phone: digits(i), tags: [`Other ${round}`] })).id as string,
        )
      await run('crm_upsert_contact', { phone: digits(9), tags: [`Kept ${round}`] })
      const tags = (await run('crm_list_tags', { search: `${round}` })).data as { id: string; name: string }[]
      const idOf = (name: string) => tags.find((tag) => tag.name === name)!.id
      const [kept, other] = [idOf(`Kept ${round}`), idOf(`Other ${round}`)]
      const [merged, ...rest] = await Promise.all([
        call('crm_merge_tags', { tag_id: kept, other_tag_id: other }, confirm),
        ...ids.slice(0, 2).map((id) => call('crm_delete_contact', { contact_id: id }, confirm)),
        call('crm_upsert_contact', { phone: digits(5), tags: [`Other ${round}`] }),
        call('crm_merge_contacts', { contact_id: ids[2], other_contact_id: ids[3] }, confirm),
      ])
      for (const { status, text } of [merged!, ...rest]) assert.equal(status, 200, text)
      const { rows } = await sql`
        select l.tag_id from contact_tags l
        where l.workspace_id = ${workspace.id} and (
          not exists (select from contacts c where c.workspace_id = l.workspace_id and c.id = l.contact_id)
          or not exists (select from tags t where t.workspace_id = l.workspace_id and t.id = l.tag_id))`.execute(
        server().db,
      )
      assert.deepEqual([...rows], [])
      const [counted] = (await run('crm_list_tags', { search: `Kept ${round}` })).data
      const found = await run('crm_count_contacts', { filter: { tags: { some: { id: { eq: kept } } } } })
      assert.equal(counted.contacts_count, found.count)
    }
  })

  it('a tag that is deleted while a call gives it is made again, or was given before', async () => {
    const workspace = await makeWorkspace(server())
    const run = doAs(server(), workspace.owner.key)
    const call = callAs(server(), workspace.owner.key)
    for (let round = 0; round < 2 * rounds; round++) {
      const name = `Brief ${round}`
      await run('crm_upsert_contact', { phone: '+15550100001', tags: [name] })
      const [{ id }] = (await run('crm_list_tags', { search: name })).data
      const phones = [2, 3, 4, 5].map((i) => `+15550${String(round).padStart(2, '0')}400${i}`)
      const [deleted, ...replies] = await Promise.all([
        call('crm_delete_tag', { tag_id: id }, confirm),
        ...phones.map((phone) => call('crm_upsert_contact', { phone, tags: [name] })),
      ])
      assert.equal(deleted!.status, 200)
      // Each answer has the tag: none was dropped without a word.
      for (const { status, body } of replies) {
        assert.equal(status, 200)
        assert.deepEqual(
          body.contact.tags.map((tag: { name: string }) => tag.name),
          [name],
        )
      }
    }
  })

  it('a group that is deleted while contacts are merged is on none', async () => {
    const workspace = await makeWorkspace(server())
    const run = doAs(server(), workspace.owner.key)
    const call = callAs(server(), workspace.owner.key)
    for (let round = 0; round < rounds; round++) {
      const { group } = await run('crm_create_group', { name: `Friends ${round}` })
      const make = async (i: number, groups: string[]) =>
        (await run('crm_upsert_contact', { phone: `+15550${round + 10}500${i}`, group_ids: groups }))
          .id as string
      const [a, b] = [await make(1, []), await make(2, [group.id])]
      const replies = await Promise.all([
        call('crm_merge_contacts', { contact_id: a, other_contact_id: b }, confirm),
        call('crm_delete_group', { group_id: group.id }, confirm),
      ])
      for (const { status, text } of replies) assert.equal(status, 200, text)
      const left = server().db.selectFrom('contact_groups').select('contact_id')
      assert.deepEqual(await left.where('group_id', '=', group.id).execute(), [])
    }
  })
})
