import type { ByteRange } from '../../media-store.ts'

/**
 * Reads the header `Range` (RFC 9110, 14.2) for a file of `size` bytes. Undefined: the whole file is the answer,
 * as for several ranges and for what cannot be understood. `unsatisfiable`: no byte of the file is in it.
 */
export const parseRange = (header: string, size: number): ByteRange | 'unsatisfiable' | undefined => {
  const [, first, last] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header.trim()) ?? []
  if (first === undefined || last === undefined || first + last === '') return undefined
  if (first === '') {
    const length = Math.min(Number(last), size)
    return length === 0 ? 'unsatisfiable' : { start: size - length, end: size - 1 }
  }
  const start = Number(first)
  const end = last === '' ? size - 1 : Math.min(Number(last), size - 1)
  if (last !== '' && Number(last) < start) return undefined
  return start >= size ? 'unsatisfiable' : { start, end }
}
