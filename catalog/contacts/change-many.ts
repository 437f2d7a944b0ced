import { z } from 'zod'
import { BY_FILTER, target, targetAlternatives, targetResult } from '../bulk-jobs.ts'
import { defineOperation } from '../operation.ts'
import { Attributes } from './schemas.ts'

const oneMissing = {
  requested: 2,
  succeeded: 1,
  failed: 1,
  failures: [{ id: '43', code: 'not_found', message: 'No contact with the id 43.' }],
  stopped_early: false,
  matched: 1,
}

export const updateContacts = defineOperation({
  name: 'crm_update_contacts',
  cli: 'contacts set',
  routes: ['POST /v1/contacts/update'],
  since: '2026-10-01',
  stability: 'beta',
  summary: 'Set fields of many contacts',
  forModels: 'Sets the same values for all; omitted fields do not change. By filter: dry run first.',
  description:
    'Sets the same custom fields, do-not-disturb or star for all. Omitted fields do not change. ' +
    "Undoing the job restores each contact's previous values, unless they changed since; consents " +
    `recorded by \`dnd: false\` stay. ${BY_FILTER}`,
  words: 'bulk update, set a field for many customers, mass edit, change all contacts with a filter',
  scope: 'crm:write',
  dryRun: true,
  idempotency: 'optional',
  effect: 'replaces',
  repeatable: true,
  asks: { dnd: [false] },
  emits: ['contact.updated/1', 'consent.changed/1'],
  input: z.object({
    ...target,
    attributes: Attributes.optional().describe('Values of custom fields by key; null clears one.'),
    dnd: z
      .boolean()
      .optional()
      .describe("Do-not-disturb. `false` undoes opt-outs: an AI agent's key asks a person."),
    starred: z.boolean().optional().describe('Starred.'),
  }),
  output: z.object(targetResult),
  alternatives: targetAlternatives,
  heavy: ['filter', 'saved_filter_id'],
  jobs: true,
  errors: ['conflict', 'forbidden', 'not_found', 'service_unconfigured'],
  examples: [
    {
      title: 'One of two contacts does not exist',
      input: { contact_ids: ['42', '43'], attributes: { plan: 'pro' } },
      output: oneMissing,
    },
  ],
})

const { would_create: _none, ...deletionResult } = targetResult

export const deleteContacts = defineOperation({
  name: 'crm_delete_contacts',
  cli: 'contacts delete-many',
  routes: ['POST /v1/contacts/delete'],
  since: '2026-10-01',
  stability: 'beta',
  summary: 'Delete many contacts',
  forModels: 'It cannot be undone. By filter: dry run first, and send the token of its plan.',
  description:
    'Each is deleted as by `crm_delete_contact`: its conversations remain, without a contact. It ' +
    `cannot be undone. ${BY_FILTER}`,
  words: 'bulk delete, remove many customers, mass delete, clean up contacts',
  scope: 'crm:write',
  dryRun: true,
  idempotency: 'optional',
  confirm: 'delete',
  repeatable: true,
  emits: ['contact.deleted/1'],
  input: z.object(target),
  output: z.object(deletionResult),
  alternatives: targetAlternatives,
  heavy: ['filter', 'saved_filter_id'],
  jobs: true,
  errors: ['conflict', 'confirm_required', 'forbidden', 'not_found', 'service_unconfigured'],
  examples: [
    { title: 'One of two contacts does not exist', input: { contact_ids: ['42', '43'] }, output: oneMissing },
  ],
})
