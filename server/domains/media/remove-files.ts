import type { App } from '../../app.ts'
import { errorLogDetails } from '../../kernel/log-details.ts'
import { isStoreUnavailable, type MediaStore } from '../../media-store.ts'

const BATCH_SIZE = 100

/**
 * Removes files from the media store, page by page, until none is left. One that cannot be removed is tried again at
 * the next run, and does not keep the others; where the store itself does not work, all wait for the next run.
 */
export const removeFiles = async <File>(
  app: App,
  store: MediaStore,
  {
    list,
    remove,
    describe,
  }: {
    /** Lists files in order, after this one. */
    list: (after: File | undefined, limit: number) => Promise<File[]>
    /** Removes a file, and then what is known of it: after a crash in between it is removed again. */
    remove: (file: File) => Promise<void>
    /** What a log line says of a file. */
    describe: (file: File) => Record<string, string>
  },
  signal?: AbortSignal,
): Promise<void> => {
  for (let after: File | undefined; !signal?.aborted;) {
    const files = await list(after, BATCH_SIZE)
    for (const file of files)
      try {
        await remove(file)
      } catch (error) {
        // Whatever fails in a store looks like its end, even what concerns a single file.
        if (isStoreUnavailable(error) && !(await store.check()).ok) return
        app.log.warn({ ...describe(file), ...errorLogDetails(error) }, 'Cannot remove a file')
      }
    after = files.at(-1)
    if (files.length < BATCH_SIZE) return
  }
}
