import { forgetMediaKey, listErasableMedia } from '../../storage/media.ts'
import type { App } from '../core/app.ts'
import { errorLogDetails } from '../jobs/log-details.ts'
import { isStoreUnavailable, type MediaStore } from './store.ts'

const BATCH_SIZE = 100

/**
 * Removes the files of messages that customers deleted from the media store, until none is left. A file that
 * cannot be removed is tried again at the next run, and does not keep the others, unless the store is down.
 */
export const removeErasedFiles = async (app: App, store: MediaStore, signal?: AbortSignal): Promise<void> => {
  while (!signal?.aborted) {
    const files = await listErasableMedia(app.db, BATCH_SIZE)
    let failed = 0
    for (const { workspace_id: workspaceId, message_id: messageId, key } of files) {
      try {
        // The file first: after a crash in between it is removed again, which does nothing.
        await store.remove(key)
        await forgetMediaKey(app.db, workspaceId, messageId)
      } catch (error) {
        if (isStoreUnavailable(error)) return
        failed++
        app.log.warn({ message: messageId, ...errorLogDetails(error) }, 'Cannot remove a deleted file')
      }
    }
    if (failed > 0 || files.length < BATCH_SIZE) return
  }
}
