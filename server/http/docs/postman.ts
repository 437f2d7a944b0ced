import { listRoutes, type Operation } from '../../../catalog/index.ts'
import { getGroupOf } from '../openapi.ts'
import { tagDescriptions } from '../openapi-tags.ts'
import { createRequest, routeOf } from './samples.ts'

const createItem = (op: Operation, route: ReturnType<typeof routeOf>) => {
  const example =
    op.examples.find(
      ({ input }) => routeOf(op, input as object as Record<string, unknown>).path === route.path,
    ) ?? op.examples[0]
  const input = (example?.input ?? {}) as Record<string, unknown>
  const { query, body } = createRequest(op, route, input)
  // With parameters as Postman writes them: `/v1/contacts/:contact_id`.
  const path = route.path.replaceAll(/\{(\w+)\}/g, ':$1')
  const search = query.map(([key, value]) => `${key}=${encodeURIComponent(value)}`).join('&')
  return {
    name: op.summary,
    request: {
      method: route.method,
      description: [op.description, `Scope \`${op.scope}\`.`].filter(Boolean).join('\n\n'),
      header: [
        ...(body ? [{ key: 'Content-Type', value: 'application/json' }] : []),
        ...(op.dryRun ? [{ key: 'Idempotency-Key', value: '{{$guid}}' }] : []),
        // Nobody confirms by accepting what is filled in.
        ...(op.confirm ? [{ key: 'Api-Confirm', value: op.confirm, disabled: true }] : []),
      ],
      url: {
        raw: `{{baseUrl}}${path}${search === '' ? '' : `?${search}`}`,
        host: ['{{baseUrl}}'],
        path: path.slice(1).split('/'),
        query: query.map(([key, value]) => ({ key, value })),
        variable: route.pathFields.map((key) => ({ key, value: String(input[key] ?? '') })),
      },
      ...(body
        ? {
            body: {
              mode: 'raw',
              raw: JSON.stringify(body, null, 2),
              options: { raw: { language: 'json' } },
            },
          }
        : {}),
    },
  }
}

/**
 * Returns all routes as a collection of Postman (schema 2.1), with the examples of the catalog. Changes are dry runs
 * until `dry_run` is taken out.
 */
export const createPostmanCollection = (operations: readonly Operation[], publicUrl: string) => ({
  info: {
    name: 'wcrm',
    description: 'Set the variable `apiKey`. Changes are dry runs: take `dry_run` out to make them.',
    schema: 'https://schema.getpostman.com/json/collection/v2.1.0/collection.json',
  },
  auth: { type: 'bearer', bearer: [{ key: 'token', value: '{{apiKey}}', type: 'string' }] },
  variable: [
    { key: 'baseUrl', value: publicUrl },
    { key: 'apiKey', value: '' },
  ],
  item: [...Map.groupBy(operations, getGroupOf)].map(([name, members]) => ({
    name,
    description: tagDescriptions[name],
    item: members.flatMap((op) => listRoutes(op).map((route) => createItem(op, route))),
  })),
})
