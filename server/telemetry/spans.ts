import { AsyncLocalStorage } from 'node:async_hooks'
import type { TracingChannel } from 'node:diagnostics_channel'
import {
  type Attributes,
  type Context,
  defaultTextMapGetter,
  defaultTextMapSetter,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
  type Tracer,
} from '@opentelemetry/api'
import { suppressTracing, W3CTraceContextPropagator } from '@opentelemetry/core'
import { statementChannel, type StatementMessage } from '../../storage/client/statement-channel.ts'
import { Problem } from '../kernel/problem.ts'
import {
  callChannel,
  type CallMessage,
  deliveryChannel,
  type DeliveryMessage,
  jobChannel,
  type JobMessage,
  outgoingChannel,
  providerChannel,
  type ProviderMessage,
  requestChannel,
  type RequestMessage,
} from '../diagnostics-channels.ts'
import { describeStatement } from './statement-name.ts'

// The names of attributes are those of OpenTelemetry's semantic conventions (HTTP, database), where they have one.
// None holds personal data: no path, no parameter of a statement, no text of an error.

/** Nobody traces the probes and the metrics, which are asked for every few seconds. */
const PROBES = /^\/(healthz|readyz|metrics)(\?|$)/

/** How a span begins. Without a parent it is one of the work that surrounds it. */
type SpanStart = {
  name: string
  kind?: SpanKind
  attributes?: Attributes
  parent?: Context
  /** The work that surrounds it only caused it: it begins a trace of its own, with a link to that. */
  isCaused?: boolean
  /** It is of no interest by itself: it is left out unless the span of the work that surrounds it is open. */
  isDetail?: boolean
}

/** How messages of a channel become spans. */
type Description<M> = {
  start: (message: M) => SpanStart
  /** What the result adds; called where the work did not throw. */
  end?: (message: M, span: Span) => void
}

const propagator = new W3CTraceContextPropagator()

const failSpan = (span: Span, type: string): void => {
  span.setAttribute('error.type', type)
  span.setStatus({ code: SpanStatusCode.ERROR })
}

/** What kind of error it is, without its text. */
const describeError = (error: unknown): string => {
  if (error instanceof Problem) return error.code
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown }
  return String(code ?? name ?? 'unknown')
}

const requests: Description<RequestMessage> = {
  start: ({ request: { method = '', headers, url = '' } }) => ({
    name: method,
    kind: SpanKind.SERVER,
    attributes: { 'http.request.method': method },
    parent: PROBES.test(url)
      ? suppressTracing(ROOT_CONTEXT)
      : propagator.extract(ROOT_CONTEXT, headers, defaultTextMapGetter),
  }),
  end: ({ result }, span) => {
    const status = result!.status
    span.setAttribute('http.response.status_code', status)
    if (status >= 500) failSpan(span, String(status))
  },
}

/** The route that the call came through, with the names of its parameters. */
const findRoute = ({ transport, operation }: CallMessage['call']): string | undefined => {
  if (transport === 'mcp') return '/mcp'
  if (!operation) return undefined
  if (transport !== 'rest') return `/v1/ops/${operation.name}`
  const [route] = operation.routes
  return (typeof route === 'string' ? route : route?.route)?.split(' ')[1]
}

const createCalls = (active: () => Context): Description<CallMessage> => ({
  start: ({ call }) => {
    const name = call.operation?.name ?? 'unknown'
    const route = findRoute(call)
    const request = trace.getSpan(active())
    if (route !== undefined) {
      request?.setAttribute('http.route', route)
      request?.updateName(`${call.transport === 'rest' ? '' : 'POST '}${route}`)
    }
    return {
      name,
      attributes: {
        'wcrm.operation': name,
        'wcrm.door': call.transport,
        'wcrm.request_id': call.requestId,
      },
    }
  },
  end: ({ result }, span) => {
    const { status, problem } = result!
    span.setAttribute('wcrm.status', status)
    if (problem) span.setAttribute('wcrm.code', problem.code)
    if (status >= 500) failSpan(span, problem?.code ?? String(status))
  },
})

const statements: Description<StatementMessage> = {
  start: ({ text: sql }) => {
    const { text, word, table, name } = describeStatement(sql)
    return {
      name,
      kind: SpanKind.CLIENT,
      attributes: {
        'db.system.name': 'postgresql',
        'db.operation.name': word,
        'db.query.text': text,
        ...(table === undefined ? {} : { 'db.collection.name': table }),
      },
      isDetail: true,
    }
  },
}

const providerCalls: Description<ProviderMessage> = {
  start: ({ call }) => ({
    name: `provider ${call}`,
    kind: SpanKind.CLIENT,
    attributes: { 'wcrm.call': call },
  }),
}

const deliveries: Description<DeliveryMessage> = {
  start: ({ id, eventId, eventType }) => ({
    name: 'webhook delivery',
    kind: SpanKind.CLIENT,
    attributes: { 'wcrm.delivery_id': id, 'wcrm.event_id': eventId, 'wcrm.event_type': eventType },
    isCaused: true,
  }),
  end: ({ result }, span) => {
    const { status, response_status: answered } = result!.result
    span.setAttribute('wcrm.delivery_status', status)
    if (answered !== null) span.setAttribute('http.response.status_code', answered)
    if (status !== 'delivered') failSpan(span, answered === null ? 'no_response' : String(answered))
  },
}

const jobs: Description<JobMessage> = {
  start: ({ job }) => ({ name: `job ${job}`, attributes: { 'wcrm.job': job }, isCaused: true }),
}

/** What is traced now, for whoever logs or sends something. */
export type Tracing = { ids: () => { trace_id: string; span_id: string } | undefined; stop: () => void }

/** Makes spans of what the service tells through its channels, until it is stopped. */
export const traceChannels = (tracer: Tracer): Tracing => {
  const contexts = new AsyncLocalStorage<Context>()
  const active = (): Context => contexts.getStore() ?? ROOT_CONTEXT
  const follow = <M extends object>(channel: TracingChannel<M, unknown>, description: Description<M>) =>
    followChannel(channel, description, tracer, contexts)
  const stops = [
    follow(requestChannel, requests),
    follow(callChannel, createCalls(active)),
    follow(statementChannel, statements),
    follow(providerChannel, providerCalls),
    follow(deliveryChannel, deliveries),
    follow(jobChannel, jobs),
  ]
  const inject = (headers: unknown): void => propagator.inject(active(), headers, defaultTextMapSetter)
  outgoingChannel.subscribe(inject)
  return {
    ids: () => {
      const span = trace.getSpanContext(active())
      return span && { trace_id: span.traceId, span_id: span.spanId }
    },
    stop: () => {
      for (const stop of stops) stop()
      outgoingChannel.unsubscribe(inject)
    },
  }
}

const followChannel = <M extends object>(
  channel: TracingChannel<M, unknown>,
  { start, end }: Description<M>,
  tracer: Tracer,
  contexts: AsyncLocalStorage<Context>,
): (() => void) => {
  const spans = new WeakMap<object, Span>()
  const enter = (message: M): Context => {
    const surrounding = contexts.getStore() ?? ROOT_CONTEXT
    const { name, kind, attributes, parent = surrounding, isCaused = false, isDetail } = start(message)
    if (isDetail && !trace.getSpan(surrounding)?.isRecording()) return surrounding
    const cause = isCaused ? trace.getSpanContext(surrounding) : undefined
    const options = {
      ...(kind === undefined ? {} : { kind }),
      ...(attributes === undefined ? {} : { attributes }),
      ...(cause ? { links: [{ context: cause }] } : {}),
      root: isCaused,
    }
    const span = tracer.startSpan(name, options, parent)
    spans.set(message, span)
    return trace.setSpan(parent, span)
  }
  const asyncEnd = (message: M & { error?: unknown; result?: unknown }): void => {
    const span = spans.get(message)
    if (!span) return
    if ('error' in message) failSpan(span, describeError(message.error))
    else end?.(message, span)
    span.end()
  }
  const subscribers = { asyncEnd }
  channel.start.bindStore(contexts as AsyncLocalStorage<unknown>, (message) => enter(message as M))
  channel.subscribe(subscribers)
  return () => {
    channel.start.unbindStore(contexts)
    channel.unsubscribe(subscribers)
  }
}
