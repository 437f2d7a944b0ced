import assert from 'node:assert/strict'
import { it } from 'node:test'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { doAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { makeWorkspace } from '../servers.ts'

type Answer = { action: 'accept'; content: { confirm: string } } | { action: 'decline' }
type Result = { structuredContent?: any; content: { text: string }[]; isError?: boolean }

everyDatabase('MCP over HTTP: clients of 2025 revisions are asked on the stream of their call', (server) => {
  const connect = async (key: string, answers: Answer[], query = '') => {
    const questions: string[] = []
    const client = new Client(
      { name: 'tests', version: '1' },
      { capabilities: { elicitation: {} }, versionNegotiation: { mode: 'legacy' } },
    )
    client.setRequestHandler('elicitation/create', ({ params }) => {
      questions.push(params.message)
      return answers.shift()!
    })
    const transport = new StreamableHTTPClientTransport(new URL(`${server().url}/mcp${query}`), {
      requestInit: { headers: { Authorization: `Bearer ${key}` } },
    })
    await client.connect(transport)
    const call = async (name: string, input: object) =>
      (await client.callTool({ name, arguments: input as Record<string, unknown> })) as unknown as Result
    return { client, transport, questions, call }
  }

  const makeGroup = async (key: string): Promise<string> =>
    (
      (await doAs(server(), key)('crm_create_group', { name: crypto.randomUUID() })) as {
        group: { id: string }
      }
    ).group.id

  it('a yes runs the call, a no does not, and both are asked once', async () => {
    const { owner } = await makeWorkspace(server())
    for (const query of ['', '?mode=compact']) {
      const group_id = await makeGroup(owner.key)
      const { client, questions, call } = await connect(
        owner.key,
        [{ action: 'decline' }, { action: 'accept', content: { confirm: 'delete' } }],
        query,
      )
      assert.equal(client.getNegotiatedProtocolVersion(), '2025-11-25')
      const remove = (more: object = {}) =>
        query === ''
          ? call('crm_delete_group', { group_id, ...more })
          : call('run_write_operation', { operation: 'crm_delete_group', input: { group_id, ...more } })
      const declined = await remove({ idempotency_key: crypto.randomUUID() })
      assert.equal(declined.isError, true)
      assert.match(declined.content[0]!.text, /declined|confirm_required/)
      const done = await remove({ idempotency_key: crypto.randomUUID() })
      assert.equal(done.structuredContent?.deleted, true, done.content[0]!.text)
      assert.equal(questions.length, 2)
      assert.equal((await remove({ dry_run: true })).isError, true, 'it is gone')
      await client.close()
    }
  })

  it('a session is sealed to its key; without one nobody is asked', async () => {
    const workspace = await makeWorkspace(server())
    const other = await workspace.key(workspace.owner.staffId)
    const { client, transport } = await connect(workspace.owner.key, [])
    const session = transport.sessionId!
    assert.ok(session.length > 20)
    const group_id = await makeGroup(workspace.owner.key)
    const call = async (key: string, headers: Record<string, string>): Promise<string> => {
      const response = await fetch(`${server().url}/mcp`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${key}`,
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          'mcp-protocol-version': '2025-11-25',
          ...headers,
        },
        body: JSON.stringify({
          jsonrpc: '2.0',
          id: 1,
          method: 'tools/call',
          params: { name: 'crm_delete_group', arguments: { group_id } },
        }),
      })
      return await response.text()
    }
    for (const [key, headers] of [
      [other.key, { 'mcp-session-id': session }],
      [workspace.owner.key, { 'mcp-session-id': 'made-up' }],
      [workspace.owner.key, {}],
    ] as const)
      assert.match(await call(key, headers), /confirm_required/)
    await client.close()
  })

  it('only the key that is asked can answer, and who goes away has changed nothing', async () => {
    const workspace = await makeWorkspace(server())
    const other = await workspace.key(workspace.owner.staffId)
    const { client, transport } = await connect(workspace.owner.key, [])
    const group_id = await makeGroup(workspace.owner.key)
    const abort = new AbortController()
    const send = (key: string, body: object) =>
      fetch(`${server().url}/mcp`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${key}`,
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          'mcp-protocol-version': '2025-11-25',
          'mcp-session-id': transport.sessionId!,
        },
        body: JSON.stringify(body),
        signal: abort.signal,
      })
    const stream = await send(workspace.owner.key, {
      jsonrpc: '2.0',
      id: 'call',
      method: 'tools/call',
      params: { name: 'crm_delete_group', arguments: { group_id } },
    })
    const reader = stream.body!.pipeThrough(new TextDecoderStream()).getReader()
    const { value } = await reader.read()
    const question = JSON.parse(/data: (.*)/.exec(value!)![1]!) as { id: string; method: string }
    assert.equal(question.method, 'elicitation/create')
    const yes = {
      jsonrpc: '2.0',
      id: question.id,
      result: { action: 'accept', content: { confirm: 'delete' } },
    }
    assert.equal((await send(other.key, yes)).status, 202)
    const groups = (await doAs(server(), workspace.owner.key)('crm_list_groups', {})) as {
      data: { id: string }[]
    }
    assert.ok(groups.data.some(({ id }) => id === group_id))
    assert.equal((await send(workspace.owner.key, yes)).status, 202)
    let text = ''
    for (let next = await reader.read(); !next.done; next = await reader.read()) text += next.value
    assert.match(text, /"id":"call".*"deleted":true/)
    abort.abort()
    await client.close()
  })

  it('an agent is told how far its call is', async () => {
    const workspace = await makeWorkspace(server())
    const agent = await workspace.key(workspace.owner.staffId, { agent: true, phones: true })
    for (const query of ['', '?mode=compact']) {
      const { client } = await connect(agent.key, [], query)
      const input = { rows: [{ phone: '+15550100001', name: 'Ada' }] }
      const seen: number[] = []
      const { structuredContent } = (await client.callTool(
        query === ''
          ? { name: 'crm_import_contacts', arguments: input }
          : { name: 'run_write_operation', arguments: { operation: 'crm_import_contacts', input } },
        { onprogress: ({ progress }) => void seen.push(progress) },
      )) as Result
      assert.equal(structuredContent.succeeded, 1)
      assert.deepEqual(seen, [0, 1])
      await client.close()
    }
  })

  it(
    'a call that was cancelled does not run after a later yes, and the question is withdrawn',
    { timeout: 20_000 },
    async () => {
      const { owner } = await makeWorkspace(server())
      const { client, transport } = await connect(owner.key, [])
      const group_id = await makeGroup(owner.key)
      const abort = new AbortController()
      const withdrawn = Promise.withResolvers<string | number>()
      client.setRequestHandler('elicitation/create', async (_request, { mcpReq: { id, signal } }) => {
        signal.addEventListener('abort', () => withdrawn.resolve(id))
        abort.abort()
        await withdrawn.promise
        return { action: 'cancel' }
      })
      await assert.rejects(
        client.callTool({ name: 'crm_delete_group', arguments: { group_id } }, { signal: abort.signal }),
      )
      const id = await withdrawn.promise
      const result = { action: 'accept', content: { confirm: 'delete' } }
      await transport.send({ jsonrpc: '2.0', id, result })
      assert.ok(
        await doAs(server(), owner.key)('crm_delete_group', { group_id, dry_run: true }),
        'still there',
      )
      await client.close()
    },
  )
})
