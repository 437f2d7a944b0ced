import { findSecondsUntilErasable } from '../../../storage/messages/media.ts'
import type { App } from '../../app.ts'
import { removeUselessParts } from '../exports/parts.ts'
import { computeNextRunMs, getIdleMs, type JobDefinition } from '../../work/runner.ts'
import { removeErasedFiles } from './erase.ts'
import type { MediaStore } from '../../media-store.ts'

const MIN_DELAY_MS = 1000
/** Longer than the largest file takes to be written. */
const UNFINISHED_MS = 60 * 60_000
/** It reads the names of all files. */
const SWEEP_INTERVAL_MS = 60 * 60_000

/**
 * Removes files that nobody may have any more from the media store. Apart from the jobs that write files, which may
 * take minutes: an erasure of a person waits for this.
 */
export const fileRemovalJob = (app: App, store: MediaStore): JobDefinition => {
  let sweptAt = -Infinity
  return {
    name: 'file-removal',
    intervalMs: getIdleMs(app),
    run: async (signal) => {
      await removeErasedFiles(app, store, signal)
      await removeUselessParts(app, store, signal)
      if (performance.now() - sweptAt >= SWEEP_INTERVAL_MS) {
        sweptAt = performance.now()
        await store.removeUnfinished(UNFINISHED_MS)
      }
      const seconds = await findSecondsUntilErasable(app.db)
      return { nextInMs: computeNextRunMs(seconds, { min: MIN_DELAY_MS, max: getIdleMs(app) }) }
    },
  }
}
