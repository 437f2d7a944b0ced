import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { createDurableLog } from '../../storage/embedded/durable-log.ts'

/** A file whose sync fails. The sync of any other one succeeds afterwards, as that of the same file on a bad disk. */
const UNSYNCABLE = '/dev/null'

const FAILS = /the disk of the embedded database fails/

describe('The log of the embedded database on a disk that fails', () => {
  const folder = mkdtempSync(join(tmpdir(), 'wcrm-durable-log-'))
  const file = join(folder, 'log')
  writeFileSync(file, 'records')
  after(() => rmSync(folder, { recursive: true }))

  it('is durable no more after a sync in place that failed', async () => {
    const log = createDurableLog()
    log.noteSync(UNSYNCABLE)
    assert.throws(() => log.syncBefore(), { code: 'EINVAL' })
    assert.throws(() => log.noteSync(file), FAILS)
    assert.throws(() => log.syncBefore(), FAILS)
    await assert.rejects(log.whenDurable(), FAILS)
  })

  it('is durable no more after a sync by another thread that failed, for whoever asks and how often', async () => {
    const log = createDurableLog()
    log.noteSync(UNSYNCABLE)
    await Promise.all([assert.rejects(log.whenDurable(), FAILS), assert.rejects(log.whenDurable(), FAILS)])
    for (let n = 0; n < 3; n++) await assert.rejects(log.whenDurable(), FAILS)
    assert.throws(() => log.noteSync(file), FAILS)
  })
})
