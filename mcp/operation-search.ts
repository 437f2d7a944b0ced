import type { Operation } from '../catalog/operation.ts'
import {
  createOperationSearch,
  type OperationSearch,
  type SearchedTexts,
} from '../catalog/operation-search.ts'
import type { ToolInputSchema } from './input-schema.ts'
import { createTool } from './tools.ts'

type Document = {
  op: Operation
  input: ToolInputSchema
}

/** Operations prepared for `searchOperations`. */
export type OperationIndex = {
  documents: ReadonlyMap<string, Document>
  search: OperationSearch
}

/** Fields that every list or change has say nothing about an operation. */
const commonFields = ['dry_run', 'idempotency_key', 'limit', 'cursor', 'detail', 'fields', 'reason']

const toTexts = ({ op, input: { properties } }: Document): SearchedTexts => {
  const own = Object.entries(properties).filter(([name]) => !commonFields.includes(name))
  return {
    operation: op.name,
    command: op.cli,
    words: op.words,
    summary: op.summary,
    description: op.description ?? '',
    fields: own.map(([name]) => name).join(' '),
    fieldDescriptions: own.map(([, { description = '' }]) => description).join(' '),
  }
}

/** Returns the index of operations; it takes a few milliseconds for each hundred of them. */
export const createOperationIndex = (operations: readonly Operation[]): OperationIndex => {
  const documents = operations.map((op): Document => ({ op, input: createTool(op).inputSchema }))
  return {
    documents: new Map(documents.map((document) => [document.op.name, document])),
    search: createOperationSearch(documents.map(toTexts)),
  }
}

/**
 * Returns the documents that fit the words of `query`, best first; before all the operation of this name, or those
 * whose names begin with it, such as `inbox`, as in the catalog.
 */
export const searchOperations = ({ documents, search }: OperationIndex, query: string): Document[] => {
  const name = query.trim().toLowerCase()
  const named = [...documents.keys()].filter((each) => each === name || each.startsWith(`${name}_`))
  return [...new Set([...named, ...search(query)])].map((each) => documents.get(each)!)
}

/** Returns the fields of an input on one line, the required ones with `*`: `contact_id*: string, limit: integer`. */
export const formatFields = ({ properties, required = [] }: ToolInputSchema): string =>
  Object.entries(properties)
    .filter(([name]) => name !== 'dry_run' && name !== 'idempotency_key')
    .map(([name, { type, enum: values, items }]) => {
      const shape = values ? values.join('|') : items ? `${items.type}[]` : type
      return `${name}${required.includes(name) ? '*' : ''}: ${shape}`
    })
    .join(', ')

/** Returns all about an operation that a caller needs: `describe_operation`. */
export const describeOperation = (op: Operation): Record<string, unknown> => ({
  name: op.name,
  summary: op.summary,
  ...(op.description ? { description: op.description } : {}),
  kind: op.scope === 'mcp:read' ? 'read' : 'write',
  scope: op.scope,
  ...(op.confirm ? { confirm: op.confirm } : {}),
  input_schema: createTool(op).inputSchema,
  example: op.examples[0]!.input,
  returns: Object.keys(op.output.shape),
  errors: op.errors,
})
