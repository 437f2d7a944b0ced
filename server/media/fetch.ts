import { createHash } from 'node:crypto'
import {
  claimWaitingMedia,
  giveUpMedia,
  keepMedia,
  nextMediaIn,
  postponeMedia,
  type WaitingMedia,
} from '../../storage/media.ts'
import type { App } from '../app.ts'
import { Problem } from '../core/problem.ts'
import { type MediaStore, mediaKey } from './store.ts'

const MB = 1024 * 1024
/** What the provider itself takes of each type (reference 2.2). */
const limits: Readonly<Record<string, number>> = {
  IMAGE: 5 * MB,
  VIDEO: 16 * MB,
  AUDIO: 16 * MB,
  DOCUMENT: 100 * MB,
  STICKER: 500 * 1024,
}

const LEASE_SECONDS = 180
const CALL_DEADLINE_MS = 120_000
/** Seconds until another try; the provider keeps a file for a week. Then it is lost. */
const BACKOFF = [5, 30, 120, 600, 1800, 7200, 21_600, 43_200, 86_400, 86_400, 86_400, 86_400]
/** What the provider says of the file for sure is believed when it was asked so often. */
const REFUSALS = 5
/** Reasons by which it says so; a token that has expired, for one, says nothing of the file. */
const gone = new Set<unknown>(['provider_not_found', 'media_refused'])
const LONGEST_TIMER_SECONDS = 60
/** The files of one run that are fetched at a time. */
const AT_ONCE = 4

/**
 * Fetches files that customers sent into our own store before the provider forgets them. Answers how many
 * were tried.
 */
export const fetchMedia = async (app: App, store: MediaStore, most = 100): Promise<number> => {
  let tried = 0
  for (let due: WaitingMedia[] = [{} as WaitingMedia]; due.length > 0 && tried < most;) {
    due = await claimWaitingMedia(app.db, LEASE_SECONDS, Math.min(AT_ONCE, most - tried))
    await Promise.all(due.map((one) => fetchOne(app, store, one)))
    tried += due.length
  }
  return tried
}

const fetchOne = async (app: App, store: MediaStore, one: WaitingMedia): Promise<void> => {
  const { workspace_id: workspaceId, message_id: messageId } = one
  try {
    const { bytes, contentType, sha256 } = await download(app, store, one)
    const key = mediaKey(workspaceId, messageId)
    await store.write(key, bytes)
    await keepMedia(app.db, workspaceId, messageId, {
      key,
      content_type: contentType,
      size: bytes.byteLength,
      sha256,
    })
  } catch (error) {
    await failed(app, one, error)
  }
}

const download = async (
  app: App,
  store: MediaStore,
  one: WaitingMedia,
): Promise<{ bytes: Uint8Array; contentType: string | null; sha256: string }> => {
  const signal = AbortSignal.timeout(CALL_DEADLINE_MS)
  const most = Math.min(limits[one.type] ?? MB, store.mostBytes)
  const info = await app.provider.mediaInfo(one.provider_media_id, signal)
  if (info.size !== null && info.size > most) throw tooLarge(most)
  // Right away: the address dies after five minutes.
  const bytes = await app.provider.downloadMedia(info.url, most, signal)
  if (bytes.byteLength > most) throw tooLarge(most)
  const digest = createHash('sha256').update(bytes).digest()
  if ([info.sha256, one.sha256].some((told) => told !== null && !isDigest(told, digest)))
    throw new Error('the file is not the one that was sent')
  return { bytes, contentType: one.content_type ?? info.contentType, sha256: digest.toString('hex') }
}

/** The provider writes digests in hex in one place and in base64 in another. */
const isDigest = (told: string, digest: Buffer): boolean =>
  told.toLowerCase() === digest.toString('hex') ||
  told.replaceAll('-', '+').replaceAll('_', '/').replace(/=+$/, '') ===
    digest.toString('base64').replace(/=+$/, '')

const tooLarge = (most: number): Problem =>
  new Problem('payload_too_large', `The file is larger than ${most} bytes.`)

const failed = async (
  app: App,
  { workspace_id: workspaceId, message_id: messageId, attempts }: WaitingMedia,
  error: unknown,
): Promise<void> => {
  const code = error instanceof Problem ? error.code : undefined
  if (code === 'payload_too_large')
    return await giveUpMedia(app.db, workspaceId, messageId, 'too_large', (error as Problem).message)
  const seconds = BACKOFF[attempts - 1]
  const refused = error instanceof Problem && gone.has(error.extras.reason)
  app.log.warn(
    { message: messageId, attempts, code: code ?? (error as { code?: string }).code },
    'a file that a customer sent could not be fetched',
  )
  if (seconds === undefined || (refused && attempts >= REFUSALS)) {
    return await giveUpMedia(
      app.db,
      workspaceId,
      messageId,
      'lost',
      refused
        ? 'The provider does not have it any more.'
        : 'It could not be fetched from the provider in time.',
    )
  }
  await postponeMedia(app.db, workspaceId, messageId, seconds)
}

type Work = { running?: Promise<void>; timer?: NodeJS.Timeout; again?: boolean; stopped?: true }
const works = new WeakMap<App, Work>()

const workOf = (app: App): Work => {
  const known = works.get(app)
  if (known) return known
  const work: Work = {}
  works.set(app, work)
  return work
}

/** Fetches what waits, without being waited for, and comes back when the next try is due. */
export const kickMedia = (app: App): void => {
  const work = workOf(app)
  if (!app.media || work.stopped) return
  work.again = true
  work.running ??= run(app, app.media, work)
    .catch((error: unknown) => {
      app.log.warn(
        { code: (error as { code?: string }).code },
        'files could not be fetched; they are tried again',
      )
    })
    .finally(() => {
      delete work.running
      if (work.again) kickMedia(app)
    })
}

const run = async (app: App, store: MediaStore, work: Work): Promise<void> => {
  while (work.again && !work.stopped) {
    work.again = false
    while (!work.stopped && (await fetchMedia(app, store)) > 0);
  }
  const seconds = work.stopped ? undefined : await nextMediaIn(app.db)
  clearTimeout(work.timer)
  if (seconds === undefined || seconds > LONGEST_TIMER_SECONDS || work.stopped) return
  work.timer = setTimeout(() => kickMedia(app), Math.max(50, seconds * 1000))
  work.timer.unref()
}

/** Waits for the files under way and begins no other, before the storage is closed. */
export const stopMedia = async (app: App): Promise<void> => {
  const work = workOf(app)
  work.stopped = true
  clearTimeout(work.timer)
  await work.running
}
