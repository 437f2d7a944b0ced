import type { MediaStore } from '../../media-store.ts'

/**
 * A store whose files move here from a previous one: reads look there too, and removals are made in both, so that
 * servers need not stop meanwhile. What is written is written here.
 */
export const createLayeredStore = (store: MediaStore, previous: MediaStore): MediaStore => {
  /** Here, there, and here again: between the two looks the file may have moved. */
  const look = async <T>(ask: (where: MediaStore) => Promise<T | undefined>): Promise<T | undefined> => {
    const found = await ask(store).catch(async (error: unknown) => {
      const there = await ask(previous)
      if (there === undefined) throw error
      return there
    })
    return found ?? (await ask(previous)) ?? (await ask(store))
  }
  return {
    ...store,
    find: (key) => look((where) => where.find(key)),
    read: (key, range) => look((where) => where.read(key, range)),
    remove: async (key) => {
      await store.remove(key)
      await previous.remove(key)
    },
    removeUnfinished: async (ms) =>
      (await store.removeUnfinished(ms)) + (await previous.removeUnfinished(ms)),
    check: async () => {
      const checked = await store.check()
      return checked.ok ? await previous.check() : checked
    },
  }
}
