import {
  type ApiVersionId,
  apiVersions,
  currentVersion,
  type Operation,
  versions,
} from '../../../catalog/index.ts'
import { createPastOperation, type PastOperation } from '../../../catalog/past-operation.ts'
import type { ApiVersion } from '../../../catalog/versions.ts'
import type { Actor, Transport } from '../context.ts'
import { type FieldError, Problem } from '../problem.ts'
import { validate } from './validate.ts'

const isServed = (version: string): version is ApiVersionId =>
  (apiVersions as readonly string[]).includes(version)

/**
 * Returns the requested API version, or the one that the key is pinned to; the oldest, when that is served no more.
 * Tools of MCP are described as they are, so that they have the current version alone. Throws 400 for an unknown one.
 */
export const resolveApiVersion = (
  actor: Actor,
  requested: string | undefined,
  transport: Transport,
): ApiVersionId => {
  if (requested !== undefined && !isServed(requested))
    throw new Problem('invalid_input', `There is no API version "${requested.slice(0, 40)}".`, {
      reason: 'unknown_version',
      errors: [
        {
          header: 'Api-Version',
          code: 'unknown_version',
          detail: 'must be a listed version',
          allowed: apiVersions,
          fix: `Send ${currentVersion}, or leave the header out.`,
        },
      ],
    })
  if (transport === 'mcp') return currentVersion
  const version = requested ?? actor.key.apiVersion
  return isServed(version) ? version : apiVersions[0]!
}

const toSeconds = (time: string): number => Math.floor(Date.parse(time) / 1000)

/** Returns the headers that name the version of a response, and announce its end (RFC 9745, RFC 8594). */
export const createVersionHeaders = (version: ApiVersionId, publicUrl: string): Record<string, string> => {
  const { deprecatedAt, sunsetAt }: ApiVersion = versions.find(({ id }) => id === version)!
  return {
    'Api-Version': version,
    ...(deprecatedAt && {
      Deprecation: `@${toSeconds(deprecatedAt)}`,
      Link: `<${publicUrl}/docs/api-versions>; rel="deprecation"; type="text/html"`,
    }),
    ...(sunsetAt && { Sunset: new Date(sunsetAt).toUTCString() }),
  }
}

const pastOperations = new WeakMap<Operation, Map<ApiVersionId, PastOperation | undefined>>()

/** Returns an operation as an earlier version had it; undefined where it is the same now. */
export const findPastOperation = (op: Operation, version: ApiVersionId): PastOperation | undefined => {
  if (!op.changes || version === currentVersion) return undefined
  const made = pastOperations.get(op) ?? new Map<ApiVersionId, PastOperation | undefined>()
  pastOperations.set(op, made)
  if (!made.has(version)) made.set(version, createPastOperation(op, version))
  return made.get(version)
}

/** Names the field that an error points at as the caller's version does. */
export const toPastError = ({ toPastName }: PastOperation, error: FieldError): FieldError => {
  const [, field, rest] = /^#\/([^/]+)(.*)$/s.exec(error.pointer ?? '') ?? []
  return field === undefined ? error : { ...error, pointer: `#/${toPastName(field)}${rest}` }
}

/** Returns the body of a success as the caller's version has it. */
export const toPastBody = ({ toPastOutput }: PastOperation, body: string): string =>
  JSON.stringify(toPastOutput(JSON.parse(body) as Record<string, unknown>))

/** Checks the input as the caller's version has it. Returns that of the current version. */
export const validateAt = (op: Operation, past: PastOperation | undefined, raw: unknown) => {
  if (!past) return validate(op, raw)
  const { input, dryRun } = validate(past.operation, raw)
  return { input: past.toCurrentInput(input), dryRun }
}
