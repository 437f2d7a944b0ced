import { contactReadsJob } from '../guards/audit/contact-reads.ts'
import { approvalsJob } from '../guards/agents/approvals/run.ts'
import { bulkJobsJob } from '../domains/bulk-jobs/run.ts'
import { bulkSendsJob } from '../domains/bulk-messages/run.ts'
import { channelDeliveriesJob } from '../domains/channels/delivery-job.ts'
import { refreshClocks } from '../clock.ts'
import type { App } from '../app.ts'
import { erasuresJob } from '../domains/erasures/run.ts'
import { serverClockJob } from '../work/clock-guard.ts'
import { exportsJob } from '../domains/exports/run.ts'
import { messageSearchJob } from '../domains/inbox/search-index-job.ts'
import { providerUpdatesJob } from '../domains/inbound/updates-job.ts'
import { mediaDownloadsJob } from '../domains/media/downloads-job.ts'
import { fileRemovalJob } from '../domains/media/removal-job.ts'
import { templateReadsJob } from '../domains/templates/sync.ts'
import { providerHealthJob } from '../domains/health/check-job.ts'
import { filterMembershipJob } from '../domains/reports/membership-job.ts'
import { createNightlyReportJob } from '../domains/reports/generate.ts'
import { webhookDeliveriesJob, webhookDeliveryRetentionJob } from '../domains/webhooks/delivery-job.ts'
import { registerQueueGauges } from '../work/queue-metrics.ts'
import { reconciliationJob } from './reconcile.ts'
import { secretRotationJob } from './reseal.ts'
import { retentionJobs } from './retention.ts'
import type { JobDefinition } from '../work/runner.ts'

const REPORTS_INTERVAL_MS = 60_000
/** Servers tell each other when they move a clock; behind a pooler they cannot. */
const CLOCK_INTERVAL_MS = { heard: 10_000, unheard: 1000 }
const SANDBOX_NUMBERS_INTERVAL_MS = 10_000

const staffReportsJob = (app: App): JobDefinition => {
  const generate = createNightlyReportJob(app)
  return {
    name: 'staff-reports',
    intervalMs: REPORTS_INTERVAL_MS,
    run: async (signal) => {
      await generate(signal)
      return {}
    },
  }
}

/** Another server can have moved the clock of a workspace. */
const sandboxClockJob = (app: App): JobDefinition => ({
  name: 'sandbox-clock',
  intervalMs: CLOCK_INTERVAL_MS.unheard,
  everywhere: true,
  subscribe: (wake) => app.signals.on('clocks', wake),
  run: async () => {
    await refreshClocks(app)
    return { nextInMs: app.signals.areHeard() ? CLOCK_INTERVAL_MS.heard : CLOCK_INTERVAL_MS.unheard }
  },
})

const sandboxNumbersJob = (syncSandbox: () => Promise<void>): JobDefinition => ({
  name: 'sandbox-numbers',
  intervalMs: SANDBOX_NUMBERS_INTERVAL_MS,
  run: async () => {
    await syncSandbox()
    return {}
  },
})

/**
 * Declares all background jobs of a server. They run when they are woken, until `app.jobs.start()`. `syncSandbox`
 * registers changed numbers with the sandbox; undefined without one.
 */
export const declareBackgroundJobs = (app: App, syncSandbox: (() => Promise<void>) | undefined): void => {
  for (const definition of [
    providerUpdatesJob(app),
    ...(app.media ? [mediaDownloadsJob(app, app.media), fileRemovalJob(app, app.media)] : []),
    channelDeliveriesJob(app),
    webhookDeliveriesJob(app),
    webhookDeliveryRetentionJob(app),
    approvalsJob(app),
    bulkJobsJob(app),
    bulkSendsJob(app),
    erasuresJob(app),
    ...(app.media ? [exportsJob(app, app.media)] : []),
    reconciliationJob(app),
    providerHealthJob(app),
    templateReadsJob(app),
    staffReportsJob(app),
    secretRotationJob(app),
    serverClockJob(app),
    contactReadsJob(app),
    messageSearchJob(app),
    filterMembershipJob(app),
    ...(syncSandbox ? [sandboxClockJob(app), sandboxNumbersJob(syncSandbox)] : []),
    ...retentionJobs(app),
  ])
    app.jobs.add(definition)
  registerQueueGauges(app)
}
