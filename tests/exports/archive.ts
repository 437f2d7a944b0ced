import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { crc32, inflateRawSync } from 'node:zlib'

/** Reads a zip archive by its directory, as programs do, and compares every size and checksum. */
const readArchive = (archive: Buffer): Map<string, Buffer> => {
  const end = archive.lastIndexOf(Buffer.from('504b0506', 'hex'))
  assert.ok(end > 0, 'it has no end')
  let at = archive.readUInt32LE(end + 16)
  const files = new Map<string, Buffer>()
  for (let n = archive.readUInt16LE(end + 10); n > 0; n--) {
    assert.equal(archive.readUInt32LE(at), 0x02014b50)
    const [method, crc] = [archive.readUInt16LE(at + 10), archive.readUInt32LE(at + 16)]
    const [packed, size] = [archive.readUInt32LE(at + 20), archive.readUInt32LE(at + 24)]
    const [nameLength, extraLength] = [archive.readUInt16LE(at + 28), archive.readUInt16LE(at + 30)]
    const local = archive.readUInt32LE(at + 42)
    const name = archive.toString('utf8', at + 46, at + 46 + nameLength)
    at += 46 + nameLength + extraLength
    assert.equal(archive.readUInt32LE(local), 0x04034b50, name)
    const from = local + 30 + archive.readUInt16LE(local + 26) + archive.readUInt16LE(local + 28)
    assert.equal(archive.toString('utf8', local + 30, local + 30 + nameLength), name)
    const bytes = archive.subarray(from, from + packed)
    const data = method === 0 ? bytes : inflateRawSync(bytes)
    assert.deepEqual([data.length, crc32(data)], [size, crc], name)
    files.set(name, data)
  }
  return files
}

export const sha256 = (data: Uint8Array): string => createHash('sha256').update(data).digest('hex')

/** Reads the archive of a person, and compares its manifest with its files. */
export const readPersonArchive = (archive: Buffer) => {
  const files = readArchive(archive)
  const manifest = JSON.parse(files.get('manifest.json')!.toString())
  for (const { name, size, sha256: digest } of manifest.files)
    assert.deepEqual([files.get(name)?.length, sha256(files.get(name)!)], [size, digest], name)
  assert.equal(files.size, manifest.files.length + 1)
  const rowsOf = (table: string): any[] => {
    const { files: names, rows } = manifest.tables.find((one: any) => one.table === table)
    const found = names.flatMap((name: string) => JSON.parse(files.get(name)!.toString()))
    if (names.every((name: string) => name.startsWith(table))) assert.equal(found.length, rows, table)
    return found
  }
  return { files, manifest, rowsOf }
}
