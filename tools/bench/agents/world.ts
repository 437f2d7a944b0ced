import { defaultPolicy } from '../../../catalog/policy.ts'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { currentVersion, findOperation, scopes } from '../../../catalog/index.ts'
import { createApiKey, hashApiKey } from '../../../server/api-keys.ts'
import { createDemo } from '../../../server/demo/demo.ts'
import { createKey } from '../../../storage/access/admin-keys.ts'
import { listAllStaff } from '../../../storage/workspace/admin.ts'
import { startServer, type TestServer } from '../../../tests/servers.ts'
import { startDeliveries } from '../../../tests/webhooks/delivery-fixture.ts'

/** A Monday morning; every call of a tool takes one second. */
const START = Date.parse('2026-11-16T09:00:00.000Z')

export type Decision = 'approve' | 'decline'

/** A server with the demo workspace on a database of its own, with deterministic answers. */
export type World = {
  server: TestServer
  /** Calls an operation as the owner: how a person, or a check, sees the workspace. */
  owner: (operation: string, input?: Record<string, unknown>) => Promise<any>
  /** Calls a control of the sandbox: what customers and the provider do. */
  sandbox: (method: string, path: string, body?: object) => Promise<any>
  /** The key of the agent, of a manager who may do what the jobs ask for. `phones`: it sees phone numbers. */
  agentKey: (options: { phones: boolean }) => string
  /** The address of a webhook receiver that accepts everything. */
  receiver: string
  /** Sets what the person does from now on with calls that wait for approval. */
  decide: (decision: Decision) => void
  /** What happens after each call of the agent: a second passes, and the person decides on what waits. */
  afterCall: () => Promise<void>
  close: () => Promise<void>
}

/** Calls operations as a person does, who confirms what has to be confirmed. Throws when a call fails. */
const createCaller =
  (url: string, key: string): World['owner'] =>
  async (name, input = {}) => {
    const { confirm, dryRun } = findOperation(name)!
    const response = await fetch(`${url}/v1/ops/${name}`, {
      method: 'POST',
      headers: {
        Authorization: `Bearer ${key}`,
        'Content-Type': 'application/json',
        ...(dryRun ? { 'Idempotency-Key': crypto.randomUUID() } : {}),
        ...(confirm ? { 'Api-Confirm': confirm } : {}),
      },
      body: JSON.stringify(input),
    })
    const answer = await response.json()
    if (!response.ok) throw new Error(`${name}: ${JSON.stringify(answer)}`)
    return answer
  }

/** A template for customers whose window is shut, approved by the provider. */
const approveTemplate = async (owner: World['owner'], sandbox: World['sandbox']): Promise<void> => {
  const { id } = await owner('messaging_create_template', {
    template: {
      name: 'sorry_for_the_wait',
      language: 'en_US',
      category: 'UTILITY',
      body: {
        text: 'Hello {{1}}, we are sorry that you waited for us. Write to us, and we answer today.',
        examples: ['Ada'],
      },
    },
  })
  await sandbox('POST', 'review', { template_id: id, decision: 'approve' })
}

const startReceiver = async (): Promise<{ url: string; close: () => void }> => {
  const receiver = createServer((request, response) => {
    request.resume().on('end', () => response.end('ok'))
  })
  await new Promise<void>((listening) => receiver.listen(0, '127.0.0.1', listening))
  const close = (): void => {
    receiver.closeAllConnections()
    receiver.close()
  }
  return { url: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/failed`, close }
}

export const startWorld = async (): Promise<World> => {
  let elapsed = 0
  let decision: Decision = 'approve'
  const server = await startServer('embedded', {
    now: () => new Date(START + elapsed).toISOString(),
    webhookAllow: '127.0.0.0/8',
  })
  const { db, app } = server
  const demo = (await createDemo(db, app.now(), { publicUrl: server.url }))!
  await server.sync(demo.workspaceId)
  const manager = (await listAllStaff(db, demo.workspaceId)).find(({ name }) => name === 'Mara Lindqvist')!
  const createAgentKey = async (phones: boolean): Promise<string> => {
    const key = createApiKey(false)
    const fields = {
      staff_id: manager.id,
      name: 'assistant',
      agent: true,
      // The user of the client answers, and may allow data to be sent to the endpoint of a job.
      policy: {
        ...defaultPolicy,
        operations: { webhooks_create_endpoint: 'allow' as const },
        approval: 'client' as const,
      },
      phones,
      api_version: currentVersion,
    }
    await createKey(
      db,
      demo.workspaceId,
      hashApiKey(key),
      { ...fields, scopes: scopes.filter((scope) => scope !== 'approvals:write') },
      app.now(),
    )
    return key
  }
  const keys = { seeing: await createAgentKey(true), masked: await createAgentKey(false) }
  const owner = createCaller(server.url, demo.apiKey)
  const sandbox: World['sandbox'] = async (method, path, body) => {
    const response = await fetch(`${server.url}/sandbox/${path}`, {
      method,
      headers: { Authorization: `Bearer ${demo.apiKey}`, 'Content-Type': 'application/json' },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
    const answer = await response.json()
    if (!response.ok) throw new Error(`${path}: ${JSON.stringify(answer)}`)
    await server.settle()
    return answer
  }
  await approveTemplate(owner, sandbox)
  const receiver = await startReceiver()
  const deliveries = startDeliveries(app)
  return {
    server,
    owner,
    sandbox,
    agentKey: ({ phones }) => (phones ? keys.seeing : keys.masked),
    decide: (next) => {
      decision = next
    },
    afterCall: async () => {
      elapsed += 1000
      const { data } = await owner('approvals_list', { status: 'pending' })
      for (const { id } of data) {
        if (decision === 'approve') await owner('approvals_approve', { approval_id: id })
        else await owner('approvals_decline', { approval_id: id, note: 'We do not give refunds by chat.' })
        await owner('approvals_get', { approval_id: id, wait_seconds: 30 })
      }
    },
    receiver: receiver.url,
    close: async () => {
      receiver.close()
      await deliveries.stop()
      await server.close()
    },
  }
}
