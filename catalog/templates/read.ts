import { z } from 'zod'
import { idOf, listWithTotal, page, Search, Timestamp, Version } from '../fields.ts'
import { defineOperation } from '../operation.ts'
import { untrusted } from '../text.ts'
import { LintResult, TemplateDraft, draft, lint, since } from './schemas.ts'

const Variable = z.object({
  index: z.int().describe('Position, from 1.'),
  sample: z.string().nullable().describe('Sample value.'),
})

const Header = z.object({
  format: z.string().nullable().describe('As `header_format`.'),
  text: z.string().nullable().describe('Text of a text header.'),
  variables: z
    .array(Variable.extend({ media_sample: z.string().nullable().describe('Handle of the media sample.') }))
    .describe('What the header requires when sending.'),
})

const Body = z.object({
  text: z.string().nullable().describe('Text.'),
  variables: z.array(Variable).describe('Variables.'),
  add_security_recommendation: z.boolean().optional().describe('Of `AUTHENTICATION`.'),
})

const Button = z.object({
  index: z.int().describe('Position, from 0.'),
  type: z.string().describe('Button type.'),
  text: z.string().nullable().describe('Label.'),
  url: z.string().nullable().describe('Address.'),
  dynamic_url: z
    .boolean()
    .describe('True: the URL ends with a variable, so a suffix is required when sending.'),
  url_example: z.string().nullable().describe('Example of the full URL.'),
  phone_number: z.string().nullable().describe('Phone number to call.'),
  coupon_code: z.string().nullable().describe('Sample coupon code.'),
  flow_id: z.string().nullable().describe('Flow.'),
  flow_action: z.string().optional().describe('Of FLOW: `NAVIGATE` or `DATA_EXCHANGE`.'),
  navigate_screen: z.string().optional().describe('Of FLOW: first screen.'),
  otp_type: z.string().optional().describe('Of OTP: `COPY_CODE`, `ONE_TAP` or `ZERO_TAP`.'),
  supported_apps: z
    .array(
      z.object({
        package_name: z.string().describe('Android package.'),
        signature_hash: z.string().describe('Signature hash.'),
      }),
    )
    .optional()
    .describe('Of OTP: apps that receive the code.'),
  zero_tap_terms_accepted: z.boolean().optional().describe('Of ZERO_TAP.'),
})

export const Template = z
  .object({
    id: idOf('template').describe('Template id.'),
    name: z.string().describe('Name.'),
    language: z.string().nullable().describe('Language code.'),
    category: z.string().nullable().describe('`MARKETING`, `UTILITY` or `AUTHENTICATION`.'),
    sub_category: z.string().nullable().describe('Finer category.'),
    status: z
      .string()
      .nullable()
      .describe(
        'Review status, such as `PENDING`, `APPROVED`, `REJECTED`, `PAUSED`, `DISABLED`, ' +
          '`IN_APPEAL`, `ARCHIVED` or `DELETED`; `SUBMITTING` until the provider has accepted it.',
      ),
    rejection_reason: untrusted(
      z.string().nullable().describe("The reviewer's reason, verbatim, when rejected or paused."),
    ),
    quality_rating: z.string().nullable().describe('Quality by the provider: `GREEN`, `YELLOW` or `RED`.'),
    body_preview: z.string().nullable().describe('The body with its samples filled in.'),
    variable_count: z.int().describe('Body variables to supply when sending.'),
    header_format: z.string().nullable().describe('`TEXT`, `IMAGE`, `VIDEO`, `DOCUMENT` or `LOCATION`.'),
    header: Header.nullable().describe('Header.'),
    body: Body.nullable().describe('Body.'),
    footer: z.string().nullable().describe('Footer.'),
    code_expiration_minutes: z
      .int()
      .nullable()
      .describe('Minutes until a code expires; null: not stated in the footer.'),
    buttons: z.array(Button).describe('Buttons in display order.'),
    carousel_cards: z.int().describe('Cards of a carousel; 0: none.'),
    cards: z
      .array(
        z.object({
          header: Header.nullable().describe('Image or video.'),
          body: Body.nullable().describe('Text of the card.'),
          buttons: z.array(Button).describe('Buttons.'),
        }),
      )
      .describe('The cards, in order.'),
    parameter_format: z.enum(['POSITIONAL', 'NAMED']).describe('Whether its variables are numbers or names.'),
    limited_time_offer: z
      .object({
        text: z.string().nullable().describe('Text.'),
        has_expiration: z.boolean().describe('True: a countdown is shown.'),
      })
      .nullable()
      .describe('Limited-time offer.'),
    meta_errors: untrusted(z.unknown().describe('The last error that the provider reported for it.')),
    created_at: Timestamp.nullable().describe('When it was created.'),
    updated_at: Timestamp.nullable().describe('When it was last changed.'),
    version: Version,
  })
  .meta({ id: 'Template' })

/** A template with what its next steps need: an edit, or a send. */
const TemplateDetails = z
  .object({
    ...Template.shape,
    draft: z
      .record(z.string(), z.unknown())
      .nullable()
      .describe(
        'The template as `messaging_create_template` and `messaging_update_template` take it; ' +
          'null when a draft cannot express it.',
      ),
    send_schema: z
      .record(z.string(), z.unknown())
      .nullable()
      .describe(
        'JSON Schema of `template` in `messaging_send_template` for this template; null when it has a button ' +
          'that cannot be sent.',
      ),
    send_example: z
      .record(z.string(), z.unknown())
      .nullable()
      .describe('A `template` with the samples as values.'),
  })
  .meta({ id: 'TemplateDetails' })

const template = {
  id: '1',
  name: 'order_update',
  language: 'en_US',
  category: 'UTILITY',
  sub_category: null,
  status: 'APPROVED',
  rejection_reason: null,
  quality_rating: null,
  body_preview: 'Hello Ada, your order is on its way.',
  variable_count: 1,
  header_format: null,
  header: null,
  body: { text: 'Hello {{1}}, your order is on its way.', variables: [{ index: 1, sample: 'Ada' }] },
  footer: null,
  code_expiration_minutes: null,
  buttons: [],
  carousel_cards: 0,
  cards: [],
  parameter_format: 'POSITIONAL' as const,
  limited_time_offer: null,
  meta_errors: null,
  created_at: '2026-10-01T09:30:00.000Z',
  updated_at: '2026-10-01T09:30:02.000Z',
  version: '3',
}

const templateDetails = {
  ...template,
  draft,
  send_schema: {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    properties: {
      name: { const: 'order_update' },
      language: { const: 'en_US' },
      body: {
        type: 'array',
        description: 'Values of the variables of the body, in order.',
        prefixItems: [
          {
            type: 'string',
            minLength: 1,
            maxLength: 1024,
            description: 'Value of {{1}}, such as "Ada".',
          },
        ],
        items: false,
        minItems: 1,
      },
    },
    required: ['name', 'language', 'body'],
    additionalProperties: false,
  },
  send_example: { name: 'order_update', language: 'en_US', body: ['Ada'] },
}

export const listTemplates = defineOperation({
  name: 'messaging_list_templates',
  cli: 'templates list',
  routes: ['GET /v1/templates'],
  since,
  stability: 'stable',
  summary: 'List message templates by name',
  forModels:
    'Templates are texts that the provider approved in advance, with variables. Only those with ' +
    'status APPROVED can be sent.',
  slim: [
    'id',
    'name',
    'language',
    'category',
    'status',
    'body_preview',
    'variable_count',
    'header_format',
    'buttons.type',
    'buttons.text',
    'rejection_reason',
  ],
  words: 'approved templates, message templates, HSM, which templates can I send, pending, rejected',
  scope: 'mcp:read',
  view: [
    { path: 'name', wrap: true },
    { path: 'language' },
    { path: 'status' },
    { path: 'body_preview', title: 'body', wrap: true },
    { path: 'rejection_reason', title: 'rejected', wrap: true },
    { path: 'id' },
    { path: 'category' },
    { path: 'variable_count', title: 'variables' },
    { path: 'updated_at', title: 'updated' },
  ],
  names: { fields: { template_id: 'template' }, by: ['name'], beside: 'language' },
  input: z.object({
    search: Search('Name or body'),
    status: z
      .string()
      .min(1)
      .max(40)
      .optional()
      .describe(
        'Only with this review status, ignoring case: `PENDING`, `APPROVED`, `REJECTED`, `PAUSED`, ' +
          "`DISABLED`, `IN_APPEAL`, `ARCHIVED`, `SUBMITTING`, or another of the provider's.",
      )
      .meta({ examples: ['APPROVED'] }),
    category: z
      .string()
      .min(1)
      .max(40)
      .optional()
      .describe('Only in this category, ignoring case: `MARKETING`, `UTILITY` or `AUTHENTICATION`.')
      .meta({ examples: ['UTILITY'] }),
    language: z
      .string()
      .min(1)
      .max(20)
      .optional()
      .describe('Only in this language, such as `en_US`; `en` is a different language.'),
    ...page,
  }),
  output: z.object(listWithTotal(Template)),
  errors: [],
  examples: [
    {
      title: 'Approved templates',
      input: { status: 'APPROVED' },
      output: { data: [template], total: 1, next_cursor: null },
    },
  ],
})

export const getTemplate = defineOperation({
  name: 'messaging_get_template',
  cli: 'templates get',
  routes: ['GET /v1/templates/{template_id}'],
  since,
  stability: 'stable',
  summary: 'Get one template with its review status, and the values that sending it needs',
  description:
    '`send_schema` and `send_example` show what `messaging_send_template` takes; `draft` is the ' +
    'submitted draft, to edit or to submit under another name.',
  slim: [
    'id',
    'name',
    'language',
    'category',
    'status',
    'body_preview',
    'rejection_reason',
    'send_schema',
    'send_example',
    'version',
  ],
  words:
    'template details, variables, placeholders, why was my template rejected, review status, rejection ' +
    'reason, preview',
  scope: 'mcp:read',
  versioned: { kind: 'template', by: 'template_id' },
  input: z.object({ template_id: idOf('template').describe('Template id.') }),
  output: TemplateDetails,
  errors: ['not_found'],
  examples: [{ title: 'One template', input: { template_id: '1' }, output: templateDetails }],
})

export const lintTemplate = defineOperation({
  name: 'messaging_lint_template',
  cli: 'templates lint',
  routes: ['POST /v1/templates/lint'],
  since,
  stability: 'stable',
  summary: 'Check a template draft against every rule of the provider and its reviewers',
  description: 'Saves nothing. Each issue names its rule, its position and the fix.',
  words:
    'validate a template, check before submitting, will it be approved, template rules, review, draft, ' +
    'proofread',
  scope: 'mcp:read',
  input: z.object({ template: TemplateDraft.describe('The draft.') }),
  output: LintResult,
  errors: [],
  examples: [{ title: 'A good draft', input: { template: draft }, output: lint }],
})
