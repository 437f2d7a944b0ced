import assert from 'node:assert/strict'
import { it } from 'node:test'
import { callAs, doAs } from '../calls.ts'
import { everyDatabase, everyDoor } from '../doors.ts'
import { makeWorkspace } from '../servers.ts'

type Named = { name: string; contacts_count: number }
const toCounts = (body: { data: Named[] }) => body.data.map((row) => [row.name, row.contacts_count])

everyDoor('Groups', (test) => {
  test('create once per name, add and remove contacts, delete', async ({ call, door }) => {
    const created = await call('crm_create_group', { name: ' Stammkunden Süd ', emoji: '⭐' })
    assert.equal(created.body.created, true)
    const { group } = created.body
    assert.deepEqual(group, { id: group.id, name: 'Stammkunden Süd', emoji: '⭐' })
    for (const name of ['Stammkunden Süd', 'STAMMKUNDEN SÜD', 'stammkunden su\u0308d']) {
      assert.deepEqual(
        (await call('crm_create_group', { name, emoji: '🔥' })).body,
        { group, created: false },
        name,
      )
    }
    const dryRun = await call('crm_create_group', { name: 'Other', dry_run: true })
    assert.deepEqual(dryRun.body, {
      group: { id: null, name: 'Other', emoji: null },
      created: true,
      dry_run: true,
    })
    assert.deepEqual(toCounts((await call('crm_list_groups')).body), [['Stammkunden Süd', 0]])

    const ids: string[] = []
    for (const n of [1, 2, 3])
      ids.push((await call('crm_upsert_contact', { phone: `+1555010000${n}` })).body.id)
    const added = await call('crm_add_contacts_to_group', {
      group_id: group.id,
      contact_ids: [ids[0], ids[1], Number(ids[1]), '999999999'],
    })
    assert.deepEqual(
      {
        ...added.body,
        failures: added.body.failures.map((f: { id: string; code: string }) => [f.id, f.code]),
      },
      {
        requested: 3,
        succeeded: 2,
        failed: 1,
        failures: [['999999999', 'not_found']],
        stopped_early: false,
        matched: 2,
      },
    )
    const again = await call('crm_add_contacts_to_group', { group_id: group.id, contact_ids: ids })
    assert.deepEqual([again.body.succeeded, again.body.failed], [3, 0])
    assert.deepEqual(toCounts((await call('crm_list_groups', { search: 'süd' })).body), [
      ['Stammkunden Süd', 3],
    ])
    await call('crm_remove_contacts_from_group', { group_id: group.id, contact_ids: [ids[0], ids[0]] })
    assert.deepEqual(
      (await call('crm_search_contacts', { group_ids: [group.id] })).body.data.map(
        (c: { id: string }) => c.id,
      ),
      [ids[2], ids[1]],
    )
    assert.deepEqual(
      (await call('crm_search_contacts', { not_in_any_group: true })).body.data.map(
        (c: { id: string }) => c.id,
      ),
      [ids[0]],
    )
    assert.deepEqual((await call('crm_get_contact', { contact_id: ids[1] })).body.groups, [
      { id: group.id, name: 'Stammkunden Süd' },
    ])

    const deleted = await call('crm_delete_group', { group_id: group.id }, { confirm: 'delete' })
    if (!door.confirms) {
      assert.equal(deleted.status, 428)
      return
    }
    assert.deepEqual(deleted.body, { id: group.id, deleted: true, saved_filters: [] })
    assert.deepEqual((await call('crm_list_groups')).body.data, [])
    assert.equal((await call('crm_search_contacts', { not_in_any_group: true })).body.total, 3)
    for (const op of ['crm_add_contacts_to_group', 'crm_remove_contacts_from_group'])
      assert.equal((await call(op, { group_id: group.id, contact_ids: ids })).status, 404)
    assert.equal((await call('crm_delete_group', { group_id: group.id }, { confirm: 'delete' })).status, 404)
    // The name can be used again, and the new group has no contacts.
    const recreated = (await call('crm_create_group', { name: 'stammkunden süd' })).body
    assert.equal(recreated.created, true)
    assert.equal((await call('crm_search_contacts', { group_ids: [recreated.group.id] })).body.total, 0)
  })
})

everyDatabase('Groups and tags', (server) => {
  const createScene = async () => {
    const workspace = await makeWorkspace(server())
    return { run: doAs(server(), workspace.owner.key), call: callAs(server(), workspace.owner.key) }
  }

  it('the emoji of a group is one grapheme', async () => {
    const { call, run } = await createScene()
    const valid = '⭐ ❤ ❤️ 👍🏽 🇩🇪 🏴󠁧󠁢󠁥󠁮󠁧󠁿 👩‍🚀 👨‍👩‍👧‍👦 👩🏽‍❤️‍💋‍👨🏿 🏳️‍🌈 1️⃣ #️⃣ 🫶🏿 ☎️'.split(' ')
    for (const [i, emoji] of valid.entries()) {
      assert.equal((await run('crm_create_group', { name: `One ${i}`, emoji })).group.emoji, emoji)
    }
    for (const emoji of [
      '',
      '1',
      '#',
      '*',
      'a',
      'é',
      '👍👍',
      '⭐⭐',
      '⭐ ',
      ' ⭐',
      '🇩',
      '🇩🇪🇫🇷',
      '\u200d',
      '\ufe0f',
      '👩‍',
      'ok👍',
      '漢',
      '👍x',
      '-',
      '\n⭐',
    ]) {
      const { status, body } = await call('crm_create_group', { name: 'Rejected', emoji })
      assert.equal(status, 400, JSON.stringify(emoji))
      assert.deepEqual(
        [...new Set(body.errors.map((e: { pointer: string }) => e.pointer))],
        ['#/emoji'],
        JSON.stringify(emoji),
      )
    }
    assert.equal((await run('crm_list_groups')).total, valid.length)
  })

  it('names have 1 to 100 characters after trimming', async () => {
    const { call } = await createScene()
    for (const name of ['', '   ', 'x'.repeat(101), '😀'.repeat(101)])
      assert.equal((await call('crm_create_group', { name })).status, 400)
    for (const name of ['x', '😀'.repeat(100), ` ${'y'.repeat(100)} `])
      assert.equal((await call('crm_create_group', { name })).body.created, true)
  })

  it('lists are sorted by name, ignoring case', async () => {
    const { run } = await createScene()
    for (const name of ['beta', 'Alpha', 'Éclair', 'gamma', 'Delta', '漢字', '%', '50%'])
      await run('crm_create_group', { name })
    assert.deepEqual(
      toCounts(await run('crm_list_groups')).map(([name]) => name),
      ['%', '50%', 'Alpha', 'beta', 'Delta', 'gamma', 'Éclair', '漢字'],
    )
    assert.deepEqual(
      toCounts(await run('crm_list_groups', { search: '%' })).map(([name]) => name),
      ['%', '50%'],
    )
    assert.deepEqual(
      toCounts(await run('crm_list_groups', { search: 'ÉCLAIR' })).map(([name]) => name),
      ['Éclair'],
    )
    assert.equal((await run('crm_list_groups', { search: '_' })).total, 0)
  })

  it('a tag keeps its first spelling', async () => {
    const { run } = await createScene()
    await run('crm_upsert_contact', { phone: '+15550100001', tags: ['Straße', 'STRASSE', 'vip', 'VIP'] })
    await run('crm_upsert_contact', { phone: '+15550100002', tags: ['strasse', 'Vip', 'ΟΔΟΣ'] })
    await run('crm_tag_contacts', {
      contact_ids: [(await run('crm_search_contacts')).data[0].id],
      tags: ['οδος', 'οδοσ'],
    })
    assert.deepEqual(toCounts(await run('crm_list_tags')), [
      ['Straße', 2],
      ['vip', 2],
      ['ΟΔΟΣ', 1],
    ])
  })

  it('a tag reference is an id when it matches one, else a name', async () => {
    const { run, call } = await createScene()
    await run('crm_upsert_contact', { phone: '+15550100001', tags: ['VIP'] })
    const { id } = (await run('crm_list_tags')).data[0]
    const tagged = await run('crm_upsert_contact', { phone: '+15550100002', tags: [id, Number(id), 'vip'] })
    assert.deepEqual(tagged.contact.tags, [{ id, name: 'VIP' }])
    // Digits that match no tag id are a name; an integer never is.
    const named = await run('crm_upsert_contact', { phone: '+15550100002', tags: ['888888', '007'] })
    assert.deepEqual(
      named.contact.tags.map((t: { name: string }) => t.name),
      ['007', '888888', 'VIP'],
    )
    const rejected = await call('crm_upsert_contact', { phone: '+15550100003', tags: ['new', 888888] })
    assert.equal(rejected.status, 400)
    assert.deepEqual(
      [rejected.body.errors[0].pointer, rejected.body.errors[0].code],
      ['#/tags/1', 'unknown_tag'],
    )
    assert.equal((await run('crm_list_tags')).total, 3)
    assert.equal((await run('crm_search_contacts')).total, 2)
  })
})

everyDatabase('Tag, group and contact counts under concurrency', (server, database) => {
  // The embedded database has one connection, so nothing runs concurrently there.
  const indexes = Array.from({ length: 20 }, (_, i) => i)

  it('concurrent tagging with one new tag keeps the count exact', async () => {
    const { owner } = await makeWorkspace(server())
    const run = doAs(server(), owner.key)
    const group = (await run('crm_create_group', { name: 'All' })).group.id
    await Promise.all(
      indexes.map((i) =>
        run('crm_upsert_contact', {
          phone: `+155501001${String(i).padStart(2, '0')}`,
          tags: i % 2 ? ['Hot', 'new'] : ['NEW', 'hot'],
          group_ids: [group],
        }),
      ),
    )
    assert.deepEqual(
      (await run('crm_list_tags')).data.map((t: Named) => [t.name.toLowerCase(), t.contacts_count]),
      [
        ['hot', 20],
        ['new', 20],
      ],
    )
    assert.deepEqual(toCounts(await run('crm_list_groups')), [['All', 20]])
    assert.equal((await run('crm_search_contacts', { limit: 1 })).total, 20)
  })

  it('concurrent tagging, untagging and deletion keeps the count exact', async () => {
    const { owner } = await makeWorkspace(server())
    const run = doAs(server(), owner.key)
    const call = callAs(server(), owner.key)
    const ids: string[] = await Promise.all(
      indexes.map(
        async (i) =>
          (
            await run('crm_upsert_contact', {
              phone: `+155501001${String(i).padStart(2, '0')}`,
              tags: ['base'],
            })
          ).id as string,
      ),
    )
    await Promise.all(
      indexes.flatMap((i) => [
        run('crm_tag_contacts', { contact_ids: ids, tags: ['a', 'b'] }),
        run('crm_untag_contacts', { contact_ids: ids.toReversed(), tags: ['b', 'base'] }),
        ...(i < 5 ? [call('crm_delete_contact', { contact_id: ids[i]! }, { confirm: 'delete' })] : []),
      ]),
    )
    const remaining = await run('crm_search_contacts', { limit: 100, detail: 'full' })
    assert.equal(remaining.total, 15)
    const countTagged = (name: string): number =>
      remaining.data.filter((c: { tags: { name: string }[] }) => c.tags.some((t) => t.name === name)).length
    assert.deepEqual(
      toCounts(await run('crm_list_tags')),
      ['a', 'b', 'base'].map((name) => [name, countTagged(name)]),
    )
    assert.equal(countTagged('a'), 15)
    assert.equal(countTagged('base'), 0)
  })

  it('concurrent upserts never exceed the contact limit of the plan', async () => {
    const { owner } = await makeWorkspace(server(), { contact_limit: 7 })
    const call = callAs(server(), owner.key)
    const replies = await Promise.all(
      indexes.map((i) =>
        call('crm_upsert_contact', { phone: `+155501001${String(i).padStart(2, '0')}`, tags: ['x'] }),
      ),
    )
    assert.deepEqual(replies.map((r) => r.status).sort(), [
      ...indexes.slice(0, 7).map(() => 200),
      ...indexes.slice(7).map(() => 403),
    ])
    for (const { status, body } of replies)
      if (status === 403)
        assert.deepEqual([body.code, body.reason, body.limit], ['forbidden', 'contact_limit', 7])
    // Existing contacts can still be updated, and each deletion allows one new contact.
    const { data } = (await call('crm_search_contacts')).body
    assert.equal(
      (await call('crm_upsert_contact', { phone: data[0].phone, name: 'Still' })).body.action,
      'updated',
    )
    assert.equal((await call('crm_upsert_contact', { phone: '+15550109999', dry_run: true })).status, 403)
    await call('crm_delete_contact', { contact_id: data[1].id }, { confirm: 'delete' })
    const retries = await Promise.all(
      indexes
        .slice(0, 5)
        .map((i) => call('crm_upsert_contact', { phone: `+155501099${String(i).padStart(2, '0')}` })),
    )
    assert.deepEqual(retries.map((r) => r.status).sort(), [200, 403, 403, 403, 403])
  })

  it('deleting a group while contacts are added leaves no members behind', async () => {
    const { owner } = await makeWorkspace(server())
    const run = doAs(server(), owner.key)
    const call = callAs(server(), owner.key)
    for (let round = 0; round < (database === 'embedded' ? 2 : 10); round++) {
      const group = (await run('crm_create_group', { name: 'Short-lived' })).group.id
      const before = (await run('crm_search_contacts', { limit: 1 })).total
      const upserts = indexes.slice(0, 8).map((i) =>
        call('crm_upsert_contact', {
          phone: `+155501${String(round).padStart(2, '0')}0${String(i).padStart(2, '0')}`,
          group_ids: [group],
        }),
      )
      const [, ...replies] = await Promise.all([
        call('crm_delete_group', { group_id: group }, { confirm: 'delete' }),
        ...upserts,
      ])
      for (const { status } of replies) assert.ok(status === 200 || status === 400, String(status))
      const after = (await run('crm_search_contacts', { limit: 1 })).total
      assert.equal(after, before + replies.filter((r) => r.status === 200).length)
      assert.equal((await run('crm_search_contacts', { not_in_any_group: true, limit: 1 })).total, after)
    }
  })
})
