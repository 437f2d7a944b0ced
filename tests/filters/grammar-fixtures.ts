import assert from 'node:assert/strict'
import { customFieldTypes, optionTypes } from '../../catalog/custom-fields.ts'
import { callAs, doAs } from '../calls.ts'
import type { Reply } from '../doors.ts'
import { makeWorkspace, type TestServer } from '../servers.ts'

export type Json = Record<string, unknown>

/** The time of the server in tests of the grammar. */
export const GRAMMAR_NOW = '2026-10-01T09:30:00.000Z'

/** A filter of one condition, for tests to which the condition does not matter. */
export const NAME_IS_X = { name: { eq: 'x' } }

/** Builds filters with a test of a field of the contact. */
export const onField =
  (field: string) =>
  (test: Json): Json => ({ [field]: test })

/** Builds filters with a test of a field of a related record. `more`: further conditions on the record. */
export const onRelation =
  (relation: string, quantifier: string, field: string, more: Json = {}) =>
  (test: Json): Json => ({ [relation]: { [quantifier]: { ...more, [field]: test } } })

/** Builds filters with a test of the value of a custom field. */
export const onAttributeValue = (field: string, key: string, quantifier = 'some') =>
  onRelation('attributes', quantifier, field, { attributeName: { eq: key } })

/** Wraps a filter in `levels` negations. */
export const nestInNot = (levels: number, inner: unknown = NAME_IS_X): unknown =>
  levels === 0 ? inner : { not: nestInNot(levels - 1, inner) }

/** Creates a filter whose JSON has this many bytes. */
export const createFilterOfSize = (bytes: number): Json => {
  const filter = { name: { in: [] as string[] } }
  const available = bytes - JSON.stringify(filter).length
  // Each item takes 103 bytes with its quotes and comma; the first has no comma.
  const count = Math.floor((available + 1) / 103) - 1
  filter.name.in = Array.from({ length: count }, (_, n) => `${n}`.padStart(100, 'x'))
  filter.name.in.push('y'.repeat(available + 1 - count * 103 - 3))
  return filter
}

/** Creates a workspace and functions that call the server as its owner; `check` checks a filter. */
export const setUp = async (server: TestServer, timezone = 'UTC') => {
  const workspace = await makeWorkspace(server, { timezone })
  const call = callAs(server, workspace.owner.key)
  return {
    workspace,
    call,
    run: doAs(server, workspace.owner.key),
    check: async (filter: unknown) => await call('crm_check_filter', { filter }),
  }
}

/** Creates a custom field of each type, with the key `f_<type>`. */
export const createFieldOfEveryType = async (call: ReturnType<typeof callAs>): Promise<void> => {
  for (const type of customFieldTypes) {
    await call('crm_create_custom_field', {
      key: `f_${type}`,
      label: `Field ${type}`,
      type,
      ...(optionTypes.includes(type)
        ? {
            options: [
              { label: 'Gold plan', value: 'gold' },
              { label: 'Basic', value: 'basic' },
            ],
          }
        : {}),
    })
  }
}

/** Asserts that a request is refused with an error at `pointer` that has a fix. */
export const assertRefused = (
  reply: Reply,
  expected: { status?: number; reason?: string; pointer: string; code?: string },
): void => {
  assert.equal(reply.status, expected.status ?? 400, reply.text)
  assert.equal(reply.body.reason, expected.reason, reply.text)
  assert.equal(reply.body.errors[0].pointer, expected.pointer, reply.text)
  if (expected.code) assert.equal(reply.body.errors[0].code, expected.code, reply.text)
  assert.ok(reply.body.errors[0].fix, reply.text)
}
