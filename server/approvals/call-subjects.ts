import { hash, randomBytes } from 'node:crypto'
import { findOperation, type Operation } from '../../catalog/index.ts'
import { isObject } from '../../catalog/values.ts'
import type { ApprovalRow } from '../../storage/approvals.ts'
import type { Db } from '../../storage/database.ts'
import { findLiveKeyById } from '../../storage/keys.ts'
import type { App } from '../core/app.ts'
import type { Actor } from '../core/context.ts'
import { canonicalJson } from '../core/cursors.ts'
import { Problem } from '../core/problem.ts'
import { toActor } from '../core/steps/authenticate.ts'
import { createRead, createRecordReader, type Read } from '../core/read-records.ts'
import { listReferences, records } from './call-records.ts'

/*
 * What a call acts on beyond its input, which may change while it waits: whom a contact has become by a merge, its
 * number, where a webhook endpoint leads. A person approves what they were shown, so that is compared. Names of
 * contacts are left out: customers change them, and a message goes to the number.
 */

type Json = Record<string, unknown>
type Subject = readonly [name: string, value: unknown]

/** What makes a record another one, or tells what becomes of it; counts and states change all the time. */
const IDENTITY = [
  'name',
  'title',
  'label',
  'key',
  'url',
  'message',
  'event_type_id',
  'language',
  'filter',
  'role',
  'identifier',
]

/** The same for every reader, and before and after phones are hidden from one. */
const seeAll = (actor: Actor): Actor => ({
  ...actor,
  staff: { ...actor.staff, role: 'owner', hidePhoneNumbers: false, channelIds: null },
  key: { ...actor.key, agent: false, phones: true },
})

/** `conversationId`: where a message goes, as a dry run answered it. */
type Call = { input: Json; conversationId: string | undefined }

/** Returns the conversation of a call, or of what its dry run answered. */
export const toConversationId = (record: Json | null): string | undefined => {
  const id = record?.['conversation_id']
  return typeof id === 'string' ? id : undefined
}

const pick = (record: Json | null): Json | null =>
  record && Object.fromEntries(IDENTITY.map((name) => [name, record[name]]))

/** The address is what a message goes to: of the others, some become known by themselves. */
const describeContact = (name: string, contact: Json | null): Subject[] => [
  [name, contact && contact['id']],
  [
    contact?.['phone'] === null ? `${name}_address` : `${name}_phone`,
    contact && (contact['phone'] ?? contact['chatapp_user_id'] ?? contact['web_visitor_id']),
  ],
]

/** The contact of the conversation, or the one that is named: merged ones are read as those that they became. */
const findCustomer = async (read: Read, { input, conversationId }: Call): Promise<Subject[]> => {
  const named = toConversationId(input) ?? conversationId
  const conversation =
    named === undefined ? null : await read('inbox_get_conversation', { conversation_id: named })
  const { contact: own } = conversation ?? {}
  const id = (isObject(own) ? own['id'] : undefined) ?? input['contact_id']
  if (typeof id !== 'string') return []
  const contact = await read('crm_get_contact', { contact_id: id })
  return [...describeContact('customer', contact), ['customer_dnd', contact && contact['dnd']]]
}

const listSubjects = async (
  app: App,
  db: Db,
  { asker, op, call }: { asker: Actor; op: Operation; call: Call },
): Promise<Subject[]> => {
  const { input } = call
  const read = createRead(app, db, seeAll(asker))
  const readRecord = createRecordReader(read)
  const subjects = await findCustomer(read, call)
  for (const [field, id] of listReferences(op, input)) {
    const { kind } = records[field]!
    // What a job was begun with stays; who matches a filter is the plan of the call.
    if (kind === 'job' || kind === 'conversation' || (kind === 'saved_filter' && 'plan_id' in input)) continue
    const record = await readRecord({ kind, id })
    const name = field.replace(/_id$/, '')
    subjects.push(...(kind === 'contact' ? describeContact(name, record) : [[name, pick(record)] as const]))
  }
  return [['call', [op.name, input]], ...subjects]
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

/** Returns the names of what differs between two versions. */
const listChanged = (before: string, now: string): string[] => {
  const [shown, present] = [before.split('.'), now.split('.')]
  const differing = [
    ...present.filter((part) => !shown.includes(part)),
    ...shown.filter((part) => !present.includes(part)),
  ]
  return [...new Set(differing.map((part) => part.split(':')[0]!))]
}

/** Returns what a request acts on otherwise than at a version; undefined where nothing, or nothing is known. */
const findChanged = async (
  app: App,
  asker: Actor,
  row: ApprovalRow,
  before: string | null,
): Promise<string[] | undefined> => {
  const now = await readStored(app, app.db, asker, row)
  return before === null || now === null || before === now ? undefined : listChanged(before, now)
}

const readStored = async (
  app: App,
  db: Db,
  asker: Actor,
  { operation, input, preview, summary_salt: salt }: ApprovalRow,
): Promise<string | null> => {
  const op = findOperation(operation)
  if (!op || salt === null) return null
  const call = { input, conversationId: toConversationId(preview) }
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
