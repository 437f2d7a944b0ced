import { isOutcomeUnknown } from '../../kernel/open-outcomes.ts'
import type { Problem } from '../../kernel/problem.ts'
import { providerCodeOf } from '../../provider/port.ts'

/*
 * What becomes of a recipient, and of the job, when a message was not sent.
 */

/** Problems of the number, the account or the template: the next recipient would meet them too. */
const STOPS = new Set<unknown>([
  'account_incomplete',
  'account_restricted',
  'channel_not_connected',
  'channel_not_supported',
  'contact_budget',
  'media_refused',
  'provider_access',
  'provider_not_found',
  'provider_unconfigured',
  'template_mismatch',
  'template_not_approved',
  'template_not_supported',
  'template_policy',
  'template_unavailable',
])

/** Refusals by the service itself, which are no errors of the provider. */
export const OWN_REFUSALS = [
  'consent_withdrawn',
  'contact_unreachable',
  'do_not_disturb',
  'double',
  'missing_value',
  'not_found',
  'phone_required',
  'values_changed',
  'values_do_not_fit',
] as const

const PAIR_RATE = 131056
/** More messages in a second than the number may send: over as soon as fewer are sent, whatever the provider says. */
const THROUGHPUT = 130429
const THROUGHPUT_SECONDS = 3
const UNREACHABLE_SECONDS = 5
/** A recipient, or a broadcast, waits no longer for the provider. */
export const MAX_WAIT_SECONDS = 3600

/**
 * `open`: the message may have been sent, so it never is again. `refused`: this recipient gets none. `later`: this
 * recipient is tried again after a while. `wait`: nobody is sent to for so long. `stop`: the job cannot go on.
 */
export type Outcome =
  | { kind: 'sent' }
  | { kind: 'open' }
  | { kind: 'refused'; code: string; error: string }
  | { kind: 'later'; seconds: number }
  | { kind: 'wait'; seconds: number }
  | { kind: 'stop'; problem: Problem }

const readSeconds = ({ headers }: Problem): number | undefined => {
  const seconds = Number(headers['Retry-After'])
  return Number.isFinite(seconds) && seconds > 0 ? Math.min(seconds, MAX_WAIT_SECONDS) : undefined
}

/** Faults of a value itself. Others are of a template that has changed: everybody would meet them. */
const FAULTS_OF_VALUES = new Set(['blank', 'line_break', 'not_in_url', 'too_long', 'too_many_spaces'])

const isOfValues = ({ extras }: Problem): boolean =>
  ((extras.errors ?? []) as { code: string }[]).every(({ code }) => FAULTS_OF_VALUES.has(code))

/** Whether a problem says that the provider does not take the message now, and that nothing was done. */
const isPutOff = ({ code, extras }: Problem): boolean =>
  code === 'upstream_unavailable' && (extras.reason === 'throttled' || extras.reason === 'unreachable')

/** Returns what a problem of one send means. `attempts`: how often the provider has put this recipient off before. */
export const toOutcome = (problem: Problem, attempts: number): Outcome => {
  if (problem.leavesOpen) return { kind: 'open' }
  if (isPutOff(problem)) {
    if (providerCodeOf(problem) === PAIR_RATE)
      return {
        kind: 'later',
        seconds: Math.min(Math.max(readSeconds(problem) ?? 0, 4 ** Math.min(attempts, 6)), MAX_WAIT_SECONDS),
      }
    if (providerCodeOf(problem) === THROUGHPUT) return { kind: 'wait', seconds: THROUGHPUT_SECONDS }
    return { kind: 'wait', seconds: readSeconds(problem) ?? UNREACHABLE_SECONDS }
  }
  if (isOutcomeUnknown(problem)) return { kind: 'open' }
  const { reason } = problem.extras
  if (reason === 'template_values')
    return isOfValues(problem)
      ? { kind: 'refused', code: 'values_do_not_fit', error: problem.message }
      : { kind: 'stop', problem }
  if (STOPS.has(reason) || problem.status === 401 || problem.status === 503) return { kind: 'stop', problem }
  return { kind: 'refused', code: String(reason ?? problem.code), error: problem.message }
}
