import type { OutputOf } from '../../handler.ts'
import type { ReportRange } from './range.ts'

type Output = OutputOf<'reports_staff'>

/** Returns the note on which members are counted; `maxMembers`: null when all are. */
export const formatPopulationNote = (maxMembers: number | null): string =>
  maxMembers === null
    ? 'Members with nothing to count in these days are left out.'
    : `Only the first ${maxMembers} members by id are counted; those with nothing to count are left out.`

/** Returns what a reader of the report must know to read the numbers. */
export const formatNotes = (range: ReportRange, report: Output['report'], now: string): string[] => [
  ...(report ? [`The numbers are as of ${report.generated_at}, when the report was generated.`] : []),
  ...(!report && range.ended_at > now ? ['The last day is not over.'] : []),
  'conversations, handled, replied and untouched count each conversation once for each member; ' +
    'closed and reopened count each time. Over all rows, closed, reopened, messages_sent and ' +
    'sla_breaches.total add up to closes, reopened, messages.sent and sla.breaches of the summary.',
  'A conversation counts as assigned in these days when its present assignment was made in them; ' +
    'earlier assignments are not kept. Conversations of nobody include those opened in these days ' +
    'that still wait for a first answer.',
  'sla_breaches counts clocks that ran out in these days, for the member who stopped them late, or, while ' +
    'they run, for the one to whom the conversation is assigned. sla_compliance_rate compares them with the ' +
    'clocks that the member stopped in time in these days.',
  'A reply that failed counts for nobody: the clock that it had stopped runs on.',
  'Phone app is what colleagues answered in the phone app of a number, which does not say who.',
  'workload_now is of now, whatever the days; conversations of a team but no member count for nobody.',
]

const REASONS = {
  avg_first_response_seconds: 'Null for members without a first response in these days.',
  avg_time_to_close_seconds: 'Null for members without a close in these days.',
  sla_compliance_rate: 'Null for members who met and missed no service level clock in these days.',
  reason_coverage: 'Null for members without a close in these days.',
} as const

/** Returns the metrics that are null in some row of the page, and why; `stored`: of a stored report. */
export const listUnavailable = (rows: Output['data'], stored: boolean): Output['unavailable'] => {
  const isMissing = (metric: string): boolean => stored && metric === 'reason_coverage'
  return (Object.keys(REASONS) as (keyof typeof REASONS)[])
    .filter((metric) => isMissing(metric) || rows.some((row) => row[metric] === null))
    .map((metric) => ({
      metric: `data.${metric}`,
      reason: isMissing(metric) ? 'Stored reports do not contain it.' : REASONS[metric],
    }))
}
