import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'

test('the programs that read the files of deploy/ accept them, as far as they are installed', () => {
  const { status, stdout } = spawnSync('sh', ['deploy/check.sh'], { encoding: 'utf8' })
  assert.match(stdout, /^ok {7}install-node\.sh: syntax$/m)
  assert.equal(status, 0, stdout)
})
