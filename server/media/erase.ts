import { type ErasableFile, forgetMediaKey, listErasableMedia } from '../../storage/media.ts'
import type { App } from '../core/app.ts'
import { errorLogDetails } from '../jobs/log-details.ts'
import { isStoreUnavailable, type MediaStore } from './store.ts'

const BATCH_SIZE = 100

/**
 * Removes the files of messages that customers deleted from the media store, until none is left. A file that
 * cannot be removed is tried again at the next run, and does not keep the others, unless the store is down.
 */
export const removeErasedFiles = async (app: App, store: MediaStore, signal?: AbortSignal): Promise<void> => {
  for (let after: ErasableFile | undefined; !signal?.aborted;) {
    const files = await listErasableMedia(app.db, after, BATCH_SIZE)
    for (const { workspace_id: workspaceId, message_id: messageId, key } of files) {
      try {
        // The file first: after a crash in between it is removed again, which does nothing.
        await store.remove(key)
        await forgetMediaKey(app.db, workspaceId, messageId)
      } catch (error) {
        if (isStoreUnavailable(error)) return
        app.log.warn({ message: messageId, ...errorLogDetails(error) }, 'Cannot remove a deleted file')
      }
    }
    after = files.at(-1)
    if (files.length < BATCH_SIZE) return
  }
}
