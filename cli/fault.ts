/** A problem as the server sends it (RFC 9457), or as the command line makes one of its own. */
export type ProblemLike = {
  readonly type: string
  readonly title: string
  readonly status?: number
  readonly detail: string
  readonly code: string
  readonly request_id?: string
  readonly errors?: readonly FieldFault[]
  readonly [member: string]: unknown
}

export type FieldFault = {
  readonly pointer?: string
  readonly parameter?: string
  readonly header?: string
  readonly code: string
  readonly detail: string
  readonly fix?: string
}

/**
 * An error that ends a command: its exit code, and the problem that goes to stderr. `body` is the server's
 * text, byte for byte.
 */
export type Fault = Error & { readonly exit: number; readonly problem: ProblemLike; readonly body?: string }

export const fault = (exit: number, problem: ProblemLike, body?: string): Fault =>
  Object.assign(new Error(problem.detail), { exit, problem, ...(body === undefined ? {} : { body }) })

export const isFault = (error: unknown): error is Fault =>
  error instanceof Error && 'problem' in error && 'exit' in error

/** Misuse of the command line itself: exit code 2, nothing was sent. */
export const usage = (detail: string, flag?: string, fix?: string): Fault =>
  fault(2, {
    type: 'about:blank',
    title: 'Usage error',
    status: 400,
    detail,
    code: 'invalid_input',
    ...(flag ? { errors: [{ parameter: flag, code: 'usage', detail, ...(fix ? { fix } : {}) }] } : {}),
  })

/** The exit code that an HTTP status stands for (contract: exit codes 0 to 9). */
export const exitOf = (status: number): number => {
  if (status < 400) return 0
  if (status === 400 || status === 413 || status === 415) return 2
  if (status === 401 || status === 403) return 4
  if (status === 404) return 3
  if (status === 409) return 5
  if (status === 428) return 6
  if (status === 429) return 7
  return status === 502 || status === 503 || status === 504 ? 8 : 1
}
