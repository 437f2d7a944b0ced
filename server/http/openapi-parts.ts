import { type ErrorCode, errors } from '../../catalog/errors.ts'
import { currentVersion } from '../../catalog/index.ts'
import { problemExample } from './problem-example.ts'

/** A part of an OpenAPI document. */
export type Part = { [member: string]: unknown }

export const componentRef = (kind: string, name: string): Part => ({ $ref: `#/components/${kind}/${name}` })

const textHeader = (description: string, example: string, more: Part = {}): Part => ({
  description,
  schema: { type: 'string', ...more },
  example,
})

/** Response headers; which of them a response has follows from its operation and status. */
export const headers: Record<string, Part> = {
  'Request-Id': textHeader(
    'Id of this request in the logs; send it to support.',
    'req_01K6F4T8ZC5X9V2M7QNRWB3D1E',
    { pattern: '^req_[0-9A-HJKMNP-TV-Z]{26}$' },
  ),
  'Api-Version': textHeader('The API version of the response.', currentVersion),
  'RateLimit-Policy': textHeader(
    'The limits that apply to this request: `q` requests in `w` seconds.',
    '"read";q=300;w=60',
  ),
  RateLimit: textHeader(
    'Remaining: `r` requests, and `t` seconds until the limit is full again.',
    '"read";r=299;t=1',
  ),
  'Retry-After': {
    description: 'Seconds to wait before a retry.',
    schema: { type: 'integer', minimum: 0 },
    example: 12,
  },
  'Idempotency-Key': textHeader(
    'The idempotency key of this change: the one sent, or a generated one.',
    '8e03978e-40d5-43e8-bc93-6894a57f9324',
  ),
  'Idempotent-Replayed': textHeader(
    '`true`: this is the stored response of the first request; nothing ran twice.',
    'true',
    {
      enum: ['true'],
    },
  ),
  ETag: textHeader(
    'The version of the record, and of what is shown of it. Send it as `If-Match` of a change.',
    '"3.pN2w7vKx0cTq5LZb"',
  ),
  'Approval-Id': textHeader('The request that a person decides on.', '12'),
  Location: textHeader('URL of the file.', 'https://files.example.com/invoice.pdf', { format: 'uri' }),
  'WWW-Authenticate': textHeader('The authentication scheme.', 'Bearer'),
}

const commonHeaders = ['Request-Id', 'Api-Version']
const limitHeaders = ['RateLimit-Policy', 'RateLimit']

/** Returns references to headers by name. */
const refHeaders = (names: readonly string[]): Part =>
  Object.fromEntries(names.map((name) => [name, componentRef('headers', name)]))

export const successHeaders = (changes: boolean, hasEtag: boolean): Part =>
  refHeaders([
    ...commonHeaders,
    ...limitHeaders,
    ...(changes ? ['Idempotency-Key', 'Idempotent-Replayed'] : []),
    ...(hasEtag ? ['ETag'] : []),
  ])

/** The answer to a read whose `If-None-Match` names what the client has. */
export const notModifiedResponse: Part = {
  description: 'Nothing has changed: the client has this answer.',
  headers: refHeaders([...commonHeaders, ...limitHeaders, 'ETag']),
}

const retrySafety =
  'Makes a retry safe: the same key returns the first response and never runs twice. Stored for 24 hours.'

/** Header parameters that more than one operation takes. */
export const parameters: Record<string, Part> = {
  ApiVersion: {
    name: 'Api-Version',
    in: 'header',
    required: false,
    description: 'Selects the API version.',
    schema: { type: 'string', enum: [currentVersion] },
    example: currentVersion,
  },
  IdempotencyKey: createIdempotencyKeyParameter(`${retrySafety} When absent, the server generates one.`),
  RequiredIdempotencyKey: createIdempotencyKeyParameter(
    `Required, except for dry runs and test keys. ${retrySafety}`,
  ),
  IfMatch: {
    name: 'If-Match',
    in: 'header',
    required: false,
    description:
      'The `ETag` of the record as it was read: where it was changed since, nothing happens (412). `*`: any version.',
    schema: { type: 'string', maxLength: 1500 },
  },
  IfNoneMatch: {
    name: 'If-None-Match',
    in: 'header',
    required: false,
    description: 'The `ETag` of an earlier answer: 304 where it would be the same.',
    schema: { type: 'string', maxLength: 1500 },
  },
}

function createIdempotencyKeyParameter(description: string): Part {
  return {
    name: 'Idempotency-Key',
    in: 'header',
    required: false,
    description:
      `${description} 8 to 128 letters, digits and \`. _ : -\`, bare or in double quotes. ` +
      'A 400 does not use it up: send the corrected input with the same key.',
    // No example: what a client sends for a value that it was not given must be a fresh key.
    schema: { type: 'string', pattern: '^(?:[A-Za-z0-9._:-]{8,128}|"[A-Za-z0-9._:-]{8,128}")$' },
  }
}

/**
 * The query parameter of `/v1/ops`. Its example makes a change that is only tried out (at `/docs`, or by a
 * test generator) a dry run.
 */
export const dryRunParameter: Part = {
  name: 'dry_run',
  in: 'query',
  required: false,
  description: 'The same as `dry_run` in the body.',
  schema: { type: 'boolean' },
  example: true,
}

export const reasonParameter: Part = {
  name: 'Api-Reason',
  in: 'header',
  required: false,
  description: 'Why an AI agent makes the call, for the person who decides on it; percent-encoded UTF-8.',
  schema: { type: 'string', maxLength: 1000 },
}

export const planParameter: Part = {
  name: 'Api-Plan',
  in: 'header',
  required: false,
  description:
    '`show`: a dry run answers `plan`, what it would change, with a token. The token: the change does exactly ' +
    'that, by filter for exactly the records of the dry run, or is refused with the reason `plan_changed`.',
  schema: { type: 'string' },
}

/** The answer to a call of an AI agent on which a person decides. */
export const askedResponse: Part = {
  description:
    "Only with the key of an AI agent: a person decides on the call (the key's policy); nothing was changed.",
  headers: {
    ...refHeaders([...commonHeaders, ...limitHeaders, 'Idempotency-Key', 'Approval-Id']),
  },
  content: { 'application/json': { schema: { $ref: '#/components/schemas/Asked' } } },
}

export const confirmParameter = (verb: string): Part => ({
  name: 'Api-Confirm',
  in: 'header',
  required: false,
  description:
    'Required, except for dry runs and test keys: confirms a change that cannot be undone or that ' +
    'customers see.',
  schema: { type: 'string', enum: [verb] },
})

const FieldError: Part = {
  type: 'object',
  description: 'One error in the input: its position, what is wrong and how to fix it.',
  required: ['code', 'detail'],
  properties: {
    pointer: { type: 'string', description: 'JSON Pointer into the body, such as `#/template/body/text`.' },
    parameter: { type: 'string', description: 'Name of the path or query parameter.' },
    header: { type: 'string', description: 'Name of the header.' },
    code: { type: 'string', description: 'Kind of error; stable.' },
    detail: { type: 'string', description: 'What is wrong.' },
    rule: { type: 'string', description: 'The rule of template drafts that is violated.' },
    fix: { type: 'string', description: 'How to fix it.' },
    allowed: { type: 'array', items: {}, description: 'The allowed values.' },
  },
}

const Problem: Part = {
  type: 'object',
  description: 'An error (RFC 9457). `code` is stable: branch on it. A code can add members of its own.',
  required: ['type', 'title', 'status', 'detail', 'code', 'request_id'],
  additionalProperties: true,
  properties: {
    type: { type: 'string', format: 'uri', description: 'A page that explains the code and how to fix it.' },
    title: { type: 'string', description: 'Title of the code.' },
    status: { type: 'integer', description: 'The HTTP status.' },
    detail: { type: 'string', description: 'What went wrong in this request.' },
    code: { type: 'string', enum: Object.keys(errors), description: 'The error code.' },
    request_id: { type: 'string', description: 'Id of the request in the logs.' },
    reason: { type: 'string', description: 'The reason, when the code has several.' },
    errors: {
      type: 'array',
      items: componentRef('schemas', 'FieldError'),
      description: 'The errors in the input.',
    },
    scope: { type: 'string', description: 'With `insufficient_scope`: the required scope.' },
    confirm: { type: 'string', description: 'With `confirm_required`: the verb to send in `Api-Confirm`.' },
    limit_bytes: { type: 'integer', description: 'With `payload_too_large`: the maximum body size.' },
    violated_policies: {
      type: 'array',
      items: { type: 'string' },
      description: 'With `rate_limited`: the limits that were exceeded.',
    },
  },
}

export const problemSchemas: Record<string, Part> = { Problem, FieldError }

/**
 * Returns the error responses of these codes by status: references, and the components they refer to. `changes`: of
 * an operation that changes something, whose errors name its idempotency key.
 */
export const problemResponses = (
  codes: readonly ErrorCode[],
  publicUrl: string,
  changes: boolean,
): { refs: Record<string, Part>; responses: Record<string, Part> } => {
  const refs: Record<string, Part> = {}
  const responses: Record<string, Part> = {}
  const known = (Object.keys(errors) as ErrorCode[]).filter((code) => codes.includes(code))
  for (const [status, group] of Map.groupBy(known, (code) => errors[code].status)) {
    const headerNames = listProblemHeaders(status, changes)
    const name = [...group, ...(headerNames.includes('Idempotency-Key') ? ['change'] : [])].join('.')
    refs[status] = componentRef('responses', name)
    responses[name] = {
      description: group.map((code) => `\`${code}\`: ${errors[code].description}`).join('\n\n'),
      headers: refHeaders(headerNames),
      content: {
        'application/problem+json': {
          schema: componentRef('schemas', 'Problem'),
          examples: Object.fromEntries(
            group.map((code) => [
              code,
              { summary: errors[code].title, value: problemExample(code, publicUrl) },
            ]),
          ),
        },
      },
    }
  }
  return { refs, responses }
}

/** Statuses of refusals that come before the key is read. */
const BEFORE_KEY = [401, 413, 415]
/** Statuses of errors that a repeat with the key gets again, beside successes. */
const STORED = [403, 404, 409]

const listProblemHeaders = (status: number, changes: boolean): string[] => [
  ...commonHeaders,
  ...(status === 401 ? ['WWW-Authenticate'] : status === 413 || status === 415 ? [] : limitHeaders),
  ...([409, 429, 502, 503, 504].includes(status) ? ['Retry-After'] : []),
  ...(changes && !BEFORE_KEY.includes(status) ? ['Idempotency-Key'] : []),
  ...(changes && STORED.includes(status) ? ['Idempotent-Replayed'] : []),
]
