import { lintDraft, rulesByTopic } from '../../server/domains/templates/lint.ts'
import { buildExample } from '../../server/domains/templates/lint/examples.ts'
import type { Draft } from '../../server/domains/templates/lint/rule.ts'
import { median } from './statistics.ts'

/**
 * Measures lint for the drafts of every rule's two examples and for the largest drafts, compared with
 * `JSON.stringify` of the same draft: medians and worst cases of single runs in microseconds. Fails when the
 * median of the examples is a millisecond or more.
 */
const MIN_RUNS = 200
const MAX_MEDIAN_US = 1000

const body = {
  text: `${'Your order {{1}} is on its way. '.repeat(150)}`.slice(0, 5000),
  examples: Array.from({ length: 100 }, (_, i) => `sample ${i}`),
}
const button = {
  type: 'URL' as const,
  text: 'x'.repeat(200),
  url: `https://shop.example/${'x'.repeat(3900)}{{1}}`,
  url_example: `https://shop.example/${'x'.repeat(3901)}`,
}
const drafts: Record<string, Draft[]> = {
  'examples of the rules': Object.values(rulesByTopic)
    .flat()
    .flatMap(({ breaks, passes }) => [buildExample(breaks), buildExample(passes)]),
  'a text of 1024': [
    buildExample({
      set: {
        body: {
          text: `Hello {{1}}, ${'your order is on its way '.repeat(40)}`.slice(0, 1023).concat('.'),
          examples: ['Ada'],
        },
      },
    }),
  ],
  'thirty buttons': [{ ...buildExample({}), body, buttons: Array.from({ length: 30 }, () => button) }],
  'twenty cards': [
    {
      ...buildExample({ base: 'carousel' }),
      body,
      carousel: {
        cards: Array.from({ length: 20 }, () => ({
          header_format: 'IMAGE' as const,
          media_handle: 'x'.repeat(4000),
          body,
          buttons: Array.from({ length: 5 }, () => button),
        })),
      },
    },
  ],
}

const measureRuns = (run: (draft: Draft) => unknown, samples: readonly Draft[]): number[] => {
  const times = []
  // The drafts in turn, so that caches are not warmer than in practice.
  for (let i = 0; i < Math.max(MIN_RUNS, samples.length * 20); i++) {
    const draft = samples[i % samples.length]!
    const startedAt = performance.now()
    run(draft)
    times.push((performance.now() - startedAt) * 1000)
  }
  return times
}

const formatCell = (value: number): string => value.toFixed(1).padStart(10)

const headings = ['median', 'worst', 'JSON', 'ratio'].map((heading) => heading.padStart(10)).join('')
process.stdout.write(`${'lint (µs)'.padEnd(24)}${headings}\n`)
for (const [name, samples] of Object.entries(drafts)) {
  measureRuns(lintDraft, samples)
  const times = measureRuns(lintDraft, samples)
  const json = median(measureRuns(JSON.stringify, samples))
  const misses = name.startsWith('examples') && median(times) >= MAX_MEDIAN_US
  if (misses) process.exitCode = 1
  const cells = [median(times), Math.max(...times), json, median(times) / json].map(formatCell).join('')
  process.stdout.write(`${name.padEnd(24)}${cells}${misses ? `  MISSES ${MAX_MEDIAN_US}` : ''}\n`)
}
