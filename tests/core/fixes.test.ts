import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import { catalog, listRoutes, type Operation } from '../../catalog/index.ts'
import { callAs, doAs } from '../calls.ts'
import { doorsOf, everyDatabase, everyDoor } from '../doors.ts'
import { makeWorkspace } from '../servers.ts'
import { normalizeText } from '../../catalog/text.ts'
import { toExcerpt } from '../../server/domains/inbox/excerpt.ts'
import { plantConversation } from '../inbox/conversations.ts'

type Schema = {
  properties?: Record<string, Schema>
  items?: Schema
  pattern?: string
  format?: string
  type?: string | string[]
  anyOf?: Schema[]
  oneOf?: Schema[]
  $ref?: string
}

/** Nothing has this form: neither an id, a time, a URL, an address nor base64. */
const FORMLESS = '~ , ~'

const MAX_DEPTH = 6

/** Returns inputs with one wrong value each, for every text with a form and every object of a schema. */
const listWrongInputs = (schema: Schema, depth = 0): { value: unknown; pointer: string }[] => {
  if (depth > MAX_DEPTH || schema.$ref !== undefined) return []
  const isFormed = schema.pattern !== undefined || schema.format !== undefined
  const isObject = schema.properties !== undefined && depth > 0
  const inside = [
    ...Object.entries(schema.properties ?? {}).flatMap(([name, member]) =>
      listWrongInputs(member, depth + 1).map(({ value, pointer }) => ({
        value: { [name]: value },
        pointer: `/${name}${pointer}`,
      })),
    ),
    ...(schema.items === undefined
      ? []
      : listWrongInputs(schema.items, depth + 1).map(({ value, pointer }) => ({
          value: [value],
          pointer: `/0${pointer}`,
        }))),
    ...[...(schema.anyOf ?? []), ...(schema.oneOf ?? [])].flatMap((one) => listWrongInputs(one, depth)),
  ]
  return isFormed || isObject ? [{ value: FORMLESS, pointer: '' }, ...inside] : inside
}

everyDatabase('What is wrong with a field', (server) => {
  it('is said with what to send, in no jargon of a library, for every field of every operation', async () => {
    const { owner } = await makeWorkspace(server())
    const call = callAs(server(), owner.key)
    const { paths } = (await (await fetch(`${server().url}/openapi-ops.json`)).json()) as any
    let checked = 0
    for (const { name } of catalog) {
      const body = paths[`/v1/ops/${name}`].post.requestBody?.content['application/json'].schema ?? {}
      const inputs = new Map(listWrongInputs(body).map((one) => [one.pointer, one.value]))
      for (const [pointer, value] of inputs) {
        const { body: problem, text } = await call(name, value as Record<string, unknown>)
        for (const { pointer: at, detail, fix } of problem.errors ?? []) {
          if (at === `#${pointer}`) checked++
          assert.doesNotMatch(detail, /^invalid|expected/i, `${name} ${pointer} ${text}`)
          assert.ok(typeof fix === 'string' && !/^Correct the value|^Send an object\.$/.test(fix), text)
        }
      }
    }
    assert.ok(checked > 200, `${checked}`)
  })
})

everyDoor('What is wrong with a field', (test) => {
  test('is one wrong field, however many rules it breaks', async ({ call }) => {
    const { status, body } = await call('messaging_create_quick_message', { code: '', text: 'Hi' })
    assert.equal(status, 400)
    assert.ok(body.errors.length > 1)
    assert.equal(body.detail, 'code must have at least 1 character.')
  })

  test('an address of a file is https', async ({ call }) => {
    const input = { code: 'menu', type: 'IMAGE', media_url: 'http://example.com/menu.jpg' }
    const { body } = await call('messaging_create_quick_message', input)
    const [{ detail, fix }] = body.errors
    assert.equal(detail, 'must be a public https URL')
    assert.equal(fix, 'Send a URL such as https://example.com/menu.jpg.')
  })

  test('an object is described by its fields', async ({ call }) => {
    const { body } = await call('crm_search_contacts', { sort: 'name' })
    assert.equal(body.errors[0].fix, 'Send an object; its fields are field, direction.')
  })
})

const values: Readonly<Record<string, unknown>> = {
  conversation_id: '1',
  template: { name: 'order_update', language: 'en_US' },
  text: 'a',
  media_url: 'https://files.example.com/a.png',
  type: 'IMAGE',
  caption: 'c',
  file_name: 'a.pdf',
  quick_message_id: '1',
  contact_id: '1',
  message_id: '1',
  external_id: 'C-1',
  phone: '+15550100042',
  staff_id: '1',
  team_id: '1',
  interactive: { kind: 'location_request' },
  contact_ids: ['1'],
  conversation_ids: ['1'],
  tags: ['VIP'],
  group_id: '1',
  filter: {},
  saved_filter_id: '1',
  all: true,
}
const pick = (fields: readonly string[]) => Object.fromEntries(fields.map((name) => [name, values[name]]))

/** Inputs that break the rule, each with the code of its error. */
const listInvalid = ({ input, alternatives = [] }: Operation): [Record<string, unknown>, string][] => {
  const base = pick(
    Object.entries(input.shape).flatMap(([name, field]) =>
      field.safeParse(undefined).success ? [] : [name],
    ),
  )
  const keys = alternatives.map(({ needs }) => needs[0])
  return [
    [base, 'required'],
    ...keys
      .slice(1)
      .map((key): [Record<string, unknown>, string] => [
        { ...base, ...pick([...alternatives[0]!.needs, key]) },
        'ambiguous',
      ]),
    ...alternatives.flatMap(({ needs, takes = [] }, i): [Record<string, unknown>, string][] => [
      ...needs
        .slice(1)
        .map((field): [Record<string, unknown>, string] => [
          { ...base, ...pick(needs.filter((need) => need !== field)) },
          'required',
        ]),
      ...[...needs.slice(1), ...takes].map((field): [Record<string, unknown>, string] => [
        { ...base, ...pick([...alternatives[i === 0 ? 1 : 0]!.needs, field]) },
        'not_allowed',
      ]),
    ]),
  ]
}

everyDoor('Alternatives of an input', (test) => {
  test('none, two, a part of one, and a field of another are refused by name', async ({ call, door }) => {
    const operations = catalog.filter(({ alternatives }) => alternatives)
    assert.ok(operations.length >= 3)
    for (const op of operations) {
      // A path of its own is one of them, and the only one.
      if (door.name === 'rest' && listRoutes(op).length === op.alternatives!.length) continue
      for (const [input, code] of listInvalid(op)) {
        const { status, body } = await call(op.name as never, input as never)
        const found = [status, body.code, body.errors?.[0]?.code]
        assert.deepEqual(found, [400, 'invalid_input', code], JSON.stringify([op.name, input]))
        assert.ok(body.errors[0].fix)
      }
    }
  })
})

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

/** Marks that are out of order, in a row: sorting them takes time that grows with the square of their number. */
const MARKS = '\u0f81'.repeat(60_000)

// Each of these took seconds to hours of the one thread, or of the database, before it was bounded.
everyDatabase('Texts that are slow on purpose', (server) => {
  it('a number of a million digits is refused at once', async () => {
    const { owner } = await makeWorkspace(server())
    const call = callAs(server(), owner.key)
    await call('crm_create_custom_field', { key: 'score', type: 'number' })
    const input = { phone: '+15550100042', attributes: { score: `${'1'.repeat(900_000)}x` } }
    const { status, body } = await call('crm_upsert_contact', input)
    assert.deepEqual([status, body.errors[0].pointer], [400, '#/attributes/score'])
  })

  it('spaces in braces are no placeholder', async () => {
    const { owner } = await makeWorkspace(server())
    const text = `{{${' '.repeat(4093)}{`
    for (const { call, name } of doorsOf(server().url, owner.key)) {
      const { status, body } = await call('messaging_create_quick_message', { code: 'slow', text })
      assert.deepEqual([status, body.errors?.[0]?.code ?? body.code], [400, 'placeholder_form'], name)
    }
  })

  it('marks in a row are decomposed and folded in pieces, by the database and here', async () => {
    const { rows } = await sql<{ words: string }>`
      select message_words(${`größe ${MARKS} end`}) as words`.execute(server().db)
    assert.match(rows[0]!.words, /^ grosse /)
    assert.ok(normalizeText(MARKS, 'NFKD').length <= 60)
    assert.match(
      toExcerpt(`hello ${MARKS}`, [{ words: ['hello'], forms: undefined } as never]),
      /^\*\*hello\*\*/,
    )
  })

  it('a message of marks alone is indexed with the others', async () => {
    const workspace = await makeWorkspace(server())
    const { id } = await plantConversation(server(), workspace.id)
    const run = doAs(server(), workspace.owner.key)
    for (let n = 0; n < 6; n++)
      await run('inbox_add_note', { conversation_id: id, text: `zebra ${n} ${MARKS.slice(0, 4000)}` })
    await server().app.jobs.job('message-search').runOnce()
    assert.equal((await run('inbox_search_messages', { query: 'zebra' })).data.length, 6)
  })

  it('a time that PostgreSQL does not take is a 400 that names its field', async () => {
    const { owner } = await makeWorkspace(server())
    const call = callAs(server(), owner.key)
    const { body: made } = await call('crm_upsert_contact', { phone: '+15550100042' })
    const contact = { contact_id: made.contact.id, state: 'granted' }
    for (const [op, input, field] of [
      ['events_list', { from: '2026-01-01T00:00:00+16:00' }, 'from'],
      ['events_list', { from: `2026-01-01T00:00:00.${'1'.repeat(400)}Z` }, 'from'],
      ['audit_list', { from: '2026-01-01T00:00:00+23:00' }, 'from'],
      ['webhooks_list_deliveries', { to: '2026-01-01T00:00:00-16:00' }, 'to'],
      ['inbox_search_messages', { query: 'hello', from: '2026-01-01T00:00:00+16:00' }, 'from'],
      ['crm_record_consent', { ...contact, at: '0000-01-01T00:00:00Z' }, 'at'],
      ['crm_record_consent', { ...contact, at: '0001-01-01T00:00:00+10:00' }, 'at'],
    ] as const) {
      const { status, body, text } = await call(op, input)
      assert.deepEqual([status, body.errors?.at(-1)?.pointer], [400, `#/${field}`], text)
    }
    const early = { query: 'hello', from: '0000-01-01T00:00:00Z' }
    assert.equal((await call('inbox_search_messages', early)).status, 200)
  })
})
