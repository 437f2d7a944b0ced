import assert from 'node:assert/strict'
import { it } from 'node:test'
import { computeBackoff, computeRetrySeconds } from '../../server/work/backoff.ts'

it('what failed waits twice as long each time, ten minutes at most, however often it failed', () => {
  const delays = Array.from({ length: 13 }, (_, failures) => computeRetrySeconds(failures))
  assert.deepEqual(delays, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600, 600])
  assert.equal(computeRetrySeconds(5000), 600)
})

it('a delay begins with the first and never exceeds the longest', () => {
  const delays = [1, 2, 3, 4].map((failures) => computeBackoff(failures, { first: 30, longest: 100 }))
  assert.deepEqual(delays, [30, 60, 100, 100])
  assert.equal(computeBackoff(1, { first: 5, longest: 3 }), 3)
})
