import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync } from 'node:fs'
import { after, before, describe, it } from 'node:test'
import { runAdmin, succeed } from '../admin/admin-commands.ts'
import { createDatabase, type TestDatabase } from '../databases.ts'
import { inNamespaces } from '../namespaces.ts'
import { processEnvironment, type ServerProcess, startProcess } from '../process.ts'

/** As in a container of its own: another process table, and other temporary files. */
const container = inNamespaces(['--fork', '--kill-child', '--pid', '--mount-proc'])

/** Starts a server that must not start. Returns its exit code and what it said. */
const startRefused = async (
  flags: readonly string[],
  [program, ...args]: readonly string[],
): Promise<{ code: number; said: string }> => {
  const child = spawn(program!, [...args, 'bin/wcrm.js', 'serve', '--port', '0', ...flags], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...processEnvironment, TMPDIR: process.env.TMPDIR },
  })
  let said = ''
  child.stderr.on('data', (chunk: Buffer) => {
    said += chunk.toString()
  })
  const [code] = (await once(child, 'close')) as [number]
  return { code, said }
}

describe('The owner of a data folder', () => {
  let database: TestDatabase
  let server: ServerProcess | undefined
  before(async () => {
    database = await createDatabase('embedded')
  })
  after(async () => {
    await server?.kill('SIGKILL')
    await database.remove()
  })

  it('is one process in whichever container, and the next one as soon as that is killed', async (t) => {
    if (!container) t.diagnostic('this user may not create namespaces: all processes are in one')
    server = await startProcess(database.flags, {}, container)
    const others = [[process.execPath], ...(container ? [[...container, process.execPath]] : [])]
    for (const command of others) {
      const { code, said } = await startRefused(database.flags, command)
      assert.equal(code, 1, said)
      assert.match(said, new RegExp(`the data folder ${database.flags[1]} is in use by process \\d+`))
    }
    // Administration goes through the server.
    const { exit, err } = await runAdmin('workspaces', 'list', ...database.flags)
    assert.equal(exit, 0, err)
    await server.kill('SIGKILL')
    server = await startProcess(database.flags)
  })

  it('owns no copy of the folder, whatever its owner.json says', async () => {
    server ??= await startProcess(database.flags)
    const copy = await createDatabase('embedded')
    const namesIn = async ({ flags }: TestDatabase): Promise<string[]> =>
      (await succeed('workspaces', 'list', ...flags)).data.map(({ name }: { name: string }) => name)
    await succeed('workspaces', 'create', '--name', 'In both', ...database.flags)
    try {
      cpSync(database.flags[1]!, copy.flags[1]!, { recursive: true })
      await succeed('workspaces', 'create', '--name', 'In the copy', ...copy.flags)
      assert.deepEqual(await namesIn(database), ['In both'])
      cpSync(`${database.flags[1]}/owner.json`, `${copy.flags[1]}/owner.json`)
      const other = await startProcess(copy.flags)
      try {
        assert.deepEqual(await namesIn(copy), ['In both', 'In the copy'])
        assert.deepEqual(await namesIn(database), ['In both'])
      } finally {
        await other.kill('SIGKILL')
      }
    } finally {
      await copy.remove()
    }
  })
})
