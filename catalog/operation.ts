import { z } from 'zod'
import type { ErrorCode } from './errors.ts'
import type { EventTypeId } from './events.ts'

export type Scope = 'mcp:read' | 'crm:write' | 'messaging:write' | 'webhooks:write' | 'inbox:write'
export const scopes = [
  'mcp:read',
  'crm:write',
  'messaging:write',
  'webhooks:write',
  'inbox:write',
] as const satisfies Scope[]

/** The verb that `Api-Confirm` must carry (spec "Common rules", contract 1). */
type ConfirmVerb = 'submit' | 'rotate' | 'delete' | 'archive' | 'send'

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** One REST route of an operation. A string `'POST /v1/groups'` is the route that takes every field. */
type RouteSpec =
  | `${Method} /v1/${string}`
  | {
      readonly route: `${Method} /v1/${string}`
      /** The fields this route takes; all of them when absent. */
      readonly fields?: readonly string[]
      /** Fields of a route with a body that travel in the query instead; `dry_run` always does. */
      readonly query?: readonly string[]
      /** Status of a success; 200 when absent. */
      readonly status?: 200 | 201 | 202
    }

export type Fields = z.ZodObject

type Common<I extends Fields, O extends Fields> = {
  /** The name on `/v1/ops` and MCP. */
  readonly name: string
  /** The command, `<group> <verb>`. */
  readonly cli: `${string} ${string}` | 'whoami'
  readonly routes: readonly RouteSpec[]
  /** The API version that introduced it. */
  readonly since: string
  readonly stability: 'stable' | 'beta'
  /** One sentence, no full stop: what it does. */
  readonly summary: string
  /** What a user must know beyond the summary. */
  readonly description?: string
  readonly input: I
  readonly output: O
  /** Codes it can answer beyond those common to all. */
  readonly errors: readonly ErrorCode[]
  readonly examples: readonly {
    readonly title: string
    readonly input: z.input<I>
    readonly output: z.input<O>
  }[]
  /** The list whose items the handler checks one by one, so that a bad one does not stop the others. */
  readonly itemwise?: string
  /** Its REST route answers the bytes that the output describes, unless the client accepts JSON alone. */
  readonly bytes?: true
  /** Its answer holds a secret: what is kept of it for retries is sealed. */
  readonly secret?: true
  /** Largest body in bytes; 1 MiB when absent. */
  readonly maxBytes?: number
}

type Read<I extends Fields, O extends Fields> = Common<I, O> & {
  readonly scope: 'mcp:read'
  readonly dryRun?: never
  readonly idempotency?: never
  readonly confirm?: never
  readonly emits?: never
}

type Write<I extends Fields, O extends Fields> = Common<I, O> & {
  readonly scope: Exclude<Scope, 'mcp:read'>
  readonly dryRun: true
  readonly idempotency: 'optional' | 'required'
  readonly confirm?: ConfirmVerb
  readonly emits: readonly EventTypeId[]
  /** Running it twice leaves the same state as running it once (the MCP hint `idempotentHint`). */
  readonly repeatable: boolean
}

/**
 * What can be asked of the service. A read with a confirm verb, or a write without an idempotency rule,
 * does not compile.
 */
export type Operation<I extends Fields = Fields, O extends Fields = Fields> = Read<I, O> | Write<I, O>

/** Types an operation, its name among it; changes nothing. */
export const operation = <const N extends string, I extends Fields, O extends Fields>(
  declared: Operation<I, O> & { readonly name: N },
): Operation<I, O> & { readonly name: N } => declared

const DryRun = z
  .boolean()
  .optional()
  .describe('Rehearse: every check runs, nothing changes, and the answer carries `dry_run: true`.')

/**
 * The whole input of an operation: its own fields, plus `dry_run` where it changes data. Unknown fields are
 * refused.
 */
export const inputOf = (op: Operation): Fields =>
  op.dryRun ? op.input.extend({ dry_run: DryRun }).strict() : op.input.strict()

/** The whole output of an operation, with the `dry_run` mark of a rehearsal. */
export const outputOf = (op: Operation): Fields =>
  op.dryRun
    ? op.output.extend({
        dry_run: z.literal(true).optional().describe('Present on a rehearsal: nothing was changed.'),
      })
    : op.output

/** A REST route with its fields sorted by where they travel. */
export type Route = {
  readonly method: Method
  /** With `{parameters}` in braces. */
  readonly path: string
  readonly status: 200 | 201 | 202
  readonly pathFields: readonly string[]
  readonly queryFields: readonly string[]
  readonly bodyFields: readonly string[]
}

/**
 * Sorts the fields of each route: path by its braces, `GET` and `DELETE` in the query, the rest in the
 * body.
 */
export const routesOf = (op: Operation): Route[] =>
  op.routes.map((spec) => {
    const {
      route,
      fields,
      query = [],
      status = 200,
    } = typeof spec === 'string' ? ({ route: spec } as Exclude<RouteSpec, string>) : spec
    const [method, path] = route.split(' ') as [Method, string]
    const pathFields = [...path.matchAll(/\{(\w+)\}/g)].map((m) => m[1]!)
    const rest = (fields ?? Object.keys(op.input.shape)).filter((f) => !pathFields.includes(f))
    const inQuery = method === 'GET' || method === 'DELETE' ? rest : rest.filter((f) => query.includes(f))
    return {
      method,
      path,
      status,
      pathFields,
      queryFields: op.dryRun ? [...inQuery, 'dry_run'] : inQuery,
      bodyFields: rest.filter((f) => !inQuery.includes(f)),
    }
  })
