import assert from 'node:assert/strict'

const LIMIT_MS = 20_000

/**
 * Asks again and again until a change that was just made counts. Returns how long after it, in milliseconds, the last
 * question was asked that was answered as before: on a busy machine an answer takes as long as it takes.
 */
export const measureStaleness = async (isInForce: () => Promise<boolean>): Promise<number> => {
  const changedAt = performance.now()
  for (let last = 0; ;) {
    const asked = performance.now() - changedAt
    if (await isInForce()) return last
    last = asked
    assert.ok(asked < LIMIT_MS, 'the change is not in force')
  }
}
