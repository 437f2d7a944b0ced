import { readFileSync, writeFileSync } from 'node:fs'
import type { Benchmark } from './benchmark.ts'

// Runs the jobs and prints the table; `--write` records it in recorded.json and README.md, beside this file.

process.env.WCRM_TEST_WORKER = 'benchmark'
const { formatTable, runBenchmark } = await import('./benchmark.ts')
const { formatDays, runSupportDays } = await import('./support-day.ts')
const { closeAll } = await import('../../../tests/at-end.ts')

const begin = '<!-- table -->'
const end = '<!-- end -->'

/** Replaces what is between the marks of the README. */
const writeTable = (benchmark: Benchmark): void => {
  const path = new URL('README.md', import.meta.url)
  const [head, rest] = readFileSync(path, 'utf8').split(begin) as [string, string]
  writeFileSync(
    path,
    `${head}${begin}\n\n${formatTable(benchmark)}\n\n${days}\n\n${end}${rest.split(end)[1]}`,
  )
}

const days = formatDays(await runSupportDays())
const benchmark = await runBenchmark()
await closeAll()
console.log(`${formatTable(benchmark)}\n\n${days}`)
const wrong = benchmark.jobs.filter(({ problem }) => problem !== undefined)
for (const { name, problem } of wrong) console.error(`\n${name}: ${problem}`)
if (wrong.length > 0) process.exitCode = 1
else if (process.argv.includes('--write')) {
  writeFileSync(new URL('recorded.json', import.meta.url), `${JSON.stringify(benchmark, null, 2)}\n`)
  writeTable(benchmark)
}
