const REASONS: Readonly<Record<string, string>> = {
  ENOSPC: 'its disk is full',
  EDQUOT: 'the quota of its disk is used up',
  EFBIG: 'it would be larger than a file may be there',
  EROFS: 'its file system is read-only',
}

/** Says what could not be written: of the code alone nobody would know which of several disks is full. */
export const naming = async <T>(what: string, writing: Promise<T>): Promise<T> => {
  try {
    return await writing
  } catch (cause) {
    const { code = '' } = cause as NodeJS.ErrnoException
    if (!Object.hasOwn(REASONS, code)) throw cause
    throw new Error(`Cannot write ${what}: ${REASONS[code]} (${code}).`, { cause })
  }
}
