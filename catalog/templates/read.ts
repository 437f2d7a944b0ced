import { z } from 'zod'
import { Id, Search, Timestamp, listWithTotal, page } from '../fields.ts'
import { defineOperation } from '../operation.ts'
import { LintResult, TemplateDraft, draft, lint, since } from './schemas.ts'

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
        'Review status, such as `PENDING`, `APPROVED`, `REJECTED`, `PAUSED`, `DISABLED`, ' +
          '`IN_APPEAL` or `ARCHIVED`; `SUBMITTING` until the provider has accepted it.',
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
          .describe('What the header requires when sending.'),
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
            .describe('True: the URL ends with a variable, so a suffix is required when sending.'),
          url_example: z.string().nullable().describe('Example of the full URL.'),
          phone_number: z.string().nullable().describe('Phone number to call.'),
          coupon_code: z.string().nullable().describe('Sample coupon code.'),
          flow_id: z.string().nullable().describe('Flow.'),
        }),
      )
      .describe('Buttons in display order.'),
    carousel_cards: z.int().describe('Cards of a carousel; 0: none.'),
    limited_time_offer: z
      .object({
        text: z.string().nullable().describe('Text.'),
        has_expiration: z.boolean().describe('True: a countdown is shown.'),
      })
      .nullable()
      .describe('Limited-time offer.'),
    meta_errors: z.unknown().describe('The last error that the provider reported for it.'),
    created_at: Timestamp.nullable().describe('When it was created.'),
    updated_at: Timestamp.nullable().describe('When it was last changed.'),
  })
  .meta({ id: 'Template' })

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

export const listTemplates = defineOperation({
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
    category: z.string().min(1).max(40).optional().describe('Only in this category, ignoring case.'),
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
  summary: 'Get one template with its variables and review status',
  scope: 'mcp:read',
  input: z.object({ template_id: Id.describe('Template id.') }),
  output: Template,
  errors: ['not_found'],
  examples: [{ title: 'One template', input: { template_id: '11' }, output: template }],
})

export const lintTemplate = defineOperation({
  name: 'messaging_lint_template',
  cli: 'templates lint',
  routes: ['POST /v1/templates/lint'],
  since,
  stability: 'stable',
  summary: 'Check a template draft against every rule of the provider and its reviewers',
  description: 'Saves nothing. Each issue names its rule, its position and the fix.',
  scope: 'mcp:read',
  input: z.object({ template: TemplateDraft.describe('The draft.') }),
  output: LintResult,
  errors: [],
  examples: [{ title: 'A good draft', input: { template: draft }, output: lint }],
})
