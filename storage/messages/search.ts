import { type RawBuilder, sql } from 'kysely'
import type { Db, MessageDirection } from '../database.ts'
import { CUSTOM_PLAN, INDEXED_PLAN } from '../client/driver.ts'
import { toStorableId } from '../values/ids.ts'
import type { MessagePosition } from './lists.ts'
import { toStorableTime } from '../values/times.ts'
import { type KeyFilters, readFilterKeys, type SearchTerm, toMonth, toSalt } from './search-terms.ts'

/** Finds messages by their words. docs/decisions/0055-search-in-messages.md says why in these steps. */

/** `channels`: undefined for all. `from`: at this time or later; `to`: before this time. */
export type MessageSearch = KeyFilters & {
  workspaceId: string
  terms: readonly SearchTerm[]
  conversationId: string | undefined
  contactId: string | undefined
  from: string | undefined
  to: string | undefined
  after: MessagePosition | null
  limit: number
}

/** A message that was found. */
export type MessageHitRow = {
  id: string
  conversation_id: string
  contact_id: string | null
  contact_name: string | null
  channel_id: string | null
  direction: MessageDirection
  type: string
  text: string
  note: boolean
  staff_id: string | null
  staff_name: string | null
  created_at: string
}

/** Thresholds in rows. An object, so that tests can reach every step with few rows. */
export const messageSearchStrategy = {
  /** Newest messages of a span whose keys are tested one by one before the index is asked. */
  headRows: 1000,
  /** As many are tested when some of the first were hits. */
  moreRows: 4000,
  /** Matches in a span above which it is read newest first instead. */
  maxHits: 3000,
  /** Messages of a page that are looked at where no index finds them: new ones, and those of a conversation. */
  scanRows: 10_000,
  /** Bytes of texts of these that are tested: the words of a message take as long as so many bytes more. */
  scanBytes: 300_000,
}
const BYTES_OF_MESSAGE = 80

/** Months at a time that the index is asked for: the number grows while few messages are found. */
const MAX_MONTHS = 24

type Span = { from: string | undefined; to: string | undefined }
type Keyed = MessageSearch & { keys: readonly (readonly number[])[] }
type Found = { ids: string[]; seen: string }
/** What a scan found. `end`: the last message that it looked at, where it did not come to the end. */
type Scanned = { ids: string[]; end: MessagePosition | null }

/** Repeated in every statement. `row`: an alias with the workspace, `created_at` and `id`. */
const inSpan = ({ workspaceId, after }: MessageSearch, { from, to }: Span, row: string, id: string) => {
  const [workspace, at, key] = ['workspace_id', 'created_at', id].map((column) => sql.ref(`${row}.${column}`))
  return sql`${workspace!} = ${workspaceId}
    ${from === undefined ? sql`` : sql`and ${at!} >= ${toStorableTime(from)}::timestamptz`}
    ${to === undefined ? sql`` : sql`and ${at!} < ${toStorableTime(to)}::timestamptz`}
    ${after === null ? sql`` : sql`and (${at!}, ${key!}) < (${after.createdAt}::timestamptz, ${after.id}::bigint)`}`
}

/** Whether a message `m` is one that the search may find, by everything but its words. */
const isSearched = ({ channels, staffId, direction }: MessageSearch): RawBuilder<unknown> => sql`
  m.text is not null and m.deleted_at is null and (m.direction <> 'system' or m.note)
    ${channels === undefined ? sql`` : sql`and m.channel_id = any(${channels.map(toStorableId)}::bigint[])`}
    ${staffId === undefined ? sql`` : sql`and m.staff_id = ${toStorableId(staffId)}::bigint`}
    ${direction === undefined ? sql`` : direction === 'note' ? sql`and m.note` : sql`and m.direction = ${direction}`}`

/** Tests what a message `m` is now, whatever the index says: keys are hashes, and tell nothing of the order. */
const isHit = (search: MessageSearch): RawBuilder<unknown> => {
  const forms = search.terms.flatMap((term) => (term.forms ? [term.forms] : []))
  const phrases = search.terms.filter((term) => !term.forms).map(({ words }) => ` ${words.join(' ')} `)
  return sql`${isSearched(search)}
    ${
      phrases.length === 0
        ? sql``
        : sql`and (
      select bool_and(position(p.phrase in t.words) > 0)
      from (select message_words(message_searched(m)) as words offset 0) as t
        cross join unnest(${phrases}::text[]) as p (phrase))`
    }
    ${
      forms.length === 0
        ? sql``
        : sql`and (select ${sql.join(
            forms.map((each) => sql`t.lexemes && ${each}::text[]`),
            sql` and `,
          )} from (select message_lexemes(message_searched(m)) as lexemes offset 0) as t)`
    }`
}

/** Tests the keys of one row `s`: quicker than `&&`, and no use of the index by mistake. */
const hasKeys = ({ keys }: Keyed): RawBuilder<unknown> =>
  sql.join(
    keys.map(
      (group) =>
        sql`(${sql.join(
          group.map((key) => sql`(${key}::integer # s.salt) = any(s.keys)`),
          sql` or `,
        )})`,
    ),
    sql` and `,
  )

const newestFirst = sql.raw('order by s.created_at desc, s.message_id desc')
const newestMessages = sql.raw('order by m.created_at desc, m.id desc')

/** Messages `s` of the index, in their order, that are hits: as many as fill the page are looked at. */
const takeHits = (search: MessageSearch, from: RawBuilder<unknown>) => sql`
  select m.id from ${from} as s cross join lateral (select * from messages m
    where m.workspace_id = ${search.workspaceId} and m.id = s.message_id offset 0) as m
  where ${isHit(search)} limit ${sql.lit(search.limit)}`

/** Tests the newest messages of a span one by one, at most `limit`. */
const scanHead = async (tx: Db, search: Keyed, span: Span, limit: number): Promise<Found> => {
  const { rows } = await sql<Found>`${sql.raw(INDEXED_PLAN)}
    with head as materialized (select s.* from message_search s
      where ${inSpan(search, span, 's', 'message_id')} and s.keys <> '{}' ${newestFirst}
        limit ${sql.lit(limit)}),
    near as materialized (select s.message_id from head s where ${hasKeys(search)} ${newestFirst})
    select array(${takeHits(search, sql`near`)}) as ids, (select count(*) from head) as seen`.execute(tx)
  return rows[0]!
}

/** Reads the messages of a span, newest first, until the page is full. */
const scanSpan = async (tx: Db, search: Keyed, span: Span): Promise<string[]> => {
  const near = sql`(select s.message_id from message_search s
    where ${inSpan(search, span, 's', 'message_id')} and s.keys <> '{}' and ${hasKeys(search)} ${newestFirst} offset 0)`
  return (await sql<{ id: string }>`${sql.raw(INDEXED_PLAN)} ${takeHits(search, near)}`.execute(tx)).rows.map(
    ({ id }) => id,
  )
}

/** Finds messages of some months by the index; `seen` is above `maxHits` when there are too many. */
const findByKeys = async (tx: Db, search: Keyed, months: readonly number[], span: Span): Promise<Found> => {
  const salts = months.map((month) => toSalt(search.workspaceId, month))
  const groups = search.keys.map((group) => salts.flatMap((salt) => group.map((key) => key ^ salt)))
  // The span is tested after the keys, lest the planner walks another index.
  const { rows } = await sql<Found>`${sql.raw(INDEXED_PLAN)}
    with hits as materialized (select s.* from message_search s
      where ${sql.join(
        groups.map((group) => sql`s.keys && ${group}::integer[]`),
        sql` and `,
      )} and s.workspace_id + 0 = ${search.workspaceId}::bigint),
    few as materialized (select s.workspace_id, s.created_at, s.message_id from hits s
      limit ${sql.lit(messageSearchStrategy.maxHits + 1)}),
    near as materialized (select s.message_id from few s where ${inSpan(search, span, 's', 'message_id')}
      and (select count(*) from few) <= ${sql.lit(messageSearchStrategy.maxHits)} ${newestFirst})
    select array(${takeHits(search, sql`near`)}) as ids, (select count(*) from few) as seen`.execute(tx)
  return rows[0]!
}

const startOfMonth = (month: number): string =>
  new Date(Date.UTC(Math.floor((month - 1) / 12), (month - 1) % 12)).toISOString()

const later = (a: string, b: string | undefined): string =>
  b !== undefined && Date.parse(b) > Date.parse(a) ? b : a
const earlier = (a: string, b: string | undefined): string =>
  b !== undefined && Date.parse(b) < Date.parse(a) ? b : a

/** Returns the times of the oldest and the newest message that a search can find; undefined: there is none. */
const findBounds = async (tx: Db, search: MessageSearch) => {
  const here = sql`from message_search s where ${inSpan(search, search, 's', 'message_id')} and s.keys <> '{}'`
  const { rows } = await sql<{ oldest: string | null; newest: string | null }>`${sql.raw(INDEXED_PLAN)} select
    (select s.created_at ${here} order by s.created_at, s.message_id limit 1) as oldest,
    (select s.created_at ${here} ${newestFirst} limit 1) as newest`.execute(tx)
  const { oldest, newest } = rows[0]!
  return oldest === null || newest === null ? undefined : { oldest: toMonth(oldest), newest: toMonth(newest) }
}

/** Finds messages of a span: among the newest, then by the index. Undefined: too many for some months at a time. */
const findInMonths = async (
  tx: Db,
  search: Keyed,
  months: readonly number[],
  span: Span,
): Promise<string[] | undefined> => {
  const { headRows, moreRows } = messageSearchStrategy
  for (let rows = headRows; ;) {
    const { ids, seen } = await scanHead(tx, search, span, rows)
    if (Number(seen) < rows || ids.length >= search.limit) return ids
    // Up to twice what the density of the hits asks for: few different statements.
    const needed = rows * 2 ** Math.ceil(Math.log2(search.limit / ids.length) + 0.5)
    if (rows > headRows || !(needed <= moreRows)) break
    rows = needed
  }
  const found = await findByKeys(tx, search, months, span)
  if (Number(found.seen) <= messageSearchStrategy.maxHits) return found.ids
  return months.length > 1 ? undefined : await scanSpan(tx, search, span)
}

/** Walks the months, newest first, until the page is full. */
const walkMonths = async (tx: Db, search: Keyed): Promise<string[]> => {
  const bounds = await findBounds(tx, search)
  if (!bounds) return []
  const ids: string[] = []
  let size = 1
  for (let newest = bounds.newest; newest >= bounds.oldest && ids.length < search.limit;) {
    const months = Array.from({ length: Math.min(size, newest - bounds.oldest + 1) }, (_, n) => newest - n)
    const span = {
      from: later(startOfMonth(months.at(-1)!), search.from),
      to: earlier(startOfMonth(newest + 1), search.to),
    }
    const found = await findInMonths(tx, { ...search, limit: search.limit - ids.length }, months, span)
    if (found) {
      ids.push(...found)
      newest -= months.length
    }
    size = found ? Math.min(size * 2, MAX_MONTHS) : 1
  }
  return ids
}

/**
 * Tests messages `m` one by one, newest first, until the page is full: so many at most, and so much text. `messages`:
 * a query of whole messages. `indexed`: those that the index has without the words are not tested.
 */
const scanMessages = async (
  tx: Db,
  search: Keyed,
  messages: RawBuilder<unknown>,
  { indexed }: { indexed: boolean },
): Promise<Scanned> => {
  const { scanRows, scanBytes } = messageSearchStrategy
  const isPossible = indexed
    ? sql`${isSearched(search)} and (s.message_id is null or ${hasKeys(search)})`
    : isSearched(search)
  const inIndex = sql`left join message_search s on s.workspace_id = ${search.workspaceId} and s.message_id = m.id`
  const { rows } = await sql<{
    ids: string[]
    created_at: string | null
    id: string | null
  }>`${sql.raw(CUSTOM_PLAN)}
    with near as materialized (
      select m.id as message_id, m.created_at, ${isPossible} as is_possible, octet_length(m.text) as bytes
      from (select * from (${messages}) as m ${newestMessages} limit ${sql.lit(scanRows)}) as m
        ${indexed ? inIndex : sql``}),
    measured as (
      select s.*, count(*) over () as found, row_number() over newest as n,
        sum(case when s.is_possible then s.bytes + ${sql.lit(BYTES_OF_MESSAGE)} else 0 end) over newest as bytes_so_far
      from near s window newest as (${newestFirst} rows unbounded preceding)),
    given as materialized (
      select * from measured s where s.n = 1 or s.bytes_so_far <= ${sql.lit(scanBytes)} order by s.n),
    possible as materialized (select s.message_id from given s where s.is_possible order by s.n)
    select array(${takeHits(search, sql`possible`)}) as ids, l.created_at, l.message_id as id
    from (select 1) as one left join (
      select * from given s order by s.n desc limit 1) as l on l.n < l.found or l.found = ${sql.lit(scanRows)}`.execute(
    tx,
  )
  const { ids, created_at: createdAt, id } = rows[0]!
  return { ids, end: createdAt === null || id === null ? null : { createdAt, id } }
}

/** Scans messages of a contact or a conversation: of each conversation the newest ones. */
const scanConversations = async (tx: Db, search: Keyed): Promise<Scanned> => {
  const { workspaceId, contactId, conversationId } = search
  const messages = sql`select m.* from conversations v cross join lateral (
      select * from messages m where m.conversation_id = v.id and ${inSpan(search, search, 'm', 'id')}
      ${newestMessages} limit ${sql.lit(messageSearchStrategy.scanRows)}) as m
    where v.workspace_id = ${workspaceId}
      ${contactId === undefined ? sql`` : sql`and v.contact_id = ${toStorableId(contactId)}::bigint`}
      ${conversationId === undefined ? sql`` : sql`and v.id = ${toStorableId(conversationId)}::bigint`}`
  return await scanMessages(tx, search, messages, { indexed: true })
}

/** Scans messages that the index does not have yet: the newest ones. */
const scanTail = async (tx: Db, search: Keyed, indexedTo: string): Promise<Scanned> =>
  await scanMessages(
    tx,
    search,
    sql`select * from messages m where m.id > ${indexedTo}::bigint and ${inSpan(search, search, 'm', 'id')}`,
    { indexed: false },
  )

const findIds = async (tx: Db, search: Keyed, indexedTo: string): Promise<Scanned> => {
  if (search.channels?.length === 0) return { ids: [], end: null }
  if (search.contactId !== undefined || search.conversationId !== undefined)
    return await scanConversations(tx, search)
  // The tail before the index: what is indexed meanwhile is in both.
  const tail = await scanTail(tx, search, indexedTo)
  // Messages of the index from before its end may come after one of the tail that was not looked at.
  const from = tail.end ? later(tail.end.createdAt, search.from) : search.from
  return {
    ids: [...new Set([...tail.ids, ...(await walkMonths(tx, { ...search, from }))])],
    end: tail.end,
  }
}

/** What a search found. `searchedTo`: the message at which it stopped before the page was full; null: it did not. */
export type MessageSearchPage = {
  rows: MessageHitRow[]
  searchedTo: MessagePosition | null
}

/**
 * Returns the newest messages after a position that match, at most `limit`, and how far it came.
 */
export const searchMessageRows = async (tx: Db, search: MessageSearch): Promise<MessageSearchPage> => {
  const { workspaceId, channels, limit } = search
  const progress = await sql<{ indexed_to: string }>`
    select indexed_to from message_search_progress`.execute(tx)
  const { indexed_to: indexedTo } = progress.rows[0]!
  const keys = [...search.terms.flatMap((term) => term.keys), ...(await readFilterKeys(tx, search))]
  const { ids, end } = await findIds(tx, { ...search, keys }, indexedTo)
  if (ids.length === 0) return { rows: [], searchedTo: end }
  const { rows } = await sql<MessageHitRow>`
    select m.id, m.conversation_id, v.contact_id, c.name as contact_name, v.channel_id, m.direction, m.type,
      message_searched(m) as text,
      m.note, m.staff_id, s.name as staff_name, m.created_at
    from unnest(${ids}::bigint[]) as u (id)
      join messages m on m.workspace_id = ${workspaceId} and m.id = u.id
      join conversations v on v.workspace_id = ${workspaceId} and v.id = m.conversation_id
      left join contacts c on c.workspace_id = ${workspaceId} and c.id = v.contact_id
      left join staff s on s.workspace_id = ${workspaceId} and s.id = m.staff_id
    where ${channels === undefined ? sql`true` : sql`v.channel_id = any(${channels.map(toStorableId)}::bigint[])`}
      and m.text is not null
      ${end === null ? sql`` : sql`and (m.created_at, m.id) >= (${end.createdAt}::timestamptz, ${end.id}::bigint)`}
    ${newestMessages} limit ${sql.lit(limit)}`.execute(tx)
  return { rows, searchedTo: rows.length < limit ? end : null }
}
