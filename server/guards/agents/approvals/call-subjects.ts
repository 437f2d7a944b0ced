import { hash, randomBytes } from 'node:crypto'
import { findOperation, type Operation } from '../../../../catalog/index.ts'
import { isObject } from '../../../../catalog/values.ts'
import type { ApprovalRow } from '../../../../storage/agents/approvals.ts'
import type { Db } from '../../../../storage/database.ts'
import { findLiveKeyById } from '../../../../storage/access/keys.ts'
import { findLabels } from '../../../../storage/labels/labels.ts'
import type { App } from '../../../app.ts'
import type { Actor } from '../../../kernel/context.ts'
import { canonicalJson } from '../../../kernel/cursors.ts'
import { Problem } from '../../../kernel/problem.ts'
import { toActor } from '../../../kernel/authenticate.ts'
import { createRead, createRecordReader, type Read, type RecordReader } from '../../snapshot/read-records.ts'
import { findKeptId, toOwner } from '../../snapshot/plan.ts'
import { listReferences, records } from './call-records.ts'
import {
  type DescribedContact,
  describeContact,
  describeOptOuts,
  describeRecord,
  listNamed,
  listOthers,
  listTagSubjects,
  listUndoneOptOuts,
  type Subject,
} from './subject-records.ts'

/*
 * What a call acts on beyond its input, which may change while it waits: whom a contact has become by a merge, its
 * number, what it has declined, where a webhook endpoint leads and which events it gets. A person approves what they
 * were shown, so that is compared. Names of contacts are left out: customers change them, and a message goes to the
 * number.
 */

type Json = Record<string, unknown>

/** The same for every reader, and before and after phones are hidden from one. */
const seeAll = (actor: Actor): Actor => ({
  ...actor,
  staff: { ...actor.staff, role: 'owner', hidePhoneNumbers: false, channelIds: null },
  key: { ...actor.key, agent: false, phones: true },
})

/** `conversationId`: where a message goes, as a dry run answered it. `plan`: the token of the plan of the call. */
type Call = { input: Json; conversationId: string | undefined; plan: string | null | undefined }

/** Returns the conversation of a call, or of what its dry run answered. */
export const toConversationId = (record: Json | null): string | undefined => {
  const id = record?.['conversation_id']
  return typeof id === 'string' ? id : undefined
}

type Asked = { asker: Actor; op: Operation; call: Call; planId: string | undefined }

/** The contact of the conversation, or the one that is named: merged ones are read as those that they became. */
const findCustomer = async (
  db: Db,
  read: Read,
  { asker, call: { input, conversationId } }: Asked,
): Promise<Subject[]> => {
  const named = toConversationId(input) ?? conversationId
  const conversation =
    named === undefined ? null : await read('inbox_get_conversation', { conversation_id: named })
  const { contact: own } = conversation ?? {}
  const id = (isObject(own) ? own['id'] : undefined) ?? input['contact_id']
  // Always under the same names: what appears is a change too.
  if (typeof id !== 'string') return named === undefined ? [] : [['customer', null]]
  const contact = await read('crm_get_contact', { contact_id: id })
  return [
    ...describeContact('customer', contact as DescribedContact | null),
    ['customer_dnd', contact && contact['dnd']],
    await describeOptOuts(db, asker.workspace.id, contact?.['id']),
  ]
}

/** Where a delivery is sent again. */
const describeDelivery = async (
  readRecord: RecordReader,
  name: string,
  delivery: Json | null,
): Promise<Subject[]> => {
  const id = delivery?.['endpoint_id']
  const endpoint = typeof id === 'string' ? await readRecord({ kind: 'endpoint', id }) : null
  return describeRecord(`${name}_endpoint`, 'endpoint', endpoint)
}

/** The records that fields of the input name by their ids. */
const listRecordSubjects = async (
  readRecord: RecordReader,
  { asker, op, call: { input }, planId }: Asked,
  db: Db,
): Promise<Subject[]> => {
  const subjects: Subject[] = []
  for (const [field, id] of listReferences(op, input)) {
    const { kind } = records[field]!
    // What a job was begun with stays; who matches a filter is the plan of the call; lists of these are read whole.
    if (kind === 'job' || kind === 'conversation' || (kind === 'saved_filter' && planId !== undefined))
      continue
    if (kind === 'contact' && !(field in input)) continue
    const name = field.replace(/_id$/, '')
    const record =
      kind === 'tag' || kind === 'group'
        ? ((await findLabels(db, asker.workspace.id, kind, [id], []))[0] ?? null)
        : await readRecord({ kind, id })
    if (kind === 'contact') subjects.push(...describeContact(name, record as DescribedContact | null))
    else subjects.push(...describeRecord(name, kind, record))
    if (kind === 'delivery') subjects.push(...(await describeDelivery(readRecord, name, record)))
  }
  return subjects
}

const listSubjects = async (app: App, db: Db, given: Omit<Asked, 'planId'>): Promise<Subject[]> => {
  const { asker, op, call } = given
  const { input } = call
  const planId = findKeptId(app, toOwner(asker), call.plan)
  const asked = { ...given, planId }
  const scope = { db, workspaceId: asker.workspace.id, input, planId }
  const read = createRead(app, db, seeAll(asker))
  return [
    ['call', [op.name, input]],
    ...(await findCustomer(db, read, asked)),
    ...(await listRecordSubjects(createRecordReader(read), asked, db)),
    ...(await listNamed(scope)),
    ...(await listUndoneOptOuts(scope)),
    ...(await listTagSubjects(scope)),
    ...(await listOthers(read, scope)),
  ]
}

export const createSalt = (): string => randomBytes(16).toString('base64url')

/**
 * Returns what a call acts on, as digests by name: two of them tell which have changed. `salt`: nobody can try values
 * without it, such as phone numbers. `call`: as it is stored.
 */
export const readSubjects = async (
  app: App,
  db: Db,
  { salt, ...named }: { asker: Actor; op: Operation; call: Call; salt: string },
): Promise<string> => {
  const texts = Map.groupBy(await listSubjects(app, db, named), ([name]) => name)
  return (
    [...texts]
      .map(([name, values]) => {
        const text = values.map(([, value]) => canonicalJson(value ?? null)).sort()
        return `${name}:${hash('sha256', `${salt}\n${name}\n${text.join('\n')}`, 'base64url').slice(0, 10)}`
      })
      // Fields come in another order from the database.
      .sort()
      .join('.')
  )
}

const getName = (part: string): string => part.split(':')[0]!

/**
 * Returns the names of what differs between two versions. A name that only the present one has is of a later release,
 * which compares more: what it was before is not known.
 */
const listChanged = (before: string, now: string): string[] => {
  const [shown, present] = [before.split('.'), now.split('.')]
  const known = new Set(shown.map(getName))
  const differing = [
    ...present.filter((part) => known.has(getName(part)) && !shown.includes(part)),
    ...shown.filter((part) => !present.includes(part)),
  ]
  return [...new Set(differing.map(getName))]
}

/** Returns what a request acts on otherwise than at a version; undefined where nothing, or nothing is known. */
const findChanged = async (
  app: App,
  asker: Actor,
  row: ApprovalRow,
  before: string | null,
): Promise<string[] | undefined> => {
  const now = await readStored(app, app.db, asker, row)
  const changed = before === null || now === null ? [] : listChanged(before, now)
  return changed.length === 0 ? undefined : changed
}

const readStored = async (
  app: App,
  db: Db,
  asker: Actor,
  { operation, input, preview, plan, summary_salt: salt }: ApprovalRow,
): Promise<string | null> => {
  const op = findOperation(operation)
  if (!op || salt === null) return null
  const call = { input, conversationId: toConversationId(preview), plan }
  return await readSubjects(app, db, { asker, op, call, salt })
}

/** Returns the present version of what a request acts on; null where it was stored without, or its key has ended. */
export const readRequestVersion = async (app: App, db: Db, row: ApprovalRow): Promise<string | null> => {
  const key = await findLiveKeyById(db, row.workspace_id, row.key_id, app.now())
  return key ? await readStored(app, db, toActor(key), row) : null
}

const subjectChangedProblem = (changed: readonly string[], since: string, fix: string): Problem =>
  new Problem('conflict', `Changed since the call was ${since}: ${changed.join(', ')}. ${fix}`, {
    reason: 'subject_changed',
    changed,
  })

/**
 * Throws 409 `subject_changed` where an approval is of something else than what the request acts on now. `shown`: the
 * version that the approver saw; undefined: what it acted on when it was asked for.
 */
export const requireSameSubjects = async (
  app: App,
  asker: Actor,
  row: ApprovalRow,
  shown: string | undefined,
): Promise<void> => {
  const changed = await findChanged(app, asker, row, shown ?? row.summary_version)
  if (changed)
    throw subjectChangedProblem(
      changed,
      shown === undefined ? 'asked for' : 'shown',
      'Read it again with approvals_get and approve it with its summary_version, or decline it.',
    )
}

/** Throws 409 `subject_changed` where an approved request, which is about to run, acts on something else by now. */
export const requireApprovedSubjects = async (app: App, asker: Actor, row: ApprovalRow): Promise<void> => {
  const changed = await findChanged(app, asker, row, row.summary_version)
  if (changed) throw subjectChangedProblem(changed, 'approved', 'It did not run. Ask for it again.')
}
