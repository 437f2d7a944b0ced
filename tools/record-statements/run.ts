import { spawnSync } from 'node:child_process'
import { globSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  covers,
  loadStatements,
  type RecordedStatement,
  saveStatements,
  statementText,
} from '../../tests/storage/recorded-statements.ts'
import { type SqlTemplate, sqlTemplates, templateKey } from '../../tests/storage/sql-templates.ts'
import type { StatementRecord } from './recorder.ts'

/**
 * `npm run record-statements`: runs the tests, and keeps of the statements that storage/ sent the few in
 * which every raw SQL template of storage/ occurs. tests/storage/statements.test.ts prepares them against
 * the migrated schema. With test files as arguments only these run, and what they sent is merged into the
 * set; a run of all tests replaces it.
 */
const files = process.argv.slice(2)

/** What PREPARE takes; definitions and settings it does not. */
const isPreparable = (sql: string): boolean =>
  /^(select|insert|update|delete|with|values|merge)\b/i.test(sql.replace(/^(\s|\(|\/\*.*?\*\/)*/s, ''))

/** A statement that may be kept, with the keys of the templates that occur in it. */
type Candidate = { statement: RecordedStatement; keys: Set<string>; rank: number }

const runTests = (folder: string): boolean => {
  const recorder = new URL('./recorder.ts', import.meta.url).href
  const chosen =
    files.length > 0
      ? files
      : globSync('tests/**/*.test.ts').filter((file) => !file.endsWith('storage/statements.test.ts'))
  const { status } = spawnSync(process.execPath, ['scripts/test.ts', ...chosen], {
    stdio: 'inherit',
    env: {
      ...process.env,
      NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --import=${recorder}`,
      WCRM_RECORD_STATEMENTS: folder,
    },
  })
  return status === 0
}

const toStatement = ({ from, templates, parameterTypes, sql }: StatementRecord): RecordedStatement => ({
  from,
  templates: [...new Set(templates.map(({ file }) => file))].sort(),
  ...(parameterTypes.some((type) => type !== 'unknown') ? { parameterTypes } : {}),
  sql: sql
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== ''),
})

const readRecords = (folder: string): StatementRecord[] =>
  readdirSync(folder)
    .flatMap((name) => readFileSync(join(folder, name), 'utf8').trim().split('\n'))
    .map((line) => JSON.parse(line) as StatementRecord)
    .filter(({ sql, templates }) => templates.length > 0 && isPreparable(sql))

/** What was recorded; statements that are in the set already have the lower rank, so that it changes little. */
const toCandidates = (
  records: readonly StatementRecord[],
  kept: readonly RecordedStatement[],
): Candidate[] => {
  const known = new Set(kept.map(statementText))
  return records.map((record): Candidate => {
    const statement = toStatement(record)
    return {
      statement,
      keys: new Set(record.templates.map(({ file, chunks }) => templateKey(file, chunks))),
      rank: known.has(statementText(statement)) ? 0 : 1,
    }
  })
}

/** Statements of the set that a run of some tests leaves as they are: those that hold a template. */
const toPinned = (kept: readonly RecordedStatement[], templates: readonly SqlTemplate[]): Candidate[] =>
  kept
    .map((statement) => ({
      statement,
      keys: new Set(templates.filter((t) => covers(statement, t)).map((t) => templateKey(t.file, t.chunks))),
      rank: 0,
    }))
    .filter(({ keys }) => keys.size > 0)

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

const byPreference = (a: Candidate, b: Candidate): number =>
  a.rank - b.rank ||
  b.keys.size - a.keys.size ||
  compareText(statementText(a.statement), statementText(b.statement)) ||
  compareText(a.statement.from, b.statement.from)

/**
 * The pinned statements, and candidates in which every other template occurs that occurs in any; none that
 * the others make superfluous.
 */
const selectCover = (
  pinned: readonly Candidate[],
  candidates: readonly Candidate[],
  wanted: ReadonlySet<string>,
): RecordedStatement[] => {
  const counts = new Map<string, number>()
  const chosen: Candidate[] = []
  const wantedKeys = ({ keys }: Candidate): string[] => [...keys].filter((key) => wanted.has(key))
  for (const { keys } of pinned) for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1)
  for (const candidate of candidates.toSorted(byPreference)) {
    const keys = wantedKeys(candidate)
    if (keys.every((key) => counts.has(key))) continue
    for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1)
    chosen.push(candidate)
  }
  const needed = chosen.toReversed().filter((candidate) => {
    const keys = wantedKeys(candidate)
    if (keys.some((key) => counts.get(key) === 1)) return true
    for (const key of keys) counts.set(key, counts.get(key)! - 1)
    return false
  })
  return [...pinned, ...needed]
    .map(({ statement }) => statement)
    .sort((a, b) => compareText(a.from, b.from) || compareText(statementText(a), statementText(b)))
}

const main = (): number => {
  const folder = mkdtempSync(join(tmpdir(), 'wcrm-statements-'))
  try {
    const passed = runTests(folder)
    const templates = sqlTemplates()
    const wanted = new Set(templates.map(({ file, chunks }) => templateKey(file, chunks)))
    const records = readRecords(folder)
    const kept = loadStatements()
    const pinned = files.length > 0 ? toPinned(kept, templates) : []
    const statements = selectCover(pinned, toCandidates(records, kept), wanted)
    saveStatements(statements)
    console.log(`${statements.length} statements kept of ${records.length}`)
    if (!passed) console.error('Some tests failed: statements that they send may be missing.')
    return passed ? 0 : 1
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

process.exitCode = main()
