import type { z } from 'zod'
import { type Operation, type Route, getInputSchema, listRoutes, takesVersion } from '../../catalog/index.ts'
import { type FieldError, toPointer, Problem } from '../kernel/problem.ts'
import { suggestField } from '../kernel/validate.ts'
import { findNearestName } from '../nearest-name.ts'
import { repeatedParameter } from './query.ts'

/** How the value of a query field is parsed. */
type QueryKind = 'boolean' | 'number' | 'array' | 'other'

/** A route with the kinds of its query fields, computed once. */
export type RestRoute = Route & {
  readonly operation: Operation
  readonly kinds: ReadonlyMap<string, QueryKind>
  readonly onlyQuery: boolean
}

export const createRestRoutes = (operations: readonly Operation[]): RestRoute[] =>
  operations.flatMap((operation) =>
    listRoutes(operation).map((route) => ({
      ...route,
      operation,
      kinds: new Map(
        route.queryFields.map((field) => [
          field,
          getQueryKind(getInputSchema(operation).shape[field] as z.ZodType),
        ]),
      ),
      onlyQuery: route.bodyFields.length === 0,
    })),
  )

const getQueryKind = (schema: z.ZodType): QueryKind => {
  let inner = schema as unknown as { _zod: { def: { type: string; innerType?: unknown } } }
  while (inner._zod.def.innerType) inner = inner._zod.def.innerType as typeof inner
  const { type } = inner._zod.def
  return type === 'boolean' || type === 'array'
    ? type
    : type === 'number' || type === 'int'
      ? 'number'
      : 'other'
}

/**
 * Parses a query field by its kind. Text that does not parse is left for validation to report. Throws 400 for several
 * values of a field that is no list; `kind` is undefined for unknown fields, which validation reports.
 */
export const parseQueryValue = (name: string, kind: QueryKind | undefined, values: string[]): unknown => {
  if (kind === 'array' || kind === undefined) return values
  if (values.length > 1) throw repeatedParameter(name)
  const value = values[0]!
  if (kind === 'boolean') return value === 'true' ? true : value === 'false' ? false : value
  if (kind === 'number' && /^-?\d{1,15}(?:\.\d{1,15})?$/.test(value)) return Number(value)
  return value
}

/**
 * Merges path, query and body into one input, the same as `/v1/ops` takes. Throws 400 for a field in the
 * wrong place, naming the right one.
 */
export const parseRestInput = (
  route: RestRoute,
  path: Record<string, string>,
  query: URLSearchParams,
  body: unknown,
): unknown => {
  if (body !== undefined && (body === null || typeof body !== 'object' || Array.isArray(body))) return body
  const misplaced: FieldError[] = []
  const input: Record<string, unknown> = {}
  // defineProperty: a field named __proto__ must become a field, so that validation rejects it as unknown.
  const put = (name: string, value: unknown) =>
    Object.defineProperty(input, name, { value, enumerable: true, configurable: true, writable: true })
  for (const [name, value] of Object.entries(body ?? {})) {
    if (isPrecondition(route, name)) misplaced.push({ pointer: toPointer([name]), ...inIfMatch })
    else if (route.pathFields.includes(name))
      misplaced.push({
        pointer: toPointer([name]),
        code: 'misplaced_field',
        detail: 'belongs in the path',
        fix: 'Remove it from the body.',
      })
    else if (route.queryFields.includes(name))
      misplaced.push({
        pointer: toPointer([name]),
        code: 'misplaced_field',
        detail: 'belongs in the query',
        fix: `Send ?${name}=… instead.`,
      })
    else if (isFieldOfOtherRoute(route, name))
      misplaced.push(toMisplacedError({ pointer: toPointer([name]) }))
    else put(name, value)
  }
  for (const name of new Set(query.keys())) {
    if (isPrecondition(route, name)) misplaced.push({ parameter: name, ...inIfMatch })
    else if (isFieldOfOtherRoute(route, name)) misplaced.push(toMisplacedError({ parameter: name }))
    else if (route.bodyFields.includes(name))
      misplaced.push({
        parameter: name,
        code: 'misplaced_field',
        detail: 'belongs in the body',
        fix: 'Send it in the JSON body instead.',
      })
    else if (route.pathFields.includes(name))
      misplaced.push({
        parameter: name,
        code: 'misplaced_field',
        detail: 'belongs in the path',
        fix: 'Remove it from the query.',
      })
    else put(name, parseQueryValue(name, route.kinds.get(name), query.getAll(name)))
  }
  if (misplaced.length > 0)
    throw new Problem('invalid_input', summarizeMisplaced(misplaced), { errors: misplaced })
  for (const [name, value] of Object.entries(path)) input[name] = value
  return input
}

const summarizeMisplaced = (errors: readonly FieldError[]): string => {
  const [first] = errors
  if (errors.length > 1) return `${errors.length} fields are in the wrong place.`
  return `${first!.parameter ?? first!.pointer!.slice(2)} ${first!.detail}.`
}

const isPrecondition = ({ operation }: RestRoute, name: string): boolean =>
  name === 'if_version' && takesVersion(operation)

const inIfMatch = {
  code: 'misplaced_field',
  detail: 'belongs in the header If-Match',
  fix: 'Send the header If-Match: "…" with the ETag of the record.',
}

/** True for a field of the operation that this route does not take. */
const isFieldOfOtherRoute = (route: RestRoute, name: string): boolean =>
  Object.hasOwn(route.operation.input.shape, name) &&
  ![route.pathFields, route.queryFields, route.bodyFields].some((fields) => fields.includes(name))

const toMisplacedError = (where: Pick<FieldError, 'pointer' | 'parameter'>): FieldError => ({
  ...where,
  code: 'misplaced_field',
  detail: 'is not a field of this route',
  fix: "Use the operation's other route, or /v1/ops, which takes every field.",
})

/**
 * Returns a function that locates errors: path and query fields by `parameter`, body fields by `pointer`. For an
 * unknown field it suggests the fields of the same place.
 */
export const createErrorLocator =
  (route: RestRoute, query: URLSearchParams) =>
  (error: FieldError): FieldError => {
    if (error.pointer === undefined || ['misplaced_field', 'duplicate_field'].includes(error.code))
      return error
    const path = error.pointer.slice(2).split('/')
    const name = path[0]!.replaceAll('~1', '/').replaceAll('~0', '~')
    const { pointer, ...rest } = error
    if (name === 'if_version') return { header: 'If-Match', ...rest }
    const isInQuery = query.has(name)
    if (error.code === 'unknown_field' && path.length === 1)
      return {
        ...(isInQuery ? { parameter: name } : { pointer }),
        ...rest,
        fix: suggestFieldOfRoute(name, route, isInQuery),
      }
    if (!route.pathFields.includes(name) && !route.queryFields.includes(name) && !isInQuery) return error
    const isJoined =
      route.kinds.get(name) === 'array' && query.getAll(name).some((value) => value.includes(','))
    if (!isJoined) return { parameter: name, ...rest }
    const repeat = `For several values, repeat the parameter: ${name}=1&${name}=2.`
    return { parameter: name, ...rest, fix: rest.fix ? `${rest.fix} ${repeat}` : repeat }
  }

const suggestFieldOfRoute = (name: string, route: RestRoute, isInQuery: boolean): string => {
  const { queryFields, bodyFields } = route
  const [here, there, place] = isInQuery
    ? [queryFields, bodyFields, 'JSON body']
    : [bodyFields, queryFields, 'query']
  const other = findNearestName(name, here) === undefined ? findNearestName(name, there) : undefined
  return other === undefined ? suggestField(name, here) : `Did you mean ${other}, in the ${place}?`
}
