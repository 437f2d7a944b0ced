import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream, existsSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import { constants, createGunzip, createGzip, type Gzip } from 'node:zlib'
import type { BackupLines } from '../../storage/backup/dump.ts'
import { usageError } from '../error.ts'
import { nameFile, openUnnamedFile } from '../unnamed-file.ts'
import { naming } from '../write-error.ts'

type Compression = 'rows' | 'files'

/** Pictures do not get smaller, but base64 gets as small as what it stands for. */
const createCompressor = (kind: Compression): Gzip =>
  kind === 'rows' ? createGzip({ level: 6 }) : createGzip({ level: 1, strategy: constants.Z_HUFFMAN_ONLY })

const compressionOf = (lines: readonly string[]): Compression =>
  /^(?:"|\{"file":)/.test(lines[0] ?? '') ? 'files' : 'rows'

/** Compresses lines to members of a gzip file, one for all neighbours of a kind. */
async function* compress(lines: BackupLines): AsyncGenerator<Buffer> {
  const batches = lines[Symbol.asyncIterator]()
  try {
    for (let next = await batches.next(); !next.done;) {
      const kind = compressionOf(next.value)
      const sameKind = async function* () {
        for (; !next.done && compressionOf(next.value) === kind; next = await batches.next())
          yield Buffer.from(next.value.map((line) => `${line}\n`).join(''))
      }
      const source = Readable.from(sameKind(), { objectMode: false })
      const member = createCompressor(kind)
      source.on('error', (error) => member.destroy(error))
      yield* source.pipe(member)
    }
  } finally {
    await batches.return?.()
  }
}

/**
 * Writes lines to a sealed gzip file that only its owner may read. It has no name until it is complete and synced,
 * so that nothing is left behind when the command is killed. `sha256`: of the whole file.
 */
export const writeBackupFile = async (
  file: string,
  lines: BackupLines,
): Promise<{ bytes: number; sha256: string }> => {
  if (existsSync(file) && !statSync(file).isFile())
    throw usageError(`Cannot write ${file}: it is not a file.`, '<file>')
  const out = await openUnnamedFile(dirname(resolve(file))).catch((error: NodeJS.ErrnoException) => {
    throw usageError(`Cannot write ${file}: ${error.code ?? 'unwritable'}.`, '<file>')
  })
  const content = createHash('sha256')
  const whole = createHash('sha256')
  const sealed = async function* () {
    for await (const chunk of compress(lines)) {
      content.update(chunk)
      whole.update(chunk)
      yield chunk
    }
    const seal = createSeal(content.digest())
    whole.update(seal)
    yield seal
  }
  try {
    for await (const chunk of sealed()) await naming(file, out.writeFile(chunk))
    await naming(file, nameFile(out, file))
    return { bytes: (await out.stat()).size, sha256: whole.digest('hex') }
  } finally {
    await out.close()
  }
}

/** The last bytes of a file, fewer when it is shorter. */
const readEnd = async (file: string): Promise<{ size: number; end: Buffer }> => {
  const handle = await open(file, 'r').catch((error: NodeJS.ErrnoException) => {
    throw usageError(`Cannot read ${file}: ${error.code ?? 'unreadable'}.`, '<file>', 'Check the path.')
  })
  try {
    const { size } = await handle.stat()
    const length = Math.min(size, SEAL_BYTES)
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, size - length)
    return { size, end: buffer.subarray(0, bytesRead) }
  } finally {
    await handle.close()
  }
}

/** Whether the first line is that of a version that seals its files. */
const isOfSealedVersion = (line: string): boolean =>
  line.startsWith('{"format":"wcrm-backup",') && !line.startsWith('{"format":"wcrm-backup","version":1,')

const truncated = (): Error => usageError('The backup is truncated: its end is missing.', '<file>')
/** What the beginning of a file that is no backup says that it is. */
const foreignFormats: readonly (readonly [prefix: string, about: string])[] = [
  ['PGDMP', 'It is a dump of pg_dump: restore it with pg_restore.'],
  ['-- PostgreSQL', 'It is an SQL script: run it with psql.'],
  ['--\n-- PostgreSQL', 'It is an SQL script: run it with psql.'],
  ['PK', 'It is a zip file.'],
  ['SQLite', 'It is a database of SQLite.'],
  [
    '{"format":"wcrm-backup"',
    'It was decompressed: compress nothing and decompress nothing, or make it anew.',
  ],
]

const describeForeign = async (file: string): Promise<string> => {
  const stream = createReadStream(file, { end: 63 })
  const [chunk] = (await once(stream, 'data').catch(() => [''])) as [Buffer | string]
  const beginning = chunk.toString('latin1')
  const known = foreignFormats.find(([prefix]) => beginning.startsWith(prefix))
  return known ? ` ${known[1]}` : ''
}

export type BackupFileReader = {
  /** The lines; throws a usage error when the file is truncated or damaged. */
  lines: AsyncGenerator<readonly string[]>
  /** Of the file, once all lines are read. */
  digest: () => { bytes: number; sha256: string }
}

/** Reads such a file. */
export const readBackupFile = (file: string): BackupFileReader => {
  const whole = createHash('sha256')
  let bytes = 0
  const lines = async function* () {
    const { size, end } = await readEnd(file)
    const hasSeal = isSeal(end)
    const content = createHash('sha256')
    const contentBytes = size - SEAL_BYTES
    const raw = async function* () {
      for await (const chunk of createReadStream(file, { highWaterMark: 256 * 1024 })) {
        const part = chunk as Buffer
        whole.update(part)
        if (bytes < contentBytes) content.update(part.subarray(0, contentBytes - bytes))
        bytes += part.length
        yield part
      }
    }
    let isFirst = true
    for await (const batch of decompress(file, raw())) {
      if (isFirst && !hasSeal && isOfSealedVersion(batch[0]!)) throw truncated()
      isFirst = false
      yield batch
    }
    if (hasSeal && (bytes !== size || !content.digest().equals(digestOf(end))))
      throw usageError('The backup is damaged: the checksum of the whole file does not match.', '<file>')
  }
  return { lines: lines(), digest: () => ({ bytes, sha256: whole.digest('hex') }) }
}

async function* decompress(file: string, raw: AsyncGenerator<Buffer>): AsyncGenerator<readonly string[]> {
  const source = Readable.from(raw, { objectMode: false })
  const gunzip = createGunzip({ chunkSize: 256 * 1024 })
  source.on('error', (error) => gunzip.destroy(error))
  const decoder = new StringDecoder('utf8')
  let tail = ''
  try {
    for await (const chunk of source.pipe(gunzip)) {
      const lines = (tail + decoder.write(chunk as Buffer)).split('\n')
      tail = lines.pop()!
      if (lines.length > 0) yield lines
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'Z_BUF_ERROR') throw truncated()
    if (code?.startsWith('Z_'))
      throw usageError(
        `The file is damaged or not a backup: it cannot be decompressed.${await describeForeign(file)}`,
        '<file>',
      )
    throw error
  } finally {
    source.destroy()
    gunzip.destroy()
  }
  if (tail !== '') yield [tail]
}

/*
 * A backup is a gzip file of several members. The last one is empty but for an extra field (RFC 1952, 2.3.1.1) with
 * the SHA-256 of all bytes before it. Any tool can decompress the file, and a change of any of its bytes, or a missing
 * end, is found without decompressing it.
 */

const EXTRA = 0x04
const UNKNOWN_SYSTEM = 0xff
const DIGEST_BYTES = 32
/** Subfield `WC`. */
const PREFIX = Buffer.concat([
  Buffer.from([0x1f, 0x8b, 8, EXTRA, 0, 0, 0, 0, 0, UNKNOWN_SYSTEM]),
  Buffer.from([DIGEST_BYTES + 4, 0, 0x57, 0x43, DIGEST_BYTES, 0]),
])
/** An empty block, its CRC-32 and its size. */
const SUFFIX = Buffer.from([3, 0, 0, 0, 0, 0, 0, 0, 0, 0])

const SEAL_BYTES = PREFIX.length + DIGEST_BYTES + SUFFIX.length

/** `digest`: SHA-256 of all bytes before the seal. */
export const createSeal = (digest: Buffer): Buffer => Buffer.concat([PREFIX, digest, SUFFIX])

/** The digest in a seal. */
const digestOf = (seal: Buffer): Buffer => seal.subarray(PREFIX.length, PREFIX.length + DIGEST_BYTES)

/** Whether these last bytes of a file are a seal, of whatever bytes. */
const isSeal = (bytes: Buffer): boolean =>
  bytes.length === SEAL_BYTES &&
  bytes.subarray(0, PREFIX.length).equals(PREFIX) &&
  bytes.subarray(-SUFFIX.length).equals(SUFFIX)
