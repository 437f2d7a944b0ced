/** A problem (RFC 9457) as the server sends it, or one that the command line creates itself. */
export type CliProblem = {
  readonly type: string
  readonly title: string
  readonly status?: number
  readonly detail: string
  readonly code: string
  readonly request_id?: string
  readonly errors?: readonly CliFieldError[]
  readonly [member: string]: unknown
}

export type CliFieldError = {
  readonly pointer?: string
  readonly parameter?: string
  readonly header?: string
  readonly code: string
  readonly detail: string
  readonly fix?: string
}

/**
 * An error that ends a command, with its exit code and the problem to print on stderr. `body` is the response
 * body as the server sent it, byte for byte.
 */
export type CliError = Error & {
  readonly exitCode: number
  readonly problem: CliProblem
  readonly body?: string
}

/**
 * What the words of a command mean now, where they may mean something else later: values of flags that are
 * replaced, and words that are added.
 */
export type CommandMeaning = {
  readonly replaced: readonly (readonly [flag: string, text: string, value: string])[]
  readonly added: readonly string[]
}

export const cliError = (exitCode: number, problem: CliProblem, body?: string): CliError =>
  Object.assign(new Error(problem.detail), { exitCode, problem, ...(body === undefined ? {} : { body }) })

export const isCliError = (error: unknown): error is CliError =>
  error instanceof Error && 'problem' in error && 'exitCode' in error

/** Returns the error for Ctrl-C at a prompt; the exit code is what shells use for the signal. */
export const interruptedError = (): CliError =>
  cliError(130, {
    type: 'about:blank',
    title: 'Interrupted',
    code: 'interrupted',
    detail: 'Nothing was changed.',
  })

/** Returns an error for wrong usage of the command line: exit code 2, nothing was sent. */
export const usageError = (detail: string, flag?: string, fix?: string): CliError =>
  cliError(2, {
    type: 'about:blank',
    title: 'Usage error',
    status: 400,
    detail,
    code: 'invalid_input',
    ...(flag ? { errors: [{ parameter: flag, code: 'usage', detail, ...(fix ? { fix } : {}) }] } : {}),
  })

/** The exit code of a call that a person has to approve. */
export const APPROVAL_EXIT_CODE = 10

/** The exit code of a process that does not fit the schema of its database: a conflict. */
export const SCHEMA_EXIT_CODE = 5

/** Whether the schema of the database is of another version (`SchemaError` in storage/migrations/migrate.ts). */
export const isSchemaError = (error: unknown): error is Error =>
  error instanceof Error && 'code' in error && String(error.code).startsWith('SCHEMA_')

/** Returns the exit code for an HTTP status (see `exitCodes` in groups.ts). */
export const exitCodeForStatus = (status: number): number => {
  if (status < 400) return 0
  if (status === 400 || status === 413 || status === 415) return 2
  if (status === 401 || status === 403) return 4
  if (status === 404) return 3
  if (status === 409 || status === 412) return 5
  if (status === 428) return 6
  if (status === 429) return 7
  return status === 502 || status === 503 || status === 504 ? 8 : 1
}
