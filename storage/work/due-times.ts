import { sql } from 'kysely'
import type { Db } from '../database.ts'
import { isLostInStore } from '../messages/media.ts'
import { isUnfinished } from '../webhooks/deliveries.ts'

/**
 * What waits for a time of the database's clock: leases, retries, probes. The conditions are those of partial indexes.
 */
const waits = [
  { table: 'runs', columns: ['run_after'] },
  { table: 'provider_updates', columns: ['next_attempt_at'], where: sql.raw(`state = 'waiting'`) },
  { table: 'media', columns: ['removable_at'], where: isLostInStore },
  { table: 'short_links', columns: ['called_at'] },
  { table: 'webhook_endpoints', columns: ['next_probe_at'] },
  { table: 'webhook_deliveries', columns: ['next_attempt_at', 'lease_until'], where: isUnfinished },
  { table: 'export_parts', columns: ['lease_until'] },
  { table: 'approvals', columns: ['run_until'], where: sql.raw(`status = 'approved'`) },
  { table: 'idempotency', columns: ['lease_until'], where: sql.raw(`state = 'running'`) },
  { table: 'sandbox_updates', columns: ['due_at', 'lease_until'] },
] as const satisfies readonly { table: string; columns: readonly string[]; where?: unknown }[]

/** Longer than every lease: one that was taken after the clock was set back stays. */
const AHEAD = sql.raw(`interval '10 minutes'`)
const SETTING = 'clock_set_back_at'

/**
 * Moves what waits for longer than any lease by `ms`, after the database's clock was set back by that: it would wait
 * longer by as much. Returns false when another server has just done so.
 */
export const moveDueTimes = (db: Db, ms: number): Promise<boolean> =>
  db.transaction().execute(async (tx) => {
    const { rows } = await sql`
      insert into settings as s (key, value) values (${SETTING}, clock_timestamp()::text)
      on conflict (key) do update set value = excluded.value
      where s.value::timestamptz not between clock_timestamp() - interval '2 minutes' and clock_timestamp()
      returning 1`.execute(tx)
    if (rows.length === 0) return false
    const step = sql`${ms}::float8 * interval '1 millisecond'`
    for (const { table, columns, ...rest } of waits)
      for (const column of columns)
        await sql`
          update ${sql.table(table)}
          set ${sql.ref(column)} = greatest(clock_timestamp(), ${sql.ref(column)} - ${step})
          where ${sql.ref(column)} > clock_timestamp() + ${AHEAD}
            and ${'where' in rest ? rest.where : sql.raw('true')}`.execute(tx)
    return true
  })
