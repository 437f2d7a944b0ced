import { listMatchBatches } from '../../storage/contacts/matches.ts'
import type { Db } from '../../storage/database.ts'
import { insertMembership, insertTracking } from '../../storage/filters/memberships.ts'
import { parseSavedFilter } from '../filters/parse-filter.ts'
import { createUnlimitedActor, digestFilter } from '../reports/filter-membership.ts'
import { DAY_MS, toIso } from './time.ts'

const BATCH_IDS = 5000
const FIRST_RECORD_MS = 8 * DAY_MS

type DemoWorkspace = { id: string; name: string; timezone: string }

/** Tracks a saved filter: one of its members was not yet there when its members were recorded first. */
export const trackDemoFilter = async (
  tx: Db,
  workspace: DemoWorkspace,
  filterId: string,
  now: string,
): Promise<void> => {
  const actor = createUnlimitedActor({ ...workspace, features: [], contactLimit: null, templateLimit: null })
  const filters = { enabled: true, countTimeBoxMs: 1000, stepMs: undefined }
  const filter = await parseSavedFilter(
    { tx, heavy: tx, regexVerdicts: new Map(), filters, actor, now },
    filterId,
  )
  const batches = await listMatchBatches(tx, workspace.id, [filter], { size: BATCH_IDS, stepMs: undefined })
  const before = toIso(Date.parse(now) - FIRST_RECORD_MS)
  await insertTracking(tx, workspace.id, filterId, before)
  const record = { filterId, digest: digestFilter(filter) }
  const earlier = batches.map((batch) => batch.replace(/,\d+}$/, '}'))
  await insertMembership(tx, workspace.id, { ...record, batches: earlier }, before)
  await insertMembership(tx, workspace.id, { ...record, batches }, now)
}
