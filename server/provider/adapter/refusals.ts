import type { ErrorCode } from '../../../catalog/errors.ts'

/** A row of the table of refusals: what the provider's codes become. */
export type Rule = {
  /** The provider's codes; a pair is a range. */
  codes: readonly (number | readonly [from: number, to: number])[]
  /** Only with one of these subcodes. */
  subcodes?: readonly number[]
  becomes: ErrorCode
  reason?: string
  /** Where the fault is in our own input. */
  pointer?: string
  /** Seconds to wait where the provider does not say. */
  wait?: number
  says: string
}

/**
 * What each refusal becomes. The first row that fits counts, so rows with subcodes stand first. Where
 * `becomes` is `upstream_unavailable`, the call may have been done all the same, but for the reason
 * `throttled`, which is given before any work. Codes beside the table go by the HTTP status.
 */
export const refusals: readonly Rule[] = [
  {
    codes: [100],
    subcodes: [2388024],
    becomes: 'conflict',
    reason: 'duplicate',
    says: 'A template with this name and language exists.',
  },
  {
    codes: [100],
    subcodes: [2388023],
    becomes: 'conflict',
    reason: 'duplicate',
    says: 'A template with this name and language was deleted less than four weeks ago and still holds the name; choose another.',
  },
  {
    codes: [100],
    subcodes: [2388019],
    becomes: 'upstream_error',
    reason: 'template_limit',
    says: 'The account holds as many templates as it may.',
  },
  {
    codes: [100],
    subcodes: [2388043, 2388047],
    becomes: 'invalid_input',
    reason: 'template_rules',
    pointer: '#/template/header',
    says: 'The provider does not take the header.',
  },
  {
    codes: [100],
    subcodes: [2388072, 2388293, 2388299],
    becomes: 'invalid_input',
    reason: 'template_rules',
    pointer: '#/template/body',
    says: 'The provider does not take the body.',
  },
  {
    codes: [100],
    subcodes: [2388073],
    becomes: 'invalid_input',
    reason: 'template_rules',
    pointer: '#/template/footer',
    says: 'The provider does not take the footer.',
  },
  {
    codes: [100],
    subcodes: [2388040],
    becomes: 'invalid_input',
    reason: 'template_rules',
    pointer: '#/template',
    says: 'A part of the template is too long.',
  },
  {
    codes: [100],
    subcodes: [33],
    becomes: 'upstream_error',
    reason: 'provider_not_found',
    says: 'The provider knows no such thing, or the access token may not see it.',
  },
  {
    codes: [33, 803],
    becomes: 'upstream_error',
    reason: 'provider_not_found',
    says: 'The provider knows no such thing, or the access token may not see it.',
  },
  {
    codes: [100],
    becomes: 'upstream_error',
    reason: 'provider_refused',
    says: 'The provider does not take a parameter.',
  },
  {
    codes: [131047],
    becomes: 'window_closed',
    says: 'The reply window is shut: the customer has not written within it. Send an approved template.',
  },

  {
    codes: [0, 3, 10, 190, [200, 299], 131005],
    becomes: 'upstream_error',
    reason: 'provider_access',
    says: 'The access token of the provider ran out or lacks a permission; an administrator must renew it.',
  },
  {
    codes: [368, 130497, 131031, 131048, 131064],
    becomes: 'upstream_error',
    reason: 'account_restricted',
    says: 'The provider has restricted the business account or its number.',
  },
  {
    codes: [131037, 131042, 131045, 133000, 133006, 133008, 133009, 133010, 133015, 134011],
    becomes: 'upstream_error',
    reason: 'account_incomplete',
    says: 'The number is not set up at the provider: registration, display name, payment or terms are missing.',
  },

  {
    codes: [1, 2, 131000, 131016, 131057, 133004, 133005],
    becomes: 'upstream_unavailable',
    says: 'The provider has a fault of its own.',
  },
  {
    codes: [4, 17, 32, 613, 80004, 80007, 80008, 130429, 133016],
    becomes: 'upstream_unavailable',
    reason: 'throttled',
    wait: 60,
    says: 'The provider takes no more calls for the moment.',
  },
  {
    codes: [131056],
    becomes: 'upstream_unavailable',
    reason: 'throttled',
    wait: 6,
    says: 'Too many messages to this one customer; the provider takes one in six seconds.',
  },

  {
    codes: [132000, 132005, 132008, 132012, 132018],
    becomes: 'invalid_input',
    reason: 'template_mismatch',
    pointer: '#/template',
    says: 'The values do not fit the template.',
  },
  {
    codes: [132001, 132015, 132016, 132068, 132069, 131063],
    becomes: 'invalid_input',
    reason: 'template_unavailable',
    pointer: '#/template',
    says: 'The template is missing in this language, not approved, paused or switched off.',
  },
  {
    codes: [132007],
    becomes: 'invalid_input',
    reason: 'template_policy',
    pointer: '#/template',
    says: 'The text breaks a policy of the provider.',
  },
  {
    codes: [131008, 131009, 131051],
    becomes: 'invalid_input',
    reason: 'message_refused',
    says: 'The provider does not take a part of the message.',
  },
  {
    codes: [131052, 131053],
    becomes: 'invalid_input',
    reason: 'media_refused',
    says: 'The provider could not fetch or read the file.',
  },
  {
    codes: [131021, 131062],
    becomes: 'invalid_input',
    reason: 'recipient_refused',
    says: 'This message cannot go to this recipient.',
  },

  {
    codes: [131030],
    becomes: 'upstream_error',
    reason: 'recipient_not_listed',
    says: 'A test number only writes to the recipients on its list.',
  },
  {
    codes: [130472, 131026, 131049, 137000],
    becomes: 'upstream_error',
    reason: 'undeliverable',
    says: 'The provider does not deliver this message to this customer.',
  },
  {
    codes: [131050],
    becomes: 'upstream_error',
    reason: 'marketing_stopped',
    says: 'The customer has stopped marketing messages.',
  },
]

const fits = (code: number, given: number | readonly [number, number]): boolean =>
  typeof given === 'number' ? given === code : code >= given[0] && code <= given[1]

export const ruleOf = (code: number, subcode: number | undefined): Rule | undefined =>
  refusals.find(
    (rule) =>
      rule.codes.some((given) => fits(code, given)) &&
      (!rule.subcodes || (subcode !== undefined && rule.subcodes.includes(subcode))),
  )
