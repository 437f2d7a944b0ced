import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { sql } from 'kysely'
import { callAs, doAs } from '../calls.ts'
import { everyDatabase, everyDoor, type Reply } from '../doors.ts'
import { runs } from '../level.ts'
import { makeWorkspace, type TestServer } from '../servers.ts'
import { recordTexts } from '../statements.ts'
import type { Db } from '../../storage/database.ts'

const PHONES = ['+15550100071', '+15550100072'] as const
const NAMES = ['VIP', 'vip', 'Press', '7'] as const
const fold = (name: string): string => name.toLowerCase()

/** `ref`: a name, or the tag that has it by its id. */
const ref = fc.record({ name: fc.constantFrom(...NAMES), byId: fc.boolean() })
const contact = fc.nat(PHONES.length - 1)
const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('tag' as const),
      contact,
      refs: fc.array(ref, { minLength: 1, maxLength: 2 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('untag' as const),
      contact,
      refs: fc.array(ref, { minLength: 1, maxLength: 2 }),
    }),
  },
  fc.record({
    do: fc.constant('rename' as const),
    from: fc.constantFrom(...NAMES),
    to: fc.constantFrom(...NAMES),
  }),
  fc.record({ do: fc.constant('delete tag' as const), name: fc.constantFrom(...NAMES) }),
  fc.record({ do: fc.constant('delete contact' as const), contact }),
)

type Tag = { id: string; name: string; contacts: Set<string> }
type Told = { type: string; contact: string; tags: string[] }

/** What tags and contacts should be, after the same calls. */
class Model {
  tags: Tag[] = []
  gone = new Set<string>()
  told: Told[] = []

  byName = (name: string): Tag | undefined => this.tags.find((tag) => fold(tag.name) === fold(name))
  /** Digits are an id where a tag has it, else a name. */
  find = (given: string | number): Tag | undefined =>
    this.tags.find(({ id }) => id === String(given)) ??
    (typeof given === 'string' ? this.byName(given) : undefined)

  tell(type: string, contactId: string, tags: readonly Tag[]): void {
    if (tags.length > 0) this.told.push({ type, contact: contactId, tags: tags.map(({ name }) => name) })
  }
}

/** Makes the step through the API and in the model. */
const makeStep = async (
  run: ReturnType<typeof doAs>,
  model: Model,
  ids: readonly string[],
  made: typeof step extends fc.Arbitrary<infer S> ? S : never,
): Promise<void> => {
  if (made.do === 'rename') {
    const tag = model.byName(made.from)
    const other = model.byName(made.to)
    if (!tag || (other && other !== tag)) return
    await run('crm_rename_tag', { tag_id: tag.id, name: made.to })
    tag.name = made.to
  } else if (made.do === 'delete tag') {
    const tag = model.byName(made.name)
    if (!tag) return
    await run('crm_delete_tag', { tag_id: tag.id })
    model.tags.splice(model.tags.indexOf(tag), 1)
  } else if (made.do === 'delete contact') {
    const id = ids[made.contact]!
    if (model.gone.has(id)) return
    await run('crm_delete_contacts', { contact_ids: [id] })
    model.gone.add(id)
    for (const tag of model.tags) tag.contacts.delete(id)
  } else {
    const id = ids[made.contact]!
    const given = made.refs.map(({ name, byId }) => {
      const tag = byId ? model.byName(name) : undefined
      return tag ? Number(tag.id) : name
    })
    const isThere = !model.gone.has(id)
    const answer = await run(made.do === 'tag' ? 'crm_tag_contacts' : 'crm_untag_contacts', {
      contact_ids: [id],
      tags: given,
    })
    assert.deepEqual([answer.requested, answer.succeeded, answer.failed], isThere ? [1, 1, 0] : [1, 0, 1])
    if (!isThere) return
    if (made.do === 'tag')
      for (const name of given.filter((one) => !model.find(one)).map(String)) {
        if (model.find(name)) continue
        const { data } = await run('crm_list_tags', { search: name })
        const created = data.find((tag: Tag) => fold(tag.name) === fold(name))
        model.tags.push({ id: created.id, name, contacts: new Set() })
      }
    const meant = [...new Set(given.flatMap((one) => model.find(one) ?? []))]
    const changed = meant.filter(({ contacts }) => contacts.has(id) === (made.do === 'untag'))
    for (const { contacts } of changed) contacts[made.do === 'tag' ? 'add' : 'delete'](id)
    model.tell(made.do === 'tag' ? 'contact.tags_added/1' : 'contact.tags_removed/1', id, changed)
  }
}

const listTold = async (run: ReturnType<typeof doAs>): Promise<Told[]> => {
  const types = ['contact.tags_added/1', 'contact.tags_removed/1']
  const { data } = await run('events_list', { types, limit: 100 })
  return data.map((event: { type: string; data: { contact_ids: string[]; tags: { name: string }[] } }) => ({
    type: event.type,
    contact: event.data.contact_ids.join(),
    tags: event.data.tags.map(({ name }) => name),
  }))
}

everyDatabase('Labels of one contact', (server) => {
  it('change as asked, whatever happened to the labels and the contact since they were last named', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 14 }), async (steps) => {
        const workspace = await makeWorkspace(server())
        const run = doAs(server(), workspace.owner.key)
        const ids: string[] = []
        for (const phone of PHONES) ids.push((await run('crm_upsert_contact', { phone })).id)
        const model = new Model()
        for (const one of steps) await makeStep(run, model, ids, one)
        const { data } = await run('crm_list_tags', { limit: 100 })
        const shown = data.map((tag: Tag & { contacts_count: number }) => [tag.name, tag.contacts_count])
        const expected = model.tags.map(({ name, contacts }) => [name, contacts.size])
        assert.deepEqual(new Map(shown), new Map(expected as [string, number][]))
        for (const id of ids.filter((one) => !model.gone.has(one))) {
          const { tags } = await run('crm_get_contact', { contact_id: id })
          const has = model.tags.filter(({ contacts }) => contacts.has(id)).map((tag) => tag.id)
          assert.deepEqual(tags.map((tag: Tag) => tag.id).toSorted(), has.toSorted())
        }
        assert.deepEqual(await listTold(run), model.told)
      }),
      { numRuns: runs(30, 300) },
    )
  })
})

/** Returns the statements that `work` sends and that are about labels. */
const labelStatements = (work: () => Promise<unknown>): Promise<string[]> =>
  recordTexts(work, (text) => /contact_(tags|groups)|from "?(tags|groups)/.test(text))

const labelOf = async ({
  server,
  workspace,
}: {
  server: TestServer
  workspace: { owner: { key: string } }
}) => {
  const run = doAs(server, workspace.owner.key)
  const { id } = await run('crm_upsert_contact', { phone: PHONES[0] })
  const { group } = await run('crm_create_group', { name: 'Regulars' })
  await run('crm_upsert_contact', { phone: PHONES[1], tags: ['VIP'], group_ids: [group.id] })
  return {
    id,
    tags: { contact_ids: [id], tags: ['vip'] },
    groups: { contact_ids: [id], group_id: group.id },
  }
}

everyDoor('Labels of one contact', (test) => {
  test('are changed by one statement where the labels were named before', async (scene) => {
    const { call } = scene
    const { id, tags, groups } = await labelOf(scene)
    const nobody = { contact_ids: ['999999999'] }
    await call('crm_tag_contacts', { ...tags, ...nobody })
    await call('crm_add_contacts_to_group', { ...groups, ...nobody })
    const calls: [string, Record<string, unknown>][] = [
      ['crm_tag_contacts', tags],
      ['crm_tag_contacts', tags],
      ['crm_add_contacts_to_group', groups],
      ['crm_untag_contacts', tags],
      ['crm_remove_contacts_from_group', groups],
      ['crm_remove_contacts_from_group', groups],
    ]
    for (const [op, input] of calls) {
      let answer: Reply | undefined
      const texts = await labelStatements(async () => {
        answer = await call(op, input)
      })
      assert.deepEqual([answer!.body.succeeded, answer!.body.matched, answer!.body.failed], [1, 1, 0])
      assert.equal(texts.length, 1, texts.join('\n'))
    }
    const { body } = await call('events_list', { limit: 100 })
    assert.deepEqual(
      body.data
        .map(({ type, data }: { type: string; data: { contact_ids?: string[] } }) => [
          type,
          data.contact_ids?.includes(id) ?? false,
        ])
        .filter(([, isIt]: [string, boolean]) => isIt)
        .map(([type]: [string]) => type),
      [
        'contact.tags_added/1',
        'contact.groups_added/1',
        'contact.tags_removed/1',
        'contact.groups_removed/1',
      ],
    )
  })

  test('are read where a dry run made them, which was undone', async (scene) => {
    const { call } = scene
    const { tags } = await labelOf(scene)
    const input = { ...tags, tags: ['vip', 'Fresh'] }
    assert.equal((await call('crm_tag_contacts', { ...input, dry_run: true })).body.succeeded, 1)
    let answer: Reply | undefined
    const texts = await labelStatements(async () => {
      answer = await call('crm_tag_contacts', input)
    })
    assert.equal(answer!.body.succeeded, 1)
    assert.ok(!texts.some((text) => text.includes('as_assumed')), 'the tag of the dry run was taken to exist')
  })

  test('are read where they are gone since, and then not assumed again', async (scene) => {
    const { call, server, workspace } = scene
    const { groups } = await labelOf(scene)
    const run = doAs(server, workspace.owner.key)
    await call('crm_add_contacts_to_group', groups)
    await run('crm_delete_group', { group_id: groups.group_id })
    for (const isAssumed of [true, false]) {
      let answer: Reply | undefined
      const texts = await labelStatements(async () => {
        answer = await call('crm_add_contacts_to_group', groups)
      })
      assert.equal(answer!.status, 404)
      assert.equal(
        texts.some((text) => text.includes('as_assumed')),
        isAssumed,
      )
    }
  })
})

everyDoor('Names of tags and groups', (test) => {
  test('a tag is renamed, and stays on its contacts', async ({ call }) => {
    const { body: ada } = await call('crm_upsert_contact', { phone: '+15550100042', tags: ['VIP', 'Press'] })
    const { body: list } = await call('crm_list_tags')
    const [press, vip] = list.data as [{ id: string }, { id: string }]
    const rehearsed = await call('crm_rename_tag', { tag_id: vip.id, name: 'Gold', dry_run: true })
    assert.deepEqual(rehearsed.body, { tag: { id: vip.id, name: 'Gold' }, changed: true, dry_run: true })
    assert.equal((await call('crm_rename_tag', { tag_id: vip.id, name: ' Gold ' })).body.changed, true)
    assert.equal((await call('crm_rename_tag', { tag_id: vip.id, name: 'Gold' })).body.changed, false)
    // Only the case differs.
    assert.equal((await call('crm_rename_tag', { tag_id: vip.id, name: 'GOLD' })).body.changed, true)
    const { tags } = (await call('crm_get_contact', { contact_id: ada.id })).body
    assert.deepEqual(
      tags.map(({ id, name }: { id: string; name: string }) => [id, name]),
      [
        [vip.id, 'GOLD'],
        [press.id, 'Press'],
      ],
    )
    const taken = await call('crm_rename_tag', { tag_id: vip.id, name: 'press' })
    assert.deepEqual([taken.status, taken.body.reason], [409, 'name_taken'])
    assert.equal((await call('crm_rename_tag', { tag_id: '999999999', name: 'X' })).status, 404)
    assert.equal((await call('crm_rename_tag', { tag_id: vip.id, name: ' ' })).status, 400)
    // The old name is free.
    const again = await call('crm_upsert_contact', { phone: '+15550100042', tags: ['VIP'] })
    assert.equal(again.body.contact.tags.length, 3)
  })

  test('a deleted tag is gone from contacts and conversations', async ({ call, door: { confirms } }) => {
    const phone = '+15550100043'
    const { body: ada } = await call('crm_upsert_contact', { phone, tags: ['VIP', 'Press'] })
    const { data } = (await call('crm_list_tags')).body
    const vip = data.find(({ name }: { name: string }) => name === 'VIP')
    const remove = (input: Record<string, unknown> = {}) =>
      call('crm_delete_tag', { tag_id: vip.id, ...input }, { confirm: 'delete' })
    const { id: saved } = (
      await call('crm_create_saved_filter', {
        name: 'VIPs',
        filter: { tags: { some: { name: { eq: 'VIP' } } } },
      })
    ).body.saved_filter
    const expected = { id: vip.id, deleted: true, saved_filters: [{ id: saved, name: 'VIPs' }] }
    assert.deepEqual((await remove({ dry_run: true })).body, { ...expected, dry_run: true })
    assert.equal((await call('crm_delete_tag', { tag_id: vip.id })).status, 428)
    if (!confirms) return
    assert.deepEqual((await remove()).body, expected)
    assert.equal((await remove()).status, 404)
    const namesOf = async () =>
      (await call('crm_get_contact', { contact_id: ada.id })).body.tags.map(
        ({ name }: { name: string }) => name,
      )
    assert.deepEqual(await namesOf(), ['Press'])
    const byId = await call('crm_tag_contacts', { tags: [Number(vip.id)], contact_ids: [ada.id] })
    assert.deepEqual([byId.status, byId.body.errors[0].code], [400, 'unknown_tag'])
    // The name is free, for a tag that no contact has.
    const again = await call('crm_upsert_contact', { phone: '+15550100044', tags: ['vip'] })
    assert.notEqual(again.body.contact.tags[0].id, vip.id)
    assert.deepEqual(await namesOf(), ['Press'])
    const counts = (await call('crm_list_tags')).body.data
    assert.deepEqual(
      counts.map((tag: { name: string; contacts_count: number }) => [tag.name, tag.contacts_count]),
      [
        ['Press', 1],
        ['vip', 1],
      ],
    )
  })

  test('a group changes its name and emoji', async ({ call }) => {
    const { group } = (await call('crm_create_group', { name: 'Friends', emoji: '⭐' })).body
    await call('crm_create_group', { name: 'Foes' })
    const update = async (input: Record<string, unknown>) => {
      const { status, body } = await call('crm_update_group', { group_id: group.id, ...input })
      return [status, body.group ?? body.reason, body.changes]
    }
    assert.deepEqual(await update({ name: 'Regulars' }), [200, { ...group, name: 'Regulars' }, ['name']])
    assert.deepEqual(await update({ name: 'Regulars', emoji: '⭐' }), [
      200,
      { ...group, name: 'Regulars' },
      [],
    ])
    assert.deepEqual(await update({ emoji: null }), [
      200,
      { id: group.id, name: 'Regulars', emoji: null },
      ['emoji'],
    ])
    assert.deepEqual((await update({ name: 'FOES' })).slice(0, 2), [409, 'name_taken'])
    assert.equal((await update({ emoji: 'no emoji' }))[0], 400)
    assert.equal((await call('crm_update_group', { group_id: '999999999', name: 'X' })).status, 404)
  })
})

everyDatabase('Names of tags and groups', (server, database) => {
  it('each change writes one event, with what was before', async () => {
    const workspace = await makeWorkspace(server())
    const run = doAs(server(), workspace.owner.key)
    await run('crm_upsert_contact', { phone: '+15550100042', tags: ['VIP'] })
    const [{ id: tag_id }] = (await run('crm_list_tags')).data
    const { group } = await run('crm_create_group', { name: 'Friends' })
    for (const name of ['Gold', 'Gold']) await run('crm_rename_tag', { tag_id, name })
    for (const emoji of ['⭐', '⭐']) await run('crm_update_group', { group_id: group.id, emoji })
    const { data } = await run('events_list', { types: ['tag.renamed', 'group.updated'] })
    assert.deepEqual(
      data.map(({ type, data: { tag, group: changed, previous } }: any) => [type, tag ?? changed, previous]),
      [
        ['tag.renamed/1', { id: tag_id, name: 'Gold', previous_name: 'VIP' }, undefined],
        ['group.updated/1', { ...group, emoji: '⭐' }, { name: 'Friends', emoji: null }],
      ],
    )
  })

  it('deleting a tag while contacts get it leaves it on none', async () => {
    const workspace = await makeWorkspace(server())
    const run = doAs(server(), workspace.owner.key)
    const call = callAs(server(), workspace.owner.key)
    const { id } = await run('crm_upsert_contact', { phone: '+15550100042' })
    for (let round = 0; round < (database === 'embedded' ? 2 : 10); round++) {
      const name = `Short-lived ${round}`
      const old = { phone: `+155502${String(round).padStart(2, '0')}000`, tags: [name] }
      const { id: from } = await run('crm_upsert_contact', old)
      const tag = Number((await run('crm_list_tags', { search: name })).data[0].id)
      const upserts = Array.from({ length: 6 }, (_, i) =>
        call('crm_upsert_contact', { phone: `+155501${String(round).padStart(2, '0')}00${i}`, tags: [tag] }),
      )
      const [deleted, tagged, ...replies] = await Promise.all([
        call('crm_delete_tag', { tag_id: String(tag) }, { confirm: 'delete' }),
        call('crm_tag_contacts', { tags: [tag], contact_ids: [id, from] }),
        ...upserts,
      ])
      assert.equal(deleted.status, 200)
      for (const { status } of [tagged!, ...replies])
        assert.ok(status === 200 || status === 400, String(status))
      const left = server().db.selectFrom('contact_tags').select('contact_id')
      assert.deepEqual(await left.where('tag_id', '=', String(tag)).execute(), [])
    }
  })

  it('of two who take a name at the same time one gets it', async () => {
    const workspace = await makeWorkspace(server())
    const run = doAs(server(), workspace.owner.key)
    await run('crm_upsert_contact', { phone: '+15550100042', tags: ['A', 'B', 'C', 'D'] })
    const call = callAs(server(), workspace.owner.key)
    const statuses = await Promise.all(
      (await run('crm_list_tags')).data.map(
        async ({ id }: { id: string }) => (await call('crm_rename_tag', { tag_id: id, name: 'Same' })).status,
      ),
    )
    assert.deepEqual(statuses.toSorted(), [200, 409, 409, 409])
  })
})

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

everyDoor('Saved filters that name a tag or a group', (test) => {
  test('follow it to its new name, and mean the same contacts', async ({ call }) => {
    const { group } = (await call('crm_create_group', { name: 'Club' })).body
    for (const [n, tags] of [['Do not call'], ['VIP', 'Do not call'], ['VIP'], []].entries())
      await call('crm_upsert_contact', {
        phone: `+1555010020${n}`,
        name: 'Ada',
        tags,
        group_ids: n === 1 ? [] : [group.id],
      })
    const filter = {
      and: [
        { not: { tags: { some: { name: { in: ['Do not call', 'Other'] } } } } },
        { groups: { some: { name: { eq: 'Club' } } } },
        { name: { ne: 'Do not call' } },
      ],
    }
    const { id } = (await call('crm_create_saved_filter', { name: 'To call', filter })).body.saved_filter
    const count = async () => (await call('crm_count_contacts', { saved_filter_id: id })).body.count
    assert.equal(await count(), 2)
    const { data } = (await call('crm_list_tags', { search: 'do not call' })).body
    const rename = { tag_id: data[0].id, name: 'Never call' }
    const named = [{ id, name: 'To call' }]
    assert.deepEqual((await call('crm_rename_tag', { ...rename, dry_run: true })).body.saved_filters, named)
    await call('crm_rename_tag', rename)
    assert.equal(
      (await call('crm_update_group', { group_id: group.id, name: 'Circle' })).body.changes[0],
      'name',
    )
    assert.equal(await count(), 2)
    assert.deepEqual((await call('crm_get_saved_filter', { saved_filter_id: id })).body.filter, {
      and: [
        { not: { tags: { some: { name: { in: ['Never call', 'Other'] } } } } },
        { groups: { some: { name: { eq: 'Circle' } } } },
        { name: { ne: 'Do not call' } },
      ],
    })
  })
})

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
    const named = [{ id: saved.id, name: 'Important' }]
    assert.deepEqual(rehearsed.body, { ...expected, saved_filters: named, dry_run: true })
    if (!door.confirms) return
    const merged = await call('crm_merge_tags', input, confirm)
    assert.deepEqual([merged.status, merged.body], [200, { ...expected, saved_filters: named }])
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
