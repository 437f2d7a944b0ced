import { chmodSync, mkdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { namingSync } from './write-error.ts'

/**
 * Writes a file that only its owner can read: under a temporary name, then renamed, so that no reader sees a
 * partial file, and the mode is right from the first byte. `flush`: nor finds an empty one after a power failure; Node
 * refuses that to client commands under its permission model.
 */
export const writePrivateFile = (path: string, text: string, { flush = false } = {}): void => {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const temporary = `${path}.${process.pid}`
  try {
    namingSync(path, () => writeFileSync(temporary, text, { mode: 0o600, flush }))
    renameSync(temporary, path)
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
  }
}

const OTHERS = 0o077

/** Leaves a file or a folder to its owner alone. Returns true when others could read it until now. */
export const makePrivate = (path: string): boolean => {
  const stats = statSync(path, { throwIfNoEntry: false })
  if (!stats || (stats.mode & OTHERS) === 0) return false
  chmodSync(path, stats.isDirectory() ? 0o700 : 0o600)
  return true
}
