import { once } from 'node:events'
import { createReadStream, createWriteStream } from 'node:fs'
import { open, rename, rm, stat } from 'node:fs/promises'
import { StringDecoder } from 'node:string_decoder'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import type { Lines } from '../../storage/backup/dump.ts'
import { usage } from '../fault.ts'

/**
 * Writes lines to a gzip file that only its owner may read. The name appears when the file is whole and on
 * the disk. Answers its size in bytes.
 */
export const writeLines = async (file: string, lines: Lines): Promise<number> => {
  const partial = `${file}.${process.pid}.partial`
  const bytes = async function* () {
    for await (const some of lines) yield Buffer.from(some.map((line) => `${line}\n`).join(''))
  }
  try {
    const out = createWriteStream(partial, { mode: 0o600, flags: 'wx' })
    await once(out, 'open').catch((error: NodeJS.ErrnoException) => {
      throw usage(`Cannot write ${file}: ${error.code ?? 'unwritable'}.`, '<file>')
    })
    await pipeline(bytes, createGzip({ level: 6 }), out)
    const written = await open(partial, 'r+')
    await written.sync()
    await written.close()
    await rename(partial, file)
    return (await stat(file)).size
  } catch (error) {
    await rm(partial, { force: true })
    throw error
  }
}

/** The lines of such a file. */
export async function* readLines(file: string): AsyncGenerator<readonly string[]> {
  const source = createReadStream(file)
  await once(source, 'open').catch((error: NodeJS.ErrnoException) => {
    throw usage(`Cannot read ${file}: ${error.code ?? 'unreadable'}.`, '<file>', 'Check the path.')
  })
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
    if (code === 'Z_BUF_ERROR') throw usage('The backup is cut short.', '<file>')
    if (code?.startsWith('Z_'))
      throw usage('The file is damaged, or no backup: it cannot be unpacked.', '<file>')
    throw error
  } finally {
    source.destroy()
    gunzip.destroy()
  }
  if (tail !== '') yield [tail]
}
