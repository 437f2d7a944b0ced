import { Cursor, Limit } from '../catalog/fields.ts'
import { type Operation, takesFilter, takesVersion } from '../catalog/operation.ts'
import { getWriteHints } from './write-hints.ts'
import { type ToolInputSchema, type ToolSchema, toToolInput } from './input-schema.ts'
import { listViewArguments } from './view.ts'

/**
 * A tool as `tools/list` shows it. It has no `outputSchema`: every conversation would pay for it, and an answer
 * may be a page of short rows, or the request for a person's approval.
 */
export type Tool = {
  name: string
  title: string
  description: string
  inputSchema: ToolInputSchema
  annotations: {
    readOnlyHint: boolean
    destructiveHint: boolean
    idempotentHint: boolean
    openWorldHint: boolean
  }
}

const dryRun: ToolSchema = { type: 'boolean', description: 'True: check and answer, change nothing.' }

/** Its form is in the spec, "Common rules"; here it must only be short. */
const idempotencyKey: ToolSchema = {
  type: 'string',
  description: 'For a retry: the same key as before. Made when absent.',
}

const ifVersion: ToolSchema = {
  type: 'string',
  description: '`version` that you read: changed since, 412.',
}

const plan: ToolSchema = {
  type: 'string',
  description: '`show` with `dry_run` answers `plan.token`; that token: exactly the records of that dry run.',
}

const reason: ToolSchema = { type: 'string', description: 'Why, for the person who approves it.' }

/** What nearly every tool repeats, in few words: each of them is paid for in every conversation. */
const shortDescriptions: Record<string, { long: string | undefined; short: string }> = {
  cursor: { long: Cursor.description, short: '`next_cursor` of the page before, with the same filters.' },
  limit: { long: Limit.description, short: 'Rows, 1 to 100; 25 when absent.' },
}

const shorten = (properties: Record<string, ToolSchema>): Record<string, ToolSchema> =>
  Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => {
      const text = shortDescriptions[name]
      return [
        name,
        text && schema.description === text.long ? { ...schema, description: text.short } : schema,
      ]
    }),
  )

/** Returns the tool of an operation. */
export const createTool = (op: Operation): Tool => {
  const { properties, ...input } = toToolInput(op)
  return {
    name: op.name,
    title: op.summary,
    description: describe(op),
    inputSchema: {
      ...input,
      properties: {
        ...shorten(properties),
        ...listViewArguments(op),
        ...(takesVersion(op) ? { if_version: ifVersion } : {}),
        ...(op.dryRun ? { dry_run: dryRun, idempotency_key: idempotencyKey } : {}),
        ...(takesFilter(op) ? { plan } : {}),
        ...(op.confirm && !('reason' in op.input.shape) ? { reason } : {}),
      },
    },
    annotations: toHints(op),
  }
}

const describe = (op: Operation): string => {
  const consent = op.confirm
    ? `Needs the consent of a person (\`${op.confirm}\`); a \`dry_run\` does not.`
    : undefined
  return [`${op.summary}.`, op.forModels ?? op.description, consent].filter(Boolean).join(' ')
}

/** Returns all four hints, always: their defaults are the opposite of most operations. */
const toHints = (op: Operation): Tool['annotations'] =>
  op.scope === 'mcp:read'
    ? { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false }
    : { readOnlyHint: false, ...getWriteHints(op), idempotentHint: op.repeatable }
