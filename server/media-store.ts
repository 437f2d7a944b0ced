import { createHash } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import { Problem } from './kernel/problem.ts'

/** `sha256`: 32 bytes. */
export type FileDigest = { size: number; sha256: Buffer }

/** Bytes of a file, from `start` to `end` inclusive. */
export type ByteRange = { start: number; end: number }

/** `size`: bytes of `content`, which are read from the store as they are read from the stream. */
export type StoredFile = { size: number; content: ReadableStream<Uint8Array> }

export type FileContent = Iterable<Uint8Array> | AsyncIterable<Uint8Array>

/**
 * Where received files are kept. Servers of one database share it. Calls end in bounded time; while the store
 * does not respond, they throw a problem with the reason `media_store_unavailable`.
 */
export type MediaStore = {
  /** Where it is, for people. */
  readonly name: string
  /** The largest file that is kept, of any type, in bytes. */
  readonly maxBytes: number
  /**
   * Writes a file atomically: no reader finds half of it, and an existing one is replaced. `accept` gets the
   * digest before that, and throws for a file that is not to be kept. Throws 413 for more than `maxBytes`.
   */
  write: (key: string, content: FileContent, accept?: (digest: FileDigest) => void) => Promise<FileDigest>
  /** Undefined when the file does not exist. */
  find: (key: string) => Promise<{ size: number } | undefined>
  /**
   * Undefined when the file does not exist. `range` must be within it; storage that ignores ranges returns the
   * whole file.
   */
  read: (key: string, range?: ByteRange) => Promise<StoredFile | undefined>
  /** Does nothing when the file does not exist. */
  remove: (key: string) => Promise<void>
  /** Removes what a crash left of files that were being written, untouched for `ms`. Returns the count. */
  removeUnfinished: (ms: number) => Promise<number>
  /** Finds out whether files can be written, read and removed. */
  check: () => Promise<MediaStoreCheck>
}

/** `isDefinite`: only another configuration can help; otherwise it may work a minute later. */
export type MediaStoreCheck = { ok: true } | { ok: false; isDefinite: boolean; detail: string; fix: string }

/** Of any type that the provider takes. */
export const DEFAULT_MAX_BYTES = 100 * 1024 * 1024

/** Digits and one slash, within a folder of ours: no key leads out of the folder or the prefix. */
const KEY = /^(?:exports\/)?\d+\/\d+$/

export const mediaKey = (workspaceId: string, messageId: string): string => `${workspaceId}/${messageId}`

/** Of a part of a file that is made for download. */
export const exportPartKey = (workspaceId: string, partId: string): string =>
  `exports/${workspaceId}/${partId}`

export const requireMediaKey = (key: string): string => {
  if (!KEY.test(key)) throw new Error('invalid media key')
  return key
}

const RETRY_AFTER_SECONDS = '10'

/** `cause`: for the log. */
export const storeUnavailableProblem = (cause: unknown): Problem => {
  const problem = new Problem(
    'upstream_unavailable',
    'The files of messages cannot be reached at the moment. Retry in a few seconds.',
    { reason: 'media_store_unavailable' },
    { 'Retry-After': RETRY_AFTER_SECONDS },
  )
  problem.cause = cause
  return problem
}

export const isStoreUnavailable = (error: unknown): error is Problem =>
  error instanceof Problem && error.extras.reason === 'media_store_unavailable'

export const tooLargeProblem = (maxBytes: number): Problem =>
  new Problem('payload_too_large', `The file is larger than ${maxBytes} bytes.`, { limit_bytes: maxBytes })

/** Passes content on; throws 413 as soon as there are more than `maxBytes`. */
export async function* limitBytes(content: FileContent, maxBytes: number): AsyncGenerator<Uint8Array> {
  let size = 0
  for await (const chunk of content) {
    size += chunk.byteLength
    if (size > maxBytes) throw tooLargeProblem(maxBytes)
    yield chunk
  }
}

/** Writes content to an open, empty file, and computes its digest. Throws 413 for more than `maxBytes`. */
export const receiveFile = async (
  file: FileHandle,
  content: FileContent,
  maxBytes: number,
): Promise<FileDigest> => {
  const hash = createHash('sha256')
  let size = 0
  for await (const chunk of limitBytes(content, maxBytes)) {
    hash.update(chunk)
    await writeWhole(file, chunk, size)
    size += chunk.byteLength
  }
  return { size, sha256: hash.digest() }
}

const writeWhole = async (file: FileHandle, chunk: Uint8Array, position: number): Promise<void> => {
  for (let written = 0; written < chunk.byteLength;)
    written += (await file.write(chunk, written, chunk.byteLength - written, position + written)).bytesWritten
}

/** Reads a file to its end and returns its digest. */
export const digestFile = async ({ content }: StoredFile): Promise<FileDigest> => {
  const hash = createHash('sha256')
  let size = 0
  for await (const chunk of content) {
    hash.update(chunk)
    size += chunk.byteLength
  }
  return { size, sha256: hash.digest() }
}
