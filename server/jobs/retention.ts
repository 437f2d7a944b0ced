import { deleteAuditBefore } from '../../storage/access/audit.ts'
import { deletePastContactViews } from '../../storage/contacts/budgets.ts'
import { deleteExpiredRecords } from '../../storage/access/idempotency.ts'
import { deleteExpiredOauth, revokeUnusableGrants } from '../../storage/access/oauth.ts'
import { deletePastPhones } from '../../storage/contacts/phone-budgets.ts'
import { deleteProviderUpdatesBefore } from '../../storage/channels/provider-updates.ts'
import { deleteIdleBuckets } from '../../storage/access/rate-limits.ts'
import { deleteOldApprovals } from '../guards/agents/approvals/run.ts'
import { deleteFormerPhones } from '../domains/contacts/change-phone.ts'
import { deleteOldJobs } from '../domains/bulk-jobs/run.ts'
import { expireMerges } from '../domains/contacts/merge-operations.ts'
import type { App } from '../app.ts'
import { deleteOldEvents } from '../domains/events/retention.ts'
import { deleteOldExports } from '../domains/exports/run.ts'
import { changeInBatches } from '../work/change-in-batches.ts'
import { daysAgo, maintainPartitions } from '../work/partitions.ts'
import { FIXED_HOURS, hoursAgo } from '../work/retention-periods.ts'
import { createRetentionJob, type DeleteOld } from '../work/retention-job.ts'
import type { JobDefinition, JobName } from '../work/runner.ts'

/** Deletes updates that the provider cannot repeat any more. Returns the count. */
export const deleteOldUpdates = (app: App, signal?: AbortSignal): Promise<number> => {
  const before = hoursAgo(app.now(), FIXED_HOURS.provider_updates)
  return changeInBatches((limit) => deleteProviderUpdatesBefore(app.db, before, limit), signal)
}

/** Drops partitions of the audit trail, then deletes what is too old in the others. Returns their count. */
const deleteOldAudit = async (app: App, signal: AbortSignal): Promise<number> => {
  await maintainPartitions(app, 'audit_log')
  const before = daysAgo(app.now(), app.config.auditRetentionDays)
  return await changeInBatches((limit) => deleteAuditBefore(app.db, before, limit), signal)
}

/** How long after a consent its code can still be used. */
const UNUSED_GRANT_MS = 15 * 60_000

/** Deletes codes, tokens and clients that expired, and ends the grants that have none left. Returns the count. */
export const deleteOldOauth = async (app: App, signal?: AbortSignal): Promise<number> => {
  const now = app.now()
  const deleted = await changeInBatches((limit) => deleteExpiredOauth(app.db, now, limit), signal)
  const before = new Date(Date.parse(now) - UNUSED_GRANT_MS).toISOString()
  return deleted + (await revokeUnusableGrants(app.db, before, now))
}

/** Jobs that delete what is older than the server keeps it, one for each kind. */
export const retentionJobs = (app: App): JobDefinition[] => {
  const retentionJob = (name: JobName, deleteOld: DeleteOld): JobDefinition =>
    createRetentionJob(app, name, deleteOld)
  return [
    retentionJob('idempotency-retention', (signal) =>
      changeInBatches((limit) => deleteExpiredRecords(app.db, app.now(), limit), signal),
    ),
    retentionJob('rate-bucket-retention', async () => {
      await deleteIdleBuckets(app.db)
      await deletePastPhones(app.db, FIXED_HOURS.phone_budgets)
      await deletePastContactViews(app.db, FIXED_HOURS.contact_views, FIXED_HOURS.contact_reads)
    }),
    retentionJob('provider-update-retention', (signal) => deleteOldUpdates(app, signal)),
    retentionJob('event-retention', (signal) => deleteOldEvents(app, signal)),
    retentionJob('audit-retention', (signal) => deleteOldAudit(app, signal)),
    ...(app.config.oauth ? [retentionJob('oauth-retention', (signal) => deleteOldOauth(app, signal))] : []),
    retentionJob('approval-retention', (signal) => deleteOldApprovals(app, signal)),
    retentionJob('bulk-job-retention', (signal) => deleteOldJobs(app, signal)),
    retentionJob('export-retention', (signal) => deleteOldExports(app, signal)),
    retentionJob('merge-retention', (signal) => expireMerges(app, signal)),
    retentionJob('former-phone-retention', (signal) => deleteFormerPhones(app, signal)),
  ]
}
