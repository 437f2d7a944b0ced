import { sql } from 'kysely'
import { doAs } from '../calls.ts'
import type { TestServer, TestWorkspace } from '../servers.ts'

export type DeliveryRow = {
  id: string
  event_id: string
  event_type_id: string
  status: string
  created_at: string
  attempts: number
  next_attempt_at: string | null
}

/** A workspace and its server. */
export type OwnedServer = { server: TestServer; workspace: TestWorkspace }

export const callAsOwner = ({ server, workspace }: OwnedServer): ReturnType<typeof doAs> =>
  doAs(server, workspace.owner.key)

export const createEndpoint = async (scene: OwnedServer, ...event_types: string[]): Promise<string> =>
  (await callAsOwner(scene)('webhooks_create_endpoint', { url: 'https://hooks.example.com/in', event_types }))
    .endpoint.id as string

export const listDeliveries = async (scene: OwnedServer, endpoint_id: string): Promise<DeliveryRow[]> =>
  (await callAsOwner(scene)('webhooks_list_deliveries', { endpoint_id, limit: 100 })).data as DeliveryRow[]

/** Sets the status of a delivery as after two failed attempts, and inserts these attempts. */
export const setDeliveryStatus = async (
  { server, workspace }: OwnedServer,
  id: string,
  status: 'delivered' | 'dead' | 'failed' | 'skipped',
): Promise<void> => {
  const responseStatus = status === 'delivered' ? 200 : 500
  await sql`
    update webhook_deliveries set
      status = ${status}, attempts = 3, failures = 3, last_response_status = ${responseStatus},
      delivered_at = case when ${status} = 'delivered' then now() end,
      next_attempt_at = case when ${status} = 'failed' then now() + interval '1 hour' end
    where workspace_id = ${workspace.id} and id = ${id}`.execute(server.db)
  await sql`
    insert into webhook_attempts (workspace_id, delivery_id, number, started_at, duration_ms,
      response_status, response_excerpt, error, trigger)
    values
      (${workspace.id}, ${id}, 1, now(), 5, null, null, 'The connection was refused.', 'scheduled'),
      (${workspace.id}, ${id}, 2, now(), 7, 500, 'no 15550100042', null, 'scheduled')
    on conflict do nothing`.execute(server.db)
}

export const createGroups = async (scene: OwnedServer, ...names: string[]): Promise<void> => {
  for (const name of names) await callAsOwner(scene)('crm_create_group', { name })
}
