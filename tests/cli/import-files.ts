import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { sql } from 'kysely'
import { doAs } from '../calls.ts'
import { runCli } from '../doors.ts'
import { makeWorkspace, type TestServer, type TestWorkspace } from '../servers.ts'

/** The summary that an import prints, without its time. */
type ImportSummary = {
  rows: number
  created: number
  updated: number
  unchanged: number
  failed: number
  dry_run?: true
}

/** Runs `wcrm contacts import` with these arguments. */
type RunImport = (
  argv: string[],
  stdin?: string,
) => Promise<{ exit: number; summary: ImportSummary; stderr: string }>

/** A workspace with its owner's calls and imports. */
type ImportScene = { workspace: TestWorkspace; call: ReturnType<typeof doAs>; run: RunImport }

/** What the tests of a file share: a folder, and commands that keep their state in it. */
export type ImportFiles = {
  folder: string
  /** Writes a new file, and returns its path. */
  writeRows: (content: string | Buffer, extension?: string) => string
  /** The environment of a command with this key. */
  envFor: (server: TestServer, key: string) => Record<string, string>
  runImportAs: (server: TestServer, key: string) => RunImport
  /** Creates a workspace with these custom fields. */
  createScene: (server: TestServer, fields?: Record<string, unknown>[]) => Promise<ImportScene>
}

const parseSummary = (stdout: string): ImportSummary => {
  if (stdout === '') return {} as ImportSummary
  const { seconds, ...summary } = JSON.parse(stdout) as ImportSummary & { seconds?: number }
  assert.equal(typeof seconds, 'number')
  return summary
}

/** Creates the folder of a test file, which is deleted after its tests. */
export const useImportFiles = (): ImportFiles => {
  const folder = mkdtempSync(join(tmpdir(), 'wcrm-import-test-'))
  after(() => rmSync(folder, { recursive: true }))
  let count = 0
  const envFor: ImportFiles['envFor'] = (server, key) => ({
    WCRM_URL: server.url,
    WCRM_API_KEY: key,
    XDG_CONFIG_HOME: '/nonexistent',
    XDG_STATE_HOME: join(folder, 'state'),
    PATH: process.env.PATH!,
  })
  const runImportAs: ImportFiles['runImportAs'] =
    (server, key) =>
    async (argv, stdin = '') => {
      const { exit, stdout, stderr } = await runCli(
        ['contacts', 'import', ...argv, '--json'],
        envFor(server, key),
        stdin,
      )
      return { exit, summary: parseSummary(stdout), stderr }
    }
  return {
    folder,
    writeRows: (content, extension = 'csv') => {
      const path = join(folder, `rows-${++count}.${extension}`)
      writeFileSync(path, content)
      return path
    },
    envFor,
    runImportAs,
    createScene: async (server, fields = []) => {
      const workspace = await makeWorkspace(server)
      const call = doAs(server, workspace.owner.key)
      for (const field of fields) await call('crm_create_custom_field', field)
      return { workspace, call, run: runImportAs(server, workspace.owner.key) }
    },
  }
}

/** A contact in a form that tests can compare. */
export type ListedContact = {
  name: string | null
  phone: string | null
  email: string | null
  external_id: string | null
  dnd: boolean
  starred: boolean
  metadata: Record<string, string>
  tags: string[]
  groups: string[]
  /** The value and the typed value of each custom field, by key. */
  attributes: Record<string, unknown>
}

/** Returns all contacts of a workspace, at most 100, sorted by phone. */
export const listContacts = async (
  server: TestServer,
  workspace: TestWorkspace,
): Promise<ListedContact[]> => {
  type Row = Omit<ListedContact, 'tags' | 'groups' | 'attributes'> & {
    tags: { name: string }[]
    groups: { name: string }[]
    attributes: { key: string; typed_value: unknown; value: unknown }[]
  }
  const { data } = (await doAs(server, workspace.owner.key)('crm_search_contacts', {
    detail: 'full',
    limit: 100,
  })) as { data: Row[] }
  return data
    .map(({ tags, groups, attributes, ...row }) => ({
      name: row.name,
      phone: row.phone,
      email: row.email,
      external_id: row.external_id,
      dnd: row.dnd,
      starred: row.starred,
      metadata: row.metadata,
      tags: tags.map((tag) => tag.name),
      groups: groups.map((group) => group.name),
      attributes: Object.fromEntries(
        attributes.map((attribute) => [attribute.key, [attribute.value, attribute.typed_value]]),
      ),
    }))
    .toSorted((a, b) => String(a.phone).localeCompare(String(b.phone)))
}

/** Counts the rows of a workspace in a table, of this type if one is given. */
export const countRows = async (
  server: TestServer,
  table: string,
  workspace: TestWorkspace,
  type?: string,
): Promise<number> => {
  const { rows } = await sql<{ n: number }>`
    select count(*)::int as n from ${sql.table(table)}
    where workspace_id = ${workspace.id} ${type ? sql`and type = ${type}` : sql``}`.execute(server.db)
  return rows[0]!.n
}
