import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { z } from 'zod'
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base'
import { catalog, type Operation } from '../../catalog/index.ts'
import { type JsonSchema, toInlinedJsonSchema, toJsonSchema } from '../../catalog/json-schema.ts'
import { createTool, type Tool } from '../../mcp/tools.ts'
import { listToolsetNames, MAX_DEFAULT_TOOLS } from '../../mcp/toolsets.ts'
import { guideTools, listTools } from '../../mcp/guide-tools.ts'
import { everyDatabase } from '../doors.ts'
import { plantConversation } from '../inbox/conversations.ts'
import { createToolRequest } from '../mcp-request.ts'
import { makeWorkspace } from '../servers.ts'
import { scopes } from '../../catalog/operation.ts'
import { compactInstructions, listInstructions } from '../../mcp/instructions.ts'
import { createOperationIndex } from '../../mcp/operation-search.ts'

const operations: readonly Operation[] = catalog
const tools: Tool[] = operations.map(createTool)

describe('MCP tools', () => {
  for (const tool of tools) {
    it(`${tool.name} has a name that clients take, and all annotations`, () => {
      assert.match(tool.name, /^[A-Za-z0-9_.-]{1,128}$/)
      assert.deepEqual(
        Object.values(tool.annotations).map((hint) => typeof hint),
        ['boolean', 'boolean', 'boolean', 'boolean'],
      )
      assert.equal('confirm' in (tool.inputSchema.properties as object), false)
    })
  }

  it('annotations follow from the catalog', () => {
    const hints = (name: string) => tools.find((tool) => tool.name === name)!.annotations
    assert.deepEqual(hints('crm_get_contact'), {
      readOnlyHint: true,
      destructiveHint: false,
      idempotentHint: true,
      openWorldHint: false,
    })
    assert.deepEqual(hints('crm_delete_contact'), {
      readOnlyHint: false,
      destructiveHint: true,
      idempotentHint: true,
      openWorldHint: false,
    })
    assert.deepEqual(hints('crm_create_custom_field'), {
      readOnlyHint: false,
      destructiveHint: false,
      idempotentHint: false,
      openWorldHint: false,
    })
    for (const name of [
      'crm_update_contact',
      'crm_update_contacts',
      'crm_untag_contacts',
      'crm_remove_contacts_from_group',
      'crm_undo_contact_merge',
      'jobs_cancel',
      'jobs_undo',
      'webhooks_update_endpoint',
      'webhooks_set_subscriptions',
    ])
      assert.equal(hints(name).destructiveHint, true, name)
    for (const name of [
      'webhooks_send_test',
      'webhooks_replay_delivery',
      'webhooks_recover_endpoint',
      'approvals_approve',
      'messaging_send_reply',
    ])
      assert.equal(hints(name).openWorldHint, true, name)
    assert.equal(hints('crm_tag_contacts').destructiveHint, false)
  })
})

describe('JSON Schema for clients', () => {
  it('a union of different types becomes a type array', () => {
    const { schema } = toJsonSchema(
      z.object({
        id: z.union([z.string().regex(/^\d+$/), z.int().positive()]),
        at: z.iso.datetime().nullable(),
      }),
    )
    const { id, at } = schema.properties as Record<string, unknown>
    assert.deepEqual(id, { type: ['string', 'integer'], pattern: '^\\d+$', exclusiveMinimum: 0 })
    assert.deepEqual(at, { type: ['string', 'null'], format: 'date-time' })
  })

  it('a union whose branches share a type is kept', () => {
    const { schema } = toJsonSchema(
      z.object({ a: z.union([z.literal(''), z.email()]), n: z.union([z.enum(['x', 'y']), z.null()]) }),
    )
    const { a, n } = schema.properties as Record<string, Record<string, unknown>>
    assert.equal((a!.anyOf as unknown[]).length, 2)
    assert.deepEqual(n, { type: ['string', 'null'], enum: ['x', 'y', null] })
  })

  it('references are inlined, and recursive schemas end in an open object', () => {
    type Node = { and?: Node[] }
    const Node: z.ZodType<Node> = z
      .lazy(() => z.object({ and: z.array(Node).optional() }))
      .meta({ id: 'TestNode' })
    const schema = toInlinedJsonSchema(z.object({ filter: Node }))
    assert.ok(!JSON.stringify(schema).includes('$ref'), JSON.stringify(schema))
  })
})

const everyTool = [...tools, ...guideTools]

/** Every schema in a schema, with the path to it. */
const schemasIn = function* (schema: JsonSchema, path = '#'): Generator<[string, JsonSchema]> {
  yield [path, schema]
  for (const [name, child] of Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>))
    yield* schemasIn(child, `${path}/properties/${name}`)
  if (schema.items) yield* schemasIn(schema.items as JsonSchema, `${path}/items`)
}

/** What a client refuses in one schema: undefined, or the reason. */
type Rule = (schema: JsonSchema) => string | undefined

const known = new Set(['string', 'number', 'integer', 'boolean', 'array', 'object'])
const isTyped: Rule = ({ type }) =>
  known.has(type as string) ? undefined : `type is ${JSON.stringify(type)}, not one type`
const arrayHasItems: Rule = ({ type, items }) =>
  type !== 'array' || (typeof items === 'object' && items !== null && !Array.isArray(items))
    ? undefined
    : 'an array without items'
const requiredExists: Rule = ({ required = [], properties = {} }) =>
  (required as string[]).every((name) => Object.hasOwn(properties as object, name))
    ? undefined
    : `required ${required as string} is not in properties`
const takesOnly =
  (allowed: readonly string[]): Rule =>
  (schema) => {
    const other = Object.keys(schema).find((keyword) => !allowed.includes(keyword))
    return other === undefined ? undefined : `keyword ${other}`
  }

/** The rules of OpenAI's function parameters, beside those of JSON Schema. */
const openAi: readonly Rule[] = [
  isTyped,
  arrayHasItems,
  requiredExists,
  ({ properties = {} }) =>
    Object.keys(properties as object).find((name) => !/^[A-Za-z0-9_-]{1,64}$/.test(name)),
  ({ enum: values }) =>
    values === undefined || (values as unknown[]).length > 0 ? undefined : 'an empty enum',
]
/** Gemini reads the subset of OpenAPI 3.0 that its `Schema` has; any other keyword is an unknown field. */
const gemini: readonly Rule[] = [
  isTyped,
  arrayHasItems,
  requiredExists,
  takesOnly([
    'type',
    'format',
    'title',
    'description',
    'nullable',
    'enum',
    'items',
    'maxItems',
    'minItems',
    'properties',
    'required',
    'minimum',
    'maximum',
    'minLength',
    'maxLength',
  ]),
  ({ type, enum: values }) =>
    values === undefined ||
    (type === 'string' && (values as unknown[]).every((value) => typeof value === 'string' && value !== ''))
      ? undefined
      : 'an enum of other values than words',
  ({ type, format }) =>
    format === undefined || (type === 'string' && format === 'date-time')
      ? undefined
      : `format ${format as string}`,
]
/** Anthropic refuses compositions at the root; VS Code and Copilot every `$ref`, nested union and bare array. */
const anthropicAndVsCode: readonly Rule[] = [
  arrayHasItems,
  requiredExists,
  (schema) =>
    ['$ref', '$defs', 'definitions', 'anyOf', 'oneOf', 'allOf', 'not', 'if', 'prefixItems', '$schema'].find(
      (keyword) => keyword in schema,
    ),
]

describe('MCP tools for strict clients', () => {
  for (const [client, rules] of Object.entries({ openAi, gemini, anthropicAndVsCode })) {
    it(`${client} takes the input of every tool`, () => {
      for (const { name, inputSchema } of everyTool) {
        assert.match(name, /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/)
        assert.equal(inputSchema.type, 'object')
        assert.equal(typeof inputSchema.properties, 'object')
        for (const [path, schema] of schemasIn(inputSchema))
          for (const rule of rules) assert.equal(rule(schema), undefined, `${name} ${path}`)
      }
    })
  }

  it('no tool has an output schema', () => {
    for (const tool of everyTool) assert.ok(!('outputSchema' in tool), tool.name)
  })

  it('every argument says what it is, and whether it takes null', () => {
    for (const [index, { name, inputSchema }] of tools.entries()) {
      for (const [field, { description }] of Object.entries(inputSchema.properties)) {
        assert.ok(description, `${name} ${field} has no description`)
        const exact = operations[index]!.input.shape[field]
        if (exact && exact.safeParse(null).success && !exact.safeParse('').success)
          assert.match(description as string, /null/, `${name} ${field} takes null, and does not say so`)
      }
    }
  })

  it('the examples of every operation fit its tool', () => {
    const fits = (schema: JsonSchema, value: unknown): boolean => {
      switch (schema.type) {
        case 'object':
          return (
            typeof value === 'object' &&
            Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>).every(
              ([name, child]) => !(name in value!) || fits(child, (value as Record<string, unknown>)[name]),
            )
          )
        case 'array':
          return Array.isArray(value) && value.every((item) => fits(schema.items as JsonSchema, item))
        case 'integer':
          return Number.isInteger(value)
        default:
          return typeof value === schema.type
      }
    }
    for (const [index, { name, inputSchema }] of tools.entries())
      for (const { title, input } of operations[index]!.examples)
        assert.ok(fits(inputSchema, input), `${name}: ${title} ${JSON.stringify(input)}`)
  })
})

/** The fields of all tools whose schema takes null, as `tool.field`. */
const nullable = operations.flatMap((op) =>
  Object.entries(createTool(op).inputSchema.properties)
    .filter(([, schema]) => schema.nullable)
    .map(([field]) => `${op.name}.${field}`),
)

describe('MCP: fields that null clears', () => {
  it('take null in the schema of the tool exactly where the server takes it', () => {
    const taken = operations.flatMap((op) =>
      Object.entries(op.input.shape)
        .filter(([, exact]) => exact.safeParse(null).success)
        .map(([field]) => `${op.name}.${field}`),
    )
    assert.ok(taken.length > 0)
    assert.deepEqual(nullable.toSorted(), taken.toSorted())
  })

  it('take null in the rows of an import too', () => {
    const { inputSchema } = createTool(operations.find((op) => op.name === 'crm_import_contacts')!)
    const row = inputSchema.properties['rows']!.items as JsonSchema & {
      properties: Record<string, JsonSchema>
    }
    assert.deepEqual(
      Object.keys(row.properties).filter((name) => row.properties[name]!['nullable']),
      ['external_id'],
    )
  })
})

everyDatabase('MCP: null in a tool call', (server) => {
  it('clears each field whose schema takes it', async () => {
    const { owner, id: workspaceId } = await makeWorkspace(server())
    const call = async (name: string, input: Record<string, unknown>): Promise<any> => {
      const response = await fetch(
        `${server().url}/mcp?toolsets=all`,
        createToolRequest(name, input, { key: owner.key }),
      )
      const { result } = (await response.json()) as any
      assert.ok(!result.isError, `${name} ${JSON.stringify(input)}: ${JSON.stringify(result.content)}`)
      return result.structuredContent
    }
    const { contact } = await call('crm_upsert_contact', { phone: '+15550100042' })
    const { group } = await call('crm_create_group', { name: 'VIP' })
    const { saved_filter: filter } = await call('crm_create_saved_filter', {
      name: 'Starred',
      filter: { starred: { eq: true } },
    })
    const url = 'https://example.com/hooks'
    const { endpoint } = await call('webhooks_create_endpoint', { url })
    const conversation = await plantConversation(server(), workspaceId)
    const ofContact = { key: { contact_id: contact.id }, read: (answer: any) => answer }
    const cases: Record<string, { key: object; value: string; read: (answer: any) => any }> = {
      'crm_upsert_contact.external_id': {
        key: { phone: '+15550100042' },
        value: 'C-1',
        read: (answer) => answer.contact,
      },
      'crm_update_contact.name': { ...ofContact, value: 'Ada' },
      'crm_update_contact.email': { ...ofContact, value: 'ada@example.com' },
      'crm_update_contact.external_id': { ...ofContact, value: 'C-2' },
      'crm_update_group.emoji': {
        key: { group_id: group.id },
        value: '⭐',
        read: (answer) => answer.group,
      },
      'crm_update_saved_filter.description': {
        key: { saved_filter_id: filter.id },
        value: 'Whom we like',
        read: (answer) => answer.saved_filter,
      },
      'inbox_set_reminder.at': {
        key: { conversation_id: conversation.id },
        value: '2999-01-01T00:00:00Z',
        read: ({ conversation: { reminder_at: at } }) => ({ at }),
      },
      'webhooks_create_endpoint.description': {
        key: { url },
        value: 'Orders',
        read: (answer) => answer.endpoint,
      },
      'webhooks_update_endpoint.description': {
        key: { endpoint_id: endpoint.id },
        value: 'Orders',
        read: (answer) => answer.endpoint,
      },
    }
    assert.deepEqual(Object.keys(cases).toSorted(), nullable.toSorted())
    for (const [place, { key, value, read }] of Object.entries(cases)) {
      const [tool, field] = place.split('.') as [string, string]
      assert.ok(read(await call(tool, { ...key, [field]: value }))[field], place)
      assert.equal(read(await call(tool, { ...key, [field]: null }))[field], null, place)
    }
  })
})

/** What a client puts before a model: the list as `tools/list` answers it, in tokens of o200k. */
const measure = (tools: readonly object[]): number => countTokens(JSON.stringify(tools))

const MAX_DEFAULT_TOKENS = 10_000
const MAX_COMPACT_TOKENS = 1500
const MAX_TOOL_TOKENS = 1200

describe('Tokens of the lists of tools', () => {
  const tools = new Map(operations.map((op) => [op.name, createTool(op)]))
  const source = {
    operations,
    byName: new Map(operations.map((op) => [op.name, op])),
    index: () => createOperationIndex(operations),
    tools: () => tools,
  }
  const list = (toolsets: string[] | undefined, compact = false) =>
    listTools(source, { selection: { toolsets, readonly: false, compact }, scopes })

  it('the default list and compact mode are small', () => {
    const short = list(undefined)
    const compact = list(undefined, true)
    const others = listToolsetNames(operations).map((name) => [name, list([name])] as const)
    for (const [name, tools] of [['default', short], ['compact', compact], ...others] as const)
      console.log(
        `${name.padEnd(16)} ${String(tools.length).padStart(3)} tools ${String(measure(tools)).padStart(6)} tokens`,
      )
    console.log(
      `instructions     ${countTokens(listInstructions)} tokens, compact ${countTokens(compactInstructions)}`,
    )
    assert.ok(short.length <= MAX_DEFAULT_TOOLS, `${short.length} tools`)
    assert.ok(measure(short) <= MAX_DEFAULT_TOKENS, `${measure(short)} tokens`)
    assert.equal(compact.length, 3)
    assert.ok(measure(compact) <= MAX_COMPACT_TOKENS, `${measure(compact)} tokens`)
    assert.ok(countTokens(listInstructions) <= 600)
  })

  it('no tool is large', () => {
    for (const tool of tools.values())
      assert.ok(measure([tool]) <= MAX_TOOL_TOKENS, `${tool.name} takes ${measure([tool])} tokens`)
  })
})
