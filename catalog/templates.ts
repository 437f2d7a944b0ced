import { z } from 'zod'
import { Id, IdInput, listWithTotal, page, Search, Timestamp } from './fields.ts'
import { operation } from './operation.ts'

const since = '2026-10-01'

export const headerFormats = ['TEXT', 'IMAGE', 'VIDEO', 'DOCUMENT', 'LOCATION'] as const
export const buttonTypes = [
  'QUICK_REPLY',
  'URL',
  'PHONE_NUMBER',
  'COPY_CODE',
  'FLOW',
  'VOICE_CALL',
  'OTP',
] as const

const Variable = z.object({
  index: z.int().describe('Position, from 1.'),
  sample: z.string().nullable().describe('Sample value.'),
})

export const Template = z
  .object({
    id: Id.describe('Template id.'),
    name: z.string().describe('Name.'),
    language: z.string().nullable().describe('Language code.'),
    category: z.string().nullable().describe('`MARKETING`, `UTILITY` or `AUTHENTICATION`.'),
    sub_category: z.string().nullable().describe('Finer category.'),
    status: z
      .string()
      .nullable()
      .describe(
        'Review status, such as `PENDING`, `APPROVED`, `REJECTED`, `PAUSED`, `DISABLED`, `IN_APPEAL` or `ARCHIVED`; `SUBMITTING` until the provider has taken it.',
      ),
    rejection_reason: z
      .string()
      .nullable()
      .describe("The reviewer's reason, verbatim, when rejected or paused."),
    body_preview: z.string().nullable().describe('The body with its samples filled in.'),
    variable_count: z.int().describe('Body variables to supply when sending.'),
    header_format: z.string().nullable().describe('`TEXT`, `IMAGE`, `VIDEO`, `DOCUMENT` or `LOCATION`.'),
    header: z
      .object({
        format: z.string().nullable().describe('As `header_format`.'),
        text: z.string().nullable().describe('Text of a text header.'),
        variables: z
          .array(
            Variable.extend({ media_sample: z.string().nullable().describe('Handle of the media sample.') }),
          )
          .describe('What the header wants when sending.'),
      })
      .nullable()
      .describe('Header.'),
    body: z
      .object({
        text: z.string().nullable().describe('Text.'),
        variables: z.array(Variable).describe('Variables.'),
      })
      .nullable()
      .describe('Body.'),
    footer: z.string().nullable().describe('Footer.'),
    buttons: z
      .array(
        z.object({
          index: z.int().describe('Position, from 0.'),
          type: z.string().describe('Button type.'),
          text: z.string().nullable().describe('Label.'),
          url: z.string().nullable().describe('Address.'),
          dynamic_url: z
            .boolean()
            .describe('True: the address ends with a variable, so a suffix is needed when sending.'),
          url_example: z.string().nullable().describe('Example of a whole address.'),
          phone_number: z.string().nullable().describe('Number that is called.'),
          coupon_code: z.string().nullable().describe('Sample coupon code.'),
          flow_id: z.string().nullable().describe('Flow.'),
        }),
      )
      .describe('Buttons in display order.'),
    carousel_cards: z.int().describe('Cards of a carousel; 0: none.'),
    limited_time_offer: z
      .object({
        text: z.string().nullable().describe('Text.'),
        has_expiration: z.boolean().describe('A countdown is shown.'),
      })
      .nullable()
      .describe('Limited-time offer.'),
    meta_errors: z.unknown().describe('The last error that the provider gave for it.'),
    created_at: Timestamp.nullable().describe('When it was made.'),
    updated_at: Timestamp.nullable().describe('When it last changed.'),
  })
  .meta({ id: 'Template' })

const Text = (most: number, what: string) => z.string().max(most).optional().describe(what)

const Button = z.strictObject({
  type: z.enum(buttonTypes).describe('Button type.'),
  text: Text(200, 'Label, at most 25 characters.'),
  url: Text(4000, 'https; a dynamic one ends with `{{1}}`.'),
  url_example: Text(4000, 'Whole address with the variable filled.'),
  phone_number: Text(64, 'E.164 number.'),
  coupon_code: Text(64, 'Sample, at most 20 characters.'),
  flow_id: Text(64, 'Flow.'),
  flow_action: z.enum(['NAVIGATE', 'DATA_EXCHANGE']).optional().describe('`NAVIGATE` when absent.'),
  navigate_screen: Text(200, 'First screen.'),
  otp_type: z.enum(['COPY_CODE', 'ONE_TAP', 'ZERO_TAP']).optional().describe('`COPY_CODE` when absent.'),
  supported_apps: z
    .array(
      z.strictObject({
        package_name: z.string().max(255).describe('Android package.'),
        signature_hash: z.string().max(64).describe('Signature hash.'),
      }),
    )
    .max(5)
    .optional()
    .describe('For ONE_TAP, ZERO_TAP.'),
})

/** What create and lint take. Only bounds are checked here; every other rule is a lint rule (contract 10). */
export const TemplateDraft = z.strictObject({
  name: z.string().max(1000).describe('Lowercase letters, digits, underscores.'),
  language: z.string().max(20).describe('Such as `en_US`.'),
  category: z.string().max(40).describe('`MARKETING`, `UTILITY` or `AUTHENTICATION`.'),
  header: z
    .strictObject({
      format: z.enum(headerFormats).describe('What the header is.'),
      text: Text(1000, 'Of TEXT: at most 60 characters and one `{{1}}`.'),
      example: Text(1000, 'Sample for its `{{1}}`.'),
      media_handle: Text(4000, 'Of IMAGE, VIDEO, DOCUMENT: handle of a sample.'),
    })
    .optional()
    .describe('Header.'),
  body: z
    .strictObject({
      text: Text(5000, 'At most 1024 characters with `{{1}}`, `{{2}}` …; none for AUTHENTICATION.'),
      examples: z.array(z.string()).max(100).optional().describe('Sample of each variable.'),
      add_security_recommendation: z.boolean().optional().describe('AUTHENTICATION only.'),
    })
    .default({})
    .describe('Body.'),
  footer: z
    .strictObject({
      text: Text(1000, 'At most 60 characters, no variables.'),
      code_expiration_minutes: z.int().optional().describe('AUTHENTICATION only, 1 to 90.'),
    })
    .optional()
    .describe('Footer.'),
  buttons: z.array(Button).max(30).optional().describe('At most 10.'),
  limited_time_offer: z
    .strictObject({
      text: z.string().max(200).describe('At most 16 characters.'),
      has_expiration: z.boolean().optional().describe('Countdown.'),
    })
    .optional()
    .describe('MARKETING, with a COPY_CODE button.'),
  carousel: z
    .strictObject({
      cards: z
        .array(
          z.strictObject({
            header_format: z.enum(['IMAGE', 'VIDEO']).describe('Alike on every card.'),
            media_handle: z.string().max(4000).describe('Handle of a sample.'),
            body: z
              .strictObject({
                text: Text(5000, 'Card text.'),
                examples: z.array(z.string()).max(100).optional().describe('Samples.'),
              })
              .optional()
              .describe('Card text.'),
            buttons: z
              .array(Button)
              .max(5)
              .describe('1 or 2 QUICK_REPLY, URL, PHONE_NUMBER; alike on every card.'),
          }),
        )
        .max(20)
        .describe('2 to 10 cards.'),
    })
    .optional()
    .describe('MARKETING only; without header, footer, buttons.'),
})
export type TemplateDraft = z.output<typeof TemplateDraft>

export const LintResult = z
  .object({
    valid: z.boolean().describe('True: no errors; warnings may remain.'),
    errors: z.int().describe('How many errors.'),
    warnings: z.int().describe('How many warnings.'),
    issues: z
      .array(
        z.object({
          rule: z.string().describe('Id of the rule.'),
          severity: z
            .enum(['error', 'warning', 'info'])
            .describe('`error`: it is refused, or surely rejected in review.'),
          path: z.string().describe('Where, such as `body.text` or `buttons[0].url`.'),
          message: z.string().describe('What is wrong.'),
          fix: z.string().describe('The mend.'),
        }),
      )
      .describe('What was found, errors first.'),
    variables: z
      .object({ header: z.int().describe('Header variables.'), body: z.int().describe('Body variables.') })
      .describe('Variables found.'),
    preview: z.string().nullable().describe('The body with its samples filled in.'),
  })
  .meta({ id: 'LintResult' })

const draft = {
  name: 'order_update',
  language: 'en_US',
  category: 'UTILITY',
  body: { text: 'Hello {{1}}, your order is on its way.', examples: ['Ada'] },
}
const lint = {
  valid: true,
  errors: 0,
  warnings: 0,
  issues: [],
  variables: { header: 0, body: 1 },
  preview: 'Hello Ada, your order is on its way.',
}
const payload = [
  { type: 'BODY', text: 'Hello {{1}}, your order is on its way.', example: { body_text: [['Ada']] } },
]
const template = {
  id: '11',
  name: 'order_update',
  language: 'en_US',
  category: 'UTILITY',
  sub_category: null,
  status: 'APPROVED',
  rejection_reason: null,
  body_preview: 'Hello Ada, your order is on its way.',
  variable_count: 1,
  header_format: null,
  header: null,
  body: { text: 'Hello {{1}}, your order is on its way.', variables: [{ index: 1, sample: 'Ada' }] },
  footer: null,
  buttons: [],
  carousel_cards: 0,
  limited_time_offer: null,
  meta_errors: null,
  created_at: '2026-10-01T09:30:00.000Z',
  updated_at: '2026-10-01T09:30:02.000Z',
}
const created = { ...draft, name: 'order_delayed' }
const submitted = {
  submitted: true,
  id: '11',
  name: 'order_update',
  language: 'en_US',
  category: 'UTILITY',
  status: 'PENDING',
  business_account_id: '5467539754836534',
  business_account_name: 'Demo Coffee',
  lint,
  payload_preview: payload,
}

const Payload = z
  .array(z.record(z.string(), z.unknown()))
  .describe('The exact components that the provider receives.')
const submission = {
  submitted: z.boolean().describe('False in a dry run.'),
  id: Id.nullable().describe('Template id; null for one that a dry run would create.'),
  name: z.string().describe('Name.'),
  language: z.string().describe('Language.'),
  category: z.string().nullable().describe('Category, as the provider settled it.'),
  status: z.string().nullable().describe('Review status, normally `PENDING`; null in a dry run.'),
  business_account_id: z.string().nullable().describe('Account at the provider.'),
  business_account_name: z.string().nullable().describe('Its name.'),
  lint: LintResult.describe('What lint says of the draft.'),
  payload_preview: Payload,
}

export const listTemplates = operation({
  name: 'messaging_list_templates',
  cli: 'templates list',
  routes: ['GET /v1/templates'],
  since,
  stability: 'stable',
  summary: 'List message templates by name',
  scope: 'mcp:read',
  input: z.object({
    search: Search('Name or body'),
    status: z.string().min(1).max(40).optional().describe('Only with this review status, ignoring case.'),
    category: z.string().min(1).max(40).optional().describe('Only of this category, ignoring case.'),
    language: z
      .string()
      .min(1)
      .max(20)
      .optional()
      .describe('Only in this language, such as `en_US`; `en` alone is another one.'),
    ...page,
  }),
  output: z.object(listWithTotal(Template)),
  errors: [],
  examples: [
    {
      title: 'What can be sent',
      input: { status: 'APPROVED' },
      output: { data: [template], total: 1, next_cursor: null },
    },
  ],
})

export const getTemplate = operation({
  name: 'messaging_get_template',
  cli: 'templates get',
  routes: ['GET /v1/templates/{template_id}'],
  since,
  stability: 'stable',
  summary: 'Get one template with its variables and review status',
  scope: 'mcp:read',
  input: z.object({ template_id: Id.describe('Template id.') }),
  output: Template,
  errors: ['not_found'],
  examples: [{ title: 'One template', input: { template_id: '11' }, output: template }],
})

export const lintTemplate = operation({
  name: 'messaging_lint_template',
  cli: 'templates lint',
  routes: ['POST /v1/templates/lint'],
  since,
  stability: 'stable',
  summary: 'Check a template draft against every rule of the provider and its reviewers',
  description: 'Nothing is saved. Each issue names its rule, its place and the mend.',
  scope: 'mcp:read',
  input: z.object({ template: TemplateDraft.describe('The draft.') }),
  output: LintResult,
  errors: [],
  examples: [{ title: 'A good draft', input: { template: draft }, output: lint }],
})

export const createTemplate = operation({
  name: 'messaging_create_template',
  cli: 'templates create',
  routes: [{ route: 'POST /v1/templates', status: 201 }],
  since,
  stability: 'beta',
  summary: 'Submit a message template for review',
  description: 'Lint errors refuse it: `template_rules`. `messaging_get_template` tells the outcome.',
  scope: 'messaging:write',
  dryRun: true,
  idempotency: 'required',
  confirm: 'submit',
  repeatable: false,
  emits: ['template.submitted/1'],
  input: z.object({
    template: TemplateDraft.describe('Draft.'),
    business_account_id: z.string().max(64).optional().describe('Account, if several.'),
    channel_id: z.string().max(64).optional().describe('A channel of it, instead.'),
    allow_category_change: z
      .boolean()
      .default(true)
      .describe('The provider may change the category instead of rejecting.'),
  }),
  output: z.object(submission),
  errors: ['not_found', 'forbidden', 'conflict', 'confirm_required', 'upstream_error'],
  examples: [
    {
      title: 'An order update',
      input: { template: created },
      output: { ...submitted, name: 'order_delayed' },
    },
  ],
})

export const updateTemplate = operation({
  name: 'messaging_update_template',
  cli: 'templates update',
  routes: ['PATCH /v1/templates/{template_id}'],
  since,
  stability: 'beta',
  summary: 'Submit a changed template for review again',
  description:
    'The whole draft, with the same checks. Name and language stay; a template in review, archived or disabled cannot be changed, nor the category of an approved one.',
  scope: 'messaging:write',
  dryRun: true,
  idempotency: 'optional',
  confirm: 'submit',
  repeatable: true,
  emits: ['template.submitted/1'],
  input: z.object({
    template_id: Id.describe('Template id.'),
    template: TemplateDraft.describe('The edited draft.'),
  }),
  output: z.object(submission),
  errors: ['not_found', 'conflict', 'confirm_required', 'upstream_error'],
  examples: [{ title: 'Another wording', input: { template_id: '11', template: draft }, output: submitted }],
})

export const archiveTemplates = operation({
  name: 'messaging_archive_templates',
  cli: 'templates archive',
  routes: ['POST /v1/templates/archive'],
  since,
  stability: 'stable',
  summary: 'Archive templates, so that they can no longer be sent',
  description: 'Whatever uses them begins to fail. They can be restored at the provider for 28 days.',
  scope: 'messaging:write',
  dryRun: true,
  idempotency: 'optional',
  confirm: 'archive',
  repeatable: true,
  emits: ['template.archived/1'],
  input: z.object({ ids: z.array(IdInput).min(1).max(20).describe('1 to 20 template ids.') }),
  output: z.object({
    archived: z.array(Id).describe('Archived now, or before.'),
    failed: z
      .array(
        z.object({
          id: z.string().describe('Template id.'),
          name: z.string().optional().describe('Its name, where it is known.'),
          code: z
            .enum(['not_found', 'account_not_connected', 'not_submitted', 'refused_by_whatsapp'])
            .describe('Why.'),
          reason: z.string().describe('The same as a sentence.'),
        }),
      )
      .describe('What could not be archived.'),
  }),
  errors: ['confirm_required', 'upstream_error'],
  examples: [
    {
      title: 'One of two',
      input: { ids: ['11', '12'] },
      output: {
        archived: ['11'],
        failed: [{ id: '12', code: 'not_found', reason: 'There is no such template in this workspace.' }],
      },
    },
  ],
})

export const uploadSample = operation({
  name: 'messaging_upload_template_sample',
  cli: 'templates upload-sample',
  routes: [{ route: 'POST /v1/templates/samples', status: 201 }],
  since,
  stability: 'stable',
  summary: 'Upload the sample of a media header',
  description:
    'Answers the `media_handle` that a draft needs. Images JPEG or PNG up to 5 MB, MP4 video up to 16 MB, PDF documents up to 16 MB.',
  scope: 'messaging:write',
  dryRun: true,
  idempotency: 'optional',
  repeatable: true,
  emits: [],
  maxBytes: 24 * 1024 * 1024,
  input: z.object({
    file_name: z.string().min(1).max(200).describe('File name.'),
    content_type: z.enum(['image/jpeg', 'image/png', 'video/mp4', 'application/pdf']).describe('What it is.'),
    data: z.base64().min(4).max(22_500_000).describe('The bytes in base64.'),
  }),
  output: z.object({ media_handle: z.string().nullable().describe('Handle; null in a dry run.') }),
  errors: ['upstream_error', 'service_unconfigured'],
  examples: [
    {
      title: 'A picture',
      input: { file_name: 'sale.png', content_type: 'image/png', data: 'iVBORw0KGgo=' },
      output: { media_handle: '4::aW1hZ2UvcG5n:ARa' },
    },
  ],
})
