import { reportProgress } from '../../kernel/progress.ts'
import type { Context, EmitsOf, Handler } from '../../handler.ts'
import type { CustomFieldType } from '../../../catalog/custom-fields.ts'
import { ImportRow } from '../../../catalog/contacts/upsert.ts'
import {
  type BasicContact,
  type ImportedContact,
  buildImportWrite,
  insertContacts,
  lockContactsByPhone,
  findTakenPhones,
} from '../../../storage/contacts/import.ts'
import { type ExistingContact, readExistingContacts } from '../../../storage/contacts/updates.ts'
import { lockContactLimit, loadCounter } from '../../../storage/workspace/counters.ts'
import { type FieldRow, listFields } from '../../../storage/contacts/custom-fields.ts'
import type { Label } from '../../../storage/labels/labels.ts'
import type { Actor } from '../../kernel/context.ts'
import { Problem } from '../../kernel/problem.ts'
import { parseFields } from '../../kernel/validate.ts'
import {
  createMissingGroups,
  findGroups,
  findGroupsByName,
  selectGroups,
  selectGroupsByName,
} from '../groups/groups.ts'
import { createTags, findTags, listNewTagNames, selectTags } from '../tags/tags.ts'
import { diffContact, emitLabelsAdded, findEmailChange } from './edit.ts'
import { fieldsVisibleTo, markFirstUse, parseValues, requireIdentity, type ValueChanges } from './input.ts'
import { unknownExternalId } from './identity.ts'
import { createLineFinder, type FoundLine } from './import-identity.ts'
import { type RowFailure, type RowResult, toFailure, toOutput } from './import-output.ts'
import { contactLimitReached } from './limit.ts'
import { changeMetadata, type MetadataChanges, refuseHiddenMetadata } from './metadata.ts'
import { eventContact } from './view.ts'
import { refuseBlindImport, toContactName } from '../../visibility/phones.ts'

type ImportContext = Context<EmitsOf<'crm_import_contacts'>>
/** An upsert of one row; `row` is the row's index in the request. */
type RowUpsert = FoundLine & {
  row: number
  externalId: string | null | undefined
  metadata: MetadataChanges | undefined
  dnd: boolean | undefined
  starred: boolean | undefined
  name: string | undefined
  values: ValueChanges
  tags: Label[]
  groups: Label[]
}

/**
 * Runs many upserts in a few statements, however many rows there are. Tags are written first, then new
 * contacts, then existing contacts are locked: all writers keep this order, so that there are no deadlocks. So all
 * rows are one transaction, which a cancellation between two steps rolls back.
 */
export const importContacts: Handler<'crm_import_contacts'> = async (ctx, input) => {
  const { rows: rawRows, create_missing_groups: createGroups = false } = input
  refuseBlindImport(ctx.actor)
  reportProgress(ctx, 0)
  const failures: RowFailure[] = []
  const fields = fieldsVisibleTo(ctx, await listFields(ctx.tx, ctx.actor.workspace.id))
  const parsed = mapRows(
    failures,
    rawRows.map((raw, row) => ({ row, raw })),
    ({ row, raw }) => ({ row, ...parseRow(ctx.actor, fields, raw) }),
  )
  reportProgress(ctx, 0.25)
  const groups = await findGroups(
    ctx,
    parsed.flatMap((r) => r.groupIds),
  )
  const named = await findGroupsByName(
    ctx,
    parsed.flatMap((r) => r.groupNames),
  )
  const existingTags = await findTags(
    ctx,
    parsed.flatMap((r) => r.tagRefs),
  )
  const selected = mapRows(failures, parsed, (r) => ({
    ...r,
    groups: [...selectGroups(groups, r.groupIds), ...selectGroupsByName(named, r.groupNames, createGroups)],
    newTagNames: listNewTagNames(existingTags, r.tagRefs),
  }))
  const findLine = await createLineFinder(ctx, selected)
  const resolved = mapRows(failures, selected, (r) => ({ ...r, ...findLine(r.row, r) }))
  const requireRoom = await createRoomCheck(
    ctx,
    resolved.map((r) => r.line.key),
  )
  const admitted = mapRows(failures, resolved, (r) => {
    requireRoom(r.line.key)
    return r
  })
  const namedGroups = createGroups
    ? await createMissingGroups(
        ctx,
        named,
        admitted.flatMap((r) => r.groupNames),
      )
    : named
  const tags = await createTags(
    ctx,
    existingTags,
    admitted.flatMap((r) => r.newTagNames),
    admitted.flatMap((r) => r.tagRefs),
  )
  reportProgress(ctx, 0.5)
  await markFirstUse(
    ctx,
    admitted.flatMap((r) => [...r.values]),
  )
  const results = await applyRows(
    ctx,
    failures,
    admitted.map((r) => ({
      ...r,
      groups: distinctLabels([...r.groups, ...selectGroupsByName(namedGroups, r.groupNames, false)]),
      tags: selectTags(tags, r.tagRefs),
    })),
  )
  return toOutput(rawRows.length, results, failures)
}

const distinctLabels = (labels: readonly Label[]): Label[] => [
  ...new Map(labels.map((label) => [label.id, label])).values(),
]

/** Maps the rows; a row for which `map` throws a `Problem` becomes a failure and is left out. */
const mapRows = <R extends { row: number }, T>(
  failures: RowFailure[],
  rows: readonly R[],
  map: (row: R) => T,
): T[] =>
  rows.flatMap((row) => {
    try {
      return [map(row)]
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      failures.push(toFailure(row.row, error))
      return []
    }
  })

const parseRow = (actor: Actor, fields: ReadonlyMap<string, FieldRow>, raw: unknown) => {
  const {
    phone,
    external_id: externalId,
    metadata,
    dnd,
    starred,
    name,
    email,
    attributes,
    tags: tagRefs = [],
    group_ids: groupIds = [],
    group_names: groupNames = [],
  } = parseFields(ImportRow, raw)
  refuseHiddenMetadata(actor, metadata)
  // What fits into no contact fails before one is created.
  changeMetadata(null, metadata)
  return {
    line: requireIdentity({ phone, externalId }),
    externalId,
    metadata,
    // An opt-out that came meanwhile outlives older files.
    dnd: dnd || undefined,
    starred,
    name: toContactName(name),
    values: parseValues(fields, { email, attributes }),
    tagRefs,
    groupIds,
    groupNames,
  }
}

/**
 * Returns a check that throws 403 `contact_limit` for lines, by their keys, that the plan has no room for, in
 * the order of the calls. Until the transaction ends, no other call can add a contact.
 */
const createRoomCheck = async (ctx: Context, keys: readonly string[]): Promise<(key: string) => void> => {
  const { id: workspaceId, contactLimit } = ctx.actor.workspace
  if (contactLimit === null) return () => {}
  await lockContactLimit(ctx.tx, workspaceId)
  const admitted = new Set(await findTakenPhones(ctx.tx, workspaceId, keys))
  let room = contactLimit - (await loadCounter(ctx.tx, workspaceId, 'contacts'))
  return (key) => {
    if (admitted.has(key)) return
    if (room <= 0) throw contactLimitReached(contactLimit)
    room--
    admitted.add(key)
  }
}

/** The state of a contact after the rows so far, and their changes. `rows`: how many created rows it has. */
type PendingContact = Omit<ExistingContact, 'tag_ids' | 'group_ids'> & {
  isNew: ImportedContact['isNew']
  inserted: ImportedContact['inserted']
  rows: number
  differs: boolean
  changed: Map<string, CustomFieldType>
  tagIds: Set<string>
  groupIds: Set<string>
  newMetadata: ImportedContact['newMetadata']
  newTags: string[]
  newGroups: string[]
}

/** Applies the rows in their order, and defers the writes to the end of the change. */
const applyRows = async (
  ctx: ImportContext,
  failures: RowFailure[],
  upserts: readonly RowUpsert[],
): Promise<RowResult[]> => {
  const contacts = await insertOrLockContacts(ctx, upserts)
  reportProgress(ctx, 0.75)
  const results = mapRows(failures, upserts, (upsert): RowResult => {
    requireGiven(failures, upsert)
    const contact = contacts.get(upsert.line.key)!
    return {
      row: upsert.row,
      action: applyRow(ctx, contact, upsert),
      id: ctx.dryRun && contact.isNew ? null : contact.id,
    }
  })
  const differing = [...contacts.values()].filter((contact) => contact.differs)
  if (differing.length > 0)
    ctx.pending.deferred = buildImportWrite(ctx.actor.workspace.id, differing, ctx.now)
  return results
}

/** Throws 404 for a row that names an external id which the rows before it would have given, but failed. */
const requireGiven = (failures: readonly RowFailure[], { externalId, givenBy }: RowUpsert): void => {
  if (givenBy?.every((giver) => failures.some(({ row }) => row === giver)))
    throw unknownExternalId(externalId!)
}

/**
 * Returns the columns of the contacts that the rows may create, by the key of the line; the last row's values
 * count, and the first row's spelling of the phone.
 */
const toNewContacts = (upserts: readonly RowUpsert[]): Map<string, BasicContact> => {
  const byKey = new Map<string, BasicContact>()
  for (const { line, externalId, name, values } of upserts) {
    const previous = byKey.get(line.key) ?? { ...line, name: null, email: null, external_id: null }
    const email = findEmailChange(values)
    byKey.set(line.key, {
      phone: previous.phone,
      key: line.key,
      name: name ?? previous.name,
      email: email === undefined ? previous.email : email,
      external_id: externalId === undefined ? previous.external_id : externalId,
    })
  }
  return byKey
}

/**
 * Returns the contacts of these rows by the key of the line, inserted where there was none, and locked. New ones
 * are inserted with the name, email and external id that the rows give them in the end, if none of these fails.
 */
const insertOrLockContacts = async (
  ctx: Context,
  upserts: readonly RowUpsert[],
): Promise<Map<string, PendingContact>> => {
  const workspaceId = ctx.actor.workspace.id
  const contacts = new Map<string, PendingContact>()
  const add = (known: ExistingContact, inserted: BasicContact | undefined) => {
    const isNew = inserted !== undefined
    const { tag_ids: tagIds, group_ids: groupIds, ...columns } = known
    contacts.set(known.key, {
      ...columns,
      isNew,
      inserted,
      rows: 0,
      differs: isNew,
      changed: new Map(),
      newMetadata: undefined,
      tagIds: new Set(tagIds),
      groupIds: new Set(groupIds),
      newTags: [],
      newGroups: [],
    })
  }
  // Repeated for a contact that existed at the insert and was deleted before it could be locked.
  for (
    let missing = [...toNewContacts(upserts).values()];
    missing.length > 0;
    missing = missing.filter(({ key }) => !contacts.has(key))
  ) {
    const given = new Map(missing.map((contact) => [contact.key, contact]))
    for (const [key, id] of await insertContacts(ctx.tx, workspaceId, missing, ctx.now)) {
      add(
        {
          id,
          phone: given.get(key)!.phone,
          key,
          name: null,
          email: null,
          external_id: null,
          dnd: false,
          starred: false,
          created_at: ctx.now,
          updated_at: ctx.now,
          attrs: {},
          metadata: null,
          tag_ids: [],
          group_ids: [],
        },
        given.get(key),
      )
    }
    const taken = missing.flatMap(({ key }) => (contacts.has(key) ? [] : key))
    const locked = taken.length > 0 ? await lockContactsByPhone(ctx.tx, workspaceId, taken) : []
    if (locked.length > 0)
      for (const known of await readExistingContacts(ctx.tx, workspaceId, locked)) add(known, undefined)
  }
  return contacts
}

/** Changes the pending contact as an upsert would change the contact, and emits the same events. */
const applyRow = (
  ctx: ImportContext,
  contact: PendingContact,
  { name, externalId, metadata, dnd, starred, values, tags, groups }: RowUpsert,
): 'created' | 'updated' | 'unchanged' => {
  const created = contact.isNew && contact.rows++ === 0
  const {
    changes: { values: attributes, metadata: newMetadata, ...columns },
    names,
  } = diffContact(contact, { name, externalId, metadata, dnd, starred, values })
  const newTags = tags.filter(({ id }) => !contact.tagIds.has(id))
  const newGroups = groups.filter(({ id }) => !contact.groupIds.has(id))
  if (!created && names.length + newTags.length + newGroups.length === 0) return 'unchanged'
  Object.assign(contact, columns, { differs: true, updated_at: ctx.now })
  if (newMetadata) Object.assign(contact, { metadata: newMetadata, newMetadata })
  if (attributes) {
    contact.attrs = attributes.attrs
    for (const [id, type] of attributes.changed) contact.changed.set(id, type)
  }
  for (const { id } of newTags) contact.tagIds.add(id)
  for (const { id } of newGroups) contact.groupIds.add(id)
  contact.newTags.push(...newTags.map(({ id }) => id))
  contact.newGroups.push(...newGroups.map(({ id }) => id))
  if (created) ctx.emit('contact.created/1', { contact: eventContact(contact) })
  else if (names.length > 0) ctx.emit('contact.updated/1', { contact: eventContact(contact), changes: names })
  emitLabelsAdded(ctx, contact.id, newTags, newGroups)
  return created ? 'created' : 'updated'
}
