import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, request as forward } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { databases } from '../databases.ts'
import { makeWorkspace, startServer } from '../servers.ts'
import { asks, extend } from './fixtures.ts'

// Runs the scenarios that a protocol revision requires (`@modelcontextprotocol/conformance`) against the
// product's own endpoint, with the fixtures of the suite in the place of the product's tools. Needs npm's
// registry, or the package in npm's cache: `npm run conformance [-- 2026-07-28]`.

const PACKAGE = '@modelcontextprotocol/conformance@0.2.0-alpha.12'

const revisions = ['2025-11-25', '2026-07-28']

/** Adds the API key, which the suite does not send. */
const startKeyProxy = async (target: string, key: string): Promise<{ url: string; close: () => void }> => {
  const { hostname, port } = new URL(target)
  const proxy = createServer((incoming, outgoing) => {
    const onward = forward(
      {
        hostname,
        port,
        path: incoming.url,
        method: incoming.method,
        headers: { ...incoming.headers, authorization: `Bearer ${key}` },
      },
      (response) => {
        outgoing.writeHead(response.statusCode!, response.headers)
        response.pipe(outgoing)
      },
    )
    onward.on('error', () => outgoing.destroy())
    outgoing.on('close', () => onward.destroy())
    incoming.pipe(onward)
  })
  await new Promise<void>((done) => proxy.listen(0, '127.0.0.1', done))
  const close = () => {
    proxy.closeAllConnections()
    proxy.close()
  }
  return { url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, close }
}

/** Runs the suite. Returns its output. */
const runSuite = async (url: string, revision: string): Promise<string> => {
  const folder = mkdtempSync(join(tmpdir(), 'wcrm-conformance-'))
  const suite = spawn(
    'npx',
    ['--yes', PACKAGE, 'server', '--url', `${url}/mcp`, '--requirements', revision, '--timeout', '20000'],
    { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] },
  )
  let output = ''
  suite.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString()
  })
  await new Promise((done) => suite.on('close', done))
  rmSync(folder, { recursive: true, force: true })
  return output
}

type Outcome = { scenario: string; passed: number; failed: number; scored: boolean }

const readSummary = (output: string): Outcome[] => {
  const [summary = '', notScored = ''] = output.slice(output.indexOf('=== SUMMARY')).split('Not scored for')
  return [...summary.matchAll(/^[✓✗] (\S+): (\d+) passed, (\d+) failed/gmu)].map(
    ([, scenario = '', passed, failed]) => ({
      scenario,
      passed: Number(passed),
      failed: Number(failed),
      scored: !new RegExp(`^ +[✓✗] ${scenario} `, 'mu').test(notScored),
    }),
  )
}

/** Prints what came of a revision. Returns whether every scored scenario passes. */
const report = (revision: string, outcomes: readonly Outcome[], output: string): boolean => {
  const scored = outcomes.filter((each) => each.scored)
  const failing = scored.filter(({ failed }) => failed > 0).map(({ scenario }) => scenario)
  const sum = (of: 'passed' | 'failed') => scored.reduce((total, each) => total + each[of], 0)
  console.log(
    `${revision}: ${scored.length - failing.length} of ${scored.length} scored scenarios, ` +
      `${sum('passed')} of ${sum('passed') + sum('failed')} checks`,
  )
  for (const scenario of failing) console.log(`  ${scenario} fails`)
  const isGood = failing.length === 0 && scored.length > 0
  if (!isGood) console.log(output)
  return isGood
}

const server = await startServer(databases[0]!, { mcp: { extend, asks } })
const { owner } = await makeWorkspace(server)
const proxy = await startKeyProxy(server.url, owner.key)
const named = process.argv.slice(2)
for (const revision of named.length > 0 ? named : revisions) {
  const output = await runSuite(proxy.url, revision)
  if (!report(revision, readSummary(output), output)) process.exitCode = 1
}
proxy.close()
await server.close()
