import type { ControlledTransaction } from 'kysely'
import type { AskReason } from '../../catalog/approvals.ts'
import type { Operation } from '../../catalog/index.ts'
import { redactApiKeys } from '../../catalog/redact.ts'
import type { StoredView } from '../../storage/access/idempotency.ts'
import type { Database } from '../../storage/database.ts'
import type { ClientPresence } from '../../storage/client/client-presence.ts'
import { isConfirmed } from './confirm.ts'
import type { Actor, CallTrace, CallWatch, FoundRecords, Transport } from './context.ts'
import type { FieldError, Problem } from './problem.ts'

/** What a body gives. */
export type CallInput = Pick<CallRequest, 'input'> &
  Partial<Pick<CallRequest, 'idempotencyKey' | 'confirm' | 'reason' | 'plan'>>

/** One request, as every door passes it in. */
export type CallRequest = {
  transport: Transport
  /** Undefined when the transport found no such route or operation. */
  operation: Operation | undefined
  /** What was requested where there is no such thing, for the 404; `findSimilar`: what was probably meant instead. */
  unknown?: { name: string; findSimilar: () => string | undefined }
  /** The raw input, with `dry_run`. */
  input: unknown
  /**
   * Reads the input where the door has not yet: at the validation step, so that errors keep their order and
   * nobody's body is read who may not send it. What it returns replaces those members of the call.
   */
  readInput?: ((actor: Actor) => Promise<CallInput>) | undefined
  requestId: string
  /** The whole `Authorization` header. */
  authorization: string | undefined
  apiVersion?: string | undefined
  idempotencyKey?: string | undefined
  confirm?: string | undefined
  /**
   * What the person behind the client said there. `no`: the call never runs under this key. `yes`: only where the
   * policy of an agent's key takes that. `asked`: the input as the client sent it, where what it refers to is written
   * out in `input` as the person was shown it.
   */
  person?: { said?: 'yes' | 'no'; asked?: Record<string, unknown> }
  /** `show`: a dry run answers its plan. The token of a plan: the call does that, or is refused. */
  plan?: string | undefined
  /** Why an agent makes the call, for the person who decides on it. */
  reason?: string | undefined
  client?: string | undefined
  /** The client waits in a way that tells of progress and cancellation. */
  watch?: CallWatch | undefined
  /** Whether the client still waits: a read for one that is gone is given up. Always, when absent. */
  presence?: ClientPresence | undefined
  /** The client's address; undefined when the call came through no socket. */
  address: string | undefined
  /**
   * Writes the output of a read as the door shows it, as JSON text; or says how many rows of a list would fit,
   * which are then read again, so that the cursor continues after them. All of it as JSON when absent.
   */
  present?: ((output: unknown) => string | number) | undefined
  /** Translates where an error points into the terms of the transport; JSON Pointers when absent. */
  locateError?: ((error: FieldError) => FieldError) | undefined
}

/**
 * Whose yes a call of an agent has: of the person behind its client, of who approved the request for it, or that of
 * the job which it is a part of.
 */
export type Consent =
  | { readonly by: 'client' | 'job' }
  | { readonly by: 'approval'; readonly approvalId: string; readonly askedFor: readonly AskReason[] }

/** A validated call: from a door, or of a job that goes on with one. */
export type Call = {
  readonly actor: Actor
  readonly op: Operation
  readonly input: Record<string, unknown>
  readonly trace: CallTrace
  /** Everything is rolled back. */
  readonly dryRun?: boolean
  /** The token of the plan that a change must do, else it is refused. A dry run may ask for its plan instead. */
  readonly plan?: string | undefined
  readonly watch?: CallWatch | undefined
  readonly consent?: Consent | undefined
  /** The idempotency key of a change. */
  readonly key?: string
  /** The key was generated for this call, so it is not looked up: one round trip less. */
  readonly fresh?: boolean
  /** As it came through a door. */
  readonly request?: CallRequest
  /** How far it came, for the audit trail: the rate limit let it pass, its input was valid, a change was tried. */
  readonly progress?: { limited: boolean; understood: boolean; begun: boolean }
  /** What the call would do, once that was rehearsed (`server/guards/snapshot/`). */
  planned?: unknown
  /** What its plan keeps of the records that its filter found, once that was looked up. */
  found?: FoundRecords | undefined
  /** What its handler looked up outside, before the transaction. */
  lookedUp?: unknown
}

/** A validated call of an operation that changes data, with its idempotency key. */
export type WriteCall = Call & { readonly key: string }

/**
 * The final result of a call: what is sent, and what a retry with the same key is sent again. The body of an
 * error is its problem without the request id. `needsDelivery`: whether its events need webhook deliveries.
 */
export type ExecutionResult = {
  status: number
  body: string
  /** It is the answer to an earlier call, and what its caller could see. */
  replayed?: StoredAnswer
  problem?: Problem
  needsDelivery?: boolean
  /** The body has a plan. */
  isPlanned?: boolean
  /** Of the record that a read shows. */
  version?: string | undefined
  /** Further headers of the response. */
  headers?: Readonly<Record<string, string>>
  /** The background jobs that have work now. */
  wakes?: readonly string[] | undefined
  /** The change was rolled back: what is answered in its place. */
  instead?: Instead
}

/** Answers in place of a change, which is rolled back before. Undefined: the call is made again. */
export type Instead = () => Promise<ExecutionResult | undefined>

/** A stored answer as it is about to be given again; `body` is null where the call has not ended. */
export type StoredAnswer = { readonly body: string | null; readonly view: StoredView | null }

export type Transaction = ControlledTransaction<Database>

const MAX_CLIENT_CHARACTERS = 120

/** Returns what is stored of a name that a client gives itself, without keys; null when nothing is left. */
export const normalizeClientName = (name: string | undefined): string | null =>
  redactApiKeys(name ?? '')
    .replaceAll(/\p{Cc}/gu, ' ')
    .slice(0, MAX_CLIENT_CHARACTERS)
    .toWellFormed()
    .trim() || null

export const toTrace = ({ transport, client, requestId, operation, confirm }: CallRequest): CallTrace => ({
  door: transport,
  client: normalizeClientName(client),
  requestId,
  confirmed: operation !== undefined && isConfirmed(operation, confirm),
})
