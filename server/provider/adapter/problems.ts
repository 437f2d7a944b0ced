import { Problem, type ProblemExtras } from '../../core/problem.ts'
import { type Rule, ruleOf } from './refusals.ts'

const RETRY = 'Retry with the same Idempotency-Key; it never runs twice.'
const LONGEST_WAIT = 86_400

/** Nothing of an answer is believed before it is looked at. */
const record = (value: unknown): Record<string, unknown> =>
  value !== null && typeof value === 'object' && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : {}
const text = (value: unknown): string | undefined =>
  typeof value === 'string' && /[^\s.]/.test(value) ? value : undefined
const int = (value: unknown): number | undefined =>
  Number.isSafeInteger(value) ? (value as number) : undefined

/**
 * A text of the provider as we show it: short, without the token, and without runs of digits that may be a
 * phone number or an id of a person.
 */
export const clean = (said: string, token: string): string => {
  const shown = said
    .replaceAll(token, '…')
    .slice(0, 2000)
    .toWellFormed()
    .replace(/^\s*\(#\d+\)\s*/, '')
    .replace(/[\p{Cc}\s]+/gu, ' ')
    .replace(/\+?\p{Nd}(?:[\s().-]{0,3}\p{Nd}){4,}/gu, '…')
    .trim()
  return shown.length > 300 ? `${shown.slice(0, 299).toWellFormed()}…` : shown
}

const said = (error: Record<string, unknown>, token: string): string => {
  const forPeople = [text(error.error_user_title), text(error.error_user_msg)]
    .filter((part) => part !== undefined)
    .join(': ')
  return clean(text(record(error.error_data).details) ?? (forPeople || (text(error.message) ?? '')), token)
}

/** Seconds until the provider takes calls again, from either of its headers. */
const waitOf = (headers: Headers): number | undefined => {
  const waits: number[] = []
  const after = headers.get('retry-after')
  if (after !== null)
    waits.push(/^\d{1,9}$/.test(after) ? Number(after) : (Date.parse(after) - Date.now()) / 1000)
  try {
    const usage = record(JSON.parse(headers.get('x-business-use-case-usage') ?? '{}'))
    for (const row of Object.values(usage).flat()) {
      const minutes = record(row).estimated_time_to_regain_access
      if (typeof minutes === 'number') waits.push(minutes * 60)
    }
  } catch {
    /* Not JSON: nothing is known. */
  }
  const wait = Math.max(...waits.filter((seconds) => seconds > 0))
  return Number.isFinite(wait) ? Math.min(Math.ceil(wait), LONGEST_WAIT) : undefined
}

/**
 * Codes beside the table, and answers that are not the provider's. Only a 4xx says for sure that nothing
 * was done.
 */
const byStatus = (status: number, transient: boolean): Rule => {
  const rule = (becomes: Rule['becomes'], reason: string | undefined, says: string): Rule => ({
    codes: [],
    becomes,
    ...(reason ? { reason } : {}),
    says,
  })
  if (status === 429)
    return {
      ...rule('upstream_unavailable', 'throttled', 'The provider takes no more calls for the moment.'),
      wait: 60,
    }
  if (status === 408) return rule('timeout', undefined, 'The provider ran out of time.')
  if (status >= 300 && status < 400)
    return rule(
      'upstream_error',
      'provider_refused',
      'The provider answered with a redirect; check WCRM_PROVIDER_URL.',
    )
  if (status === 401 || status === 403)
    return rule('upstream_error', 'provider_access', 'The provider refused access.')
  if (status >= 400 && status < 500 && !transient)
    return rule('upstream_error', 'provider_refused', `The provider refused with the status ${status}.`)
  return rule('upstream_unavailable', undefined, 'The provider has a fault of its own.')
}

/** The problem that a refusal is. `body`: the answer as JSON, undefined when it was not. */
export const refusalProblem = (status: number, headers: Headers, body: unknown, token: string): Problem => {
  const error = record(record(body).error)
  const code = int(error.code)
  const subcode = int(error.error_subcode)
  const rule =
    (code === undefined ? undefined : ruleOf(code, subcode)) ?? byStatus(status, error.is_transient === true)
  const details = said(error, token)
  const detail = [rule.says, details && `The provider says: ${details}`].filter(Boolean).join(' ')
  const trace = text(error.fbtrace_id)
  const extras: ProblemExtras = {
    ...(rule.reason ? { reason: rule.reason } : {}),
    ...(rule.becomes === 'invalid_input'
      ? { errors: [{ ...(rule.pointer ? { pointer: rule.pointer } : {}), code: rule.reason!, detail }] }
      : {}),
    ...(code === undefined ? {} : { provider_code: code }),
    ...(subcode === undefined ? {} : { provider_subcode: subcode }),
    ...(trace && /^[\w-]{1,64}$/.test(trace) && !trace.includes(token) ? { provider_trace_id: trace } : {}),
  }
  const wait = rule.becomes === 'upstream_unavailable' ? (waitOf(headers) ?? rule.wait) : undefined
  return new Problem(
    rule.becomes,
    rule.becomes === 'timeout' ? `${detail} ${RETRY}` : detail,
    extras,
    wait === undefined ? {} : { 'Retry-After': String(wait) },
  )
}

/** An answer that should say that the work was done, and does not say it in the shape known. */
export const unreadable = (): Problem =>
  new Problem('upstream_unavailable', `The messaging provider gave an answer that cannot be read. ${RETRY}`)

export const timedOut = (): Problem =>
  new Problem('timeout', `The messaging provider did not answer in time. ${RETRY}`)

/**
 * Failures before a request is on its way: a name without an address, a refused connection, a bad
 * certificate.
 */
const NOT_SENT =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|ERR_TLS_CERT_ALTNAME_INVALID|CERT_\w+|DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_\w+)$/

const codesOf = (error: unknown): string[] => {
  const { code, errors } = record(error)
  return Array.isArray(errors) && errors.length > 0 ? errors.flatMap(codesOf) : [String(code)]
}

/** The problem that a failure of the connection is. */
export const transportProblem = (error: unknown, signal: AbortSignal): Problem => {
  if (error instanceof Problem) return error
  if (signal.aborted) return timedOut()
  if (codesOf(record(error).cause).every((code) => NOT_SENT.test(code))) {
    return new Problem('upstream_unavailable', 'The messaging provider cannot be reached.', {
      reason: 'unreachable',
    })
  }
  return new Problem('timeout', `The connection to the messaging provider broke before it answered. ${RETRY}`)
}
