import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { describe, it } from 'node:test'
import { openTerminal } from '../terminal.ts'

describe('Command line: what a terminal does', () => {
  it('ends a prompt with Ctrl-D when nothing is typed, however keys are delivered', async () => {
    const terminal = openTerminal(['login', '--url', 'http://127.0.0.1:9'], { HOME: '/nonexistent' })
    try {
      assert.ok(await terminal.waitFor('API key for', 30_000), terminal.printed())
      const shown = terminal.waitFor(' ***')
      terminal.type('abc\u0004')
      assert.ok(await shown, terminal.printed())
      terminal.type('\u0015\u0004')
      assert.equal(await terminal.ended, 130)
      assert.doesNotMatch(terminal.printed(), /\*{4}/)
    } finally {
      await terminal.close()
    }
  })

  it('says in one line that its output cannot be written', () => {
    const full = openSync('/dev/full', 'w')
    try {
      const { status, stderr } = spawnSync(process.execPath, ['bin/wcrm.js', '--help'], {
        stdio: ['ignore', full, 'pipe'],
        env: { PATH: process.env['PATH'], HOME: '/nonexistent' },
        encoding: 'utf8',
      })
      assert.deepEqual([status, stderr.match(/\n/g)?.length], [1, 1], stderr)
      assert.match(stderr, /^wcrm: cannot write the output: ENOSPC/)
    } finally {
      closeSync(full)
    }
  })
})
