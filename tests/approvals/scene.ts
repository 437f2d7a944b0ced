import { Client, type ElicitResult, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { findOperation } from '../../catalog/index.ts'
import type { KeyPolicy } from '../../catalog/policy.ts'
import { defaultPolicy } from '../../catalog/policy.ts'
import { createApiKey, hashApiKey } from '../../server/api-keys.ts'
import { changeKey, replaceKey } from '../../storage/access/admin-keys.ts'
import { decideApproval } from '../../storage/agents/approvals.ts'
import { callAs } from '../calls.ts'
import { wholeAnswer } from '../doors.ts'
import { createReplyScene } from '../messaging/replies.ts'
import type { TestServer, TestWorkspace } from '../servers.ts'

/** A conversation whose window is open, an agent's key of a manager, and what both say. */
export const createAgentScene = async (server: TestServer, given?: TestWorkspace) => {
  const scene = await createReplyScene(server, given)
  const { workspace } = scene
  const manager = await workspace.staff({ name: 'Mina', role: 'manager' })
  const agent = await workspace.key(manager.staffId, { agent: true })
  const setPolicy = async (policy: Partial<KeyPolicy> | null): Promise<void> => {
    await changeKey(server.db, workspace.id, agent.keyId, {
      policy: policy && { ...structuredClone(defaultPolicy), ...policy },
    })
    server.app.keyCache.keys.clear()
  }
  const pause = async (at: string | null): Promise<void> => {
    await changeKey(server.db, workspace.id, agent.keyId, { paused_at: at })
    server.app.keyCache.keys.clear()
  }
  /** Replaces the agent's key by another one, which it returns; both are valid for the overlap. */
  const rotate = async (overlapMs = 0): Promise<string> => {
    const key = createApiKey(false)
    const now = server.app.now()
    const oldUntil = new Date(Date.parse(now) + overlapMs).toISOString()
    const times = { oldUntil, expiresAt: null, now }
    await replaceKey(server.db, workspace.id, agent.keyId, () => hashApiKey(key), times)
    server.app.keyCache.keys.clear()
    return key
  }
  return {
    ...scene,
    rotate,
    manager,
    agent,
    setPolicy,
    pause,
    person: scene.call,
    ask: callAs(server, agent.key),
    as: (key: string) => callAs(server, key),
    /** Runs what was approved. */
    work: () => server.app.jobs.job('approvals').runOnce(),
    reply: (text: string) => ['messaging_send_reply', { conversation_id: scene.id, text }] as const,
  }
}

/** Marks a request as approved by the owner, as if before what a test changed: whatever is approved runs. */
export const markApproved = (
  { db, workspace }: { db: TestServer['db']; workspace: TestWorkspace },
  id: string,
): Promise<void> =>
  decideApproval(db, workspace.id, id, {
    status: 'approved',
    now: new Date().toISOString(),
    staffId: workspace.owner.staffId,
    keyId: workspace.owner.keyId,
    note: null,
    edited: null,
    runSeconds: 60,
  })

/**
 * Calls a tool over MCP, with a client that answers yes to each question, or as `answer` says. Returns the result,
 * or the code of its error, and what it was asked.
 */
export const callConfirming = async (
  { url, key }: { url: string; key: string },
  [name, input]: readonly [string, Record<string, unknown>],
  beforeAnswer: () => Promise<void> = async () => {},
  answer: ElicitResult = { action: 'accept', content: { confirm: 'send' } },
): Promise<{ result: any; code: string | undefined; questions: number; question: string }> => {
  const client = new Client(
    { name: 'tests', version: '1' },
    { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: 'auto' } },
  )
  let [questions, question] = [0, '']
  client.setRequestHandler('elicitation/create', async ({ params }) => {
    questions++
    question = params.message
    await beforeAnswer()
    return answer
  })
  const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp?toolsets=all`), {
    requestInit: { headers: { Authorization: `Bearer ${key}` } },
  })
  await client.connect(transport)
  try {
    const { structuredContent, content, isError } = await client.callTool({
      name,
      arguments: { ...wholeAnswer(findOperation(name)!), ...input },
    })
    const [first] = content as { text?: string }[]
    const code = isError ? (JSON.parse(first!.text!) as { code: string }).code : undefined
    return { result: structuredContent, code, questions, question }
  } finally {
    await client.close()
  }
}
