import type { Reason } from '../../../catalog/reasons.ts'
import type { ErrorCode } from '../../../catalog/errors.ts'
import { includesCode, type ProviderCodes } from '../codes.ts'

/** A row of the refusal table: the problem that codes of the provider become. */
export type RefusalRule = {
  codes: ProviderCodes
  /** Only with one of these subcodes. */
  subcodes?: readonly number[]
  becomes: ErrorCode
  reason?: Reason
  /** The part of our own input that caused the refusal. */
  pointer?: string
  /** The rule of the lint that it breaks. */
  rule?: string
  /** Used where the provider does not say how long to wait. */
  retryAfterSeconds?: number
  detail: string
}

/**
 * What each refusal becomes. The first matching row counts, so rows with subcodes come first. Where
 * `becomes` is `upstream_unavailable`, the call may have done its work nevertheless, except with the reason
 * `throttled`, which precedes any work. Codes that are not in the table are handled by HTTP status.
 */
export const refusalRules: readonly RefusalRule[] = [
  {
    codes: [100],
    subcodes: [2388024],
    becomes: 'conflict',
    reason: 'duplicate',
    detail: 'A template with this name and language already exists.',
  },
  {
    codes: [100],
    subcodes: [2388023],
    becomes: 'conflict',
    reason: 'duplicate',
    detail:
      'A template with this name and language was deleted less than four weeks ago, ' +
      'and the name is still reserved; choose another.',
  },
  {
    codes: [100],
    subcodes: [2388019],
    becomes: 'upstream_error',
    reason: 'template_limit',
    detail: 'The account has reached its limit of templates.',
  },
  {
    codes: [100],
    subcodes: [2388043],
    becomes: 'invalid_input',
    reason: 'template_rules',
    rule: 'header.sample_missing',
    pointer: '#/template/header',
    detail: 'The provider does not accept the header.',
  },
  {
    codes: [100],
    subcodes: [2388047],
    becomes: 'invalid_input',
    reason: 'template_rules',
    rule: 'header.text_characters',
    pointer: '#/template/header/text',
    detail: 'The provider does not accept the header.',
  },
  {
    codes: [100],
    subcodes: [2388072],
    becomes: 'invalid_input',
    reason: 'template_rules',
    rule: 'body.variables_form',
    pointer: '#/template/body/text',
    detail: 'The provider does not accept the body.',
  },
  {
    codes: [100],
    subcodes: [2388293],
    becomes: 'invalid_input',
    reason: 'template_rules',
    rule: 'body.variables_ratio',
    pointer: '#/template/body/text',
    detail: 'The text has too many variables for its length.',
  },
  {
    codes: [100],
    subcodes: [2388299],
    becomes: 'invalid_input',
    reason: 'template_rules',
    rule: 'body.variable_edge',
    pointer: '#/template/body/text',
    detail: 'The text begins or ends with a variable.',
  },
  {
    codes: [100],
    subcodes: [2388073],
    becomes: 'invalid_input',
    reason: 'template_rules',
    rule: 'footer.variables',
    pointer: '#/template/footer/text',
    detail: 'The provider does not accept the footer.',
  },
  {
    codes: [100],
    subcodes: [2388046],
    becomes: 'invalid_input',
    reason: 'template_rules',
    rule: 'name.form',
    pointer: '#/template/name',
    detail: 'The provider does not accept the name.',
  },
  {
    codes: [100, 131009],
    subcodes: [2494102],
    becomes: 'upstream_error',
    reason: 'media_refused',
    detail:
      'The provider does not accept the media handle of a sample. Upload the file again with ' +
      'messaging_upload_template_sample, and send the new handle.',
  },
  {
    codes: [100],
    subcodes: [33],
    becomes: 'upstream_error',
    reason: 'provider_not_found',
    detail: 'The object does not exist at the provider, or the access token has no permission for it.',
  },
  {
    codes: [33, 803],
    becomes: 'upstream_error',
    reason: 'provider_not_found',
    detail: 'The object does not exist at the provider, or the access token has no permission for it.',
  },
  {
    codes: [100],
    becomes: 'upstream_error',
    reason: 'provider_refused',
    detail: 'The provider does not accept a parameter.',
  },
  {
    codes: [131047],
    becomes: 'window_closed',
    detail: 'The reply window is closed: the customer has not written within it. Send an approved template.',
  },

  {
    codes: [0, 3, 10, 190, [200, 299], 131005],
    becomes: 'upstream_error',
    reason: 'provider_access',
    detail:
      'The access token of the provider has expired or lacks a permission; an administrator must renew it.',
  },
  {
    codes: [368, 130497, 131031, 131048, 131064],
    becomes: 'upstream_error',
    reason: 'account_restricted',
    detail: 'The provider has restricted the business account or its number.',
  },
  {
    codes: [131037, 131042, 131045, 133000, 133006, 133008, 133009, 133010, 133015, 134011],
    becomes: 'upstream_error',
    reason: 'account_incomplete',
    detail:
      'The number is not fully set up at the provider: ' +
      'registration, display name, payment or terms are missing.',
  },

  {
    codes: [1, 2, 131000, 131016, 131057, 133004, 133005],
    becomes: 'upstream_unavailable',
    detail: 'The provider failed with an error of its own.',
  },
  {
    codes: [4, 17, 32, 613, 80004, 80007, 80008, 130429, 133016],
    becomes: 'upstream_unavailable',
    reason: 'throttled',
    retryAfterSeconds: 60,
    detail: 'The provider accepts no more calls at the moment.',
  },
  {
    codes: [131056],
    becomes: 'upstream_unavailable',
    reason: 'throttled',
    retryAfterSeconds: 6,
    detail: 'Too many messages to this customer; the provider accepts one every six seconds.',
  },

  {
    codes: [132000, 132005, 132008, 132012, 132018],
    becomes: 'invalid_input',
    reason: 'template_mismatch',
    pointer: '#/template',
    detail: 'The values do not fit the template.',
  },
  {
    codes: [132001, 132015, 132016, 132068, 132069, 131063],
    becomes: 'invalid_input',
    reason: 'template_unavailable',
    pointer: '#/template',
    detail: 'The template does not exist in this language, or is not approved, paused or disabled.',
  },
  {
    codes: [132007],
    becomes: 'invalid_input',
    reason: 'template_policy',
    pointer: '#/template',
    detail: 'The text violates a policy of the provider.',
  },
  {
    codes: [131008, 131009, 131051],
    becomes: 'invalid_input',
    reason: 'message_refused',
    detail: 'The provider does not accept a part of the message.',
  },
  {
    codes: [131052, 131053],
    becomes: 'invalid_input',
    reason: 'media_refused',
    detail: 'The provider could not fetch or read the file.',
  },
  {
    codes: [131021, 131062],
    becomes: 'invalid_input',
    reason: 'recipient_refused',
    detail: 'This message cannot be sent to this recipient.',
  },

  {
    codes: [131030],
    becomes: 'upstream_error',
    reason: 'recipient_not_listed',
    detail: 'A test number can only send to the recipients on its list.',
  },
  {
    codes: [130472, 131026, 131049, 137000],
    becomes: 'upstream_error',
    reason: 'undeliverable',
    detail: 'The provider does not deliver this message to this customer.',
  },
  {
    codes: [131050],
    becomes: 'upstream_error',
    reason: 'marketing_stopped',
    detail: 'The customer has stopped marketing messages.',
  },
]

export const findRefusalRule = (code: number, subcode: number | undefined): RefusalRule | undefined =>
  refusalRules.find(
    (rule) =>
      includesCode(rule.codes, code) &&
      (!rule.subcodes || (subcode !== undefined && rule.subcodes.includes(subcode))),
  )
