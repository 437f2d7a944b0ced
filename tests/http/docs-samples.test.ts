import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { catalog, listRoutes } from '../../catalog/index.ts'
import { runCli } from '../doors.ts'
import { toPattern } from '../printed.ts'
import { anyDatabase, createDatabase, type TestDatabase } from '../databases.ts'
import { type ServerProcess, startCommand } from '../process.ts'

type Sample = { name: string; source: string }
type Run = { failed: string; stdout: string; stderr: string }

/** The guides whose commands are run as a reader would, each with what it prints. */
const guides = ['first-contact', 'dry-run', 'idempotency', 'lost-updates', 'errors', 'rate-limits', 'events']

/** The guides with TypeScript, each with what its reader has before it. */
const typedGuides = [
  ['client-library', 'declare const request: Request\n'],
  ['lost-updates', ''],
  ['webhooks', ''],
] as const

const TOMORROW = new Date(Date.now() + 24 * 60 * 60_000).toISOString()

/** Runs a program; `failed` says how it ended where it did not succeed. */
const run = (program: string, args: string[], env: Record<string, string>, cwd: string): Promise<Run> =>
  new Promise((done) =>
    execFile(program, args, { env, cwd, maxBuffer: 1e8 }, (error, stdout, stderr) =>
      done({ failed: error ? `${error.code}: ${stderr}${stdout}` : '', stdout, stderr }),
    ),
  )

describe('The samples of the documentation, in the demo workspace', () => {
  const folder = mkdtempSync(join(tmpdir(), 'docs-samples-'))
  let database: TestDatabase
  let server: ServerProcess & { said: { api_key: string } }
  let env: Record<string, string>
  let paths: Record<string, Record<string, { 'x-operation': string; 'x-codeSamples': any[] }>>

  /**
   * All samples of a language; with an address in place of a name, which may not resolve here, and a time to come.
   */
  const listSamples = (lang: string): Sample[] =>
    Object.values(paths).flatMap((operations) =>
      Object.values(operations).flatMap((op) =>
        op['x-codeSamples']
          .filter((sample) => sample.lang === lang)
          .map(({ source }) => ({
            name: op['x-operation'],
            source: source
              .replaceAll('https://example.com/', 'https://93.184.215.14/')
              .replaceAll('2026-10-02T09:00:00+02:00', TOMORROW),
          })),
      ),
    )

  before(async () => {
    const settings = { XDG_CONFIG_HOME: join(folder, 'config'), WCRM_KEYCHAIN: 'off' }
    database = await createDatabase(anyDatabase)
    server = await startCommand(['serve', '--port', '0', '--json', ...database.flags], settings)
    env = {
      PATH: process.env.PATH!,
      HOME: folder,
      WCRM_URL: server.url,
      WCRM_API_KEY: server.said.api_key,
      ...(process.env.NODE_COMPILE_CACHE ? { NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE } : {}),
    }
    ;({ paths } = (await (await fetch(`${server.url}/docs/openapi.json`)).json()) as any)
  })
  after(async () => {
    await server.stop()
    await database.remove()
    rmSync(folder, { recursive: true, force: true })
  })

  it('curl', async () => {
    const samples = listSamples('curl')
    assert.equal(samples.length, catalog.flatMap(listRoutes).length)
    const script = samples.map(
      ({ name, source }) =>
        `out=$(${source.replace(/^curl/, 'curl -sS --fail-with-body')}) || echo "${name}: $out"`,
    )
    const { stdout, failed } = await run('bash', ['--norc', '-c', script.join('\n')], env, folder)
    assert.equal(stdout + failed, '')
  })

  it('TypeScript', async () => {
    const samples = listSamples('typescript')
    mkdirSync(join(folder, 'ts'))
    for (const [index, { source }] of samples.entries())
      writeFileSync(
        join(folder, `ts/${index}.ts`),
        source
          .replace("'@wcrm/client'", JSON.stringify(resolve('client/index.ts')))
          .replace('console.log', 'void '),
      )
    const names = JSON.stringify(samples.map(({ name }) => name))
    writeFileSync(
      join(folder, 'ts/all.mjs'),
      `for (const [i, name] of ${names}.entries())
        await import('./' + i + '.ts').catch((error) => console.log(name, error.message))`,
    )
    const { stdout, failed } = await run(process.execPath, ['ts/all.mjs'], env, folder)
    assert.equal(stdout + failed, '')
  })

  it('TypeScript compiles against the types of the client', async () => {
    const checked = join(folder, 'checked')
    mkdirSync(checked)
    for (const [index, { name, source }] of listSamples('typescript').entries())
      writeFileSync(join(checked, `${name}-${index}.ts`), source)
    for (const [guide, before] of typedGuides) {
      const blocks = [...readFileSync(`docs/${guide}.md`, 'utf8').matchAll(/^```ts.*\n([^]*?)```/gm)]
      assert.ok(blocks.length > 0, guide)
      writeFileSync(join(checked, `${guide}.ts`), `${before}${blocks.map(([, text]) => text).join('')}`)
    }
    writeFileSync(join(checked, 'package.json'), '{"type":"module"}')
    symlinkSync(resolve('node_modules'), join(checked, 'node_modules'))
    const config = {
      extends: resolve('tsconfig.json'),
      // What a sample reads is for its reader to use.
      compilerOptions: { noUnusedLocals: false },
      include: ['*.ts'],
    }
    writeFileSync(join(checked, 'tsconfig.json'), JSON.stringify(config))
    const args = [resolve('node_modules/typescript/bin/tsc'), '-p', checked, '--pretty', 'false']
    assert.equal((await run(process.execPath, args, env, folder)).failed, '')
  })

  it('Python', async (t) => {
    if ((await run('python3', ['--version'], env, folder)).failed) return t.skip('there is no Python')
    writeFileSync(join(folder, 'samples.json'), JSON.stringify(listSamples('python')))
    const all = `
import contextlib, io, json
for sample in json.load(open("samples.json")):
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(sample["source"], {})
    except Exception as error:
        print(sample["name"], error, getattr(error, "read", str)())
`
    const { stdout, failed } = await run('python3', ['-c', all], env, folder)
    assert.equal(stdout + failed, '')
  })

  it('command line', async () => {
    const samples = listSamples('cli')
    // A shell splits them into words.
    const script = `wcrm() { printf '%s\\0' "$@"; printf '\\1'; }\n${samples.map(({ source }) => source).join('\n')}`
    const { stdout, failed } = await run('bash', ['--norc', '-euc', script], env, folder)
    assert.equal(failed, '')
    const lines = stdout.split('\x01').slice(0, -1)
    assert.equal(lines.length, samples.length)
    for (const [index, line] of lines.entries()) {
      const { exit, stderr } = await runCli([...line.split('\0').slice(0, -1), '--json'], {
        WCRM_URL: env.WCRM_URL!,
        WCRM_API_KEY: env.WCRM_API_KEY!,
        XDG_CONFIG_HOME: '/nonexistent',
      })
      // 9: some of many failed, as the title of the example says.
      assert.ok(exit === 0 || exit === 9, `${samples[index]!.source}: ${stderr}`)
    }
  })

  for (const guide of guides)
    it(`the guide ${guide}`, async () => {
      const text = readFileSync(`docs/${guide}.md`, 'utf8')
      const blocks = [...text.matchAll(/^```bash\n([^]*?)```(?:\n\n```text\n([^]*?)```)?/gm)]
      assert.ok(blocks.length > 0)
      for (const [, script = '', output] of blocks) {
        const { stdout, failed } = await run(
          'bash',
          ['--norc', '-euo', 'pipefail', '-c', script],
          env,
          folder,
        )
        assert.equal(failed, '', script)
        // The server of the test has other limits.
        if (output !== undefined) assert.match(stdout, toPattern(output.replace('q=300', 'q=…')), script)
      }
    })
})
