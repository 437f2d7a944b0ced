import MiniSearch from 'minisearch'
import type { OperationName } from '../catalog/index.ts'
import type { Operation } from '../catalog/operation.ts'
import type { ToolInputSchema } from './input-schema.ts'
import { operationWords } from './operation-words.ts'
import { createTool } from './tools.ts'

/** How much a word counts in each field of a document. */
const boost = { words: 5, summary: 2, name: 1, description: 0.5, fields: 0.3, fieldDescriptions: 0.2 }

/** Words that people use for what the catalog calls otherwise, wherever they would fit many operations. */
const synonyms: Readonly<Record<string, readonly string[]>> = {
  answer: ['reply'],
  campaign: ['broadcast'],
  chat: ['conversation'],
  client: ['contact'],
  colleague: ['staff'],
  customer: ['contact'],
  employee: ['staff'],
  label: ['tag'],
  lead: ['contact'],
  people: ['contact'],
  person: ['contact'],
  remove: ['delete'],
  thread: ['conversation'],
  ticket: ['conversation'],
}

/** Words that say nothing about an operation. */
const stopWords = new Set(
  (
    'a all an and any are as at be by can could do does for from get has have how i in is it me my of on or our ' +
    'please should show that the their them there this to us want was we what when where which will with you your'
  ).split(' '),
)

type Document = {
  op: Operation
  input: ToolInputSchema
}

/** Operations prepared for `searchOperations`. */
export type OperationIndex = {
  documents: readonly Document[]
  search: MiniSearch
}

/** The same for singular and plural, and for the forms of a verb, which is all that short texts need. */
const stem = (word: string): string => {
  if (word.length < 4) return word
  const bare = word.replace(/ies$/, 'y').replace(/(?:ing|ed|es|s)$/, '')
  return bare.replace(/e$/, '').replace(/(.)\1$/, '$1')
}

const synonymsOf = new Map(Object.entries(synonyms).map(([word, others]) => [stem(word), others.map(stem)]))

const splitWords = (text: string): string[] => text.match(/[\p{L}\p{N}]+/gu) ?? []

const toTerm = (word: string): string | undefined => {
  const lower = word.toLowerCase()
  return stopWords.has(lower) ? undefined : stem(lower)
}

/** Fields that every list or change has say nothing about an operation. */
const commonFields = ['dry_run', 'idempotency_key', 'limit', 'cursor', 'detail', 'fields', 'reason']

const toFields = (op: Operation, { properties }: ToolInputSchema) => {
  const own = Object.entries(properties).filter(([name]) => !commonFields.includes(name))
  return {
    name: `${op.name} ${op.cli}`,
    words: operationWords[op.name as OperationName],
    summary: op.summary,
    description: op.description,
    fields: own.map(([name]) => name).join(' '),
    fieldDescriptions: own.map(([, { description }]) => description).join(' '),
  }
}

/** Returns the index of operations; it takes a few milliseconds for each hundred of them. */
export const createOperationIndex = (operations: readonly Operation[]): OperationIndex => {
  const documents = operations.map((op): Document => ({ op, input: createTool(op).inputSchema }))
  const search = new MiniSearch({
    fields: Object.keys(boost),
    tokenize: splitWords,
    processTerm: toTerm,
    searchOptions: {
      boost,
      processTerm: (word) => {
        const term = toTerm(word)
        return term === undefined ? undefined : [term, ...(synonymsOf.get(term) ?? [])]
      },
      prefix: (term) => term.length > 3,
      fuzzy: (term) => (term.length > 4 ? 0.2 : 0),
      weights: { prefix: 0.5, fuzzy: 0.3 },
      // Texts of some ten words: how often one has a word, and how long it is, says little.
      bm25: { k: 0.6, b: 0.3, d: 0.5 },
    },
  })
  search.addAll(documents.map(({ op, input }, id) => ({ id, ...toFields(op, input) })))
  return { documents, search }
}

/** Returns the documents that fit the words of `query`, best first; before all the operation of this name. */
export const searchOperations = ({ documents, search }: OperationIndex, query: string): Document[] => {
  const named = documents.find(({ op }) => op.name === query.trim())
  const found = search.search(query).map(({ id }) => documents[id as number]!)
  return named ? [named, ...found.filter((document) => document !== named)] : found
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
