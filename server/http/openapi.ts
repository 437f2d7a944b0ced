import { pick } from '../../catalog/values.ts'
import { AskedAnswer } from '../../catalog/approvals.ts'
import { commonErrors, type ErrorCode } from '../../catalog/errors.ts'
import { currentVersion } from '../../catalog/index.ts'
import { type JsonSchema, toJsonSchema, mapSchemas } from '../../catalog/json-schema.ts'
import {
  getInputSchema,
  type Operation,
  getPlannedSchema,
  type Route,
  listRoutes,
  showsVersion,
  takesVersion,
} from '../../catalog/operation.ts'
import {
  askedResponse,
  confirmParameter,
  notModifiedResponse,
  planParameter,
  reasonParameter,
  dryRunParameter,
  headers,
  parameters,
  type Part,
  problemResponses,
  problemSchemas,
  componentRef,
  successHeaders,
} from './openapi-parts.ts'
import { tagDescriptions } from './openapi-tags.ts'
import { createEventSchemas, listDescribedEvents } from '../domains/events/schemas.ts'
import { createFilterSchemas } from '../domains/filters/schema.ts'
import { lazy } from '../lazy.ts'

/** The parts of the document that operations add to. */
type Draft = {
  publicUrl: string
  paths: Record<string, Part>
  schemas: Record<string, JsonSchema>
  responses: Record<string, Part>
}

/** An operation with its schemas, their references pointing into the components. */
type Described = { op: Operation; input: JsonSchema; output: JsonSchema; tag: string }

/**
 * Returns the OpenAPI 3.1 document of the REST routes and webhooks; with `facade` that of `POST /v1/ops/<name>`, which
 * would say everything twice.
 */
export const createOpenapi = (
  operations: readonly Operation[],
  { publicUrl, facade = false }: { publicUrl: string; facade?: boolean },
): Part => {
  const draft: Draft = { publicUrl, paths: {}, schemas: {}, responses: {} }
  const described = operations.map((op) => describeOperation(draft, op))
  if (operations.some(mayBeAsked)) addAsked(draft)
  const records = Object.entries(draft.schemas)
  for (const each of described) nameOutput(draft, each, records)
  for (const each of described) (facade ? addOps : addRoutes)(draft, each)
  const webhooks = facade ? {} : createWebhooks()
  addUsedDefinitions(draft.schemas, [draft, webhooks])
  return {
    openapi: '3.1.0',
    info: {
      title: facade ? 'wcrm operations' : 'wcrm',
      version: currentVersion,
      summary: 'Workspace messaging and CRM service',
      description:
        'Messaging and CRM for one workspace: contacts, conversations, messages, templates and reports. ' +
        'Every operation is a REST route and `POST /v1/ops/<name>`, which ' +
        `\`/${facade ? 'openapi' : 'openapi-ops'}.json\` describes. ` +
        'A request acts as the staff member who owns the key. Changes take `dry_run`: every check runs, ' +
        'nothing changes.',
      license: { name: 'Apache License 2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: publicUrl, description: 'This server' }],
    security: [{ apiKey: [] }],
    tags: facade ? [OPS_TAG] : listTags(described),
    paths: draft.paths,
    ...(facade ? {} : { webhooks }),
    components: {
      securitySchemes: {
        apiKey: {
          type: 'http',
          scheme: 'bearer',
          description:
            'An API key: `Authorization: Bearer wc_live_…`. Test keys (`wc_test_…`) run every change ' +
            'as a dry run.',
        },
      },
      schemas: { ...draft.schemas, ...problemSchemas },
      headers: pickUsed(headers, draft),
      parameters: pickUsed(parameters, draft),
      responses: draft.responses,
    },
  }
}

/** Adds the answer to a call on which a person decides. */
const addAsked = (draft: Draft): void => {
  const { schema, definitions } = toJsonSchema(AskedAnswer)
  for (const [name, record] of Object.entries({ ...definitions, Asked: schema }))
    draft.schemas[name] = toComponents(record)
  draft.responses['Asked'] = askedResponse
}

/** Returns the components that the document refers to; linters report unused ones. */
const pickUsed = (components: Record<string, Part>, { paths, responses }: Draft): Record<string, Part> => {
  const json = JSON.stringify([paths, responses])
  return Object.fromEntries(Object.entries(components).filter(([name]) => json.includes(`/${name}"}`)))
}

const OPS_TAG = { name: 'ops', description: 'Every operation by name, with all fields in the JSON body.' }

const listTags = (described: readonly Described[]): Part[] =>
  [...new Set(described.map(({ tag }) => tag))].map((name) => ({ name, description: tagDescriptions[name] }))

/** The group of an operation: that of its command. */
export const getGroupOf = (op: Operation): string =>
  op.cli.includes(' ') ? op.cli.split(' ')[0]! : 'workspace'

const describeOperation = (draft: Draft, op: Operation): Described => {
  const input = toJsonSchema(getInputSchema(op))
  const output = toJsonSchema(getPlannedSchema(op))
  for (const [name, schema] of Object.entries({ ...input.definitions, ...output.definitions }))
    if (!(name in richDefinitions())) draft.schemas[name] = toComponents(schema)
  return {
    op,
    input: toComponents(input.schema),
    output: toComponents(output.schema),
    tag: getGroupOf(op),
  }
}

/**
 * Names an output, so that its routes share the schema: by the record that it equals, else after the
 * operation.
 */
const nameOutput = (
  draft: Draft,
  each: Described,
  records: readonly (readonly [string, JsonSchema])[],
): void => {
  const json = JSON.stringify(each.output)
  const name =
    records.find(([, record]) => JSON.stringify(record) === json)?.[0] ??
    `${toPascalCase(each.op.name)}Answer`
  draft.schemas[name] = each.output
  each.output = componentRef('schemas', name)
}

const toPascalCase = (name: string): string =>
  name
    .split('_')
    .map((word) => word[0]!.toUpperCase() + word.slice(1))
    .join('')

/** Keeps the examples that a route has a place for, if there are any: test generators send them by it. */
const withExamplesOf = (each: Described, { pathFields, queryFields, bodyFields }: Route): Described => {
  const places = [...pathFields, ...queryFields, ...bodyFields]
  const examples = each.op.examples.filter(
    ({ input }) =>
      pathFields.every((field) => field in (input as object)) &&
      Object.keys(input as object).every((field) => places.includes(field)),
  )
  return examples.length === 0 ? each : { ...each, op: { ...each.op, examples } }
}

const addRoutes = (draft: Draft, described: Described): void => {
  listRoutes(described.op).forEach((route, index) => {
    const each = withExamplesOf(described, route)
    const operationId =
      index === 0 ? each.op.name : `${each.op.name}_${route.method.toLowerCase()}${index > 1 ? index : ''}`
    const body = route.bodyFields.length > 0 ? createRequestBody(each, route.bodyFields) : undefined
    const responses = createResponses(draft, each, {
      status: route.status,
      readsBody: route.method !== 'GET',
    })
    const path = (draft.paths[route.path] ??= {})
    path[route.method.toLowerCase()] = {
      operationId,
      tags: [each.tag],
      ...createOperationMeta(each.op),
      parameters: [
        ...fieldParameters(each, route),
        ...headerParameters(each.op),
        ...(isConditionalRead(each.op) ? [componentRef('parameters', 'IfNoneMatch')] : []),
      ],
      ...(body ? { requestBody: body } : {}),
      responses: each.op.bytes ? addByteResponses(responses) : responses,
    }
  })
}

/** Adds the responses of a route that returns the bytes themselves, unless JSON is requested. */
const addByteResponses = (responses: Part): Part => {
  const success = responses['200'] as { headers: Part; content: Part }
  return {
    ...responses,
    200: {
      ...success,
      description:
        'The bytes, in their media type; with `Accept: application/json`, a description with a URL.',
      content: { '*/*': { schema: { type: 'string', format: 'binary' } }, ...success.content },
    },
    302: {
      description: 'The bytes are at another URL.',
      headers: { ...success.headers, Location: componentRef('headers', 'Location') },
    },
  }
}

const addOps = (draft: Draft, each: Described): void => {
  const { op, input } = each
  const extra: Record<string, Part> = op.dryRun
    ? {
        idempotency_key: {
          type: 'string',
          minLength: 8,
          maxLength: 128,
          pattern: '^[A-Za-z0-9._:-]+$',
          description: 'The same as the header `Idempotency-Key`.',
        },
        ...(op.confirm
          ? {
              confirm: {
                type: 'string',
                enum: [op.confirm],
                description: 'The same as the header `Api-Confirm`.',
              },
            }
          : {}),
      }
    : {}
  const withExtras = { ...each, input: { ...input, properties: { ...(input.properties as Part), ...extra } } }
  draft.paths[`/v1/ops/${op.name}`] = {
    post: {
      operationId: `${op.name}_op`,
      tags: ['ops'],
      ...createOperationMeta(op),
      parameters: [...(op.dryRun ? [dryRunParameter] : []), ...headerParameters(op)],
      requestBody: createRequestBody(withExtras, Object.keys(withExtras.input.properties)),
      responses: createResponses(draft, each, {
        status: listRoutes(op)[0]!.status,
        readsBody: true,
        isFacade: true,
      }),
    },
  }
}

const createOperationMeta = (op: Operation): Part => ({
  summary: op.summary,
  description: [op.description, `Requires the scope \`${op.scope}\`.`].filter(Boolean).join('\n\n'),
  security: [{ apiKey: [op.scope] }],
  'x-operation': op.name,
  'x-scope': op.scope,
  'x-stability': op.stability,
  'x-since': op.since,
  ...(op.confirm ? { 'x-confirm': op.confirm } : {}),
  ...(op.emits && op.emits.length > 0 ? { 'x-emits': [...op.emits] } : {}),
})

const headerParameters = (op: Operation): Part[] => [
  componentRef('parameters', 'ApiVersion'),
  ...(op.dryRun
    ? [
        componentRef(
          'parameters',
          op.idempotency === 'required' ? 'RequiredIdempotencyKey' : 'IdempotencyKey',
        ),
      ]
    : []),
  // No example here either: nobody confirms by accepting what is filled in.
  ...(op.confirm ? [confirmParameter(op.confirm)] : []),
  ...(op.dryRun ? [reasonParameter, planParameter] : []),
  ...(takesVersion(op) ? [componentRef('parameters', 'IfMatch')] : []),
]

const isConditionalRead = (op: Operation): boolean => !op.dryRun && showsVersion(op)

const fieldParameters = (each: Described, route: Route): Part[] => {
  const properties = each.input.properties as Record<string, JsonSchema>
  const required = (each.input.required ?? []) as string[]
  const createParameter =
    (place: 'path' | 'query') =>
    (name: string): Part => {
      const { description, ...schema } = properties[name]!
      if (name === 'dry_run') return { ...dryRunParameter, description }
      const examples = createExamples(each.op, ({ input }) => {
        const given = input as Part
        // One of another way to fill in the input is of another route.
        return route.pathFields.every((field) => field in given) ? given[name] : undefined
      })
      return {
        name,
        in: place,
        required: place === 'path' || required.includes(name),
        description,
        schema,
        ...(examples ? { examples } : {}),
      }
    }
  return [
    ...route.pathFields.map(createParameter('path')),
    ...route.queryFields.map(createParameter('query')),
  ]
}

const successDescriptions: Record<number, string> = {
  200: 'Success.',
  201: 'Created.',
  202: 'Accepted; processing continues after the response.',
}

const createResponses = (
  draft: Draft,
  { op, output }: Described,
  { status, readsBody, isFacade = false }: { status: number; readsBody: boolean; isFacade?: boolean },
): Part => {
  const codes = [
    ...new Set([
      ...commonErrors,
      ...op.errors,
      ...(op.dryRun ? ['conflict' as const] : []),
      ...(op.confirm ? ['confirm_required' as const] : []),
    ]),
  ].filter((code) => !listImpossibleErrors(readsBody).includes(code))
  const { refs, responses } = problemResponses(codes, draft.publicUrl, op.dryRun === true)
  Object.assign(draft.responses, responses)
  const examples = createExamples(op, (example) => example.output)
  const schema =
    status === 202 && mayBeAsked(op) ? { anyOf: [output, componentRef('schemas', 'Asked')] } : output
  return {
    [status]: {
      description: successDescriptions[status]!,
      headers: successHeaders(op.dryRun === true, !isFacade && showsVersion(op)),
      content: { 'application/json': { schema, ...(examples ? { examples } : {}) } },
    },
    ...(isConditionalRead(op) && !isFacade ? { 304: notModifiedResponse } : {}),
    ...(mayBeAsked(op) && status !== 202 ? { 202: acceptedResponse(op, output) } : {}),
    ...refs,
  }
}

/** The answer of a call that continues after its response: it waits for approval, or a job does the work. */
const acceptedResponse = ({ jobs }: Operation, output: Part): Part =>
  jobs
    ? {
        description: 'Accepted: a job goes on with it, or a person is asked.',
        headers: successHeaders(true, false),
        content: {
          'application/json': { schema: { anyOf: [output, componentRef('schemas', 'Asked')] } },
        },
      }
    : componentRef('responses', 'Asked')

/** Whether a person may be asked about calls of an agent's key. */
const mayBeAsked = (op: Operation): boolean => op.dryRun === true && op.scope !== 'approvals:write'

/**
 * Returns the codes that cannot occur in a documented request: its method is allowed, and the body of a GET
 * is not read.
 */
const listImpossibleErrors = (readsBody: boolean): readonly ErrorCode[] =>
  readsBody ? ['method_not_allowed'] : ['method_not_allowed', 'payload_too_large', 'unsupported_media_type']

/** Points references into the components of the document. */
const toComponents = (schema: JsonSchema): JsonSchema => {
  const move = (ref: unknown): string => String(ref).replace('#/$defs/', '#/components/schemas/')
  const node = mapSchemas(schema, toComponents)
  const { discriminator } = node as {
    discriminator?: { propertyName: string; mapping: Record<string, string> }
  }
  return {
    ...node,
    ...(typeof node.$ref === 'string' ? { $ref: move(node.$ref) } : {}),
    ...(discriminator
      ? {
          discriminator: {
            ...discriminator,
            mapping: Object.fromEntries(
              Object.entries(discriminator.mapping).map(([value, ref]) => [value, move(ref)]),
            ),
          },
        }
      : {}),
  }
}

/** Definitions that say more than what the service validates a request by: filters by their grammar, events by type. */
const richDefinitions: () => Readonly<Record<string, JsonSchema>> = lazy(() =>
  Object.fromEntries(
    Object.entries({ ...createFilterSchemas(), ...createEventSchemas() }).map(([name, schema]) => [
      name,
      toComponents(schema),
    ]),
  ),
)

const PREFIX = '#/components/schemas/'

/** Adds the definitions that `used`, or one of them, refers to. */
const addUsedDefinitions = (schemas: Record<string, JsonSchema>, used: unknown): void => {
  const definitions = richDefinitions()
  const visit = (node: unknown): void => {
    if (typeof node !== 'object' || node === null) return
    for (const [key, value] of Object.entries(node)) {
      const name = key === '$ref' && typeof value === 'string' ? value.slice(PREFIX.length) : undefined
      if (name === undefined) visit(value)
      else if (!(name in schemas) && name in definitions) visit((schemas[name] = definitions[name]!))
    }
  }
  visit(used)
}

const signatureParameters: readonly Part[] = [
  ['webhook-id', 'The event id: the same on every attempt.', 'evt_01JABCDEFGHJKMNPQRSTVWXYZ1'],
  ['webhook-timestamp', 'The time of this attempt, in seconds since 1970.', '1759310400'],
  [
    'webhook-signature',
    '`v1,` and base64 of the HMAC-SHA256 of `{webhook-id}.{webhook-timestamp}.{body}`; several after a rotation.',
    'v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=',
  ],
].map(([name, description, example]) => ({
  name,
  in: 'header',
  required: true,
  description,
  schema: { type: 'string' },
  example,
}))

/** Returns the webhooks of the document: one for each event type, in the format `envelope`. */
const createWebhooks = (): Record<string, Part> =>
  Object.fromEntries(
    listDescribedEvents().map(({ id, type, version, description, sample, webhook }) => [
      version === '1' ? type : id,
      {
        post: {
          operationId: `on_${type.replaceAll('.', '_')}${version === '1' ? '' : `_v${version}`}`,
          tags: ['webhooks'],
          summary: description.replace(/\.$/, ''),
          description:
            'Sent to endpoints that subscribe to it, at least once: ignore a `webhook-id` that came before. ' +
            'Verify the signature over the received bytes.',
          security: [],
          parameters: signatureParameters,
          requestBody: {
            required: true,
            content: {
              'application/json': {
                schema: componentRef('schemas', webhook),
                example: {
                  id: 'evt_01JABCDEFGHJKMNPQRSTVWXYZ1',
                  type,
                  version,
                  api_version: '2026-10-01',
                  occurred_at: '2026-10-01T09:30:00.000Z',
                  company_id: '1',
                  data: sample,
                },
              },
            },
          },
          responses: {
            '2XX': { description: 'Received. Respond within 15 seconds.' },
            '410': { description: 'The endpoint is gone: it is disabled.' },
            default: { description: 'Not received: it is sent again later.' },
          },
        },
      },
    ]),
  )

/** Returns an object of these fields. */
const toObject = (
  { properties, required = [] }: JsonSchema,
  fields: readonly string[],
  needed: readonly string[] = [],
): JsonSchema => {
  const needs = fields.filter((name) => needed.includes(name) || (required as string[]).includes(name))
  return {
    type: 'object',
    properties: pick(properties as Part, fields),
    ...(needs.length > 0 ? { required: needs } : {}),
    additionalProperties: false,
  }
}

/** Each alternative of an input is an object of its own, so that a generated type holds what the service checks. */
const createBodySchema = (
  { op, input }: Pick<Described, 'op' | 'input'>,
  fields: readonly string[],
): JsonSchema => {
  const alternatives = op.alternatives ?? []
  if (alternatives.length === 0) return toObject(input, fields)
  const listOwn = ({ needs, takes = [] }: (typeof alternatives)[number]) => [...needs, ...takes]
  return {
    oneOf: alternatives.map((alternative) => {
      const others = alternatives.filter((other) => other !== alternative).flatMap(listOwn)
      const own = listOwn(alternative)
      const kept = fields.filter((name) => own.includes(name) || !others.includes(name))
      return { title: `With ${alternative.needs[0]}`, ...toObject(input, kept, alternative.needs) }
    }),
  }
}

const createRequestBody = (
  { op, input }: Pick<Described, 'op' | 'input'>,
  fields: readonly string[],
): Part => {
  const required = (input.required ?? []) as string[]
  const examples = createExamples(op, (example) => pick(example.input as Part, fields))
  return {
    required: op.alternatives !== undefined || fields.some((name) => required.includes(name)),
    content: {
      'application/json': {
        schema: createBodySchema({ op, input }, fields),
        ...(examples ? { examples } : {}),
      },
    },
  }
}

/**
 * Returns the catalog's examples by name; a request and a response with the same name belong together.
 */
const createExamples = (
  op: Operation,
  part: (example: Operation['examples'][number]) => unknown,
): Part | undefined => {
  const found = op.examples
    .map((example) => [toSlug(example.title), { summary: example.title, value: part(example) }] as const)
    .filter(([, { value }]) => value !== undefined)
  return found.length > 0 ? Object.fromEntries(found) : undefined
}

const toSlug = (title: string): string =>
  title
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')
