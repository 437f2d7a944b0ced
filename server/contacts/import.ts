import type { CustomFieldType } from '../../catalog/custom-fields.ts'
import { ImportRow } from '../../catalog/contacts.ts'
import {
  type BareContact,
  importFinale,
  insertContacts,
  type KnownContact,
  lockContactsByPhone,
  readKnownContacts,
  takenPhones,
} from '../../storage/contact-import.ts'
import { lockContactLimit } from '../../storage/contacts.ts'
import { readCounter } from '../../storage/counters.ts'
import { type FieldRow, listFields } from '../../storage/custom-fields.ts'
import type { Label } from '../../storage/labels.ts'
import type { Context } from '../core/context.ts'
import type { Handler, InputOf, OutputOf } from '../core/handler.ts'
import { Problem } from '../core/problem.ts'
import { parseFields } from '../core/steps/validate.ts'
import {
  chooseGroups,
  chooseTags,
  findGroups,
  findTags,
  givableFields,
  makeTags,
  noteUse,
  readPhone,
  readValues,
  tagsToMake,
  type ValueChanges,
} from './input.ts'
import { changesOf, emailChange, limitReached, noteAdded } from './upsert.ts'
import { eventContact } from './view.ts'

type Output = OutputOf<'crm_import_contacts'>
type Result = Output['results'][number]
type Failure = Output['failures'][number]
type Wanted = {
  row: number
  phone: string
  name: string | undefined
  values: ValueChanges
  tags: Label[]
  groups: Label[]
}

/**
 * Many upserts in a few statements, however many rows there are. Tags come first, then new contacts, then
 * locks on those that are there: the order of every writer, so that none waits for another in a circle.
 */
export const importContacts: Handler<InputOf<'crm_import_contacts'>, Output> = async (
  ctx,
  { rows: given },
) => {
  const failures: Failure[] = []
  const fields = givableFields(ctx, await listFields(ctx.tx, ctx.actor.workspace.id))
  const read = accept(
    failures,
    given.map((is, row) => ({ row, is })),
    ({ row, is }) => ({ row, ...readRow(fields, is) }),
  )
  const groups = await findGroups(
    ctx,
    read.flatMap((r) => r.groupIds),
  )
  const tags = await findTags(
    ctx,
    read.flatMap((r) => r.tagsGiven),
  )
  const known = accept(failures, read, (r) => ({
    ...r,
    groups: chooseGroups(groups, r.groupIds),
    toMake: tagsToMake(tags, r.tagsGiven),
  }))
  const requireRoom = await roomFor(
    ctx,
    known.map((r) => r.phone),
  )
  const kept = accept(failures, known, (r) => {
    requireRoom(r.phone)
    return r
  })
  const allTags = await makeTags(
    ctx,
    tags,
    kept.flatMap((r) => r.toMake),
    kept.flatMap((r) => r.tagsGiven),
  )
  await noteUse(
    ctx,
    kept.flatMap((r) => [...r.values]),
  )
  const results = await write(
    ctx,
    kept.map((r) => ({ ...r, tags: chooseTags(allTags, r.tagsGiven) })),
  )
  return answer(given.length, results, failures)
}

/** What `read` makes of the rows; those that it refuses become failures. */
const accept = <R extends { row: number }, T>(
  failures: Failure[],
  rows: readonly R[],
  read: (row: R) => T,
): T[] =>
  rows.flatMap((one) => {
    try {
      return [read(one)]
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      failures.push(failureOf(one.row, error))
      return []
    }
  })

const readRow = (fields: ReadonlyMap<string, FieldRow>, given: unknown) => {
  const {
    phone,
    name,
    email,
    attributes,
    tags: tagsGiven = [],
    group_ids: groupIds = [],
  } = parseFields(ImportRow, given)
  return {
    phone: readPhone(phone),
    name,
    values: readValues(fields, { email, attributes }),
    tagsGiven,
    groupIds,
  }
}

/**
 * Refuses the phones that the plan has no room for, first come first served. While it is asked, no other
 * call can add a contact.
 */
const roomFor = async (ctx: Context, phones: readonly string[]): Promise<(phone: string) => void> => {
  const { id: workspaceId, contactLimit } = ctx.actor.workspace
  if (contactLimit === null) return () => {}
  await lockContactLimit(ctx.tx, workspaceId)
  const admitted = new Set(await takenPhones(ctx.tx, workspaceId, phones))
  let room = contactLimit - (await readCounter(ctx.tx, workspaceId, 'contacts'))
  return (phone) => {
    if (admitted.has(phone)) return
    if (room <= 0) throw limitReached(contactLimit)
    room--
    admitted.add(phone)
  }
}

/** A contact as it is after the rows so far, and what they changed. */
type Person = Omit<KnownContact, 'tag_ids' | 'group_ids'> & {
  fresh: boolean
  rows: number
  differs: boolean
  changed: Map<string, CustomFieldType>
  tagIds: Set<string>
  groupIds: Set<string>
  newTags: string[]
  newGroups: string[]
}

/** Does the rows in their order, and leaves what is to be written of them to the end of the change. */
const write = async (ctx: Context, wanted: readonly Wanted[]): Promise<Result[]> => {
  const people = await gather(ctx, wanted)
  const results = wanted.map((one): Result => {
    const person = people.get(one.phone)!
    return {
      row: one.row,
      action: applyRow(ctx, person, one),
      id: ctx.dryRun && person.fresh ? null : person.id,
    }
  })
  const differing = [...people.values()].filter((person) => person.differs)
  if (differing.length > 0) ctx.finish(importFinale(ctx.actor.workspace.id, differing, ctx.now))
  return results
}

/**
 * The contacts of these rows by phone, created where there was none, and locked. New ones have their last
 * name and email from the start.
 */
const gather = async (ctx: Context, wanted: readonly Wanted[]): Promise<Map<string, Person>> => {
  const workspaceId = ctx.actor.workspace.id
  const bare = new Map<string, BareContact>()
  for (const { phone, name, values } of wanted) {
    const { name: nameBefore, email: emailBefore } = bare.get(phone) ?? { name: null, email: null }
    const email = emailChange(values)
    bare.set(phone, { phone, name: name ?? nameBefore, email: email === undefined ? emailBefore : email })
  }
  const people = new Map<string, Person>()
  const add = (known: KnownContact, fresh: boolean) => {
    const { tag_ids: tagIds, group_ids: groupIds, ...columns } = known
    people.set(known.phone, {
      ...columns,
      fresh,
      rows: 0,
      differs: fresh,
      changed: new Map(),
      tagIds: new Set(tagIds),
      groupIds: new Set(groupIds),
      newTags: [],
      newGroups: [],
    })
  }
  // Again for a contact that was there when it was to be created, and was deleted before it was locked.
  for (
    let missing = [...bare.values()];
    missing.length > 0;
    missing = missing.filter(({ phone }) => !people.has(phone))
  ) {
    for (const [phone, id] of await insertContacts(ctx.tx, workspaceId, missing, ctx.now)) {
      add(
        {
          id,
          phone,
          name: null,
          email: null,
          dnd: false,
          starred: false,
          created_at: ctx.now,
          updated_at: ctx.now,
          attrs: {},
          tag_ids: [],
          group_ids: [],
        },
        true,
      )
    }
    const taken = missing.flatMap(({ phone }) => (people.has(phone) ? [] : phone))
    const locked = taken.length > 0 ? await lockContactsByPhone(ctx.tx, workspaceId, taken) : []
    if (locked.length > 0)
      for (const known of await readKnownContacts(ctx.tx, workspaceId, locked)) add(known, false)
  }
  return people
}

/** Changes the person as an upsert would the contact, and notes the same events. */
const applyRow = (
  ctx: Context,
  person: Person,
  { name, values, tags, groups }: Wanted,
): 'created' | 'updated' | 'unchanged' => {
  const created = person.fresh && person.rows++ === 0
  const {
    changes: { values: attributes, ...columns },
    names,
  } = changesOf(person, { name, values })
  const newTags = tags.filter(({ id }) => !person.tagIds.has(id))
  const newGroups = groups.filter(({ id }) => !person.groupIds.has(id))
  if (!created && names.length + newTags.length + newGroups.length === 0) return 'unchanged'
  Object.assign(person, columns, { differs: true, updated_at: ctx.now })
  if (attributes) {
    person.attrs = attributes.attrs
    for (const [id, type] of attributes.changed) person.changed.set(id, type)
  }
  for (const { id } of newTags) person.tagIds.add(id)
  for (const { id } of newGroups) person.groupIds.add(id)
  person.newTags.push(...newTags.map(({ id }) => id))
  person.newGroups.push(...newGroups.map(({ id }) => id))
  if (created) ctx.emit('contact.created/1', { contact: eventContact(person) })
  else if (names.length > 0) ctx.emit('contact.updated/1', { contact: eventContact(person), changes: names })
  noteAdded(ctx, person.id, newTags, newGroups)
  return created ? 'created' : 'updated'
}

const MOST_ERRORS = 5
const LONGEST_TEXT = 300
/** Values in all lists of what is allowed together: each row may name the same long list. */
const MOST_ALLOWED = 2000

const brief = (text: string): string =>
  text.length <= LONGEST_TEXT ? text : `${text.slice(0, LONGEST_TEXT).toWellFormed()}…`

/** A refusal of a row, with its pointers into the whole request. */
const failureOf = (row: number, { code, message, extras }: Problem): Failure => ({
  row,
  code,
  message: brief(message),
  errors: (extras.errors ?? [])
    .slice(0, MOST_ERRORS)
    .map(({ pointer = '#', code: fault, detail, fix, allowed }) => ({
      pointer: brief(`#/rows/${row}${pointer.slice(1)}`),
      code: fault,
      detail: brief(detail),
      ...(fix ? { fix: brief(fix) } : {}),
      ...(allowed ? { allowed: [...allowed] } : {}),
    })),
})

const answer = (requested: number, done: readonly Result[], failures: readonly Failure[]): Output => {
  let room = MOST_ALLOWED
  const shown = failures
    .toSorted((a, b) => a.row - b.row)
    .map((failure) => ({
      ...failure,
      errors: failure.errors.map(({ allowed = [], ...error }) =>
        allowed.length > 0 && (room -= allowed.length) >= 0 ? { ...error, allowed } : error,
      ),
    }))
  const results = [
    ...done,
    ...failures.map(({ row }): Result => ({ row, action: 'failed', id: null })),
  ].toSorted((a, b) => a.row - b.row)
  const count = (action: Result['action']) => results.filter((result) => result.action === action).length
  return {
    requested,
    succeeded: done.length,
    failed: failures.length,
    created: count('created'),
    updated: count('updated'),
    unchanged: count('unchanged'),
    results,
    failures: shown,
  }
}
