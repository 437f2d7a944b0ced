import { readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { type GroupName, measureCapacity, type Measurement } from './capacity-data.ts'
import { withPostgres } from './databases.ts'

/**
 * What wcrm needs for so many contacts and messages: prints what was measured, and the largest measurement ten and a
 * hundred times as large. `--measure 100000,1000000` measures, and records it in `recorded-capacity.json`. The other
 * options are the assumptions of docs/capacity.md.
 */
const { values: flags } = parseArgs({
  options: {
    measure: { type: 'string' },
    'database-url': { type: 'string' },
    'messages-per-contact-day': { type: 'string', default: '0.05' },
    'changes-per-message': { type: 'string', default: '1' },
    'reads-per-message': { type: 'string', default: '10' },
    'peak-factor': { type: 'string', default: '5' },
    'event-days': { type: 'string', default: '90' },
    'audit-days': { type: 'string', default: '400' },
    'growth-years': { type: 'string', default: '1' },
    factors: { type: 'string', default: '1,10,100' },
  },
})
const RECORD = new URL('recorded-capacity.json', import.meta.url)
const UPDATE_DAYS = 8
const CONNECTIONS_PER_PROCESS = 18
/** The planned utilisation of a core at the peak. */
const UTILISATION = 0.5
/** Data for which the benchmark spreads conversations (days), and what people look at. */
const [SPREAD_DAYS, HOT_DAYS] = [730, 30]
const SECONDS_A_DAY = 86_400
const print = (text = ''): void => void process.stdout.write(`${text}\n`)

const number = (name: keyof typeof flags): number => {
  const value = Number(flags[name])
  if (!Number.isFinite(value)) throw new Error(`--${name} is not a number`)
  return value
}

const readRecord = (): Measurement[] => JSON.parse(readFileSync(RECORD, 'utf8')) as Measurement[]

/** Processor time of a request in microseconds, server and database together, of the table in tools/bench/README.md. */
const readProcessorTime = (name: string): number => {
  const table = readFileSync(new URL('README.md', import.meta.url), 'utf8')
  const found = new RegExp(`^ +\\d+ +16  ${name} +\\d+ +(\\d+) `, 'm').exec(table)
  if (!found) throw new Error(`tools/bench/README.md has no row for ${name} over 16 connections`)
  return Number(found[1])
}

const formatBytes = (bytes: number): string =>
  bytes >= 1e12
    ? `${(bytes / 1e12).toFixed(1)} TB`
    : bytes >= 1e9
      ? `${(bytes / 1e9).toFixed(1)} GB`
      : `${(bytes / 1e6).toFixed(0)} MB`
const formatSeconds = (seconds: number): string =>
  seconds >= 5400 ? `${(seconds / 3600).toFixed(1)} h` : `${Math.ceil(seconds / 60)} min`
const printRow = (...cells: readonly (string | number)[]): void => print(`| ${cells.join(' | ')} |`)

const printMeasured = (measurements: readonly Measurement[]): void => {
  printRow(
    'bytes for one',
    ...measurements.map(({ contacts }) => `${contacts.toLocaleString('en')} contacts`),
  )
  printRow('---', ...measurements.map(() => '---'))
  const names: readonly (readonly [GroupName, string])[] = [
    ['contacts', 'contact'],
    ['conversations', 'conversation'],
    ['messages', 'message'],
  ]
  for (const [group, name] of names)
    printRow(
      `${name} (of it indexes)`,
      ...measurements.map(({ groups }) => {
        const { bytes, indexBytes, rows } = groups[group]
        return `${Math.round(bytes / rows)} (${Math.round(indexBytes / rows)})`
      }),
    )
  const rows: readonly (readonly [string, (m: Measurement) => number])[] = [
    ['event', ({ kept }) => kept.event],
    ['audit row', ({ kept }) => kept.audit],
    ['stored response (24 h)', ({ kept }) => kept.response],
    ['update of the provider (8 days)', ({ kept }) => kept.update],
    ['log: a change of a contact', ({ wal }) => wal.change],
    ['log: a message of a customer', ({ wal }) => wal.message],
  ]
  for (const [name, read] of rows) printRow(name, ...measurements.map(read))
  printRow('vacuum of 1 GB, seconds', ...measurements.map((m) => m.vacuumSecondsPerGb))
}

/** The needs of a multiple of the measurement, under the assumptions of the flags. */
const simulate = (base: Measurement, factor: number): string[] => {
  const { groups, kept, wal } = base
  const size = (name: GroupName, part: 'bytes' | 'indexBytes' = 'bytes'): number =>
    groups[name][part] * factor
  const contacts = base.contacts * factor
  const messagesADay = contacts * number('messages-per-contact-day')
  const changesADay = messagesADay * number('changes-per-message')
  const grown = messagesADay * 365 * number('growth-years') * (groups.messages.bytes / groups.messages.rows)
  // A message has two events of its own: it arrived, and its conversation changed.
  const eventsADay = messagesADay * 2 + changesADay
  const retained =
    eventsADay * number('event-days') * kept.event +
    changesADay * (number('audit-days') * kept.audit + kept.response) +
    messagesADay * UPDATE_DAYS * kept.update
  const stored = size('contacts') + size('conversations') + size('messages')
  const hot =
    size('contacts', 'indexBytes') +
    size('conversations', 'indexBytes') +
    (size('messages', 'indexBytes') * HOT_DAYS) / SPREAD_DAYS
  const time =
    (readProcessorTime('get by id') * 0.5 + readProcessorTime('conversations') * 0.5) *
      number('reads-per-message') +
    readProcessorTime('upsert') * (1 + number('changes-per-message'))
  const cores = (((messagesADay / SECONDS_A_DAY) * time * number('peak-factor')) / 1e6 / UTILISATION) * 1
  const processes = Math.max(1, Math.ceil(cores / 2))
  return [
    contacts.toLocaleString('en'),
    Math.round(messagesADay).toLocaleString('en'),
    formatBytes(stored),
    formatBytes(stored + grown + retained),
    formatBytes(hot),
    formatBytes(messagesADay * wal.message + changesADay * wal.change),
    Math.max(1, Math.ceil(cores)).toString(),
    `${processes * CONNECTIONS_PER_PROCESS}`,
    formatSeconds((stored / 1e9) * base.vacuumSecondsPerGb),
  ]
}

const printSimulation = (base: Measurement): void => {
  const columns = [
    'contacts',
    'messages a day',
    'disk now',
    `disk in ${flags['growth-years']} year`,
    'memory for hot indexes',
    'log a day',
    'cores at the peak',
    'connections',
    'vacuum of everything',
  ]
  printRow(...columns)
  printRow(...columns.map(() => '---'))
  for (const factor of flags.factors.split(',')) printRow(...simulate(base, Number(factor)))
}

if (flags.measure !== undefined) {
  const counts = flags.measure.split(',').map(Number)
  await withPostgres(flags['database-url'], '2GB', async (adminUrl) => {
    const measurements: Measurement[] = []
    for (const contacts of counts) measurements.push(await measureCapacity(adminUrl, contacts))
    writeFileSync(RECORD, `${JSON.stringify(measurements, null, 2)}\n`)
  })
}
const measurements = readRecord()
printMeasured(measurements)
print()
printSimulation(measurements.at(-1)!)
