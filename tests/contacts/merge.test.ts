import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { sql } from 'kysely'
import type { Db } from '../../storage/database.ts'
import { callAs } from '../calls.ts'
import { checked, doorsOf, everyDatabase, everyDoor } from '../doors.ts'
import {
  buildCustomerMessage,
  buildCustomerProfile,
  createCustomerFixture,
} from '../provider/webhook-fixture.ts'
import { makeWorkspace } from '../servers.ts'
import { loadWorkspaceRows, seedWorld } from '../world.ts'

const confirm = { confirm: 'delete' }

everyDoor('Contacts that are merged', (test) => {
  test('become one, which the old id answers, until the merge is undone', async ({ call, door }) => {
    const make = async (input: Record<string, unknown>) =>
      (await call('crm_upsert_contact', input)).body.contact as { id: string }
    const kept = await make({ phone: '+15550100001', name: 'Ada', tags: ['VIP'] })
    const other = await make({
      phone: '+15550100002',
      name: 'A. Lovelace',
      external_id: 'C-7',
      tags: ['VIP', 'Press'],
      metadata: { erp: 'B' },
    })
    const input = { contact_id: kept.id, other_contact_id: other.id, prefer_other: ['phone'] }
    assert.equal((await call('crm_merge_contacts', input)).status, 428)
    const rehearsed = await call('crm_merge_contacts', { ...input, dry_run: true })
    assert.deepEqual(rehearsed.body.fields, [
      { name: 'name', winner: 'kept' },
      { name: 'phone', winner: 'other' },
      { name: 'external_id', winner: 'other' },
    ])
    assert.equal((await call('crm_get_contact', { contact_id: other.id })).body.name, 'A. Lovelace')

    const merged = await call('crm_merge_contacts', input, confirm)
    if (!door.confirms) return
    assert.equal(merged.status, 200, merged.text)
    const { contact } = merged.body
    assert.deepEqual(
      [contact.id, contact.name, contact.phone, contact.external_id, contact.metadata],
      [kept.id, 'Ada', '15550100002', 'C-7', { erp: 'B' }],
    )
    assert.deepEqual(contact.tags.map(({ name }: { name: string }) => name).sort(), ['Press', 'VIP'])
    assert.equal((await call('crm_get_contact', { contact_id: other.id })).body.id, kept.id)
    assert.equal((await call('crm_update_contact', { contact_id: other.id, name: 'X' })).status, 404)
    const again = await call('crm_merge_contacts', input, confirm)
    assert.deepEqual([again.status, again.body.code], [404, 'not_found'])

    await call('crm_update_contact', { contact_id: kept.id, name: 'Ada Lovelace' })
    const undone = await call('crm_undo_contact_merge', { merged_contact_id: other.id })
    assert.equal(undone.status, 200, undone.text)
    const [back, stayed] = [undone.body.contact, undone.body.kept_contact]
    assert.deepEqual(
      [back.id, back.name, back.phone, back.external_id],
      [other.id, 'A. Lovelace', '15550100002', 'C-7'],
    )
    assert.deepEqual(
      [stayed.id, stayed.name, stayed.phone, stayed.external_id, stayed.metadata, stayed.tags.length],
      [kept.id, 'Ada Lovelace', '15550100001', null, {}, 1],
    )
    assert.equal((await call('crm_undo_contact_merge', { merged_contact_id: other.id })).status, 404)
  })

  test('are told apart from what cannot be merged or undone', async ({ call, door }) => {
    const { contact } = (await call('crm_upsert_contact', { phone: '+15550100001' })).body
    const refuse = async (input: Record<string, unknown>) => {
      const given = { contact_id: contact.id, ...input, ...(door.confirms ? {} : { dry_run: true }) }
      const { status, body } = await call('crm_merge_contacts', given, door.confirms ? confirm : {})
      return [status, body.errors?.[0].pointer]
    }
    assert.deepEqual(await refuse({ other_contact_id: contact.id }), [400, '#/other_contact_id'])
    assert.deepEqual(await refuse({ other_contact_id: '999999999' }), [404, undefined])
    assert.deepEqual(
      await refuse({ other_contact_id: '999999999', prefer_other: ['name', 'attributes.none'] }),
      [400, '#/prefer_other/1'],
    )
    assert.deepEqual(await refuse({ other_contact_id: '999999999', prefer_other: ['dnd'] }), [
      400,
      '#/prefer_other/0',
    ])
    assert.equal((await call('crm_undo_contact_merge', { merged_contact_id: contact.id })).status, 404)
  })
})

/** Adds up a sharded counter; what is zero has no row, or several. */
const addUp = (rows: readonly string[]): string[] => {
  const sums = new Map<string, number>()
  for (const { subject, n } of rows.map((row) => JSON.parse(row) as { subject: string; n: number }))
    sums.set(subject, (sums.get(subject) ?? 0) + n)
  return [...sums].filter(([, n]) => n !== 0).map(String)
}

/** The rows of a workspace without what every change leaves: events, keys of calls, times and versions. */
const loadComparableRows = async (db: Db, workspaceId: string) => {
  const { counters = [], ...tables } = await loadWorkspaceRows(db, workspaceId)
  const kept = Object.entries(tables).filter(([name]) => !/^(?:events$|webhook_|idempotency)/.test(name))
  const comparable = kept.map(([name, rows]) => {
    const withoutTimes = rows.map((row) => {
      const {
        version: _version,
        updated_at: _updatedAt,
        ...rest
      } = JSON.parse(row) as Record<string, unknown>
      return JSON.stringify(rest)
    })
    return [name, withoutTimes.sort()] as const
  })
  return { ...Object.fromEntries(comparable), counters: addUp(counters).sort() }
}

/** Has a customer write from a number. */
const deliverMessage = (scene: Awaited<ReturnType<typeof createCustomerFixture>>, phone: string) =>
  scene.deliver(
    scene.value({
      contacts: [buildCustomerProfile(phone, 'Ada')],
      messages: [buildCustomerMessage(phone)],
    }),
  )

everyDatabase('Merges that are undone', (server) => {
  it('leave a phone and an external id that the merge replaced to who has them by now', async () => {
    const workspace = await makeWorkspace(server())
    const call = callAs(server(), workspace.owner.key)
    const make = async (phone: string, externalId: string): Promise<string> =>
      (await call('crm_upsert_contact', { phone, external_id: externalId })).body.contact.id
    const [kept, other] = [await make('+15550100001', 'shop-1'), await make('+15550100002', 'shop-2')]
    const merge = {
      contact_id: kept,
      other_contact_id: other,
      prefer_other: ['phone', 'external_id'],
    }
    assert.equal((await call('crm_merge_contacts', merge, { confirm: 'delete' })).status, 200)
    await make('+15550100001', 'shop-1')
    const undone = await call('crm_undo_contact_merge', { merged_contact_id: other })
    assert.equal(undone.status, 200, undone.text)
    const { contact, kept_contact: stayed } = undone.body
    assert.deepEqual([contact.phone, contact.external_id], ['15550100002', 'shop-2'])
    assert.deepEqual([stayed.phone, stayed.external_id], [null, null])
  })

  it('leave every row of the workspace, and its reports, as they were', async () => {
    const workspace = await makeWorkspace(server())
    const { ids } = await seedWorld(server(), workspace, 'Merged', '0177')
    const { db } = server()
    const run = checked(doorsOf(server().url, workspace.owner.key)[1]!)
    await sql`
      insert into broadcast_recipients (workspace_id, broadcast_id, contact_id, status, responded)
      select r.workspace_id, r.broadcast_id, c.id, 'read', false
      from broadcast_recipients r, contacts c
      where r.workspace_id = ${workspace.id} and c.workspace_id = r.workspace_id
      on conflict do nothing`.execute(db)
    const contacts = ids['contacts']!
    const readReport = async () => (await run.call('reports_workspace_summary', {})).body
    const takes = fc.subarray(['name', 'phone', 'external_id', 'email', 'metadata', 'attributes.shelf'])
    const consents = fc.array(
      fc.record({
        state: fc.constantFrom('granted', 'withdrawn'),
        purpose: fc.constantFrom('marketing', 'research'),
        at: fc.constantFrom('2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z'),
      }),
      { maxLength: 3 },
    )
    const values = fc.record(
      {
        name: fc.constantFrom('Ada', 'Grace'),
        starred: fc.boolean(),
        dnd: fc.boolean(),
        metadata: fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.constantFrom('1', '2')),
        attributes: fc.record({
          shelf: fc.constantFrom('one', null),
          remark: fc.constantFrom('x', 'y', null),
        }),
      },
      { requiredKeys: [] },
    )
    const property = fc.asyncProperty(
      fc.shuffledSubarray([...contacts], { minLength: 2, maxLength: 2 }),
      fc.tuple(values, values),
      fc.tuple(consents, consents),
      takes,
      async ([kept, other], fields, said, prefer) => {
        for (const [i, id] of [kept, other].entries()) {
          const changed = await run.call('crm_update_contact', { contact_id: id, ...fields[i] })
          assert.equal(changed.status, 200, changed.text)
          for (const consent of said[i]!) {
            const recorded = await run.call('crm_record_consent', { contact_id: id, ...consent })
            assert.equal(recorded.status, 200, recorded.text)
          }
        }
        const before = await loadComparableRows(db, workspace.id)
        const report = await readReport()
        const input = { contact_id: kept, other_contact_id: other, prefer_other: prefer }
        const merged = await run.call('crm_merge_contacts', input, confirm)
        assert.equal(merged.status, 200, merged.text)
        assert.equal((await run.call('crm_count_contacts', {})).body.count, contacts.length - 1)
        assert.deepEqual((await readReport()).messages, report.messages)
        const undone = await run.call('crm_undo_contact_merge', { merged_contact_id: other })
        assert.equal(undone.status, 200, undone.text)
        assert.deepEqual(await loadComparableRows(db, workspace.id), before)
        assert.equal((await run.call('crm_count_contacts', {})).body.count, contacts.length)
        assert.deepEqual(await readReport(), report)
      },
    )
    // A failure leaves the contacts merged: other values tell nothing.
    await fc.assert(property, { numRuns: 12, endOnFailure: true })
  })

  it('keep what arrived since, and refuse what cannot be as it was', async () => {
    const scene = await createCustomerFixture(server())
    const { run } = scene
    const write = (phone: string) => deliverMessage(scene, phone)
    const make = async (phone: string) => (await run('crm_upsert_contact', { phone })).contact.id as string
    const [a, b, c] = [await make('+15550100001'), await make('+15550100002'), await make('+15550100003')]
    await write('15550100001')
    await write('15550100002')
    await run('crm_merge_contacts', { contact_id: a, other_contact_id: b })
    const conversations = async (id: string) =>
      (await run('crm_get_contact', { contact_id: id })).conversations.length as number
    assert.equal(await conversations(a), 2)
    // The number that nobody has any more writes again, and is a contact of its own.
    await write('15550100002')
    const call = callAs(server(), scene.workspace.owner.key)
    const taken = await call('crm_undo_contact_merge', { merged_contact_id: b })
    assert.deepEqual([taken.status, taken.body.reason], [409, 'identity_conflict'])
    const holder = (await run('crm_search_contacts', { query: '15550100002' })).data[0].id
    await run('crm_delete_contact', { contact_id: holder })

    await run('crm_merge_contacts', { contact_id: c, other_contact_id: a })
    assert.equal((await run('crm_get_contact', { contact_id: b })).id, c)
    const merged = await call('crm_undo_contact_merge', { merged_contact_id: b })
    assert.deepEqual([merged.status, merged.body.reason], [409, 'merged_again'])
    await run('crm_undo_contact_merge', { merged_contact_id: a })
    await run('crm_undo_contact_merge', { merged_contact_id: b })
    assert.deepEqual([await conversations(a), await conversations(b), await conversations(c)], [1, 1, 0])

    // What undoes a merge is deleted with its time, and where the id leads stays.
    await run('crm_merge_contacts', { contact_id: a, other_contact_id: b })
    await sql`
      update contact_merges set merged_at = merged_at - interval '8 days'
      where workspace_id = ${scene.workspace.id}`.execute(server().db)
    const late = await call('crm_undo_contact_merge', { merged_contact_id: b })
    assert.deepEqual([late.status, late.body.reason], [409, 'merge_expired'])
    await server().app.jobs.job('merge-retention').runOnce()
    const { rows } = await sql`
      select before, after from contact_merges where workspace_id = ${scene.workspace.id}`.execute(
      server().db,
    )
    assert.deepEqual([...rows], [{ before: null, after: null }])
    assert.equal((await run('crm_get_contact', { contact_id: b })).id, a)
    await run('crm_delete_contact', { contact_id: a })
    assert.equal((await call('crm_get_contact', { contact_id: b })).status, 404)
  })

  it('give each contact the last activity of its own conversations', async () => {
    const scene = await createCustomerFixture(server())
    const { run } = scene
    const write = (phone: string) => deliverMessage(scene, phone)
    const make = async (phone: string) => {
      const { contact } = await run('crm_upsert_contact', { phone: `+${phone}` })
      await write(phone)
      return contact.id as string
    }
    const [kept, other] = [await make('15550104711'), await make('15550104712')]
    const activityOf = async (id: string) => {
      const { last_activity_at: at, conversations } = await run('crm_get_contact', { contact_id: id })
      return { at, ofConversations: conversations.map((one: any) => one.last_activity_at) }
    }
    const [before, earlier] = [await activityOf(kept), await activityOf(other)]
    await run('crm_merge_contacts', { contact_id: kept, other_contact_id: other, prefer_other: ['phone'] })
    await write('15550104712')
    await run('crm_undo_contact_merge', { merged_contact_id: other })
    assert.deepEqual(await activityOf(kept), before)
    const { at, ofConversations } = await activityOf(other)
    assert.deepEqual([at], ofConversations)
    assert.notEqual(at, earlier.at)
  })

  it('keep consents apart again, with what was recorded since', async () => {
    const { run } = await createCustomerFixture(server())
    const make = async (phone: string) => (await run('crm_upsert_contact', { phone })).contact.id as string
    const [a, b, c] = [await make('+15550100001'), await make('+15550100002'), await make('+15550100003')]
    const record = (id: string, state: string, purpose: string, at?: string) =>
      run('crm_record_consent', { contact_id: id, state, purpose, ...(at ? { at } : {}) })
    const holding = async (id: string) =>
      (await run('crm_list_consents', { contact_id: id })).data
        .flatMap((row: any) => (row.holds ? [`${row.purpose} ${row.state}`] : []))
        .sort()
    await record(a, 'granted', 'marketing', '2026-01-03T00:00:00Z')
    await record(a, 'granted', 'research')
    await record(b, 'withdrawn', 'marketing', '2026-01-02T00:00:00Z')
    await record(b, 'granted', 'surveys')
    await record(c, 'granted', 'events')
    await run('crm_merge_contacts', { contact_id: a, other_contact_id: b })
    const merged = ['marketing withdrawn', 'research granted', 'surveys granted']
    assert.deepEqual(await holding(a), merged)
    await run('crm_merge_contacts', { contact_id: a, other_contact_id: c })
    assert.deepEqual(await holding(a), ['events granted', ...merged])
    await record(a, 'withdrawn', 'surveys')
    await record(a, 'granted', 'calls')

    await run('crm_undo_contact_merge', { merged_contact_id: b })
    assert.deepEqual(await holding(b), ['marketing withdrawn', 'surveys withdrawn'])
    const kept = ['calls granted', 'marketing granted', 'research granted', 'surveys withdrawn']
    assert.deepEqual(await holding(a), [kept[0], 'events granted', ...kept.slice(1)])
    await run('crm_undo_contact_merge', { merged_contact_id: c })
    assert.deepEqual(await holding(a), kept)
    assert.deepEqual(await holding(c), ['events granted', 'surveys withdrawn'])
  })

  it('are undone with a history of consents that is long', async () => {
    const { run, workspace } = await createCustomerFixture(server())
    const make = async (phone: string) => (await run('crm_upsert_contact', { phone })).contact.id as string
    const [kept, other] = [await make('+15550100001'), await make('+15550100002')]
    const records = 20_000
    await sql`
      insert into consent_changes (workspace_id, contact_id, purpose, channel, state, source, at, recorded_at)
      select ${workspace.id}, ${other}, 'marketing', 'all', 'granted', 'form', now(), now()
      from generate_series(1, ${records}::int)`.execute(server().db)
    await run('crm_merge_contacts', { contact_id: kept, other_contact_id: other })
    assert.equal((await run('crm_list_consents', { contact_id: kept, limit: 1 })).total, records)
    await run('crm_undo_contact_merge', { merged_contact_id: other })
    assert.equal((await run('crm_list_consents', { contact_id: kept, limit: 1 })).total, 0)
    assert.equal((await run('crm_list_consents', { contact_id: other, limit: 1 })).total, records)
  })

  it('write their events', async () => {
    const scene = await createCustomerFixture(server())
    const { run } = scene
    const make = async (input: Record<string, unknown>) =>
      (await run('crm_upsert_contact', input)).contact.id as string
    const a = await make({ phone: '+15550100001', name: 'Ada' })
    const b = await make({ phone: '+15550100002', external_id: 'C-9', tags: ['Press'] })
    await run('crm_merge_contacts', { contact_id: a, other_contact_id: b })
    await run('crm_undo_contact_merge', { merged_contact_id: b })
    const types = (await scene.events())
      .filter(({ type }: { type: string }) => type.startsWith('contact.'))
      .slice(3)
      .map(({ type, data }: { type: string; data: any }) => [type, data.contact?.id ?? data.contact_ids[0]])
    assert.deepEqual(types, [
      ['contact.deleted/1', b],
      ['contact.updated/1', a],
      ['contact.tags_added/1', a],
      ['contact.updated/1', a],
      ['contact.tags_removed/1', a],
      ['contact.created/1', b],
      ['contact.tags_added/1', b],
    ])
  })
})
