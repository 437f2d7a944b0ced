import { performance } from 'node:perf_hooks'
import { parseArgs } from 'node:util'
import { searchMessageRows } from '../../storage/messages/search.ts'
import { readSearchTerms } from '../../storage/messages/search-terms.ts'
import { openStorage } from '../../storage/open.ts'
import { dropBenchDatabase, withPostgres } from './databases.ts'
import { fillMessageDatabase } from './message-search-data.ts'
import { median } from './statistics.ts'

/**
 * Times the first page of searches in messages (tools/bench/README.md): the statements alone, without HTTP, in
 * milliseconds. `--database` measures one that was filled before, whose workspace has the id 1.
 */
const { values: flags } = parseArgs({
  options: {
    messages: { type: 'string', default: '1000000' },
    rounds: { type: 'string', default: '15' },
    keep: { type: 'boolean', default: false },
    'database-url': { type: 'string' },
    database: { type: 'string' },
  },
})
const rounds = Number(flags.rounds)
const daysAgo = (days: number): string => new Date(Date.now() - days * 86_400_000).toISOString()
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
  ['one in 100', 'refund', {}],
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
  ['common, a day of last year', 'order', { from: daysAgo(300), to: daysAgo(299) }],
  ['one in 300, a month', 'invoice', { from: daysAgo(240), to: daysAgo(210) }],
]

const measure = async (databaseUrl: string, workspaceId: string): Promise<void> => {
  const storage = await openStorage({ databaseUrl })
  try {
    for (const [what, query, filter] of cases) {
      const times: number[] = []
      let found = 0
      for (let n = 0; n < rounds; n++) {
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
      const show = (ms: number): string => ms.toFixed(1).padStart(8)
      console.log(
        `${what.padEnd(34)} median ${show(median(times))} best ${show(Math.min(...times))} ` +
          `worst ${show(Math.max(...times))}, ${found} rows`,
      )
    }
  } finally {
    await storage.close()
  }
}

if (flags.database !== undefined) await measure(flags.database, '1')
else
  await withPostgres(flags['database-url'], '2GB', async (adminUrl) => {
    const startedAt = performance.now()
    const filled = await fillMessageDatabase(adminUrl, Number(flags.messages))
    console.log(
      `${flags.messages} messages, filled in ${Math.round((performance.now() - startedAt) / 1000)} s`,
    )
    await measure(filled.databaseUrl, filled.workspaceId)
    if (flags.keep) console.log(filled.databaseUrl)
    else await dropBenchDatabase(adminUrl, filled)
  })
