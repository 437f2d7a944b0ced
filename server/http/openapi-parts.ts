import { type ErrorCode, errors } from '../../catalog/errors.ts'
import { apiVersions, currentVersion } from '../../catalog/index.ts'
import { problemExample } from './problem-example.ts'

/** A part of an OpenAPI document. */
export type Part = { [member: string]: unknown }

export const ref = (kind: string, name: string): Part => ({ $ref: `#/components/${kind}/${name}` })

const text = (description: string, example: string, more: Part = {}): Part => ({
  description,
  schema: { type: 'string', ...more },
  example,
})

/** Headers of answers (contract 2). */
export const headers: Record<string, Part> = {
  'Request-Id': text(
    'Names this request in the logs; give it to support.',
    'req_01K6F4T8ZC5X9V2M7QNRWB3D1E',
    { pattern: '^req_[0-9A-HJKMNP-TV-Z]{26}$' },
  ),
  'Api-Version': text('The API version that answered.', currentVersion),
  'RateLimit-Policy': text(
    'The limits that count for this request: `q` requests in `w` seconds.',
    '"read";q=300;w=60',
  ),
  RateLimit: text(
    'What is left: `r` requests, and `t` seconds until the limit is whole again.',
    '"read";r=299;t=1',
  ),
  'Retry-After': {
    description: 'Seconds to wait before the next try.',
    schema: { type: 'integer', minimum: 0 },
    example: 12,
  },
  'Idempotency-Key': text(
    'The key this change is kept under: the one sent, or one made for you.',
    '8e03978e-40d5-43e8-bc93-6894a57f9324',
  ),
  'Idempotent-Replayed': text('`true`: this is the first answer again; nothing ran twice.', 'true', {
    enum: ['true'],
  }),
  Location: text('Where it is.', 'https://files.example.com/invoice.pdf', { format: 'uri' }),
  'WWW-Authenticate': text('The scheme to authenticate with.', 'Bearer'),
}

const always = ['Request-Id', 'Api-Version']
const limits = ['RateLimit-Policy', 'RateLimit']

/** References to headers by name. */
const headersOf = (names: readonly string[]): Part =>
  Object.fromEntries(names.map((name) => [name, ref('headers', name)]))

export const successHeaders = (changes: boolean): Part =>
  headersOf([...always, ...limits, ...(changes ? ['Idempotency-Key', 'Idempotent-Replayed'] : [])])

/** Header parameters that more than one operation takes (spec "Common rules"). */
export const parameters: Record<string, Part> = {
  ApiVersion: {
    name: 'Api-Version',
    in: 'header',
    required: false,
    description: 'Selects the API version; the version the key is pinned to when absent.',
    schema: { type: 'string', enum: [...apiVersions] },
    example: currentVersion,
  },
  IdempotencyKey: idempotencyKey(
    'Makes a retry safe: the same key answers the first answer again and never runs twice. Kept for 24 hours. When absent, the server makes one.',
  ),
  RequiredIdempotencyKey: idempotencyKey(
    'Required, but for a dry run and for test keys. Makes a retry safe: the same key answers the first answer again and never runs twice. Kept for 24 hours.',
  ),
}

function idempotencyKey(description: string): Part {
  return {
    name: 'Idempotency-Key',
    in: 'header',
    required: false,
    description: `${description} 8 to 128 letters, digits and \`. _ : -\`, bare or in double quotes.`,
    // The bare form alone: test generators read a quote in a pattern each in their own way.
    schema: { type: 'string', pattern: '^[A-Za-z0-9._:-]{8,128}$' },
    example: '8e03978e-40d5-43e8-bc93-6894a57f9324',
  }
}

export const confirmParameter = (verb: string): Part => ({
  name: 'Api-Confirm',
  in: 'header',
  required: false,
  description:
    'Required, but for a dry run and for test keys: says that the change is meant, because it cannot be undone or customers see it.',
  schema: { type: 'string', enum: [verb] },
})

const FieldError: Part = {
  type: 'object',
  description: 'One error of the input: where it is, what is wrong and how to fix it.',
  required: ['code', 'detail'],
  properties: {
    pointer: { type: 'string', description: 'JSON Pointer into the body, as `#/template/body/text`.' },
    parameter: { type: 'string', description: 'Name of the path or query parameter.' },
    header: { type: 'string', description: 'Name of the header.' },
    code: { type: 'string', description: 'What kind of fault; stable.' },
    detail: { type: 'string', description: 'What is wrong, in one sentence.' },
    rule: { type: 'string', description: 'The rule of template drafts that is broken.' },
    fix: { type: 'string', description: 'What to do about it.' },
    allowed: { type: 'array', items: {}, description: 'The values that are allowed.' },
  },
}

const Problem: Part = {
  type: 'object',
  description:
    'What went wrong (RFC 9457). `code` is stable: branch on it. A code may add members of its own.',
  required: ['type', 'title', 'status', 'detail', 'code', 'request_id'],
  additionalProperties: true,
  properties: {
    type: { type: 'string', format: 'uri', description: 'A page that explains the code and how to fix it.' },
    title: { type: 'string', description: 'The code in words.' },
    status: { type: 'integer', description: 'The HTTP status.' },
    detail: { type: 'string', description: 'What went wrong this time.' },
    code: { type: 'string', enum: Object.keys(errors), description: 'The error code.' },
    request_id: { type: 'string', description: 'Names the request in the logs.' },
    reason: { type: 'string', description: "Which of the code's reasons it is." },
    errors: {
      type: 'array',
      items: ref('schemas', 'FieldError'),
      description: 'The faults of the input, one by one.',
    },
    scope: { type: 'string', description: 'With `insufficient_scope`: the scope that is needed.' },
    confirm: { type: 'string', description: 'With `confirm_required`: the verb that `Api-Confirm` wants.' },
    limit_bytes: { type: 'integer', description: 'With `payload_too_large`: the largest body.' },
    'violated-policies': {
      type: 'array',
      items: { type: 'string' },
      description: 'With `rate_limited`: the limits that were exceeded.',
    },
  },
}

export const problemSchemas: Record<string, Part> = { Problem, FieldError }

/** The answers with these codes, by status: a reference each, and what it refers to. */
export const problemResponses = (
  codes: readonly ErrorCode[],
  publicUrl: string,
): { refs: Record<string, Part>; responses: Record<string, Part> } => {
  const refs: Record<string, Part> = {}
  const responses: Record<string, Part> = {}
  const known = (Object.keys(errors) as ErrorCode[]).filter((code) => codes.includes(code))
  for (const [status, group] of Map.groupBy(known, (code) => errors[code].status)) {
    const name = group.join('.')
    refs[status] = ref('responses', name)
    responses[name] = {
      description: group.map((code) => `\`${code}\`: ${errors[code].description}`).join('\n\n'),
      headers: headersOf(problemHeaders(status)),
      content: {
        'application/problem+json': {
          schema: ref('schemas', 'Problem'),
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

const problemHeaders = (status: number): string[] => [
  ...always,
  ...(status === 401 ? ['WWW-Authenticate'] : status === 413 || status === 415 ? [] : limits),
  ...(status === 429 || status === 503 || status === 504 ? ['Retry-After'] : []),
]
