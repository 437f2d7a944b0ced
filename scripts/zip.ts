import { crc32, deflateRawSync } from 'node:zlib'

/** A file of an archive; `name` is its path in it, with slashes. */
export type ZipEntry = { name: string; data: Buffer }

/** 1 January 1980, the first date of the format: the same files make the same bytes. */
const DATE = 0x21
const DEFLATE = 8
/** Version 2.0 of the format has deflate and folders. */
const VERSION = 20
/** Names are UTF-8. */
const UTF8 = 0x0800

const words = (...fields: readonly (readonly [bytes: 2 | 4, value: number])[]): Buffer => {
  const buffer = Buffer.alloc(fields.reduce((sum, [bytes]) => sum + bytes, 0))
  let at = 0
  for (const [bytes, value] of fields) at = buffer.writeUIntLE(value, at, bytes)
  return buffer
}

/** Makes a zip archive (APPNOTE 6.3.10, no zip64): a local header before each file, and a directory at the end. */
export const zip = (entries: readonly ZipEntry[]): Buffer => {
  const files: Buffer[] = []
  const directory: Buffer[] = []
  let offset = 0
  for (const { name, data } of entries) {
    const path = Buffer.from(name)
    const packed = deflateRawSync(data, { level: 9 })
    const shared = words(
      [2, VERSION],
      [2, UTF8],
      [2, DEFLATE],
      [2, 0],
      [2, DATE],
      [4, crc32(data)],
      [4, packed.length],
      [4, data.length],
      [2, path.length],
      [2, 0],
    )
    const file = Buffer.concat([words([4, 0x04034b50]), shared, path, packed])
    directory.push(
      Buffer.concat([
        words([4, 0x02014b50], [2, VERSION]),
        shared,
        words([2, 0], [2, 0], [2, 0], [4, 0], [4, offset]),
        path,
      ]),
    )
    files.push(file)
    offset += file.length
  }
  const central = Buffer.concat(directory)
  const end = words(
    [4, 0x06054b50],
    [2, 0],
    [2, 0],
    [2, entries.length],
    [2, entries.length],
    [4, central.length],
    [4, offset],
    [2, 0],
  )
  return Buffer.concat([...files, central, end])
}
