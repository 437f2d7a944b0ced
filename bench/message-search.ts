import { performance } from 'node:perf_hooks'
import { openStorage } from '../storage/open.ts'
import { searchMessageRows } from '../storage/message-search.ts'
import { readSearchTerms } from '../storage/message-search-terms.ts'

/**
 * Times the first page of searches in messages on a database that holds them (see bench/README.md): the statements
 * alone, without HTTP. `--database-url URL --workspace ID`.
 */
const argument = (name: string): string => {
  const at = process.argv.indexOf(`--${name}`)
  if (at < 0) throw new Error(`--${name} is missing.`)
  return process.argv[at + 1]!
}
const ROUNDS = 15
const none = {
  channels: undefined,
  staffId: undefined,
  conversationId: undefined,
  contactId: undefined,
  direction: undefined,
}
const cases: [what: string, query: string, filter: object][] = [
  ['rare', 'zebra', {}],
  ['none', 'absent', {}],
  ['one in 300', 'invoice', {}],
  ['one in 50', 'refund', {}],
  ['one in 2', 'order', {}],
  ['one in 3, until three months ago', 'christmas', {}],
  ['two common words', 'order thanks', {}],
  ['a common and a rare word', 'order zebra', {}],
  ['a form of a word', 'invoices', {}],
  ['words that are never together', 'order hello', {}],
  ['a phrase', '"your order refund"', {}],
  ['a phrase that nobody wrote', '"thanks order"', {}],
  ['common, a rare channel', 'order', { channels: ['8'] }],
  ['common, three channels', 'order', { channels: ['1', '2', '3'] }],
  ['one in 300, a rare channel', 'invoice', { channels: ['8'] }],
  ['rare, a channel', 'zebra', { channels: ['3'] }],
  ['common, inbound', 'order', { direction: 'inbound' }],
  ['common, a staff member', 'order', { staffId: '3' }],
  ['common, a contact', 'order', { contactId: '77' }],
  ['common, a day of last year', 'order', { from: '2025-12-24T00:00:00Z', to: '2025-12-25T00:00:00Z' }],
  ['one in 300, a month', 'invoice', { from: '2026-03-01T00:00:00Z', to: '2026-04-01T00:00:00Z' }],
]

const storage = await openStorage({ databaseUrl: argument('database-url') })
const workspaceId = argument('workspace')
for (const [what, query, filter] of cases) {
  const times: number[] = []
  let found = 0
  for (let n = 0; n < ROUNDS; n++) {
    const start = performance.now()
    const terms = await readSearchTerms(storage.db, query)
    const { rows } = await searchMessageRows(storage.db, {
      ...none,
      from: undefined,
      to: undefined,
      ...filter,
      workspaceId,
      terms,
      after: null,
      limit: 26,
    })
    times.push(performance.now() - start)
    found = rows.length
  }
  times.sort((a, b) => a - b)
  const show = (ms: number): string => ms.toFixed(1).padStart(8)
  console.log(
    [
      what.padEnd(34),
      'median',
      show(times[ROUNDS >> 1]!),
      'best',
      show(times[0]!),
      'worst',
      show(times.at(-1)!),
    ].join(' ') + ` ms, ${found} rows`,
  )
}
await storage.close()
