import { settings, type Config } from '../../server/config.ts'
import { lastingKinds, retainedKinds } from '../../server/work/data-kinds.ts'
import { hoursAgo } from '../../server/work/retention-periods.ts'
import type { Db } from '../../storage/database.ts'
import {
  countDue,
  countPartitions,
  findOldest,
  readTableSizes,
  type RetainedKind,
  type TableSize,
} from '../../storage/work/retention.ts'
import type { AdminVerb } from './verb.ts'

/** More that is due is not counted. */
const MAX_COUNT = 10_000

/** Returns the hours that rows of a kind are kept, null for no limit, and what says so. */
const readPeriod = (kind: RetainedKind, config: Config): { hours: number | null; setBy: string } => {
  const { keeps } = retainedKinds[kind]
  if (typeof keeps === 'number') return { hours: keeps, setBy: 'fixed' }
  const days = config[keeps]
  return { hours: days === null ? null : days * 24, setBy: settings.find(({ name }) => name === keeps)!.env! }
}

const formatPeriod = (hours: number | null): string =>
  hours === null ? 'no limit' : hours >= 72 ? `${hours / 24} days` : `${hours} h`

type Sizes = ReadonlyMap<string, TableSize>

/** Rows of the first table, and bytes of all. */
const sumSizes = (tables: readonly string[], sizes: Sizes) => ({
  rows: sizes.get(tables[0]!)?.rows ?? null,
  bytes: tables.reduce((sum, table) => sum + (sizes.get(table)?.bytes ?? 0), 0),
})

const describeKind = async (
  db: Db,
  kind: RetainedKind,
  { config, now, sizes }: { config: Config; now: string; sizes: Sizes },
) => {
  const { tables, since, goes, holdsEnd, within } = retainedKinds[kind]
  const { hours, setBy } = readPeriod(kind, config)
  const before = hours === null ? null : holdsEnd ? now : hoursAgo(now, hours)
  const found = await findOldest(db, kind)
  const due = before === null ? 0 : await countDue(db, kind, before, MAX_COUNT + 1)
  const partitions = await countPartitions(db, kind, before)
  return {
    kind,
    keeps: formatPeriod(hours),
    keeps_hours: hours,
    since,
    set_by: setBy,
    goes_by: goes,
    oldest: found !== null && holdsEnd ? hoursAgo(found, hours!) : found,
    due: due === null ? null : Math.min(due, MAX_COUNT),
    due_is_more: due !== null && due > MAX_COUNT,
    partitions: partitions?.partitions ?? null,
    due_partitions: partitions?.due ?? null,
    tables,
    ...(within === undefined ? sumSizes(tables, sizes) : { rows: null, bytes: null }),
  }
}

const describeLasting = (kind: string, sizes: Sizes) => ({
  kind,
  keeps: formatPeriod(null),
  keeps_hours: null,
  since: null,
  set_by: 'deletion or erasure',
  goes_by: null,
  oldest: null,
  due: 0,
  due_is_more: false,
  partitions: null,
  due_partitions: null,
  tables: lastingKinds[kind]!,
  ...sumSizes(lastingKinds[kind]!, sizes),
})

export const retentionVerb: AdminVerb = {
  name: 'retention',
  summary: 'Show how long each kind of data is kept, and what is due',
  about:
    'Read-only. For each kind of data: the retention and its source (a variable, or fixed), the time ' +
    `of the oldest row, rows due for deletion (counted up to ${MAX_COUNT}), partitions and those due, ` +
    'rows at the last analyze, and bytes with indexes. Servers delete due rows every half minute; if ' +
    'many stay due, no server runs, or it lags behind. Run it with the environment of the servers. ' +
    'Data that expires within minutes and OAuth data are not included.',
  scoped: false,
  access: 'read',
  columns: ['kind', 'keeps', 'set_by', 'oldest', 'due', 'partitions', 'due_partitions', 'rows', 'bytes'],
  run: async ({ config, now, db: open }) => {
    const db = await open()
    const kinds = Object.keys(retainedKinds) as RetainedKind[]
    const tables = [
      ...kinds.flatMap((kind) => retainedKinds[kind].tables),
      ...Object.values(lastingKinds).flat(),
    ]
    const sizes = await readTableSizes(db, [...new Set(tables)])
    const data: object[] = []
    for (const kind of kinds) data.push(await describeKind(db, kind, { config, now, sizes }))
    for (const kind of Object.keys(lastingKinds)) data.push(describeLasting(kind, sizes))
    return { data }
  },
}
