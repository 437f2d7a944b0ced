import { z } from 'zod'
import type { ErrorCode } from './errors.ts'
import type { EventTypeId } from './events.ts'
import { Plan } from './plan.ts'

export type Scope =
  | 'mcp:read'
  | 'crm:write'
  | 'messaging:write'
  | 'webhooks:write'
  | 'inbox:write'
  | 'approvals:write'
export const scopes = [
  'mcp:read',
  'crm:write',
  'messaging:write',
  'webhooks:write',
  'inbox:write',
  'approvals:write',
] as const satisfies Scope[]

/** The verb that `Api-Confirm` must carry (docs/dry-run.md). */
export type ConfirmVerb = 'submit' | 'rotate' | 'delete' | 'erase' | 'archive' | 'send'

/**
 * What a change does to what is there; clients of agents decide by it what to ask about.
 *
 * - `adds`: it adds something, or sets a state that can be set back: open or closed, paused, assigned, read.
 * - `replaces`: it replaces or removes what was stored, or ends what cannot begin again.
 * - `sends`: it sends something outside, or decides what is sent there.
 */
export type Effect = 'adds' | 'replaces' | 'sends' | 'replaces_and_sends'

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

export type Fields = z.ZodObject

/** The names of the input fields. */
type FieldName<I extends Fields> = keyof I['shape'] & string

/**
 * One of several ways to fill in an input. `needs`: the fields that it cannot do without, of which the first says that
 * it is meant; `takes`: those that go with it alone.
 */
export type Alternative<F extends string = string> = {
  readonly needs: readonly [F, ...F[]]
  readonly takes?: readonly F[]
}

/**
 * One REST route of an operation whose input has the fields `F`. A string such as `'POST /v1/groups'` is a
 * route that takes every field.
 */
type RouteSpec<F extends string = string> =
  | `${Method} /v1/${string}`
  | {
      readonly route: `${Method} /v1/${string}`
      /** The fields this route takes; all of them when absent. */
      readonly fields?: readonly F[]
      /** Fields of a route with a body that are sent in the query instead; `dry_run` always is. */
      readonly query?: readonly F[]
      /** Status of a success; 200 when absent. */
      readonly status?: 200 | 201 | 202
    }

/** The names in braces: `'GET /v1/groups/{group_id}'` has the parameter `group_id`. */
type PathParameter<R extends string> = R extends `${string}{${infer Name}}${infer Rest}`
  ? Name | PathParameter<Rest>
  : never

/** The parameters of the route `R` that are not among the fields `F`. */
type UnknownParameter<R, F extends string> = Exclude<
  PathParameter<R extends { readonly route: infer P extends string } ? P : R & string>,
  F
>

/**
 * `R` itself when each `{parameter}` of the route is one of the fields `F`. Otherwise an object, which keeps
 * the message readable: two different string literals would intersect to `never`.
 */
type CheckedRoute<R, F extends string> = [UnknownParameter<R, F>] extends [never]
  ? R
  : { readonly error: `{${UnknownParameter<R, F>}} is not an input field` }

type CheckedRoutes<R extends readonly unknown[], F extends string> = {
  readonly [K in keyof R]: CheckedRoute<R[K], F>
}

/**
 * A column of a list on a terminal. `path` names a field of the row; a dot goes into a nested one.
 */
export type TableColumn = {
  readonly path: string
  readonly title?: string
  /** A long text takes several lines instead of being cut. */
  readonly wrap?: true
  /** It is never cut: people copy it. Ids and links never are. */
  readonly whole?: true
  /** How long ago a time is, however long that is. */
  readonly age?: true
  /** The field that is shown where there is none at `path`. */
  readonly else?: string
  /** What is shown instead of these values; nothing of an empty one. */
  readonly words?: Readonly<Record<string, string>>
}

/** Records whose changes are counted, so that nobody overwrites what they have not read. */
export type VersionedKind = 'contact' | 'template' | 'quick_message' | 'saved_filter' | 'endpoint'

/** The record of an operation that has a version. */
type Versioned<I extends string, O extends string> = {
  readonly kind: VersionedKind
  /** The field of the input that holds its id. A change that has one takes `if_version`. */
  readonly by?: I
  /** Where the record is in the answer; the answer itself when absent. */
  readonly at?: O
}

/** How a list finds the id of a row by what people call it, for the command line. */
export type NameLookup = {
  /** The fields, of any operation, that take ids of its rows, each with the flag that takes a name. */
  readonly fields: Readonly<Record<string, string>>
  /** The fields of a row that hold its names. */
  readonly by: readonly string[]
  /** The field of the list's input that narrows it to rows whose name contains a text; `search` when absent. */
  readonly search?: string
  /** A field of a row that tells apart those with the same name. */
  readonly beside?: string
  /** Where `@me` is one of its rows: the operation that says who calls, and the path of the id in its answer. */
  readonly me?: { readonly operation: string; readonly path: string }
}

type Common<I extends Fields, O extends Fields, N extends string> = {
  /** The name on `/v1/ops` and MCP. */
  readonly name: N
  /** The command, `<group> <verb>`. */
  readonly cli: `${string} ${string}` | 'whoami'
  readonly routes: readonly RouteSpec<FieldName<I>>[]
  /** The API version that introduced it. */
  readonly since: string
  readonly stability: 'stable' | 'beta'
  /** One sentence, no full stop: what it does. */
  readonly summary: string
  /** What a user must know beyond the summary. */
  readonly description?: string
  /** What people call it, or want when they need it: `find_tools` and the command line search these words too. */
  readonly words: string
  /**
   * What a model must know beyond the summary, in place of `description` in lists of tools, which every
   * conversation pays for.
   */
  readonly forModels?: string
  readonly input: I
  readonly output: O
  /** Error codes beyond those common to all operations. */
  readonly errors: readonly ErrorCode[]
  readonly examples: readonly {
    readonly title: string
    readonly input: z.input<I>
    readonly output: z.input<O>
  }[]
  /** The list whose items the handler validates one by one, so that a bad one does not stop the others. */
  readonly itemwise?: FieldName<I>
  /** Ways to fill in the input, of which exactly one is taken. Fields in none of them go with each. */
  readonly alternatives?: readonly Alternative<FieldName<I>>[]
  /** Its REST route returns the bytes that the output describes, unless the client accepts only JSON. */
  readonly bytes?: true
  /**
   * How a terminal shows the rows of the list: its columns, what matters most first, since those at the end are left
   * out where they do not fit; or one message below the other, as in a chat. All fields of the row when absent.
   */
  readonly view?: readonly TableColumn[] | 'thread'
  /** Of a list: how the command line finds the ids of its rows by their names. */
  readonly names?: NameLookup
  /** The text that a person writes: on a terminal an editor opens where neither it nor another field is given. */
  readonly compose?: FieldName<I>
  /** Its output holds a secret: the copy that is stored for retries is sealed. */
  readonly secret?: true
  /**
   * It reads much to answer little, always or with one of these fields: it runs over connections for
   * expensive reads, a few at a time of each key and workspace.
   */
  readonly heavy?: true | readonly FieldName<I>[]
  /**
   * The fields of a row, or of the whole answer where it is no list, that a person would read, nested ones with
   * a dot: what a list over MCP shows unless `detail` or `fields` ask for more. Of reads alone.
   */
  readonly slim?: readonly string[]
  /** The one record that it reads, changes or deletes, where that has a version. */
  readonly versioned?: Versioned<FieldName<I>, FieldName<O>>
  /** It may leave its work to a job, which the member `job` of its answer (202) shows. */
  readonly jobs?: true
  /** Its answer may wait up to 30 seconds for something to happen. */
  readonly waits?: true
  /** The key of an AI agent needs no scope: the handler lets it touch only what is its own. */
  readonly ownByAgents?: true
  /** Largest body in bytes; 1 MiB when absent. */
  readonly maxBytes?: number
}

type Read<I extends Fields, O extends Fields, N extends string> = Common<I, O, N> & {
  readonly scope: 'mcp:read'
  readonly dryRun?: never
  readonly idempotency?: never
  readonly confirm?: never
  readonly effect?: never
  readonly asks?: never
  readonly emits?: never
}

type Write<I extends Fields, O extends Fields, N extends string, E extends readonly EventTypeId[]> = Common<
  I,
  O,
  N
> & {
  readonly scope: Exclude<Scope, 'mcp:read'>
  readonly dryRun: true
  readonly idempotency: 'optional' | 'required'
  readonly emits: E
  /**
   * The key of an AI agent asks a person, unless its policy says otherwise: always, or where one of these fields is
   * given, or has one of these values.
   */
  readonly asks?: true | { readonly [F in FieldName<I>]?: true | readonly unknown[] }
  /** Running it twice leaves the same state as running it once (the MCP hint `idempotentHint`). */
  readonly repeatable: boolean
} & (
    | { readonly confirm?: never; readonly effect: Effect }
    // The verb says what it does, unless `effect` says more.
    | { readonly confirm: ConfirmVerb; readonly effect?: Effect }
  )

/**
 * The declaration of an operation. A read with a confirm verb or events, or a write without an idempotency
 * rule, does not compile.
 */
export type Operation<
  I extends Fields = Fields,
  O extends Fields = Fields,
  N extends string = string,
  E extends readonly EventTypeId[] = readonly EventTypeId[],
> = Read<I, O, N> | Write<I, O, N, E>

/**
 * Types a declaration; changes nothing. Names of fields (`fields`, `query`, `itemwise` and the parameters in
 * paths) that are not in the input do not compile.
 */
export const defineOperation = <
  const N extends string,
  I extends Fields,
  O extends Fields,
  const R extends readonly RouteSpec[],
  const E extends readonly EventTypeId[] = readonly [],
>(
  declared: Operation<I, O, N, E> & { readonly routes: R & CheckedRoutes<R, FieldName<I>> },
): Operation<I, O, N, E> => declared

const DryRun = z
  .boolean()
  .optional()
  .describe('Dry run: every check runs, nothing changes, and the response has `dry_run: true`.')

/** A version, several with commas between them, or `*`. */
const PRECONDITION = /^(?:\*|\d{1,10}(?:, ?\d{1,10}){0,9})$/

const IfVersion = z
  .string()
  .regex(PRECONDITION, 'must be the version of a record, or *')
  .optional()
  .describe(
    'The `version` that you read: if the record changed since, the call is refused (412). `*`: any ' +
      'version.',
  )

/** Whether a change takes `if_version`: it changes or deletes exactly one record that has a version. */
export const takesVersion = (op: Operation): boolean => op.dryRun === true && op.versioned?.by !== undefined

/** Whether the answer has the one record that the operation reads or changes, with its version. */
export const showsVersion = ({ versioned, output }: Operation): boolean =>
  versioned?.by !== undefined && (versioned.at ?? 'version') in output.shape

/**
 * Returns the schema of the whole input: the operation's own fields, plus `dry_run` where it changes data, and
 * `if_version` where it changes one record that has a version. Unknown fields are rejected.
 */
export const getInputSchema = (op: Operation): Fields =>
  op.dryRun
    ? op.input.extend({ ...(takesVersion(op) ? { if_version: IfVersion } : {}), dry_run: DryRun }).strict()
    : op.input.strict()

/** Returns the schema of the whole output, with the `dry_run` mark of a dry run. */
export const getOutputSchema = (op: Operation): Fields =>
  op.dryRun
    ? op.output.extend({
        dry_run: z.literal(true).optional().describe('Present on a dry run: nothing was changed.'),
      })
    : op.output

/** The same with what a dry run answers that was asked for its plan. */
export const getPlannedSchema = (op: Operation): Fields =>
  op.dryRun ? getOutputSchema(op).extend({ plan: Plan.optional() }) : getOutputSchema(op)

/** Whether the records of an operation are named, or those that a filter finds. */
export const takesFilter = ({ input: { shape } }: Operation): boolean => 'all' in shape

/** Whether those of a call are what a filter finds, which its plan keeps. */
export const isByFilter = (op: Operation, input: Readonly<Record<string, unknown>>): boolean =>
  takesFilter(op) && (input['filter'] ?? input['saved_filter_id']) !== undefined

/** A REST route with its fields sorted by where they are sent. */
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
 * Returns the routes with their fields sorted: those in braces in the path, the others of `GET` and `DELETE`
 * in the query, the rest in the body.
 */
export const listRoutes = (op: Operation): Route[] =>
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
