import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { createStaticDocument, type StaticDocument } from '../static-document.ts'

const TYPES = {
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
  txt: 'text/plain; charset=utf-8',
} as const

/** The files below `/docs/assets/`. Of those that are stored compressed, the name is without `.gz`. */
const files: Readonly<Record<string, { type: string; isCompressed?: true }>> = {
  'docs.css': { type: TYPES.css },
  'docs.js': { type: TYPES.js },
  'reference.js': { type: TYPES.js },
  'icon.svg': { type: TYPES.svg },
  'scalar.js': { type: TYPES.js, isCompressed: true },
  'minisearch.js': { type: TYPES.js, isCompressed: true },
  'LICENSES.txt': { type: TYPES.txt },
}

const unzip = promisify(gunzip)

const readAsset = async (name: string): Promise<StaticDocument | undefined> => {
  if (!Object.hasOwn(files, name)) return undefined
  const { type, isCompressed } = files[name]!
  const stored = await readFile(new URL(`assets/${name}${isCompressed ? '.gz' : ''}`, import.meta.url))
  const headers = { 'Content-Type': type, 'Cache-Control': 'public, max-age=3600' }
  return isCompressed
    ? createStaticDocument(await unzip(stored), headers, stored)
    : createStaticDocument(stored, headers)
}

/** Returns what finds the files below `/docs/assets/` by their name. Each is read once, when asked for. */
export const createAssets = (): ((name: string) => Promise<StaticDocument | undefined>) => {
  const documents = new Map<string, Promise<StaticDocument | undefined>>()
  return (name) => {
    if (!Object.hasOwn(files, name)) return Promise.resolve(undefined)
    const document = documents.get(name) ?? readAsset(name)
    documents.set(name, document)
    return document
  }
}
