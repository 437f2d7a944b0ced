import { type ErasableFile, forgetMediaKey, listErasableMedia } from '../../../storage/messages/media.ts'
import type { App } from '../../app.ts'
import { removeFiles } from './remove-files.ts'
import type { MediaStore } from '../../media-store.ts'

/** Removes the files of messages that customers deleted from the media store, until none is left. */
export const removeErasedFiles = (app: App, store: MediaStore, signal?: AbortSignal): Promise<void> =>
  removeFiles<ErasableFile>(
    app,
    store,
    {
      list: (after, limit) => listErasableMedia(app.db, after, limit),
      remove: async ({ workspace_id: workspaceId, message_id: messageId, key }) => {
        await store.remove(key)
        await forgetMediaKey(app.db, workspaceId, messageId)
      },
      describe: ({ message_id }) => ({ message: message_id }),
    },
    signal,
  )
