import { catalog, getInputSchema, listRoutes, type Operation, type Route } from '../../catalog/index.ts'
import { type JsonSchema, toInlinedJsonSchema } from '../../catalog/json-schema.ts'
import { getGroupOf } from '../../server/http/openapi.ts'
import { code, toAction, toDescription, toQuestion, toTitle } from './words.ts'

/** The parameters of the n8n node: of each operation its fields, with where its request has them. */

type Property = Record<string, unknown>

/** The route that takes all fields; where none does, that of `/v1/ops`. */
export const chooseRoute = (op: Operation): Route => {
  const fields = Object.keys(op.input.shape)
  const takesAll = ({ pathFields, queryFields, bodyFields }: Route): boolean =>
    fields.every((field) => [...pathFields, ...queryFields, ...bodyFields].includes(field))
  return (
    listRoutes(op).find(takesAll) ?? {
      method: 'POST',
      path: `/v1/ops/${op.name}`,
      status: 200,
      pathFields: [],
      queryFields: [],
      bodyFields: fields,
    }
  )
}

const toVerb = (op: Operation): string => op.cli.split(' ').at(-1)!

/** How a value of this schema is entered: what is not a single value is JSON. */
const toInput = (schema: JsonSchema): Property => {
  const values = schema.enum as (string | null)[] | undefined
  if (values?.every((value) => typeof value === 'string')) {
    const options = values.map((value) => ({ name: toTitle(value), value }))
    return {
      type: 'options',
      options: options.toSorted((a, b) => a.name.localeCompare(b.name)),
      default: schema.default ?? options[0]!.value,
    }
  }
  if (schema.type === 'boolean') return { type: 'boolean', default: schema.default ?? false }
  if (schema.type === 'integer' || schema.type === 'number')
    return { type: 'number', default: schema.default ?? schema.minimum ?? 0 }
  if (schema.type === 'string')
    return { type: schema.format === 'date-time' ? 'dateTime' : 'string', default: schema.default ?? '' }
  return { type: 'json', default: schema.default === undefined ? '' : JSON.stringify(schema.default) }
}

const describe = (schema: JsonSchema): string => {
  const text = String(schema.description ?? '')
  return schema.type === 'boolean' ? toQuestion(text) : toDescription(text)
}

/** JSON is entered as text, and an expression may give the value itself. */
const PARSED = '={{ typeof $value === "string" ? JSON.parse($value) : $value }}'

const toSend = (route: Route, name: string, type: unknown): Property => {
  const isQuery = route.queryFields.includes(name)
  return {
    routing: {
      send: {
        type: isQuery ? 'query' : 'body',
        property: name,
        ...(type === 'json' ? { value: PARSED } : {}),
      },
    },
  }
}

const toProperty = (route: Route, name: string, schema: JsonSchema): Property => {
  const displayName = toTitle(name)
  const description = describe(schema)
  const input = toInput(schema)
  return {
    displayName,
    name,
    ...input,
    ...(['', displayName.toLowerCase()].includes(description.toLowerCase()) ? {} : { description }),
    ...(route.pathFields.includes(name) ? {} : toSend(route, name, input.type)),
  }
}

const toUrl = (route: Route): string => {
  const path = route.path.replaceAll(
    /\{(\w+)\}/g,
    (_, name: string) => `{{encodeURIComponent($parameter["${name}"])}}`,
  )
  return path === route.path ? path : `=${path}`
}

/**
 * One page of a list, or all of them. For the next page n8n replaces parts of the request: of the address, to which it
 * adds the query, or of the body, whose other fields are given again.
 */
const listPageProperties = (route: Route): Property[] => {
  const cursor = '$response.body?.next_cursor'
  const again = route.bodyFields.map((name) => [name, `={{ $request.body.${name} }}`])
  const request = route.queryFields.includes('cursor')
    ? { url: `={{ $request.url + (${cursor} ? "?cursor=" + encodeURIComponent(${cursor}) : "") }}` }
    : { body: { ...Object.fromEntries(again), cursor: `={{ ${cursor} }}` } }
  const pagination = {
    type: 'generic',
    properties: {
      continue: '={{ !!$response.body.next_cursor && $response.body.data.length > 0 }}',
      request,
    },
  }
  return [
    {
      displayName: 'Return All',
      name: 'returnAll',
      type: 'boolean',
      default: false,
      description: 'Whether to return all results or only up to a given limit',
      routing: { send: { paginate: '={{ $value }}' }, operations: { pagination } },
    },
    {
      displayName: 'Limit',
      name: 'limit',
      type: 'number',
      displayOptions: { show: { returnAll: [false] } },
      typeOptions: { minValue: 1, maxValue: 100 },
      default: 50,
      description: 'Max number of results to return',
      ...toSend(route, 'limit', 'number'),
    },
  ]
}

/** What a change sends beside its fields. */
const listChangeProperties = (op: Operation): Property[] => [
  {
    displayName: 'Dry Run',
    name: 'dry_run',
    type: 'boolean',
    default: false,
    description: 'Whether only to check the change: every check runs, and nothing changes',
    routing: { send: { type: 'query', property: 'dry_run' } },
  },
  ...(op.confirm
    ? [
        {
          displayName: 'Confirm',
          name: 'confirm',
          type: 'boolean',
          default: false,
          description: 'Whether the change, which cannot be undone or which customers see, is wanted',
        },
      ]
    : []),
]

const toOption = (op: Operation): Property => {
  const { method } = chooseRoute(op)
  return {
    name: toTitle(toVerb(op)),
    value: op.name,
    description: toDescription(op.summary),
    action: toAction(op.summary),
    routing: {
      request: { method, url: toUrl(chooseRoute(op)) },
      ...(op.dryRun ? { send: { preSend: [code(`asChange(${op.confirm ? `'${op.confirm}'` : ''})`)] } } : {}),
      ...('next_cursor' in op.output.shape ? { output: { postReceive: [ROOT] } } : {}),
    },
  }
}

/** A page is one item for each of its records. */
const ROOT = { type: 'rootProperty', properties: { property: 'data' } }

const listFields = (op: Operation): Property[] => {
  const route = chooseRoute(op)
  const { properties, required = [] } = toInlinedJsonSchema(getInputSchema(op)) as {
    properties: Record<string, JsonSchema>
    required?: string[]
  }
  const isNeeded = (name: string): boolean => route.pathFields.includes(name) || required.includes(name)
  const isPaged = 'cursor' in properties
  const names = [...route.pathFields, ...route.queryFields, ...route.bodyFields].filter(
    (name) => name !== 'dry_run' && !(isPaged && (name === 'cursor' || name === 'limit')),
  )
  const show = { resource: [getGroupOf(op)], operation: [op.name] }
  const toShown = ({ displayName, name, type, displayOptions, ...rest }: Property): Property => ({
    displayName,
    name,
    type,
    displayOptions: { show: { ...show, ...(displayOptions as { show: object } | undefined)?.show } },
    ...rest,
  })
  const needed = names
    .filter(isNeeded)
    .map((name) => ({ ...toShown(toProperty(route, name, properties[name]!)), required: true }))
  const more = names
    .filter((name) => !isNeeded(name))
    .map((name) => toProperty(route, name, properties[name]!))
    .toSorted((a, b) => String(a.displayName).localeCompare(String(b.displayName)))
  return [
    ...needed,
    ...(isPaged ? listPageProperties(route).map(toShown) : []),
    ...(op.dryRun ? listChangeProperties(op).map(toShown) : []),
    ...(more.length > 0
      ? [
          toShown({
            displayName: 'Additional Fields',
            name: 'additionalFields',
            type: 'collection',
            placeholder: 'Add Field',
            default: {},
            options: more,
          }),
        ]
      : []),
  ]
}

/** Returns the parameters: the resource, the operations of each, and the fields of each operation. */
export const createProperties = (): Property[] => {
  const groups = Object.entries(Object.groupBy(catalog, getGroupOf))
  const resources = groups.map(([value]) => ({ name: toTitle(value.replace(/s$/, '')), value }))
  return [
    {
      displayName: 'Resource',
      name: 'resource',
      type: 'options',
      noDataExpression: true,
      options: resources.toSorted((a, b) => a.name.localeCompare(b.name)),
      default: resources[0]!.value,
    },
    ...groups.map(([group, operations]) => {
      const options = operations!
        .map(toOption)
        .toSorted((a, b) => String(a.name).localeCompare(String(b.name)))
      return {
        displayName: 'Operation',
        name: 'operation',
        type: 'options',
        noDataExpression: true,
        displayOptions: { show: { resource: [group] } },
        options,
        default: options[0]!.value,
      }
    }),
    ...catalog.flatMap(listFields),
  ]
}
