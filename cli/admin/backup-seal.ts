/*
 * A backup is a gzip file of several members. The last one is empty but for an extra field (RFC 1952, 2.3.1.1) with
 * the SHA-256 of all bytes before it. Any tool can decompress the file, and a change of any of its bytes, or a missing
 * end, is found without decompressing it.
 */

const EXTRA = 0x04
const UNKNOWN_SYSTEM = 0xff
const DIGEST_BYTES = 32
/** Subfield `WC`. */
const PREFIX = Buffer.concat([
  Buffer.from([0x1f, 0x8b, 8, EXTRA, 0, 0, 0, 0, 0, UNKNOWN_SYSTEM]),
  Buffer.from([DIGEST_BYTES + 4, 0, 0x57, 0x43, DIGEST_BYTES, 0]),
])
/** An empty block, its CRC-32 and its size. */
const SUFFIX = Buffer.from([3, 0, 0, 0, 0, 0, 0, 0, 0, 0])

export const SEAL_BYTES = PREFIX.length + DIGEST_BYTES + SUFFIX.length

/** `digest`: SHA-256 of all bytes before the seal. */
export const createSeal = (digest: Buffer): Buffer => Buffer.concat([PREFIX, digest, SUFFIX])

/** The digest in a seal. */
export const digestOf = (seal: Buffer): Buffer => seal.subarray(PREFIX.length, PREFIX.length + DIGEST_BYTES)

/** Whether these last bytes of a file are a seal, of whatever bytes. */
export const isSeal = (bytes: Buffer): boolean =>
  bytes.length === SEAL_BYTES &&
  bytes.subarray(0, PREFIX.length).equals(PREFIX) &&
  bytes.subarray(-SUFFIX.length).equals(SUFFIX)
