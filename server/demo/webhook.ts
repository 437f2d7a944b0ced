import { eventTypes } from '../../catalog/events.ts'
import { delivery, endpoint } from '../../catalog/webhooks/schemas.ts'
import type { Db } from '../../storage/database.ts'
import { insertDemoDelivery } from '../../storage/demo/webhooks.ts'
import { insertEndpoint } from '../../storage/webhooks/webhooks.ts'
import type { Sealer } from '../sealer.ts'
import { createSigningSecret, sealHeaders, sealSecret } from '../domains/webhooks/secrets.ts'
import { DAY_MS, HOUR_MS, toIso } from './time.ts'

/** A name that no server can have (RFC 2606): what is sent to it on request reaches nobody. */
const URL = 'https://shop.example/hooks'

const EVENT_TYPE = 'message.received/1'

/**
 * Inserts the endpoint and the delivery that the examples of the catalog name. It is subscribed to nothing, so that
 * nothing is sent unless somebody asks for it.
 */
export const createDemoWebhook = async (
  tx: Db,
  workspaceId: string,
  webhookSealer: Sealer,
  now: string,
): Promise<void> => {
  const key = { workspace_id: workspaceId, id: endpoint.id }
  const ago = (ms: number): string => toIso(Date.parse(now) - ms)
  await insertEndpoint(
    tx,
    workspaceId,
    endpoint.id,
    {
      url: URL,
      description: endpoint.description,
      payload_format: 'envelope',
      custom_headers: sealHeaders({ webhookSealer }, key, { 'X-Team': 'team-blue' }),
      signing_secret: sealSecret({ webhookSealer }, key, createSigningSecret()),
    },
    ago(20 * DAY_MS),
  )
  const { id, event_id } = delivery
  const payload = eventTypes[EVENT_TYPE].sample
  const test = { id, endpoint_id: endpoint.id, event_id, event_type: EVENT_TYPE, payload }
  await insertDemoDelivery(tx, workspaceId, test, ago(2 * HOUR_MS))
}
