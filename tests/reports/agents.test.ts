import assert from 'node:assert/strict'
import { it } from 'node:test'
import { callAs, doAs } from '../calls.ts'
import { everyDatabase, everyDoor, type Scene } from '../doors.ts'
import { plantConversation } from '../inbox/conversations.ts'
import { createSandboxDriver, generatePhone } from '../messaging/fixtures.ts'
import { autonomous, makeWorkspace, type TestKey, type TestServer, type TestWorkspace } from '../servers.ts'

const SUMMARY = 'reports_workspace_summary'
let clock = '2026-10-07T12:00:00.000Z'
const options = { now: () => clock }
const at = (time: string): string => `2026-10-07T${time}.000Z`

/** Creates a staff member with a key of an AI agent and one of a person. */
const hireAgent = async (workspace: TestWorkspace): Promise<{ agent: TestKey; self: TestKey }> => {
  const agent = await workspace.staff({ name: 'Bot', role: 'agent' }, { agent: true, policy: autonomous })
  return { agent, self: await workspace.key(agent.staffId) }
}

const write = async ({ server, workspace }: Pick<Scene, 'server' | 'workspace'>): Promise<string> => {
  const phone = generatePhone()
  await createSandboxDriver(server, workspace).say({ from: `+${phone}`, name: 'Ada', text: 'Hello' })
  const { data } = await doAs(server, workspace.owner.key)('inbox_search_conversations', { query: phone })
  return data[0].id
}

const reply = async (call: Scene['call'], id: string): Promise<string> => {
  const input = { conversation_id: id, text: 'Hello' }
  const { status, body } = await call('messaging_send_reply', input, { confirm: 'send' })
  assert.equal(status, 201, JSON.stringify(body))
  return body.message.id
}

const agentsOf = async (
  call: Scene['call'],
  input: Record<string, unknown> = { preset: 'today' },
): Promise<[Record<string, number | null>, string[]]> => {
  const { agents, unavailable } = (await call(SUMMARY, input)).body
  return [
    agents,
    unavailable.flatMap(({ metric, reason }: { metric: string; reason: string }) =>
      metric.startsWith('agents.') ? [`${metric}: ${reason}`] : [],
    ),
  ]
}

everyDoor(
  'AI agents in the summary',
  (test) => {
    test('sessions are those of the key that acted, not of its owner', async ({
      server,
      workspace,
      call,
    }) => {
      clock = at('09:00:00')
      const { agent, self } = await hireAgent(workspace)
      const asAgent = callAs(server, agent.key)
      const none = { sessions: 0, handoffs: 0, resolution_rate: null }
      assert.deepEqual(await agentsOf(call), [
        none,
        ['agents.resolution_rate: No AI agent began a session in these days.'],
      ])

      // Resolved: the agent replies twice and closes.
      const resolved = await write({ server, workspace })
      await reply(asAgent, resolved)
      await reply(asAgent, resolved)
      await asAgent('inbox_close_conversation', { conversation_id: resolved })
      assert.deepEqual(await agentsOf(call), [{ sessions: 1, handoffs: 0, resolution_rate: 1 }, []])

      // The same staff member with a key of their own is a person, and takes over.
      const taken = await write({ server, workspace })
      await reply(asAgent, taken)
      assert.deepEqual(await agentsOf(call), [{ sessions: 2, handoffs: 0, resolution_rate: 0.5 }, []])
      await reply(callAs(server, self.key), taken)
      assert.deepEqual((await agentsOf(call))[0], { sessions: 2, handoffs: 1, resolution_rate: 0.5 })

      // What people do alone is no session, and neither is a note of the agent.
      const people = await write({ server, workspace })
      await reply(callAs(server, self.key), people)
      await asAgent('inbox_add_note', { conversation_id: people, text: 'Ask for the number.' })
      assert.equal((await agentsOf(call))[0]['sessions'], 2)
      assert.deepEqual((await agentsOf(call, { preset: 'yesterday' }))[0], none)
    })

    test('an assignment to others hands over, and one to the agent itself does not', async ({
      server,
      workspace,
      call,
    }) => {
      clock = at('09:00:00')
      const { agent } = await hireAgent(workspace)
      const asAgent = callAs(server, agent.key)
      const id = await write({ server, workspace })
      const assign = async (staffId: string): Promise<void> => {
        const input = { conversation_id: id, staff_id: staffId }
        assert.equal((await asAgent('inbox_assign_conversation', input)).status, 200)
      }
      await assign(agent.staffId)
      assert.deepEqual((await agentsOf(call))[0], { sessions: 1, handoffs: 0, resolution_rate: 0 })
      await assign(workspace.owner.staffId)
      assert.deepEqual((await agentsOf(call))[0], { sessions: 1, handoffs: 1, resolution_rate: 0 })
      // A new episode is a new session.
      await call('inbox_close_conversation', { conversation_id: id })
      await call('inbox_reopen_conversation', { conversation_id: id })
      await asAgent('inbox_close_conversation', { conversation_id: id })
      assert.deepEqual((await agentsOf(call))[0], { sessions: 2, handoffs: 1, resolution_rate: 0.5 })
      // A dry run is none.
      const other = await write({ server, workspace })
      await asAgent('inbox_close_conversation', { conversation_id: other, dry_run: true })
      assert.equal((await agentsOf(call))[0]['sessions'], 2)
    })

    test('without a key of an AI agent the figures are null, with the reason', async ({ call }) => {
      const reason = "No API key of this workspace is marked as an AI agent's."
      assert.deepEqual(await agentsOf(call), [
        { sessions: null, handoffs: null, resolution_rate: null },
        ['sessions', 'handoffs', 'resolution_rate'].map((figure) => `agents.${figure}: ${reason}`),
      ])
    })
  },
  options,
)

everyDatabase(
  'AI agents in the summary: corrections',
  (server) => {
    const setUp = async (): Promise<{ server: TestServer; workspace: TestWorkspace }> => {
      clock = at('09:00:00')
      return { server: server(), workspace: await makeWorkspace(server()) }
    }

    it('a close after a reply that failed resolves nothing', async () => {
      const scene = await setUp()
      const { agent } = await hireAgent(scene.workspace)
      const asAgent = callAs(server(), agent.key)
      const call = callAs(server(), scene.workspace.owner.key)
      const id = await write(scene)
      const message = await reply(asAgent, id)
      await server().settle()
      await asAgent('inbox_close_conversation', { conversation_id: id })
      assert.equal((await agentsOf(call))[0]['resolution_rate'], 1)
      clock = at('09:10:00')
      await createSandboxDriver(server(), scene.workspace).status(message, 'failed', 131026)
      assert.deepEqual((await agentsOf(call))[0], { sessions: 1, handoffs: 0, resolution_rate: 0 })
    })

    it('staff with channels see sessions of these alone', async () => {
      const scene = await setUp()
      const { agent } = await hireAgent(scene.workspace)
      const { id, channelId } = await plantConversation(server(), scene.workspace.id, {})
      await callAs(server(), agent.key)('inbox_close_conversation', { conversation_id: id })
      const other = await server()
        .db.insertInto('channels')
        .values({ workspace_id: scene.workspace.id, type: 'web', name: 'Other', created_at: clock } as never)
        .returning('id')
        .executeTakeFirstOrThrow()
      for (const [channel, sessions] of [
        [channelId, 1],
        [other.id, 0],
      ] as const) {
        const { key } = await scene.workspace.staff({ role: 'agent', channel_ids: [channel] })
        assert.equal((await agentsOf(callAs(server(), key)))[0]['sessions'], sessions)
      }
    })
  },
  { ...options, dedicated: true },
)
