import { type ErrorCode, errors } from '../../catalog/errors.ts'
import type { Reason } from '../../catalog/reasons.ts'
import { redactApiKeys } from '../../catalog/redact.ts'
import { escapePointer } from '../../catalog/values.ts'

/** One error of the input: where it is, what is wrong and how to fix it (docs/errors.md). */
export type FieldError = {
  pointer?: string
  parameter?: string
  header?: string
  code: string
  detail: string
  rule?: string
  fix?: string
  allowed?: readonly unknown[]
}

/** Members beyond those of RFC 9457: `reason`, `errors`, and those that a code adds. */
export type ProblemExtras = { reason?: Reason; errors?: FieldError[]; [member: string]: unknown }

/**
 * The error that handlers and steps throw; it becomes `application/problem+json` (RFC 9457). API keys in its
 * texts are redacted here, before it is sent, stored or logged.
 */
export class Problem extends Error {
  readonly code: ErrorCode
  readonly extras: ProblemExtras
  readonly headers: Record<string, string>
  /** Its audit row is written elsewhere; see `markAudited`. */
  isAudited = false
  /** The change may have been made, or may still be: its answer names the key that tells. */
  leavesOpen = false

  constructor(
    code: ErrorCode,
    detail: string,
    extras: ProblemExtras = {},
    headers: Record<string, string> = {},
  ) {
    super(redactApiKeys(detail))
    this.code = code
    this.extras = redactExtras(extras)
    this.headers = headers
  }

  get status(): number {
    return errors[this.code].status
  }
}

const redactExtras = (extras: ProblemExtras): ProblemExtras => {
  const json = JSON.stringify(extras)
  const redacted = redactApiKeys(json)
  return redacted === json ? extras : (JSON.parse(redacted) as ProblemExtras)
}

/** The document that a client reads. */
export type ProblemDocument = {
  type: string
  title: string
  status: number
  detail: string
  code: ErrorCode
  request_id: string
  reason?: string
  errors?: FieldError[]
  [member: string]: unknown
}

/** Returns the document of a problem. Its extras never replace the standard members. */
export const toProblemDocument = (
  problem: Problem,
  publicUrl: string,
  requestId: string,
): ProblemDocument => {
  const standard = {
    type: `${publicUrl}/errors/${problem.code}`,
    title: errors[problem.code].title,
    status: problem.status,
    detail: problem.message,
    code: problem.code,
    request_id: requestId,
  }
  return { ...standard, ...problem.extras, ...standard }
}

export const notFound = (what: string, id: string): Problem =>
  new Problem('not_found', `No ${what} with the id ${id}.`)

/**
 * Returns an error of one field that only a handler can find, such as an unknown group id. `field` is a
 * top-level input field.
 */
export const invalidField = (
  field: string,
  code: string,
  detail: string,
  more: Partial<FieldError> & { reason?: Reason; path?: readonly (string | number)[] } = {},
): Problem => {
  const { reason, path = [], ...rest } = more
  return new Problem('invalid_input', `${field} ${detail}.`, {
    ...(reason ? { reason } : {}),
    errors: [{ pointer: toPointer([field, ...path]), code, detail, ...rest }],
  })
}

/** Returns a JSON Pointer as a URI fragment (RFC 6901, section 6), without percent-encoding. */
export const toPointer = (path: readonly PropertyKey[]): string =>
  path.length === 0 ? '#' : `#/${path.map((p) => escapePointer(String(p))).join('/')}`
