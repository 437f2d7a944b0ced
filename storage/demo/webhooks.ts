import { sql } from 'kysely'
import type { Db, TableRow } from '../database.ts'

/** The columns of a webhook endpoint of the demo workspace; secrets and headers are sealed. */
export type NewDemoEndpoint = Pick<
  TableRow<'webhook_endpoints'>,
  'id' | 'url' | 'description' | 'custom_headers' | 'signing_secret' | 'created_at'
>
export type NewDemoDelivery = Pick<
  TableRow<'webhook_deliveries'>,
  'id' | 'event_id' | 'event_type' | 'payload' | 'created_at'
> & { attempt: Pick<TableRow<'webhook_attempts'>, 'duration_ms' | 'response_status' | 'response_excerpt'> }

/** Inserts an endpoint whose subscription is switched off, so that nothing is sent to it. */
export const insertDemoEndpoint = async (
  tx: Db,
  workspaceId: string,
  endpoint: NewDemoEndpoint,
  eventType: string,
): Promise<void> => {
  const { id, created_at } = endpoint
  await tx
    .insertInto('webhook_endpoints')
    .values({ ...endpoint, workspace_id: workspaceId, updated_at: created_at })
    .execute()
  await tx
    .insertInto('webhook_subscriptions')
    .values({ workspace_id: workspaceId, endpoint_id: id, event_type: eventType, active: false, created_at })
    .execute()
}

/** Inserts the delivery of a test event, which the endpoint accepted at the first attempt. */
export const insertDemoDelivery = async (
  tx: Db,
  workspaceId: string,
  endpointId: string,
  { attempt, ...delivery }: NewDemoDelivery,
): Promise<void> => {
  const { id, created_at } = delivery
  await tx
    .insertInto('webhook_deliveries')
    .values({
      ...delivery,
      workspace_id: workspaceId,
      endpoint_id: endpointId,
      payload: sql`${JSON.stringify(delivery.payload)}::text::jsonb`,
      status: 'delivered',
      trigger: 'test',
      attempts: 1,
      next_attempt_at: null,
      lease_until: null,
      last_response_status: attempt.response_status,
      delivered_at: new Date(Date.parse(created_at) + attempt.duration_ms).toISOString(),
    })
    .execute()
  await tx
    .insertInto('webhook_attempts')
    .values({
      ...attempt,
      workspace_id: workspaceId,
      delivery_id: id,
      number: 1,
      started_at: created_at,
      error: null,
      trigger: 'test',
    })
    .execute()
}
