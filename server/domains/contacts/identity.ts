import type { Context } from '../../handler.ts'
import { findContactIdByExternalId, lockContactsByIdentity } from '../../../storage/contacts/identity.ts'
import { lockContactByPhone } from '../../../storage/contacts/contacts.ts'
import { Problem } from '../../kernel/problem.ts'
import { isBlindRehearsal } from '../../visibility/rehearsals.ts'
import type { PhoneLine } from './phone-lines.ts'

/*
 * Who an upsert means. A contact is identified by its phone line, its external id, or both. Both together must agree:
 * what is missing is filled in, and nothing that identifies a contact is replaced.
 */

/** `externalId`: null clears it, undefined leaves it. One of both members is given. */
export type GivenIdentity = { line: PhoneLine | undefined; externalId: string | null | undefined }

/** A contact that has the phone line or the external id of an input. */
export type KnownIdentity = { id: string; line_key: string | null; external_id: string | null }

const FIX = 'Leave out the one that is wrong.'

/** The 409 of a phone and an external id that do not belong to one contact. `details`: why, of each. */
const identityConflict = (detail: string, details: { externalId: string; phone: string }): Problem =>
  new Problem('conflict', `${detail} Nothing was changed. ${FIX}`, {
    reason: 'identity_conflict',
    errors: [
      { pointer: '#/external_id', code: 'identity_conflict', detail: details.externalId, fix: FIX },
      { pointer: '#/phone', code: 'identity_conflict', detail: details.phone, fix: FIX },
    ],
  })

/** Throws 404 `not_found`: a contact is created with a phone only, or no message could reach it. */
export const unknownExternalId = (externalId: string): Problem =>
  new Problem(
    'not_found',
    `No contact with the external id ${externalId}. Send phone too, to create the contact.`,
  )

/** Returns the 409 of an external id that another contact has. */
const externalIdTaken = (externalId: string, contactId: string): Problem => {
  const fix = `Send another one, or clear that of contact ${contactId} first.`
  return new Problem('conflict', `Contact ${contactId} has the external id ${externalId}. ${fix}`, {
    reason: 'external_id_taken',
    errors: [
      { pointer: '#/external_id', code: 'external_id_taken', detail: `is that of contact ${contactId}`, fix },
    ],
  })
}

/**
 * Returns the contact that a phone line, an external id or both mean; undefined for a new one. Throws 404 for an
 * unknown external id alone, and 409 `identity_conflict` where both do not belong together. `byLine`, `byExternalId`:
 * the contacts that have them.
 */
export const matchIdentity = <T extends Omit<KnownIdentity, 'line_key'>>(
  { line, externalId }: GivenIdentity,
  byLine: T | undefined,
  byExternalId: T | undefined,
): T | undefined => {
  if (typeof externalId !== 'string') return byLine
  if (!line) {
    if (!byExternalId) throw unknownExternalId(externalId)
    return byExternalId
  }
  if (byExternalId && byLine && byExternalId.id !== byLine.id)
    throw identityConflict(
      `external_id is that of contact ${byExternalId.id}, and phone that of contact ${byLine.id}.`,
      {
        externalId: `is that of contact ${byExternalId.id}`,
        phone: `is that of contact ${byLine.id}`,
      },
    )
  if (byExternalId && !byLine)
    throw identityConflict(
      `Contact ${byExternalId.id} has this external_id and another phone, or none. An upsert changes no phones.`,
      {
        externalId: `is that of contact ${byExternalId.id}`,
        phone: `is not that of contact ${byExternalId.id}`,
      },
    )
  if (byLine && !byExternalId && byLine.external_id !== null)
    throw identityConflict(
      `Contact ${byLine.id} has this phone and another external_id, which crm_update_contact changes.`,
      {
        externalId: `is not that of contact ${byLine.id}`,
        phone: `is that of contact ${byLine.id}`,
      },
    )
  return byLine ?? byExternalId
}

/** Finds and locks the contact that an upsert means; undefined for a new one. Throws 404 and 409. */
export const lockIdentified = async (ctx: Context, given: GivenIdentity): Promise<string | undefined> => {
  const { line, externalId } = given
  const workspaceId = ctx.actor.workspace.id
  if (typeof externalId !== 'string') return await lockContactByPhone(ctx.tx, workspaceId, line!.key)
  const known = await lockContactsByIdentity(ctx.tx, workspaceId, line?.key ?? null, externalId)
  return matchIdentity(
    given,
    known.find((contact) => line && contact.line_key === line.key),
    known.find((contact) => contact.external_id === externalId),
  )?.id
}

/**
 * The same for a dry run that must not look whether a contact has the phone: the external id alone decides, and
 * undefined is a new contact.
 */
export const lockIdentifiedBlindly = async (
  ctx: Context,
  { line, externalId }: GivenIdentity,
): Promise<string | undefined> => {
  if (typeof externalId !== 'string') return undefined
  const known = await lockContactsByIdentity(ctx.tx, ctx.actor.workspace.id, null, externalId)
  if (known.length === 0 && !line) throw unknownExternalId(externalId)
  return known[0]?.id
}

/** Throws 409 `external_id_taken` when another contact than `id` has the external id. */
export const requireFreeExternalId = async (
  { tx, actor }: Pick<Context, 'tx' | 'actor'>,
  externalId: string,
  id: string,
): Promise<void> => {
  const ownerId = await findContactIdByExternalId(tx, actor.workspace.id, externalId)
  if (ownerId !== undefined && ownerId !== id) throw externalIdTaken(externalId, ownerId)
}

/** Whether a dry run answers without the phone: with phones hidden, where one is given. */
export const isBlindTo = (ctx: Context, { line }: GivenIdentity): boolean =>
  line !== undefined && isBlindRehearsal(ctx)
