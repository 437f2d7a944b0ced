import { isObject } from '../../../catalog/values.ts'
import type { Db } from '../../../storage/database.ts'
import type { ScannedName } from '../../../storage/privacy/erasure-scans.ts'
import {
  listAttempts,
  listJobOperations,
  listPersonMessages,
  listPersonRows,
  listScannedRows,
  personTableNames,
  type TableName,
} from '../../../storage/privacy/person-rows.ts'
import type { ErasureSubject } from '../../../storage/tables/erasures.ts'
import { getIdField } from '../bulk-jobs/records.ts'
import { toPatterns } from '../erasures/scans.ts'
import { createScrubber, type Scrubber } from '../erasures/scrub.ts'

/* The rows of a person in each table, without what in them is about other people. */

type Row = Record<string, unknown>

/** A page of rows; `position` is where it goes on, null at the end. `counts`: of tables whose rows are in them. */
type Page = {
  rows: Row[]
  position: string[] | null
  counts: Record<string, number>
}

type PageOptions = { after: string[] | null; limit: number }

/** What is read for one file of the archive. */
export type Source = {
  readonly table: TableName
  readonly read: (db: Db, workspaceId: string, subject: ErasureSubject, options: PageOptions) => Promise<Page>
}

const toPage = (table: string, rows: Row[], position: string[] | null): Page => ({
  rows,
  position,
  counts: { [table]: rows.length },
})

/** Rows that name others beside the person, or only quote their identifiers. */
const narrow: Partial<
  Record<TableName, (row: Row, subject: ErasureSubject, picker: Picker) => Row | undefined>
> = {
  // Another customer's message may have the person's phone in it.
  provider_updates: (row, _, { identifies }) => {
    const { payload } = row
    const isTheirs =
      !isObject(payload) || Object.values(payload).some((part) => isObject(part) && identifies(part))
    return isTheirs ? row : undefined
  },
  contact_reads: (row, { contactIds }) => ({
    ...row,
    contacts: (row['contacts'] as string[]).filter((id) => contactIds.includes(id)),
  }),
  phone_budgets: (row, { phones }) => ({
    ...row,
    phones: (row['phones'] as string[]).filter((phone) => phones.includes(phone)),
  }),
}

const listedSources: Source[] = personTableNames.map((table) => ({
  table,
  read: async (db, workspaceId, subject, options) => {
    const { rows, position } = await listPersonRows(db, workspaceId, table, subject, options)
    const picker = createPicker(subject)
    const kept = rows.flatMap((row) => {
      const narrowed = narrow[table] ? narrow[table](row, subject, picker) : row
      return narrowed ? [narrowed] : []
    })
    return toPage(table, kept, position)
  },
}))

const messagesSource: Source = {
  table: 'messages',
  read: async (db, workspaceId, subject, options) => {
    const { rows, position } = await listPersonMessages(db, workspaceId, subject, options)
    return {
      rows,
      position,
      counts: {
        messages: rows.length,
        message_reactions: rows.reduce((sum, row) => sum + (row['reactions'] as Row[]).length, 0),
        media: rows.filter((row) => row['media'] !== null).length,
      },
    }
  },
}

const parse = (text: unknown): unknown => {
  try {
    return JSON.parse(String(text))
  } catch {
    return text
  }
}

/** Returns a row with these columns reduced to what is about the person; undefined when nothing is. */
const pickColumns = (row: Row, columns: readonly string[], { pick }: Picker): Row | undefined => {
  const picked = columns.map((column) => [column, pick(row[column])] as const)
  if (picked.every(([, value]) => value === undefined)) return undefined
  return {
    ...row,
    ...Object.fromEntries(picked.map(([column, value]) => [column, value ?? null])),
  }
}

type Reduce = (row: Row, picker: Picker, subject: ErasureSubject, searched: string) => Row | undefined

const hasText = (value: unknown): boolean =>
  typeof value === 'object' && value !== null ? Object.values(value).some(hasText) : typeof value === 'string'

/** What was recorded of a saved filter, which may name anybody: the person's texts alone. */
const reduceFilterCall = (row: Row, column: string, { pickLiterals }: Picker): Row | undefined => {
  const picked = pickLiterals(row[column])
  return hasText(picked) ? { ...row, [column]: picked } : undefined
}

const isOfFilter = ({ operation }: Row): boolean => String(operation).includes('saved_filter')

const reduceAudit: Reduce = (row, picker, { contactIds, conversationIds }) => {
  if (isOfFilter(row)) return reduceFilterCall(row, 'changes', picker)
  const { target_type: type, target_id: target } = row
  const isTarget =
    (type === 'contact' && contactIds.includes(String(target))) ||
    (type === 'conversation' && conversationIds.includes(String(target)))
  return isTarget
    ? { ...row, changes: picker.pickWhole(row['changes']) }
    : pickColumns(row, ['changes'], picker)
}

const APPROVAL_COLUMNS = ['input', 'preview', 'edited', 'outcome', 'view']

const reduceApproval: Reduce = (row, picker, { contactIds }) => {
  if (!contactIds.includes(String(row['contact_id'])))
    // What staff wrote of a call about several people may be about any of them.
    return pickColumns({ ...row, reason: null, note: null }, APPROVAL_COLUMNS, picker)
  const whole = APPROVAL_COLUMNS.map((column) => [column, picker.pickWhole(row[column])])
  return { ...row, ...Object.fromEntries(whole) }
}

const reduceBatch: Reduce = (row, picker, { contactIds, conversationIds }) => {
  const isOfConversations = getIdField(String(row['operation'])) === 'conversation_ids'
  const ids = isOfConversations ? conversationIds : contactIds
  const own = (row['record_ids'] as string[]).filter((id) => ids.includes(id))
  const picked = pickColumns(row, ['calls', 'failures', 'undo'], picker)
  if (!picked && own.length === 0) return undefined
  return {
    ...(picked ?? { ...row, calls: null, failures: null, undo: null }),
    record_ids: own,
  }
}

const reduceSavedFilter: Reduce = (row, { pickLiterals }) => {
  const picked = Object.fromEntries(
    ['name', 'description', 'filter'].map((column) => [column, pickLiterals(row[column])]),
  )
  return hasText(picked) ? { ...row, ...picked } : undefined
}

/** Of inputs of jobs and broadcasts nothing is exported: what was written to the person is in messages. */
type ExportedScan = Exclude<ScannedName, 'bulk_jobs' | 'broadcast_sends'>

const reductions: Readonly<Record<ExportedScan, Reduce>> = {
  events: (row, picker) => pickColumns(row, ['data'], picker),
  webhook_deliveries: (row, picker, _, searched) => {
    // Most have no payload of their own, but that of their event.
    const data = parse(searched)
    const picked = picker.pick(data)
    if (picked === undefined) return undefined
    const isWhole = JSON.stringify(picked) === JSON.stringify(data)
    return {
      ...row,
      payload: row['payload'] === null ? null : picked,
      isWhole,
    }
  },
  audit_log: reduceAudit,
  approvals: reduceApproval,
  bulk_job_batches: reduceBatch,
  idempotency: (given, picker) => {
    const row = { ...given, body: parse(given['body']) }
    return isOfFilter(row)
      ? reduceFilterCall(row, 'body', picker)
      : pickColumns(row, ['intent', 'body'], picker)
  },
  saved_filters: reduceSavedFilter,
}

/** Adds the attempts that were made of deliveries; what was answered to one that told of others too is left out. */
const addAttempts = async (db: Db, workspaceId: string, deliveries: Row[]): Promise<Page['rows']> => {
  const attempts = await listAttempts(
    db,
    workspaceId,
    deliveries.map(({ id }) => String(id)),
  )
  const byDelivery = Map.groupBy(attempts, (attempt) => attempt.delivery_id)
  return deliveries.map(({ isWhole, ...row }) => ({
    ...row,
    made: (byDelivery.get(String(row['id'])) ?? []).map((attempt) =>
      isWhole ? attempt : { ...attempt, response_excerpt: null, error: null },
    ),
  }))
}

/** Adds to batches of jobs what the jobs do. */
const addOperations = async (db: Db, workspaceId: string, batches: Row[]): Promise<Row[]> => {
  const operations = await listJobOperations(
    db,
    workspaceId,
    batches.map((row) => String(row['job_id'])),
  )
  return batches.map((row) => ({
    ...row,
    operation: operations.get(String(row['job_id'])),
  }))
}

const scannedSource = (table: ExportedScan): Source => ({
  table,
  read: async (db, workspaceId, subject, options) => {
    const found = await listScannedRows(db, workspaceId, table, subject, {
      ...options,
      patterns: toPatterns(subject),
    })
    const rows = table === 'bulk_job_batches' ? await addOperations(db, workspaceId, found.rows) : found.rows
    const picker = createPicker(subject)
    const kept = rows.flatMap(({ searched, ...row }) => {
      const reduced = reductions[table](row, picker, subject, String(searched))
      return reduced ? [reduced] : []
    })
    if (table !== 'webhook_deliveries') return toPage(table, kept, found.position)
    const deliveries = await addAttempts(db, workspaceId, kept)
    const attempts = deliveries.reduce((sum, row) => sum + (row['made'] as Row[]).length, 0)
    return {
      ...toPage(table, deliveries, found.position),
      counts: { [table]: kept.length, webhook_attempts: attempts },
    }
  },
})

/** What is read, in order: exports that are running know them by number, so that new ones come at the end. */
export const sources: readonly Source[] = [
  ...listedSources,
  messagesSource,
  scannedSource('events'),
  scannedSource('webhook_deliveries'),
  scannedSource('audit_log'),
  scannedSource('approvals'),
  scannedSource('bulk_job_batches'),
  scannedSource('idempotency'),
  scannedSource('saved_filters'),
]

/*
 * Takes out of JSON what is about a person: events, answers and the like may tell of many at once. What is another
 * person's is left out; what is nobody's in particular, such as a tag, stays.
 */

type Json = Record<string, unknown>

const CONTACT_LIST = /contact_ids$/
const CONVERSATION_LIST = /conversation_ids$/
/** Lists of what is no person. */
const LABELS = /^(?:tags|groups|attributes|channels|types|fields|options|components|buttons)$/

type Picker = {
  /** Returns what of a value is about the person; undefined when nothing is. */
  readonly pick: (value: unknown) => unknown
  /** Returns all of a value that is about the person, but for what in it is another person's. */
  readonly pickWhole: (value: unknown) => unknown
  /** Returns the texts in a value that are the person's, and null in place of all others. */
  readonly pickLiterals: (value: unknown) => unknown
  /** Whether an object has a value that identifies the person. */
  readonly identifies: (object: Json) => boolean
}

/** Finds whether values have something of the person. */
const createFinder = (subject: ErasureSubject, { concerns, whose }: Scrubber) => {
  const contacts = new Set(subject.contactIds)
  const conversations = new Set(subject.conversationIds)

  /** Returns the ids that are the person's; undefined when the list is not of ids. */
  const pickIds = (name: string, list: readonly unknown[]): unknown[] | undefined => {
    const own = CONTACT_LIST.test(name) ? contacts : CONVERSATION_LIST.test(name) ? conversations : undefined
    return own && list.filter((id) => own.has(String(id)))
  }

  const holds = (value: unknown, name = ''): boolean => {
    if (concerns(value, name)) return true
    if (Array.isArray(value))
      return (pickIds(name, value)?.length ?? 0) > 0 || value.some((one) => holds(one, name))
    return isObject(value) && Object.entries(value).some(([field, one]) => holds(one, field))
  }

  /** Whether ids or identifiers in it are the person's: a text that names them may be somebody else's. */
  const holdsIds = (value: unknown, name: string): boolean => {
    if (Array.isArray(value))
      return (pickIds(name, value)?.length ?? 0) > 0 || value.some((one) => holdsIds(one, name))
    return (
      isObject(value) &&
      (whose(value, name) === 'theirs' || Object.entries(value).some(([field, one]) => holdsIds(one, field)))
    )
  }
  return { pickIds, holds, holdsIds }
}

/** Returns a function that takes what is about the person out of a value; undefined where nothing is. */
const createTaker = ({ whose }: Scrubber, { pickIds, holds, holdsIds }: ReturnType<typeof createFinder>) => {
  const takeList = (list: readonly unknown[], name: string, isTheirs: boolean): unknown[] =>
    pickIds(name, list) ??
    list.flatMap((one) => {
      const isKept = isTheirs || LABELS.test(name) || !isObject(one) || holds(one, name)
      const taken = isKept ? take(one, name, isTheirs) : undefined
      return taken === undefined ? [] : [taken]
    })

  /** Of an object about somebody else, only what in it is about the person. */
  const takeFromAnother = (object: Json): Json | undefined => {
    const members = Object.entries(object)
      .filter(([field, one]) => typeof one === 'object' && one !== null && holdsIds(one, field))
      .map(([field, one]) => [field, take(one, field, false)])
    return members.length > 0 ? (Object.fromEntries(members) as Json) : undefined
  }

  /** `isTheirs`: it is within an object about the person. */
  const take = (value: unknown, name: string, isTheirs: boolean): unknown => {
    if (Array.isArray(value)) return takeList(value, name, isTheirs)
    if (!isObject(value)) return value
    const owner = whose(value, name)
    if (owner === 'anothers') return takeFromAnother(value)
    const members = Object.entries(value).flatMap(([field, one]) => {
      const taken = take(one, field, isTheirs || owner === 'theirs')
      return taken === undefined ? [] : [[field, taken] as const]
    })
    return Object.fromEntries(members)
  }
  return take
}

const createPicker = (subject: ErasureSubject): Picker => {
  const scrubber = createScrubber(subject)
  const finder = createFinder(subject, scrubber)
  const take = createTaker(scrubber, finder)
  const identifiers = new Set([...subject.phones, ...subject.texts])

  const pickLiterals = (value: unknown, path = ''): unknown => {
    if (typeof value === 'string') return scrubber.isNamed(value, path, true) ? value : null
    if (Array.isArray(value)) return value.map((one) => pickLiterals(one, path))
    if (!isObject(value)) return value
    return Object.fromEntries(
      Object.entries(value).map(([name, one]) => [name, pickLiterals(one, `${path} ${name}`)]),
    )
  }

  return {
    pick: (value) => {
      if (!finder.holds(value)) return undefined
      const taken = take(value, '', false)
      return taken !== undefined && finder.holds(taken) ? taken : undefined
    },
    pickWhole: (value) => take(value, '', true) ?? null,
    pickLiterals: (value) => pickLiterals(value),
    identifies: (object) =>
      Object.values(object).some((value) => typeof value === 'string' && identifiers.has(value)),
  }
}
