import { z } from 'zod'

export const since = '2026-10-01'

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

const Text = (most: number, what: string) => z.string().max(most).optional().describe(what)

const Button = z.strictObject({
  type: z.enum(buttonTypes).describe('Button type.'),
  text: Text(200, 'Label, at most 25 characters.'),
  url: Text(4000, 'https; a dynamic one ends with `{{1}}`.'),
  url_example: Text(4000, 'Whole address, variable filled.'),
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
  zero_tap_terms_accepted: z.boolean().optional().describe('ZERO_TAP: must be true.'),
})

/** Input of create and lint. Only bounds are checked here; all other rules are lint rules (docs/template-rules.md). */
export const TemplateDraft = z.strictObject({
  name: z.string().max(1000).describe('Lowercase letters, digits, underscores.'),
  language: z.string().max(20).describe('Such as `en_US`.'),
  category: z.string().max(40).describe('`MARKETING`, `UTILITY` or `AUTHENTICATION`.'),
  header: z
    .strictObject({
      format: z.enum(headerFormats).describe('Format of the header.'),
      text: Text(1000, 'Of TEXT: at most 60 characters and one `{{1}}`.'),
      example: Text(1000, 'Sample for its `{{1}}`.'),
      media_handle: Text(4000, 'Of IMAGE, VIDEO, DOCUMENT: sample handle.'),
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
    .describe('MARKETING; buttons: COPY_CODE first, then URL.'),
  carousel: z
    .strictObject({
      cards: z
        .array(
          z.strictObject({
            header_format: z.enum(['IMAGE', 'VIDEO']).describe('Same on every card.'),
            media_handle: z.string().max(4000).describe('Sample handle.'),
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
              .describe('1 or 2 QUICK_REPLY, URL, PHONE_NUMBER; same on every card.'),
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
    errors: z.int().describe('Count of errors.'),
    warnings: z.int().describe('Count of warnings.'),
    issues: z
      .array(
        z.object({
          rule: z.string().describe('Id of the rule.'),
          severity: z
            .enum(['error', 'warning', 'info'])
            .describe('`error`: the draft is refused, or certain to be rejected in review.'),
          path: z.string().describe('Position, such as `body.text` or `buttons[0].url`.'),
          message: z.string().describe('What is wrong.'),
          fix: z.string().describe('How to fix it.'),
        }),
      )
      .describe('The issues, errors first.'),
    variables: z
      .object({ header: z.int().describe('Header variables.'), body: z.int().describe('Body variables.') })
      .describe('Variables found.'),
    preview: z.string().nullable().describe('The body with its samples filled in.'),
  })
  .meta({ id: 'LintResult' })

export const draft = {
  name: 'order_update',
  language: 'en_US',
  category: 'UTILITY',
  body: { text: 'Hello {{1}}, your order is on its way.', examples: ['Ada'] },
}

export const lint = {
  valid: true,
  errors: 0,
  warnings: 0,
  issues: [],
  variables: { header: 0, body: 1 },
  preview: 'Hello Ada, your order is on its way.',
}
