import { sql } from 'kysely'
import type { Db } from '../database.ts'
import { QUICK } from './driver.ts'
import { upsertSetting } from '../workspace/settings.ts'
import { waitAtMost } from './wait-at-most.ts'

/** The setting that holds the timeline of the last primary that a server saw. */
const TIMELINE = 'timeline'

/** How far the log of the primary goes, such as `0/301F828` on timeline `00000002`. */
type LogPosition = { lsn: string; timeline: string }

/**
 * Returns the position below which is every commit that was acknowledged before the question. A replica gets no more
 * than what is flushed; without `synchronous_commit` a commit is acknowledged before that.
 */
const readPosition = async (primary: Db): Promise<LogPosition> => {
  const { rows } = await sql<LogPosition & { noted: string | null }>`${sql.raw(QUICK)}
    select lsn::text as lsn, substr(pg_walfile_name(lsn), 1, 8) as timeline,
      (select value from settings where key = ${TIMELINE}) as noted
    from (select case when current_setting('synchronous_commit') = 'off'
      then pg_current_wal_insert_lsn() else pg_current_wal_flush_lsn() end as lsn) as log`.execute(primary)
  const { noted, ...position } = rows[0]!
  // Replicas that follow this primary get it; one that stayed with an earlier primary never does.
  if (noted !== position.timeline) await upsertSetting(primary, TIMELINE, position.timeline)
  return position
}

/** Whether a replica shows everything below a position. False where it is none, or of another timeline. */
const hasReplayed = async (replica: Db, { lsn, timeline }: LogPosition): Promise<boolean> => {
  const { rows } = await sql<{ replayed: boolean | null }>`${sql.raw(QUICK)}
    select pg_is_in_recovery() and pg_last_wal_replay_lsn() >= ${lsn}::text::pg_lsn
      and (select value from settings where key = ${TIMELINE}) = ${timeline} as replayed`.execute(replica)
  return rows[0]!.replayed === true
}

/**
 * Returns a function that asks a question for several callers at once. Each gets the answer to a question that
 * began after he came: one that is under way may tell of a time before.
 */
export const shareQuestion = <T>(ask: () => Promise<T>): (() => Promise<T>) => {
  let underway: Promise<unknown> | undefined
  let next: Promise<T> | undefined
  const start = (): Promise<T> => {
    next = undefined
    const answer = ask()
    const ended = answer.then(
      () => {},
      () => {},
    )
    underway = ended.then(() => {
      if (underway === current) underway = undefined
    })
    const current = underway
    return answer
  }
  return () => {
    if (!underway) return start()
    next ??= underway.then(start)
    return next
  }
}

/** How long a read waits for a replica to catch up. */
const CATCH_UP_MS = 20
const POLL_MS = 1
/** After this long without an answer, a replica counts as lost. */
const ANSWER_MS = 250
/** How long a replica that was behind, or lost, is not asked again: doubled each time up to the longer. */
const PAUSE_MS = { behind: [20, 1000], lost: [1000, 15_000] } as const

/** What became of the question whether a read may go to the replica. */
type ReplicaState = 'current' | 'behind' | 'lost' | 'paused'

/** A standby that answers reads: it shows what was acknowledged before a read began, or is not used for it. */
export type Replica = {
  db: Db
  heavy: Db
  /** Whether it shows now everything that was acknowledged before this was asked. Never rejects. */
  ask: () => Promise<ReplicaState>
  /** To be told that a read failed for the sake of the replica: it is left alone for a while. */
  noteLoss: () => void
}

export const createReplica = (primary: Db, connections: { db: Db; heavy: Db }): Replica => {
  const { db } = connections
  const askPosition = shareQuestion(() => readPosition(primary))
  let pausedUntil = 0
  let failures = 0
  const pause = (kind: keyof typeof PAUSE_MS): void => {
    const [least, most] = PAUSE_MS[kind]
    pausedUntil = performance.now() + Math.min(most, least * 2 ** Math.min(failures, 10))
    failures++
  }
  const catchUp = async (position: LogPosition): Promise<Exclude<ReplicaState, 'paused'>> => {
    const end = performance.now() + CATCH_UP_MS
    for (;;) {
      const answer = hasReplayed(db, position)
      // It may come too late to be of use.
      answer.catch(() => {})
      if (!(await waitAtMost(ANSWER_MS, answer))) return 'lost'
      if (await answer) return 'current'
      if (performance.now() > end) return 'behind'
      await new Promise((resolve) => setTimeout(resolve, POLL_MS))
    }
  }
  return {
    ...connections,
    ask: async () => {
      if (performance.now() < pausedUntil) return 'paused'
      const state = await askPosition()
        .then(catchUp)
        .catch(() => 'lost' as const)
      if (state === 'current') failures = 0
      else pause(state)
      return state
    },
    noteLoss: () => pause('lost'),
  }
}
