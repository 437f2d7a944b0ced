import { takeContactId } from './ids.ts'
import type { Context, EmitsOf, Handler, OutputOf } from '../../handler.ts'
import { toPhoneKey } from '../../../storage/contacts/lines.ts'
import {
  buildContactInsert,
  type ContactRow,
  type NewContact,
  toNewContactRow,
  readContact,
  type ContactWithFields,
  touchContacts,
} from '../../../storage/contacts/contacts.ts'
import { listFields } from '../../../storage/contacts/custom-fields.ts'
import { linkLabels } from '../../../storage/labels/changes.ts'
import type { Label, LabelKind } from '../../../storage/labels/labels.ts'
import { resolveGroups } from '../groups/groups.ts'
import { type ResolvedTag, resolveTags } from '../tags/tags.ts'
import { editContact, emitLabelsAdded, findEmailChange } from './edit.ts'
import { isBlindTo, lockIdentified, lockIdentifiedBlindly } from './identity.ts'
import {
  applyValues,
  fieldsVisibleTo,
  markFirstUse,
  parseValues,
  requireIdentity,
  toFieldTypes,
  type ValueChanges,
} from './input.ts'
import { requireRoomForContact } from './limit.ts'
import { changeMetadata, type MetadataChanges, refuseHiddenMetadata } from './metadata.ts'
import type { PhoneLine } from './phone-lines.ts'
import { getTimelineScope } from './timeline.ts'
import { eventContact, showContact } from './view.ts'
import { BLIND_MATCH_WARNING, BLIND_WARNING, requireBlindPlan } from '../../visibility/rehearsals.ts'
import { refuseNumberInName, toContactName } from '../../visibility/phones.ts'

type Output = OutputOf<'crm_upsert_contact'>
type UpsertContext = Context<EmitsOf<'crm_upsert_contact'>>
type ContactUpsert = {
  line: PhoneLine | undefined
  externalId: string | null | undefined
  metadata: MetadataChanges | undefined
  dnd: boolean | undefined
  starred: boolean | undefined
  name: string | undefined
  values: ValueChanges
  tags: ResolvedTag[]
  groups: Label[]
}

/**
 * Creates the contact, or updates the one with this phone or external id. On the first attempt a contact with a phone
 * is assumed to be new, which saves a query: when a contact has the phone or the external id, the insert fails and the
 * call runs again.
 */
export const upsertContact: Handler<'crm_upsert_contact'> = async (ctx, input) => {
  const workspaceId = ctx.actor.workspace.id
  const line = requireIdentity({ phone: input.phone, externalId: input.external_id })
  refuseHiddenMetadata(ctx.actor, input.metadata)
  refuseNumberInName(ctx.actor, input.name)
  const hasValues = input.attributes !== undefined || input.email !== undefined
  const fields = hasValues ? await listFields(ctx.tx, workspaceId) : []
  const values: ValueChanges = hasValues ? parseValues(fieldsVisibleTo(ctx, fields), input) : new Map()
  const upsert: ContactUpsert = {
    line,
    externalId: input.external_id,
    metadata: input.metadata,
    dnd: input.dnd,
    starred: input.starred,
    name: toContactName(input.name),
    values,
    groups: await resolveGroups(ctx, input.group_ids ?? []),
    tags: await resolveTags(ctx, input.tags ?? [], async () => true),
  }
  if (values.size > 0) await markFirstUse(ctx, values)
  const isBlind = isBlindTo(ctx, upsert)
  const mustLookUp = ctx.attempt > 1 || ctx.actor.workspace.contactLimit !== null || !line
  const existingId = isBlind
    ? await lockIdentifiedBlindly(ctx, upsert)
    : mustLookUp
      ? await lockIdentified(ctx, upsert)
      : undefined
  if (existingId === undefined)
    return isBlind
      ? await rehearseBlindly(ctx, upsert, fields)
      : toOutput(ctx, upsert, 'created', { contact: await createContact(ctx, upsert), fields })
  if (line && !isBlind) requireBlindPlan(ctx)
  const action = await updateExisting(ctx, existingId, upsert)
  const read = (await readContact(ctx.tx, workspaceId, existingId, getTimelineScope(ctx.actor)))!
  const warnings = [
    ...(isBlind ? [BLIND_MATCH_WARNING] : []),
    ...(upsert.dnd === false && read.contact.dnd ? [DND_WARNING] : []),
  ]
  return { ...toOutput(ctx, upsert, action, read), ...(warnings.length > 0 ? { warnings } : {}) }
}

const DND_WARNING =
  'dnd stays true: the contact opted out, and repeated calls undo no opt-out. Use crm_update_contact to lift it.'

/**
 * Answers as for a number that no contact has, without looking whether one has it: the answer, and how long
 * it takes, must not tell.
 */
const rehearseBlindly = async (
  ctx: UpsertContext,
  upsert: ContactUpsert,
  fields: ContactWithFields['fields'],
): Promise<Output> => {
  await requireRoomForContact(ctx)
  const row = toNewContactRow('', toNewContact(upsert), upsert.tags, upsert.groups, ctx.now)
  return { ...toOutput(ctx, upsert, 'created', { contact: row, fields }), warnings: [BLIND_WARNING] }
}

/** What a dry run creates has no id. */
const toOutput = (
  ctx: Context,
  upsert: ContactUpsert,
  action: Output['action'],
  { contact, fields }: ContactWithFields,
): Output => {
  const shown = showContact(ctx.actor, contact, fields, 'full')
  const id = ctx.dryRun && action === 'created' ? null : contact.id
  const createdTags = new Set(upsert.tags.filter((tag) => tag.createdInDryRun).map((tag) => tag.id))
  const tags = shown.tags!.map((tag) => (createdTags.has(tag.id) ? { ...tag, id: null } : tag))
  return { id, action, contact: { ...shown, id, tags } }
}

const toNewContact = (upsert: ContactUpsert): NewContact => {
  const { attrs, changed } = applyValues({}, upsert.values)
  return {
    phone: upsert.line?.phone ?? null,
    phoneKey: toPhoneKey(upsert.line ?? null),
    externalId: upsert.externalId ?? null,
    metadata: changeMetadata(null, upsert.metadata),
    name: upsert.name ?? null,
    dnd: upsert.dnd ?? false,
    starred: upsert.starred ?? false,
    email: findEmailChange(upsert.values) ?? null,
    attrs,
    types: toFieldTypes(changed),
    tagIds: upsert.tags.map((tag) => tag.id),
    groupIds: upsert.groups.map((group) => group.id),
  }
}

const createContact = async (ctx: UpsertContext, upsert: ContactUpsert): Promise<ContactRow> => {
  const { workspace } = ctx.actor
  await requireRoomForContact(ctx)
  const contact = toNewContact(upsert)
  const id = await takeContactId(ctx)
  ctx.pending.deferred = buildContactInsert(workspace.id, id, contact, ctx.now)
  const row = toNewContactRow(id, contact, upsert.tags, upsert.groups, ctx.now)
  ctx.emit('contact.created/1', { contact: eventContact(row) })
  emitLabelsAdded(ctx, id, upsert.tags, upsert.groups)
  return row
}

const updateExisting = async (
  ctx: UpsertContext,
  id: string,
  upsert: ContactUpsert,
): Promise<'updated' | 'unchanged'> => {
  const { name, externalId, metadata, dnd, starred, values } = upsert
  const edited = await editContact(ctx, id, {
    name,
    externalId,
    metadata,
    dnd: dnd || undefined,
    starred,
    values,
  })
  const tags = await addLabels(ctx, 'tag', upsert.tags, id)
  const groups = await addLabels(ctx, 'group', upsert.groups, id)
  emitLabelsAdded(ctx, id, tags, groups)
  const labelled = tags.length + groups.length > 0
  if (!edited && labelled) await touchContacts(ctx.tx, ctx.actor.workspace.id, [id], ctx.now)
  return edited || labelled ? 'updated' : 'unchanged'
}

/** Returns the labels that the contact did not have yet. */
const addLabels = async (
  ctx: Context,
  kind: LabelKind,
  labels: readonly Label[],
  contactId: string,
): Promise<Label[]> => {
  if (labels.length === 0) return []
  const labelIds = labels.map((label) => label.id)
  const pairs = await linkLabels(ctx.tx, ctx.actor.workspace.id, kind, labelIds, [contactId])
  return labels.filter((label) => pairs.some((pair) => pair.label === label.id))
}
