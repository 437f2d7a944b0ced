import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { type Cluster, startCluster } from '../../deploy/ha/cluster.ts'
import { type ServerProcess, startCommand } from '../../tests/process.ts'
import {
  createCaller,
  openConversations,
  prepareWorkspace,
  type SandboxProcess,
  startSandbox,
} from '../../tests/soak/sends-scene.ts'
import { freePort } from '../../scripts/free-port.ts'
import { createNetwork, type Host, mountDisk, NETWORK, onHost } from './network.ts'

/** Accepts every webhook, and counts how often each event came. */
type Receiver = { url: string; received: Map<string, number>; close: () => void }

/** How a server or worker reaches the database, with its URL for it. */
type Route = { name: string; databaseUrl: string }

export type Scene = {
  cluster: Cluster
  hosts: readonly Host[]
  routes: readonly Route[]
  /** One server for each route. */
  servers: readonly ServerProcess[]
  sandbox: SandboxProcess
  receiver: Receiver
  apiKey: string
  workspaceId: string
  conversations: readonly string[]
  stop: () => Promise<void>
}

/** Holds the cluster, its log and what a fault writes; the load of a run writes some ten megabytes. */
const DISK_MB = 700
const NAMES = ['wcrm-1', 'wcrm-2', 'wcrm-3']

const startReceiver = async (): Promise<Receiver> => {
  const received = new Map<string, number>()
  const server = createServer((request, response) => {
    const id = request.headers['webhook-id'] as string
    request.resume().on('end', () => {
      received.set(id, (received.get(id) ?? 0) + 1)
      response.writeHead(204).end()
    })
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    received,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

const subscribe = async (server: ServerProcess, apiKey: string, url: string): Promise<void> => {
  const response = await fetch(`${server.url}/v1/webhooks/endpoints`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ url, event_types: ['*'] }),
  })
  if (!response.ok) throw new Error(await response.text())
}

/**
 * Starts the database, a sandbox that plays the provider, and for each way to reach the database a server and a worker.
 * All of it is stopped in the opposite order.
 */
export const startScene = async (folder: string): Promise<Scene> => {
  const started: (() => unknown)[] = []
  const stop = async (): Promise<void> => {
    for (const end of started.splice(0).toReversed()) await end()
  }
  try {
    const hosts = createNetwork(NAMES)
    for (const { name } of hosts) mountDisk(join(folder, name, 'data'), DISK_MB)
    const cluster = await startCluster({
      folder,
      addresses: hosts.map(({ address }) => address),
      network: NETWORK,
      writePort: await freePort(),
      readPort: await freePort(),
      enter: ({ number }) => onHost(hosts[number - 1]!),
    })
    started.push(() => cluster.stop())
    const receiver = await startReceiver()
    started.push(() => receiver.close())
    const { key: apiKey, workspaceId } = await prepareWorkspace({ databaseUrl: cluster.directUrl })
    const ports = [await freePort(), await freePort()]
    const sandboxUpdates = `http://127.0.0.1:${ports[0]}/provider/webhook`
    const sandbox = await startSandbox(join(folder, 'sandbox'), await freePort(), sandboxUpdates)
    started.push(() => sandbox.stop())
    const environment = {
      WCRM_SECRET: 'a secret of this measurement alone',
      WCRM_WEBHOOK_ALLOW: '127.0.0.0/8',
      WCRM_PROVIDER: 'sandbox',
      WCRM_PROVIDER_URL: sandbox.url,
      WCRM_PROVIDER_TOKEN: sandbox.said.token,
      WCRM_PROVIDER_APP_SECRET: sandbox.said.app_secret,
      WCRM_PROVIDER_VERIFY_TOKEN: sandbox.said.verify_token,
    }
    const routes = [
      { name: 'HAProxy', databaseUrl: cluster.writeUrl },
      { name: 'several hosts', databaseUrl: cluster.directUrl },
    ]
    const servers: ServerProcess[] = []
    for (const [i, { databaseUrl }] of routes.entries()) {
      const flags = ['--database-url', databaseUrl, '--json']
      const serve = ['serve', '--no-demo', '--port', String(ports[i]), ...flags]
      const server = await startCommand(serve, environment)
      const worker = await startCommand(['worker', ...flags], environment)
      started.push(() => Promise.all([server.stop(), worker.stop()]))
      servers.push(server)
    }
    await subscribe(servers[0]!, apiKey, receiver.url)
    const call = createCaller(() => servers[0]!.url, apiKey)
    const conversations = await openConversations(sandbox, call)
    return { cluster, hosts, routes, servers, sandbox, receiver, apiKey, workspaceId, conversations, stop }
  } catch (error) {
    await stop()
    throw error
  }
}
