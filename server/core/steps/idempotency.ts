import { hash, randomUUID } from 'node:crypto'
import type { Operation } from '../../../catalog/index.ts'
import type { IdempotencyRecord } from '../../../storage/idempotency.ts'
import type { App } from '../app.ts'
import type { Actor } from '../context.ts'
import { canonicalJson } from '../cursors.ts'
import { Problem } from '../problem.ts'

/** Answers are kept for a day of business time. */
export const RECORD_TTL_MS = 24 * 60 * 60 * 1000

const FORM = /^[A-Za-z0-9._:-]{8,128}$/

const invalidKey = (code: string, detail: string, fix: string): Problem =>
  new Problem('invalid_input', detail, {
    reason: code,
    errors: [{ header: 'Idempotency-Key', code, detail, fix }],
  })

/**
 * The key of a change: the client's, bare or quoted (a structured-field string,
 * draft-ietf-httpapi-idempotency-key-header), or one made here where it is optional.
 */
export const parseIdempotencyKey = (op: Operation, given: string | undefined): string => {
  if (given === undefined) {
    if (op.idempotency !== 'required') return randomUUID()
    throw invalidKey(
      'idempotency_key_required',
      `${op.name} needs an Idempotency-Key.`,
      'Send a fresh random key, such as a UUID, and the same one on every retry.',
    )
  }
  const text = given.trim()
  const key = /^".*"$/.test(text) ? text.slice(1, -1) : text
  if (FORM.test(key)) return key
  throw invalidKey(
    'idempotency_key_invalid',
    'The Idempotency-Key must be 8 to 128 letters, digits and . _ : -',
    'Send a UUID, for example.',
  )
}

/**
 * What a key stands for: the operation and its input, in one canonical form, whatever door it came through.
 */
export const computeFingerprint = (op: Operation, input: unknown): Buffer =>
  hash('sha256', `${op.name}\n${canonicalJson(input)}`, 'buffer')

export const toRunningKey = (actor: Actor, key: string): string =>
  `${actor.workspace.id} ${actor.staff.id} ${key}`

export const stillRunningProblem = (): Problem =>
  new Problem(
    'conflict',
    'A request with this Idempotency-Key is still running. Wait, then retry with the same key.',
    { reason: 'still_running' },
    { 'Retry-After': '1' },
  )

/** A record that is there already must be of the same request. */
export const requireSameRequest = (record: IdempotencyRecord, fingerprint: Buffer): void => {
  if (Buffer.compare(Buffer.from(record.fingerprint), fingerprint) === 0) return
  throw invalidKey(
    'idempotency_key_reused',
    `This Idempotency-Key was used for a different ${record.operation} request.`,
    'Send a fresh key for a new request.',
  )
}

type Kept = { actor: Actor; op: Operation; key: string }

/** An answer as it is kept: sealed where it holds a secret, so that no copy of the database tells it. */
export const sealBody = ({ answerSealer }: App, { actor, op, key }: Kept, body: string): string =>
  op.secret ? answerSealer.seal(body, toRunningKey(actor, key)) : body

/** The answer that was kept. */
export const openBody = ({ answerSealer }: App, { actor, op, key }: Kept, kept: string): string => {
  if (!op.secret) return kept
  const body = answerSealer.open(kept, toRunningKey(actor, key))
  if (body === undefined) throw new Error(`a kept answer of ${op.name} does not open`)
  return body
}
