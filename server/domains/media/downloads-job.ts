import {
  claimMedia,
  markMediaErasable,
  markMediaFailed,
  markMediaKept,
  findSecondsUntilNextMedia,
  postponeMedia,
  releaseMedia,
  type ClaimedMedia,
} from '../../../storage/messages/media.ts'
import { waitAtMost } from '../../../storage/client/wait-at-most.ts'
import type { App } from '../../app.ts'
import { Problem } from '../../kernel/problem.ts'
import { errorLogDetails } from '../../kernel/log-details.ts'
import { computeNextRunMs, getIdleMs, type JobDefinition } from '../../work/runner.ts'
import { isProviderConfigured } from '../../provider/port.ts'
import { type Download, downloadFromUrl } from './download-url.ts'
import { type StallWatch, watchForStall } from './stall.ts'
import { type FileDigest, type MediaStore, mediaKey, tooLargeProblem } from '../../media-store.ts'

const MB = 1024 * 1024
/** The provider's limits for each type. */
const maxBytesByType: Readonly<Record<string, number>> = {
  IMAGE: 5 * MB,
  VIDEO: 16 * MB,
  AUDIO: 16 * MB,
  DOCUMENT: 100 * MB,
  STICKER: 500 * 1024,
}

const DOWNLOAD_TIMEOUT_MS = 120_000
/** A download of which nothing arrives for so long is given up, until its next retry. */
const STALL_TIMEOUT_MS = 15_000
/** Seconds until the next retry. The provider keeps a file for a week; after the last retry it is lost. */
const RETRY_DELAYS_SECONDS = [5, 30, 120, 600, 1800, 7200, 21_600, 43_200, 86_400, 86_400, 86_400, 86_400]
/** After so many refusals the file is given up, before the last retry. */
const MAX_REFUSALS = 5
/** Reasons that concern the file; an expired token, for one, says nothing about it. */
const refusalReasons = new Set<unknown>(['provider_not_found', 'media_refused'])
const MAX_CONCURRENT_DOWNLOADS = 16
/** Fewer than all, so that a channel whose files come slowly or never does not keep those of others waiting. */
const MAX_DOWNLOADS_PER_CHANNEL = 4
/** How often files that became due are looked for while others are downloaded. */
const LOOK_AGAIN_MS = 500
/** Behind a long backlog of a busy channel it takes long to find out that no other has any: at most this share. */
const LOOKING_SHARE = 0.1
const MIN_DELAY_MS = 50

/**
 * Downloads files that are due. Woken when messages have arrived; it runs again when a retry is due.
 */
export const mediaDownloadsJob = (app: App, store: MediaStore): JobDefinition => ({
  name: 'media-downloads',
  intervalMs: getIdleMs(app),
  run: async (signal) => {
    const processed = await downloadDueMedia(app, store, signal)
    const seconds = await findSecondsUntilNextMedia(app.db, isProviderConfigured(app.provider))
    return { processed, nextInMs: computeNextRunMs(seconds, { min: MIN_DELAY_MS, max: getIdleMs(app) }) }
  },
})

/**
 * Downloads files that customers sent into the media store, before the provider deletes them, until none is
 * due. Returns the number of attempts. Those in progress when `signal` is aborted are cut off.
 */
export const downloadDueMedia = async (
  app: App,
  store: MediaStore,
  signal: AbortSignal = new AbortController().signal,
  stallMs = STALL_TIMEOUT_MS,
): Promise<number> => {
  const hasProvider = isProviderConfigured(app.provider)
  const running = new Map<Promise<void>, ClaimedMedia>()
  const failures: unknown[] = []
  const fail = (error: unknown): [] => (failures.push(error), [])
  const claimNext = createClaims(app, hasProvider)
  let attempts = 0
  for (;;) {
    const isEnding = signal.aborted || failures.length > 0
    const claimed = isEnding ? [] : await claimNext([...running.values()]).catch(fail)
    attempts += claimed.length
    for (const file of claimed) {
      const download = downloadOne(app, store, file, { signal, stallMs })
        .catch((error: unknown) => void fail(error))
        .finally(() => running.delete(download))
      running.set(download, file)
    }
    if (claimed.length > 0) continue
    if (running.size === 0) break
    await waitAtMost(LOOK_AGAIN_MS, Promise.race(running.keys()))
  }
  if (failures.length > 0) throw failures[0]
  return attempts
}

const channelOf = ({ workspace_id: workspaceId, channel_id: channelId }: ClaimedMedia): string =>
  `${workspaceId}/${channelId}`

/** Claims files that are due, as many as may be downloaded besides the running ones: of any channel, and of each. */
const createClaims = (
  app: App,
  hasProvider: boolean,
): ((running: readonly ClaimedMedia[]) => Promise<ClaimedMedia[]>) => {
  let lookForOthersAt = 0
  return async (running) => {
    const byChannel = Map.groupBy(running, channelOf)
    const counts = [...byChannel.values()].map(({ length }) => length)
    const busiest = Math.max(0, ...counts.filter((count) => count < MAX_DOWNLOADS_PER_CHANNEL))
    // All of them may be of the busiest channel.
    const limit = Math.min(MAX_CONCURRENT_DOWNLOADS - running.length, MAX_DOWNLOADS_PER_CHANNEL - busiest)
    if (limit <= 0) return []
    const full = [...byChannel.values()].filter(({ length }) => length >= MAX_DOWNLOADS_PER_CHANNEL)
    const startedAt = performance.now()
    if (full.length > 0 && startedAt < lookForOthersAt) return []
    const claimed = await claimMedia(app.db, { limit, hasProvider, except: full.map(([file]) => file!) })
    if (full.length > 0 && claimed.length === 0) {
      const endedAt = performance.now()
      lookForOthersAt = endedAt + Math.max(LOOK_AGAIN_MS, (endedAt - startedAt) / LOOKING_SHARE)
    }
    return claimed
  }
}

/** `signal` is aborted when the server stops. */
type Limits = { signal: AbortSignal; stallMs: number }

const downloadOne = async (
  app: App,
  store: MediaStore,
  file: ClaimedMedia,
  { signal, stallMs }: Limits,
): Promise<void> => {
  const { workspace_id: workspaceId, message_id: messageId } = file
  const watch = watchForStall(AbortSignal.any([signal, AbortSignal.timeout(DOWNLOAD_TIMEOUT_MS)]), stallMs)
  try {
    const { content, contentType, reportedDigests } = await download(app, store, file, watch)
    const { size, sha256 } = await store.write(mediaKey(workspaceId, messageId), content, (digest) =>
      requireReportedDigests(digest, reportedDigests),
    )
    const kept = { content_type: contentType, size, sha256: sha256.toString('hex') }
    if (await markMediaKept(app.db, workspaceId, messageId, kept)) return
    // The message was deleted meanwhile.
    await markMediaErasable(app.db, workspaceId, messageId)
    app.jobs.job('file-removal').wake()
  } catch (error) {
    if (signal.aborted) await releaseMedia(app.db, workspaceId, messageId)
    else await recordFailedDownload(app, file, error)
  } finally {
    watch.end()
  }
}

const download = async (
  app: App,
  store: MediaStore,
  file: ClaimedMedia,
  { signal, follow, restart }: StallWatch,
): Promise<Download & { reportedDigests: readonly (string | null)[] }> => {
  const maxBytes = Math.min(maxBytesByType[file.type] ?? MB, store.maxBytes)
  if (file.provider_media_id === null) {
    const { content, contentType } = await downloadFromUrl(app.webhookGuard, file.url!, maxBytes, signal)
    return { content: follow(content), contentType: file.content_type ?? contentType, reportedDigests: [] }
  }
  const owner = { phoneNumberId: file.phone_number_id }
  const info = await app.provider.mediaInfo(file.provider_media_id, signal, owner)
  restart()
  if (info.size !== null && info.size > maxBytes) throw tooLargeProblem(maxBytes)
  return {
    // At once: the address expires after five minutes.
    content: follow(await app.provider.downloadMedia(info.url, maxBytes, signal, owner)),
    contentType: file.content_type ?? info.contentType,
    reportedDigests: [info.sha256, file.sha256],
  }
}

const requireReportedDigests = ({ sha256 }: FileDigest, reported: readonly (string | null)[]): void => {
  for (const digest of reported)
    if (digest !== null && !isSameDigest(digest, sha256))
      throw new Error('the digest of the file is not the reported one')
}

/** The provider writes digests in hex in some places and in base64 in others. */
const isSameDigest = (reported: string, digest: Buffer): boolean =>
  reported.toLowerCase() === digest.toString('hex') ||
  reported.replaceAll('-', '+').replaceAll('_', '/').replace(/=+$/, '') ===
    digest.toString('base64').replace(/=+$/, '')

const describeRefusal = ({ provider_media_id: id }: ClaimedMedia, error: unknown): string =>
  id === null ? (error as Problem).message : 'The provider no longer has the file.'

const recordFailedDownload = async (app: App, file: ClaimedMedia, error: unknown): Promise<void> => {
  const { workspace_id: workspaceId, message_id: messageId, attempts } = file
  if (error instanceof Problem && error.code === 'payload_too_large')
    return await markMediaFailed(app.db, workspaceId, messageId, 'too_large', error.message)
  const isRefused = error instanceof Problem && refusalReasons.has(error.extras.reason)
  const seconds = isRefused && attempts >= MAX_REFUSALS ? undefined : RETRY_DELAYS_SECONDS[attempts - 1]
  app.log.warn(
    { message: messageId, attempts, ...errorLogDetails(error) },
    seconds === undefined
      ? 'Cannot download a file of a customer; giving up'
      : 'Cannot download a file of a customer; retrying',
  )
  if (seconds !== undefined) return await postponeMedia(app.db, workspaceId, messageId, seconds)
  const reason = isRefused ? describeRefusal(file, error) : 'It could not be downloaded in time.'
  await markMediaFailed(app.db, workspaceId, messageId, 'lost', reason)
}
