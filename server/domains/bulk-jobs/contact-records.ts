import { getBatchSize, type RecordKind, type Target } from './records.ts'
import type { InputOf } from '../../handler.ts'
import type { EventTypeId } from '../../../catalog/events.ts'
import { listContactNames, listMatchBatches } from '../../../storage/contacts/matches.ts'
import { parseConditions } from '../filters/parse-filter.ts'
import { showContactName } from '../../visibility/phones.ts'
import type { TargetChange } from './change-target.ts'
import type { ContactSample } from './output.ts'

type ContactTarget = Target & Pick<InputOf<'crm_tag_contacts'>, 'saved_filter_id'>

/** A change of contacts. */
export type ContactsChange<I extends ContactTarget, E extends EventTypeId> = TargetChange<I, ContactSample, E>

export const contactRecords: RecordKind<ContactTarget, ContactSample> = {
  idField: 'contact_ids',
  plural: 'contacts',
  listMatches: async (ctx, input) => {
    const { filter } = await parseConditions(ctx, input)
    return await listMatchBatches(ctx.tx, ctx.actor.workspace.id, filter ? [filter] : [], {
      size: getBatchSize(ctx.services),
      stepMs: ctx.services.config.filters.stepMs,
    })
  },
  listSamples: async (ctx, ids) =>
    (await listContactNames(ctx.tx, ctx.actor.workspace.id, ids)).map(({ id, name }) => ({
      contact_id: id,
      name: showContactName(ctx.actor, name),
    })),
}
