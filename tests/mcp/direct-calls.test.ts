import assert from 'node:assert/strict'
import { before, it } from 'node:test'
import { everyDatabase } from '../doors.ts'
import { makeWorkspace } from '../servers.ts'

const MODERN = '2026-07-28'
const META = {
  'io.modelcontextprotocol/protocolVersion': MODERN,
  'io.modelcontextprotocol/clientInfo': { name: 'tests', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
}

type Era = 'modern' | 'legacy'
type Answer = { status: number; type: string; message: any }

everyDatabase('MCP: plain tool calls are answered without the SDK', (server) => {
  let key: string
  before(async () => {
    key = (await makeWorkspace(server())).owner.key
  })

  const send = async (body: unknown, headers: Record<string, string>): Promise<Answer> => {
    const response = await fetch(`${server().url}/mcp`, {
      method: 'POST',
      headers: {
        Authorization: `Bearer ${key}`,
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
        ...headers,
      },
      body: JSON.stringify(body),
    })
    const text = await response.text()
    const json = text.startsWith('{') ? text : text.slice(text.indexOf('data: ') + 6)
    return {
      status: response.status,
      type: response.headers.get('content-type')!,
      message: JSON.parse(json || 'null'),
    }
  }

  const headersOf = (era: Era, name: string): Record<string, string> =>
    era === 'modern'
      ? { 'MCP-Protocol-Version': MODERN, 'Mcp-Method': 'tools/call', 'Mcp-Name': name }
      : { 'MCP-Protocol-Version': '2025-11-25' }

  const call = (era: Era, name: string, input: object, more: object = {}) =>
    send(
      {
        jsonrpc: '2.0',
        id: 'one',
        method: 'tools/call',
        params: { name, arguments: input, ...(era === 'modern' ? { _meta: META } : {}), ...more },
      },
      headersOf(era, name),
    )

  /** What differs between two calls of the same operation. */
  const withoutIds = ({ message }: Answer): unknown =>
    JSON.parse(JSON.stringify(message).replaceAll(/req_[0-9A-Z]{26}|mcp-[0-9a-f-]{36}/g, '…'))

  it('they answer what the SDK answers, in both eras', async () => {
    const created = await call('legacy', 'crm_create_group', { name: 'Direct', idempotency_key: 'direct-01' })
    const { id } = created.message.result.structuredContent
    const calls: [name: string, input: object][] = [
      ['crm_list_groups', {}],
      ['crm_create_group', { name: 'Direct', idempotency_key: 'direct-01' }],
      ['crm_create_group', { name: 'Another', dry_run: true }],
      ['crm_create_group', { name: 7 }],
      ['crm_create_group', { name: 'x', idempotency_key: 'direct-01' }],
      ['crm_get_contact', { contact_id: '999999999' }],
      ['crm_list_tags', { search: '𝕏 \u2028 "quoted" \\' }],
      ['crm_add_contacts_to_group', { group_id: id, contact_ids: [] }],
    ]
    for (const era of ['modern', 'legacy'] as const) {
      for (const [name, input] of calls) {
        const direct = await call(era, name, input)
        // A member that the SDK ignores, and that makes the call unusual.
        const throughSdk = await call(era, name, input, { unusual: true })
        assert.match(direct.type, /^application\/json/)
        if (era === 'legacy') assert.match(throughSdk.type, /^text\/event-stream/)
        assert.equal(direct.status, 200)
        assert.deepEqual(withoutIds(direct), withoutIds(throughSdk), `${era} ${name}`)
      }
    }
  })

  it('what is not a plain call is left to the SDK', async () => {
    const plain = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'crm_list_tags' } }
    const modern = { ...plain, params: { ...plain.params, _meta: META } }
    const good = headersOf('modern', 'crm_list_tags')
    const refused: [body: unknown, headers: Record<string, string>][] = [
      [{ ...plain, jsonrpc: '1.0' }, {}],
      [{ ...plain, id: null }, {}],
      [{ ...plain, id: { a: 1 } }, {}],
      [{ ...plain, params: [] }, {}],
      [plain, { Accept: 'application/json' }],
      [plain, { 'MCP-Protocol-Version': '1999-01-01' }],
      [plain, { 'MCP-Protocol-Version': MODERN }],
      [modern, { ...good, 'Mcp-Name': 'crm_list_groups' }],
      [modern, { ...good, 'Mcp-Method': 'tools/list' }],
      [modern, { 'MCP-Protocol-Version': MODERN }],
      [modern, { ...good, 'MCP-Protocol-Version': '2025-11-25' }],
    ]
    for (const [body, headers] of refused) {
      const { status, message } = await send(body, headers)
      assert.ok(status >= 400 && status < 500, `${status} ${JSON.stringify(body)} ${JSON.stringify(headers)}`)
      assert.ok(message.error.code < 0)
    }
    for (const name of ['no_such_tool', 'crm_list_tags']) {
      const { message } = await call('modern', name, name === 'crm_list_tags' ? (7 as never) : {})
      assert.equal(message.error.code, -32602, JSON.stringify(message))
    }
  })
})
