import { sql } from 'kysely'
import type { Db } from '../database.ts'

/** Inserts the delivery of a test event, which the endpoint accepted at the first attempt. */
export const insertDemoDelivery = async (
  tx: Db,
  workspaceId: string,
  delivery: { id: string; endpoint_id: string; event_id: string; event_type: string; payload: unknown },
  at: string,
): Promise<void> => {
  const { id, endpoint_id, event_id, event_type, payload } = delivery
  await sql`
    with d as (
      insert into webhook_deliveries (workspace_id, id, endpoint_id, event_id, event_type, payload, status, trigger,
        attempts, next_attempt_at, last_response_status, created_at, delivered_at)
      values (${workspaceId}, ${id}, ${endpoint_id}, ${event_id}, ${event_type},
        ${JSON.stringify(payload)}::text::jsonb, 'delivered', 'test', 1, null, 200, ${at},
        ${at}::timestamptz + interval '120 milliseconds')
    )
    insert into webhook_attempts (workspace_id, delivery_id, number, started_at, duration_ms, response_status,
      response_excerpt, trigger)
    values (${workspaceId}, ${id}, 1, ${at}, 120, 200, 'ok', 'test')`.execute(tx)
}
