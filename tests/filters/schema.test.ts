import assert from 'node:assert/strict'
import { it } from 'node:test'
import { z } from 'zod'
import { createFilterSchemas } from '../../server/domains/filters/schema.ts'
import { ALL_OPERATORS, fieldCases, toOperand } from './grammar-cases.ts'

const { ContactFilter: root, ...$defs } = createFilterSchemas()
const schema = z.fromJSONSchema({ ...root, $defs: { ContactFilter: root, ...$defs } } as never)
const accepts = (filter: unknown): boolean => schema.safeParse(filter).success

it('the JSON Schema of filters takes each field with its operators, and no other', () => {
  for (const { name, wrap, operators, good } of fieldCases)
    for (const op of ALL_OPERATORS) {
      const filter = wrap({ [op]: toOperand(op, good) })
      assert.equal(accepts(filter), operators.split(' ').includes(op), `${name} ${JSON.stringify(filter)}`)
    }
})

it('the JSON Schema of filters combines them, and refuses unknown names at any depth', () => {
  const nest = (inner: unknown) => ({ and: [{ or: [{ not: inner }, { savedFilter: { eq: '5' } }] }] })
  assert.equal(accepts(nest({ name: { eq: 'x' } })), true)
  for (const inner of [
    { nmae: { eq: 'x' } },
    { name: { equals: 'x' } },
    { name: {} },
    { tags: { name: { eq: 'x' } } },
    { attributes: { some: { stringValue: { eq: 'x' } } } },
    { and: [] },
    { conversations: { some: { state: { eq: 'ajar' } } } },
  ])
    assert.equal(accepts(nest(inner)), false, JSON.stringify(inner))
})
