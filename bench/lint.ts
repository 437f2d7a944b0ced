import { lintDraft, rulesByTopic } from '../server/templates/lint.ts'
import { buildExample } from '../server/templates/lint/examples.ts'
import type { Draft } from '../server/templates/lint/rule.ts'

/**
 * How long lint takes for the draft of every rule's two examples, and for the largest draft there is,
 * against `JSON.stringify` of the same draft: medians and worst cases of single runs in microseconds. Fails
 * when the median of the drafts is a millisecond or more.
 */
const RUNS = 200
const MEDIAN_US = 1000

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

const median = (numbers: readonly number[]): number =>
  numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]!

const time = (run: (draft: Draft) => unknown, of: readonly Draft[]): number[] => {
  const times = []
  // The drafts in turn, so that none is measured warmer than it is met.
  for (let i = 0; i < Math.max(RUNS, of.length * 20); i++) {
    const draft = of[i % of.length]!
    const begun = performance.now()
    run(draft)
    times.push((performance.now() - begun) * 1000)
  }
  return times
}

const shown = (value: number): string => value.toFixed(1).padStart(10)

process.stdout.write(
  `${'lint (µs)'.padEnd(24)}${'median'.padStart(10)}${'worst'.padStart(10)}${'JSON'.padStart(10)}${'ratio'.padStart(10)}\n`,
)
for (const [name, of] of Object.entries(drafts)) {
  time(lintDraft, of)
  const lint = time(lintDraft, of)
  const json = median(time(JSON.stringify, of))
  const miss = name.startsWith('examples') && median(lint) >= MEDIAN_US
  if (miss) process.exitCode = 1
  process.stdout.write(
    `${name.padEnd(24)}${shown(median(lint))}${shown(Math.max(...lint))}${shown(json)}${shown(median(lint) / json)}${miss ? `  MISSES ${MEDIAN_US}` : ''}\n`,
  )
}
