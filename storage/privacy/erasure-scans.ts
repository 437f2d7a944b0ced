import { type RawBuilder, sql } from 'kysely'
import type { Db } from '../database.ts'
import { ASCII_DIGITS, FOREIGN_DIGITS, FOREIGN_SEPARATORS } from '../values/digits.ts'

/*
 * Tables that are read from end to end for copies of what is held on a person, a page at a time in the order of their
 * primary keys: nothing leads from a person to their rows.
 */

/** Patterns for `like`, of which one matches, of texts and of phones as digits; and ids of the person's records. */
export type SubjectPatterns = {
  texts: readonly string[]
  phones: readonly string[]
  contactIds: readonly string[]
  conversationIds: readonly string[]
}

const SEPARATORS = ' +-()./'
const FOREIGN = `[${FOREIGN_DIGITS}${FOREIGN_SEPARATORS}]`

/**
 * Whether a text or JSON may name the person. Phones are found with what people write between their digits. Those in
 * digits of other scripts are looked for where there are any: it takes long.
 */
export const matchesSubject = (
  value: RawBuilder<unknown>,
  { texts, phones }: Pick<SubjectPatterns, 'texts' | 'phones'>,
) => sql<boolean>`
  ((${value})::text like any(${texts}::text[])
    or translate((${value})::text, ${SEPARATORS}, '') like any(${phones}::text[])
    or (octet_length((${value})::text) > length((${value})::text) and (${value})::text ~ ${FOREIGN}
      and translate((${value})::text, ${FOREIGN_DIGITS + SEPARATORS + FOREIGN_SEPARATORS}, ${ASCII_DIGITS})
        like any(${phones}::text[])))`

/** A column of a primary key, with the type that its text is cast to. */
export type KeyColumn = readonly [
  name: string,
  type: 'bigint' | 'text' | 'integer' | 'smallint' | 'timestamptz',
]

export type ScannedTable = {
  readonly table: string
  /** The primary key after the workspace. */
  readonly key: readonly KeyColumn[]
  /** Columns that are returned of rows that may be about the person, as text or JSON. */
  readonly columns: readonly string[]
  /** What is searched, of the row `t`. */
  readonly searched: RawBuilder<unknown>
  /** Joins that `searched` needs. */
  readonly joins?: RawBuilder<unknown>
  /** Rows that may be about the person whatever is in them, of the row `t`. */
  readonly or?: RawBuilder<unknown>
  /** Whether all that the row `t` is about is the person's. */
  readonly isTheirs?: (patterns: SubjectPatterns) => RawBuilder<unknown>
  /** Whether somebody works on the row `t` now, and may write more of it. */
  readonly isBusy?: RawBuilder<unknown>
}

export type ScannedRow = {
  key: string[]
  searched: string
  is_busy: boolean
  is_theirs: boolean
} & Record<string, unknown>

type ScanOptions = {
  after: readonly string[] | null
  limit: number
  patterns: SubjectPatterns
  /** In place of those of the table. */
  columns?: readonly string[]
  /** Leaves the rows unlocked. */
  reads?: true
}

/**
 * Returns the rows of the next page that may be about the person, locked, and the position after the page: null when it
 * was the last.
 */
export const scanPage = async (
  tx: Db,
  workspaceId: string,
  {
    table,
    key,
    columns: own,
    searched,
    joins = sql``,
    or = sql`false`,
    isTheirs = () => sql`false`,
    isBusy = sql`false`,
  }: ScannedTable,
  { after, limit, patterns, columns = own, reads }: ScanOptions,
): Promise<{ rows: ScannedRow[]; position: string[] | null }> => {
  const refs = sql.join(key.map(([name]) => sql.ref(`t.${name}`)))
  const position = after
    ? sql`and (${refs}) > (${sql.join(key.map(([, type], n) => sql`${after[n]}::${sql.raw(type)}`))})`
    : sql``
  const keyTexts = sql`array[${sql.join(key.map(([name]) => sql`${sql.ref(`t.${name}`)}::text`))}]`
  const { rows: ends } = await sql<{ n: string; last: string[] }>`
    select n, last from (
      select ${keyTexts} as last, row_number() over (order by ${refs}) as n
      from ${sql.table(table)} t where t.workspace_id = ${workspaceId} ${position}
      order by ${refs} limit ${limit}) as p order by n desc limit 1`.execute(tx)
  if (!ends[0]) return { rows: [], position: null }
  const { n, last } = ends[0]
  const upTo = sql`and (${refs}) <= (${sql.join(key.map(([, type], i) => sql`${last[i]}::${sql.raw(type)}`))})`
  const theirs = isTheirs(patterns)
  const { rows } = await sql<ScannedRow>`
    select ${keyTexts} as key, ${sql.join(columns.map((name) => sql.ref(`t.${name}`)))},
      (${searched})::text as searched, ${isBusy} as is_busy, ${theirs} as is_theirs
    from ${sql.table(table)} t ${joins}
    where t.workspace_id = ${workspaceId} ${position} ${upTo}
      and (${matchesSubject(searched, patterns)} or ${or} or ${theirs})
    order by ${refs} ${reads ? sql`` : sql`for update of t`}`.execute(tx)
  return { rows, position: Number(n) < limit ? null : last }
}

/** A value for a column of this type. JSON is given as it is meant, not as text. */
export type ColumnChange = {
  readonly type: 'json' | 'jsonb' | 'text' | 'bytea'
  readonly value: unknown
}

const toSql = ({ type, value }: ColumnChange): RawBuilder<unknown> => {
  if (type === 'bytea' || type === 'text' || value === null) return sql`${value}::${sql.raw(type)}`
  return sql`${JSON.stringify(value)}::text::${sql.raw(type)}`
}

/** Sets columns of a row that a scan returned. */
export const updateScannedRow = async (
  tx: Db,
  workspaceId: string,
  { table, key }: ScannedTable,
  row: ScannedRow,
  changes: Readonly<Record<string, ColumnChange>>,
): Promise<void> => {
  const sets = Object.entries(changes).map(([name, value]) => sql`${sql.ref(name)} = ${toSql(value)}`)
  const isRow = key.map(([name, type], n) => sql`${sql.ref(name)} = ${row.key[n]}::${sql.raw(type)}`)
  await sql`
    update ${sql.table(table)} set ${sql.join(sets)}
    where workspace_id = ${workspaceId} and ${sql.join(isRow, sql` and `)}`.execute(tx)
}

/** Filters may look for names, which are compared without case and accents. */
const isOfFilter = sql`t.operation like '%saved\\_filter%'`

/** The recipients of a broadcast `s` are the person alone. */
const isSentToThem = ({ contactIds }: SubjectPatterns) => sql`(
  exists (select from broadcast_recipients r
    where r.workspace_id = s.workspace_id and r.broadcast_id = s.broadcast_id)
  and not exists (select from broadcast_recipients r
    where r.workspace_id = s.workspace_id and r.broadcast_id = s.broadcast_id
      and r.contact_id <> all(${contactIds}::bigint[])))`

/** The records of a job `t` are the person's alone. Those of broadcasts are their recipients. */
const isJobOfThem = (patterns: SubjectPatterns) => sql`(
  exists (select from broadcast_sends s
    where s.workspace_id = t.workspace_id and s.job_id = t.id and ${isSentToThem(patterns)})
  or (exists (select from bulk_job_batches b
      where b.workspace_id = t.workspace_id and b.job_id = t.id and b.record_ids <> '{}')
    and not exists (select from bulk_job_batches b
      where b.workspace_id = t.workspace_id and b.job_id = t.id
        and not b.record_ids <@ case
          when t.operation like '%\\_conversations' then ${patterns.conversationIds}::bigint[]
          else ${patterns.contactIds}::bigint[] end)))`

const scanned = {
  events: {
    table: 'events',
    key: [['id', 'text']],
    columns: ['type', 'data'],
    searched: sql`t.data`,
  },
  // Most deliveries have no payload of their own, but that of their event. They come before the events.
  webhook_deliveries: {
    table: 'webhook_deliveries',
    key: [['id', 'text']],
    columns: ['payload', 'event_id', 'event_type'],
    isBusy: sql`coalesce(t.lease_until > now(), false)`,
    searched: sql`coalesce(t.payload, e.data)`,
    joins: sql`left join events e on e.workspace_id = t.workspace_id and e.id = t.event_id`,
  },
  audit_log: {
    table: 'audit_log',
    key: [['id', 'bigint']],
    columns: ['operation', 'target_type', 'target_id', 'changes'],
    searched: sql`concat(t.changes, ' "', t.target_id, '"')`,
    or: isOfFilter,
  },
  approvals: {
    table: 'approvals',
    key: [['id', 'bigint']],
    columns: ['contact_id', 'input', 'preview', 'outcome', 'edited', 'reason', 'note', 'operation', 'status'],
    searched: sql`concat(t.input, t.preview, t.edited, t.outcome, t.reason, t.note, t.idempotency_key,
      ' "', t.contact_id, '"')`,
  },
  bulk_job_batches: {
    table: 'bulk_job_batches',
    key: [
      ['job_id', 'bigint'],
      ['no', 'integer'],
    ],
    columns: ['calls', 'failures', 'undo'],
    searched: sql`concat(t.calls, t.failures, t.undo)`,
  },
  idempotency: {
    table: 'idempotency',
    key: [
      ['staff_id', 'bigint'],
      ['key', 'text'],
    ],
    columns: ['operation', 'state', 'intent', 'body'],
    searched: sql`concat(t.key, t.intent, t.body)`,
    or: isOfFilter,
  },
  saved_filters: {
    table: 'saved_filters',
    key: [['id', 'bigint']],
    columns: ['name', 'description', 'filter'],
    // They are few, and names are compared without case and accents.
    searched: sql`t.filter`,
    or: sql`true`,
  },
  // They are few, and filters in them may look for names.
  bulk_jobs: {
    table: 'bulk_jobs',
    key: [['id', 'bigint']],
    columns: ['input'],
    isTheirs: isJobOfThem,
    searched: sql`t.input`,
    or: sql`true`,
  },
  broadcast_sends: {
    table: 'broadcast_sends',
    key: [['broadcast_id', 'bigint']],
    columns: ['input'],
    isBusy: sql`exists (select from bulk_jobs j
      where j.workspace_id = t.workspace_id and j.id = t.job_id and j.state in ('running', 'paused'))`,
    isTheirs: (patterns) => sql`exists (select from broadcast_sends s
      where s.workspace_id = t.workspace_id and s.broadcast_id = t.broadcast_id and ${isSentToThem(patterns)})`,
    searched: sql`t.input`,
  },
} as const satisfies Record<string, ScannedTable>

export type ScannedName = keyof typeof scanned
export const scannedTables: Readonly<Record<ScannedName, ScannedTable>> = scanned

/** Replaces what an event says. */
export const updateEventData = async (
  tx: Db,
  workspaceId: string,
  id: string,
  data: unknown,
): Promise<void> => {
  await sql`
    update events set data = ${JSON.stringify(data)}::text::jsonb
    where workspace_id = ${workspaceId} and id = ${id}`.execute(tx)
}

/** Empties what the audit trail keeps of decisions on approvals: notes and edited texts. Returns the count. */
export const clearDecisions = async (
  tx: Db,
  workspaceId: string,
  approvalIds: readonly string[],
): Promise<number> => {
  const { numAffectedRows } = await sql`
    update audit_log set changes = null
    where workspace_id = ${workspaceId} and target_id = any(${approvalIds}::text[])
      and target_type = 'approval' and changes is not null`.execute(tx)
  return Number(numAffectedRows ?? 0)
}

/**
 * Whether a call that may be about the person has begun and not ended: one of the provider, whose outcome is stored
 * later, or a broadcast, which reads its input until its end.
 */
export const hasOpenCalls = async (
  tx: Db,
  workspaceId: string,
  patterns: SubjectPatterns,
): Promise<boolean> => {
  // Broadcasts are found by what names the person: ids in them are those of other records.
  const named = patterns.texts.filter((text) => !/^%"\d+"%$/.test(text))
  const { rows } = await sql`
    select from idempotency where state = 'running' and workspace_id = ${workspaceId}
      and ${matchesSubject(sql`intent`, patterns)}
    union all
    select from broadcast_sends s join bulk_jobs j on j.workspace_id = s.workspace_id and j.id = s.job_id
    where s.workspace_id = ${workspaceId} and j.state in ('running', 'paused')
      and ${matchesSubject(sql`s.input`, { ...patterns, texts: named })} limit 1`.execute(tx)
  return rows.length > 0
}

/** Empties what receivers of webhooks answered to these deliveries. Returns the count. */
export const clearAttempts = async (
  tx: Db,
  workspaceId: string,
  deliveryIds: readonly string[],
): Promise<number> => {
  const { numAffectedRows } = await sql`
    update webhook_attempts set response_excerpt = null, error = case when error is null then null else 'Erased.' end
    where workspace_id = ${workspaceId} and delivery_id = any(${deliveryIds}::text[])
      and (response_excerpt is not null or error is not null)`.execute(tx)
  return Number(numAffectedRows ?? 0)
}
