import { isCliError } from '../error.ts'
import { type ApiResponse, type CallHeaders, callOperation, type ServerConnection } from '../remote.ts'
import { type Send, sendRequest } from '../transport.ts'

/** Calls operations for the inbox. */
export type Api = (operation: string, input: object, headers?: CallHeaders) => Promise<ApiResponse>

/** `signal` ends reads; a change is always waited for. */
export const createApi =
  (to: ServerConnection, signal?: AbortSignal): Api =>
  (operation, input, headers) => {
    if (!signal || headers?.idempotencyKey !== undefined) return callOperation(to, operation, input, headers)
    const { stdin, stdout, stderr, env } = to.io
    const read: Send = (url, init) =>
      sendRequest(to.io, url, { ...init, signal: AbortSignal.any([init.signal!, signal]) })
    return callOperation(
      { ...to, io: { stdin, stdout, stderr, env, fetch: read } },
      operation,
      input,
      headers,
    )
  }

/** A failure in one line. */
export const describeFailure = (error: unknown): string => {
  if (!isCliError(error)) return error instanceof Error ? error.message : String(error)
  const { title, detail, errors } = error.problem
  const fix = errors?.[0]?.fix
  const seconds = error.problem['retry_after']
  return `${title}: ${detail}${fix ? ` ${fix}` : ''}${typeof seconds === 'number' ? ` Try again in ${seconds} s.` : ''}`
}

/** Whether a change may have been made although its call failed. */
export const mayHaveHappened = (error: unknown): boolean =>
  !isCliError(error) || error.problem['idempotency_key'] !== undefined

/** Whether no later call with this key can succeed. */
export const isFatal = (error: unknown): boolean => isCliError(error) && error.problem.status === 401
