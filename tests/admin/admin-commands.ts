import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { runCommandLine } from '../../cli/main.ts'
import { migrate } from '../../storage/migrations/migrate.ts'
import { openStorage, type Storage } from '../../storage/open.ts'
import { atEnd } from '../at-end.ts'
import { collectOutput } from '../cli/output-streams.ts'
import { prepareFolder } from '../databases.ts'

/** A folder for the tests of a file, and embedded databases in it. */
export type AdminDatabases = {
  home: string
  /** Creates a folder for an embedded database, as a copy of the prepared one if there is one. */
  newFolder: () => string
  /** Opens the embedded database of a folder with the newest schema. */
  open: (folder: string) => Promise<Storage>
}

type AdminResult = { exit: number; out: string; err: string }

/** Runs `wcrm admin` with these arguments. */
export const runAdmin = (...argv: string[]): Promise<AdminResult> => runAdminWith({}, ...argv)

/** The same with variables of the environment. */
export const runAdminWith = async (env: Record<string, string>, ...argv: string[]): Promise<AdminResult> => {
  const [stdout, stderr] = [collectOutput(), collectOutput()]
  const exit = await runCommandLine(['admin', ...argv], {
    stdin: new PassThrough(),
    stdout: stdout.stream,
    stderr: stderr.stream,
    env,
  })
  return { exit, out: stdout.text(), err: stderr.text() }
}

/** Runs a command that must succeed. Returns the JSON that it printed. */
export const succeed = async (...argv: string[]): Promise<any> => {
  const { exit, out, err } = await runAdmin(...argv, '--json')
  assert.equal(exit, 0, err)
  return JSON.parse(out)
}

/** Runs a command that must fail: nothing on stdout, the problem on stderr. */
export const fail = async (expectedExit: number, detail: RegExp, ...argv: string[]): Promise<void> => {
  const { exit, out, err } = await runAdmin(...argv, '--json')
  assert.equal(exit, expectedExit, err)
  assert.equal(out, '')
  assert.match((JSON.parse(err) as { detail: string }).detail, detail)
}

/** Creates the folder of a test file. It is deleted when the process ends: files share their process. */
export const useAdminDatabases = (): AdminDatabases => {
  const home = mkdtempSync(join(tmpdir(), 'wcrm-admin-'))
  process.once('exit', () => rmSync(home, { recursive: true, force: true }))
  return {
    home,
    newFolder: () => prepareFolder(mkdtempSync(join(home, 'data-'))),
    open: async (folder) => {
      const storage = await openStorage({ dataDir: folder }, { noTimeout: true })
      await migrate(storage.db)
      atEnd(() => storage.close())
      return storage
    },
  }
}
