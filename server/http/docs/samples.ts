import { readFileSync } from 'node:fs'
import { listRoutes, type Operation, type Route } from '../../../catalog/index.ts'
import { lazy } from '../../lazy.ts'

/**
 * How an example of the catalog is called: with curl, TypeScript, Python and the command line. Changes are dry runs,
 * so that a sample can be copied and run. They read the server and the key from `WCRM_URL` and `WCRM_API_KEY`.
 */

type Input = Readonly<Record<string, unknown>>
export type Sample = { lang: 'curl' | 'typescript' | 'python' | 'cli'; label: string; source: string }

/** The route that an example takes: the first that has a place for all of its fields. */
export const routeOf = (op: Operation, input: Input): Route => {
  const routes = listRoutes(op)
  const fields = Object.keys(input)
  return (
    routes.find((route) =>
      fields.every((field) =>
        [...route.pathFields, ...route.queryFields, ...route.bodyFields].includes(field),
      ),
    ) ?? routes[0]!
  )
}

/** What an example sends by a route. */
export const createRequest = (op: Operation, route: Route, input: Input) => {
  const query = route.queryFields.flatMap((name) =>
    input[name] === undefined || name === 'dry_run'
      ? []
      : [input[name]].flat().map((value) => [name, String(value)] as [string, string]),
  )
  const body = Object.fromEntries(
    route.bodyFields.filter((name) => name in input).map((name) => [name, input[name]]),
  )
  return {
    path: route.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(input[name]))),
    query: op.dryRun ? [...query, ['dry_run', 'true'] as [string, string]] : query,
    body: Object.keys(body).length > 0 ? body : undefined,
  }
}

const quoteShell = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`

const toSearch = (query: readonly (readonly [string, string])[]): string =>
  query.length === 0 ? '' : `?${new URLSearchParams(query.map(([name, value]) => [name, value]))}`

const renderCurl = (op: Operation, route: Route, input: Input): string => {
  const { path, query, body } = createRequest(op, route, input)
  // What curl sends by itself.
  const isDefault = route.method === (body ? 'POST' : 'GET')
  const method = isDefault ? '' : `-X ${route.method} `
  return [
    `curl ${method}"$WCRM_URL${path}${toSearch(query)}"`,
    '-H "Authorization: Bearer $WCRM_API_KEY"',
    ...(op.bytes ? ["-H 'Accept: application/json'"] : []),
    ...(body
      ? ["-H 'Content-Type: application/json'", `-d ${quoteShell(JSON.stringify(body, null, 2))}`]
      : []),
  ].join(' \\\n  ')
}

/** A literal of JavaScript: JSON without quotes around names. */
const toLiteral = (value: unknown): string =>
  JSON.stringify(value, null, 2)
    .replaceAll(/^(\s*)"([A-Za-z_]\w*)":/gm, '$1$2:')
    .replaceAll(/"((?:[^"\\']|\\.)*)"/g, (text, inner: string) =>
      inner.includes('\\') ? text : `'${inner}'`,
    )

const toCamelCase = (name: string): string =>
  name.replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase())

const renderTypescript = (op: Operation, input: Input): string => {
  const method = op.cli.split(' ').map(toCamelCase).join('.')
  const values = [
    ...(Object.keys(input).length > 0 || op.dryRun ? [toLiteral(input)] : []),
    ...(op.dryRun ? ['{ dryRun: true }'] : []),
  ]
  return `import { createClient } from '@wcrm/client'

const wcrm = createClient({ url: process.env.WCRM_URL!, apiKey: process.env.WCRM_API_KEY! })
const answer = await wcrm.${method}(${values.join(', ')})
console.log(answer)`
}

/** A literal of Python. */
const toPython = (value: unknown, indent = ''): string => {
  const inner = `${indent}    `
  if (value === null) return 'None'
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (Array.isArray(value))
    return value.every((item) => typeof item !== 'object')
      ? `[${value.map((item) => toPython(item)).join(', ')}]`
      : `[\n${value.map((item) => `${inner}${toPython(item, inner)},\n`).join('')}${indent}]`
  if (typeof value === 'object') {
    const entries = Object.entries(value as object)
    const lines = entries.map(
      ([name, item]) => `${inner}${JSON.stringify(name)}: ${toPython(item, inner)},\n`,
    )
    return entries.length === 0 ? '{}' : `{\n${lines.join('')}${indent}}`
  }
  return JSON.stringify(value)
}

const renderPython = (op: Operation, route: Route, input: Input): string => {
  const { path, query, body } = createRequest(op, route, input)
  const headers = {
    ...(body ? { 'Content-Type': 'application/json' } : {}),
    ...(op.bytes ? { Accept: 'application/json' } : {}),
  }
  return `import json, os
from urllib.request import Request, urlopen

request = Request(
    os.environ["WCRM_URL"] + "${path}${toSearch(query)}",
    method="${route.method}",
    headers={"Authorization": "Bearer " + os.environ["WCRM_API_KEY"]${Object.entries(headers)
      .map(([name, value]) => `, "${name}": "${value}"`)
      .join('')}},${body ? `\n    data=json.dumps(${toPython(body, '    ')}).encode(),` : ''}
)
with urlopen(request) as response:
    print(json.load(response))`
}

type CommandExample = { title: string; command: string }

/** The examples of the commands by operation: the manifest of the command line knows its flags. */
const readCommands = lazy(() => {
  const manifest = JSON.parse(
    readFileSync(new URL('../../../cli/manifest.json', import.meta.url), 'utf8'),
  ) as { commands: { operation: string; examples: CommandExample[] }[] }
  // Some operations have several commands.
  return Map.groupBy(manifest.commands, ({ operation }) => operation)
})

const renderCommand = (op: Operation, title: string): string | undefined => {
  const found = readCommands()
    .get(op.name)
    ?.flatMap(({ examples }) => examples)
    .find((example) => example.title === title)
  if (!found) return undefined
  return op.dryRun ? `${found.command.replace(/ --confirm \w+$/, '')} --dry-run` : found.command
}

/** Returns the samples of an example of an operation. */
export const createSamples = (
  op: Operation,
  { title, input }: { title: string; input: unknown },
  route: Route = routeOf(op, input as Input),
): Sample[] => {
  const command = renderCommand(op, title)
  return [
    { lang: 'curl', label: 'curl', source: renderCurl(op, route, input as Input) },
    { lang: 'typescript', label: 'TypeScript', source: renderTypescript(op, input as Input) },
    { lang: 'python', label: 'Python', source: renderPython(op, route, input as Input) },
    ...(command ? [{ lang: 'cli' as const, label: 'CLI', source: command }] : []),
  ]
}
