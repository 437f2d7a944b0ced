import assert from 'node:assert/strict'
import { z } from 'zod'
import { catalog, listRoutes } from '../../catalog/index.ts'

type Json = any

/** The names of the examples of an operation. */
const listExampleNames = (parameters: readonly Json[]): string[] => [
  ...new Set(parameters.flatMap(({ examples }) => Object.keys(examples ?? {}))),
]

/** Returns the address of an example, as a generated client would build it. */
const toAddress = (path: string, parameters: readonly Json[], example: string): string => {
  const valueOf = (parameter: Json): unknown => parameter.examples?.[example]?.value ?? parameter.example
  const query = new URLSearchParams()
  for (const parameter of parameters) {
    const value = valueOf(parameter)
    if (parameter.in === 'path') {
      assert.ok(value !== undefined, `${path} has no example of ${parameter.name} in ${example}`)
      path = path.replace(`{${parameter.name}}`, encodeURIComponent(String(value)))
    } else if (value !== undefined)
      for (const item of [value].flat()) query.append(parameter.name, String(item))
  }
  return query.size > 0 ? `${path}?${query.toString()}` : path
}

/**
 * Requires that every GET of the OpenAPI document, with the parameters of each of its examples, answers 200 with what
 * its schema describes.
 */
export const requireReadableExamples = async (url: string, apiKey: string): Promise<void> => {
  const document: Json = await (await fetch(`${url}/openapi.json`)).json()
  const $defs = JSON.parse(
    JSON.stringify(document.components.schemas).replaceAll('#/components/schemas/', '#/$defs/'),
  ) as Json
  const headers = { Authorization: `Bearer ${apiKey}`, Accept: 'application/json' }
  let read = 0
  for (const [path, { get }] of Object.entries<Json>(document.paths)) {
    if (!get) continue
    const parameters = get.parameters.filter((parameter: Json) => ['path', 'query'].includes(parameter.in))
    const reference: string = get.responses['200'].content['application/json'].schema.$ref
    const schema = z.fromJSONSchema({ ...$defs[reference.split('/').at(-1)!], $defs })
    const names = listExampleNames(parameters)
    for (const name of names.length > 0 ? names : ['none']) {
      const address = toAddress(path, parameters, name)
      const response = await fetch(url + address, { headers })
      const answer: unknown = await response.json()
      assert.equal(response.status, 200, `${address}: ${JSON.stringify(answer)}`)
      const { error } = schema.safeParse(answer)
      assert.ok(!error, `${address}: ${error && z.prettifyError(error)}`)
    }
    read++
  }
  const routes = catalog.flatMap(listRoutes).filter(({ method }) => method === 'GET')
  assert.equal(read, routes.length)
}
