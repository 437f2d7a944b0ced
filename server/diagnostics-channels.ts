import { channel, tracingChannel } from 'node:diagnostics_channel'
import type { IncomingMessage } from 'node:http'
import type { Operation } from '../catalog/index.ts'

// What the service does, told through Node's diagnostics channels to whoever traces it. Without subscribers they
// cost next to nothing, and nothing of a tracer is loaded. Subscribers never change what is done.

/** `result`: of the work, set when it is done. */
type Work<T> = { result?: T }

/** An HTTP request, until its response begins. */
export type RequestMessage = Work<Response> & { readonly request: IncomingMessage }
/** A call of an operation, through any door. */
export type CallMessage = Work<{ readonly status: number; readonly problem?: { readonly code: string } }> & {
  readonly call: {
    readonly operation: Operation | undefined
    readonly transport: string
    readonly requestId: string
  }
}
/** A call of the messaging provider. */
export type ProviderMessage = { readonly call: string }
/** An attempt to deliver a webhook. `id`: of the delivery. */
export type DeliveryMessage = Work<{
  readonly result: { readonly status: string; readonly response_status: number | null }
}> & {
  readonly id: string
  readonly eventId: string
  readonly eventType: string
}
/** A run of a background job. */
export type JobMessage = { readonly job: string }

export const requestChannel = tracingChannel<RequestMessage, unknown>('wcrm.request')
export const callChannel = tracingChannel<CallMessage, unknown>('wcrm.call')
export const providerChannel = tracingChannel<ProviderMessage, unknown>('wcrm.provider')
export const deliveryChannel = tracingChannel<DeliveryMessage, unknown>('wcrm.delivery')
export const jobChannel = tracingChannel<JobMessage, unknown>('wcrm.job')
/** The headers of a request that is about to be sent, to which a subscriber adds. */
export const outgoingChannel = channel('wcrm.outgoing')

/** Returns the headers that tell the receiver of a request which trace it belongs to; none while nothing traces. */
export const traceHeaders = (): Record<string, string> => {
  const headers: Record<string, string> = {}
  if (outgoingChannel.hasSubscribers) outgoingChannel.publish(headers)
  return headers
}
