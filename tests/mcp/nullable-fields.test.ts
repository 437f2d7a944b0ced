import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { catalog } from '../../catalog/index.ts'
import type { JsonSchema } from '../../catalog/json-schema.ts'
import { createTool } from '../../mcp/tools.ts'
import { everyDatabase } from '../doors.ts'
import { plantConversation } from '../inbox/conversations.ts'
import { createToolRequest } from '../mcp-request.ts'
import { makeWorkspace } from '../servers.ts'

/** The fields of all tools whose schema takes null, as `tool.field`. */
const nullable = catalog.flatMap((op) =>
  Object.entries(createTool(op).inputSchema.properties)
    .filter(([, schema]) => schema.nullable)
    .map(([field]) => `${op.name}.${field}`),
)

describe('MCP: fields that null clears', () => {
  it('take null in the schema of the tool exactly where the server takes it', () => {
    const taken = catalog.flatMap((op) =>
      Object.entries(op.input.shape)
        .filter(([, exact]) => exact.safeParse(null).success)
        .map(([field]) => `${op.name}.${field}`),
    )
    assert.ok(taken.length > 0)
    assert.deepEqual(nullable.toSorted(), taken.toSorted())
  })

  it('take null in the rows of an import too', () => {
    const { inputSchema } = createTool(catalog.find((op) => op.name === 'crm_import_contacts')!)
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
