import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startCommand } from '../../tests/process.ts'

/**
 * Gives the OpenAPI documents of a server with the demo workspace to the tools of others (`npm ci --prefix tools`).
 * Redocly lints them, two generators make clients of them that are compiled, and Specmatic (with Java) reads every
 * example of a GET.
 */

const packages = fileURLToPath(new URL('../node_modules', import.meta.url))
const tool = (name: string): string => join(packages, '.bin', name)

const documents = ['openapi', 'openapi-ops']

/**
 * Specmatic knows neither ranges of media types nor what depends on `Accept`, so that it cannot read the file of a
 * message, which is in its own media type.
 */
const SPECMATIC_FILTER = "METHOD='GET' && STATUS='200' && PATH!='/v1/messages/{message_id}/media'"

const compilerOptions = {
  strict: true,
  noEmit: true,
  target: 'ES2022',
  module: 'ESNext',
  moduleResolution: 'bundler',
  lib: ['ES2022', 'DOM', 'DOM.Iterable'],
  types: [],
}

type Run = { ok: boolean; output: string }

/** Runs a program in a folder. */
const run = (folder: string, env: Record<string, string>, program: string, ...args: string[]): Run => {
  const { status, stdout, stderr } = spawnSync(program, args, {
    cwd: folder,
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
    env: { ...process.env, ...env },
  })
  return { ok: status === 0, output: `${stdout ?? ''}${stderr ?? ''}` }
}

let hasFailed = false

/** Says how a check ended, and what it printed when it failed. */
const report = (name: string, { ok, output }: Run): void => {
  console.log(`${ok ? 'passed' : 'FAILED'}  ${name}`)
  if (ok) return
  hasFailed = true
  console.error(output.slice(-4000))
}

const lint = (folder: string): void => {
  writeFileSync(join(folder, 'redocly.yaml'), 'extends: [recommended-strict]\n')
  for (const name of documents) {
    const file = `${name}.json`
    const env = { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' }
    report(`Redocly, recommended-strict: ${file}`, run(folder, env, tool('redocly'), 'lint', file))
  }
}

const generate = (folder: string): void => {
  const made = join(folder, 'made')
  mkdirSync(made)
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['made'] }))
  for (const name of documents) {
    const file = `${name}.json`
    report(
      `openapi-typescript: ${file}`,
      run(folder, {}, tool('openapi-typescript'), file, '-o', `made/${name}.d.ts`),
    )
    report(
      `hey-api: ${file}`,
      run(folder, {}, tool('openapi-ts'), '-i', file, '-o', `made/${name}`, '-c', '@hey-api/client-fetch'),
    )
  }
  report('the generated clients compile', run(folder, {}, tool('tsc'), '-p', '.'))
}

const test = (folder: string, url: string, apiKey: string): void => {
  if (!run(folder, {}, 'java', '-version').ok) {
    console.log('skipped  Specmatic: there is no Java (apt-get install default-jre-headless)')
    return
  }
  const jar = join(packages, 'specmatic/specmatic.jar')
  const words = ['-Xmx1500m', '-jar', jar, 'test', `--testBaseURL=${url}`, `--filter=${SPECMATIC_FILTER}`]
  const env = { apiKey, SPECMATIC_DISABLE_TELEMETRY: 'true' }
  const { ok, output } = run(folder, env, 'java', ...words, 'openapi.json')
  const [counts = 'no test ran'] = /Tests run: [1-9].*/.exec(output) ?? []
  report(`Specmatic, every GET: ${counts}`, { ok: ok && counts.includes('Failures: 0'), output })
}

const folder = mkdtempSync(join(tmpdir(), 'check-openapi-'))
const settings = { XDG_CONFIG_HOME: join(folder, 'config'), WCRM_KEYCHAIN: 'off' }
const server = await startCommand<{ api_key: string }>(
  ['serve', '--port', '0', '--json', '--data', join(folder, 'data')],
  settings,
)
try {
  for (const name of documents)
    writeFileSync(join(folder, `${name}.json`), await (await fetch(`${server.url}/${name}.json`)).text())
  lint(folder)
  generate(folder)
  test(folder, server.url, server.said.api_key)
} finally {
  await server.stop()
  rmSync(folder, { recursive: true, force: true })
}
process.exitCode = hasFailed ? 1 : 0
