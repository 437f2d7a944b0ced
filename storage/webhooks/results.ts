import { type RawBuilder, sql } from 'kysely'
import type { Db } from '../database.ts'
import { INDEXED_PLAN } from '../client/driver.ts'
import { toStorableTime } from '../values/times.ts'
import { isUnfinished } from './deliveries.ts'

/** The result of an attempt. `lease`: as it was claimed; `retry_in`: seconds until the next attempt. */
export type DeliveryResult = {
  workspace_id: string
  id: string
  endpoint_id: string
  lease: string
  status: 'delivered' | 'failed' | 'dead'
  failures: number
  retry_in: number | null
  started_at: string
  duration_ms: number
  response_status: number | null
  response_excerpt: string | null
  error: string | null
}

/**
 * The attempts of a batch to one endpoint. `failures`: since its last success in the batch, if any. `ours`: when all
 * failed through a fault of ours, the seconds for which the endpoint, if it is paused, was not tried because of it.
 */
export type EndpointResult = {
  workspace_id: string
  id: string
  succeeded: boolean
  failures: number
  gone: boolean
  ours: number | null
}

/**
 * An endpoint that a batch changed, after the change. `was`: its status before. `percent`: when a warning is
 * due, the share of the time until it is disabled.
 */
export type ChangedEndpoint = {
  workspace_id: string
  id: string
  url: string
  consecutive_failures: number
  status: 'active' | 'paused' | 'disabled'
  was: 'active' | 'paused' | 'disabled'
  disabled_reason: string | null
  percent: number | null
  disabled_after: string
}

/** The thresholds of the circuit breaker. */
export type BreakerRules = {
  pauseAfterFailures: number
  /** Duration of an outage after which a paused endpoint is disabled. */
  disableAfterSeconds: number
  /** Percent of `disableAfterSeconds` at which a warning is sent. */
  warnAtPercent: readonly number[]
  /** A paused endpoint is probed after a fraction of its outage, within limits, plus or minus the jitter. */
  probe: {
    outageFraction: number
    minSeconds: number
    maxSeconds: number
    jitter: number
  }
}

/** Whether an attempt decides on its delivery. One that failed does not where somebody asked for a replay meanwhile. */
const decides = sql`(r.status = 'delivered' or d.failures = r.failures - 1)`

/** Common table expressions: the results `r`, and the deliveries that they are of, `done` now. */
const recordAttempts = (results: readonly DeliveryResult[], at: RawBuilder<unknown>) => sql`
    r as (
      select * from jsonb_to_recordset(${JSON.stringify(results)}::jsonb) as r (
        workspace_id bigint, id text, endpoint_id text, lease timestamptz, status text, failures smallint,
        retry_in float8, started_at timestamptz, duration_ms integer, response_status smallint, response_excerpt text,
        error text)
    ), done as (
      update webhook_deliveries d set status = case when ${decides} then r.status else d.status end,
        attempts = d.attempts + 1, failures = case when ${decides} then r.failures else d.failures end,
        lease_until = null, last_response_status = r.response_status,
        next_attempt_at = case when not ${decides} then d.next_attempt_at
          when r.status = 'failed' then clock_timestamp() + r.retry_in * interval '1 second' end,
        delivered_at = case when r.status = 'delivered' then ${at} end
      from r where d.workspace_id = r.workspace_id and d.id = r.id and d.${isUnfinished}
        and (d.lease_until = r.lease or r.status = 'delivered')
      returning d.workspace_id, d.id, d.attempts, d.trigger, d.endpoint_id
    ), logged as (
      insert into webhook_attempts (workspace_id, delivery_id, number, started_at, duration_ms,
        response_status, response_excerpt, error, trigger)
      select r.workspace_id, r.id, done.attempts, r.started_at, r.duration_ms, r.response_status,
        r.response_excerpt, r.error, done.trigger
      from done join r on r.workspace_id = done.workspace_id and r.id = done.id
    )`

/**
 * Records the results of attempts in one statement: the deliveries, the attempts, and the endpoints that
 * failed or recovered (`decideBreaker` in tests/webhooks/breaker-model.ts states the rule in plain words). A
 * result whose lease was lost counts only if it is a success: then the event did arrive. Results that were recorded
 * before, and whose answer was lost, count for nothing. `now`: business time.
 */
export const recordDeliveryResults = async (
  tx: Db,
  results: readonly DeliveryResult[],
  endpoints: readonly EndpointResult[],
  { pauseAfterFailures, disableAfterSeconds, warnAtPercent, probe }: BreakerRules,
  now: string,
): Promise<ChangedEndpoint[]> => {
  const disableAfter = sql`${disableAfterSeconds}::float8`
  const at = sql`${toStorableTime(now)}::timestamptz`
  const waitForProbe = (outage: RawBuilder<unknown>) =>
    sql`least(${probe.maxSeconds}::float8,
            greatest(${probe.minSeconds}::float8, ${outage} * ${probe.outageFraction}::float8))`
  const failingFor = sql`extract(epoch from now() - e.failing_since)`
  const excused = sql`(o.ours + ${waitForProbe(failingFor)}) * interval '1 second'`
  const { rows } = await sql<ChangedEndpoint>`${sql.raw(INDEXED_PLAN)}
    with ${recordAttempts(results, at)}, o as (
      select o.* from jsonb_to_recordset(${JSON.stringify(endpoints)}::jsonb)
        as o (workspace_id bigint, id text, succeeded boolean, failures integer, gone boolean, ours float8)
      where not exists (select from r where r.workspace_id = o.workspace_id and r.endpoint_id = o.id)
        or exists (select from done where done.workspace_id = o.workspace_id and done.endpoint_id = o.id)
    ), before as (
      select e.*, o.succeeded, o.gone, o.ours,
        case when o.succeeded then o.failures else e.consecutive_failures + o.failures end as failed,
        case when o.ours is not null then case when e.failing_since is null then null
            when e.status = 'active' then now() else least(now(), e.failing_since + ${excused}) end
          when o.failures = 0 then null when o.succeeded then now()
          else coalesce(e.failing_since, now()) end as since
      from o join webhook_endpoints e on e.workspace_id = o.workspace_id and e.id = o.id
      where o.gone or o.failures > 0 or e.consecutive_failures > 0 or e.status = 'paused'
      order by e.workspace_id, e.id for update of e
    ), timed as (
      select b.*, extract(epoch from now() - b.since) as outage from before b
    ), decided as (
      select t.*, t.outage / ${disableAfter} as share,
        case when t.status = 'disabled' or t.gone then 'disabled'
          when t.status = 'paused' and not t.succeeded and t.ours is null and t.outage >= ${disableAfter}
            then 'disabled'
          when t.failed >= ${pauseAfterFailures} or (t.status = 'paused' and not t.succeeded) then 'paused'
          else 'active' end as becomes
      from timed t
    ), warned as (
      select d.*, coalesce((
        select max(p) from unnest(${[...warnAtPercent]}::int[]) as p
        where d.becomes = 'paused' and d.ours is null and d.share * 100 >= p), 0) as level
      from decided d
    ), changed as (
      update webhook_endpoints e set consecutive_failures = w.failed, failing_since = w.since,
        status = w.becomes,
        warned = case when w.since is null or w.succeeded then 0 else greatest(w.warned, w.level) end,
        next_probe_at = case when w.becomes = 'paused' then now() + interval '1 second'
          * ${waitForProbe(sql`w.outage`)}
          * (1 - ${probe.jitter}::float8 + random() * 2 * ${probe.jitter}::float8) end,
        disabled_at = case when w.becomes <> 'disabled' then null
          when w.status = 'disabled' then w.disabled_at else ${at} end,
        disabled_reason = case when w.becomes <> 'disabled' then null
          when w.status = 'disabled' then w.disabled_reason
          when w.gone then 'gone' else 'failing' end
      from warned w where e.workspace_id = w.workspace_id and e.id = w.id
      returning e.workspace_id, e.id, e.url, e.consecutive_failures, e.status, w.status as was,
        e.disabled_reason, case when w.level > w.warned then w.level end as percent,
        coalesce(w.since, now()) + ${disableAfter} * interval '1 second' as disabled_after
    )
    select * from changed`.execute(tx)
  return rows
}
