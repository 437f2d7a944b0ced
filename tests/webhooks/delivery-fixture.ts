import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { Webhook } from 'standardwebhooks'
import { createJob, type Job } from '../../server/work/runner.ts'
import { webhookDeliveriesJob } from '../../server/domains/webhooks/delivery-job.ts'
import { deliverDue } from '../deliver-due.ts'
import { callAs, doAs } from '../calls.ts'
import { makeWorkspace, type TestServer } from '../servers.ts'
import { type Received, type Receiver, startReceiver } from './receiver.ts'

type TestEndpoint = { id: string; secret: string }
type TestDelivery = {
  id: string
  status: string
  attempts: number
  next_attempt_at: string | null
  last_response_status: number | null
}

/** A workspace, and functions for endpoints and deliveries of it. */
export type DeliveryFixture = {
  server: TestServer
  run: ReturnType<typeof doAs>
  call: ReturnType<typeof callAs>
  workspaceId: string
  /** Starts a receiver that is closed after the test. */
  startReceiver: (answer?: Receiver['answer']) => Promise<Receiver>
  /** Creates an endpoint that is subscribed to `group.created/1`. */
  createEndpoint: (url: string, more?: Record<string, unknown>) => Promise<TestEndpoint>
  /** Creates groups, each of which emits an event of the type `group.created/1`. */
  createGroups: (count?: number) => Promise<void>
  /** Attempts all deliveries that are due and returns how many attempts were made. */
  deliver: () => Promise<number>
  /** Makes every open delivery of an endpoint due. */
  makeDue: (endpoint: TestEndpoint) => Promise<void>
  /** Returns the deliveries of an endpoint, oldest first. */
  listDeliveries: (endpoint: TestEndpoint) => Promise<TestDelivery[]>
  loadEndpoint: (
    endpoint: TestEndpoint,
  ) => Promise<{ status: string; consecutive_failures: number; disabled_reason: string | null }>
  /** Returns the seconds until the next attempt of each open delivery. */
  secondsUntilAttempts: (endpoint: TestEndpoint) => Promise<number[]>
}

let serial = 0

/** Starts the delivery job, as a server does. The caller stops it. */
export const startDeliveries = (app: TestServer['app']): Job => {
  const definition = webhookDeliveriesJob(app)
  const subscribe = (wake: () => void): (() => void) => {
    const unsubscribe = [definition.subscribe!(wake), app.signals.on('job', wake)]
    return () => unsubscribe.forEach((end) => end())
  }
  const job = createJob({ ...definition, subscribe }, app.log)
  job.start()
  return job
}

/**
 * Skips the open deliveries of all workspaces. The job attempts those of every workspace, and tests and files
 * that share the server leave some behind.
 */
const skipOpenDeliveries = async ({ db }: TestServer): Promise<void> => {
  await sql`update webhook_deliveries set status = 'skipped' where status in ('pending', 'failed')`.execute(
    db,
  )
}

const withDeliveryFixture = async (
  server: TestServer,
  body: (fixture: DeliveryFixture) => Promise<void>,
): Promise<void> => {
  await skipOpenDeliveries(server)
  const workspace = await makeWorkspace(server)
  const run = doAs(server, workspace.owner.key)
  const receivers: Receiver[] = []
  try {
    await body({
      server,
      run,
      call: callAs(server, workspace.owner.key),
      workspaceId: workspace.id,
      startReceiver: async (answer) => {
        const receiver = await startReceiver(answer)
        receivers.push(receiver)
        return receiver
      },
      createEndpoint: async (url, more = {}) => {
        const { endpoint, signing_secret: secret } = await run('webhooks_create_endpoint', {
          url,
          event_types: ['group.created/1'],
          ...more,
        })
        return { id: endpoint.id, secret }
      },
      createGroups: async (count = 1) => {
        for (let n = 0; n < count; n++) await run('crm_create_group', { name: `Group ${++serial}` })
      },
      deliver: () => deliverDue(server.app),
      makeDue: async ({ id }) => {
        await sql`
          update webhook_deliveries set next_attempt_at = now()
          where workspace_id = ${workspace.id} and endpoint_id = ${id}
            and status in ('pending', 'failed')`.execute(server.db)
      },
      listDeliveries: async ({ id }) =>
        (await run('webhooks_list_deliveries', { endpoint_id: id, limit: 100 })).data.toReversed(),
      loadEndpoint: async ({ id }) => run('webhooks_get_endpoint', { endpoint_id: id }),
      secondsUntilAttempts: async ({ id }) => {
        const { rows } = await sql<{ seconds: number }>`
          select extract(epoch from next_attempt_at - now())::float8 as seconds from webhook_deliveries
          where workspace_id = ${workspace.id} and endpoint_id = ${id}
            and status in ('pending', 'failed')
          order by next_attempt_at`.execute(server.db)
        return rows.map(({ seconds }) => seconds)
      },
    })
  } finally {
    await Promise.all(receivers.map((receiver) => receiver.close()))
    await skipOpenDeliveries(server)
  }
}

/** Returns a function that defines a test with a fixture of its own. */
export const createDeliveryTest =
  (server: () => TestServer) =>
  (name: string, body: (fixture: DeliveryFixture) => Promise<void>): void => {
    it(name, () => withDeliveryFixture(server(), body))
  }

/** Verifies the signature of a request and returns its JSON. Throws when the signature is wrong. */
export const verifyReceived = ({ secret }: Pick<TestEndpoint, 'secret'>, received: Received) =>
  new Webhook(secret).verify(received.body, received.headers) as Record<string, unknown>

/** Asserts that a delay is within the jitter of ten percent, and within the time a test takes. */
export const assertNear = (seconds: number, expected: number): void =>
  assert.ok(
    seconds > expected * 0.9 - 5 && seconds < expected * 1.1 + 1,
    `${seconds} s is not about ${expected} s`,
  )
