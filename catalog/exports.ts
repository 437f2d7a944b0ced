import { z } from 'zod'
import { KEPT_PLAN, MAX_AT_ONCE, target, targetAlternatives } from './bulk-jobs.ts'
import { ContactId } from './contacts/schemas.ts'
import { ContactName, EXPENSIVE_READ, Id, idOf, list, page, Timestamp } from './fields.ts'
import { defineOperation } from './operation.ts'

const since = '2026-10-01'

const states = ['running', 'done', 'failed', 'erased', 'expired'] as const

const ExportedTable = z.object({
  table: z.string().describe('Name of the table, as listed in docs/privacy.md.'),
  rows: z.int().describe('Its rows that are in the file.'),
})

const ContactsFile = z.object({
  format: z.enum(['csv', 'jsonl']).describe('`csv`, or `jsonl`: one JSON object on a line.'),
  total: z.int().describe('Contacts in the export, fixed at its start.'),
  done: z.int().describe('Contacts processed.'),
  written: z.int().describe('Contacts in the file, without those deleted meanwhile.'),
  truncated: z
    .int()
    .describe('Contacts with a truncated long text: importing the file would truncate the stored text.'),
})

const Export = z
  .object({
    id: Id.describe('Export id.'),
    kind: z
      .enum(['person', 'contacts'])
      .describe('`person`: all personal data of one contact; `contacts`: many contacts, one on each line.'),
    contact_id: idOf('contact').nullable().describe('The contact; null for `contacts`.'),
    contacts: ContactsFile.nullable().describe('Details of a file of contacts; null for `person`.'),
    state: z
      .enum(states)
      .describe(
        '`running`: it is being made; `done`: the file can be downloaded; `failed`: see `problem`; ' +
          '`erased`: a person in it was erased, and the file with them; `expired`: the file was deleted.',
      ),
    progress: z.number().describe('Progress, from 0 to 1.'),
    tables: z.array(ExportedTable).describe('What is in the file so far.'),
    file_name: z.string().describe('Name of the file: a zip archive, or CSV or JSON Lines.'),
    size: z.int().nullable().describe('Bytes so far; null if there is no file.'),
    sha256: z.string().nullable().describe('SHA-256 of the file in hex; null unless it is done.'),
    problem: z.string().nullable().describe('Why it failed.'),
    created_by: z
      .object({
        id: Id.describe('Staff id.'),
        name: z.string().nullable().describe('Name; null if the staff member was deleted.'),
      })
      .describe('Who asked for it.'),
    created_at: Timestamp.describe('When it began.'),
    finished_at: Timestamp.nullable().describe('When the file was complete.'),
    file_until: Timestamp.nullable().describe('When the file is deleted; null unless it is done.'),
  })
  .meta({ id: 'Export' })

const running: z.input<typeof Export> = {
  id: '1',
  kind: 'person',
  contact_id: '42',
  contacts: null,
  state: 'running',
  progress: 0.04,
  tables: [{ table: 'contacts', rows: 1 }],
  file_name: 'person-42-export-1.zip',
  size: 412,
  sha256: null,
  problem: null,
  created_by: { id: '1', name: 'Olivia Owner' },
  created_at: '2026-10-01T09:30:00.000Z',
  finished_at: null,
  file_until: null,
}
const done: z.input<typeof Export> = {
  ...running,
  state: 'done',
  progress: 1,
  tables: [...running.tables, { table: 'messages', rows: 12 }],
  size: 48_213,
  sha256: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
  finished_at: '2026-10-01T09:30:04.000Z',
  file_until: '2026-10-08T09:30:04.000Z',
}

export const exportPerson = defineOperation({
  name: 'crm_export_person',
  cli: 'contacts export-person',
  routes: [{ route: 'POST /v1/contacts/{contact_id}/export-person', status: 202 }],
  since,
  stability: 'beta',
  summary: 'Export all personal data of a contact as a zip archive of JSON and files',
  forModels:
    "For a customer's request for access to their data. crm_get_export shows when the file is ready.",
  description:
    'For owners, admins and managers without visibility limits, with a key that has `mcp:read`. A job ' +
    'creates the file: the contact, its values and consents, conversations with messages, notes and ' +
    'files, and copies in events, deliveries, the audit trail, approvals, jobs, stored responses and ' +
    'saved filters, with a manifest. Records about several people are reduced to this one. ' +
    '`crm_get_export` shows the progress, then a URL. The file is kept for 7 days, or until the person ' +
    'is erased. While an export of the contact is running, that one is returned. A dry run returns the ' +
    'counts that are quick to compute.',
  words:
    'GDPR export, data subject access request, DSAR, personal data of a customer, portability, copy of ' +
    'all data',
  scope: 'crm:write',
  dryRun: true,
  idempotency: 'optional',
  effect: 'adds',
  repeatable: false,
  // A file of all that is held on a person.
  asks: true,
  emits: [],
  input: z.object({ contact_id: ContactId }),
  output: z.object({
    export: Export.extend({ id: Id.nullable().describe('Export id; null in a dry run.') }).describe(
      'The export as it begins. In a dry run: what it would have, as far as it is counted quickly.',
    ),
    file_bytes: z
      .int()
      .optional()
      .describe('Only in a dry run: bytes of the files of messages that would be in it.'),
    sample: z
      .object({
        contact_id: idOf('contact').describe('Contact id.'),
        name: ContactName,
      })
      .optional()
      .describe('Only in a dry run: the contact.'),
  }),
  errors: ['not_found', 'forbidden'],
  examples: [{ title: 'Export a person', input: { contact_id: '42' }, output: { export: running } }],
})

const runningContacts: z.input<typeof Export> = {
  ...running,
  id: '2',
  kind: 'contacts',
  contact_id: null,
  contacts: {
    format: 'csv',
    total: 2195,
    done: 500,
    written: 499,
    truncated: 0,
  },
  progress: 0.23,
  tables: [{ table: 'contacts', rows: 499 }],
  file_name: 'contacts-export-2.csv',
  size: 61_204,
}

export const exportContacts = defineOperation({
  name: 'crm_export_contacts',
  cli: 'exports contacts',
  routes: [{ route: 'POST /v1/contacts/export', status: 202 }],
  since,
  stability: 'beta',
  summary: 'Export the contacts of a filter as CSV or JSON Lines',
  forModels: 'Dry run first: it counts. crm_get_export has the file.',
  description:
    `Takes a filter, a saved filter, or up to ${MAX_AT_ONCE} ids, with a key that also has \`mcp:read\`. ` +
    'A job creates the same file as `wcrm contacts export` with this key, newest contacts first; `wcrm ' +
    'contacts import` reads it. It contains only what this key may see. The set of contacts is fixed ' +
    'at the start; values are those at the time of writing, and contacts deleted meanwhile are left ' +
    'out. The export fails if the key is revoked or its visibility changes. `crm_get_export` shows the ' +
    'progress, then a URL, to this key and to owners, admins and managers without visibility limits. ' +
    'The file is kept for 7 days, or until a person in it is erased. A dry run counts the contacts. ' +
    `${KEPT_PLAN} By filter it is ${EXPENSIVE_READ}`,
  words: 'download contacts as CSV, Excel, spreadsheet, export customers, dump, list to a file, backup',
  scope: 'crm:write',
  dryRun: true,
  idempotency: 'optional',
  effect: 'adds',
  repeatable: false,
  // More persons than a key may see in a day.
  asks: true,
  emits: [],
  input: z.object({
    ...target,
    format: z
      .enum(['csv', 'jsonl'])
      .default('csv')
      .describe('`csv`, for spreadsheets, or `jsonl`: one JSON object on a line.'),
  }),
  output: z.object({
    export: Export.extend({
      id: Id.nullable().describe('Export id; null in a dry run.'),
    }).describe('The export as it begins. In a dry run: what it would be.'),
  }),
  alternatives: targetAlternatives,
  heavy: ['filter', 'saved_filter_id'],
  errors: ['forbidden', 'not_found', 'service_unconfigured'],
  examples: [
    {
      title: 'Export the contacts that may be written to',
      input: { filter: { dnd: { eq: false } } },
      output: {
        export: {
          ...runningContacts,
          contacts: { ...runningContacts.contacts!, done: 0, written: 0 },
          progress: 0,
          tables: [],
          size: 0,
        },
      },
    },
  ],
})

export const listExports = defineOperation({
  name: 'crm_list_exports',
  cli: 'exports list',
  routes: ['GET /v1/exports'],
  since,
  stability: 'beta',
  summary: 'List exports with their state, newest first',
  description:
    'Owners, admins and managers without visibility limits see all; others see exports of contacts by ' +
    'the same key. Exports are listed for 30 days.',
  words: 'exports, downloads, finished files',
  scope: 'mcp:read',
  view: [
    { path: 'id' },
    { path: 'kind' },
    { path: 'contact_id' },
    { path: 'state' },
    { path: 'size' },
    { path: 'created_by.name', title: 'by' },
    { path: 'created_at', title: 'began' },
    { path: 'file_until', title: 'kept until' },
  ],
  slim: ['id', 'kind', 'contact_id', 'state', 'progress', 'size', 'created_at', 'file_until'],
  input: z.object({
    contact_id: ContactId.optional().describe('Only of this contact.'),
    state: z.enum(states).optional().describe('Only in this state.'),
    ...page,
  }),
  output: z.object(list(Export)),
  errors: [],
  examples: [{ title: 'All exports', input: {}, output: { data: [done], next_cursor: null } }],
})

export const getExport = defineOperation({
  name: 'crm_get_export',
  cli: 'exports get',
  routes: ['GET /v1/exports/{export_id}'],
  since,
  stability: 'beta',
  summary: 'Show the progress of an export, and the URL of its file',
  description:
    'When it is done, `url` works without a key for 5 minutes, with range requests, so that a download ' +
    'can be resumed. Each download is in the audit trail. On the command line `--output FILE` saves ' +
    'the file and verifies its SHA-256. A key whose visibility has changed since it started the export ' +
    'gets no URL, unless it has no visibility limits.',
  words: 'download an export file, export status, ready, link to the file',
  scope: 'mcp:read',
  input: z.object({ export_id: Id.describe('Export id.') }),
  output: z.object({
    ...Export.shape,
    url: z.string().nullable().describe('URL of the file, readable without a key until `url_expires_at`.'),
    url_expires_at: Timestamp.nullable().describe('When the URL expires.'),
  }),
  errors: ['not_found'],
  examples: [
    {
      title: 'One that is done',
      input: { export_id: '1' },
      output: {
        ...done,
        url: 'https://wcrm.example.com/exports/x7Fv…',
        url_expires_at: '2026-10-01T09:37:00.000Z',
      },
    },
  ],
})
