import { commonErrors, type ErrorCode, errors } from '../../../catalog/errors.ts'
import { listRoutes, type Operation, takesVersion } from '../../../catalog/index.ts'
import { type JsonSchema, toJsonSchema } from '../../../catalog/json-schema.ts'
import { getInputSchema } from '../../../catalog/operation.ts'
import { createOpenapi, getGroupOf } from '../openapi.ts'
import type { Part } from '../openapi-parts.ts'
import { tagDescriptions } from '../openapi-tags.ts'
import { createSamples, routeOf } from './samples.ts'

/** The codes that an operation can answer, in the order of the table of errors. */
const listErrors = (op: Operation): ErrorCode[] => {
  const codes = new Set<ErrorCode>([
    ...commonErrors,
    ...op.errors,
    ...(op.confirm ? (['confirm_required'] as const) : []),
  ])
  return (Object.keys(errors) as ErrorCode[]).filter((code) => codes.has(code))
}

const describeIdempotency = (op: Operation): string => {
  if (!op.dryRun) return 'a read: repeat it as you like'
  const again = op.repeatable ? '; running it twice leaves the same state as once' : ''
  return op.idempotency === 'required'
    ? `\`Idempotency-Key\` is required, except for dry runs and test keys${again}`
    : `\`Idempotency-Key\` is optional: without one a retry may run again${again}`
}

/** The rules of an operation, as a list of Markdown. Addresses begin with `root`. */
const renderRules = (op: Operation, root: string): string =>
  [
    `- **Scope** \`${op.scope}\``,
    ...(op.confirm
      ? [`- **Confirm** \`Api-Confirm: ${op.confirm}\`, except for dry runs and test keys`]
      : []),
    `- [**Idempotency**](${root}docs/idempotency) ${describeIdempotency(op)}`,
    ...(op.dryRun ? [`- [**Dry run**](${root}docs/dry-run) \`dry_run=true\``] : []),
    ...(takesVersion(op)
      ? [
          `- [**Version**](${root}docs/lost-updates) \`If-Match\` or \`if_version\`: only if nobody has changed it`,
        ]
      : []),
    `- [**Rate limit**](${root}docs/rate-limits) class \`${op.dryRun ? 'write' : 'read'}\`` +
      (op.heavy ? '; can be an expensive read' : ''),
    ...(op.emits && op.emits.length > 0
      ? [`- [**Events**](${root}docs/events) ${op.emits.map((type) => `\`${type}\``).join(', ')}`]
      : []),
    `- **Also as** \`wcrm ${op.cli}\`, \`POST /v1/ops/${op.name}\`, MCP tool \`${op.name}\``,
    `- **Errors** ${listErrors(op)
      .map((code) => `[\`${code}\`](${root}errors/${code}) ${errors[code].status}`)
      .join(', ')}`,
  ].join('\n')

const renderFields = (op: Operation): string => {
  const { schema } = toJsonSchema(getInputSchema(op))
  const required = (schema.required ?? []) as string[]
  const rows = Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>).map(
    ([name, { description = '' }]) => {
      const about = String(description).replaceAll('|', String.raw`\|`)
      return `| \`${name}\`${required.includes(name) ? ' (required)' : ''} | ${about} |`
    },
  )
  return rows.length === 0 ? '' : `| Field | |\n|---|---|\n${rows.join('\n')}\n\n`
}

const renderOperation = (op: Operation): string => {
  const [example] = op.examples
  const routes = listRoutes(op).map(({ method, path }) => `\`${method} ${path}\``)
  const samples = example
    ? createSamples(op, example).map(
        ({ lang, source }) => `\`\`\`${lang === 'curl' || lang === 'cli' ? 'bash' : lang}\n${source}\n\`\`\``,
      )
    : []
  const answer = example
    ? `\nAnswer:\n\n\`\`\`json\n${JSON.stringify(example.output, null, 2)}\n\`\`\`\n`
    : ''
  return `## ${op.summary}

${routes.join(' · ')}

${op.description ? `${op.description}\n\n` : ''}${renderRules(op, '/')}

${renderFields(op)}${samples.join('\n\n')}
${answer}`
}

/** Returns a group of operations as Markdown. */
export const renderGroup = (group: string, operations: readonly Operation[]): string =>
  `# ${group}\n\n${tagDescriptions[group] ?? ''}\n\n${operations
    .filter((op) => getGroupOf(op) === group)
    .map(renderOperation)
    .join('\n')}`

/** The OpenAPI document with what a reader needs beside it: samples, and the rules of each operation. */
export const createReferenceDocument = (operations: readonly Operation[], publicUrl: string): Part => {
  const document = createOpenapi(operations, { publicUrl })
  const paths = document.paths as Record<string, Record<string, Part>>
  for (const op of operations)
    for (const route of listRoutes(op)) {
      const described = paths[route.path]![route.method.toLowerCase()]!
      const example =
        op.examples.find(({ input }) => routeOf(op, input as Part).path === route.path) ?? op.examples[0]
      described.description = [op.description, renderRules(op, '../')].filter(Boolean).join('\n\n')
      if (example) described['x-codeSamples'] = createSamples(op, example, route)
    }
  return document
}
