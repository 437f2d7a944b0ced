import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { catalog, type Operation } from '../../catalog/index.ts'
import { doAs } from '../calls.ts'
import { everyDatabase, everyDoor } from '../doors.ts'
import { makeWorkspace } from '../servers.ts'

/** Zero-width, bidi, fillers that count as letters or symbols, and tag characters. */
const invisible = [
  '\u200b',
  '\u2066\u2069',
  '\ufeff',
  '\u3164',
  '\u115f',
  '\u2800',
  '\u{e0041}\u{e007f}',
  ' \u00ad ',
]
const NAME_FIELDS = ['name', 'title', 'label', 'code', 'file_name', 'tags', 'add']
/** They are chosen by others: what a template, a place or an event type is called. */
const FOREIGN = /template|send|quick_message_file|events|webhooks/

/** The examples of an operation, with each name in them replaced by a text. */
const withNames = (op: Operation, text: string): { field: string; input: Record<string, unknown> }[] =>
  op.examples.flatMap(({ input }) =>
    Object.entries(input ?? {})
      .filter(([field]) => NAME_FIELDS.includes(field))
      .map(([field, value]) => ({
        field,
        input: { ...input, [field]: Array.isArray(value) ? [text] : text },
      })),
  )

describe('Names of invisible characters only', () => {
  it('are refused in every change, however they are made', () => {
    let fields = 0
    for (const op of catalog.filter(({ scope, name }) => scope !== 'mcp:read' && !FOREIGN.test(name)))
      for (const { field, input } of withNames(op, 'Visible')) {
        assert.ok(op.input.safeParse(input).success, `${op.name} ${field}`)
        fields++
        for (const text of invisible)
          assert.ok(
            !op.input.safeParse({ ...input, [field]: Array.isArray(input[field]) ? [text] : text }).success,
            `${op.name} ${field} ${escape(text)}`,
          )
      }
    assert.ok(fields >= 8, `${fields} fields`)
  })
})

everyDoor('Names of contacts', (test) => {
  test('must show; international email addresses are addresses', async ({ call }) => {
    const phone = '+15550100042'
    const refused = await call('crm_upsert_contact', { phone, name: '\u200b\u3164' })
    assert.equal(refused.status, 400)
    assert.match(refused.text, /visible/)
    for (const email of ['用户@例え.jp', 'jürgen@exämple.de', 'дом@почта.рф']) {
      const { status, body } = await call('crm_upsert_contact', { phone, email })
      assert.deepEqual([status, body.contact?.email], [200, email])
    }
    for (const email of [
      '用户@',
      '用户@jp',
      '用 户@例え.jp',
      '用户@@例え.jp',
      `${'用'.repeat(22)}@例え.jp`,
      '用户@-例え.jp',
    ])
      assert.equal((await call('crm_upsert_contact', { phone, email })).status, 400, email)
  })
})

everyDatabase('Small promises', (server) => {
  it('tagging nobody creates no tag', async () => {
    const run = doAs(server(), (await makeWorkspace(server())).owner.key)
    const output = await run('crm_tag_contacts', { tags: ['Nobody'], contact_ids: ['999999'] })
    assert.deepEqual([output.matched, output.failed], [0, 1])
    await run('crm_tag_contacts', { tags: ['Nobody'], contact_ids: ['999999'], dry_run: true })
    await run('crm_import_contacts', { rows: [{ phone: '0123', tags: ['Nobody'] }] })
    assert.deepEqual((await run('crm_list_tags')).data, [])
  })

  it('the cursor of events is a cursor', async () => {
    const run = doAs(server(), (await makeWorkspace(server())).owner.key)
    for (const name of ['A', 'B', 'C']) await run('crm_create_group', { name })
    const first = await run('events_list', { limit: 1 })
    const [byCursor, byAfter] = [
      await run('events_list', { limit: 1, cursor: first.next_cursor }),
      await run('events_list', { limit: 1, after: first.next_cursor }),
    ]
    assert.deepEqual(byCursor, byAfter)
    assert.notEqual(byCursor.data[0].id, first.data[0].id)
    await assert.rejects(
      run('events_list', { cursor: first.next_cursor, after: byAfter.next_cursor }),
      /different events/,
    )
  })

  it('only an agent is told that phones are hidden', async () => {
    const workspace = await makeWorkspace(server())
    for (const [role, hidden] of [
      ['agent', true],
      ['manager', false],
    ] as const) {
      const { key } = await workspace.staff({ role, hide_phone_numbers: true })
      assert.equal((await doAs(server(), key)('workspace_whoami')).staff.hide_phone_numbers, hidden)
    }
  })

  it('ids of contacts rise, also when many are created at once', async () => {
    const run = doAs(server(), (await makeWorkspace(server())).owner.key)
    let last = 0n
    for (let round = 0; round < 3; round++) {
      const created: { id: string }[] = await Promise.all(
        Array.from({ length: 6 }, (_, i) =>
          run('crm_upsert_contact', { phone: `+155501${round}${1000 + i}` }),
        ),
      )
      const ids = created.map(({ id }) => BigInt(id)).sort((a, b) => (a < b ? -1 : 1))
      assert.ok(ids[0]! > last, `${ids[0]} after ${last}`)
      last = ids.at(-1)!
    }
  })

  it('empty is as if left out where the lower bound is 0', async () => {
    const run = doAs(server(), (await makeWorkspace(server())).owner.key)
    const { id } = await run('messaging_create_quick_message', {
      code: 'hours',
      type: 'TEXT',
      text: 'Open',
      description: '',
      media_url: '',
      file_name: '',
      team_id: '',
    })
    const changed = await run('messaging_update_quick_message', {
      quick_message_id: id,
      title: 'Hours',
      media_url: '',
      file_name: '',
      team_id: '',
    })
    assert.equal(changed.title, 'Hours')
  })
})
