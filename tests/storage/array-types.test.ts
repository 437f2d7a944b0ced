import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { sql } from 'kysely'
import { everyDatabase } from '../doors.ts'

const text = fc.oneof(
  fc.string({ unit: 'grapheme' }).map((value) => value.replaceAll('\0', '')),
  fc.constantFrom('', 'null', 'NULL', '"', '\\', '{}', ',', ' a ', '\n'),
)
const time = fc
  .date({ min: new Date('1900-01-01'), max: new Date('2100-01-01'), noInvalidDate: true })
  .map((date) => date.toISOString())

/** A type, and values of it as they are sent and as they come back. */
const types = {
  text: { values: text },
  bigint: { values: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String) },
  integer: { values: fc.integer() },
  'double precision': { values: fc.double({ noNaN: true, noDefaultInfinity: true }).map((n) => n + 0) },
  timestamptz: { values: time },
  jsonb: { values: fc.record({ key: text, list: fc.array(fc.integer()) }, { noNullPrototype: true }) },
} satisfies Record<string, { values: fc.Arbitrary<unknown> }>

everyDatabase('Arrays in statements', (server) => {
  for (const [type, { values }] of Object.entries(types))
    it(`of ${type} come back as they were sent`, async () => {
      const array = fc.array(fc.option(values as fc.Arbitrary<unknown>, { nil: null }), { maxLength: 8 })
      const property = fc.asyncProperty(array, async (sent) => {
        const query = sql<{ back: unknown }>`select ${sent}::${sql.raw(type)}[] as back`
        assert.deepEqual((await query.execute(server().db)).rows[0]!.back, sent)
      })
      await fc.assert(property, { numRuns: 50 })
    })

  it('are read where postgres.js cannot send them', async () => {
    const { rows } = await sql`
      select array[true, null, false] as booleans, array['\\x00ff5c22', '']::bytea[] as bytes`.execute(
      server().db,
    )
    assert.deepEqual(rows[0], {
      booleans: [true, null, false],
      bytes: [Buffer.from([0, 255, 92, 34]), Buffer.alloc(0)],
    })
  })
})
