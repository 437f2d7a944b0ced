/**
 * What the thread of the database and the main thread share, one number each:
 * - `DEADLINE`: when the running statement times out, in milliseconds of `monotonicMs`; 0 for no timeout;
 * - `READ_ONLY`: 1 while the disk is full, so that transactions may only read.
 */
export type SharedState = BigInt64Array<SharedArrayBuffer>

export const DEADLINE = 0
export const READ_ONLY = 1

export const createSharedState = (): SharedState => new BigInt64Array(new SharedArrayBuffer(16))

/** Milliseconds of a monotonic clock that all threads share. */
export const monotonicMs = (): bigint => process.hrtime.bigint() / 1_000_000n
