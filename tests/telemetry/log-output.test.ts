import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { closeSync, createReadStream, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, describe, it } from 'node:test'
import { createLogOutput } from '../../server/log-output.ts'
import { anyDatabase, createDatabase } from '../databases.ts'
import { startProcess } from '../process.ts'

const LINES = 10_000

describe('A log that cannot be written', { skip: process.platform !== 'linux' && 'needs /dev/full' }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'wcrm-log-output-'))
  after(() => rmSync(folder, { recursive: true, force: true }))

  const makePipe = (name: string): { path: string; fd: number } => {
    const path = join(folder, name)
    execFileSync('mkfifo', [path])
    // Also a reader: a pipe without one would refuse what is written.
    return { path, fd: openSync(path, 'r+') }
  }

  for (const where of ['on a full disk', 'to a pipe that nobody reads'])
    it(`costs neither requests nor the process, nor its end: ${where}`, { timeout: 120_000 }, async () => {
      const { path, fd } = makePipe(where)
      const database = await createDatabase(anyDatabase)
      const server = await startProcess(database.flags, { WCRM_LOG_LEVEL: 'info' }, [
        'sh',
        '-c',
        'exec "$@" 2>"$0"',
        where === 'on a full disk' ? '/dev/full' : path,
      ])
      // More lines than a pipe holds.
      for (let i = 0; i < 1000; i++) {
        const { status } = await fetch(`${server.url}/nowhere`)
        assert.equal(status, 404)
      }
      assert.equal(await server.stop(), 0)
      closeSync(fd)
      await database.remove()
    })

  it('is bounded while nobody reads it, and says how many lines it lost', { timeout: 60_000 }, async () => {
    const { path, fd } = makePipe('pipe')
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

  it('counts what it lost in several writes', { timeout: 60_000 }, async () => {
    const path = join(folder, 'space-again')
    const fd = openSync('/dev/full', 'w')
    const output = createLogOutput(fd)
    let total = 0
    const write = async () => {
      output.lastLevel = 50
      output.write(`{"n":${total++}}\n`)
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    for (let i = 0; i < 10; i++) await write()
    closeSync(fd)
    assert.equal(openSync(path, 'w'), fd)
    let [written, lost] = [0, 0]
    await write()
    while (written === 0) {
      await new Promise(setImmediate)
      const lines = readFileSync(path, 'utf8').trim().split('\n').filter(Boolean)
      const parsed = lines.map((line) => JSON.parse(line) as { lines?: number })
      lost = parsed.reduce((sum, line) => sum + (line.lines ?? 0), 0)
      written = parsed.filter((line) => line.lines === undefined).length
    }
    closeSync(fd)
    assert.equal(written + lost, total)
  })
})
