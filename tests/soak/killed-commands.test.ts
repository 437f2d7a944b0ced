import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { text } from 'node:stream/consumers'
import { findOperation } from '../../catalog/index.ts'
import { toArgv } from '../../cli/argv.ts'
import { type CommandSpec, readManifest } from '../../cli/manifest.ts'

const KEY = `wc_test_${'k'.repeat(40)}`
const EXIT = { SIGINT: 130, SIGTERM: 143, SIGKILL: null } as const
type Signal = keyof typeof EXIT

/** A server that takes a call and never answers it. */
const startSilentServer = async () => {
  let take = (_: IncomingMessage): void => {}
  const called = new Promise<IncomingMessage>((resolve) => {
    take = resolve
  })
  const server = createServer((request) => void request.resume().once('end', () => take(request)))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const close = (): void => {
    server.closeAllConnections()
    server.close()
  }
  return { called, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close }
}

const listGroup = (group: number): string[] =>
  readdirSync('/proc').filter((name) => {
    try {
      const [, , member] = readFileSync(`/proc/${name}/stat`, 'utf8').split(') ').at(-1)!.split(' ')
      return Number(member) === group
    } catch {
      return false
    }
  })

const toWords = (spec: CommandSpec): string[] => {
  const op = findOperation(spec.operation)!
  return [...toArgv(spec, op.examples[0]!.input), ...(op.confirm ? ['--confirm', op.confirm] : [])]
}

describe(
  'Commands that are killed while they wait for their answer',
  { skip: process.platform !== 'linux' && 'reads /proc', concurrency: 3 },
  () => {
    const root = mkdtempSync(join(tmpdir(), 'wcrm-killed-'))
    after(() => rmSync(root, { recursive: true }))

    /** Runs a command until its call is at the server, and sends it a signal. */
    const kill = async (spec: CommandSpec, signal: Signal) => {
      const server = await startSilentServer()
      const folder = join(root, `${spec.group}-${spec.verb}-${signal}`)
      const temporary = join(folder, 'tmp')
      mkdirSync(temporary, { recursive: true })
      const child = spawn(process.execPath, ['bin/wcrm.js', ...toWords(spec)], {
        stdio: ['ignore', 'pipe', 'pipe'],
        detached: true,
        env: {
          PATH: process.env['PATH'],
          HOME: folder,
          TMPDIR: temporary,
          XDG_CONFIG_HOME: folder,
          NODE_DISABLE_COMPILE_CACHE: '1',
          WCRM_KEYCHAIN: 'off',
          WCRM_URL: server.url,
          WCRM_API_KEY: KEY,
        },
      })
      const [stdout, stderr, ended] = [text(child.stdout), text(child.stderr), once(child, 'exit')]
      const first = await Promise.race([server.called, ended.then(() => undefined)])
      const shown = first && readFileSync(`/proc/${child.pid!}/cmdline`, 'utf8')
      child.kill(signal)
      const [exit] = (await ended) as [number | null]
      const result = { exit, first, shown, stdout: await stdout, stderr: await stderr }
      server.close()
      return { ...result, processes: listGroup(child.pid!), files: readdirSync(temporary) }
    }

    const signals = Object.keys(EXIT) as Signal[]
    for (const [i, spec] of readManifest().commands.entries())
      it(`wcrm ${spec.group} ${spec.verb}: nothing is left, and a change says how to find out`, async () => {
        // Each read gets one of the signals; each change gets two.
        for (const signal of [0, 1, 2].map((n) => signals[(i + n) % 3]!).slice(spec.writes ? 1 : 2)) {
          const got = await kill(spec, signal)
          assert.ok(got.first, `it ended by itself: ${got.stderr}`)
          const isChange = spec.writes && signal !== 'SIGKILL'
          // A read may end by the signal itself, as any program does.
          if (isChange) assert.equal(got.exit, EXIT[signal], got.stderr)
          else assert.ok(got.exit === null || got.exit === EXIT[signal], `${got.exit} ${got.stderr}`)
          assert.equal(got.stdout, '')
          assert.deepEqual([got.processes, got.files], [[], []])
          assert.ok(!got.shown!.includes(KEY) && !got.stderr.includes(KEY))
          if (isChange)
            assert.ok(
              got.stderr.includes(`--idempotency-key ${String(got.first.headers['idempotency-key'])}`),
              got.stderr,
            )
          else assert.equal(got.stderr, '')
        }
      })
  },
)
