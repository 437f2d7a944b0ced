import type { Reason } from '../../../catalog/reasons.ts'
import { Problem, type ProblemExtras } from '../../kernel/problem.ts'
import { removeNumbers } from '../../visibility/numbers.ts'
import { type RefusalRule, findRefusalRule } from './refusal-rules.ts'

const RETRY_HINT = 'Retry with the same Idempotency-Key; the call never runs twice.'
const MAX_RETRY_AFTER_SECONDS = 86_400

/** Nothing in a response is trusted before its type was checked. */
const toRecord = (value: unknown): Record<string, unknown> =>
  value !== null && typeof value === 'object' && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : {}
const toText = (value: unknown): string | undefined =>
  typeof value === 'string' && /[^\s.]/.test(value) ? value : undefined
const toInteger = (value: unknown): number | undefined =>
  Number.isSafeInteger(value) ? (value as number) : undefined

/**
 * Returns a text of the provider as we show it: at most 300 characters, without the token, and without runs
 * of digits that may be a phone number or the id of a person.
 */
export const sanitizeProviderText = (message: string, token: string): string => {
  const text = message
    .replaceAll(token, '…')
    .slice(0, 2000)
    .toWellFormed()
    .replace(/^\s*\(#\d+\)\s*/, '')
    .replace(/[\p{Cc}\s]+/gu, ' ')
  const shown = removeNumbers(text).trim()
  return shown.length > 300 ? `${shown.slice(0, 299).toWellFormed()}…` : shown
}

const formatProviderText = (error: Record<string, unknown>, token: string): string => {
  const userText = [toText(error.error_user_title), toText(error.error_user_msg)]
    .filter((part) => part !== undefined)
    .join(': ')
  return sanitizeProviderText(
    toText(toRecord(error.error_data).details) ?? (userText || (toText(error.message) ?? '')),
    token,
  )
}

/** Seconds until the provider accepts calls again, from either of its headers; undefined when not given. */
const retryAfterSeconds = (headers: Headers): number | undefined => {
  const waits: number[] = []
  const retryAfter = headers.get('retry-after')
  if (retryAfter !== null)
    waits.push(
      /^\d{1,9}$/.test(retryAfter) ? Number(retryAfter) : (Date.parse(retryAfter) - Date.now()) / 1000,
    )
  try {
    const usage = toRecord(JSON.parse(headers.get('x-business-use-case-usage') ?? '{}'))
    for (const row of Object.values(usage).flat()) {
      const minutes = toRecord(row).estimated_time_to_regain_access
      if (typeof minutes === 'number') waits.push(minutes * 60)
    }
  } catch {
    /* Not JSON: the header says nothing. */
  }
  const wait = Math.max(...waits.filter((seconds) => seconds > 0))
  return Number.isFinite(wait) ? Math.min(Math.ceil(wait), MAX_RETRY_AFTER_SECONDS) : undefined
}

/**
 * The rule for codes that the table lacks, and for responses that are not the provider's. Only a 4xx
 * guarantees that nothing was done.
 */
const ruleForStatus = (status: number, transient: boolean): RefusalRule => {
  const rule = (
    becomes: RefusalRule['becomes'],
    reason: Reason | undefined,
    detail: string,
  ): RefusalRule => ({
    codes: [],
    becomes,
    ...(reason ? { reason } : {}),
    detail,
  })
  if (status === 429)
    return {
      ...rule('upstream_unavailable', 'throttled', 'The provider accepts no more calls at the moment.'),
      retryAfterSeconds: 60,
    }
  if (status === 408) return rule('timeout', undefined, 'The provider timed out.')
  if (status >= 300 && status < 400)
    return rule(
      'upstream_error',
      'provider_refused',
      'The provider answered with a redirect; check WCRM_PROVIDER_URL.',
    )
  if (status === 401 || status === 403)
    return rule('upstream_error', 'provider_access', 'The provider refused access.')
  if (status >= 400 && status < 500 && !transient)
    return rule('upstream_error', 'provider_refused', `The provider refused with status ${status}.`)
  return rule('upstream_unavailable', undefined, 'The provider failed with an error of its own.')
}

/** Translates a refusal. `body`: the response as parsed JSON, undefined when it was not JSON. */
export const refusalProblem = (status: number, headers: Headers, body: unknown, token: string): Problem => {
  const error = toRecord(toRecord(body).error)
  const code = toInteger(error.code)
  const subcode = toInteger(error.error_subcode)
  const rule =
    (code === undefined ? undefined : findRefusalRule(code, subcode)) ??
    ruleForStatus(status, error.is_transient === true)
  const details = formatProviderText(error, token)
  const detail = [rule.detail, details && `The provider says: ${details}`].filter(Boolean).join(' ')
  const trace = toText(error.fbtrace_id)
  const extras: ProblemExtras = {
    ...(rule.reason ? { reason: rule.reason } : {}),
    ...(rule.becomes === 'invalid_input'
      ? {
          errors: [
            {
              ...(rule.pointer ? { pointer: rule.pointer } : {}),
              code: rule.reason!,
              detail,
              ...(rule.rule ? { rule: rule.rule } : {}),
            },
          ],
        }
      : {}),
    ...(code === undefined ? {} : { provider_code: code }),
    ...(subcode === undefined ? {} : { provider_subcode: subcode }),
    ...(trace && /^[\w-]{1,64}$/.test(trace) && !trace.includes(token) ? { provider_trace_id: trace } : {}),
  }
  const wait =
    rule.becomes === 'upstream_unavailable'
      ? (retryAfterSeconds(headers) ?? rule.retryAfterSeconds)
      : undefined
  return new Problem(
    rule.becomes,
    rule.becomes === 'timeout' ? `${detail} ${RETRY_HINT}` : detail,
    extras,
    wait === undefined ? {} : { 'Retry-After': String(wait) },
  )
}

/** A success whose body does not have the expected shape. */
export const unreadableResponse = (): Problem =>
  new Problem(
    'upstream_unavailable',
    `The messaging provider sent a response that cannot be read. ${RETRY_HINT}`,
  )

export const timeoutProblem = (): Problem =>
  new Problem('timeout', `The messaging provider did not respond in time. ${RETRY_HINT}`)

/**
 * Failures before a request is sent: a name without an address, a refused connection, a bad certificate.
 */
const NOT_SENT_CODES = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
])
const isNotSent = (code: string): boolean =>
  NOT_SENT_CODES.has(code) || /^(?:CERT_|UNABLE_TO_)\w+$/.test(code)

const errorCodes = (error: unknown): string[] => {
  const { code, errors } = toRecord(error)
  return Array.isArray(errors) && errors.length > 0 ? errors.flatMap(errorCodes) : [String(code)]
}

/** Translates a failure of the connection. `signal`: of the request; when aborted, it has timed out. */
export const transportProblem = (error: unknown, signal: AbortSignal): Problem => {
  if (error instanceof Problem) return error
  if (signal.aborted) return timeoutProblem()
  if (errorCodes(toRecord(error).cause).every(isNotSent)) {
    return new Problem('upstream_unavailable', 'The messaging provider cannot be reached.', {
      reason: 'unreachable',
    })
  }
  return new Problem(
    'timeout',
    `The connection to the messaging provider broke before it responded. ${RETRY_HINT}`,
  )
}
