import type { ArchiveEntry } from '../../../storage/tables/exports.ts'

/*
 * A zip archive (APPNOTE 6.3.10) that is made part by part, by whichever server has the lease: each file is a part of
 * its own, and the directory at the end is made of what is stored of them. Libraries keep that in memory.
 */

/** 1 January 1980, the first date of the format. */
const DATE = 0x21
/** Version 4.5 of the format has archives of more than 4 GiB or 65,535 files. */
const VERSION = 45
/** Unix, so that the modes of files are known. */
const MADE_BY = (3 << 8) | VERSION
/** Only the owner may read it. */
const MODE = (0o100600 << 16) >>> 0
/** Names are UTF-8. */
const UTF8 = 0x0800
const ZIP64 = 0xffffffff

const words = (...fields: readonly (readonly [bytes: 2 | 4 | 8, value: number])[]): Buffer => {
  const buffer = Buffer.alloc(fields.reduce((sum, [bytes]) => sum + bytes, 0))
  let at = 0
  for (const [bytes, value] of fields)
    at = bytes === 8 ? buffer.writeBigUInt64LE(BigInt(value), at) : buffer.writeUIntLE(value, at, bytes)
  return buffer
}

/** What an archive says of a file. */
type ZipEntry = Pick<ArchiveEntry, 'name' | 'method' | 'crc' | 'packed' | 'size'>

const sharedFields = ({ name, method, crc, packed, size }: ZipEntry, extraBytes: number): Buffer =>
  words(
    [2, VERSION],
    [2, UTF8],
    [2, method],
    [2, 0],
    [2, DATE],
    [4, crc],
    [4, packed],
    [4, size],
    [2, Buffer.byteLength(name)],
    [2, extraBytes],
  )

/** Returns what comes before a file in the archive. Files have less than 4 GiB. */
export const localHeader = (entry: ZipEntry): Buffer =>
  Buffer.concat([words([4, 0x04034b50]), sharedFields(entry, 0), Buffer.from(entry.name)])

/** A file in its place. `offset`: where its local header begins. */
export type Placed<T extends ZipEntry = ZipEntry> = T & { offset: number }

const directoryEntry = (entry: Placed): Buffer => {
  const isFar = entry.offset >= ZIP64
  const extra = isFar ? words([2, 1], [2, 8], [8, entry.offset]) : Buffer.alloc(0)
  return Buffer.concat([
    words([4, 0x02014b50], [2, MADE_BY]),
    sharedFields(entry, extra.length),
    words([2, 0], [2, 0], [2, 0], [4, MODE], [4, isFar ? ZIP64 : entry.offset]),
    Buffer.from(entry.name),
    extra,
  ])
}

/** Returns the end of an archive: the directory of all files, which begins at `offset`. */
export const directory = (entries: readonly Placed[], offset: number): Buffer => {
  const listed = Buffer.concat(entries.map(directoryEntry))
  const n = entries.length
  const end = words(
    [4, 0x06064b50],
    [8, 44],
    [2, MADE_BY],
    [2, VERSION],
    [4, 0],
    [4, 0],
    [8, n],
    [8, n],
    [8, listed.length],
    [8, offset],
  )
  const locator = words([4, 0x07064b50], [4, 0], [8, offset + listed.length], [4, 1])
  const isLarge = n > 0xfffe || offset + listed.length >= ZIP64
  const count = Math.min(n, 0xffff)
  return Buffer.concat([
    listed,
    ...(isLarge ? [end, locator] : []),
    words(
      [4, 0x06054b50],
      [2, 0],
      [2, 0],
      [2, count],
      [2, count],
      [4, Math.min(listed.length, ZIP64)],
      [4, Math.min(offset, ZIP64)],
      [2, 0],
    ),
  ])
}
