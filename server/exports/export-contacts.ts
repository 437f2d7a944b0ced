import { deleteJob } from '../../storage/work/bulk-jobs.ts'
import { insertContactsExport } from '../../storage/contacts/exports.ts'
import { countIds, listContactNames } from '../../storage/contacts/matches.ts'
import { listFields } from '../../storage/contacts/custom-fields.ts'
import { findExport } from '../../storage/work/exports.ts'
import { toStorableId } from '../../storage/values/ids.ts'
import { requireExplicitAll } from '../bulk-jobs/change-target.ts'
import { contactRecords } from '../bulk-jobs/contact-records.ts'
import { findRecords, type FoundRecords, keepPlan, refusePlan } from '../bulk-jobs/target-plan.ts'
import type { Context } from '../core/context.ts'
import type { Handler, InputOf } from '../core/handler.ts'
import { notFound, Problem } from '../core/problem.ts'
import { canSeeField } from '../visibility/policy.ts'
import { describeView } from './contacts-file.ts'
import { showExport, toExportFileName } from './view.ts'

type Input = InputOf<'crm_export_contacts'>

const OPERATION = 'crm_export_contacts'

/** Returns contacts that are named, as texts of arrays of ids. Throws 404 where one does not exist. */
const listNamed = async (ctx: Context, given: readonly (string | number)[]): Promise<string[]> => {
  const ids = [...new Set(given.map(String))]
  const existing = await listContactNames(ctx.tx, ctx.actor.workspace.id, ids.map(toStorableId))
  const found = new Set(existing.map(({ id }) => id))
  const missing = ids.find((id) => !found.has(id))
  if (missing !== undefined) throw notFound('contact', missing)
  return [`{${ids.join()}}`]
}

const findContacts = async (ctx: Context, input: Input): Promise<FoundRecords> => {
  if (input.contact_ids) {
    refusePlan(contactRecords, input)
    return { batches: await listNamed(ctx, input.contact_ids) }
  }
  requireExplicitAll(contactRecords, input)
  return await findRecords(
    ctx,
    OPERATION,
    contactRecords,
    input,
    await contactRecords.listMatches(ctx, input),
  )
}

export const exportContacts: Handler<'crm_export_contacts'> = async (ctx, input) => {
  const { actor, tx } = ctx
  const workspaceId = actor.workspace.id
  // A file is read, whoever is in it.
  if (!actor.key.scopes.includes('mcp:read'))
    throw new Problem('insufficient_scope', 'An export needs a key with the scope mcp:read too.', {
      scope: 'mcp:read',
    })
  const { batches, plan } = await findContacts(ctx, input)
  const fields = (await listFields(tx, workspaceId)).filter((field) => canSeeField(actor, field))
  const given = {
    workspace_id: workspaceId,
    staff_id: actor.staff.id,
    key_id: actor.key.id,
    created_at: ctx.now,
    contacts: {
      format: input.format,
      fields: input.format === 'csv' ? fields.map(({ key }) => key) : [],
      total: countIds(batches),
      view: describeView(actor),
    },
  }
  // A rehearsal need not write a million ids to count them.
  const id = await insertContactsExport(tx, given, ctx.dryRun ? [] : batches, ctx.jobBatchSize)
  const row = (await findExport(tx, workspaceId, id))!
  if (!ctx.dryRun) {
    if (plan) await deleteJob(tx, workspaceId, plan.id)
    return { export: showExport(row) }
  }
  return {
    export: { ...showExport(row), id: null, file_name: toExportFileName({ ...row, id: null }) },
    ...(input.contact_ids ? {} : { plan_id: keepPlan(ctx, { operation: OPERATION, input, batches }) }),
  }
}
