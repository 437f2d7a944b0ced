import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { doAs } from '../calls.ts'
import { everyDatabase, everyDoor, type Reply } from '../doors.ts'
import { runs } from '../level.ts'
import { makeWorkspace, type TestServer } from '../servers.ts'
import { recordTexts } from '../statements.ts'

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
