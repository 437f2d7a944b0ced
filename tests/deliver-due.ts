import { channelDeliveriesJob } from '../server/domains/channels/delivery-job.ts'
import { mediaDownloadsJob } from '../server/domains/media/downloads-job.ts'
import type { MediaStore } from '../server/media-store.ts'
import type { App } from '../server/app.ts'
import type { JobDefinition } from '../server/work/runner.ts'
import { webhookDeliveriesJob } from '../server/domains/webhooks/delivery-job.ts'

/** Runs a job until nothing is due, each time until its results are recorded. Returns the count. */
const runToEnd = async ({ run, drain }: JobDefinition): Promise<number> => {
  let total = 0
  for (let processed = 1; processed > 0; total += processed) {
    processed = (await run(new AbortController().signal)).processed ?? 0
    await drain?.()
  }
  return total
}

/** Attempts the deliveries to webhook endpoints that are due, of all workspaces. */
export const deliverDue = (app: App): Promise<number> => runToEnd(webhookDeliveriesJob(app))

/** Delivers the replies on bridged channels that are due, of all workspaces. */
export const deliverDueReplies = (app: App): Promise<number> => runToEnd(channelDeliveriesJob(app))

/** Downloads the files that are due, of all workspaces. Returns the number of attempts. */
export const downloadDueMedia = (app: App, store: MediaStore, stallMs?: number): Promise<number> =>
  runToEnd(mediaDownloadsJob(app, store, stallMs))
