import { z } from 'zod'
import { ContactId } from './contacts/schemas.ts'
import { Id, list, page, Timestamp } from './fields.ts'
import { defineOperation } from './operation.ts'
import { untrusted } from './text.ts'

const since = '2026-11-23'

const states = ['running', 'done', 'failed', 'erased', 'expired'] as const

const ExportedTable = z.object({
  table: z.string().describe('Name of the table, as docs/privacy.md lists it.'),
  rows: z.int().describe('Its rows that are in the file.'),
})

const Export = z
  .object({
    id: Id.describe('Export id.'),
    kind: z.literal('person').describe('`person`: everything held on one contact.'),
    contact_id: Id.nullable().describe('The contact.'),
    state: z
      .enum(states)
      .describe(
        '`running`: it is being made; `done`: the file can be downloaded; `failed`: see `problem`; ' +
          '`erased`: the person was erased, and the file with them; `expired`: the file was deleted.',
      ),
    progress: z.number().describe('How far it is, from 0 to 1.'),
    tables: z.array(ExportedTable).describe('What is in the file so far.'),
    file_name: z.string().describe('Name of the file: a zip archive.'),
    size: z.int().nullable().describe('Bytes so far; null where there is no file.'),
    sha256: z.string().nullable().describe('SHA-256 of the file in hex; null unless it is done.'),
    problem: z.string().nullable().describe('Why it failed.'),
    created_by: z
      .object({
        id: Id.describe('Staff id.'),
        name: z.string().nullable().describe('Name; null when the staff member is gone.'),
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
  summary: 'Export everything held on a person as a zip archive of JSON and files',
  forModels:
    'For requests of a person to see what is held on them. crm_get_export says when the file is ready.',
  description:
    'By owners, admins and managers from whom nothing is hidden, with a key that may read. A job makes the file: ' +
    'the contact, its values and consents, conversations with messages and notes, their files, and copies in ' +
    'events, deliveries, the audit trail, approvals, jobs, stored answers and saved filters, with a manifest. Of ' +
    'records about several people it has what is about this one. `crm_get_export` shows the progress, then a URL. ' +
    'The file is kept for 7 days, and erased with the person. While one is being made for the contact, it answers ' +
    'that one. A dry run counts what is quick to count.',
  scope: 'crm:write',
  dryRun: true,
  idempotency: 'optional',
  repeatable: false,
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
        contact_id: Id.describe('Contact id.'),
        name: untrusted(z.string().nullable().describe('Name.')),
      })
      .optional()
      .describe('Only in a dry run: the contact.'),
  }),
  errors: ['not_found', 'forbidden'],
  examples: [{ title: 'Export a person', input: { contact_id: '42' }, output: { export: running } }],
})

export const listExports = defineOperation({
  name: 'crm_list_exports',
  cli: 'exports list',
  routes: ['GET /v1/exports'],
  since,
  stability: 'beta',
  summary: 'List exports with their state, newest first',
  description:
    'Exports of persons are shown to owners, admins and managers from whom nothing is hidden. They are listed for ' +
    '30 days.',
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
  summary: 'Show an export: how far it is, and where its file can be downloaded',
  description:
    'When it is done, `url` is where the file is read without a key for 5 minutes; ranges are answered, so that a ' +
    'download can go on where it stopped. Each download is in the audit trail. On the command line `--output FILE` ' +
    'saves the file and checks its SHA-256.',
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
