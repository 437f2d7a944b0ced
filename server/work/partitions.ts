import type { Db } from '../../storage/database.ts'
import {
  createPartitions,
  dropPartitionsBefore,
  type PartitionedTable,
} from '../../storage/migrations/partitions.ts'
import type { App } from '../app.ts'

export type RetentionSettings = Pick<
  App['config'],
  'auditRetentionDays' | 'webhookRetentionDays' | 'eventRetentionDays'
>

/** For how many days each partitioned table keeps its rows; null: no limit. */
const retentionDaysOf = (config: RetentionSettings): Record<PartitionedTable, number | null> => ({
  events: config.eventRetentionDays,
  audit_log: config.auditRetentionDays,
  webhook_attempts: config.webhookRetentionDays,
})

/** Returns the real time that was so many days ago, ISO 8601. */
export const daysAgo = (now: string, days: number): string =>
  new Date(Date.parse(now) - days * 86_400_000).toISOString()

/** Creates the partitions that are missing. `now`: real time. */
export const createAllPartitions = async (db: Db, config: RetentionSettings, now: string): Promise<void> => {
  for (const [table, days] of Object.entries(retentionDaysOf(config)))
    await createPartitions(db, table as PartitionedTable, now, days)
}

/** Creates the partitions of a table that are missing, and drops those whose time is over. */
export const maintainPartitions = async (
  { db, config, now }: Pick<App, 'db' | 'config' | 'now'>,
  table: PartitionedTable,
): Promise<void> => {
  const days = retentionDaysOf(config)[table]
  await createPartitions(db, table, now(), days)
  if (days !== null) await dropPartitionsBefore(db, table, daysAgo(now(), days))
}
