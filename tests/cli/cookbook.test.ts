import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join, resolve } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { loadCredentials, storeCredentials } from '../../cli/credentials.ts'
import { credentialsPath } from '../../cli/credentials-file.ts'
import { anyDatabase, createDatabase, type TestDatabase } from '../databases.ts'
import { toPattern } from '../printed.ts'
import { type ServerProcess, startCommand } from '../process.ts'

type Recipe = { title: string; script: string; output: string }

/** Returns the recipes of the document: under each heading a script, and what it prints. */
const readRecipes = (): Recipe[] =>
  [
    ...readFileSync('docs/cookbook.md', 'utf8').matchAll(
      /^### (.+)\n\n```bash\n([^]*?)```\n\n```text\n([^]*?)```/gm,
    ),
  ].map(([, title, script, output]) => ({ title: title!, script: script!, output: output! }))

const recipes = readRecipes()

describe('The cookbook', () => {
  const folder = mkdtempSync(join(tmpdir(), 'cookbook-'))
  let database: TestDatabase
  let server: ServerProcess & { said: { api_key?: string; key?: string } }
  let env: Record<string, string>

  // The keys of the person who starts the server.
  const keys = { XDG_CONFIG_HOME: join(folder, 'config'), WCRM_KEYCHAIN: 'off' }
  const readKeys = () =>
    JSON.parse(readFileSync(credentialsPath(keys), 'utf8')) as { default: string; profiles: object }
  let keysBefore: ReturnType<typeof readKeys>

  before(async () => {
    await storeCredentials({ url: 'http://127.0.0.1:9', key: 'wc_live_mine', env: keys })
    keysBefore = readKeys()
    database = await createDatabase(anyDatabase)
    server = await startCommand(['serve', '--port', '0', '--json', ...database.flags], keys)
    const command = join(folder, 'wcrm')
    writeFileSync(command, `#!/bin/sh\nexec '${process.execPath}' '${resolve('bin/wcrm.js')}' "$@"\n`)
    chmodSync(command, 0o700)
    env = {
      PATH: `${folder}${delimiter}${process.env.PATH}`,
      HOME: folder,
      WCRM_URL: server.url,
      WCRM_API_KEY: String(server.said.api_key ?? server.said.key),
      ...(process.env.NODE_COMPILE_CACHE ? { NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE } : {}),
    }
  })
  after(async () => {
    await server.stop()
    await database.remove()
    rmSync(folder, { recursive: true, force: true })
  })

  it('its server stored the key of the demo, and left the default and the other keys as they were', async () => {
    const { default: name, profiles } = readKeys()
    assert.equal(name, keysBefore.default)
    assert.deepEqual({ ...profiles, ...keysBefore.profiles }, profiles)
    assert.equal(Object.keys(profiles).length, 2)
    assert.equal((await loadCredentials(keys)).key, 'wc_live_mine')
    assert.equal((await loadCredentials(keys, server.url)).key, server.said.api_key)
  })

  it('has at least twenty recipes, each with its output', () => {
    const headings = readFileSync('docs/cookbook.md', 'utf8').match(/^### /gm)!.length
    assert.equal(recipes.length, headings)
    assert.ok(headings >= 20)
  })

  for (const { title, script, output } of recipes)
    it(title, async () => {
      const run = await new Promise<{ error: unknown; stdout: string; stderr: string }>((done) => {
        execFile(
          'bash',
          ['--norc', '-euo', 'pipefail', '-c', script],
          { cwd: folder, env },
          (error, stdout, stderr) => done({ error, stdout, stderr }),
        )
      })
      assert.equal(run.error, null, run.stderr)
      assert.match(run.stdout, toPattern(output), run.stderr)
    })
})
