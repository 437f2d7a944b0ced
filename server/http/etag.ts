import { hash } from 'node:crypto'
import { takesVersion, type Operation } from '../../catalog/index.ts'
import { isObject } from '../../catalog/values.ts'
import { Problem } from '../kernel/problem.ts'
import type { CallResponse } from '../kernel/respond.ts'
import { acceptsGzip, isLongEnough } from './compress.ts'

/*
 * Conditional requests (RFC 9110, section 13). An ETag is the version of the record and a hash of what is shown: the
 * whole decides whether a client has the same answer (`If-None-Match`), its version alone whether the record was
 * changed (`If-Match`), so that a new message refuses no change of its contact.
 */

/** A version, and the hash of an ETag where there is one. */
const VERSION = /^\d{1,10}(?=(?:\.[\w-]+)?$)/
/** The version of no record. */
const NEVER = '0'
const ENTITY_TAG = /\s*(?:(W\/)?"([^"]*)"|([^",\s]+))\s*(?:,|$)/gy

const ifMatchProblem = (code: string, detail: string, fix: string): Problem =>
  new Problem('invalid_input', `If-Match ${detail}.`, { errors: [{ header: 'If-Match', code, detail, fix }] })

const FIX = 'Send the ETag that a GET of the record answered, or *.'

/** `isWeak`: with `W/`. `isBare`: without quotes, which is no entity tag. */
type EntityTag = { tag: string; isWeak: boolean; isBare: boolean }

/** Returns the members of a list of entity tags; undefined when it is none. */
const parseTags = (header: string): EntityTag[] | undefined => {
  const found = [...header.matchAll(ENTITY_TAG)]
  if (found.length === 0 || found.map(([text]) => text).join('').length < header.length) return undefined
  return found.map(([, weak, quoted, bare]) => ({
    tag: quoted ?? bare!,
    isWeak: weak !== undefined,
    isBare: bare !== undefined,
  }))
}

/**
 * Returns the header `If-Match` as `if_version` has it. A weak tag, and one of another kind, matches no version. Throws
 * 400 where it is malformed, or where the operation would ignore it. Of tags without quotes it takes versions alone.
 */
export const readIfMatch = (op: Operation, header: string | undefined): string | undefined => {
  if (header === undefined || !op.dryRun) return undefined
  if (!takesVersion(op))
    throw ifMatchProblem(
      'not_supported',
      `is not a condition of ${op.name}, which changes no single record with a version`,
      'Leave it out.',
    )
  if (header.trim() === '*') return '*'
  const tags = parseTags(header)
  if (!tags || tags.length > 10 || tags.some(({ tag, isBare }) => isBare && !VERSION.test(tag)))
    throw ifMatchProblem(
      'invalid_value',
      'must be entity tags in quotes, at most 10, with commas between them, or * alone',
      FIX,
    )
  const versions = tags.filter(({ isWeak }) => !isWeak).flatMap(({ tag }) => VERSION.exec(tag) ?? [])
  return versions.join(', ') || NEVER
}

/** Throws 400 for `If-None-Match` of a change, which would be made whatever it says. */
export const refuseIfNoneMatch = (op: Operation, header: string | undefined): void => {
  if (header === undefined || !op.dryRun) return
  const at = { header: 'If-None-Match', code: 'not_supported', detail: 'is a condition of reads alone' }
  throw new Problem('invalid_input', `${at.header} ${at.detail}.`, {
    errors: [{ ...at, fix: takesVersion(op) ? 'Send If-Match, or neither.' : 'Leave it out.' }],
  })
}

/** A strong tag is of one content coding. */
const toEtag = (version: string, shown: string, encoding: string): string =>
  `"${version}.${hash('sha256', encoding + shown, 'base64url').slice(0, 16)}"`

/** Returns the ETag of the record in an answer; undefined where it has none, such as that of a deletion. */
const createEtag = (op: Operation, { body, version }: CallResponse, encoding: string): string | undefined => {
  if (!op.versioned?.by) return undefined
  if (version !== undefined) return toEtag(version, body, encoding)
  const answer = JSON.parse(body) as Record<string, unknown>
  const record = op.versioned.at === undefined ? answer : answer[op.versioned.at]
  return isObject(record) && typeof record['version'] === 'string'
    ? toEtag(record['version'], JSON.stringify(record), encoding)
    : undefined
}

/** Whether `If-None-Match` says that the client has the answer with this strong tag. */
export const isNoneMatch = (header: string | null, etag: string): boolean =>
  header !== null &&
  (header.trim() === '*' || (parseTags(header)?.some(({ tag }) => `"${tag}"` === etag) ?? false))

/** Adds the ETag to the answer to a request. A read whose answer the client has is 304. */
export const withEtag = (op: Operation, request: Request, response: CallResponse): CallResponse => {
  if (response.status >= 300) return response
  const encoding = acceptsGzip(request.headers.get('accept-encoding') ?? undefined) ? 'gzip' : ''
  const etag = createEtag(op, response, encoding)
  if (etag === undefined) return response
  const headers: Record<string, string> = { ...response.headers, ETag: etag }
  if (op.dryRun || !isNoneMatch(request.headers.get('if-none-match'), etag)) return { ...response, headers }
  const { 'Content-Type': _, ...others } = headers
  // As the answer with the body has it (node.ts).
  const varied = isLongEnough(response.body) ? { ...others, Vary: 'Accept-Encoding' } : others
  return { status: 304, headers: varied, body: '' }
}
