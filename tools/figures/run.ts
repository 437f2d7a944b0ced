import { spawnSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { Session } from 'node:inspector/promises'
import { dirname, join, normalize } from 'node:path'
import { parseSync } from 'oxc-parser'
import { createTestEnvironment } from '../../scripts/test-environment.ts'
import { doorsOf } from '../../tests/doors.ts'
import { createSandboxDriver } from '../../tests/messaging/fixtures.ts'
import { makeWorkspace, startWithOptions } from '../../tests/servers.ts'

/**
 * Figures of how heavy the code is, one run before a change and one after: `node tools/figures/run.ts`.
 *
 * Lines and characters by folder; exports with one importer; functions of more than three parameters; files and
 * functions that six calls pass, by V8's precise coverage of the server's thread, of three calls the fewest; the price
 * of a type check.
 */
const ROOT = normalize(join(import.meta.dirname, '../..'))
const SOURCE = ['catalog', 'server', 'storage', 'mcp', 'cli']
const OTHER = ['packages', 'client', 'tools', 'scripts', 'tests']

const list = (folder: string): string[] => globSync(`${folder}/**/*.ts`, { cwd: ROOT })
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8')

const countSize = (files: readonly string[]): { lines: number; characters: number } => {
  const text = files.map(read).join('')
  return { lines: text.split('\n').length - 1, characters: text.length }
}

type Node = { type: string; [member: string]: unknown }

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string'

const visit = (node: Node, see: (node: Node) => void): void => {
  see(node)
  for (const value of Object.values(node))
    for (const child of Array.isArray(value) ? value : [value]) if (isNode(child)) visit(child, see)
}

/** What the sources say of themselves: who imports which export, and the functions with many parameters. */
const readStructure = (files: readonly string[]): { exports: number; single: number; wide: number } => {
  const importers = new Map<string, Set<string>>()
  const exports: string[] = []
  let wide = 0
  for (const file of files) {
    const { program, module } = parseSync(file, read(file))
    for (const { moduleRequest, entries } of module.staticImports) {
      if (!moduleRequest.value.startsWith('.')) continue
      const target = normalize(join(dirname(file), moduleRequest.value))
      for (const { importName } of entries) {
        const key = `${target}#${importName.name ?? '*'}`
        importers.set(key, (importers.get(key) ?? new Set()).add(file))
      }
    }
    for (const { entries } of module.staticExports)
      for (const { exportName } of entries) if (exportName.name) exports.push(`${file}#${exportName.name}`)
    visit(program as unknown as Node, ({ type, params }) => {
      if (!/^(ArrowFunctionExpression|FunctionDeclaration|FunctionExpression)$/.test(type)) return
      if (Array.isArray(params) && params.length > 3) wide++
    })
  }
  const single = exports.filter((name) => importers.get(name)?.size === 1).length
  return { exports: exports.length, single, wide }
}

type Passed = { files: number; functions: number }

/** Starts a server in this process, and counts what each call passes in it. */
const countPassed = async (): Promise<Record<string, Passed>> => {
  const server = await startWithOptions('embedded', { dedicated: true })
  const workspace = await makeWorkspace(server)
  const [rest, , mcp] = doorsOf(server.url, workspace.owner.key)
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })

  const take = async (): Promise<Passed> => {
    const { result } = (await session.post('Profiler.takePreciseCoverage')) as {
      result: { url: string; functions: { functionName: string; ranges: { count: number }[] }[] }[]
    }
    const passed = result.flatMap(({ url, functions }) => {
      const file = url.replace(`file://${ROOT}/`, '')
      if (!SOURCE.concat('packages').some((folder) => file.startsWith(`${folder}/`))) return []
      const count = functions.filter(({ ranges }) => ranges[0]!.count > 0).length
      return count > 0 ? [count] : []
    })
    return { files: passed.length, functions: passed.reduce((sum, count) => sum + count, 0) }
  }

  let n = 0
  const phone = (): string => `+4915112${String(10_000 + n++)}`
  const upsert = () => rest!.call('crm_upsert_contact', { phone: phone(), name: 'Ada' })
  const { body: contact } = await upsert()
  const customer = '4915112000000'
  await createSandboxDriver(server, workspace).say({ from: `+${customer}`, text: 'Hello' })
  const { body: inbox } = await rest!.call('inbox_search_conversations')
  const calls: Record<string, () => Promise<unknown>> = {
    get: () => rest!.call('crm_get_contact', { contact_id: contact.id }),
    upsert,
    tag: () => rest!.call('crm_tag_contacts', { contact_ids: [contact.id], tags: [`tag ${n++}`] }),
    reply: () =>
      rest!.call(
        'messaging_send_reply',
        { conversation_id: inbox.data[0].id, text: `Reply ${n++}` },
        { confirm: 'send' },
      ),
    bulk: () => rest!.call('crm_update_contacts', { filter: {}, all: true, starred: n++ % 2 === 0 }),
    'MCP read': () => mcp!.call('crm_get_contact', { contact_id: contact.id }),
  }
  const figures: Record<string, Passed> = {}
  for (const [name, call] of Object.entries(calls)) {
    for (let warm = 0; warm < 3; warm++) await call()
    const counts: Passed[] = []
    for (let round = 0; round < 3; round++) {
      await take()
      await call()
      counts.push(await take())
    }
    figures[name] = counts.toSorted((a, b) => a.functions - b.functions)[0]!
  }
  session.disconnect()
  await server.close()
  return figures
}

const checkTypes = (): string => {
  const { stdout } = spawnSync(
    process.execPath,
    ['node_modules/typescript/bin/tsc', '-p', '.', '--extendedDiagnostics'],
    { cwd: ROOT, encoding: 'utf8' },
  )
  return stdout
    .split('\n')
    .filter((line) => /^(Instantiations|Memory used|Check time|Total time)/.test(line))
    .join('\n')
}

for (const folder of [...SOURCE, ...OTHER]) {
  const { lines, characters } = countSize(list(folder))
  console.log(`${folder}: ${lines} lines, ${characters} characters`)
}
const sources = SOURCE.flatMap(list)
const { lines, characters } = countSize(sources)
const { exports, single, wide } = readStructure(sources)
console.log(`source: ${lines} lines, ${characters} characters, ${sources.length} files`)
console.log(
  `${exports} exports, ${single} with one importer; ${wide} functions of more than three parameters`,
)
const environment = await createTestEnvironment({ embeddedOnly: true })
Object.assign(process.env, environment.env)
for (const [name, { files, functions }] of Object.entries(await countPassed()))
  console.log(`${name}: ${files} files, ${functions} functions`)
await environment.remove()
if (process.argv.includes('--types')) console.log(checkTypes())
process.exit()
