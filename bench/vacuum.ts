import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import postgres from 'postgres'
import { fillDatabase } from './data.ts'
import { dropBenchDatabase, withPostgres } from './databases.ts'

/**
 * Measures what autovacuum leaves after a burst of updates: dead rows and growth of the tables that change most, with
 * the storage parameters of the schema and with the defaults of PostgreSQL, on the same data in the same order.
 */
const { values: flags } = parseArgs({
  options: {
    contacts: { type: 'string', default: '50000' },
    rounds: { type: 'string', default: '12' },
    share: { type: 'string', default: '0.03' },
    'database-url': { type: 'string' },
  },
})
const [contacts, rounds, share] = [flags.contacts, flags.rounds, flags.share].map(Number) as [
  number,
  number,
  number,
]
/** Each with a change that the product makes often, of an indexed column where it does so. */
const CHANGES = {
  contacts: 'last_activity_at = now()',
  contact_facts: 'attrs = attrs',
  conversations: 'updated_at = now()',
  messages: "status = case status when 'read' then 'delivered' else 'read' end",
  conversation_episodes: "closed_at = coalesce(closed_at, opened_at) + interval '1 second'",
  reply_waits: "ended_at = coalesce(ended_at, since) + interval '1 second'",
  contact_attributes: 'workspace_id = workspace_id',
  contact_tags: 'workspace_id = workspace_id',
} as const
type TableName = keyof typeof CHANGES
const TABLES = Object.keys(CHANGES) as TableName[]
const PARAMETERS = [
  'autovacuum_vacuum_scale_factor',
  'autovacuum_analyze_scale_factor',
  'autovacuum_vacuum_insert_scale_factor',
]
/** Longer than autovacuum_naptime of the cluster, so that it looks once a round. */
const ROUND_MS = 2500

type State = { size: number; dead: number; vacuums: number }

const readState = async (sql: postgres.Sql): Promise<Record<string, State>> => {
  await sql`select pg_stat_force_next_flush()`
  const rows = await sql<(State & { name: string })[]>`
    select relname as name, pg_total_relation_size(relid)::float8 / 1e6 as size,
      n_dead_tup::int as dead, autovacuum_count::int as vacuums
    from pg_stat_user_tables where relname = any(${TABLES as string[]}::text[])`
  return Object.fromEntries(rows.map(({ name, ...state }) => [name, state]))
}

const run = async (adminUrl: string, withParameters: boolean): Promise<Record<string, [State, State]>> => {
  const dataset = await fillDatabase(adminUrl, contacts)
  const sql = postgres(dataset.databaseUrl, { max: 1, onnotice: () => {} })
  try {
    if (!withParameters)
      for (const table of TABLES) await sql.unsafe(`alter table ${table} reset (${PARAMETERS.join(', ')})`)
    const before = await readState(sql)
    for (let round = 0; round < rounds; round++) {
      for (const table of TABLES)
        await sql.unsafe(
          `update ${table} set ${CHANGES[table]}
            where abs(hashint8(('x' || substr(md5(ctid::text || ${round}), 1, 15))::bit(60)::bigint)) % 1000
              < ${share * 1000}`,
        )
      await sleep(ROUND_MS)
    }
    await sleep(ROUND_MS)
    const after = await readState(sql)
    return Object.fromEntries(TABLES.map((table) => [table, [before[table]!, after[table]!]]))
  } finally {
    await sql.end()
    await dropBenchDatabase(adminUrl, dataset)
  }
}

const print = (...cells: readonly (string | number)[]): void => console.log(`| ${cells.join(' | ')} |`)
const SETTINGS = { autovacuum_naptime: '1s', autovacuum_vacuum_cost_delay: '0' }

await withPostgres(
  flags['database-url'],
  '512MB',
  async (adminUrl) => {
    const [ours, defaults] = [await run(adminUrl, true), await run(adminUrl, false)]
    print('table', 'MB before', 'dead rows; MB; vacuums', 'by the defaults')
    print('---', '---', '---', '---')
    const show = ({ dead, size, vacuums }: State): string => `${dead}; ${size.toFixed(1)}; ${vacuums}`
    for (const table of TABLES)
      print(table, ours[table]![0].size.toFixed(1), show(ours[table]![1]), show(defaults[table]![1]))
  },
  SETTINGS,
)
