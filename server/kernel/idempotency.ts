import type { StoredView, IdempotencyRecord } from '../../storage/access/idempotency.ts'
import type { Reason } from '../../catalog/reasons.ts'
import { hash, randomUUID } from 'node:crypto'
import type { Operation } from '../../catalog/index.ts'
import type { SealedResponse } from '../../storage/access/secrets.ts'
import { containsApiKey } from '../api-keys.ts'
import type { Kernel } from './kernel.ts'
import type { Actor } from './context.ts'
import { canonicalJson } from './cursors.ts'
import { type FieldError, Problem } from './problem.ts'

/** Responses are stored for one day of real time. */
export const RECORD_TTL_MS = 24 * 60 * 60 * 1000

const KEY_PATTERN = /^[A-Za-z0-9._:-]{8,128}$/

/** Under which approved calls of AI agents run, and what their people refused is kept. */
const RESERVED_KEY = /^(?:approval-\d+|declined-\d+-[\da-f]{64})$/

const createKeyProblem = (code: Reason, detail: string, fix: string): Problem =>
  new Problem('invalid_input', detail, {
    reason: code,
    errors: [{ header: 'Idempotency-Key', code, detail, fix }],
  })

/** Locates an error about the key where it is a field of the call, unless the call gave it in the header. */
export const locateKeyError = (error: FieldError, header: string | null | undefined): FieldError => {
  if (error.header !== 'Idempotency-Key' || typeof header === 'string') return error
  const { header: _header, ...rest } = error
  return { pointer: '#/idempotency_key', ...rest }
}

/** Returns a key without the quotes of a structured-field string. */
export const unquoteIdempotencyKey = (given: string): string => {
  const text = given.trim()
  return /^".*"$/.test(text) ? text.slice(1, -1) : text
}

/**
 * Returns the key of a change: the client's, bare or quoted (a structured-field string,
 * draft-ietf-httpapi-idempotency-key-header), or a generated one when it is absent and optional. Throws 400.
 */
export const parseIdempotencyKey = (op: Operation, given: string | undefined): string => {
  if (given === undefined) {
    if (op.idempotency !== 'required') return randomUUID()
    throw createKeyProblem(
      'idempotency_key_required',
      `${op.name} needs an Idempotency-Key.`,
      'Send a fresh random key, such as a UUID, and the same one on every retry.',
    )
  }
  const key = unquoteIdempotencyKey(given)
  if (containsApiKey(key))
    throw createKeyProblem(
      'idempotency_key_invalid',
      'The Idempotency-Key is an API key, which must not be stored.',
      'Send a UUID, for example, and the API key in the Authorization header.',
    )
  if (RESERVED_KEY.test(key))
    throw createKeyProblem(
      'idempotency_key_invalid',
      'Keys of this form are kept for calls that a person decided.',
      'Send a UUID, for example.',
    )
  if (KEY_PATTERN.test(key)) return key
  throw createKeyProblem(
    'idempotency_key_invalid',
    'The Idempotency-Key must be 8 to 128 letters, digits and . _ : -',
    'Send a UUID, for example.',
  )
}

/** Returns a hash of the operation and its input in canonical form; the same for every door. */
export const computeFingerprint = (op: Operation, input: unknown): Buffer =>
  hash('sha256', `${op.name}\n${canonicalJson(input)}`, 'buffer')

const toRecordName = (workspaceId: string, staffId: string, key: string): string =>
  `${workspaceId} ${staffId} ${key}`

export const toRunningKey = (actor: Actor, key: string): string =>
  toRecordName(actor.workspace.id, actor.staff.id, key)

export const stillRunningProblem = (): Problem =>
  new Problem(
    'conflict',
    'A request with this Idempotency-Key is still running. Wait, then retry with the same key.',
    { reason: 'still_running' },
    { 'Retry-After': '1' },
  )

/**
 * Throws 409 when an AI agent sends the idempotency key of a call that another client of its staff member made: whether
 * the requests are the same would tell what is in the other one, such as a hidden phone.
 */
export const requireOwnRecord = (actor: Actor, stored: StoredView | null): void => {
  if (!actor.key.agent || stored?.agent === actor.key.familyId) return
  throw new Problem(
    'conflict',
    'This Idempotency-Key was used before with another API key. Send a new one.',
    { reason: 'idempotency_key_reused' },
  )
}

/** Throws 400 when the record with this key is of a different request. */
export const requireSameRequest = (record: IdempotencyRecord, fingerprint: Buffer): void => {
  if (Buffer.compare(Buffer.from(record.fingerprint), fingerprint) === 0) return
  throw keyReusedProblem(record.operation)
}

export const keyReusedProblem = (operation: string): Problem =>
  createKeyProblem(
    'idempotency_key_reused',
    `This Idempotency-Key was used for a different ${operation} request.`,
    'Send a fresh key for a new request.',
  )

type StoredResponseKey = { actor: Actor; op: Operation; key: string }

/** Returns a response body as it is stored: sealed when it holds a secret, so that no copy reveals it. */
export const sealBody = (
  { responseSealer }: Kernel,
  { actor, op, key }: StoredResponseKey,
  body: string,
): string => (op.secret ? responseSealer.seal(body, toRunningKey(actor, key)) : body)

/** Returns the body of a stored response. */
export const openBody = (
  { responseSealer }: Kernel,
  { actor, op, key }: StoredResponseKey,
  stored: string,
): string => {
  if (!op.secret) return stored
  const body = responseSealer.open(stored, toRunningKey(actor, key))
  if (body === undefined)
    throw new Problem(
      'upstream_unavailable',
      'The answer was sealed with a secret that this server was not given. Nothing was done again. Restart the ' +
        'server with the WCRM_SECRET of the others, then retry with the same Idempotency-Key.',
      { reason: 'secret_outdated' },
    )
  return body
}

/**
 * Returns a stored body sealed again by the current secret; undefined when none of our secrets opens it.
 */
export const resealBody = (
  { responseSealer }: Pick<Kernel, 'responseSealer'>,
  { workspace_id, staff_id, key, body: stored }: SealedResponse,
): string | undefined => {
  const name = toRecordName(workspace_id, staff_id, key)
  const body = responseSealer.open(stored, name)
  return body === undefined ? undefined : responseSealer.seal(body, name)
}
