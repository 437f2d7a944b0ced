import {
  beginDownload,
  markMediaErasable,
  markMediaFailed,
  markMediaKept,
  PROVIDER,
  type WaitingMedia,
} from '../../../storage/messages/media.ts'
import { finishRun, type Run } from '../../../storage/work/runs.ts'
import type { App } from '../../app.ts'
import { Problem } from '../../kernel/problem.ts'
import { errorLogDetails } from '../../kernel/log-details.ts'
import { createRunJob, type Progress } from '../../work/engine.ts'
import type { JobDefinition } from '../../work/runner.ts'
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

/**
 * Downloads files that customers sent into the media store, before the provider deletes them. Woken when messages have
 * arrived. Those in progress when the job is stopped are cut off. Files wait until there is a provider to ask.
 */
export const mediaDownloadsJob = (app: App, store: MediaStore, stallMs = STALL_TIMEOUT_MS): JobDefinition =>
  createRunJob(app, {
    kind: 'media',
    job: 'media-downloads',
    ...(isProviderConfigured(app.provider) ? { knows: [PROVIDER] } : {}),
    turns: MAX_CONCURRENT_DOWNLOADS,
    perQueue: MAX_DOWNLOADS_PER_CHANNEL,
    step: async (run, { signal }) => {
      const file = await beginDownload(app.db, run)
      const progress = file ? await downloadOne(app, store, { ...file, run }, { signal, stallMs }) : 'over'
      if (progress === 'over') await finishRun(app.db, run)
      return progress
    },
  })

type ClaimedMedia = WaitingMedia & { run: Run }

/** `signal` is aborted when the server stops, or has lost the run. */
type Limits = { signal: AbortSignal; stallMs: number }

const downloadOne = async (
  app: App,
  store: MediaStore,
  file: ClaimedMedia,
  { signal, stallMs }: Limits,
): Promise<Progress> => {
  const { workspace_id: workspaceId, message_id: messageId } = file
  const watch = watchForStall(AbortSignal.any([signal, AbortSignal.timeout(DOWNLOAD_TIMEOUT_MS)]), stallMs)
  try {
    const { content, contentType, reportedDigests } = await download(app, store, file, watch)
    const { size, sha256 } = await store.write(mediaKey(workspaceId, messageId), content, (digest) =>
      requireReportedDigests(digest, reportedDigests),
    )
    const kept = { content_type: contentType, size, sha256: sha256.toString('hex') }
    if (await markMediaKept(app.db, workspaceId, messageId, kept)) return 'over'
    // The message was deleted meanwhile.
    await markMediaErasable(app.db, workspaceId, messageId)
    app.jobs.job('file-removal').wake()
    return 'over'
  } catch (error) {
    if (signal.aborted) return { seconds: 0, tries: 0 }
    return await recordFailedDownload(app, file, error)
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

const recordFailedDownload = async (app: App, file: ClaimedMedia, error: unknown): Promise<Progress> => {
  const { workspace_id: workspaceId, message_id: messageId, run } = file
  const attempts = run.attempts + 1
  const giveUp = async (state: 'lost' | 'too_large', reason: string): Promise<Progress> => {
    await markMediaFailed(app.db, workspaceId, messageId, state, reason)
    return 'over'
  }
  if (error instanceof Problem && error.code === 'payload_too_large')
    return await giveUp('too_large', error.message)
  const isRefused = error instanceof Problem && refusalReasons.has(error.extras.reason)
  const seconds = isRefused && attempts >= MAX_REFUSALS ? undefined : RETRY_DELAYS_SECONDS[attempts - 1]
  app.log.warn(
    { message: messageId, attempts, ...errorLogDetails(error) },
    seconds === undefined
      ? 'Cannot download a file of a customer; giving up'
      : 'Cannot download a file of a customer; retrying',
  )
  if (seconds !== undefined) return { seconds, tries: 1 }
  return await giveUp(
    'lost',
    isRefused ? describeRefusal(file, error) : 'It could not be downloaded in time.',
  )
}
