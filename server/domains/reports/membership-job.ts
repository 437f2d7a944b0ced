import { listMatchBatches } from '../../../storage/contacts/matches.ts'
import {
  deleteMemberships,
  insertMembership,
  listTrackingWorkspaces,
  listUnrecorded,
} from '../../../storage/filters/memberships.ts'
import { businessTime } from '../../clock.ts'
import type { App } from '../../app.ts'
import { parseSavedFilter } from '../filters/parse-filter.ts'
import { FIXED_HOURS, hoursAgo } from '../../work/retention-periods.ts'
import type { JobDefinition } from '../../work/runner.ts'
import { createUnlimitedActor, digestFilter } from './filter-membership.ts'
import { startOfToday } from './range.ts'

const INTERVAL_MS = 60_000
/** A filter that cannot be read, such as one whose field was deleted, is tried again after this time. */
const RETRY_MS = 3_600_000
const BATCH_IDS = 5000

type Workspace = Awaited<ReturnType<typeof listTrackingWorkspaces>>[number]

/** Records who matches a filter, unless another server has. */
const recordMembers = async (app: App, workspace: Workspace, filterId: string): Promise<void> => {
  const now = businessTime(app, workspace.id)
  const actor = createUnlimitedActor({ ...workspace, contactLimit: null, templateLimit: null })
  const { db, heavy } = app
  const { filters } = app.config
  const filter = await parseSavedFilter({ tx: db, heavy, actor, now, services: app }, filterId)
  const batches = await listMatchBatches(heavy, workspace.id, [filter], {
    size: BATCH_IDS,
    stepMs: filters.stepMs,
  })
  await db.transaction().execute(async (tx) => {
    const [due] = await listUnrecorded(tx, workspace.id, startOfToday(now, workspace.timezone), filterId)
    if (due === undefined) return
    await insertMembership(tx, workspace.id, { filterId, digest: digestFilter(filter), batches }, now)
    const before = hoursAgo(now, FIXED_HOURS.filter_memberships)
    await deleteMemberships(tx, workspace.id, { before })
  })
}

/** Records who matches tracked filters, once a day of the workspace, and after a change of the filter. */
export const filterMembershipJob = (app: App): JobDefinition => {
  const failedAt = new Map<string, number>()
  return {
    name: 'filter-membership',
    intervalMs: INTERVAL_MS,
    run: async (signal) => {
      let processed = 0
      for (const workspace of await listTrackingWorkspaces(app.db)) {
        const today = startOfToday(businessTime(app, workspace.id), workspace.timezone)
        for (const filterId of await listUnrecorded(app.db, workspace.id, today)) {
          const key = `${workspace.id} ${filterId}`
          if (signal.aborted || performance.now() - (failedAt.get(key) ?? -Infinity) < RETRY_MS) continue
          try {
            await recordMembers(app, workspace, filterId)
            processed++
          } catch (error) {
            failedAt.set(key, performance.now())
            app.log.warn(
              {
                work: 'members of filters',
                workspace: workspace.id,
                code: (error as { code?: string }).code,
              },
              'Cannot record who matches a saved filter; retrying in an hour',
            )
          }
        }
      }
      return { processed }
    },
  }
}
