import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { z } from 'zod'
import { commonErrors, errors } from '../../catalog/errors.ts'
import { eventTypes } from '../../catalog/events.ts'
import {
  apiVersions,
  catalog,
  findOperation,
  getInputSchema,
  type Operation,
  getOutputSchema,
  listRoutes,
  scopes,
} from '../../catalog/index.ts'
import { handlers } from '../../server/handlers.ts'

const operations: readonly Operation[] = catalog
const unique = (values: readonly string[], what: string): void =>
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
const fieldsOf = function* (
  root: Node & { $defs?: Record<string, Node> },
  node: Node = root,
  path = '',
  seen: ReadonlySet<string> = new Set(),
): Generator<[string, Node]> {
  if (node.$ref !== undefined) {
    const target = node.$ref === '#' ? root : root.$defs![node.$ref.slice('#/$defs/'.length)]!
    if (!seen.has(node.$ref)) yield* fieldsOf(root, target, path, new Set([...seen, node.$ref]))
    return
  }
  for (const [name, child] of Object.entries(node.properties ?? {})) {
    yield [`${path}.${name}`, child]
    yield* fieldsOf(root, child, `${path}.${name}`, seen)
  }
  const inner = [node.items, node.additionalProperties].filter((n): n is Node => typeof n === 'object')
  for (const child of [...inner, ...(node.anyOf ?? []), ...(node.oneOf ?? []), ...(node.allOf ?? [])])
    yield* fieldsOf(root, child, `${path}[]`, seen)
}

const undescribed = (schema: z.ZodType, io: 'input' | 'output'): string[] =>
  [...fieldsOf(z.toJSONSchema(schema, { io }) as Node)]
    .filter(([, node]) => !node.description)
    .map(([path]) => path)

describe('The catalog', () => {
  it('has names, commands and routes once each', () => {
    unique(
      operations.map((op) => op.name),
      'names',
    )
    unique(
      operations.map((op) => op.cli),
      'commands',
    )
    // `GET /v1/x/{a}` and `GET /v1/x/{b}` are one route.
    unique(
      operations.flatMap((op) =>
        listRoutes(op).map((r) => `${r.method} ${r.path.replaceAll(/\{\w+\}/g, '{}')}`),
      ),
      'routes',
    )
  })

  it('is bound to handlers, one each', () => {
    assert.deepEqual(Object.keys(handlers).sort(), operations.map((op) => op.name).sort())
    for (const op of operations) assert.equal(findOperation(op.name), op)
    assert.equal(findOperation('constructor'), undefined)
  })

  it('finds an undescribed field wherever it hides', () => {
    // The walk below proves nothing unless it can fail.
    const Hidden = z.object({ bare: z.string() })
    assert.deepEqual(
      undescribed(
        z.object({
          a: z.array(z.union([z.string(), Hidden])).describe('x'),
          b: z.record(z.string(), Hidden).optional().describe('y'),
        }),
        'input',
      ).length,
      2,
    )
    assert.deepEqual(
      undescribed(z.object({ a: Hidden.meta({ id: 'HiddenInTests' }).nullable().describe('x') }), 'output')
        .length,
      1,
    )
  })

  for (const op of operations)
    describe(op.name, () => {
      it('is named and placed as its kind asks', () => {
        assert.match(op.name, /^(workspace|crm|messaging|inbox|webhooks|events|reports|audit)_[a-z_]+$/)
        assert.ok(scopes.includes(op.scope))
        assert.ok((apiVersions as readonly string[]).includes(op.since))
        assert.match(op.summary, /^[A-Z].*[^.]$/s)
        assert.ok(op.routes.length > 0)
        assert.ok(op.description === undefined || op.description.endsWith('.'), 'a description is sentences')
        for (const { method } of listRoutes(op)) if (method === 'GET') assert.equal(op.scope, 'mcp:read')
        assert.equal(op.dryRun === true, op.scope !== 'mcp:read')
      })

      it('has fields that each travel in one place of every route', () => {
        const reached = new Set<string>()
        for (const route of listRoutes(op)) {
          const all = [...route.pathFields, ...route.queryFields, ...route.bodyFields]
          unique(all, `fields of ${route.method} ${route.path}`)
          for (const field of all) {
            assert.ok(
              Object.hasOwn(getInputSchema(op).shape, field),
              `${route.path} speaks of ${field}, which is no field`,
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
          'names that every operation has',
        )
        const onlyOps = Object.keys(op.input.shape).filter((field) => !reached.has(field))
        assert.deepEqual(onlyOps, [], 'no route carries these fields')
      })

      it('has examples that hold', () => {
        assert.ok(op.examples.length > 0)
        for (const { title, input, output } of op.examples) {
          assert.ok(title.length > 3 && !title.endsWith('.'))
          getInputSchema(op).parse(input)
          getOutputSchema(op).strict().parse(output)
          // Nested objects are as whole as their schema says: nothing is dropped in parsing.
          assert.deepEqual(
            JSON.parse(JSON.stringify(getOutputSchema(op).parse(output))),
            JSON.parse(JSON.stringify(output)),
          )
        }
      })

      it('describes every field, however deep', () => {
        assert.deepEqual(undescribed(getInputSchema(op), 'input'), [])
        assert.deepEqual(undescribed(getOutputSchema(op), 'output'), [])
      })

      it('lists the errors that its kind can answer, and no common ones', () => {
        unique(op.errors, 'errors')
        for (const code of op.errors) {
          assert.ok(Object.hasOwn(errors, code))
          assert.ok(!commonErrors.includes(code), `${code} is common to all`)
        }
        assert.equal(op.errors.includes('confirm_required'), op.confirm !== undefined)
        const ids = listRoutes(op).flatMap((route) => route.pathFields)
        if (ids.length > 0) assert.ok(op.errors.includes('not_found'), 'an id in the path may name nothing')
      })

      it('emits events that there are', () => {
        unique(op.emits ?? [], 'events')
        for (const type of op.emits ?? []) assert.ok(Object.hasOwn(eventTypes, type), type)
      })
    })
})

/** Events with no operation behind them: they come from the provider, or from the delivery worker. */
const fromElsewhere = [
  'conversation.created/1',
  'message.',
  'template.status_changed/1',
  'channel.status_changed/1',
  'webhook.endpoint_',
]

describe('Event types', () => {
  for (const [id, type] of Object.entries(eventTypes))
    it(`${id} is described, sampled and caused by something`, () => {
      assert.match(id, /^[a-z_]+(\.[a-z_]+)+\/\d+$/)
      assert.match(type.description, /^[A-Z].*\.$/)
      assert.deepEqual(type.data.strict().parse(type.sample), type.sample)
      assert.deepEqual(undescribed(type.data, 'output'), [])
      const caused = operations.some((op) => (op.emits as readonly string[] | undefined)?.includes(id))
      assert.ok(
        caused || fromElsewhere.some((start) => id.startsWith(start)),
        `${id} is emitted by no operation`,
      )
    })
})

describe('Error codes', () => {
  it('say what they mean and how to mend them', () => {
    for (const [code, { status, title, description, fix }] of Object.entries(errors)) {
      assert.match(code, /^[a-z_]+$/)
      assert.ok(status >= 400 && status < 600)
      assert.ok(title.length > 3 && description.endsWith('.') && fix.endsWith('.'), code)
    }
    unique(
      Object.values(errors).map((e) => e.title),
      'titles',
    )
  })

  it('are all answered by some operation, or by all', () => {
    const used = new Set<string>([...commonErrors, ...operations.flatMap((op) => op.errors)])
    // Codes of operations to come are listed with their operation.
    const waiting = ['service_unconfigured', 'window_closed']
    assert.deepEqual(
      Object.keys(errors).filter((code) => !used.has(code) && !waiting.includes(code)),
      [],
    )
  })
})
