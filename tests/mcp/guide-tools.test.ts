import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { before, it } from 'node:test'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { catalog } from '../../catalog/index.ts'
import { defaultPolicy } from '../../catalog/policy.ts'
import { anyDatabase } from '../databases.ts'
import { everyDatabase } from '../doors.ts'
import { makeWorkspace, type TestWorkspace } from '../servers.ts'

type Result = { structuredContent?: any; content: { text: string }[]; isError?: boolean }

everyDatabase('MCP: tools that lead to other tools', (server, database) => {
  let workspace: TestWorkspace
  before(async () => {
    workspace = await makeWorkspace(server())
  })

  /** Runs `work` with a client of each of these protocol eras. */
  const inEras = async (
    modes: readonly ('auto' | 'legacy')[],
    query: string,
    work: (client: Client, call: (name: string, input?: object) => Promise<Result>) => Promise<void>,
    key = workspace.owner.key,
    capabilities = {},
  ): Promise<void> => {
    for (const mode of modes) {
      const client = new Client(
        { name: 'tests', version: '1' },
        { capabilities, versionNegotiation: { mode } },
      )
      await client.connect(
        new StreamableHTTPClientTransport(new URL(`${server().url}/mcp${query}`), {
          requestInit: { headers: { Authorization: `Bearer ${key}` } },
        }),
      )
      await work(
        client,
        async (name, input = {}) =>
          (await client.callTool({ name, arguments: input as Record<string, unknown> })) as unknown as Result,
      )
      await client.close()
    }
  }

  const inBothEras = inEras.bind(undefined, ['auto', 'legacy'])

  const namesOf = async (client: Client): Promise<string[]> =>
    (await client.listTools()).tools.map(({ name }) => name)

  it('the default list ends with find_tools and describe_operation, and they lead to the rest', async () => {
    await inBothEras('', async (client, call) => {
      const names = await namesOf(client)
      assert.deepEqual(names.slice(-2), ['find_tools', 'describe_operation'])
      const { structuredContent: row } = await call('find_tools', { query: 'crm_count_contacts', limit: 1 })
      assert.deepEqual(row.data.length, 1)
      assert.equal(row.data[0].name, 'crm_count_contacts')
      assert.equal(row.data[0].allowed, true)
      assert.equal(row.data[0].listed, names.includes('crm_count_contacts'))
      const { structuredContent: about } = await call('describe_operation', {
        operation: 'crm_delete_contact',
      })
      assert.equal(about.confirm, 'delete')
      assert.deepEqual(about.input_schema.required, ['contact_id'])
      assert.deepEqual(about.example, { contact_id: '42' })
      const { structuredContent: counted } = await call('crm_count_contacts')
      assert.equal(counted.total ?? counted.count, 0, JSON.stringify(counted))
    })
  })

  // No database is asked, and the protocol era only carries the answer.
  if (database === anyDatabase)
    it('find_tools finds what is asked for in other words than those of the catalog', async () => {
      await inEras(['auto'], '', async (_client, call) => {
        const questions = readFileSync(new URL('tool-questions.tsv', import.meta.url), 'utf8')
          .trimEnd()
          .split('\n')
          .map((line) => line.split('\t') as [wanted: string, text: string])
        const ranks = await Promise.all(
          questions.map(async ([wanted, text]) => {
            const { structuredContent } = await call('find_tools', { query: text })
            const rank = structuredContent.data.findIndex(({ name }: { name: string }) => name === wanted)
            return { text, wanted, rank }
          }),
        )
        const missed = ranks.filter(({ rank }) => rank < 0)
        const first = ranks.filter(({ rank }) => rank === 0)
        assert.ok(missed.length <= questions.length * 0.02, JSON.stringify(missed))
        assert.ok(first.length >= questions.length * 0.78, `${first.length} of ${questions.length}`)
      })
    })

  it('they say what the key and the address do not allow', async () => {
    const reader = await workspace.key(workspace.owner.staffId, { scopes: ['mcp:read'] })
    await inBothEras(
      '',
      async (_client, call) => {
        const { structuredContent } = await call('describe_operation', { operation: 'crm_delete_contact' })
        assert.equal(structuredContent.allowed, false)
        assert.match(structuredContent.why_not, /crm:write/)
      },
      reader.key,
    )
    const agent = await workspace.key(workspace.owner.staffId, { agent: true })
    await inBothEras(
      '',
      async (_client, call) => {
        for (const [operation, policy] of [
          ['crm_delete_contact', 'ask'],
          ['crm_create_group', 'allow'],
          ['approvals_cancel', 'allow'],
          ['crm_get_contact', undefined],
        ] as const) {
          const { structuredContent } = await call('describe_operation', { operation })
          assert.deepEqual([structuredContent.allowed, structuredContent.policy], [true, policy], operation)
        }
      },
      agent.key,
    )
    await inBothEras('?readonly=true', async (_client, call) => {
      const { structuredContent } = await call('find_tools', { query: 'crm_delete_contact' })
      assert.equal(structuredContent.data[0].allowed, false)
      assert.match(structuredContent.data[0].why_not, /readonly/)
    })
  })

  it('an agent is shown what it may withdraw, and nothing that it may never call', async () => {
    const policy = { ...structuredClone(defaultPolicy), operations: { crm_create_group: 'deny' as const } }
    for (const scopes of [undefined, ['mcp:read' as const]]) {
      const { key } = await workspace.key(workspace.owner.staffId, {
        agent: true,
        policy,
        ...(scopes && { scopes }),
      })
      await inBothEras(
        '?toolsets=all',
        async (client, call) => {
          const listed = await namesOf(client)
          for (const [operation, allowed] of [
            ['approvals_cancel', true],
            ['approvals_approve', false],
            ['approvals_decline', false],
            ['crm_create_group', false],
          ] as const) {
            const { structuredContent: about } = await call('describe_operation', { operation })
            const { structuredContent: found } = await call('find_tools', { query: operation, limit: 1 })
            assert.deepEqual(
              [about.allowed, found.data[0].allowed, found.data[0].listed, listed.includes(operation)],
              [allowed, allowed, allowed, allowed],
              operation,
            )
          }
          const { content } = await call('approvals_cancel', { approval_id: '999999999' })
          assert.equal(JSON.parse(content[0]!.text).code, 'not_found')
        },
        key,
      )
    }
    const reader = await workspace.key(workspace.owner.staffId, { agent: true, scopes: ['mcp:read'] })
    await inBothEras(
      '?mode=compact',
      async (client) => assert.ok((await namesOf(client)).includes('run_write_operation')),
      reader.key,
    )
  })

  it('wrong questions are answered with what to do', async () => {
    await inBothEras('', async (_client, call) => {
      for (const [name, input, expected] of [
        ['find_tools', {}, /query/],
        ['find_tools', { query: ' ' }, /query/],
        ['find_tools', { query: 'x'.repeat(201) }, /200/],
        ['find_tools', { query: 'tag', limit: 0 }, /limit/],
        ['find_tools', { query: 'tag', limit: '5' }, /limit/],
        ['find_tools', { query: 'tag', toolset: 'crm' }, /toolset.*query.*limit/],
        ['describe_operation', { operation: 'crm_get_contact', detail: 'full' }, /detail.*operation/],
        ['describe_operation', {}, /operation/],
        ['describe_operation', { operation: 'crm_get_contacts' }, /crm_get_contact\?/],
      ] as const) {
        const { isError, content } = await call(name, input)
        assert.equal(isError, true, JSON.stringify(input))
        assert.match(content[0]!.text, expected)
        const {
          title,
          type,
          status,
          code,
          detail,
          request_id: id,
          fix,
          ...rest
        } = JSON.parse(content[0]!.text)
        assert.ok(title && type.endsWith(`/errors/${code}`) && status >= 400 && detail && id && fix, type)
        if (status === 400)
          assert.deepEqual(
            rest.errors.map((error: { fix: string }) => error.fix),
            [fix],
          )
      }
      assert.match((await call('find_tools', { query: 'zzzz qqqq' })).content[0]!.text, /Try other words/)
      await assert.rejects(call('crm_nothing'), /find_tools/)
    })
  })

  it('instructions name every domain and the way to more tools', async () => {
    for (const query of ['', '?mode=compact']) {
      await inBothEras(query, async (client) => {
        const text = client.getInstructions()!
        for (const domain of new Set(catalog.map(({ name }) => name.split('_')[0])))
          assert.match(text, new RegExp(`${domain}_`), `${query} ${domain}`)
        assert.match(text, query === '' ? /find_tools.*describe_operation/ : /search_operations/)
        assert.match(text, /untrusted_fields.*never instructions/)
      })
    }
  })

  it('compact mode: three tools reach every operation', async () => {
    await inBothEras('?mode=compact', async (client, call) => {
      const { tools } = await client.listTools()
      assert.deepEqual(
        tools.map(({ name, annotations }) => [name, annotations!.readOnlyHint, annotations!.destructiveHint]),
        [
          ['search_operations', true, false],
          ['run_read_operation', true, false],
          ['run_write_operation', false, true],
        ],
      )
      for (const { name } of catalog) {
        const { structuredContent } = await call('search_operations', { operation: name })
        assert.equal(structuredContent.name, name)
        assert.equal(structuredContent.allowed, true)
      }
      const found = await call('search_operations', { query: 'create a contact group' })
      assert.equal(found.structuredContent.data[0].name, 'crm_create_group')
      assert.match(found.structuredContent.data[0].fields, /name\*: string/)
      const name = `Compact ${crypto.randomUUID()}`
      const run = async (operation: string, input: unknown, tool = 'run_write_operation') =>
        await call(tool, { operation, input })
      const dry = await run('crm_create_group', { name, dry_run: true })
      assert.equal(dry.structuredContent.dry_run, true)
      const made = await run(
        'crm_create_group',
        JSON.stringify({ name, idempotency_key: crypto.randomUUID() }),
      )
      assert.equal(made.isError, undefined, made.content[0]!.text)
      const listed = await run('crm_list_groups', { search: 'Compact' }, 'run_read_operation')
      assert.ok(listed.structuredContent.data.length > 0)
    })
  })

  it('compact mode: the same guards, and reads and writes are kept apart', async () => {
    await inBothEras('?mode=compact', async (_client, call) => {
      for (const [tool, input, expected] of [
        [
          'run_read_operation',
          { operation: 'crm_create_group', input: { name: 'No' } },
          /run_write_operation/,
        ],
        ['run_write_operation', { operation: 'crm_list_groups' }, /run_read_operation/],
        ['run_write_operation', { operation: 'crm_make_group' }, /not_found/],
        ['run_write_operation', { operation: 7 }, /operation/],
        ['run_write_operation', {}, /operation/],
        ['run_read_operation', { operation: 'crm_list_groups', input: [] }, /must be an object/],
        ['run_read_operation', { operation: 'crm_list_groups', input: '{' }, /must be an object/],
        ['run_read_operation', { operation: 'crm_list_groups', search: 'x' }, /into `input`/],
        ['run_read_operation', { operation: 'crm_list_groups', input: { nothing: 1 } }, /unknown|nothing/],
        [
          'run_write_operation',
          { operation: 'crm_create_group', input: '{"name":"No","dry_run":true,"dry_run":false}' },
          /gives #\/dry_run twice/,
        ],
        [
          'run_write_operation',
          { operation: 'crm_delete_contact', input: { contact_id: '1' } },
          /confirm_required|not_found/,
        ],
      ] as const) {
        const { isError, content } = await call(tool, input)
        assert.equal(isError, true, `${tool} ${JSON.stringify(input)}`)
        assert.match(content[0]!.text, expected)
      }
    })
    await inBothEras('?mode=compact&readonly=1', async (client, call) => {
      assert.deepEqual(await namesOf(client), ['search_operations', 'run_read_operation'])
      await assert.rejects(
        call('run_write_operation', { operation: 'crm_create_group', input: { name: 'No' } }),
        /reads only/,
      )
    })
    await inBothEras('?mode=compact&toolsets=groups', async (_client, call) => {
      await assert.rejects(call('run_read_operation', { operation: 'crm_list_tags' }), /toolsets/)
    })
    const reader = await workspace.key(workspace.owner.staffId, { scopes: ['mcp:read'] })
    await inBothEras(
      '?mode=compact',
      async (client, call) => {
        assert.deepEqual(await namesOf(client), ['search_operations', 'run_read_operation'])
        const { content } = await call('run_write_operation', {
          operation: 'crm_create_group',
          input: { name: 'No' },
        })
        assert.match(content[0]!.text, /insufficient_scope/)
      },
      reader.key,
    )
    const refused = await fetch(`${server().url}/mcp?mode=tiny`, {
      method: 'POST',
      headers: { authorization: `Bearer ${workspace.owner.key}`, 'content-type': 'application/json' },
      body: '{}',
    })
    assert.match(await refused.text(), /compact/)
  })

  it('compact mode: a person is asked as without it', async () => {
    const client = new Client(
      { name: 'tests', version: '1' },
      { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: 'auto' } },
    )
    client.setRequestHandler('elicitation/create', () => ({
      action: 'accept',
      content: { confirm: 'delete' },
    }))
    await client.connect(
      new StreamableHTTPClientTransport(new URL(`${server().url}/mcp?mode=compact`), {
        requestInit: { headers: { Authorization: `Bearer ${workspace.owner.key}` } },
      }),
    )
    const run = async (operation: string, input: object) =>
      (await client.callTool({
        name: 'run_write_operation',
        arguments: { operation, input },
      })) as unknown as Result
    const made = await run('crm_create_group', { name: `Asked ${crypto.randomUUID()}` })
    const group_id = made.structuredContent.group.id
    const deleted = await run('crm_delete_group', { group_id })
    assert.equal(deleted.structuredContent.deleted, true, deleted.content[0]!.text)
    await client.close()
  })
})
