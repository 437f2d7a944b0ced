import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { z } from 'zod'
import { commonErrors, errors } from '../../catalog/errors.ts'
import { eventTypes } from '../../catalog/events.ts'
import {
  currentVersion,
  catalog,
  findOperation,
  getInputSchema,
  getOutputSchema,
  listRoutes,
  scopes,
  showsVersion,
  takesVersion,
} from '../../catalog/index.ts'
import { type Marks, toMarkedJsonSchema } from '../../catalog/marks.ts'
import { getPlannedSchema } from '../../catalog/operation.ts'
import { handlers } from '../../server/handlers.ts'

const assertUnique = (values: readonly string[], what: string): void =>
  assert.deepEqual(
    values.filter((v, i) => values.indexOf(v) < i),
    [],
    `${what} occur twice`,
  )

type Node = {
  description?: string
  properties?: Record<string, Node>
  items?: Node | boolean
  anyOf?: Node[]
  oneOf?: Node[]
  allOf?: Node[]
  additionalProperties?: Node | boolean
  $ref?: string
}

/**
 * Every property in a JSON Schema with its path, through arrays, unions and references, each reference
 * once.
 */
const walkFields = function* (
  root: Node & { $defs?: Record<string, Node> },
  node: Node = root,
  path = '',
  seen: ReadonlySet<string> = new Set(),
): Generator<[string, Node]> {
  if (node.$ref !== undefined) {
    const target = node.$ref === '#' ? root : root.$defs![node.$ref.slice('#/$defs/'.length)]!
    if (!seen.has(node.$ref)) yield* walkFields(root, target, path, new Set([...seen, node.$ref]))
    return
  }
  for (const [name, child] of Object.entries(node.properties ?? {})) {
    yield [`${path}.${name}`, child]
    yield* walkFields(root, child, `${path}.${name}`, seen)
  }
  const inner = [node.items, node.additionalProperties].filter((n): n is Node => typeof n === 'object')
  for (const child of [...inner, ...(node.anyOf ?? []), ...(node.oneOf ?? []), ...(node.allOf ?? [])])
    yield* walkFields(root, child, `${path}[]`, seen)
}

const listUndescribed = (schema: z.ZodType, io: 'input' | 'output'): string[] => {
  const root = z.toJSONSchema(schema, { io }) as Node & { $defs?: Record<string, Node> }
  const describes = ({ description, $ref }: Node): boolean =>
    Boolean(description ?? root.$defs?.[$ref?.slice('#/$defs/'.length) ?? '']?.description)
  return [...walkFields(root)].filter(([, node]) => !describes(node)).map(([path]) => path)
}

/**
 * Fields that are called like those with a mark, and have none, because … Ends of paths, each used.
 */
const unmarkedNames: Readonly<Record<string, string>> = {
  '.channel.phone': 'a number of the business',
  'messaging_create_short_link.phone': 'a number of the business',
  '.buttons.phone_number': 'a number of the business',
  '.endpoint.signing_secret': 'masked',
  '.data.signing_secret': 'masked',
  'webhooks_get_endpoint.signing_secret': 'masked',
  '.plan.token': 'it opens nothing',
}

/** What a field is by the end of its path, and the mark that says so. */
const markedNames: readonly { names: RegExp; mark: keyof Marks }[] = [
  { names: /[._](?:phone|phone_number|msisdn|mobile|wa_id|chatapp_user_id|web_visitor_id)$/, mark: 'phone' },
  {
    names: /[._](?:contact|conversation|message)_ids?$|\.(?:contact|conversation|message)\.id$/,
    mark: 'idOf',
  },
  { names: /[._](?:secret|token|password|credentials?)$/, mark: 'private' },
]

/** Every field of inputs, answers and events with its schema, in which marks are keywords. */
const listMarkable = (): [string, Node][] =>
  [
    ...catalog.flatMap((op) => [
      [op.name, getInputSchema(op)] as const,
      [op.name, getPlannedSchema(op)] as const,
    ]),
    ...Object.entries(eventTypes).map(([type, { data }]) => [type, data] as const),
  ].flatMap(([name, schema]) => {
    const root = toMarkedJsonSchema(schema) as Node
    return [...walkFields(root)].map(([path, node]): [string, Node] => [
      `${name}${path}`.replaceAll('[]', ''),
      node,
    ])
  })

const hasMark = (node: Node, mark: keyof Marks): boolean =>
  mark in node ||
  [node.items, ...(node.anyOf ?? [])].some((one) => typeof one === 'object' && hasMark(one, mark))

describe('Catalog', () => {
  it('a field that is called like a phone, a secret or the id of a contact has a mark that says so', () => {
    const used = new Set<string>()
    const fields = listMarkable()
    assert.ok(markedNames.every(({ names }) => fields.filter(([path]) => names.test(path)).length > 5))
    const unmarked = fields.filter(([path, node]) => {
      const missing = markedNames.filter(({ names, mark }) => names.test(path) && !hasMark(node, mark))
      const known = Object.keys(unmarkedNames).find((end) => path.endsWith(end))
      if (missing.length > 0 && known !== undefined) used.add(known)
      return missing.length > 0 && known === undefined
    })
    assert.deepEqual(
      unmarked.map(([path]) => path),
      [],
    )
    assert.deepEqual([...used].sort(), Object.keys(unmarkedNames).sort(), 'no longer needed')
  })

  it('what shows a secret stores its answers sealed', () => {
    const shows = catalog.filter((op) =>
      [...walkFields(toMarkedJsonSchema(op.output) as Node)].some(([, node]) => hasMark(node, 'private')),
    )
    assert.deepEqual(
      shows,
      catalog.filter(({ secret }) => secret),
    )
  })

  it('names, commands and routes are unique', () => {
    assertUnique(
      catalog.map((op) => op.name),
      'names',
    )
    assertUnique(
      catalog.map((op) => op.cli),
      'commands',
    )
    // `GET /v1/x/{a}` and `GET /v1/x/{b}` are the same route.
    assertUnique(
      catalog.flatMap((op) =>
        listRoutes(op).map((r) => `${r.method} ${r.path.replaceAll(/\{\w+\}/g, '{}')}`),
      ),
      'routes',
    )
  })

  it('every operation has exactly one handler', () => {
    assert.deepEqual(Object.keys(handlers).sort(), catalog.map((op) => op.name).sort())
    for (const op of catalog) assert.equal(findOperation(op.name), op)
    assert.equal(findOperation('constructor'), undefined)
  })

  it('what changes or deletes one record that has a version takes that as a condition', () => {
    // They change nothing of the endpoint, the contact or the filter itself.
    const others = [
      'crm_export_person',
      'crm_record_consent',
      'crm_track_saved_filter',
      'webhooks_recover_endpoint',
      'webhooks_send_test',
    ]
    const ids = ['contact_id', 'template_id', 'quick_message_id', 'saved_filter_id', 'endpoint_id']
    for (const op of catalog.filter(({ dryRun }) => dryRun)) {
      const [id] = listRoutes(op)[0]!.pathFields.filter((field) => ids.includes(field))
      assert.equal(takesVersion(op), id !== undefined && !others.includes(op.name), op.name)
      if (!takesVersion(op)) continue
      assert.equal(op.versioned!.by, id, op.name)
      // A call that could leave it out would go unchecked.
      assert.ok(!op.input.shape[id!]!.safeParse(undefined).success, op.name)
      assert.ok(op.errors.includes('precondition_failed'), op.name)
      assert.ok(op.confirm === 'delete' || op.confirm === 'erase' || showsVersion(op), op.name)
    }
  })

  it('the check finds undescribed fields in arrays, records, unions and references', () => {
    // The checks below prove nothing unless this one can fail.
    const Hidden = z.object({ bare: z.string() })
    assert.deepEqual(
      listUndescribed(
        z.object({
          a: z.array(z.union([z.string(), Hidden])).describe('x'),
          b: z.record(z.string(), Hidden).optional().describe('y'),
        }),
        'input',
      ).length,
      2,
    )
    assert.deepEqual(
      listUndescribed(
        z.object({ a: Hidden.meta({ id: 'HiddenInTests' }).nullable().describe('x') }),
        'output',
      ).length,
      1,
    )
  })

  for (const op of catalog)
    describe(op.name, () => {
      it('name, scope, version and summary are well-formed', () => {
        assert.match(
          op.name,
          /^(workspace|crm|messaging|inbox|webhooks|events|reports|audit|approvals|jobs)_[a-z_]+$/,
        )
        assert.ok(scopes.includes(op.scope))
        assert.equal(op.since, currentVersion)
        assert.match(op.summary, /^[A-Z].*[^.]$/s)
        assert.ok(op.routes.length > 0)
        assert.ok(
          op.description === undefined || op.description.endsWith('.'),
          'a description ends with a full stop',
        )
        for (const { method } of listRoutes(op)) if (method === 'GET') assert.equal(op.scope, 'mcp:read')
        assert.equal(op.dryRun === true, op.scope !== 'mcp:read')
      })

      it('each field has one place in every route', () => {
        const reached = new Set<string>()
        for (const route of listRoutes(op)) {
          const all = [...route.pathFields, ...route.queryFields, ...route.bodyFields]
          assertUnique(all, `fields of ${route.method} ${route.path}`)
          for (const field of all) {
            assert.ok(
              Object.hasOwn(getInputSchema(op).shape, field),
              `${route.path} names ${field}, which is not a field`,
            )
            reached.add(field)
          }
          const required = Object.entries(getInputSchema(op).shape)
            .filter(([, schema]) => !(schema as z.ZodType).safeParse(undefined).success)
            .map(([name]) => name)
          for (const field of required)
            assert.ok(all.includes(field), `${route.path} cannot carry ${field}, which is required`)
          if (route.method === 'GET' || route.method === 'DELETE') assert.deepEqual(route.bodyFields, [])
        }
        const common = ['dry_run', 'idempotency_key', 'confirm', 'api_version']
        assert.deepEqual(
          Object.keys(op.input.shape).filter((field) => common.includes(field)),
          [],
          'reserved names',
        )
        const onlyOps = Object.keys(op.input.shape).filter((field) => !reached.has(field))
        assert.deepEqual(onlyOps, [], 'fields that no route carries')
      })

      it('examples match the schemas', () => {
        assert.ok(op.examples.length > 0)
        for (const { title, input, output } of op.examples) {
          assert.ok(title.length > 3 && !title.endsWith('.'))
          getInputSchema(op).parse(input)
          getOutputSchema(op).strict().parse(output)
          // Nothing is dropped in parsing: nested objects have no unknown fields.
          assert.deepEqual(
            JSON.parse(JSON.stringify(getOutputSchema(op).parse(output))),
            JSON.parse(JSON.stringify(output)),
          )
        }
      })

      it('every field has a description, at any depth', () => {
        assert.deepEqual(listUndescribed(getInputSchema(op), 'input'), [])
        assert.deepEqual(listUndescribed(getOutputSchema(op), 'output'), [])
      })

      it('lists its error codes, and no common ones', () => {
        assertUnique(op.errors, 'errors')
        for (const code of op.errors) {
          assert.ok(Object.hasOwn(errors, code))
          // Any call can be forbidden from an address; here it is for the caller's permissions.
          assert.ok(code === 'forbidden' || !commonErrors.includes(code), `${code} is common to all`)
        }
        assert.equal(op.errors.includes('confirm_required'), op.confirm !== undefined)
        const ids = listRoutes(op).flatMap((route) => route.pathFields)
        if (ids.length > 0) assert.ok(op.errors.includes('not_found'), 'an id in the path may not exist')
      })

      it('emits existing event types', () => {
        assertUnique(op.emits ?? [], 'events')
        for (const type of op.emits ?? []) assert.ok(Object.hasOwn(eventTypes, type), type)
      })
    })
})

/** Events that no operation causes: they come from the provider or from the webhook delivery job. */
const emittedElsewhere = [
  // By any change that a person decides on.
  'approval.requested/1',
  'conversation.created/1',
  'message.',
  'template.status_changed/1',
  'channel.status_changed/1',
  'webhook.endpoint_',
]

describe('Event types', () => {
  for (const [id, type] of Object.entries(eventTypes))
    it(`${id} has a description, a sample and a cause`, () => {
      assert.match(id, /^[a-z_]+(\.[a-z_]+)+\/\d+$/)
      assert.match(type.description, /^[A-Z].*\.$/)
      assert.deepEqual(type.data.strict().parse(type.sample), type.sample)
      assert.deepEqual(listUndescribed(type.data, 'output'), [])
      const caused = catalog.some((op) => (op.emits as readonly string[] | undefined)?.includes(id))
      assert.ok(
        caused || emittedElsewhere.some((start) => id.startsWith(start)),
        `${id} is emitted by no operation`,
      )
    })
})

describe('Error codes', () => {
  it('every code has a status, a title, a description and a fix', () => {
    for (const [code, { status, title, description, fix }] of Object.entries(errors)) {
      assert.match(code, /^[a-z_]+$/)
      assert.ok(status >= 400 && status < 600)
      assert.ok(title.length > 3 && description.endsWith('.') && fix.endsWith('.'), code)
    }
    assertUnique(
      Object.values(errors).map((e) => e.title),
      'titles',
    )
  })

  it('every code is returned by an operation', () => {
    const used = new Set<string>([...commonErrors, ...catalog.flatMap((op) => op.errors)])
    // Codes of future operations.
    const reserved = ['service_unconfigured', 'window_closed']
    assert.deepEqual(
      Object.keys(errors).filter((code) => !used.has(code) && !reserved.includes(code)),
      [],
    )
  })
})
