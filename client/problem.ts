import type { Approval, ErrorCode, Reason } from './types.ts'

/** A field of a request that is wrong. `pointer`: a JSON Pointer into the input, such as `#/filter/name`. */
export type FieldError = {
  readonly pointer?: string
  readonly header?: string
  readonly code: string
  readonly detail: string
  readonly fix?: string
  readonly allowed?: readonly unknown[]
}

/** Codes beside those of the service: no answer came, the answer is no JSON of it, or a person decides first. */
export type ClientErrorCode = ErrorCode | 'connection_failed' | 'unexpected_answer' | 'approval_required'

type Details = {
  readonly status: number
  readonly code: ClientErrorCode
  readonly message: string
  readonly problem?: Readonly<Record<string, unknown>>
  readonly body?: string
  readonly requestId?: string | undefined
  readonly idempotencyKey?: string | undefined
  readonly retryAfterSeconds?: number | undefined
  readonly approval?: Approval
  readonly cause?: unknown
}

/**
 * What went wrong with a call. `status`: of HTTP, 0 without an answer. `code` and `reason` are stable; `problem` is the
 * whole answer (RFC 9457). `mayHaveHappened`: the change may have been made; the same call with `idempotencyKey` finds
 * out, and never makes it twice.
 */
export class WcrmError extends Error {
  readonly status: number
  readonly code: ClientErrorCode
  readonly reason: Reason | undefined
  readonly errors: readonly FieldError[]
  readonly fix: string | undefined
  readonly requestId: string | undefined
  readonly idempotencyKey: string | undefined
  readonly retryAfterSeconds: number | undefined
  readonly mayHaveHappened: boolean
  /** The request on which a person decides, where `code` is `approval_required`. */
  readonly approval: Approval | undefined
  /** Of `precondition_failed`: the version that the record has now. */
  readonly currentVersion: string | undefined
  readonly problem: Readonly<Record<string, unknown>>
  /** The body of the answer as it was received; empty without one. */
  readonly body: string

  constructor({ problem = {}, ...details }: Details) {
    super(details.message, 'cause' in details ? { cause: details.cause } : undefined)
    this.name = 'WcrmError'
    this.status = details.status
    this.code = details.code
    this.problem = problem
    this.body = details.body ?? ''
    this.reason = problem['reason'] as Reason | undefined
    this.errors = (problem['errors'] as FieldError[] | undefined) ?? []
    this.currentVersion = problem['current_version'] as string | undefined
    this.fix = problem['fix'] as string | undefined
    this.requestId = details.requestId
    this.idempotencyKey = details.idempotencyKey
    this.retryAfterSeconds = details.retryAfterSeconds
    this.approval = details.approval
    // Whatever is in between may have answered for the service after it acted.
    this.mayHaveHappened =
      details.idempotencyKey !== undefined &&
      (details.status === 0 ||
        details.code === 'unexpected_answer' ||
        (details.status >= 500 && details.code !== 'service_unconfigured') ||
        this.reason === 'still_running')
  }
}

/** Whether an error is of this service, with one of these codes if any are given. */
export const isWcrmError = (error: unknown, ...codes: readonly ClientErrorCode[]): error is WcrmError =>
  error instanceof WcrmError && (codes.length === 0 || codes.includes(error.code))
