import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type BenchCase, createCases } from './cases.ts'
import { createRounds, type Round, summarize, total } from './comparison.ts'
import { type Dataset, fillDatabase } from './data.ts'
import { dropBenchDatabase, runStatements, withPostgres } from './databases.ts'
import { sourceLauncher } from './launchers.ts'
import { startProduct, startServer } from './processes.ts'
import { openProcessorReader } from './processor.ts'
import { writeResults } from './results.ts'
import { requireWrk, type WrkRequest } from './wrk.ts'

/**
 * Measures the product against PostGraphile, which is installed into a temporary folder, on the same tables
 * in alternating rounds: a contact by id, and a list of 25 with the total, each with values, labels and
 * conversations. Exits with 1 when the product is less than 3.5 and 8 times as fast.
 */
const { values: flags } = parseArgs({
  options: {
    contacts: { type: 'string', default: '100000' },
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '2' },
    connections: { type: 'string', default: '16' },
    'database-url': { type: 'string' },
    write: { type: 'boolean', default: false },
  },
})
const seconds = Number(flags.seconds)
const connections = Number(flags.connections)
const targets: Record<string, number> = { 'get by id': 3.5, 'list 25': 8 }
const print = (text: string): void => void process.stderr.write(`${text}\n`)

/** Written into the folder of the installation, from where it finds PostGraphile. */
const serverScript = `
import { createServer } from 'node:http'
import { postgraphile } from 'postgraphile'
import { grafserv } from 'postgraphile/grafserv/node'
import { makePgService } from 'postgraphile/adaptors/pg'
import { PostGraphileAmberPreset } from 'postgraphile/presets/amber'

// It describes at length what it makes of functions and comments.
console.warn = console.error = () => {}
const instance = postgraphile({
  extends: [PostGraphileAmberPreset],
  pgServices: [makePgService({ connectionString: process.argv[2], schemas: ['public'], poolConfig: { max: 16 } })],
  grafserv: { graphqlPath: '/graphql', graphiql: false, watch: false },
  grafast: { explain: false },
})
const server = createServer()
await instance.createServ(grafserv).addTo(server)
server.listen(0, '127.0.0.1', () => {
  console.log(JSON.stringify({ url: 'http://127.0.0.1:' + server.address().port }))
})
process.once('SIGTERM', () => process.exit(0))
`

/** Installs the latest PostGraphile without its install scripts. Returns its version. */
const install = (folder: string): string => {
  writeFileSync(join(folder, 'package.json'), '{"private":true,"type":"module"}')
  execFileSync(
    'npm',
    ['install', '--silent', '--no-audit', '--no-fund', '--ignore-scripts', 'postgraphile@latest'],
    { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] },
  )
  writeFileSync(join(folder, 'server.mjs'), serverScript)
  const manifest = join(folder, 'node_modules', 'postgraphile', 'package.json')
  return (JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }).version
}

/** The tables have no foreign keys; comments tell PostGraphile how they belong together. */
const relations: Record<string, string> = {
  contact_facts: '(workspace_id, contact_id) references contacts (workspace_id, id)|@foreignFieldName facts',
  contact_tags:
    '(workspace_id, contact_id) references contacts (workspace_id, id)|@foreignFieldName tagLinks\n' +
    '@foreignKey (workspace_id, tag_id) references tags (workspace_id, id)|@fieldName tag',
  contact_groups:
    '(workspace_id, contact_id) references contacts (workspace_id, id)|@foreignFieldName groupLinks\n' +
    '@foreignKey (workspace_id, group_id) references groups (workspace_id, id)|@fieldName group',
  conversations:
    '(workspace_id, contact_id) references contacts (workspace_id, id)|@foreignFieldName conversationList',
}
const relate = (databaseUrl: string): Promise<void> =>
  runStatements(
    databaseUrl,
    Object.entries(relations).map(
      ([table, references]) =>
        `comment on table ${table} is E'@foreignKey ${references.replaceAll('\n', '\\n')}'`,
    ),
  )

/** What the product's contact has; the values as they are stored, which is less work. */
const contactFields = (full: boolean): string => `
  rowId name phone chatappUserId dnd starred createdAt updatedAt email webVisitorId lastActivityAt
  facts { attrs }
  ${full ? 'tagLinks { nodes { tag { rowId name } } } groupLinks { nodes { group { rowId name } } }' : ''}
  conversationList(first: 10, orderBy: [ACTIVITY_AT_DESC]) {
    nodes { rowId channelId state assignedStaffId assignedTeamId createdAt lastActivityAt } }`

const post = (query: string, variables: Record<string, unknown>): WrkRequest => ({
  method: 'POST',
  path: '/graphql',
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify({ query: query.replaceAll(/\s+/g, ' ').trim(), variables }),
})

const createComparisons = (dataset: Dataset): BenchCase[] => {
  const requests: Record<string, WrkRequest[]> = {
    'get by id': dataset.people.map(({ id }) =>
      post(
        `query ($workspaceId: BigInt!, $rowId: BigInt!) {
          contactByWorkspaceIdAndRowId(workspaceId: $workspaceId, rowId: $rowId) { ${contactFields(true)} } }`,
        { workspaceId: dataset.workspaceId, rowId: String(id) },
      ),
    ),
    'list 25': [
      post(
        `query ($workspaceId: BigInt!) {
          allContacts(first: 25, condition: { workspaceId: $workspaceId }, orderBy: [CREATED_AT_DESC]) {
            totalCount pageInfo { hasNextPage endCursor } nodes { ${contactFields(false)} } } }`,
        { workspaceId: dataset.workspaceId },
      ),
    ],
  }
  return createCases(dataset).flatMap((one) => {
    const theirs = requests[one.name]
    if (!theirs) return []
    return [{ ...one, other: { name: 'PostGraphile', server: 'postgraphile' as const, requests: theirs } }]
  })
}

/** GraphQL answers 200 with errors too. */
const requireData = async (url: string, { path, headers, body }: WrkRequest): Promise<void> => {
  const response = await fetch(url + path, { method: 'POST', headers: headers!, body: body! })
  const text = await response.text()
  const { errors, data } = JSON.parse(text) as { errors?: unknown; data?: Record<string, unknown> }
  if (errors || !data || Object.values(data).includes(null)) throw new Error(text.slice(0, 2000))
}

const describe = (name: string, { product, other, ratios }: Round): string => {
  const target = targets[name]!
  const sides = [product, other].map(
    ({ rate, processor }) => `${rate.toFixed(0)}/s, ${processor ? total(processor).toFixed(0) : '-'} µs`,
  )
  const verdict = ratios.throughput < target ? ` MISSES ${target}` : ` (at least ${target})`
  if (ratios.throughput < target) process.exitCode = 1
  return (
    `${name.padEnd(10)} product ${sides[0]}; PostGraphile ${sides[1]}; throughput ` +
    `${ratios.throughput.toFixed(1)} times${verdict}, processor ${ratios.processor?.toFixed(1) ?? '-'} times`
  )
}

const main = async (adminUrl: string, folder: string): Promise<void> => {
  const version = install(folder)
  print(`PostGraphile ${version}; filling a database with ${flags.contacts} contacts`)
  const dataset = await fillDatabase(adminUrl, Number(flags.contacts))
  await relate(dataset.databaseUrl)
  const reader = await openProcessorReader(dataset.databaseUrl)
  const product = await startProduct(dataset.databaseUrl, sourceLauncher)
  const postgraphile = await startServer(
    [join(folder, 'server.mjs'), `${dataset.databaseUrl}?application_name=postgraphile`],
    { NODE_ENV: 'production', GRAPHILE_ENV: 'production' },
  )
  try {
    const lines = [`PostGraphile ${version}, ${flags.contacts} contacts, ${connections} connections`]
    for (const comparison of createComparisons(dataset)) {
      await requireData(postgraphile.url, comparison.other.requests[0]!)
      const runRound = createRounds(folder, comparison, { product, postgraphile }, reader)
      await runRound({ seconds: 2, connections })
      const rounds: Round[] = []
      while (rounds.length < Number(flags.rounds)) rounds.push(await runRound({ seconds, connections }))
      lines.push(describe(comparison.name, summarize(rounds)))
      print(lines.at(-1)!)
    }
    if (flags.write) await writeResults('postgraphile', lines, adminUrl)
    process.stdout.write(`${lines.join('\n')}\n`)
  } finally {
    await postgraphile.stop()
    await product.stop()
    await reader?.close()
    await dropBenchDatabase(adminUrl, dataset)
  }
}

requireWrk()
const folder = mkdtempSync(join(tmpdir(), 'wcrm-postgraphile-'))
try {
  await withPostgres(flags['database-url'], '512MB', (adminUrl) => main(adminUrl, folder))
} finally {
  rmSync(folder, { recursive: true, force: true })
}
