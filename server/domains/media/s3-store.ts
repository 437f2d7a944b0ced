import { randomUUID } from 'node:crypto'
import { type FileHandle, open, unlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import {
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  PutObjectCommand,
  S3Client,
  type S3ServiceException,
} from '@aws-sdk/client-s3'
import { describeMediaLocation, type S3Location } from './location.ts'
import { explainS3Failure } from './s3-failures.ts'
import {
  DEFAULT_MAX_BYTES,
  type FileDigest,
  type MediaStore,
  receiveFile,
  requireMediaKey,
  type StoredFile,
  storeUnavailableProblem,
} from '../../media-store.ts'

type S3StoreOptions = {
  maxBytes?: number
  /** How long a request may take until its answer begins, and how long a body may pause. */
  timeoutMs?: number
}

const CONNECTION_TIMEOUT_MS = 2_000
const TIMEOUT_MS = 8_000
/** With the download before it, less than the lease of one. */
const WRITE_TIMEOUT_FACTOR = 6
const MAX_SOCKETS = 64
const CHUNK_BYTES = 64 * 1024

/** MinIO and most others have this one unless they are told otherwise; Amazon's own clients must be given one. */
const DEFAULT_REGION = 'us-east-1'

const silent = () => {}

/** Only agents of Node's own heed the proxies of the environment where it is told to use them. */
const toAgentOptions = () => ({
  maxSockets: MAX_SOCKETS,
  ...(process.env.NODE_USE_ENV_PROXY === '1' ? { proxyEnv: process.env } : {}),
})

const createClient = ({ endpoint, region, addressing }: S3Location): S3Client => {
  const isRegionKnown = Boolean(process.env.AWS_REGION ?? process.env.AWS_DEFAULT_REGION)
  const chosen = region ?? (endpoint !== undefined && !isRegionKnown ? DEFAULT_REGION : undefined)
  return new S3Client({
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(chosen === undefined ? {} : { region: chosen }),
    forcePathStyle: addressing === 'path',
    maxAttempts: 2,
    // Other services than Amazon's do not know the newer checksums. Ours are SHA-256, signed with each request.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: {
      connectionTimeout: CONNECTION_TIMEOUT_MS,
      // A client that reads slowly is no reason to give up; `streamSteadily` sees when the store does not send.
      socketTimeout: 0,
      httpAgent: toAgentOptions(),
      httpsAgent: toAgentOptions(),
    },
    logger: { debug: silent, info: silent, warn: silent, error: silent, trace: silent },
  })
}

type WriteArguments = Parameters<MediaStore['write']> extends [string, ...infer Rest] ? Rest : never

/** Runs a request with a deadline, which does not end what the answer streams afterwards. */
const withDeadline = async <T>(ms: number, run: (abortSignal: AbortSignal) => Promise<T>): Promise<T> => {
  const controller = new AbortController()
  let timer: NodeJS.Timeout | undefined
  const expired = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      controller.abort()
      reject(Object.assign(new Error(`no answer in ${ms} ms`), { name: 'TimeoutError', code: 'ETIMEDOUT' }))
    }, ms)
  })
  const running = run(controller.signal)
  // Of an answer after the deadline nobody learns.
  running.catch(silent)
  return await Promise.race([running, expired]).finally(() => clearTimeout(timer))
}

/**
 * Streams a body as it is read; it ends with an error when nothing arrives for so long although it was asked for.
 * A body that is cancelled, even before anything was read of it, gives its connection up.
 */
const streamSteadily = (body: Readable, stallMs: number): ReadableStream<Uint8Array> => {
  const chunks = body[Symbol.asyncIterator]()
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
    const timer = setTimeout(() => body.destroy(new Error(`nothing arrived in ${stallMs} ms`)), stallMs)
    try {
      const { done, value } = await chunks.next()
      if (done) controller.close()
      else controller.enqueue(value as Uint8Array)
    } catch (error) {
      throw storeUnavailableProblem(error)
    } finally {
      clearTimeout(timer)
    }
  }
  return new ReadableStream({ pull, cancel: () => void body.destroy() }, { highWaterMark: 0 })
}

const isMissing = (error: unknown): boolean =>
  ['NoSuchKey', 'NotFound'].includes((error as S3ServiceException).name)

/** A file that is gone with the process, whatever ends that. */
const openTemporaryFile = async (): Promise<FileHandle> => {
  const path = join(tmpdir(), `wcrm-media-${randomUUID()}`)
  const file = await open(path, 'wx+', 0o600)
  await unlink(path)
  return file
}

/** Yields a file without closing it, which a stream of the file itself does when it is destroyed. */
async function* readChunks(file: FileHandle): AsyncGenerator<Uint8Array> {
  for (let position = 0; ;) {
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(CHUNK_BYTES), 0, CHUNK_BYTES, position)
    if (bytesRead === 0) return
    position += bytesRead
    yield buffer.subarray(0, bytesRead)
  }
}

/** The digest is in the signature: the store refuses other bytes. */
const putFile = async (
  client: S3Client,
  to: { Bucket: string; Key: string },
  { file, digest }: { file: FileHandle; digest: FileDigest },
  timeoutMs: number,
): Promise<void> => {
  const sha256 = digest.sha256.toString('hex')
  const body = Readable.from(readChunks(file), { objectMode: false })
  const command = new PutObjectCommand({
    ...to,
    Body: digest.size === 0 ? '' : body,
    ContentLength: digest.size,
    Metadata: { sha256 },
  })
  command.middlewareStack.add(
    (next) => (args) => {
      const { headers } = args.request as { headers: Record<string, string> }
      headers['x-amz-content-sha256'] = sha256
      return next(args)
    },
    { step: 'build' },
  )
  try {
    await withDeadline(timeoutMs, (abortSignal) => client.send(command, { abortSignal }))
  } finally {
    body.destroy()
  }
}

/**
 * Stores files as objects of S3-compatible storage. Each is received into an unnamed file in the folder for
 * temporary files first: its digest is known before anything is sent, and one request writes it.
 */
export const createS3Store = (
  location: S3Location,
  { maxBytes = DEFAULT_MAX_BYTES, timeoutMs = TIMEOUT_MS }: S3StoreOptions = {},
): MediaStore => {
  const client = createClient(location)
  const { bucket: Bucket, prefix } = location
  const toObject = (name: string) => ({ Bucket, Key: prefix === '' ? name : `${prefix}/${name}` })
  const objectOf = (key: string) => toObject(requireMediaKey(key))

  const find = async (object: ReturnType<typeof objectOf>): Promise<{ size: number } | undefined> => {
    try {
      const head = await withDeadline(timeoutMs, (abortSignal) =>
        client.send(new HeadObjectCommand(object), { abortSignal }),
      )
      return { size: head.ContentLength ?? 0 }
    } catch (error) {
      if (isMissing(error)) return undefined
      throw error
    }
  }
  const read = async (
    object: ReturnType<typeof objectOf>,
    range?: { start: number; end: number },
  ): Promise<StoredFile | undefined> => {
    const Range = range && `bytes=${range.start}-${range.end}`
    try {
      const answer = await withDeadline(timeoutMs, (abortSignal) =>
        client.send(new GetObjectCommand({ ...object, ...(Range ? { Range } : {}) }), { abortSignal }),
      )
      const body = answer.Body as Readable
      return { size: answer.ContentLength ?? 0, content: streamSteadily(body, timeoutMs) }
    } catch (error) {
      if (isMissing(error)) return undefined
      throw error
    }
  }
  const write = async (
    object: ReturnType<typeof objectOf>,
    [content, accept]: WriteArguments,
    ms = timeoutMs * WRITE_TIMEOUT_FACTOR,
  ) => {
    const file = await openTemporaryFile()
    try {
      const digest = await receiveFile(file, content, maxBytes)
      accept?.(digest)
      await putFile(client, object, { file, digest }, ms)
      return digest
    } finally {
      await file.close()
    }
  }
  const remove = async (object: ReturnType<typeof objectOf>): Promise<void> => {
    await withDeadline(timeoutMs, (abortSignal) =>
      client.send(new DeleteObjectCommand(object), { abortSignal }),
    )
  }
  return {
    name: describeMediaLocation(location),
    maxBytes,
    write: (key, ...given) => write(objectOf(key), given),
    find: (key) => find(objectOf(key)),
    read: (key, range) => read(objectOf(key), range),
    remove: (key) => remove(objectOf(key)),
    // An object is written by one request, whole or not at all.
    removeUnfinished: async () => 0,
    check: async () => {
      // Of several servers that start at once each has its own.
      const object = toObject(`wcrm-check-${randomUUID()}`)
      try {
        await write(object, [[Buffer.from('ok')]], timeoutMs)
        await (await read(object))?.content.cancel()
        await remove(object)
        return { ok: true }
      } catch (error) {
        return explainS3Failure(location, error)
      }
    },
  }
}
