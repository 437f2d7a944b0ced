import { randomBytes } from 'node:crypto'
import { isObject } from '../../../catalog/values.ts'
import type { Db } from '../../../storage/database.ts'
import type { ErasureCounts } from '../../../storage/privacy/erasures.ts'
import {
  clearAttempts,
  clearDecisions,
  type ColumnChange,
  type ScannedName,
  type ScannedRow,
  type SubjectPatterns,
  scannedTables,
  scanPage,
  updateEventData,
  updateScannedRow,
} from '../../../storage/privacy/erasure-scans.ts'
import type { ErasureSubject } from '../../../storage/tables/erasures.ts'
import { containsPattern, fold } from '../../../storage/values/text.ts'
import { ERASED, scrubEvent } from './scrub-event.ts'
import { createScrubber, type Scrubber, wipe } from './scrub.ts'

/**
 * What becomes of a row; undefined: it is not about the person. `event`: what becomes of the event that it delivers.
 * `isOpen`: it will be once its call has ended.
 */
type Change =
  | {
      columns?: Record<string, ColumnChange>
      event?: { id: string; data: unknown }
      isOpen?: boolean
    }
  | undefined

type Treat = (row: ScannedRow, scrubber: Scrubber, subject: ErasureSubject) => Change

const cleared = (type: ColumnChange['type'] = 'text'): ColumnChange => ({
  type,
  value: null,
})
const toJson = (type: 'json' | 'jsonb', value: unknown): ColumnChange => ({
  type,
  value,
})
/** In place of a digest, from which an input can be guessed: no call has it. */
const noDigest = (): ColumnChange => ({
  type: 'bytea',
  value: randomBytes(32),
})

const treatEvent: Treat = ({ type, data }, scrubber) =>
  scrubber.concerns(data)
    ? { columns: { data: toJson('jsonb', scrubEvent(String(type), data, scrubber)) } }
    : undefined

/** What is delivered is the payload, or the data of the event, which is emptied too: it may be sent again at once. */
const treatDelivery: Treat = (
  { payload, event_id: eventId, event_type: type, searched },
  scrubber,
): Change => {
  const data: unknown = JSON.parse(searched)
  if (!scrubber.concerns(data)) return undefined
  const scrubbed = scrubEvent(String(type), data, scrubber)
  return payload === null
    ? { columns: {}, event: { id: String(eventId), data: scrubbed } }
    : { columns: { payload: toJson('jsonb', scrubbed) } }
}

/** Saved filters may look for a name. What was recorded of such a change is emptied whole. */
const namesInFilter = (operation: unknown, value: unknown, isNamed: Scrubber['isNamed']): boolean =>
  String(operation).includes('saved_filter') && isNamed(JSON.stringify(value), 'filter', true)

const treatAudit: Treat = (row, { concerns, scrub, isNamed, isListed }, subject) => {
  const { target_type: type, target_id: id, changes } = row
  const target = id === null ? '' : String(id)
  const isTarget =
    (type === 'contact' && subject.contactIds.includes(target)) ||
    (type === 'conversation' && subject.conversationIds.includes(target))
  const isNamedTarget = isNamed(target, `${String(type)}_id`)
  const isWhole =
    isTarget || isNamedTarget || isListed(changes) || namesInFilter(row['operation'], changes, isNamed)
  if (!isWhole && !concerns(changes)) return undefined
  return {
    columns: {
      changes: toJson('json', isWhole ? wipe(changes) : scrub(changes)),
      ...(isNamedTarget ? { target_id: cleared() } : {}),
    },
  }
}

/** Whether a call of an agent is about the person, or about several of whom the person is one. */
export const isCallAbout = (
  row: Readonly<Record<string, unknown>>,
  { concerns, isListed }: Scrubber,
  { contactIds }: ErasureSubject,
): boolean =>
  contactIds.includes(String(row['contact_id'])) ||
  concerns([row['input'], row['preview'], row['edited'], row['outcome']]) ||
  isListed({ input: row['input'], edited: row['edited'] })

/** One about the person that waits was asked for after the erasure, which cancelled the others. */
const treatApproval: Treat = (row, scrubber, subject) => {
  if (!isCallAbout(row, scrubber, subject)) {
    const named = ['reason', 'note'].filter((name) => scrubber.isNamed(String(row[name] ?? ''), name))
    if (named.length === 0) return undefined
    return {
      columns: Object.fromEntries(named.map((name) => [name, cleared()])),
    }
  }
  const waits = row['status'] === 'pending' || row['status'] === 'approved'
  if (waits && row['operation'] !== 'crm_erase_contact') return undefined
  return {
    columns: {
      input: toJson('jsonb', wipe(row['input'])),
      preview: cleared('jsonb'),
      edited: cleared('jsonb'),
      outcome: toJson('jsonb', null),
      secrets: cleared(),
      reason: cleared(),
      note: cleared(),
      idempotency_key: cleared(),
      plan: cleared(),
      summary_version: cleared(),
      summary_salt: cleared(),
      digest: noDigest(),
    },
  }
}

const treatJobBatch: Treat = ({ calls, failures, undo }, { concerns, scrub }) => {
  const columns = Object.fromEntries(
    Object.entries({ calls, failures, undo })
      .filter(([, value]) => concerns(value))
      .map(([name, value]) => [name, toJson('jsonb', scrub(value))] as const),
  )
  return Object.keys(columns).length > 0 ? { columns } : undefined
}

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** A repeat of the call is refused then: it may not bring the person back, and its answer is gone. */
const treatAnswer: Treat = (row, { concerns, isNamed }) => {
  if (row['operation'] === 'crm_erase_contact') return undefined
  const [, key = ''] = row.key
  const isKey = isNamed(key)
  const body = row['body'] === null ? null : parse(String(row['body']))
  const isFilter = namesInFilter(row['operation'], body, isNamed)
  if (!isKey && !isFilter && !concerns([row['intent'], body])) return undefined
  if (row['state'] === 'running') return { isOpen: true }
  return {
    columns: {
      fingerprint: noDigest(),
      intent: cleared('jsonb'),
      body: { type: 'text', value: '{}' },
      ...(isKey
        ? {
            key: {
              type: 'text',
              value: `erased-${randomBytes(12).toString('hex')}`,
            },
          }
        : {}),
    },
  }
}

const replaceLiterals = (value: unknown, isNamed: Scrubber['isNamed'], path = ''): unknown => {
  if (typeof value === 'string') return isNamed(value, path, true) ? ERASED : value
  if (Array.isArray(value)) return value.map((one) => replaceLiterals(one, isNamed, path))
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [name, replaceLiterals(one, isNamed, `${path} ${name}`)]),
  )
}

const treatSavedFilter: Treat = ({ key: [id], name, description, filter }, { isNamed }) => {
  const replaced = replaceLiterals(filter, isNamed)
  const isNameOf = (text: unknown): boolean => typeof text === 'string' && isNamed(text, 'phone', true)
  const newName = isNameOf(name) ? `Erased ${id}` : undefined
  const isChanged = JSON.stringify(replaced) !== JSON.stringify(filter)
  if (!isChanged && newName === undefined && !isNameOf(description)) return undefined
  return {
    columns: {
      filter: toJson('jsonb', replaced),
      ...(isNameOf(description) ? { description: cleared() } : {}),
      ...(newName === undefined
        ? {}
        : {
            name: { type: 'text', value: newName },
            name_key: { type: 'text', value: fold(newName) },
          }),
    },
  }
}

const toInput = (input: unknown, replaced: unknown): Change =>
  JSON.stringify(replaced) === JSON.stringify(input)
    ? undefined
    : { columns: { input: toJson('jsonb', replaced) } }

/** Of a job that has not ended too: it may set no value that names the person. */
const treatJob: Treat = ({ input, is_theirs: isTheirs }, { isNamed }) =>
  toInput(input, isTheirs ? wipe(input) : replaceLiterals(input, isNamed))

const isText = (_: string, path = ''): boolean => /(?:text|fallback|value|title)$/.test(path)

/** Others get what a broadcast says until it ends: it is looked at again then. */
const treatSend: Treat = ({ input, is_theirs: isTheirs, is_busy: isRunning }, { isNamed }) => {
  if (isTheirs) return toInput(input, replaceLiterals(input, isText))
  const change = toInput(
    input,
    replaceLiterals(input, (text, path) => isNamed(text, path)),
  )
  return change && isRunning ? { isOpen: true } : change
}

const treatments: Readonly<Record<ScannedName, Treat>> = {
  webhook_deliveries: treatDelivery,
  events: treatEvent,
  audit_log: treatAudit,
  approvals: treatApproval,
  bulk_job_batches: treatJobBatch,
  idempotency: treatAnswer,
  saved_filters: treatSavedFilter,
  bulk_jobs: treatJob,
  broadcast_sends: treatSend,
}

/** Patterns of texts that may be about the person: their ids in quotes, and what else identifies them. */
export const toPatterns = ({
  contactIds,
  conversationIds,
  phones,
  texts,
}: ErasureSubject): SubjectPatterns => ({
  texts: [
    ...[...contactIds, ...conversationIds].map((id) => containsPattern(`"${id}"`)),
    ...texts
      .flatMap((text) => [text, fold(text)])
      .map((text) => containsPattern(JSON.stringify(text).slice(1, -1))),
  ],
  phones: phones.map(containsPattern),
  contactIds,
  conversationIds,
})

type ScanResult = {
  counts: ErasureCounts
  position: string[] | null
  /** A call about the person has not ended: what it writes is to be looked for again. */
  isOpen: boolean
}

/** What goes with rows of a table. */
const treatRelated = async (
  tx: Db,
  workspaceId: string,
  name: ScannedName,
  ids: readonly string[],
): Promise<ErasureCounts> => {
  if (name === 'webhook_deliveries')
    return {
      webhook_attempts: { cleared: await clearAttempts(tx, workspaceId, ids) },
    }
  if (name === 'approvals')
    return {
      audit_log: { cleared: await clearDecisions(tx, workspaceId, ids) },
    }
  return {}
}

/** Treats the next page of a table; undefined when somebody works on one of its rows, unless that is `ignored`. */
export const treatPage = async (
  tx: Db,
  workspaceId: string,
  name: ScannedName,
  subject: ErasureSubject,
  { after, limit, ignoreBusy }: { after: string[] | null; limit: number; ignoreBusy: boolean },
): Promise<ScanResult | undefined> => {
  const table = scannedTables[name]
  const scrubber = createScrubber(subject)
  const patterns = toPatterns(subject)
  const { rows, position } = await scanPage(tx, workspaceId, table, {
    after,
    limit,
    patterns,
  })
  const treated: ScannedRow[] = []
  let isOpen = false
  for (const row of rows) {
    const change = treatments[name](row, scrubber, subject)
    isOpen ||= change?.isOpen ?? false
    if (!change?.columns) continue
    // The texts of a broadcast that runs are nobody's but the person's then, who gets nothing any more.
    if (row.is_busy && !ignoreBusy && name !== 'broadcast_sends') return undefined
    treated.push(row)
    if (change.event) await updateEventData(tx, workspaceId, change.event.id, change.event.data)
    if (Object.keys(change.columns).length > 0)
      await updateScannedRow(tx, workspaceId, table, row, change.columns)
  }
  const ids = treated.map(({ key }) => key[0]!)
  const related = await treatRelated(tx, workspaceId, name, ids)
  return {
    counts: { [name]: { cleared: treated.length }, ...related },
    position,
    isOpen,
  }
}
