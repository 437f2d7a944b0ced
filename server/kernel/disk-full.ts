import type { DiskState, Kernel } from './kernel.ts'
import type { Logger } from 'pino'
import { errorCode } from '../../storage/client/error-codes.ts'

/** A full disk fails every change and many background jobs: it is logged once per interval. */
const LOG_INTERVAL_MS = 60_000
/** How long after the last failure the disk counts as full, where only failures tell. */
const SEEN_FOR_MS = 60_000

export const isDiskFullError = (error: unknown): boolean =>
  (error as { code?: unknown }).code === errorCode.diskFull

/** Notes an error of a full disk, and logs the first of each interval. Returns false for other errors. */
export const noteDiskFull = ({ disk, log }: { disk: DiskState; log: Logger }, error: unknown): boolean => {
  if (!isDiskFullError(error)) return false
  const now = performance.now()
  disk.seenAt = now
  if (now - disk.loggedAt >= LOG_INTERVAL_MS) {
    disk.loggedAt = now
    log.error(
      { reason: 'disk_full' },
      'The disk of the database is full: changes are refused, reads go on. Free some space on it',
    )
  }
  return true
}

export const isDiskFull = (app: Kernel): boolean =>
  app.isDatabaseDiskFull() || performance.now() - app.disk.seenAt < SEEN_FOR_MS
