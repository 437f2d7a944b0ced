import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { mergeMetadata } from '../../server/domains/contacts/metadata.ts'
import { everyDoor } from '../doors.ts'

const PHONE = '+15550100042'

const key = fc.constantFrom('a', 'b', 'c', 'd', 'valueOf', 'ü')
const value = fc.constantFrom('', '1', 'x y', '"{}"')

describe('Merging metadata', () => {
  it('sets and deletes the keys that are named, and keeps the others', () => {
    fc.assert(
      fc.property(
        fc.dictionary(
          key,
          value.filter((text) => text !== ''),
        ),
        fc.dictionary(key, fc.option(value)),
        (stored, changes) => {
          const before = structuredClone(stored)
          const merged = mergeMetadata(stored, changes)
          for (const name of ['a', 'b', 'c', 'd', 'valueOf', 'ü']) {
            const expected = Object.hasOwn(changes, name)
              ? changes[name] || undefined
              : Object.hasOwn(stored, name)
                ? stored[name]
                : undefined
            assert.equal(Object.hasOwn(merged, name) ? merged[name] : undefined, expected, name)
          }
          assert.deepEqual(mergeMetadata(merged, changes), merged)
          assert.deepEqual({ ...stored }, { ...before })
        },
      ),
    )
  })
})

everyDoor('Metadata of contacts', (test) => {
  test('is merged by create, upsert, update and import, and shown in full reads', async ({ call }) => {
    const created = (
      await call('crm_upsert_contact', {
        phone: PHONE,
        metadata: { b: '2', a: '1', c: '', plan: 'x' },
      })
    ).body
    assert.deepEqual(created.contact.metadata, { a: '1', b: '2', plan: 'x' })
    const { id } = created
    const merged = await call('crm_upsert_contact', { phone: PHONE, metadata: { a: null, b: '3', d: '4' } })
    assert.deepEqual(merged.body.contact.metadata, { b: '3', plan: 'x', d: '4' })
    const rehearsed = await call('crm_update_contact', { contact_id: id, metadata: { b: '' }, dry_run: true })
    assert.deepEqual(rehearsed.body.metadata, { plan: 'x', d: '4' })
    const same = await call('crm_upsert_contact', { phone: PHONE, metadata: { b: '3', z: null } })
    assert.equal(same.body.action, 'unchanged')
    const imported = await call('crm_import_contacts', {
      rows: [
        { phone: PHONE, metadata: { d: null, e: '5' }, email: 'ada@example.com' },
        { phone: PHONE, metadata: { e: '6' } },
        { phone: '+15550100043', metadata: { f: '1' } },
        { phone: '+15550100044', metadata: { f: 1 } },
        {
          phone: '+15550100043',
          metadata: Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`k${n}`, '1'])),
        },
      ],
    })
    assert.deepEqual(
      imported.body.results.map(({ action }: { action: string }) => action),
      ['updated', 'updated', 'created', 'failed', 'failed'],
      imported.text,
    )
    const read = (await call('crm_get_contact', { contact_id: id })).body
    assert.deepEqual(read.metadata, { b: '3', plan: 'x', e: '6' })
    assert.equal(read.email, 'ada@example.com')
    const listed = async (detail: string): Promise<unknown[]> =>
      (await call('crm_search_contacts', { detail })).body.data.map((row: any) => row.metadata)
    assert.deepEqual(await listed('full'), [{ f: '1' }, { b: '3', plan: 'x', e: '6' }])
    assert.deepEqual(await listed('summary'), [undefined, undefined])
    const [event] = (await call('events_list', { types: ['contact.updated/1'] })).body.data
    assert.deepEqual(event.data.changes, ['metadata'])
  })

  test('has keys that are called like members of every object, as any others', async ({ call, door }) => {
    const [kept, other] = [
      await call('crm_upsert_contact', { phone: PHONE, metadata: { constructor: '1' } }),
      await call('crm_upsert_contact', {
        phone: '+15550100043',
        metadata: { constructor: '2', valueOf: '3' },
      }),
    ]
    const updated = { contact_id: kept.body.id, metadata: { toString: '4' } }
    assert.equal((await call('crm_update_contact', updated)).status, 200)
    const [row] = (await call('audit_list', { operation: 'crm_update_contact' })).body.data
    assert.deepEqual(
      [row.changes.before, row.changes.after],
      [{ 'metadata.toString': null }, { 'metadata.toString': '4' }],
    )
    if (!door.confirms) return
    const merged = await call(
      'crm_merge_contacts',
      { contact_id: kept.body.id, other_contact_id: other.body.id },
      { confirm: 'delete' },
    )
    assert.deepEqual(
      merged.body.contact.metadata,
      { constructor: '1', toString: '4', valueOf: '3' },
      merged.text,
    )
  })

  test('is bounded', async ({ call }) => {
    const text = 'x'.repeat(500)
    const keys = (count: number, value: string) =>
      Object.fromEntries(Array.from({ length: count }, (_, n) => [`key${n}`, value]))
    for (const metadata of [
      { a: 1 },
      { a: true },
      { a: {} },
      { a: 'x'.repeat(501) },
      { ['k'.repeat(41)]: '1' },
      { '': '1' },
      { 'a\nb': '1' },
      keys(51, '1'),
      keys(50, text),
      ['a'],
      'a',
    ]) {
      const { status, body } = await call('crm_upsert_contact', { phone: PHONE, metadata })
      assert.equal(status, 400, JSON.stringify(body))
    }
    assert.equal((await call('crm_upsert_contact', { phone: PHONE, metadata: keys(50, '1') })).status, 200)
    const full = await call('crm_upsert_contact', { phone: PHONE, metadata: { one: 'more' } })
    assert.deepEqual([full.status, full.body.errors[0].code], [400, 'too_many_keys'])
    const swapped = await call('crm_upsert_contact', { phone: PHONE, metadata: { one: 'more', key0: null } })
    assert.equal(Object.keys(swapped.body.contact.metadata).length, 50)
  })

  test('of a key with a wrong name, the error says what is wrong with it', async ({ call }) => {
    const { id } = (await call('crm_upsert_contact', { phone: PHONE })).body
    const calls = (given: object): [string, string, object][] => [
      ['crm_upsert_contact', '#/metadata', { phone: PHONE, metadata: given }],
      ['crm_update_contact', '#/metadata', { contact_id: id, metadata: given }],
      ['crm_import_contacts', '#/rows/0/metadata', { rows: [{ phone: PHONE, metadata: given }] }],
      [
        'webhooks_create_endpoint',
        '#/custom_headers',
        { url: 'https://example.com/', event_types: ['*'], custom_headers: given },
      ],
    ]
    for (const [key, expected] of [
      ['', ['has a name that must have at least 1 character', 'Send at least 1 character.']],
      [
        'k'.repeat(101),
        [/^has a name that must have at most \d+ characters$/, /^Send at most \d+ characters.$/],
      ],
    ] as [string, (string | RegExp)[]][])
      for (const [op, at, input] of calls({ [key]: 'x' })) {
        const { status, body } = await call(op, { ...input, dry_run: true })
        const [error] = status === 200 ? body.failures[0].errors : body.errors
        assert.equal(error.code, 'invalid_key', op)
        assert.ok((error.pointer ?? '').startsWith(`${at}/`) || error.parameter, JSON.stringify(error))
        assert.match(error.detail, new RegExp(expected[0]!), op)
        assert.match(error.fix, new RegExp(expected[1]!), op)
      }
  })

  test('does not exist for agents and staff from whom phones are hidden', async ({ call, as, workspace }) => {
    const { id } = (await call('crm_upsert_contact', { phone: PHONE, metadata: { secret: 'plan' } })).body
    await call('crm_update_contact', { contact_id: id, metadata: { secret: 'other' } })
    const keys = [
      (await workspace.staff({ role: 'agent' })).key,
      // An AI agent of the owner, who sees no phone numbers.
      (await workspace.key(workspace.owner.staffId, { agent: true, phones: false, name: 'Mara' })).key,
    ]
    for (const key of keys) {
      const other = as(key)
      const read = await other('crm_get_contact', { contact_id: id })
      assert.equal('metadata' in read.body, false)
      const refused = await other('crm_update_contact', { contact_id: id, metadata: { secret: null } })
      assert.deepEqual([refused.status, refused.body.reason], [403, 'field_hidden'])
      const events = (await other('events_list', { types: ['contact.updated/1'] })).body.data
      assert.deepEqual(
        events.map(({ data }: any) => data.changes),
        [[]],
      )
    }
  })
})
