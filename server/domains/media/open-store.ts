import type { Logger } from 'pino'
import { Problem } from '../../kernel/problem.ts'
import type { Metrics } from '../../metrics.ts'
import { createFolderStore } from './folder-store.ts'
import { createLayeredStore } from './layered-store.ts'
import type { MediaLocation, MediaLocations } from './location.ts'
import {
  type FileContent,
  isStoreUnavailable,
  type MediaStore,
  storeUnavailableProblem,
} from '../../media-store.ts'

export type MediaStoreOptions = { maxBytes?: number; timeoutMs?: number; warn?: (message: string) => void }

/** Opens a store without asking anything of it. The client of S3 is loaded only for a bucket. */
export const openMediaStore = async (
  location: MediaLocation,
  { warn, ...options }: MediaStoreOptions = {},
): Promise<MediaStore> => {
  if (location.kind === 'folder')
    return createFolderStore(location.folder, { ...options, ...(warn ? { warn } : {}) })
  const { createS3Store } = await import('./s3-store.ts')
  return createS3Store(location, options)
}

/**
 * Opens the store of a server, and finds out whether it works. Throws when only another configuration can help, such
 * as a bucket that does not exist; logs a warning when it may work later. `previous`: where files are moved from.
 */
export const openServerStore = async (
  { location, previous }: MediaLocations,
  { log, metrics }: { log: Pick<Logger, 'warn' | 'info'>; metrics: Metrics },
): Promise<MediaStore> => {
  const warn = (message: string) => log.warn(message)
  const own = await openMediaStore(location, { warn })
  const store = previous ? createLayeredStore(own, await openMediaStore(previous, { warn })) : own
  const checked = await store.check()
  if (!checked.ok) {
    if (checked.isDefinite) throw new Error(`WCRM_MEDIA: ${checked.detail} ${checked.fix}`)
    log.warn({ store: store.name, detail: checked.detail, fix: checked.fix }, 'The media store does not work')
  }
  return watchMediaStore(store, { log, metrics })
}

/** What a log line says of a failure: no keys of files, no credentials. */
const describeFailure = (error: unknown) => {
  const { name, code, $metadata } = error as Error & {
    code?: string
    $metadata?: { httpStatusCode?: number }
  }
  return { name, code, status: $metadata?.httpStatusCode }
}

/**
 * Returns the store with the duration and the outcome of each call in the metrics. Any failure of the store itself
 * becomes a problem, and is logged when the store failed for the first time, or works again.
 */
const watchMediaStore = (
  store: MediaStore,
  { log, metrics }: { log: Pick<Logger, 'warn' | 'info'>; metrics: Metrics },
): MediaStore => {
  let isFailing = false
  const watch = async <T>(
    call: string,
    run: () => Promise<T>,
    isOurs = (_: unknown) => false,
  ): Promise<T> => {
    const end = metrics.mediaStore.startTimer({ call })
    try {
      const answer = await run()
      end({ outcome: 'ok' })
      if (isFailing) log.info({ store: store.name }, 'The media store works again')
      isFailing = false
      return answer
    } catch (error) {
      if (isOurs(error) || (error instanceof Problem && !isStoreUnavailable(error))) {
        end({ outcome: 'refused' })
        throw error
      }
      end({ outcome: 'unavailable' })
      const problem = isStoreUnavailable(error) ? error : storeUnavailableProblem(error)
      const details = { store: store.name, call, ...describeFailure(problem.cause) }
      if (!isFailing)
        log.warn(details, 'The media store fails; files are kept for later, and reads answer 503')
      isFailing = true
      throw problem
    }
  }
  return {
    ...store,
    write: async (key, content, accept) => {
      // What the source of the file throws is no failure of the store.
      const thrown = new Set<unknown>()
      return await watch(
        'write',
        () => store.write(key, noteErrors(content, thrown), accept && noteThrown(accept, thrown)),
        (error) => thrown.has(error),
      )
    },
    find: (key) => watch('find', () => store.find(key)),
    read: (key, range) => watch('read', () => store.read(key, range)),
    remove: (key) => watch('remove', () => store.remove(key)),
  }
}

async function* noteErrors(content: FileContent, thrown: Set<unknown>): AsyncGenerator<Uint8Array> {
  try {
    yield* content
  } catch (error) {
    thrown.add(error)
    throw error
  }
}

const noteThrown =
  <A>(call: (given: A) => void, thrown: Set<unknown>) =>
  (given: A): void => {
    try {
      call(given)
    } catch (error) {
      thrown.add(error)
      throw error
    }
  }
