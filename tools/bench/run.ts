import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { createCases } from './cases.ts'
import { createRounds, type Round, type Sample, type Servers, summarize, total } from './comparison.ts'
import { type Dataset, fillDatabase, prepareForCases } from './data.ts'
import { dropBenchDatabase, withPostgres } from './databases.ts'
import { buildPackage, type ColdStart, measureColdStart, sourceLauncher } from './launchers.ts'
import { readResidentMemoryMb, startBareServer, startProduct } from './processes.ts'
import { openProcessorReader, type ProcessorReader } from './processor.ts'
import { requireSameAnswers } from './same-answers.ts'
import { requireWrk } from './wrk.ts'
import { writeResults } from './results.ts'

/**
 * Measures the product and a bare server on the same database, in alternating short rounds. Prints medians
 * and ratios.
 */
const { values: flags } = parseArgs({
  options: {
    contacts: { type: 'string', default: '100000' },
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '5' },
    connections: { type: 'string', default: '16' },
    only: { type: 'string' },
    'database-url': { type: 'string' },
    profile: { type: 'string' },
    source: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
  },
})
const rounds = Number(flags.rounds)
const seconds = Number(flags.seconds)
const WARM_UP_SECONDS = 2
/** What each case begins with: over one connection, Node would compile the servers' code while it is measured. */
const COMPILING_LOAD = { seconds: 4, connections: 16 }
const print = (text: string): void => void process.stderr.write(`${text}\n`)

type Line = Round & { contacts: number; connections: number; name: string; against: string }

const formatSample = ({ rate, p50, p99, processor }: Sample): string => {
  const time = processor
    ? `${Math.round(total(processor))} (${Math.round(processor.server)}+${Math.round(processor.database)})`
    : '-'
  return (
    rate.toFixed(0).padStart(7) + time.padStart(18) + p50.toFixed(2).padStart(8) + p99.toFixed(2).padStart(8)
  )
}

const formatLine = ({ contacts, connections, name, against, product, other, ratios }: Line): string =>
  String(contacts).padStart(8) +
  String(connections).padStart(6) +
  `  ${name.padEnd(14)}` +
  formatSample(product) +
  `  ${against.padEnd(5)}` +
  formatSample(other) +
  ratios.throughput.toFixed(2).padStart(12) +
  (ratios.processor?.toFixed(2) ?? '-').padStart(11)

const SAMPLE_HEAD = `${'/s'.padStart(7)}${'µs'.padStart(18)}${'p50'.padStart(8)}${'p99'.padStart(8)}`
const HEAD =
  `contacts conns  ${'case'.padEnd(14)}${SAMPLE_HEAD}  ` +
  `${'vs'.padEnd(5)}${SAMPLE_HEAD}  throughput  processor`

const measureCases = async (
  dataset: Dataset,
  servers: Servers,
  reader: ProcessorReader | undefined,
  folder: string,
): Promise<Line[]> => {
  const lines: Line[] = []
  const only = flags.only?.split(',')
  for (const benchCase of createCases(dataset)) {
    if (only && !only.includes(benchCase.name)) continue
    await requireSameAnswers(benchCase, servers, dataset)
    const runRound = createRounds(folder, benchCase, servers, reader)
    await runRound(COMPILING_LOAD)
    for (const connections of flags.connections.split(',').map(Number)) {
      await runRound({ seconds: WARM_UP_SECONDS, connections })
      const measured: Round[] = []
      for (let i = 0; i < rounds; i++) measured.push(await runRound({ seconds, connections }))
      const { name, other } = benchCase
      const line = {
        ...summarize(measured),
        contacts: dataset.contacts,
        connections,
        name,
        against: other.name,
      }
      lines.push(line)
      print(formatLine(line))
    }
  }
  return lines
}

const benchmark = async (
  dataset: Dataset,
  launcher: string,
  folder: string,
): Promise<{ lines: Line[]; memoryMb: number | undefined }> => {
  const reader = await openProcessorReader(dataset.databaseUrl)
  const bare = await startBareServer(dataset.databaseUrl, dataset.workspaceId)
  const product = await startProduct(dataset.databaseUrl, launcher, flags.profile)
  let memoryMb: number | undefined
  const interval = setInterval(() => {
    memoryMb = Math.max(memoryMb ?? 0, readResidentMemoryMb(product.pid) ?? 0) || undefined
  }, 250)
  try {
    return { lines: await measureCases(dataset, { bare, product }, reader, folder), memoryMb }
  } finally {
    clearInterval(interval)
    await product.stop()
    await bare.stop()
    await reader?.close()
  }
}

const describeColdStart = ({ wcrm, node, ratio }: ColdStart): string =>
  `wcrm --help ${wcrm.toFixed(0)} ms, node -e 0 ${node.toFixed(0)} ms: ${ratio.toFixed(2)} (at most 2.5)`

const main = async (adminUrl: string, folder: string): Promise<void> => {
  const launcher = flags.source ? sourceLauncher : buildPackage(folder)
  const cold = flags.only ? undefined : measureColdStart(launcher)
  const text: string[] = cold ? [describeColdStart(cold)] : []
  for (const line of text) print(line)
  text.push(HEAD)
  const all: Line[] = []
  for (const contacts of flags.contacts.split(',').map(Number)) {
    print(`filling a database with ${contacts} contacts`)
    const dataset = await fillDatabase(adminUrl, contacts)
    try {
      await prepareForCases(dataset.databaseUrl, dataset.workspaceId)
      print(HEAD)
      const { lines, memoryMb } = await benchmark(dataset, launcher, folder)
      all.push(...lines)
      text.push(...lines.map(formatLine))
      if (memoryMb) {
        text.push(`memory of the product under load, at most: ${memoryMb.toFixed(0)} MB (below 320)`)
        print(text.at(-1)!)
      }
    } finally {
      await dropBenchDatabase(adminUrl, dataset)
    }
  }
  if (flags.write) await writeResults('bare', text, adminUrl)
  if (flags.json) process.stdout.write(`${JSON.stringify({ cold, lines: all })}\n`)
  else process.stdout.write(`\n${text.join('\n')}\n`)
}

requireWrk()
const folder = mkdtempSync(join(tmpdir(), 'wcrm-bench-'))
try {
  await withPostgres(flags['database-url'], '512MB', (adminUrl) => main(adminUrl, folder))
} finally {
  rmSync(folder, { recursive: true, force: true })
}
