import { createHash, type Hash } from 'node:crypto'
import {
  deletePart,
  type ExportPart,
  insertPart,
  listUselessParts,
  type PartRef,
  releasePart,
  type WrittenPart,
} from '../../../storage/work/exports.ts'
import type { App } from '../../app.ts'
import { removeFiles } from '../media/remove-files.ts'
import { type ByteRange, exportPartKey, type FileContent, type MediaStore } from '../../media-store.ts'

/*
 * The parts of files that are made for download, in the media store. A row names each before its file is written, so
 * that no file is left that nobody knows of.
 */

/** How long a part may take to be written, and until it may be taken for one that a dead server left. */
const WRITE_MS = 240_000
const PART_LEASE_SECONDS = 360

type ExportRef = { readonly workspace_id: string; readonly id: string }

/** An export that this server makes, as it was when the step began, and where its files go. */
export type ExportWork<T extends ExportRef = ExportRef> = {
  readonly app: App
  readonly store: MediaStore
  readonly running: T
  /** Is aborted when the export is not this server's any more, such as after an erasure. */
  readonly lost: AbortSignal
}

/** Passes bytes on. Throws when the export was ended meanwhile. */
export async function* untilLost({ lost }: ExportWork, content: FileContent): AsyncGenerator<Uint8Array> {
  for await (const chunk of content) {
    lost.throwIfAborted()
    yield chunk
  }
}

async function* withDeadline(content: FileContent): AsyncGenerator<Uint8Array> {
  const until = performance.now() + WRITE_MS
  for await (const chunk of content) {
    if (performance.now() > until) throw new Error('the media store takes too long')
    yield chunk
  }
}

/** Writes a part, which counts from `countParts`. */
export const writePart = async (
  work: ExportWork,
  content: FileContent,
): Promise<{ id: string; size: number }> => {
  const { app, store, running } = work
  const { workspace_id: workspaceId, id: exportId } = running
  const id = await insertPart(app.db, workspaceId, exportId, PART_LEASE_SECONDS)
  try {
    const { size } = await store.write(exportPartKey(workspaceId, id), withDeadline(untilLost(work, content)))
    return { id, size }
  } catch (error) {
    await releasePart(app.db, workspaceId, exportId, id)
    throw error
  }
}

/** Does what these written parts are for. When it fails nobody uses them any more, unless they were counted. */
export const releasingParts = async <T>(
  { app, running: { workspace_id: workspaceId, id: exportId } }: ExportWork,
  parts: readonly { id: string }[],
  use: () => Promise<T>,
): Promise<T> => {
  try {
    return await use()
  } catch (error) {
    for (const { id } of parts) await releasePart(app.db, workspaceId, exportId, id)
    throw error
  }
}

/** Removes a part that was written and does not count. */
export const removePart = async (
  { app, store, running: { workspace_id: workspaceId, id: exportId } }: Omit<ExportWork, 'lost'>,
  partId: string,
): Promise<void> => {
  await store.remove(exportPartKey(workspaceId, partId))
  await deletePart(app.db, { workspace_id: workspaceId, export_id: exportId, id: partId })
}

/** Removes the files of parts that nobody needs any more. */
export const removeUselessParts = (app: App, store: MediaStore, signal: AbortSignal): Promise<void> =>
  removeFiles<PartRef>(
    app,
    store,
    {
      list: (after, limit) => listUselessParts(app.db, after, limit),
      remove: (part) =>
        removePart({ app, store, running: { workspace_id: part.workspace_id, id: part.export_id } }, part.id),
      describe: ({ export_id }) => ({ export: export_id }),
    },
    signal,
  )

/** Yields the bytes of a file, or of a range of it, part by part as they are read. Throws when one is not as it was. */
export async function* readParts(
  store: MediaStore,
  workspaceId: string,
  parts: readonly Pick<ExportPart, 'id' | 'size'>[],
  range?: ByteRange,
): AsyncGenerator<Uint8Array> {
  let begin = 0
  for (const { id, size } of parts) {
    const from = Math.max(0, (range?.start ?? 0) - begin)
    const to = Math.min(size, range ? range.end + 1 - begin : size)
    begin += size
    if (from >= to) continue
    const isWhole = from === 0 && to === size
    const file = await store.read(
      exportPartKey(workspaceId, id),
      isWhole ? undefined : { start: from, end: to - 1 },
    )
    if (!file) throw new Error('a part of an export is not in the store')
    yield* checkSize(file.content, file.size === size ? { from, to } : { from: 0, to: to - from })
  }
}

/** Yields bytes `from` to `to` of a file: storage that ignores ranges returns it whole. */
async function* checkSize(
  content: AsyncIterable<Uint8Array>,
  { from, to }: { from: number; to: number },
): AsyncGenerator<Uint8Array> {
  let at = 0
  for await (const chunk of content) {
    const wanted = chunk.subarray(Math.max(0, from - at), Math.max(0, to - at))
    at += chunk.byteLength
    if (wanted.byteLength > 0) yield wanted
  }
  if (at < to) throw new Error('a part of an export is shorter than it was')
}

/** Reads parts for the digest of the whole, and so finds out whether they are all there. */
export const digestParts = async (
  work: ExportWork,
  parts: readonly Pick<ExportPart, 'id' | 'size'>[],
): Promise<Hash> => {
  const hash = createHash('sha256')
  const content = readParts(work.store, work.running.workspace_id, parts)
  for await (const chunk of untilLost(work, content)) hash.update(chunk)
  return hash
}

/** What a step did: parts that are written and do not count yet, and where the next one begins. */
export type StepResult = {
  parts: WrittenPart[]
  to: {
    step: number
    position: string[] | null
    counts: Record<string, number>
  }
}

/** The end of a file: its last part, where there is one, and what the whole is. */
export type FileEnd = { parts: WrittenPart[]; size: number; sha256: string }

/** Returns the SHA-256 of bytes, in hex. */
export const sha256Of = (data: Uint8Array): string => createHash('sha256').update(data).digest('hex')
