import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * Writes a file that only its owner can read: beside its place and renamed, so that no reader sees half of
 * it and the mode is right from the first byte.
 */
export const writePrivately = (path: string, text: string): void => {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const draft = `${path}.${process.pid}`
  writeFileSync(draft, text, { mode: 0o600 })
  renameSync(draft, path)
}
