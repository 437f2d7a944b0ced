import { appendFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { PostgresQueryCompiler, type RawNode, type RootOperationNode } from 'kysely'
import { templateFile } from './recorded-kysely.ts'

/**
 * Loaded into every process of `npm run record-statements` by `node --import`: writes each distinct
 * statement that storage/ compiles to a file in the folder `WCRM_RECORD_STATEMENTS`, with the function that
 * sent it and the templates it is made of. The product knows nothing of this.
 */

/** One line of the file. */
export type StatementRecord = {
  from: string
  templates: { file: string; chunks: readonly string[] }[]
  parameterTypes: string[]
  sql: string
}

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const folder = process.env.WCRM_RECORD_STATEMENTS

/** Gives modules of storage/ a `sql` that records the file of each template. */
registerHooks({
  resolve: (specifier, context, next) =>
    specifier === 'kysely' &&
    context.parentURL?.includes('/storage/') &&
    !context.parentURL.includes('/tests/')
      ? { url: new URL('./recorded-kysely.ts', import.meta.url).href, shortCircuit: true }
      : next(specifier, context),
})

/** The types that postgres.js states when it sends these values; it leaves others to the database. */
const parameterType = (value: unknown): string =>
  typeof value === 'boolean' ? 'boolean' : value instanceof Uint8Array ? 'bytea' : 'unknown'

/** `storage/contacts/contacts.ts findContact`: the innermost named function of storage/ on the stack. */
const callerInStorage = (): string | undefined => {
  const limit = Error.stackTraceLimit
  Error.stackTraceLimit = 60
  const { stack = '' } = new Error()
  Error.stackTraceLimit = limit
  const frames = [...stack.matchAll(/^ +at (?:async )?(?:(\S+) \()?file:\/\/([^:]+):\d+:\d+\)?$/gm)]
    .map(([, name, file]) => ({ name, file: file!.replace(ROOT, '') }))
    .filter(({ file }) => /^(packages\/sandbox\/)?storage\//.test(file))
  const named = frames.find(({ name }) => name !== undefined) ?? frames[0]
  return named && `${named.file} ${named.name ?? '(anonymous)'}`
}

const seen = new Set<string>()
let fragments = new Set<readonly string[]>()

const record = (sql: string, parameters: readonly unknown[]): void => {
  if (folder === undefined) return
  const from = callerInStorage()
  // Two functions may send the same text, each from a template of its own.
  if (from === undefined || seen.has(`${from} ${sql}`)) return
  seen.add(`${from} ${sql}`)
  const templates = [...fragments].flatMap((chunks) => {
    const file = templateFile(chunks)
    return file === undefined ? [] : [{ file: file.replace(ROOT, ''), chunks }]
  })
  const line = {
    from,
    templates,
    parameterTypes: parameters.map(parameterType),
    sql,
  } satisfies StatementRecord
  appendFileSync(join(folder, `${process.pid}.jsonl`), `${JSON.stringify(line)}\n`)
}

type Compiler = {
  compileQuery: (
    this: Compiler,
    node: RootOperationNode,
    ...rest: unknown[]
  ) => { sql: string; parameters: readonly unknown[] }
  visitRaw: (this: Compiler, node: RawNode) => void
}

const compiler = PostgresQueryCompiler.prototype as unknown as Compiler
const { compileQuery, visitRaw } = compiler

compiler.compileQuery = function (...parameters) {
  fragments = new Set()
  const query = compileQuery.apply(this, parameters)
  record(query.sql, query.parameters)
  return query
}
compiler.visitRaw = function (node) {
  fragments.add(node.sqlFragments)
  visitRaw.call(this, node)
}
