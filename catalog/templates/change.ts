import { z } from 'zod'
import { mark } from '../marks.ts'
import { Id, IdInput, idOf, Version, VisibleName } from '../fields.ts'
import { defineOperation } from '../operation.ts'
import { untrusted } from '../text.ts'
import { LintResult, TemplateDraft, draft, lint, since } from './schemas.ts'

const payload = [
  { type: 'BODY', text: 'Hello {{1}}, your order is on its way.', example: { body_text: [['Ada']] } },
]

const created = { ...draft, name: 'order_delayed' }

const submitted = {
  submitted: true,
  id: '1',
  name: 'order_update',
  language: 'en_US',
  category: 'UTILITY',
  status: 'PENDING',
  business_account_id: '5467539754836534',
  business_account_name: 'Demo Coffee',
  lint,
  payload_preview: payload,
  version: '2',
}

const Payload = z.array(z.record(z.string(), z.unknown())).describe('The components that are submitted.')

const submission = {
  submitted: z.boolean().describe('False in a dry run.'),
  id: idOf('template').nullable().describe('Template id; null in a dry run that creates it.'),
  name: z.string().describe('Name.'),
  language: z.string().describe('Language.'),
  category: z.string().nullable().describe('Category, as assigned.'),
  status: z.string().nullable().describe('Review status, normally `PENDING`; null in a dry run.'),
  business_account_id: z.string().nullable().describe('Business account.'),
  business_account_name: z.string().nullable().describe('Its name.'),
  lint: LintResult.describe('Lint result.'),
  payload_preview: Payload,
  version: Version,
}

export const createTemplate = defineOperation({
  name: 'messaging_create_template',
  cli: 'templates create',
  routes: [{ route: 'POST /v1/templates', status: 201 }],
  since,
  stability: 'beta',
  summary: 'Submit a message template for review',
  description:
    'Lint errors are refused with `template_rules`. `messaging_get_template` shows the outcome. ' +
    'After `outcome_unknown`, repeat with the same key. ' +
    'Without a messaging provider it is a 503 `service_unconfigured`, dry runs too.',
  words: 'new template, submit a template for approval, write a template, register',
  scope: 'messaging:write',
  dryRun: true,
  idempotency: 'required',
  confirm: 'submit',
  repeatable: false,
  versioned: { kind: 'template' },
  emits: ['template.submitted/1'],
  input: z.object({
    template: TemplateDraft.describe('Draft.'),
    business_account_id: z.string().max(64).optional().describe('Account, if several.'),
    channel_id: z.string().max(64).optional().describe('Or a channel of the account.'),
    allow_category_change: z.boolean().default(true).describe('The provider may change the category.'),
  }),
  output: z.object(submission),
  errors: [
    'not_found',
    'forbidden',
    'conflict',
    'confirm_required',
    'upstream_error',
    'service_unconfigured',
  ],
  examples: [
    {
      title: 'An order update',
      input: { template: created },
      output: { ...submitted, name: 'order_delayed' },
    },
  ],
})

export const updateTemplate = defineOperation({
  name: 'messaging_update_template',
  cli: 'templates update',
  routes: ['PATCH /v1/templates/{template_id}'],
  since,
  stability: 'beta',
  summary: 'Submit a changed template for review again',
  description:
    'Send the whole draft; the same checks run. Name and language cannot change. A template in ' +
    'review, archived or disabled cannot be changed, nor can the category of an approved one. ' +
    'Without a messaging provider it is a 503 `service_unconfigured`, dry runs too.',
  words: 'edit a template, change its text, resubmit, fix a rejected template',
  scope: 'messaging:write',
  dryRun: true,
  idempotency: 'optional',
  confirm: 'submit',
  effect: 'replaces_and_sends',
  repeatable: true,
  versioned: { kind: 'template', by: 'template_id' },
  emits: ['template.submitted/1'],
  input: z.object({
    template_id: idOf('template').describe('Template id.'),
    template: TemplateDraft.describe('The edited draft.'),
  }),
  output: z.object(submission),
  errors: [
    'not_found',
    'conflict',
    'confirm_required',
    'precondition_failed',
    'upstream_error',
    'service_unconfigured',
  ],
  examples: [
    { title: 'Change the wording', input: { template_id: '1', template: draft }, output: submitted },
  ],
})

export const archiveTemplates = defineOperation({
  name: 'messaging_archive_templates',
  cli: 'templates archive',
  routes: ['POST /v1/templates/archive'],
  since,
  stability: 'stable',
  summary: 'Archive templates, so that they can no longer be sent',
  description:
    'Sends that use them will fail. They can be restored at the provider for 28 days. ' +
    'Without a messaging provider it is a 503 `service_unconfigured`, dry runs too.',
  words: 'delete a template, remove, retire, deactivate templates',
  scope: 'messaging:write',
  dryRun: true,
  idempotency: 'optional',
  confirm: 'archive',
  effect: 'replaces_and_sends',
  repeatable: true,
  emits: ['template.archived/1'],
  input: z.object({ ids: z.array(IdInput).min(1).max(20).describe('1 to 20 template ids.') }),
  output: z.object({
    archived: z.array(Id).describe('Archived now, or before.'),
    failed: z
      .array(
        z.object({
          id: z.string().describe('Template id.'),
          name: z.string().optional().describe('Its name, when known.'),
          code: z
            .enum(['not_found', 'account_not_connected', 'not_submitted', 'refused_by_whatsapp'])
            .describe('Why.'),
          reason: untrusted(z.string().describe('The reason in words.')),
        }),
      )
      .describe('The templates that could not be archived.'),
  }),
  errors: ['conflict', 'confirm_required', 'upstream_error', 'service_unconfigured'],
  examples: [
    {
      title: 'One of two fails',
      input: { ids: ['1', '999'] },
      output: {
        archived: ['1'],
        failed: [{ id: '999', code: 'not_found', reason: 'There is no such template in this workspace.' }],
      },
    },
  ],
})

export const syncTemplates = defineOperation({
  name: 'messaging_sync_templates',
  cli: 'templates sync',
  routes: ['POST /v1/templates/sync'],
  since,
  stability: 'beta',
  summary: 'Read all templates of the business accounts from the provider',
  description:
    'Stores those that were made elsewhere, such as before this service was connected, and what changed of the ' +
    'others: status, category, text, rejection reason, quality. Those that the provider no longer has are `DELETED`. ' +
    'A job does so once a day, and goes on with accounts that could not be read. ' +
    'Without a messaging provider it is a 503 `service_unconfigured`, dry runs too.',
  words:
    "import existing templates, templates made in the provider's manager, refresh, fetch, pull, template is missing, " +
    'update statuses of templates',
  scope: 'messaging:write',
  dryRun: true,
  idempotency: 'optional',
  effect: 'replaces',
  repeatable: true,
  emits: ['template.status_changed/1'],
  input: z.object({}),
  output: z.object({
    read: z.int().describe('Templates that the provider has.'),
    created: z.int().describe('Of these, new here.'),
    updated: z.int().describe('Of these, changed here.'),
    unchanged: z.int().describe('Of these, as they were.'),
    gone: z.int().describe('Templates that the provider no longer has: `DELETED` from now on.'),
    changes: z
      .array(
        z.object({
          id: idOf('template').nullable().describe('Template id; null in a dry run that creates it.'),
          name: z.string().describe('Name.'),
          language: z.string().describe('Language.'),
          change: z.enum(['created', 'updated', 'gone']).describe('What is done.'),
          status: z.string().describe('Review status.'),
          previous_status: z.string().nullable().describe('Status before; null for a new one.'),
        }),
      )
      .describe('The first 100 changes.'),
    problems: z
      .array(
        z.object({
          business_account_id: z.string().describe('Business account.'),
          business_account_name: z.string().nullable().describe('Its name.'),
          code: z.string().describe('Error code.'),
          reason: z.string().nullable().describe('Its reason.'),
          detail: untrusted(z.string().describe('The problem in words.')),
        }),
      )
      .describe('Accounts that could not be read.'),
  }),
  errors: ['conflict', 'service_unconfigured'],
  examples: [
    {
      title: 'An account that has lived before',
      input: {},
      output: {
        read: 2,
        created: 1,
        updated: 0,
        unchanged: 1,
        gone: 0,
        changes: [
          {
            id: '2',
            name: 'order_shipped',
            language: 'pt_BR',
            change: 'created',
            status: 'APPROVED',
            previous_status: null,
          },
        ],
        problems: [],
      },
    },
  ],
})

export const uploadSample = defineOperation({
  name: 'messaging_upload_template_sample',
  cli: 'templates upload-sample',
  routes: [{ route: 'POST /v1/templates/samples', status: 201 }],
  since,
  stability: 'stable',
  summary: 'Upload the sample of a media header',
  description:
    'Returns the `media_handle` that a draft needs. Images JPEG or PNG up to 5 MB, MP4 video up ' +
    'to 16 MB, PDF documents up to 16 MB. A repeat after `outcome_unknown` uploads it again. ' +
    'Without a messaging provider it is a 503 `service_unconfigured`, dry runs too.',
  words: 'upload a header image, video or document for a template, sample media, example file',
  scope: 'messaging:write',
  dryRun: true,
  idempotency: 'optional',
  effect: 'sends',
  repeatable: true,
  emits: [],
  maxBytes: 24 * 1024 * 1024,
  input: z.object({
    file_name: VisibleName(200).describe('File name.'),
    content_type: z
      .enum(['image/jpeg', 'image/png', 'video/mp4', 'application/pdf'])
      .describe('Media type of the file.'),
    data: mark(z.base64().min(4).max(22_500_000), { private: 'messageText' }).describe(
      'The bytes in base64.',
    ),
    business_account_id: z
      .string()
      .max(64)
      .optional()
      .describe('The account whose templates use it; only needed if several have their own credentials.'),
  }),
  output: z.object({ media_handle: z.string().nullable().describe('Handle; null in a dry run.') }),
  errors: ['conflict', 'upstream_error', 'service_unconfigured'],
  examples: [
    {
      title: 'A picture',
      input: { file_name: 'sale.png', content_type: 'image/png', data: 'iVBORw0KGgo=' },
      output: { media_handle: '4::aW1hZ2UvcG5n:ARa' },
    },
  ],
})
