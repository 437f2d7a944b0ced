import type { MediaLocation } from '../../server/domains/media/location.ts'
import { openMediaStore } from '../../server/domains/media/open-store.ts'
import type { MediaStore } from '../../server/media-store.ts'

/** Opens a store for a command. Throws when it does not work. */
export const openWorkingStore = async (location: MediaLocation): Promise<MediaStore> => {
  const store = await openMediaStore(location)
  const checked = await store.check()
  if (!checked.ok) throw new Error(`${checked.detail} ${checked.fix}`)
  return store
}
