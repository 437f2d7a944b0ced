import type { OutputOf } from '../core/handler.ts'
import type { Range } from './range.ts'

type Output = OutputOf<'reports_staff'>

export const limits = {
  left: 'Members with nothing to count in these days are left out.',
  capped: (most: number): string =>
    `Only the first ${most} members by id are counted; those with nothing to count are left out.`,
}

/** What a reader of the report needs to know. */
export const notesOf = (range: Range, report: Output['report'], now: string): string[] => [
  ...(report?.covers_more_than_asked
    ? [
        `The numbers are those of the stored report, ${report.from} to ${report.to}: more days than the ${range.days} that were asked for.`,
      ]
    : []),
  ...(report ? [`The numbers are as they were when the report was made, at ${report.generated_at}.`] : []),
  ...(!report && range.ended_at > now ? ['The last day is not over.'] : []),
  'Each conversation counts once for each member, however often the member answered or closed it.',
  "A conversation is assigned in these days when its present assignment was made in them; who had it before is not kept. Nobody's are also those opened in them that still wait for a first answer.",
  'Clocks of service levels count when they are stopped, for whoever stopped them.',
  "workload_now is of now, whatever the days; conversations of a team but no member are nobody's.",
]

const reasons = {
  avg_first_response_seconds: 'Null for members without a first response in these days.',
  avg_time_to_close_seconds: 'Null for members without a close in these days.',
  sla_compliance_rate: 'Null for members who stopped no clock of a service level in these days.',
  reason_coverage: 'Null for members without a close in these days.',
} as const

/** The metrics that are null in some row of the page. */
export const unavailableOf = (rows: Output['data'], stored: boolean): Output['unavailable'] =>
  (Object.keys(reasons) as (keyof typeof reasons)[])
    .filter((metric) => (stored && metric === 'reason_coverage') || rows.some((row) => row[metric] === null))
    .map((metric) => ({
      metric: `data.${metric}`,
      reason: stored && metric === 'reason_coverage' ? 'Stored reports do not hold it.' : reasons[metric],
    }))
