import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import { createDemo } from '../../server/demo/demo.ts'
import { anyDatabase, createDatabase, type TestDatabase, withStorage } from '../databases.ts'
import { startProcess } from '../process.ts'
import { type Collector, type ReceivedSpan, startCollector } from './otlp.ts'
import { waitUntil } from '../wait-until.ts'

let database: TestDatabase
let apiKey: string
before(async () => {
  database = await createDatabase(anyDatabase)
  const now = new Date().toISOString()
  const demo = await withStorage(database.location, ({ db }) => createDemo(db, now), { noTimeout: true })
  apiKey = demo!.apiKey
})
after(() => database.remove())

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const CALLER = 'b7ad6b7169203331'
const TEXT = 'A text that only the customer reads'

/** A server of its own on the demo workspace, and how to call it. */
const start = async (env: Record<string, string>) => {
  const server = await startProcess(database.flags, env)
  const call = async (operation: string, input: object, headers: Record<string, string> = {}) => {
    const response = await fetch(`${server.url}/v1/ops/${operation}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${apiKey}`,
        'content-type': 'application/json',
        ...headers,
      },
      body: JSON.stringify(input),
    })
    return { status: response.status, body: (await response.json()) as any }
  }
  return { ...server, call }
}

const tracedBy = ({ url }: Pick<Collector, 'url'>) => ({
  OTEL_EXPORTER_OTLP_ENDPOINT: url,
  OTEL_BSP_SCHEDULE_DELAY: '50',
  OTEL_METRIC_EXPORT_INTERVAL: '200',
})

/** Waits until the collector has what a test looks for, and returns it. */
const waitFor = async <T>(find: () => T | undefined): Promise<T> => {
  let found: T | undefined
  await waitUntil('it arrives', () => (found = find()) !== undefined)
  return found!
}

/** The names of a span and of those that surround it, the innermost first. */
const listNames = (spans: readonly ReceivedSpan[], span: ReceivedSpan | undefined): string[] =>
  span
    ? [
        span.name,
        ...listNames(
          spans,
          spans.find(({ spanId }) => spanId === span.parentId),
        ),
      ]
    : []

test('a reply is one trace, from the request of the caller to SQL and to the provider', async () => {
  const collector = await startCollector()
  const received: Record<string, unknown>[] = []
  const receiver = createServer((request, response) => {
    received.push(request.headers)
    response.end()
  })
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  const { port } = receiver.address() as AddressInfo
  const server = await start({
    ...tracedBy(collector),
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
    WCRM_WEBHOOK_ALLOW: '127.0.0.1/32',
  })
  try {
    const url = `http://127.0.0.1:${port}/hook`
    const endpoint = await server.call('webhooks_create_endpoint', { url, event_types: ['message.sent/1'] })
    assert.equal(endpoint.status, 201, JSON.stringify(endpoint.body))
    const queue = await server.call('inbox_search_conversations', { limit: 50 })
    let replied = 0
    for (const { id } of queue.body.data) {
      const reply = await server.call(
        'messaging_send_reply',
        { conversation_id: id, text: TEXT },
        { 'api-confirm': 'send', traceparent: `00-${TRACE}-${CALLER}-01` },
      )
      if (reply.status !== 201) continue
      replied = 1
      break
    }
    assert.equal(replied, 1)
    const spans = collector.spans
    const own = () => spans.filter(({ traceId }) => traceId === TRACE)
    const request = await waitFor(() =>
      own().findLast(
        ({ name, attributes }) =>
          name === 'POST /v1/ops/messaging_send_reply' && attributes['http.response.status_code'] === 201,
      ),
    )
    assert.equal(request.parentId, CALLER)
    const names = await waitFor(() => {
      const inserted = own().find(({ name }) => name === 'insert sandbox_messages')
      return inserted && listNames(own(), inserted)
    })
    // The sandbox is a provider behind HTTP: what it does belongs to the trace because it was told of it.
    assert.deepEqual(names, [
      'insert sandbox_messages',
      'POST',
      'provider send',
      'messaging_send_reply',
      'POST /v1/ops/messaging_send_reply',
    ])
    const intent = own().find(({ name }) => name === 'insert idempotency')
    assert.equal(intent?.attributes['db.system.name'], 'postgresql')
    assert.match(String(intent?.attributes['db.query.text']), /^insert into idempotency .*\$1/s)
    const delivery = await waitFor(() => spans.find(({ name }) => name === 'webhook delivery'))
    assert.equal(delivery.attributes['wcrm.event_type'], 'message.sent/1')
    const header = String(received[0]!['traceparent'])
    assert.equal(header, `00-${delivery.traceId}-${delivery.spanId}-01`)
    await waitFor(() => (collector.metrics.has('wcrm_calls_total') ? true : undefined))
    assert.ok(collector.metrics.has('wcrm_call_duration_seconds'))
    assert.equal(collector.resource['service.name'], 'wcrm')
    assert.equal(collector.resource['deployment.environment.name'], 'test')
    // No text of a message, and no phone.
    const said = JSON.stringify(spans.map(({ name, attributes }) => ({ name, attributes })))
    assert.ok(!said.includes(TEXT))
    assert.doesNotMatch(said, /"\+?\d{11,}"/)
    for (const span of spans) assert.ok(span.end >= span.start, span.name)
  } finally {
    await server.stop()
    receiver.close()
    collector.close()
  }
})

test('a collector that does not answer delays nothing', async () => {
  const collector = await startCollector(() => new Promise(() => {}))
  const server = await start(tracedBy(collector))
  try {
    for (let i = 0; i < 20; i++) assert.equal((await server.call('workspace_whoami', {})).status, 200)
    await waitFor(() => collector.spans[0])
  } finally {
    const stoppedAt = performance.now()
    assert.equal(await server.stop(), 0)
    // It waits two seconds for what is left.
    assert.ok(performance.now() - stoppedAt < 10_000)
    collector.close()
  }
})

/** Ends a process that loads OpenTelemetry, beyond the interfaces, which the library of the metrics loads too. */
const REFUSE_TRACER = `--import=data:text/javascript,${encodeURIComponent(
  'import { registerHooks } from "node:module"; registerHooks({ resolve: (name, context, next) => ' +
    '{ if (/^@opentelemetry\\/(?!api$)/.test(name)) process.exit(42); return next(name, context) } })',
)}`

test('without an endpoint, nothing of OpenTelemetry is loaded', async () => {
  const env = { NODE_OPTIONS: REFUSE_TRACER }
  const server = await start(env)
  try {
    assert.equal((await server.call('workspace_whoami', {})).status, 200)
  } finally {
    await server.stop()
  }
  const endpoint = tracedBy({ url: 'http://127.0.0.1:9' })
  await (await start({ ...env, ...endpoint, OTEL_SDK_DISABLED: 'true' })).stop()
  // The check can fail.
  await assert.rejects(start({ ...env, ...endpoint }), /exited with 42/)
})
