import { randomBytes } from 'node:crypto'
import type { FaultKind } from '../storage/faults.ts'

/** The members of a provider's error response. */
export type ProviderErrorFields = {
  status: number
  code: number
  message: string
  type: string
  details?: string | undefined
  subcode?: number | undefined
  title?: string | undefined
  userMessage?: string | undefined
  transient?: boolean | undefined
  headers?: Record<string, string> | undefined
}
/** An error of the provider to be thrown; `refusal` is what the client gets. */
export type ProviderError = Error & { refusal: ProviderErrorFields }

/**
 * HTTP status and title of each code, from the provider's table of errors. Titles appear in its error
 * messages and in statuses.
 */
const ERROR_CODES: Readonly<Record<number, readonly [status: number, title: string]>> = {
  0: [401, 'AuthException'],
  1: [500, 'An unknown error occurred'],
  2: [503, 'Service temporarily unavailable'],
  3: [403, 'Application does not have the capability to make this API call.'],
  4: [429, 'Application request limit reached'],
  10: [403, 'Application does not have permission for this action'],
  17: [429, 'User request limit reached'],
  32: [429, 'Page request limit reached'],
  33: [404, 'Parameter value is not valid'],
  100: [400, 'Invalid parameter'],
  190: [401, 'Invalid OAuth access token'],
  200: [403, 'Permissions error'],
  368: [403, 'Temporarily blocked for policies violations'],
  613: [429, 'Calls to this api have exceeded the rate limit.'],
  2494055: [500, 'Generic user error'],
  80004: [429, 'There have been too many calls to this ad-account.'],
  80007: [429, 'Rate limit issues'],
  80008: [429, 'There have been too many calls to this WhatsApp Business account. Wait a bit and try again.'],
  130429: [429, 'Rate limit hit'],
  130472: [400, "User's number is part of an experiment"],
  130497: [403, 'Business account is restricted from messaging users in this country.'],
  131000: [500, 'Something went wrong'],
  131005: [403, 'Access denied'],
  131008: [400, 'Required parameter is missing'],
  131009: [400, 'Parameter value is not valid'],
  131016: [503, 'Service unavailable'],
  131021: [400, 'Recipient cannot be sender'],
  131026: [400, 'Message undeliverable'],
  131030: [400, 'Recipient phone number not in allowed list'],
  131031: [403, 'Account has been locked'],
  131037: [400, 'WhatsApp provided number needs display name approval before message can be sent.'],
  131042: [402, 'Business eligibility payment issue'],
  131045: [500, 'Incorrect certificate'],
  131047: [429, 'Re-engagement message'],
  131048: [429, 'Spam rate limit hit'],
  131049: [400, 'This message was not delivered to maintain healthy ecosystem engagement.'],
  131050: [400, 'User has stopped marketing messages'],
  131051: [400, 'Unsupported message type'],
  131052: [400, 'Media download error'],
  131053: [400, 'Media upload error'],
  131056: [429, '(Business Account, Consumer Account) pair rate limit hit'],
  131057: [503, 'Account in maintenance mode'],
  131062: [400, 'Business-scoped user ID recipients are not supported for this message'],
  131063: [400, 'Marketing templates are disabled'],
  131064: [429, 'Classification limit hit'],
  132000: [400, 'Number of parameters does not match the expected number of params'],
  132001: [404, 'Template name does not exist in the translation'],
  132005: [400, 'Template hydrated text too long'],
  132007: [400, 'Template format character policy violated'],
  132008: [400, 'Parameter value is not valid'],
  132012: [400, 'Parameter format does not match format in the created template'],
  132015: [400, 'Template is paused'],
  132016: [400, 'Template is disabled'],
  132018: [400, 'There is an issue with the parameters of the template'],
  132068: [400, 'Flow is in blocked state'],
  132069: [400, 'Flow is in throttled state'],
  133010: [400, 'Phone number not registered'],
  133016: [429, 'Account register deregister rate limit exceeded'],
  134011: [403, 'Payments terms of service were not accepted'],
  135000: [400, 'Generic user error'],
  137000: [400, 'Identity key mismatch'],
}

/** The provider's `error_data.details` where nothing more specific applies. */
const DEFAULT_DETAILS: Readonly<Record<number, string>> = {
  130429:
    'Message failed to send because there were too many messages sent from this phone number ' +
    'in a short period of time.',
  131000: 'Message failed to send due to an unknown error.',
  131026: 'Message Undeliverable.',
  131047:
    'Message failed to send because more than 24 hours have passed ' +
    'since the customer last replied to this number.',
  131048:
    'Message failed to send because there are restrictions on how many messages can be sent ' +
    'from this phone number. ' +
    'This may be because too many previous messages were blocked or flagged as spam.',
  131049: 'In order to maintain a healthy ecosystem engagement, the message failed to be delivered.',
  131050:
    'Unable to deliver the message. ' +
    'This recipient has chosen to stop receiving marketing messages on WhatsApp from your business.',
  131056:
    'Message failed to send because there were too many messages sent from this phone number ' +
    'to the same phone number in a short period of time.',
  131021: 'Recipient phone number cannot be the same as the sender phone number.',
}

const RETRY_AFTER_SECONDS: Readonly<Record<number, number>> = {
  4: 60,
  80007: 60,
  80008: 60,
  130429: 1,
  131056: 6,
}
const TRANSIENT_CODES = new Set([1, 2, 4, 131000, 131016, 131057])

const titleOf = (code: number): string => ERROR_CODES[code]?.[1] ?? 'Unknown error'
const defaultDetails = (code: number): string =>
  DEFAULT_DETAILS[code] ?? `${titleOf(code).replace(/\.$/, '')}.`

const asError = (refusal: ProviderErrorFields): ProviderError =>
  Object.assign(new Error(refusal.message), { refusal })

/** Creates the error of a code; its message has `(#code)` before the title. */
export const providerError = (
  code: number,
  details: string = defaultDetails(code),
  more: Partial<ProviderErrorFields> = {},
): ProviderError => {
  const [status, title] = ERROR_CODES[code] ?? [400, 'Unknown error']
  return asError({
    status,
    code,
    type: 'OAuthException',
    message: `(#${code}) ${title}`,
    details,
    transient: TRANSIENT_CODES.has(code) || undefined,
    headers: throttleHeaders(code),
    ...more,
  })
}

/** When to retry after throttling: in seconds, and in minutes in the provider's own header. */
const throttleHeaders = (code: number): Record<string, string> | undefined => {
  if (ERROR_CODES[code]?.[0] !== 429 || code === 131047) return undefined
  const seconds = RETRY_AFTER_SECONDS[code] ?? 60
  return {
    'Retry-After': String(seconds),
    'X-Business-Use-Case-Usage': JSON.stringify({
      sandbox: [
        {
          type: 'messaging',
          call_count: 100,
          total_cputime: 25,
          total_time: 25,
          estimated_time_to_regain_access: Math.ceil(seconds / 60),
        },
      ],
    }),
  }
}

/** Creates the error `(#100) …` with this sentence. */
export const invalidParameter = (sentence: string): ProviderError =>
  providerError(100, undefined, { message: `(#100) ${sentence}`, details: sentence })
export const parameterRequired = (parameter: string): ProviderError =>
  invalidParameter(`The parameter ${parameter} is required.`)
/** A required part of a message is missing. */
export const missingPart = (details: string): ProviderError => providerError(131008, details)
export const badParameterValue = (details: string): ProviderError => providerError(131009, details)

/** The form of the errors of `message_qrdls`. */
const LINK_ERRORS: Readonly<Record<number, Partial<ProviderErrorFields>>> = {
  2: {
    status: 500,
    type: 'GraphMethodException',
    message: 'An unexpected error occurred. Please retry your request',
  },
  4: { message: 'Too many QR code operations. Please try again later', subcode: 2446079 },
  100: { message: 'Invalid prefilled_message length. Maximum 140 characters allowed' },
  190: { message: 'Invalid OAuth access token', subcode: 463 },
  200: {
    message: "Your app doesn't have permission to manage QR codes for this phone number",
    subcode: 1349174,
    title: 'Permission Denied',
    userMessage: "Your app doesn't have permission to access this resource",
  },
  803: { status: 404, type: 'GraphMethodException', message: 'Phone number not found' },
}

/** Creates the error of an ordered fault, as the endpoint would return it. */
export const faultError = (kind: FaultKind, code: number): ProviderError =>
  providerError(
    code,
    kind === 'messages' ? defaultDetails(code) : undefined,
    kind === 'links'
      ? { details: undefined, ...LINK_ERRORS[code] }
      : kind === 'messages'
        ? {}
        : { details: undefined },
  )

/** An id that names no object (subcode 33 of code 100), for reads and writes alike. */
export const unknownObject = (id: string, method = 'GET'): ProviderError =>
  providerError(100, undefined, {
    status: 400,
    type: 'GraphMethodException',
    subcode: 33,
    details: undefined,
    message:
      `Unsupported ${method.toLowerCase()} request. Object with ID '${id}' does not exist, ` +
      'cannot be loaded due to missing permissions, or does not support this operation. ' +
      'Please read the Graph API documentation at https://developers.facebook.com/docs/graph-api',
  })
export const unknownField = (field: string, node: string): ProviderError =>
  providerError(100, undefined, {
    message: `(#100) Tried accessing nonexisting field (${field}) on node type (${node})`,
    details: undefined,
  })
export const invalidToken = (): ProviderError =>
  providerError(190, undefined, { message: 'Invalid OAuth access token', subcode: 463, details: undefined })
export const unknownPath = (path: string): ProviderError =>
  providerError(100, undefined, {
    code: 2500,
    message: `Unknown path components: ${path}`,
    details: undefined,
  })

/**
 * A template that the provider does not accept: code 100 with a subcode, where one is known, a title and a
 * sentence for users.
 */
export const invalidTemplate = (
  subcode: number | undefined,
  title: string,
  sentence: string,
): ProviderError =>
  providerError(100, undefined, {
    message: 'Invalid parameter',
    subcode,
    title,
    userMessage: sentence,
    details: undefined,
    transient: false,
  })

export const toErrorFields = (error: unknown): ProviderErrorFields | undefined =>
  (error as Partial<ProviderError>).refusal

/** Formats the body of an error response. */
export const formatErrorBody = (r: ProviderErrorFields): Record<string, unknown> => ({
  error: {
    message: r.message,
    type: r.type,
    code: r.code,
    ...(r.subcode === undefined ? {} : { error_subcode: r.subcode }),
    ...(r.details === undefined ? {} : { error_data: { messaging_product: 'whatsapp', details: r.details } }),
    ...(r.transient === undefined ? {} : { is_transient: r.transient }),
    ...(r.title === undefined ? {} : { error_user_title: r.title }),
    ...(r.userMessage === undefined ? {} : { error_user_msg: r.userMessage }),
    fbtrace_id: `A${randomBytes(16).toString('base64url')}`,
  },
})

/** Formats the same error for a `failed` status. */
export const statusError = (
  code: number,
  details: string = defaultDetails(code),
): Record<string, unknown> => ({
  code,
  title: titleOf(code),
  message: titleOf(code),
  error_data: { details },
  href: 'https://developers.facebook.com/docs/whatsapp/cloud-api/support/error-codes/',
})
