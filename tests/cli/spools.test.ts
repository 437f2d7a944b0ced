import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'

/** A server whose export never ends: each page leads to another, and the third one does not arrive. */
const createEndlessServer = () => {
  let pages = 0
  const reached = Promise.withResolvers<void>()
  const server = createServer((_request, response) => {
    pages++
    if (pages > 2) return reached.resolve()
    response.setHeader('Content-Type', 'application/json')
    const row = { id: String(pages), name: 'x'.repeat(200_000), tags: [], groups: [], attributes: [] }
    response.end(JSON.stringify({ data: [row], next_cursor: 'more' }))
  })
  return { server, reached: reached.promise }
}

describe('An export that is killed', () => {
  const home = mkdtempSync(join(tmpdir(), 'wcrm-spool-'))
  const { server, reached } = createEndlessServer()
  let url: string
  before(async () => {
    await once(server.listen(0, '127.0.0.1'), 'listening')
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  after(() => {
    server.closeAllConnections()
    server.close()
    rmSync(home, { recursive: true })
  })

  it('leaves nothing behind, and the previous file as it was', async () => {
    const output = join(home, 'contacts.ndjson')
    writeFileSync(output, 'previous')
    const words = ['contacts', 'export', '--format', 'ndjson', '--output', output]
    const child = spawn(process.execPath, ['bin/wcrm.js', ...words], {
      stdio: 'ignore',
      env: {
        PATH: process.env.PATH,
        NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? '',
        HOME: home,
        TMPDIR: home,
        WCRM_URL: url,
        WCRM_API_KEY: 'wc_live_x',
      },
    })
    const exited = once(child, 'exit')
    await reached
    if (existsSync('/proc/self/fd')) {
      const open = readdirSync(`/proc/${child.pid}/fd`).map((fd) =>
        readlinkSync(`/proc/${child.pid}/fd/${fd}`),
      )
      assert.ok(
        open.some((path) => path.startsWith(home) && path.endsWith('(deleted)')),
        open.join(' '),
      )
    }
    child.kill('SIGKILL')
    await exited
    assert.deepEqual(readdirSync(home), ['contacts.ndjson'])
  })
})
