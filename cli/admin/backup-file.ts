import { once } from 'node:events'
import { createReadStream, createWriteStream, existsSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { StringDecoder } from 'node:string_decoder'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import type { BackupLines } from '../../storage/backup/dump.ts'
import { usageError } from '../error.ts'
import { nameFile, openUnnamedFile } from '../unnamed-file.ts'

/**
 * Writes lines to a gzip file that only its owner may read. It has no name until it is complete and synced, so
 * that nothing is left behind when the command is killed. Returns its size in bytes.
 */
export const writeBackupFile = async (file: string, lines: BackupLines): Promise<number> => {
  const bytes = async function* () {
    for await (const batch of lines) yield Buffer.from(batch.map((line) => `${line}\n`).join(''))
  }
  if (existsSync(file) && !statSync(file).isFile())
    throw usageError(`Cannot write ${file}: it is not a file.`, '<file>')
  const out = await openUnnamedFile(dirname(resolve(file))).catch((error: NodeJS.ErrnoException) => {
    throw usageError(`Cannot write ${file}: ${error.code ?? 'unwritable'}.`, '<file>')
  })
  try {
    const stream = createWriteStream('', { fd: out.fd, autoClose: false })
    await pipeline(bytes, createGzip({ level: 6 }), stream)
    await nameFile(out, file)
    return (await out.stat()).size
  } finally {
    await out.close()
  }
}

/** Yields the lines of such a file. Throws a usage error when it is truncated or damaged. */
export async function* readBackupFile(file: string): AsyncGenerator<readonly string[]> {
  const source = createReadStream(file)
  await once(source, 'open').catch((error: NodeJS.ErrnoException) => {
    throw usageError(`Cannot read ${file}: ${error.code ?? 'unreadable'}.`, '<file>', 'Check the path.')
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
    if (code === 'Z_BUF_ERROR') throw usageError('The backup is truncated.', '<file>')
    if (code?.startsWith('Z_'))
      throw usageError('The file is damaged or not a backup: it cannot be decompressed.', '<file>')
    throw error
  } finally {
    source.destroy()
    gunzip.destroy()
  }
  if (tail !== '') yield [tail]
}
