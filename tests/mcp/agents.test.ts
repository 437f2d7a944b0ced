import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { type Benchmark, formatTable, runBenchmark } from '../../tools/bench/agents/benchmark.ts'

import { dayBudget, formatDays, runSupportDays } from '../../tools/bench/agents/support-day.ts'

const recorded = JSON.parse(
  readFileSync(new URL('../../tools/bench/agents/recorded.json', import.meta.url), 'utf8'),
) as Benchmark

/** Random ids and cursors are some tokens longer or shorter each time. */
const ALLOWED = { share: 1.05, more: 15 }
const limit = (tokens: number): number => Math.ceil(tokens * ALLOWED.share) + ALLOWED.more

describe('agents at work', () => {
  it('a support day stays within its budget, in both modes and protocol revisions', async () => {
    const days = await runSupportDays()
    console.log(formatDays(days))
    for (const { calls, errors, tokens, ...day } of days) {
      const name = Object.values(day).join(' ')
      assert.equal(errors, 0, name)
      assert.ok(calls <= dayBudget.calls, `${name}: ${calls} calls`)
      assert.ok(tokens <= dayBudget.tokens, `${name}: ${tokens} tokens`)
    }
    assert.equal(days.length, 4)
  })

  it('every job is done right, at the recorded price', async () => {
    const benchmark = await runBenchmark()
    console.log(formatTable(benchmark))
    const worse = benchmark.jobs.flatMap(({ name, problem, ...cost }) => {
      if (problem !== undefined) return [`${name}: ${problem}`]
      const before = recorded.jobs.find((job) => job.name === name)
      if (!before) return [`${name}: not recorded; run \`npx node tools/bench/agents/run.ts --write\``]
      return [
        ...(cost.calls > before.calls ? [`${name}: ${cost.calls} calls, ${before.calls} before`] : []),
        ...(cost.errors > before.errors ? [`${name}: ${cost.errors} errors, ${before.errors} before`] : []),
        ...(cost.tokens > limit(before.tokens)
          ? [`${name}: ${cost.tokens} tokens, ${before.tokens} before`]
          : []),
      ]
    })
    assert.deepEqual(worse, [])
    assert.ok(benchmark.jobs.length >= 20)
    assert.ok(benchmark.listed.tokens <= limit(recorded.listed.tokens), 'the list of tools has grown')
  })
})
