import { findSecondsUntilErasable } from '../../storage/media.ts'
import type { App } from '../core/app.ts'
import { removeUselessParts } from '../exports/parts.ts'
import { getIdleMs, type JobDefinition } from '../jobs/runner.ts'
import { removeErasedFiles } from './erase.ts'
import type { MediaStore } from './store.ts'

const MIN_DELAY_MS = 1000

/**
 * Removes files that nobody may have any more from the media store. Apart from the jobs that write files, which may
 * take minutes: an erasure of a person waits for this.
 */
export const fileRemovalJob = (app: App, store: MediaStore): JobDefinition => ({
  name: 'file-removal',
  intervalMs: getIdleMs(app),
  run: async (signal) => {
    await removeErasedFiles(app, store, signal)
    await removeUselessParts(app, store, signal)
    const seconds = await findSecondsUntilErasable(app.db)
    return seconds === undefined ? {} : { nextInMs: Math.max(MIN_DELAY_MS, seconds * 1000) }
  },
})
