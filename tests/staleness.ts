import assert from 'node:assert/strict'

const LIMIT_MS = 20_000

/**
 * Polls until a change that was just made takes effect. Returns how many milliseconds after the change the last poll
 * with the old result was started: its start, because on a busy machine a response may take long.
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
