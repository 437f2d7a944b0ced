import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { buildPackage } from '../../tools/bench/launchers.ts'
import { useFakeServer } from './fake-server.ts'

const fake = useFakeServer()

/** Parts of Node that take long to load. */
const LARGE = /undici|crypto|child_process|zlib|tls|worker_threads|webstreams|fs\/promises|readline/

/** Says at the end what was loaded. */
const PRELOAD = `const known = new Set(process.moduleLoadList)
process.on('exit', () => require('node:fs').writeFileSync(process.env.LOADED, JSON.stringify({
  parts: process.moduleLoadList.filter((name) => !known.has(name)),
  files: Object.keys(require.cache),
})))`

describe('The start of the installed client', () => {
  const folder = mkdtempSync(join(tmpdir(), 'wcrm-start-up-'))
  const [preload, loaded, home] = ['preload.cjs', 'loaded.json', 'home'].map((name) =>
    join(folder, name),
  ) as [string, string, string]
  let launcher = ''
  before(() => {
    launcher = buildPackage(folder)
    writeFileSync(preload, PRELOAD)
  })
  after(() => rmSync(folder, { recursive: true }))

  const run = async (words: readonly string[], env: Record<string, string> = {}) => {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ['--require', preload, launcher, ...words],
      {
        env: {
          LOADED: loaded,
          WCRM_URL: fake.url,
          WCRM_API_KEY: 'wc_test_key',
          XDG_CACHE_HOME: home,
          ...env,
        },
      },
    )
    return { stdout, ...(JSON.parse(readFileSync(loaded, 'utf8')) as { parts: string[]; files: string[] }) }
  }

  it('loads one file, and no part of Node that takes long', async () => {
    fake.responses = [{ body: { data: [{ id: '1', name: 'VIP' }], next_cursor: null } }]
    for (const words of [['--help'], ['groups', '--help'], ['groups', 'list']]) {
      const { stdout, parts, files } = await run(words)
      assert.notEqual(stdout, '')
      assert.deepEqual(
        parts.filter((name) => LARGE.test(name)),
        [],
        words.join(' '),
      )
      assert.deepEqual(files.map((file) => basename(file)).sort(), ['main.cjs', 'preload.cjs', 'wcrm.js'])
    }
  })

  it('keeps compiled code in the cache folder of the user; one that cannot be written is no error', async () => {
    await run(['--help'])
    assert.ok(readdirSync(join(home, 'wcrm/compiled'), { recursive: true }).length > 1)
    assert.match((await run(['--help'], { XDG_CACHE_HOME: '/dev/null' })).stdout, /^Usage: wcrm/)
  })
})
