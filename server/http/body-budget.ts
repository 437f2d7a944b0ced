import type { BodyBudget } from '../core/app-state.ts'
import { Problem } from '../core/problem.ts'

/** Bytes of bodies that one sender (a key, or an address without one) may have in memory on this server. */
export const MAX_BYTES_PER_SENDER = 48 * 1024 * 1024
/** Bytes of bodies that a server holds; what is parsed from them takes several times as much. */
const MAX_BYTES_PER_SERVER = 96 * 1024 * 1024
const RETRY_SECONDS = 2

/** Whose bytes are counted, and how many of them there may be. */
export type Sender = { readonly id: string; readonly maxBytes: number }

/** Throws 429 or 503 when `bytes` more of this sender would exceed a limit. */
export const checkBudget = ({ total, bySender }: BodyBudget, sender: Sender, bytes: number): void => {
  const retry = { 'Retry-After': String(RETRY_SECONDS) }
  if ((bySender.get(sender.id) ?? 0) + bytes > sender.maxBytes)
    throw new Problem(
      'rate_limited',
      `The request bodies that are being handled for you at once exceed ${sender.maxBytes} bytes. ` +
        'Wait for the responses, then send the next large body.',
      { reason: 'bodies_in_flight', violated_policies: ['body-bytes'] },
      retry,
    )
  if (total + bytes > MAX_BYTES_PER_SERVER)
    throw new Problem(
      'upstream_unavailable',
      'The server is handling as many large request bodies as it can. Send this one again later.',
      { reason: 'bodies_in_flight' },
      retry,
    )
}

/** Counts bytes that arrived. Throws 429 or 503 instead when a limit is reached. */
export const takeBytes = (budget: BodyBudget, sender: Sender, bytes: number): void => {
  checkBudget(budget, sender, bytes)
  budget.total += bytes
  budget.bySender.set(sender.id, (budget.bySender.get(sender.id) ?? 0) + bytes)
}

export const returnBytes = (budget: BodyBudget, { id }: Sender, bytes: number): void => {
  budget.total -= bytes
  const left = (budget.bySender.get(id) ?? 0) - bytes
  if (left > 0) budget.bySender.set(id, left)
  else budget.bySender.delete(id)
}
