import { tmpdir } from 'node:os'

const REASONS: Readonly<Record<string, string>> = {
  ENOSPC: 'its disk is full',
  EDQUOT: 'the quota of its disk is used up',
  EFBIG: 'it would be larger than a file may be there',
  EROFS: 'its file system is read-only',
}

/** Names a file that has no name, or none yet, in errors: by what it becomes, or else by its folder. */
export const describeSpool = (output: string | undefined): string =>
  output ?? `a temporary file in ${tmpdir()} (TMPDIR)`

const nameError = (what: string, cause: unknown): unknown => {
  const { code = '' } = cause as NodeJS.ErrnoException
  return Object.hasOwn(REASONS, code)
    ? new Error(`Cannot write ${what}: ${REASONS[code]} (${code}).`, { cause })
    : cause
}

/** Names what could not be written: the error code alone does not say which of several disks is full. */
export const naming = async <T>(what: string, writing: Promise<T>): Promise<T> => {
  try {
    return await writing
  } catch (cause) {
    throw nameError(what, cause)
  }
}

/** Says it of what is written at once. */
export const namingSync = <T>(what: string, write: () => T): T => {
  try {
    return write()
  } catch (cause) {
    throw nameError(what, cause)
  }
}
