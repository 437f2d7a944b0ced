import assert from 'node:assert/strict'
import { catalog, listRoutes, type Operation } from '../../catalog/index.ts'
import { everyDoor } from '../doors.ts'

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
