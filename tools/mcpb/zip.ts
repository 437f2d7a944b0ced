import { crc32, deflateRawSync } from 'node:zlib'
import { directory, localHeader, type Placed } from '../../server/domains/exports/zip.ts'

/** A file of an archive; `name` is its path in it, with slashes. */
export type ZipFile = { name: string; data: Buffer }

const DEFLATE = 8 as const

/** Makes a zip archive in memory; the same files make the same bytes. */
export const zip = (files: readonly ZipFile[]): Buffer => {
  const chunks: Buffer[] = []
  const entries: Placed[] = []
  let offset = 0
  for (const { name, data } of files) {
    const packed = deflateRawSync(data, { level: 9 })
    const file = { name, method: DEFLATE, crc: crc32(data), packed: packed.length, size: data.length }
    const header = localHeader(file)
    chunks.push(header, packed)
    entries.push({ ...file, offset })
    offset += header.length + packed.length
  }
  return Buffer.concat([...chunks, directory(entries, offset)])
}
