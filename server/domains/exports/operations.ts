import { toExportUrl } from './urls.ts'
import { getBatchSize } from '../bulk-jobs/records.ts'
import type { Context, Handler, InputOf } from '../../handler.ts'
import type { Reason } from '../../../catalog/reasons.ts'
import { lockContact, readContact } from '../../../storage/contacts/contacts.ts'
import { findExport, findRunningExport, insertExport, listExportPage } from '../../../storage/work/exports.ts'
import { countPersonRows } from '../../../storage/privacy/person-rows.ts'
import type { Actor } from '../../kernel/context.ts'
import { notFound, Problem } from '../../kernel/problem.ts'
import { findSubject } from '../erasures/subject.ts'
import {
  canSeeManagerFields,
  hasHiddenPhones,
  listVisibleChannels,
  canSeeField,
} from '../../visibility/policy.ts'
import {
  canSeeExport,
  canSeeWholePersons,
  mayDownload,
  showExport,
  showTables,
  toExportFileName,
} from './view.ts'
import { insertContactsExport } from '../../../storage/contacts/exports.ts'
import { countIds, listContactNames } from '../../../storage/contacts/matches.ts'
import { listFields } from '../../../storage/contacts/custom-fields.ts'
import { toStorableId } from '../../../storage/values/ids.ts'
import { requireExplicitAll } from '../bulk-jobs/change-target.ts'
import { contactRecords } from '../bulk-jobs/contact-records.ts'
import { findRecords } from '../bulk-jobs/find-records.ts'
import { describeView } from './contacts-file.ts'

/** An export that leaves out what its maker may not see would be no answer to the person. Throws 403. */
const requireWholeView = (actor: Actor): void => {
  const refuse = (detail: string, reason: Reason) => new Problem('forbidden', detail, { reason })
  if (!canSeeManagerFields(actor))
    throw refuse('Only managers, admins and owners may export a person.', 'manager_only')
  if (hasHiddenPhones(actor))
    throw refuse('An export has phone numbers, which are hidden from you.', 'phone_hidden')
  if (listVisibleChannels(actor) !== null)
    throw refuse('An export has the messages of all channels, and you have some only.', 'channels_limited')
  if (!actor.key.scopes.includes('mcp:read'))
    throw new Problem('insufficient_scope', 'An export needs a key with the scope mcp:read too.', {
      scope: 'mcp:read',
    })
}

const begin = async (ctx: Context, contactId: string): Promise<string> => {
  const { workspace, staff } = ctx.actor
  const running = await findRunningExport(ctx.tx, workspace.id, contactId)
  if (running) return running.id
  ctx.pending.wakes = ['exports']
  return await insertExport(ctx.tx, {
    workspace_id: workspace.id,
    kind: 'person',
    contact_id: contactId,
    staff_id: staff.id,
    key_id: ctx.actor.key.id,
    created_at: ctx.now,
    subject: await findSubject(ctx.tx, workspace.id, contactId),
  })
}

export const exportPerson: Handler<'crm_export_person'> = async (ctx, { contact_id: id }) => {
  requireWholeView(ctx.actor)
  const workspaceId = ctx.actor.workspace.id
  if (!(await lockContact(ctx.tx, workspaceId, id))) throw notFound('contact', id)
  const exportId = await begin(ctx, id)
  const row = (await findExport(ctx.tx, workspaceId, exportId))!
  const shown = showExport(row)
  if (!ctx.dryRun) return { export: shown }
  const subject = await findSubject(ctx.tx, workspaceId, id)
  const { counts, fileBytes } = await countPersonRows(ctx.tx, workspaceId, subject)
  const { contact } = (await readContact(ctx.tx, workspaceId, id, 'none'))!
  return {
    export: {
      ...shown,
      id: null,
      file_name: toExportFileName({ ...row, id: null }),
      tables: showTables(counts),
    },
    file_bytes: fileBytes,
    sample: { contact_id: id, name: contact.name },
  }
}

export const listExports: Handler<'crm_list_exports'> = async (ctx, input) => {
  const { contact_id: contactId, state, cursor, limit } = input
  const position = ctx.cursors.open(cursor)
  const rows = await listExportPage(ctx.tx, ctx.actor.workspace.id, {
    ownKeyId: canSeeWholePersons(ctx.actor) ? null : ctx.actor.key.id,
    contactId,
    state,
    before: position && String(position[0]),
    limit: limit + 1,
  })
  const shown = rows.slice(0, limit)
  return {
    data: shown.map(showExport),
    next_cursor: rows.length > limit ? ctx.cursors.seal([shown.at(-1)!.id]) : null,
  }
}

export const getExport: Handler<'crm_get_export'> = async (ctx, { export_id: id }) => {
  const row = await findExport(ctx.tx, ctx.actor.workspace.id, id)
  if (!row || !canSeeExport(ctx.actor, row)) throw notFound('export', id)
  const signed = row.state === 'done' && mayDownload(ctx.actor, row) ? toExportUrl(ctx, row.id) : undefined
  return { ...showExport(row), url: signed?.url ?? null, url_expires_at: signed?.expires_at ?? null }
}

type Input = InputOf<'crm_export_contacts'>

/** Returns contacts that are named, as texts of arrays of ids. Throws 404 where one does not exist. */
const listNamed = async (ctx: Context, given: readonly (string | number)[]): Promise<string[]> => {
  const ids = [...new Set(given.map(String))]
  const existing = await listContactNames(ctx.tx, ctx.actor.workspace.id, ids.map(toStorableId))
  const found = new Set(existing.map(({ id }) => id))
  const missing = ids.find((id) => !found.has(id))
  if (missing !== undefined) throw notFound('contact', missing)
  return [`{${ids.join()}}`]
}

const findContacts = async (ctx: Context, input: Input): Promise<readonly string[]> => {
  if (input.contact_ids) return await listNamed(ctx, input.contact_ids)
  requireExplicitAll(contactRecords, input)
  return findRecords(ctx, contactRecords, await contactRecords.listMatches(ctx, input))
}

export const exportContacts: Handler<'crm_export_contacts'> = async (ctx, input) => {
  const { actor, tx } = ctx
  const workspaceId = actor.workspace.id
  // A file is read, whoever is in it.
  if (!actor.key.scopes.includes('mcp:read'))
    throw new Problem('insufficient_scope', 'An export needs a key with the scope mcp:read too.', {
      scope: 'mcp:read',
    })
  const batches = await findContacts(ctx, input)
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
  // A dry run need not write a million ids to count them.
  ctx.pending.wakes = ['exports']
  const id = await insertContactsExport(tx, given, ctx.dryRun ? [] : batches, getBatchSize(ctx.services))
  const row = (await findExport(tx, workspaceId, id))!
  if (!ctx.dryRun) return { export: showExport(row) }
  return { export: { ...showExport(row), id: null, file_name: toExportFileName({ ...row, id: null }) } }
}
