import { z } from 'zod'
import { ContactName, Id, idOf, list, page, Timestamp } from '../fields.ts'
import { defineOperation } from '../operation.ts'
import { ContactId } from './schemas.ts'

const since = '2026-10-01'

const ErasedTable = z.object({
  table: z.string().describe('Name of the table, as listed in docs/privacy.md.'),
  deleted: z.int().describe('Rows that were deleted.'),
  cleared: z.int().describe('Rows that stay, without personal data.'),
  pseudonymised: z.int().describe('Rows that stay for statistics, with only the id of the contact.'),
})

const Erasure = z
  .object({
    id: Id.describe('Erasure id.'),
    contact_id: idOf('contact').describe('The contact that was erased.'),
    state: z
      .enum(['running', 'done'])
      .describe(
        '`running`: the contact is deleted, copies are still being erased; `done`: everything is erased.',
      ),
    tables: z
      .array(ErasedTable)
      .describe(
        'The receipt so far: the outcome for rows, by table. Empty for staff with hidden phone numbers or ' +
          'channels.',
      ),
    created_by: z
      .object({
        id: Id.describe('Staff id.'),
        name: z.string().nullable().describe('Name; null if the staff member was deleted.'),
      })
      .describe('Who asked for it.'),
    created_at: Timestamp.describe('When it began.'),
    finished_at: Timestamp.nullable().describe('When the last copy was erased.'),
  })
  .meta({ id: 'Erasure' })

const erasure: z.input<typeof Erasure> = {
  id: '1',
  contact_id: '42',
  state: 'running',
  tables: [
    { table: 'contacts', deleted: 1, cleared: 0, pseudonymised: 0 },
    { table: 'contact_tags', deleted: 2, cleared: 0, pseudonymised: 0 },
  ],
  created_by: { id: '1', name: 'Olivia Owner' },
  created_at: '2026-10-01T09:30:00.000Z',
  finished_at: null,
}
const done: z.input<typeof Erasure> = {
  ...erasure,
  state: 'done',
  tables: [...erasure.tables, { table: 'messages', deleted: 0, cleared: 12, pseudonymised: 0 }],
  finished_at: '2026-10-01T09:30:04.000Z',
}

export const eraseContact = defineOperation({
  name: 'crm_erase_contact',
  cli: 'contacts erase',
  routes: [{ route: 'POST /v1/contacts/{contact_id}/erase', status: 202 }],
  since,
  stability: 'beta',
  summary: 'Erase a person: a contact and every copy of their personal data',
  forModels: 'It cannot be undone, and erases their messages too. Deleting a contact keeps those.',
  description:
    'For owners, admins and managers. At once the contact is deleted, its phone is free, nothing is ' +
    'sent to it, merges into it cannot be undone, and approval requests about it are cancelled. Then a ' +
    'job erases messages with their files, and copies in events, deliveries, the audit trail, stored ' +
    'responses, saved filters and the sandbox; `crm_get_erasure` returns the receipt. Reports keep ' +
    'their totals. It cannot be undone. For an erased contact it returns the current receipt. A later ' +
    'message from the same phone creates a new contact.',
  words:
    'erase, GDPR deletion, right to be forgotten, forget a customer, delete all personal data, ' +
    'privacy, anonymize, purge, wipe',
  scope: 'crm:write',
  dryRun: true,
  idempotency: 'optional',
  confirm: 'erase',
  repeatable: true,
  versioned: { kind: 'contact', by: 'contact_id' },
  emits: ['contact.erased/1', 'contact.deleted/1', 'approval.decided/1'],
  input: z.object({ contact_id: ContactId }),
  output: z.object({
    erasure: Erasure.extend({ id: Id.nullable().describe('Erasure id; null in a dry run.') }).describe(
      'The receipt so far. In a dry run: what would be erased, as far as it is quick to count.',
    ),
    sample: z
      .object({
        contact_id: idOf('contact').describe('Contact id.'),
        name: ContactName,
      })
      .optional()
      .describe('Only in a dry run: the contact.'),
  }),
  errors: ['not_found', 'forbidden', 'confirm_required', 'precondition_failed'],
  examples: [{ title: 'Erase a contact', input: { contact_id: '42' }, output: { erasure } }],
})

export const listErasures = defineOperation({
  name: 'crm_list_erasures',
  cli: 'contacts erasures',
  routes: ['GET /v1/erasures'],
  since,
  stability: 'beta',
  summary: 'List erasures of contacts with their receipts, newest first',
  description: 'For owners, admins and managers. Receipts contain no personal data.',
  words: 'GDPR erasures, deletion log, erased people, forgotten',
  scope: 'mcp:read',
  view: [
    { path: 'id' },
    { path: 'contact_id' },
    { path: 'state' },
    { path: 'created_by.name', title: 'by' },
    { path: 'created_at', title: 'began' },
    { path: 'finished_at', title: 'finished' },
  ],
  slim: ['id', 'contact_id', 'state', 'created_at', 'finished_at'],
  input: z.object({
    contact_id: ContactId.optional().describe('Only of this contact.'),
    state: z.enum(['running', 'done']).optional().describe('Only in this state.'),
    ...page,
  }),
  output: z.object(list(Erasure)),
  errors: ['forbidden'],
  examples: [{ title: 'All erasures', input: {}, output: { data: [done], next_cursor: null } }],
})

export const getErasure = defineOperation({
  name: 'crm_get_erasure',
  cli: 'contacts erasure',
  routes: ['GET /v1/erasures/{erasure_id}'],
  since,
  stability: 'beta',
  summary: 'Show the receipt of an erasure: the outcome for the rows of each table',
  description: 'For owners, admins and managers.',
  words: 'proof of erasure, receipt, evidence that data was erased, GDPR deletion certificate',
  scope: 'mcp:read',
  input: z.object({ erasure_id: Id.describe('Erasure id.') }),
  output: z.object(Erasure.shape),
  errors: ['forbidden', 'not_found'],
  examples: [{ title: 'One that is done', input: { erasure_id: '1' }, output: done }],
})
