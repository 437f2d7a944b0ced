import { deleteAuditBefore } from '../../storage/audit.ts'
import { deleteExpiredRecords } from '../../storage/idempotency.ts'
import { deletePastPhones } from '../../storage/phone-budgets.ts'
import { deleteProviderUpdatesBefore } from '../../storage/provider-updates.ts'
import { deleteIdleBuckets } from '../../storage/rate-limits.ts'
import type { App } from '../core/app.ts'
import { deleteOldEvents } from '../events/retention.ts'
import type { JobDefinition, JobName } from './runner.ts'

const INTERVAL_MS = 30_000
/** The provider repeats an update for seven days. */
const UPDATE_RETENTION_DAYS = 8

const daysAgo = (app: App, days: number): string =>
  new Date(Date.parse(app.now()) - days * 86_400_000).toISOString()

/** Deletes updates that the provider cannot repeat any more. Returns the count. */
export const deleteOldUpdates = (app: App): Promise<number> =>
  deleteProviderUpdatesBefore(app.db, daysAgo(app, UPDATE_RETENTION_DAYS))

const retentionJob = (name: JobName, deleteOld: () => Promise<number | void>): JobDefinition => ({
  name,
  intervalMs: INTERVAL_MS,
  run: async () => ({ processed: (await deleteOld()) ?? 0 }),
})

/** Jobs that delete what is older than the server keeps it, one for each kind. */
export const retentionJobs = (app: App): JobDefinition[] => [
  retentionJob('idempotency-retention', () => deleteExpiredRecords(app.db, app.now())),
  retentionJob('rate-bucket-retention', async () => {
    await deleteIdleBuckets(app.db)
    await deletePastPhones(app.db)
  }),
  retentionJob('provider-update-retention', () => deleteOldUpdates(app)),
  retentionJob('event-retention', () => deleteOldEvents(app)),
  retentionJob('audit-retention', () =>
    deleteAuditBefore(app.db, daysAgo(app, app.config.auditRetentionDays)),
  ),
]
