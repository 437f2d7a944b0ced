import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib'

/**
 * The data folder of an empty database. PGlite's own initdb takes three seconds of processor time and 700 MB of memory,
 * unpacking what it once made a tenth of a second. `npx node tools/embedded-template/run.ts` makes the file: a line of
 * JSON (`TemplateHeader`) and the contents of the files in its order, compressed.
 */
export const templateFile = new URL('./empty-database.zst', import.meta.url)

/** Entries are relative to the data folder; a folder has no size. `pglite`: the version that made them. */
type TemplateHeader = { pglite: string; entries: [path: string, size: number | null][] }

/** A file, or a folder, whose `data` is null. */
type TemplateEntry = { path: string; data: Buffer | null }

/** 16 MB: more than the files of one name in the three databases that initdb makes, which are alike. */
const WINDOW_LOG = 24

/** The version of PGlite that is installed. */
export const readPgliteVersion = (): string => {
  const entry = import.meta.resolve('@electric-sql/pglite')
  const { version } = JSON.parse(readFileSync(new URL('../package.json', entry), 'utf8')) as {
    version: string
  }
  return version
}

export const packTemplate = (pglite: string, entries: readonly TemplateEntry[]): Buffer => {
  const sortKey = ({ path, data }: TemplateEntry) => (data === null ? path : `~${basename(path)} ${path}`)
  const sorted = entries.toSorted((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1))
  const header: TemplateHeader = {
    pglite,
    entries: sorted.map(({ path, data }) => [path, data === null ? null : data.length]),
  }
  const content = Buffer.concat([
    Buffer.from(`${JSON.stringify(header)}\n`),
    ...sorted.flatMap(({ data }) => (data === null ? [] : [data])),
  ])
  return zstdCompressSync(content, {
    params: {
      [constants.ZSTD_c_compressionLevel]: 19,
      [constants.ZSTD_c_windowLog]: WINDOW_LOG,
      [constants.ZSTD_c_enableLongDistanceMatching]: 1,
    },
  })
}

const readTemplate = (): { header: TemplateHeader; content: Buffer } => {
  const content = zstdDecompressSync(readFileSync(templateFile), {
    // Large pieces go back to the system when they are collected.
    chunkSize: 4 * 1024 * 1024,
    params: { [constants.ZSTD_d_windowLogMax]: WINDOW_LOG },
  })
  const end = content.indexOf('\n')
  const header = JSON.parse(content.toString('utf8', 0, end)) as TemplateHeader
  return { header, content: content.subarray(end + 1) }
}

/** The version of PGlite that made the template. */
export const readTemplateVersion = (): string => readTemplate().header.pglite

/**
 * Makes the data folder of an empty database, whole or not at all. Does nothing when there is something in it,
 * or no template: PGlite makes one itself then. Returns whether it did.
 */
export const unpackTemplate = (dataDir: string): boolean => {
  if (!existsSync(templateFile) || (existsSync(dataDir) && readdirSync(dataDir).length > 0)) return false
  const { header, content } = readTemplate()
  const partial = `${dataDir}.partial`
  rmSync(partial, { recursive: true, force: true })
  mkdirSync(partial, { recursive: true, mode: 0o700 })
  let offset = 0
  for (const [path, size] of header.entries) {
    const target = join(partial, path)
    if (size === null) mkdirSync(target, { mode: 0o700 })
    else {
      writeFileSync(target, content.subarray(offset, offset + size), { mode: 0o600 })
      offset += size
    }
  }
  if (existsSync(dataDir)) rmdirSync(dataDir)
  renameSync(partial, dataDir)
  return true
}
