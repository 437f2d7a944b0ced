import type { Attempt } from './clients.ts'
import type { Course } from './faults.ts'

/** Seconds, unless their name says otherwise. */
export type Figures = {
  newLeader: number | undefined
  /** The longest time without an acknowledged change, at each server. */
  unanswered: readonly number[]
  /** The slowest answer, whatever it was. */
  slowest: number
  /** Answers other than acknowledgements, by status and reason. */
  refused: string
  /** Percentile 99 in milliseconds: before the fault, and in the seconds from when clients are to be well again. */
  p99Before: number
  p99First: number
  p99Later: number
  laterSeconds: number
  /** Refusals from the sixth second on. */
  refusedLater: number
}

const BEFORE_MS = 10_000
const FIRST_MS = 5_000

const isAcknowledged = ({ status }: Attempt): boolean => status === 200 || status === 201

const percentile99 = (attempts: readonly Attempt[]): number => {
  const times = attempts.map(({ ms }) => ms).toSorted((a, b) => a - b)
  return times[Math.ceil(times.length * 0.99) - 1] ?? NaN
}

const findLongestGap = (attempts: readonly Attempt[], from: number, to: number): number => {
  const times = attempts
    .filter(isAcknowledged)
    .map(({ at, ms }) => at + ms)
    .filter((time) => time >= from && time <= to)
    .toSorted((a, b) => a - b)
  return Math.max(...[from, ...times, to].map((time, i, all) => time - (all[i - 1] ?? from)))
}

const countBy = (names: readonly string[]): string =>
  Object.entries(Object.groupBy(names, (name) => name))
    .map(([name, all]) => `${all!.length} × ${name}`)
    .join(', ')

export const measure = (attempts: readonly Attempt[], servers: number, course: Course): Figures => {
  const { from, leaderAt, wellAt, to } = course
  const begunIn = (start: number, end: number): Attempt[] =>
    attempts.filter(({ at }) => at >= start && at < end)
  const during = begunIn(from, to)
  const later = begunIn(wellAt + FIRST_MS, to)
  const refused = (some: readonly Attempt[]): Attempt[] => some.filter((attempt) => !isAcknowledged(attempt))
  return {
    newLeader: leaderAt === undefined ? undefined : (leaderAt - from) / 1000,
    unanswered: Array.from(
      { length: servers },
      (_, i) =>
        findLongestGap(
          attempts.filter(({ server }) => server === i),
          from - 1000,
          to,
        ) / 1000,
    ),
    slowest: Math.max(...during.map(({ ms }) => ms)) / 1000,
    refused: countBy(refused(during).map(({ status, reason }) => `${status}${reason ? ` ${reason}` : ''}`)),
    p99Before: percentile99(begunIn(from - BEFORE_MS, from - 500)),
    p99First: percentile99(begunIn(wellAt, wellAt + FIRST_MS)),
    p99Later: percentile99(later),
    laterSeconds: (to - wellAt - FIRST_MS) / 1000,
    // A repeat of a send that was under way waits until its lease is over.
    refusedLater: refused(later).filter(({ reason }) => reason !== 'still_running').length,
  }
}
