import assert from 'node:assert/strict'
import fs, { existsSync, mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, describe, it } from 'node:test'

/** How often a file was synced: in place, and by another thread, which waits while there is `held`. */
const synced = { inPlace: 0, behind: 0 }
let held: (() => void)[] | undefined
const { fsync, fsyncSync } = fs
Object.assign(fs, {
  fsyncSync: (file: number) => {
    synced.inPlace++
    fsyncSync(file)
  },
  fsync: (file: number, done: (error: Error | null) => void) => {
    const sync = () => {
      synced.behind++
      fsync(file, done)
    }
    if (held) held.push(sync)
    else sync()
  },
})
syncBuiltinESMExports()
const { createDurableLog } = await import('../../storage/embedded/durable-log.ts')

/** A file whose sync fails. The sync of any other one succeeds afterwards, as that of the same file on a bad disk. */
const UNSYNCABLE = '/dev/null'

const FAILS = /the disk of the embedded database fails/

const folder = mkdtempSync(join(tmpdir(), 'wcrm-durable-log-'))
const file = join(folder, 'log')
before(() => writeFileSync(file, 'records'))
after(() => {
  Object.assign(fs, { fsync, fsyncSync })
  syncBuiltinESMExports()
  rmSync(folder, { recursive: true })
})

describe('The log of the embedded database', () => {
  const release = (): void => {
    const syncs = held ?? []
    held = undefined
    for (const sync of syncs) sync()
  }
  beforeEach(() => Object.assign(synced, { inPlace: 0, behind: 0 }))

  it('is synced once for all who wait, and again for who asked meanwhile', async () => {
    const log = createDurableLog()
    log.noteSync(file)
    log.noteSync(file)
    held = []
    const first = [log.whenDurable(), log.whenDurable()]
    log.noteSync(file)
    let isDurable = false
    const later = log.whenDurable().then(() => void (isDurable = true))
    const second = held
    release()
    held = []
    await Promise.all(first)
    assert.deepEqual([second.length, synced.behind, isDurable], [1, 1, false])
    release()
    await later
    await log.whenDurable()
    assert.deepEqual(synced, { inPlace: 0, behind: 2 })
  })

  it('is on the disk up to the last record of a page before the page is', async () => {
    const log = createDurableLog()
    log.noteWrite(100)
    log.noteSync(file)
    await log.whenDurable()
    log.noteWrite(200)
    log.noteWrite(150)
    log.noteSync(file)
    log.syncBefore(100)
    assert.equal(synced.inPlace, 0)
    log.syncBefore(101)
    assert.equal(synced.inPlace, 1)
    // All of it is durable now, for whoever asks.
    log.syncBefore()
    log.syncBefore(200)
    await log.whenDurable()
    assert.deepEqual(synced, { inPlace: 1, behind: 1 })
    log.noteSync(file)
    // What was written since may be of that sync.
    log.syncBefore(200)
    assert.equal(synced.inPlace, 1)
    log.syncBefore()
    assert.equal(synced.inPlace, 2)
  })

  it('is synced in place also where another thread is about to, whose older sync ends later', async () => {
    const log = createDurableLog()
    log.noteWrite(100)
    log.noteSync(file)
    held = []
    const durable = log.whenDurable()
    log.syncBefore(100)
    assert.deepEqual(synced, { inPlace: 1, behind: 0 })
    log.noteWrite(200)
    log.noteSync(file)
    log.syncBefore(200)
    release()
    await durable
    log.syncBefore(200)
    assert.equal(synced.behind, 1)
    assert.equal(synced.inPlace, 3)
  })

  it('keeps no file open that is synced', { skip: !existsSync('/proc/self/fd') }, async () => {
    const log = createDurableLog()
    const isOpen = () =>
      readdirSync('/proc/self/fd').some((fd) => {
        try {
          return readlinkSync(`/proc/self/fd/${fd}`) === file
        } catch {
          return false
        }
      })
    for (let n = 0; n < 2; n++) {
      log.noteSync(file)
      log.noteSync(file)
      assert.ok(isOpen())
      if (n % 2 === 0) log.syncBefore()
      await log.whenDurable()
    }
    assert.ok(!isOpen())
  })
})

describe('The log of the embedded database on a disk that fails', () => {
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
