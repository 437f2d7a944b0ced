import type { Handler, InputOf } from '../../handler.ts'
import { lockContacts } from '../../../storage/contacts/matches.ts'
import { deleteContactRows } from '../../../storage/contacts/contacts.ts'
import { changeTarget } from '../bulk-jobs/change-target.ts'
import { listMissing, toBulkOutput } from '../bulk-jobs/output.ts'
import { contactRecords, type ContactsChange } from '../bulk-jobs/contact-records.ts'
import { distinctIds } from '../labels/labels.ts'

const deletion: ContactsChange<InputOf<'crm_delete_contacts'>, 'contact.deleted/1'> = {
  operation: 'crm_delete_contacts',
  records: contactRecords,
  apply: async (ctx, _input, ids) => {
    const requested = distinctIds(ids)
    const found = await lockContacts(ctx.tx, ctx.actor.workspace.id, requested)
    if (found.length > 0) await deleteContactRows(ctx.tx, ctx.actor.workspace.id, found)
    for (const id of found) ctx.emit('contact.deleted/1', { contact: { id } })
    return toBulkOutput(ctx, requested, listMissing(requested, found))
  },
  preview: async () => ({ unchanged: 0 }),
  freeze: async () => ({}),
}

export const deleteContacts: Handler<'crm_delete_contacts'> = (ctx, input) =>
  changeTarget(ctx, deletion, input)
