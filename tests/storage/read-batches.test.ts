import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { Db } from '../../storage/database.ts'
import { readInBatch } from '../../storage/read-batches.ts'

/** Reads whose statements end when the test says so. A row is its id with the number of its statement. */
const createReads = () => {
  const db = {} as Db
  const statements: { ids: readonly string[]; end: (error?: Error) => void }[] = []
  const send = (ids: readonly string[]): Promise<Map<string, string>> =>
    new Promise((resolve, reject) => {
      const number = statements.length
      const rows = new Map(ids.filter((id) => id !== 'gone').map((id) => [id, `${id} of ${number}`]))
      statements.push({ ids, end: (error) => (error ? reject(error) : resolve(rows)) })
    })
  const read = (id: string, kind = 'contact') =>
    readInBatch(db, kind, id, { one: async (one) => (await send([one])).get(one), many: send })
  return { read, statements, sent: () => statements.map(({ ids }) => ids.join()) }
}

it('two reads of a kind are statements of their own, and those that come meanwhile are one together', async () => {
  const { read, statements, sent } = createReads()
  const first = [read('a'), read('b')]
  const waiting = [read('c'), read('a'), read('gone'), read('c')]
  const other = read('x', 'another kind')
  assert.deepEqual(sent(), ['a', 'b', 'x'])
  statements[0]!.end()
  assert.equal(await first[0], 'a of 0')
  // The rows are those of a statement that began after the call.
  assert.deepEqual(sent(), ['a', 'b', 'x', 'c,a,gone'])
  statements[3]!.end()
  assert.deepEqual(await Promise.all(waiting), ['c of 3', 'a of 3', undefined, 'c of 3'])
  statements[1]!.end()
  statements[2]!.end()
  assert.deepEqual([await first[1], await other], ['b of 1', 'x of 2'])
  const alone = read('d')
  assert.equal(sent().at(-1), 'd')
  statements[4]!.end()
  assert.equal(await alone, 'd of 4')
})

it('a statement that fails fails its own reads alone', async () => {
  const { read, statements } = createReads()
  const reads = ['a', 'b', 'c', 'd'].map((id) => read(id))
  const outcomes = Promise.allSettled(reads)
  statements[0]!.end(new Error('lost'))
  await assert.rejects(reads[0]!, /lost/)
  const later = read('e')
  statements[2]!.end(new Error('lost too'))
  await assert.rejects(reads[3]!, /lost too/)
  statements[3]!.end()
  statements[1]!.end()
  assert.equal(await later, 'e of 3')
  assert.deepEqual(
    (await outcomes).map(({ status }) => status),
    ['rejected', 'fulfilled', 'rejected', 'rejected'],
  )
})

it('at most a hundred rows are read by one statement', async () => {
  const { read, statements } = createReads()
  const reads = Array.from({ length: 252 }, (_, n) => read(String(n)))
  for (let n = 0; n < 5; n++) {
    statements[n]!.end()
    await new Promise((resolve) => setImmediate(resolve))
  }
  assert.deepEqual(
    statements.map(({ ids }) => ids.length),
    [1, 1, 100, 100, 50],
  )
  assert.equal((await Promise.all(reads)).length, 252)
})
