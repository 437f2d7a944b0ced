import { type RawBuilder, sql } from 'kysely'
import { tables, type Database, type Db } from '../database.ts'
import {
  type KeyColumn,
  type ScannedName,
  scannedTables,
  scanPage,
  type SubjectPatterns,
} from './erasure-scans.ts'
import { isUpdateOf } from './erasure-steps.ts'
import { personalData } from './personal-data.ts'
import type { ExportedData } from './personal-data-types.ts'
import type { ErasureSubject } from '../tables/erasures.ts'

/*
 * The rows of a person, table by table: all columns of those in storage/privacy/personal-data.ts, but for what is
 * declared as left out. A person is found as an erasure finds them.
 */

type Row = Record<string, unknown>
export type TableName = keyof Database

/** What an export has of a table; undefined: nothing. */
const getExported = (name: TableName): Exclude<ExportedData, { not: string }> | undefined => {
  const declared = personalData[name]
  return declared === undefined || declared === 'none' || declared.exported.not !== undefined
    ? undefined
    : declared.exported
}

const listExportedColumns = (name: TableName): string[] => {
  const { without = {} } = getExported(name) ?? {}
  return Object.keys(tables[name]).filter((column) => column !== 'workspace_id' && !(column in without))
}

const columnsOf = (name: TableName): RawBuilder<unknown> =>
  sql.join(listExportedColumns(name).map((column) => sql.ref(`p.${column}`)))

type PersonTable = {
  /** The primary key after the workspace. */
  readonly key: readonly KeyColumn[]
  /** Which rows `p` are the person's. */
  readonly where: (workspaceId: string, subject: ErasureSubject) => RawBuilder<boolean>
  /** Names of what the row refers to by id. */
  readonly extra?: RawBuilder<unknown>
  /** Rows of all workspaces are in the table. */
  readonly shared?: true
}

const ofContact =
  (column = 'contact_id'): PersonTable['where'] =>
  (_, { contactIds }) =>
    sql`${sql.ref(`p.${column}`)} = any(${contactIds}::bigint[])`

const ofConversation =
  (column = 'conversation_id'): PersonTable['where'] =>
  (_, { conversationIds }) =>
    sql`${sql.ref(`p.${column}`)} = any(${conversationIds}::bigint[])`

const nameOf = (table: TableName, id: string, as: string): RawBuilder<unknown> => sql`
  (select n.name from ${sql.table(table)} n where n.workspace_id = p.workspace_id and n.id = ${sql.ref(`p.${id}`)})
    as ${sql.ref(as)}`

/** Tables whose rows are found by ids of the person, in the order of the archive. */
const personTables = {
  contacts: { key: [['id', 'bigint']], where: ofContact('id') },
  contact_facts: {
    key: [['contact_id', 'bigint']],
    where: ofContact(),
    extra: sql`(select jsonb_object_agg(f.id, f.label) from custom_fields f
      where f.workspace_id = p.workspace_id and p.attrs ? f.id::text) as labels`,
  },
  contact_tags: {
    key: [
      ['tag_id', 'bigint'],
      ['contact_id', 'bigint'],
    ],
    where: ofContact(),
    extra: nameOf('tags', 'tag_id', 'tag'),
  },
  contact_groups: {
    key: [
      ['group_id', 'bigint'],
      ['contact_id', 'bigint'],
    ],
    where: ofContact(),
    extra: nameOf('groups', 'group_id', 'group'),
  },
  consents: {
    key: [
      ['contact_id', 'bigint'],
      ['purpose', 'text'],
      ['channel', 'text'],
    ],
    where: ofContact(),
  },
  consent_changes: {
    key: [
      ['contact_id', 'bigint'],
      ['id', 'bigint'],
    ],
    where: ofContact(),
  },
  contact_merges: { key: [['contact_id', 'bigint']], where: ofContact() },
  contact_former_ids: { key: [['id_key', 'text']], where: ofContact() },
  channel_customers: {
    key: [
      ['channel_id', 'bigint'],
      ['customer_id', 'text'],
    ],
    where: ofContact(),
    extra: nameOf('channels', 'channel_id', 'channel'),
  },
  broadcast_recipients: {
    key: [
      ['broadcast_id', 'bigint'],
      ['contact_id', 'bigint'],
    ],
    where: ofContact(),
    extra: nameOf('broadcasts', 'broadcast_id', 'broadcast'),
  },
  conversations: {
    key: [['id', 'bigint']],
    where: ofConversation('id'),
    extra: nameOf('channels', 'channel_id', 'channel'),
  },
  conversation_episodes: {
    key: [
      ['conversation_id', 'bigint'],
      ['n', 'integer'],
    ],
    where: ofConversation(),
  },
  conversation_tags: {
    key: [
      ['conversation_id', 'bigint'],
      ['tag_id', 'bigint'],
    ],
    where: ofConversation(),
    extra: nameOf('tags', 'tag_id', 'tag'),
  },
  channel_deliveries: { key: [['message_id', 'bigint']], where: ofConversation() },
  provider_updates: { key: [['id', 'bigint']], where: isUpdateOf, shared: true },
  contact_views: {
    key: [
      ['key_id', 'bigint'],
      ['day', 'timestamptz'],
      ['subject', 'bigint'],
    ],
    where: ofContact('subject'),
  },
  contact_reads: {
    key: [
      ['key_id', 'bigint'],
      ['operation', 'text'],
      ['hour', 'timestamptz'],
    ],
    where: (_, { contactIds }) => sql`p.contacts && ${contactIds}::bigint[]`,
  },
  phone_budgets: {
    key: [
      ['staff_id', 'bigint'],
      ['day', 'timestamptz'],
    ],
    where: (_, { phones }) => sql`p.phones && ${phones}::text[]`,
  },
} as const satisfies Partial<Record<TableName, PersonTable>>

export type PersonTableName = keyof typeof personTables
export const personTableNames = Object.keys(personTables) as PersonTableName[]

export type RowsPage = { rows: Row[]; position: string[] | null }
type PageOptions = { after: readonly string[] | null; limit: number }

/** Returns the next page of a table's rows of a person, and the position after it: null when it was the last. */
export const listPersonRows = async (
  db: Db,
  workspaceId: string,
  name: PersonTableName,
  subject: ErasureSubject,
  { after, limit }: PageOptions,
): Promise<RowsPage> => {
  const { key, where, extra, shared }: PersonTable = personTables[name]
  const refs = sql.join(key.map(([column]) => sql.ref(`p.${column}`)))
  const texts = sql.join(key.map(([column]) => sql`${sql.ref(`p.${column}`)}::text`))
  const position = after
    ? sql`and (${refs}) > (${sql.join(key.map(([, type], n) => sql`${after[n]}::${sql.raw(type)}`))})`
    : sql``
  const { rows } = await sql<Row & { row_key: string[] }>`
    select array[${texts}] as row_key, ${columnsOf(name)} ${extra ? sql`, ${extra}` : sql``}
    from ${sql.table(name)} p
    where ${shared ? sql`true` : sql`p.workspace_id = ${workspaceId}`} and ${where(workspaceId, subject)} ${position}
    order by ${refs} limit ${limit}`.execute(db)
  return {
    rows: rows.map(({ row_key: _, ...row }) => row),
    position: rows.length < limit ? null : rows.at(-1)!.row_key,
  }
}

/** Counts the rows of a person in tables that their ids lead to; those that are read from end to end are not. */
export const countPersonRows = async (
  db: Db,
  workspaceId: string,
  subject: ErasureSubject,
): Promise<{ counts: Record<string, number>; fileBytes: number }> => {
  const ofMessages = sql`p.workspace_id = ${workspaceId} and p.message_id in (select id from messages
    where workspace_id = ${workspaceId} and conversation_id = any(${subject.conversationIds}::bigint[]))`
  const counts = [
    ...personTableNames
      .filter((name) => !('shared' in personTables[name]))
      .map(
        (
          name,
        ) => sql`select ${name}::text as name, count(*)::int as n, 0::bigint as bytes from ${sql.table(name)} p
          where p.workspace_id = ${workspaceId} and ${personTables[name].where(workspaceId, subject)}`,
      ),
    sql`select 'messages', count(*)::int, 0::bigint from messages p
      where p.workspace_id = ${workspaceId} and ${ofConversation()(workspaceId, subject)}`,
    sql`select 'message_reactions', count(*)::int, 0::bigint from message_reactions p where ${ofMessages}`,
    sql`select 'media', count(*)::int, coalesce(sum(p.size) filter (where p.state = 'kept'), 0)::bigint
      from media p where ${ofMessages}`,
  ]
  const { rows } = await sql<{ name: string; n: number; bytes: string }>`
    ${sql.join(counts, sql` union all `)}`.execute(db)
  return {
    counts: Object.fromEntries(rows.map(({ name, n }) => [name, n])),
    fileBytes: rows.reduce((sum, { bytes }) => sum + Number(bytes), 0),
  }
}

/** A file of a message that the store keeps. */
export type MessageFile = {
  message_id: string
  key: string
  file_name: string | null
  content_type: string | null
}

/** Returns the position of the conversation after the one at `index`; null when it is the last. */
const nextConversation = (index: number, { conversationIds }: ErasureSubject): string[] | null =>
  index + 1 < conversationIds.length ? [String(index + 1)] : null

/** A page of the messages of one conversation, oldest first; positions are its index, and time and id of a message. */
const listMessagePage = async <R extends Row>(
  db: Db,
  workspaceId: string,
  subject: ErasureSubject,
  { after, limit }: PageOptions,
  select: { columns: RawBuilder<unknown>; joins?: RawBuilder<unknown> },
): Promise<{ rows: R[]; position: string[] | null }> => {
  const [index = '0', createdAt, id] = after ?? []
  const conversationId = subject.conversationIds[Number(index)]
  if (conversationId === undefined) return { rows: [], position: null }
  const position =
    createdAt === undefined
      ? sql``
      : sql`and (p.created_at, p.id) > (${createdAt}::timestamptz, ${id}::bigint)`
  const { rows } = await sql<R & { row_key: string[] }>`
    select array[p.created_at::text, p.id::text] as row_key, ${select.columns}
    from messages p ${select.joins ?? sql``}
    where p.workspace_id = ${workspaceId} and p.conversation_id = ${conversationId}::bigint ${position}
    order by p.created_at, p.id limit ${limit}`.execute(db)
  const last = rows.at(-1)
  return {
    rows: rows.map(({ row_key: _, ...row }) => row as unknown as R),
    position:
      last && rows.length === limit ? [index, ...last.row_key] : nextConversation(Number(index), subject),
  }
}

/** Returns the next messages of a person, each with its reactions and what is known of its file. */
export const listPersonMessages = async (
  db: Db,
  workspaceId: string,
  subject: ErasureSubject,
  options: PageOptions,
): Promise<RowsPage> => {
  const page = await listMessagePage<Row>(db, workspaceId, subject, options, {
    columns: columnsOf('messages'),
  })
  const ids = page.rows.map(({ id }) => String(id))
  const related = async (name: 'message_reactions' | 'media'): Promise<(Row & { message_id: string })[]> =>
    ids.length === 0
      ? []
      : (
          await sql<Row & { message_id: string }>`
          select ${columnsOf(name)} from ${sql.table(name)} p
          where p.workspace_id = ${workspaceId} and p.message_id = any(${ids}::bigint[])`.execute(db)
        ).rows
  const reactions = Map.groupBy(await related('message_reactions'), (one) => one.message_id)
  const media = new Map((await related('media')).map((one) => [one.message_id, one]))
  return {
    position: page.position,
    rows: page.rows.map((row) => ({
      ...row,
      reactions: reactions.get(String(row['id'])) ?? [],
      media: media.get(String(row['id'])) ?? null,
    })),
  }
}

/** Returns the next files of a person that the store keeps. */
export const listPersonFiles = (
  db: Db,
  workspaceId: string,
  subject: ErasureSubject,
  options: PageOptions,
): Promise<{ rows: (MessageFile & { position: string[] })[]; position: string[] | null }> =>
  listMessagePage(db, workspaceId, subject, options, {
    columns: sql`p.id as message_id, d.key, d.file_name, d.content_type,
      array[${options.after?.[0] ?? '0'}, p.created_at::text, p.id::text] as position`,
    joins: sql`join media d on d.workspace_id = p.workspace_id and d.message_id = p.id
      and d.state = 'kept' and d.key is not null`,
  })

/** Returns rows of a table without a way to the person that may be about them, from the next page. */
export const listScannedRows = async (
  db: Db,
  workspaceId: string,
  name: ScannedName,
  subject: ErasureSubject,
  { patterns, ...options }: PageOptions & { patterns: SubjectPatterns },
): Promise<{ rows: (Row & { searched: string })[]; position: string[] | null }> => {
  const table = scannedTables[name]
  // Jobs name records in a column of their own, which an erasure leaves.
  const ids = [...subject.contactIds, ...subject.conversationIds]
  const or = name === 'bulk_job_batches' ? { or: sql`t.record_ids && ${ids}::bigint[]` } : {}
  const page = await scanPage(
    db,
    workspaceId,
    { ...table, ...or },
    { ...options, patterns, columns: listExportedColumns(name), reads: true },
  )
  return { position: page.position, rows: page.rows.map(({ key: _, is_busy: __, ...row }) => row) }
}

/** The operations of jobs by their ids. */
export const listJobOperations = async (
  db: Db,
  workspaceId: string,
  jobIds: readonly string[],
): Promise<ReadonlyMap<string, string>> =>
  new Map(
    (
      await sql<{ id: string; operation: string }>`
      select id, operation from bulk_jobs
      where workspace_id = ${workspaceId} and id = any(${jobIds}::bigint[])`.execute(db)
    ).rows.map(({ id, operation }) => [id, operation]),
  )

/** What receivers of webhooks answered to deliveries. */
export const listAttempts = async (
  db: Db,
  workspaceId: string,
  deliveryIds: readonly string[],
): Promise<(Row & { delivery_id: string })[]> =>
  (
    await sql<Row & { delivery_id: string }>`
    select ${columnsOf('webhook_attempts')} from webhook_attempts p
    where p.workspace_id = ${workspaceId} and p.delivery_id = any(${deliveryIds}::text[])
    order by p.delivery_id, p.number`.execute(db)
  ).rows
