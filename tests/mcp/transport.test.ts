import assert from 'node:assert/strict'
import { request } from 'node:http'
import { PassThrough } from 'node:stream'
import { text as readText } from 'node:stream/consumers'
import { after, before, describe, it } from 'node:test'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { catalog, findOperation } from '../../catalog/index.ts'
import { bridgeStdio } from '../../mcp/stdio.ts'
import { doAs } from '../calls.ts'
import { createToolRequest } from '../mcp-request.ts'
import { makeWorkspace, startServer, type TestServer } from '../servers.ts'
import { databases } from '../databases.ts'
import { slowClockDown } from '../slow-clock.ts'

describe(`MCP endpoint (${databases[0]})`, () => {
  let server: TestServer
  before(async () => {
    server = await startServer(databases[0]!)
  })
  after(async () => {
    await server.close()
  })

  const connect = async (key: string, era: 'auto' | 'legacy' = 'auto', query = ''): Promise<Client> => {
    const client = new Client({ name: 'tests', version: '1' }, { versionNegotiation: { mode: era } })
    await client.connect(
      new StreamableHTTPClientTransport(new URL(`${server.url}/mcp${query}`), {
        requestInit: { headers: { Authorization: `Bearer ${key}` } },
      }),
    )
    return client
  }

  /** Sends a request with any Host header, which `fetch` does not allow. */
  const post = (
    headers: Record<string, string>,
  ): Promise<{ status: number; headers: Record<string, unknown>; body: any }> =>
    new Promise((resolve, reject) => {
      const outgoing = request(
        `${server.url}/mcp`,
        {
          method: 'POST',
          headers: {
            'content-type': 'application/json',
            accept: 'application/json, text/event-stream',
            ...headers,
          },
        },
        (response) => {
          readText(response).then(
            (text) =>
              resolve({
                status: response.statusCode!,
                headers: response.headers,
                body: text.startsWith('{') ? JSON.parse(text) : text,
              }),
            reject,
          )
        },
      )
      outgoing.on('error', reject)
      outgoing.end(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }))
    })

  for (const [era, version] of [
    ['auto', '2026-07-28'],
    ['legacy', '2025-11-25'],
  ] as const) {
    it(`serves clients of ${version}`, async () => {
      const { owner } = await makeWorkspace(server)
      const client = await connect(owner.key, era, '?toolsets=all')
      assert.equal(client.getNegotiatedProtocolVersion(), version)
      // The client validates structured content against the tool's outputSchema.
      const { tools } = await client.listTools()
      assert.deepEqual(
        tools.map(({ name }) => name),
        catalog.map(({ name }) => name),
      )
      const made = await client.callTool({
        name: 'crm_upsert_contact',
        arguments: { phone: '+15550100042', name: 'Ada' },
      })
      const { contact } = made.structuredContent as { contact: { id: string } }
      const read = await client.callTool({ name: 'crm_get_contact', arguments: { contact_id: contact.id } })
      assert.deepEqual(JSON.parse((read.content as { text: string }[])[0]!.text), read.structuredContent)
      assert.equal((await client.listResources()).resources.length, 4)
      assert.match(JSON.stringify(await client.readResource({ uri: 'wcrm://errors' })), /confirm_required/)
      const { prompts } = await client.listPrompts()
      const prompt = await client.getPrompt({
        name: prompts[0]!.name,
        arguments: { [prompts[0]!.arguments![0]!.name]: 'Ada' },
      })
      assert.match(JSON.stringify(prompt.messages), /Ada/)
      await client.close()
    })
  }

  it('a failed call is a tool error with errors and a fix', async () => {
    const { owner } = await makeWorkspace(server)
    const client = await connect(owner.key)
    const bad = await client.callTool({ name: 'crm_get_contact', arguments: { contact: '42' } })
    const problem = JSON.parse((bad.content as { text: string }[])[0]!.text)
    assert.equal(bad.isError, true)
    assert.equal(problem.code, 'invalid_input')
    assert.ok(problem.fix && problem.errors.every((e: { fix?: string }) => e.fix))
    await assert.rejects(client.callTool({ name: 'crm_nothing', arguments: {} }), /Unknown tool/)
    await client.close()
  })

  it('a tool with a confirm verb runs with dry_run, and the model cannot confirm it', async () => {
    const { owner } = await makeWorkspace(server)
    const client = await connect(owner.key)
    const { structuredContent } = await client.callTool({
      name: 'crm_create_group',
      arguments: { name: 'VIP' },
    })
    const group_id = (structuredContent as { group: { id: string } }).group.id
    const call = async (more: object) =>
      await client.callTool({ name: 'crm_delete_group', arguments: { group_id, ...more } })
    const refused = await call({})
    const { text } = (refused.content as { text: string }[])[0]!
    assert.match(text, /confirm_required.*consent of a person/)
    assert.doesNotMatch(text, /Api-Confirm/, 'a tool call has no headers')
    assert.equal((await call({ confirm: 'delete' })).isError, true)
    assert.deepEqual((await call({ dry_run: true })).structuredContent, {
      id: group_id,
      deleted: true,
      saved_filters: [],
      dry_run: true,
    })
    await client.close()
  })

  it('elicitation: the person confirms after a dry run', async () => {
    const { owner } = await makeWorkspace(server)
    const client = new Client(
      { name: 'tests', version: '1' },
      { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: 'auto' } },
    )
    const questions: string[] = []
    const answers: ({ action: 'accept'; content: { confirm: string } } | { action: 'decline' })[] = []
    client.setRequestHandler('elicitation/create', ({ params }) => {
      questions.push(params.message)
      return answers.shift()!
    })
    await client.connect(
      new StreamableHTTPClientTransport(new URL(`${server.url}/mcp?toolsets=all`), {
        requestInit: { headers: { Authorization: `Bearer ${owner.key}` } },
      }),
    )
    const { structuredContent } = await client.callTool({
      name: 'crm_create_group',
      arguments: { name: 'VIP' },
    })
    const group_id = (structuredContent as { group: { id: string } }).group.id
    const call = async (id: string) =>
      await client.callTool({ name: 'crm_delete_group', arguments: { group_id: id } })
    const codeOf = ({ content }: Awaited<ReturnType<typeof call>>) =>
      JSON.parse((content as { text: string }[])[0]!.text).code
    assert.equal(codeOf(await call('999999999')), 'not_found', 'no question about a call that would fail')
    assert.equal(questions.length, 0)
    answers.push({ action: 'decline' })
    const declined = await call(group_id)
    assert.equal(codeOf(declined), 'declined')
    assert.doesNotMatch(JSON.stringify(declined.content), /confirm|command line|Api-/)
    answers.push({ action: 'accept', content: { confirm: 'delete' } })
    assert.deepEqual((await call(group_id)).structuredContent, {
      id: group_id,
      deleted: true,
      saved_filters: [],
    })
    assert.equal(questions.length, 2)
    assert.deepEqual(questions[0]!.split('\n'), [
      'Delete a contact group; its contacts stay',
      `Group: VIP, 0 contacts, id ${group_id}`,
      'Dry run: no errors; deleted true',
    ])
    await client.close()
  })

  it('elicitation: a confirmation is bound to its call', async () => {
    const workspace = await makeWorkspace(server)
    const { owner } = workspace
    const group = async (name: string): Promise<string> =>
      ((await doAs(server, owner.key)('crm_create_group', { name })) as { group: { id: string } }).group.id
    const [one, other] = [await group('One'), await group('Other')]
    const call = async (
      group_id: string,
      more: Record<string, unknown> = {},
      key = owner.key,
    ): Promise<any> => {
      const toolRequest = createToolRequest(
        'crm_delete_group',
        { group_id },
        {
          key,
          capabilities: { elicitation: {} },
          params: more,
        },
      )
      const response = await fetch(`${server.url}/mcp`, toolRequest)
      return (JSON.parse(await response.text()) as { result: unknown }).result
    }
    const question = await call(one)
    assert.equal(question.resultType, 'input_required')
    const yes = { inputResponses: { confirm: { action: 'accept', content: { confirm: 'delete' } } } }
    for (const state of [{ requestState: question.requestState }, { requestState: 'made up' }, {}]) {
      assert.equal((await call(other, { ...yes, ...state })).resultType, 'input_required', 'asked again')
    }
    const { key } = await workspace.key(owner.staffId)
    const stolen = await call(one, { ...yes, requestState: question.requestState }, key)
    assert.equal(stolen.resultType, 'input_required', 'another key asks its own person')
    const wrong = {
      inputResponses: { confirm: { action: 'accept', content: { confirm: 'send' } } },
      requestState: question.requestState,
    }
    const again = await call(one, wrong)
    assert.equal(again.resultType, 'input_required', 'that is no answer')
    const refusedTwice = await call(one, { ...wrong, requestState: again.requestState })
    assert.equal(JSON.parse(refusedTwice.content[0].text).code, 'confirm_required', 'asked once more')
    const burned = await call(other)
    const no = { inputResponses: { confirm: { action: 'decline' } }, requestState: burned.requestState }
    for (const answer of [no, { ...yes, requestState: burned.requestState }]) {
      const refused = await call(other, answer)
      assert.equal(JSON.parse(refused.content[0].text).code, 'declined', 'a no is final')
    }
    const groups = (await doAs(server, owner.key)('crm_list_groups')) as { data: { id: string }[] }
    assert.ok(groups.data.some(({ id }) => id === other))
    assert.deepEqual((await call(one, { ...yes, requestState: question.requestState })).structuredContent, {
      id: one,
      deleted: true,
      saved_filters: [],
    })
    assert.deepEqual(
      (await call(one, { ...yes, requestState: question.requestState })).structuredContent,
      { id: one, deleted: true, saved_filters: [] },
      'a repeated answer is the same call',
    )
  })

  it('elicitation: an answer after the time for it is asked again', async (test) => {
    const { owner } = await makeWorkspace(server)
    const { group } = await doAs(server, owner.key)('crm_create_group', { name: 'Late' })
    const call = async (params: Record<string, unknown> = {}): Promise<any> => {
      const options = { key: owner.key, capabilities: { elicitation: {} }, params }
      const response = await fetch(
        `${server.url}/mcp`,
        createToolRequest('crm_delete_group', { group_id: group.id }, options),
      )
      return ((await response.json()) as { result: unknown }).result
    }
    const yes = { inputResponses: { confirm: { action: 'accept', content: { confirm: 'delete' } } } }
    slowClockDown(test)
    const { requestState: early } = await call()
    // By the clock of the database, two hours have passed.
    await server.app.jobs.job('server-clock').runOnce()
    const { resultType, requestState } = await call({ ...yes, requestState: early })
    assert.equal(resultType, 'input_required')
    assert.equal((await call({ ...yes, requestState })).structuredContent.deleted, true)
  })

  it('calls with the same idempotency_key run once', async () => {
    const { owner } = await makeWorkspace(server)
    const client = await connect(owner.key)
    const call = async () =>
      await client.callTool({
        name: 'crm_create_custom_field',
        arguments: { key: 'plan', type: 'text', idempotency_key: 'retry-0001' },
      })
    const [first, second] = [await call(), await call()]
    assert.deepEqual(second.structuredContent, first.structuredContent)
    assert.equal(second._meta!['wcrm/idempotent_replayed'], true)
    await client.close()
  })

  it("tools/list contains only the tools of the key's scopes", async () => {
    const workspace = await makeWorkspace(server)
    const reader = await workspace.key(workspace.owner.staffId, { scopes: ['mcp:read'] })
    const client = await connect(reader.key, 'auto', '?toolsets=all')
    const names = (await client.listTools()).tools.map(({ name }) => name)
    assert.deepEqual(
      names,
      catalog.filter((op) => op.scope === 'mcp:read').map(({ name }) => name),
    )
    const refused = await client.callTool({ name: 'crm_create_group', arguments: { name: 'VIP' } })
    assert.match((refused.content as { text: string }[])[0]!.text, /insufficient_scope/)
    await client.close()
  })

  it('?readonly and ?toolsets restrict the tools', async () => {
    const { owner } = await makeWorkspace(server)
    const readonly = await connect(owner.key, 'auto', '?readonly=true&toolsets=contacts,groups')
    const { tools } = await readonly.listTools()
    assert.ok(tools.every(({ annotations }) => annotations!.readOnlyHint))
    assert.deepEqual(
      tools.map(({ name }) => name).filter((name) => findOperation(name)),
      catalog
        .filter(({ scope, cli }) => scope === 'mcp:read' && /^(contacts|groups) /.test(cli))
        .map(({ name }) => name),
    )
    await assert.rejects(
      readonly.callTool({ name: 'crm_create_group', arguments: { name: 'VIP' } }),
      /reads only/,
    )
    await assert.rejects(readonly.callTool({ name: 'crm_list_tags', arguments: {} }), /toolsets=all/)
    await assert.rejects(connect(owner.key, 'auto', '?toolsets='), /toolsets is empty/)
    const compact = await connect(owner.key, 'auto', '?mode=compact')
    await assert.rejects(compact.callTool({ name: 'no_such_tool', arguments: {} }), /Call search_operations/)
    const wrong = { name: 'x', dry_run: true, reason: 5 }
    const { content } = await (
      await connect(owner.key)
    ).callTool({ name: 'crm_create_group', arguments: wrong })
    assert.match(JSON.stringify(content), /reason must be a text/)
    await readonly.close()
  })

  it('any value of readonly but false means reads only, in the query and in the header', async () => {
    const { owner } = await makeWorkspace(server)
    const call = async (query: string, header?: string): Promise<string> => {
      const response = await fetch(`${server.url}/mcp${query}`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${owner.key}`,
          accept: 'application/json, text/event-stream',
          'content-type': 'application/json',
          ...(header === undefined ? {} : { 'x-mcp-readonly': header }),
        },
        body: JSON.stringify({
          jsonrpc: '2.0',
          id: 1,
          method: 'tools/call',
          params: { name: 'crm_create_group', arguments: { name: `${query} ${header}`, dry_run: true } },
        }),
      })
      return await response.text()
    }
    for (const value of ['true', 'TRUE', '1', 'yes', '', 'null', 'no', 'true&readonly=false'])
      assert.match(await call(`?readonly=${value}`), /reads only/, value)
    for (const header of ['true', '1', '', 'off'])
      assert.match(await call('?readonly=false', header), /reads only/, header)
    for (const [query, header] of [[''], ['?readonly=false'], ['', 'false'], ['?readonly=False', 'FALSE']])
      assert.doesNotMatch(await call(query!, header), /reads only|error/, `${query} ${header}`)
  })

  it('the newer revision has no initialize', async () => {
    const { owner } = await makeWorkspace(server)
    const { method, headers, body } = createToolRequest('', {}, { key: owner.key })
    const response = await fetch(`${server.url}/mcp`, {
      method,
      headers: { ...headers, 'Mcp-Method': 'initialize' },
      body: JSON.stringify({ ...JSON.parse(body), method: 'initialize' }),
    })
    const { error } = (await response.json()) as { error: { code: number } }
    assert.deepEqual([response.status, error.code], [404, -32_601])
  })

  it('a key is required, and foreign hosts and origins are refused', async () => {
    const { owner } = await makeWorkspace(server)
    const key = { authorization: `Bearer ${owner.key}` }
    const without = await post({})
    assert.deepEqual([without.status, without.body.code], [401, 'unauthenticated'])
    assert.match(String(without.headers['www-authenticate']), /^Bearer/)
    assert.equal((await post({ ...key, host: 'evil.example' })).status, 403)
    assert.equal((await post({ ...key, origin: 'https://evil.example' })).status, 403)
    assert.equal((await post({ ...key, origin: 'null' })).status, 403)
    assert.equal((await post({ ...key, host: 'localhost:1', origin: 'http://localhost:6274' })).status, 200)
  })

  it('the stdio bridge reaches the endpoint', async () => {
    const { owner } = await makeWorkspace(server)
    const [input, output] = [new PassThrough(), new PassThrough()]
    const done = bridgeStdio({ url: `${server.url}/mcp`, apiKey: owner.key, input, output })
    input.end(
      `${JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: 'workspace_whoami', arguments: {} },
      })}\n`,
    )
    await done
    const answer = JSON.parse((await output.end().toArray()).join(''))
    assert.equal(answer.result.structuredContent.workspace.name, 'Test')
  })
})
