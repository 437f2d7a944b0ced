import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * Writes a file that only its owner can read: under a temporary name, then renamed, so that no reader sees a
 * partial file and the mode is right from the first byte.
 */
export const writePrivateFile = (path: string, text: string): void => {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const temporary = `${path}.${process.pid}`
  writeFileSync(temporary, text, { mode: 0o600 })
  renameSync(temporary, path)
}
