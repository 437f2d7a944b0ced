import type { CallInput, CallRequest } from '../kernel/call.ts'
import { normalizeConfirm } from '../kernel/confirm.ts'
import { isObject } from '../../catalog/values.ts'
import type { Operation } from '../../catalog/index.ts'
import type { App } from '../app.ts'
import { perform } from '../kernel/perform.ts'
import { type FieldError, Problem } from '../kernel/problem.ts'
import { mergeGiven } from '../kernel/merge-given.ts'
import { readIfMatch, refuseIfNoneMatch } from './etag.ts'
import { locateKeyError, unquoteIdempotencyKey } from '../kernel/idempotency.ts'
import { createRequestId } from '../ids.ts'
import { findNearestName } from '../nearest-name.ts'
import { DEFAULT_MAX_BODY_BYTES, parseJson, withBody } from './body.ts'
import {
  type DoorEvent,
  decodeParameter,
  getHeader,
  serveUnknownRoute,
  toCallRequest,
  toResponse,
  withProblems,
} from './door.ts'
import { requireDecodableQuery } from './query.ts'
import { parseQueryValue } from './rest.ts'

/**
 * Runs an operation with all fields, `idempotency_key` and `confirm` included, in the JSON body. Of the query
 * only `dry_run` counts.
 */
export const serveOps = async (app: App, event: DoorEvent): Promise<Response> => {
  if (event.url.pathname.endsWith('/')) return await serveUnknownRoute(app, event)
  const requestId = createRequestId()
  const answer = async (): Promise<Response> => {
    const name = decodeParameter(event.context.params?.name ?? '')
    const operation = app.operations.find((op) => op.name === name)
    const maxBytes = operation?.maxBytes ?? DEFAULT_MAX_BODY_BYTES
    return await withBody(app, event.req as Request, { maxBytes }, async (body) => {
      const query = event.url.searchParams
      const call = toCallRequest(app, event, {
        transport: getHeader(event, 'wcrm-door') === 'cli' ? 'cli' : 'ops',
        operation,
        requestId,
        unknown: {
          name: `operation ${name.slice(0, 100)}`,
          findSimilar: () =>
            findNearestName(
              name,
              app.operations.map((op) => op.name),
            ),
        },
        locateError: (error) =>
          locateError(query, locateKeyError(error, getHeader(event, 'idempotency-key'))),
      })
      call.readInput = async (actor) => {
        requireDecodableQuery(event)
        requireKnownQuery(query)
        refuseIfNoneMatch(operation!, getHeader(event, 'if-none-match'))
        const ifMatch = readIfMatch(operation!, getHeader(event, 'if-match'))
        const value = parseJson(await body.text(actor.key.id))
        return readFields(value, { operation: operation!, call, query, ifMatch })
      }
      return toResponse(await perform(app, call))
    })
  }
  return await withProblems(app, answer, requestId)
}

/** Throws 400 for every query parameter but `dry_run`: it would be ignored, and the call run without it. */
const requireKnownQuery = (query: URLSearchParams): void => {
  const unknown = [...new Set(query.keys())].filter((name) => name !== 'dry_run')
  if (unknown.length === 0) return
  throw new Problem('invalid_input', `/v1/ops takes no query but dry_run, not ${unknown.join(', ')}.`, {
    errors: unknown.map((parameter) => ({
      parameter,
      code: 'misplaced_field',
      detail: 'is not taken in the query',
      fix: 'Send every field in the JSON body.',
    })),
  })
}

/** Returns the input, the key and the verb, which the body gives, or the query and the headers. */
const readFields = (
  value: unknown,
  {
    operation,
    call,
    query,
    ifMatch,
  }: { operation: Operation; call: CallRequest; query: URLSearchParams; ifMatch: string | undefined },
): CallInput => {
  if (!isObject(value)) return { input: value, idempotencyKey: call.idempotencyKey, confirm: call.confirm }
  const dryRun = mergeGiven(
    {
      at: { parameter: 'dry_run' },
      value: query.has('dry_run')
        ? parseQueryValue('dry_run', 'boolean', query.getAll('dry_run'))
        : undefined,
    },
    { at: { pointer: '#/dry_run' }, value: value['dry_run'] },
  )
  const merged: Record<string, unknown> = { ...value, ...(dryRun === undefined ? {} : { dry_run: dryRun }) }
  const version = mergeGiven(
    { at: { header: 'If-Match' }, value: ifMatch },
    { at: { pointer: '#/if_version' }, value: merged['if_version'] },
  )
  if (version !== undefined) merged['if_version'] = version
  const { idempotency_key: key, confirm: verb, ...rest } = merged
  const { reason, ...others } = rest
  // A field of the operation, or why an agent makes the call.
  const isReason = typeof reason === 'string' && operation.dryRun && !('reason' in operation.input.shape)
  const fields = isReason ? others : rest
  // What is no string, or what a read does not take, is left to validation.
  const isTaken = (given: unknown): given is string =>
    operation.scope !== 'mcp:read' && typeof given === 'string'
  return {
    input: {
      ...fields,
      ...(key === undefined || isTaken(key) ? {} : { idempotency_key: key }),
      ...(verb === undefined || isTaken(verb) ? {} : { confirm: verb }),
    },
    reason: isReason
      ? mergeGiven(
          { at: { header: 'Api-Reason' }, value: call.reason || undefined },
          { at: { pointer: '#/reason' }, value: reason },
          (text) => text.trim(),
        )
      : (call.reason ?? (typeof reason === 'string' ? reason : undefined)),
    idempotencyKey: mergeGiven(
      { at: { header: 'Idempotency-Key' }, value: call.idempotencyKey },
      { at: { pointer: '#/idempotency_key' }, value: isTaken(key) ? key : undefined },
      unquoteIdempotencyKey,
    ),
    confirm: mergeGiven(
      { at: { header: 'Api-Confirm' }, value: call.confirm },
      { at: { pointer: '#/confirm' }, value: isTaken(verb) ? verb : undefined },
      normalizeConfirm,
    ),
  }
}

/** What validation finds in `dry_run` is in the query when it was given there. */
const locateError = (query: URLSearchParams, error: FieldError): FieldError => {
  if (error.pointer !== '#/dry_run' || !query.has('dry_run')) return error
  if (error.code === 'contradiction' || error.code === 'duplicate_field') return error
  const { pointer: _pointer, ...rest } = error
  return { parameter: 'dry_run', ...rest }
}
