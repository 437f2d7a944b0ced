import { Problem } from './problem.ts'

/** Returns the token of an `Authorization` header of the form `Bearer <token>` (RFC 6750, 2.1); else undefined. */
export const parseBearer = (authorization: string | null | undefined): string | undefined =>
  /^Bearer +(\S+) *$/i.exec(authorization ?? '')?.[1]

/** The 401 of a request whose token is missing or not valid. */
export const unauthenticated = (detail: string): Problem =>
  new Problem('unauthenticated', detail, {}, { 'WWW-Authenticate': 'Bearer realm="wcrm"' })
