import type { DiskSpace } from './disk-space.ts'
import type { Warn } from './private-files.ts'
import { READ_ONLY, type SharedState } from './shared-state.ts'

/** Commands that are over by then need no reserve. */
const RESERVE_AFTER_MS = 3_000

/** Makes the database read-only while its disk is full, and says so when that begins and when it ends. */
export const createDiskMonitor = (folder: string, space: DiskSpace, shared: SharedState, warn: Warn) => {
  const openedAt = performance.now()
  let isFull = false
  let reserving: Promise<void> | undefined

  const reserve = (): void => {
    if (isFull || reserving || performance.now() - openedAt < RESERVE_AFTER_MS) return
    reserving = space.reserve().finally(() => {
      reserving = undefined
    })
  }
  return {
    isFull: (): boolean => isFull,
    check: (): void => {
      const wasFull = isFull
      isFull = space.isFull()
      if (isFull !== wasFull) {
        Atomics.store(shared, READ_ONLY, isFull ? 1n : 0n)
        warn(
          isFull
            ? `the disk of ${folder} is full: changes are refused, reads go on. Free some space on it`
            : `the disk of ${folder} has space again: changes are accepted`,
        )
      }
      reserve()
    },
  }
}
