import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { closeSync, createReadStream, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, describe, it } from 'node:test'
import { createLogOutput } from '../../server/log-output.ts'
import { startProcess } from '../process.ts'

const LINES = 10_000

describe('A log that cannot be written', { skip: process.platform !== 'linux' && 'needs /dev/full' }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'wcrm-log-output-'))
  after(() => rmSync(folder, { recursive: true, force: true }))

  it('costs neither requests nor the process, nor its end', { timeout: 120_000 }, async () => {
    const toFullDisk = ['sh', '-c', 'exec "$@" 2>/dev/full', 'sh']
    const server = await startProcess(
      ['--data', join(folder, 'data')],
      { WCRM_LOG_LEVEL: 'info' },
      toFullDisk,
    )
    for (let i = 0; i < 5; i++) {
      const { status } = await fetch(`${server.url}/v1/me`)
      assert.equal(status, 401)
    }
    assert.equal(await server.stop(), 0)
  })

  it('is bounded while nobody reads it, and says how many lines it lost', { timeout: 60_000 }, async () => {
    const path = join(folder, 'fifo')
    execFileSync('mkfifo', [path])
    const fd = openSync(path, 'r+')
    const output = createLogOutput(fd, 200_000)
    for (let i = 0; i < LINES; i++)
      output.write(`${JSON.stringify({ level: 30, i, text: 'x'.repeat(80) })}\n`)
    const reader = createReadStream(path)
    let [written, lost] = [0, 0]
    for await (const line of createInterface({ input: reader })) {
      const { msg, lines } = JSON.parse(line) as { msg?: string; lines?: number }
      if (msg?.includes('were lost')) lost += lines!
      else written++
      if (written + lost === LINES) break
    }
    reader.destroy()
    closeSync(fd)
    assert.ok(lost > LINES / 2 && written > 1000, `${written} written, ${lost} lost`)
  })
})
