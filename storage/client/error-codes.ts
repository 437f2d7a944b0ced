/** Codes of PostgreSQL's errors (PostgreSQL documentation, appendix A). */
export const errorCode = {
  uniqueViolation: '23505',
  /** A change on a standby, or on an embedded database whose disk is full. */
  readOnlyTransaction: '25006',
  serializationFailure: '40001',
  deadlockDetected: '40P01',
  diskFull: '53100',
  lockNotAvailable: '55P03',
  queryCanceled: '57014',
} as const

/** An error of this side, such as of a lost connection, with a code as those of the database and of sockets have. */
export const codedError = (code: string, message: string): Error =>
  Object.assign(new Error(message), { code })

const connectErrors = new WeakSet<object>()

/** Notes that this is why a connection could not be opened: of the network, of TLS, or that the server refused it. */
export const markConnectError = (error: Error): void => void connectErrors.add(error)

export const isConnectError = (error: unknown): boolean => connectErrors.has(error as object)
