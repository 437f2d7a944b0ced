import type { Context, Handler } from '../../handler.ts'
import { FORMER_PHONE_DAYS } from '../../../catalog/contacts/change-phone.ts'
import {
  deleteFormerIdsBefore,
  forgetFormerPhone,
  rememberFormerId,
} from '../../../storage/contacts/former-ids.ts'
import { toStorableId } from '../../../storage/values/ids.ts'
import {
  type CustomerRow,
  findCustomers,
  lockCustomersById,
  updateCustomer,
} from '../../../storage/messages/inbound.ts'
import { readContact } from '../../../storage/contacts/contacts.ts'
import type { App } from '../../app.ts'
import { notFound, Problem } from '../../kernel/problem.ts'
import { lineKeyOf, toPhoneColumns } from '../inbound/customers.ts'
import { changeInBatches } from '../../work/change-in-batches.ts'
import { daysAgo } from '../../work/partitions.ts'
import { BLIND_CHANGE_WARNING, isBlindRehearsal, requireBlindPlan } from '../../visibility/rehearsals.ts'
import { requirePhone } from './input.ts'
import { parsePhoneLine } from './phone.ts'
import type { PhoneLine } from './phone-lines.ts'
import { withTimeline } from './timeline.ts'
import { eventContact, showContact } from './view.ts'

export const changePhone: Handler<'crm_change_phone'> = async (ctx, { contact_id: id, phone }) => {
  const line = requirePhone(phone)
  const [contact] = await lockCustomersById(ctx.tx, ctx.actor.workspace.id, [toStorableId(id)])
  if (!contact) throw notFound('contact', id)
  // A dry run that must not tell whose number this is writes none: the answer alone has it.
  const isBlind = isBlindRehearsal(ctx)
  const isSame = lineKeyOf(contact) === line.key
  if (!isBlind && isSame) requireBlindPlan(ctx)
  if (!isBlind && !isSame) await requireFreeLine(ctx, line)
  const changed = isBlind || !isSame
  if (changed) await writePhone(ctx, contact, line, isBlind)
  const read = (await withTimeline(ctx, (timeline) =>
    readContact(ctx.tx, ctx.actor.workspace.id, id, timeline),
  ))!
  const row = isBlind ? { ...read.contact, phone: line.phone } : read.contact
  return {
    contact: showContact(ctx.actor, row, read.fields, 'full'),
    changed,
    ...(isBlind ? { warnings: [BLIND_CHANGE_WARNING] } : {}),
  }
}

/** Throws 409 `phone_taken` when a contact has the line. */
const requireFreeLine = async (ctx: Context, { key }: PhoneLine): Promise<void> => {
  const [holder] = await findCustomers(ctx.tx, ctx.actor.workspace.id, [key], [])
  if (!holder) return
  requireBlindPlan(ctx)
  const fix = 'Merge both with crm_merge_contacts if they are one person.'
  throw new Problem('conflict', `Contact ${holder.id} has this phone. Nothing was changed. ${fix}`, {
    reason: 'phone_taken',
    errors: [{ pointer: '#/phone', code: 'phone_taken', detail: `is that of contact ${holder.id}`, fix }],
  })
}

/** Whether the user id is the number: it says nothing of the person then, and whoever has the number has it. */
const isUserIdOf = (userId: string | null, key: string): boolean => {
  if (userId === null || !/^\+?\d+$/.test(userId)) return false
  const line = parsePhoneLine(userId)
  return 'key' in line && line.key === key
}

const writePhone = async (
  ctx: Context<'contact.updated/1'>,
  contact: CustomerRow,
  line: PhoneLine,
  isBlind: boolean,
): Promise<void> => {
  const { tx, now, actor } = ctx
  const before = lineKeyOf(contact)
  const losesUserId = before !== null && isUserIdOf(contact.chatapp_user_id, before)
  const changed = {
    ...contact,
    ...toPhoneColumns({ ...line, spelling: null }, null),
    ...(losesUserId ? { chatapp_user_id: null } : {}),
    updated_at: now,
  }
  await updateCustomer(
    tx,
    actor.workspace.id,
    isBlind ? { ...changed, phone: null, phone_key: null } : changed,
    now,
  )
  await forgetFormerPhone(tx, actor.workspace.id, line.key)
  if (before !== null)
    await rememberFormerId(
      tx,
      actor.workspace.id,
      { id_key: before, contact_id: contact.id, left_at: null },
      now,
    )
  ctx.auditChange(contact, { phone: changed.phone, chatapp_user_id: changed.chatapp_user_id })
  ctx.emit('contact.updated/1', {
    contact: eventContact(changed),
    changes: ['phone', ...(losesUserId ? ['chatapp_user_id'] : [])],
  })
}

/** Deletes numbers of before, of which messages find their contact no more. Returns their count. */
export const deleteFormerPhones = (app: App, signal: AbortSignal): Promise<number> => {
  const before = daysAgo(app.now(), FORMER_PHONE_DAYS)
  return changeInBatches((limit) => deleteFormerIdsBefore(app.db, before, limit), signal)
}
