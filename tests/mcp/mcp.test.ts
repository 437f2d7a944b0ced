import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { z } from 'zod'
import { catalog } from '../../catalog/index.ts'
import { toInlinedJsonSchema, toJsonSchema } from '../../catalog/json-schema.ts'
import { createTool } from '../../mcp/tools.ts'
import { listOperations, listToolsetNames } from '../../mcp/toolsets.ts'

const tools = catalog.map(createTool)

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

  it('the list depends on the scopes of the key and has the order of the catalog', () => {
    const read = listOperations(catalog, (op) => op.scope === 'mcp:read', {
      toolsets: ['all'],
      readonly: false,
      compact: false,
    }).map((op) => op.name)
    assert.deepEqual(
      read,
      catalog.filter((op) => op.scope === 'mcp:read').map((op) => op.name),
    )
    const all = listOperations(catalog, () => true, { toolsets: ['all'], readonly: false, compact: false })
    assert.deepEqual(all, catalog)
  })

  it('toolsets and readonly narrow the list', () => {
    const groups = listOperations(catalog, () => true, {
      toolsets: ['groups'],
      readonly: false,
      compact: false,
    }).map((op) => op.name)
    assert.deepEqual(
      groups,
      catalog.filter((op) => op.cli.startsWith('groups ')).map((op) => op.name),
    )
    const crm = listOperations(catalog, () => true, {
      toolsets: ['crm', 'channels'],
      readonly: true,
      compact: false,
    })
    assert.ok(
      crm.every(
        (op) => op.scope === 'mcp:read' && (op.name.startsWith('crm_') || op.name === 'workspace_channels'),
      ),
    )
    assert.ok(listToolsetNames(catalog).includes('all'))
  })

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
