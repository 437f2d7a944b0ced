import type { OperationName } from '../catalog/index.ts'
import type { Operation } from '../catalog/operation.ts'
import type { ToolInputSchema } from './input-schema.ts'
import { createTool } from './tools.ts'

/** What each place adds to the score of an operation in which a word is found. */
const weights = { name: 6, summary: 4, field: 2, description: 1, fieldDescription: 0.5 } as const

/** Words that people use for what the catalog calls otherwise. */
const synonyms: Readonly<Record<string, readonly string[]>> = {
  chat: ['conversation'],
  ticket: ['conversation'],
  thread: ['conversation'],
  customer: ['contact'],
  client: ['contact'],
  lead: ['contact'],
  person: ['contact'],
  people: ['contact'],
  label: ['tag'],
  segment: ['filter', 'group'],
  erase: ['delete', 'erase'],
  gdpr: ['erase', 'person'],
  forget: ['erase'],
  opt: ['consent', 'dnd'],
  unsubscribe: ['consent', 'dnd'],
  disturb: ['dnd'],
  stop: ['stop', 'cancel', 'pause', 'disable'],
  many: ['count', 'many'],
  remove: ['delete', 'remove', 'untag'],
  add: ['add', 'create', 'upsert'],
  new: ['create'],
  edit: ['update'],
  change: ['update', 'audit'],
  who: ['audit', 'staff'],
  find: ['search', 'find'],
  answer: ['reply'],
  respond: ['reply'],
  canned: ['quick'],
  saved: ['saved', 'quick'],
  figure: ['report'],
  snippet: ['quick'],
  snooze: ['reminder'],
  agent: ['staff', 'agent'],
  user: ['staff'],
  colleague: ['staff'],
  statistic: ['report', 'summary'],
  analytic: ['report'],
  metric: ['report'],
  log: ['audit', 'event'],
  history: ['audit', 'message'],
  callback: ['webhook'],
  hook: ['webhook'],
  campaign: ['broadcast'],
  number: ['phone', 'channel'],
  attribute: ['custom', 'attribute'],
  property: ['custom', 'attribute'],
  file: ['media'],
  image: ['media'],
  picture: ['media'],
  qr: ['short', 'link'],
}

/** What people call an operation whose name and summary speak of something wider. */
const otherNames: { readonly [name in OperationName]?: string } = {
  crm_update_contact: 'remove clear set dnd do not disturb',
  crm_record_consent: 'customer contact opted in out subscribe unsubscribe',
  crm_erase_contact: 'delete gdpr privacy',
  crm_count_contacts: 'how many number with tag',
  jobs_cancel: 'stop running broadcast bulk send',
  jobs_pause: 'stop running broadcast bulk send',
}

/** Words that say nothing about an operation. */
const stopWords = new Set(
  (
    'a all an and any are as at be by can do for from get have how i in is it me ' +
    'my of on or our show that the their them this to want what when which with you'
  ).split(' '),
)

type Document = {
  op: Operation
  input: ToolInputSchema
  /** The weight of the best place of each word. */
  words: ReadonlyMap<string, number>
}

/** Operations prepared for `searchOperations`. */
export type OperationIndex = {
  documents: readonly Document[]
  /** How many operations have a word. */
  frequencies: ReadonlyMap<string, number>
}

/** The same for singular and plural, and for the forms of a verb, which is all that short texts need. */
const stem = (word: string): string => {
  if (word.length < 4) return word
  const bare = word.replace(/ies$/, 'y').replace(/(?:ing|ed|es|s)$/, '')
  return bare.replace(/e$/, '')
}

const synonymsOf = new Map(Object.entries(synonyms).map(([word, others]) => [stem(word), others.map(stem)]))

const splitWords = (text: string): string[] =>
  (text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).filter((word) => !stopWords.has(word))

/** Returns the index of operations; it takes a few milliseconds for each hundred of them. */
export const createOperationIndex = (operations: readonly Operation[]): OperationIndex => {
  const documents = operations.map((op): Document => {
    const input = createTool(op).inputSchema
    const words = new Map<string, number>()
    const add = (text: string | undefined, weight: number) => {
      for (const word of splitWords(text ?? '').map(stem))
        words.set(word, Math.max(weight, words.get(word) ?? 0))
    }
    add(op.name, weights.name)
    add(op.cli, weights.name)
    add(op.summary, weights.summary)
    add(op.description, weights.description)
    add(otherNames[op.name as OperationName], weights.summary)
    for (const [name, schema] of Object.entries(input.properties)) {
      add(name, weights.field)
      add(schema.description, weights.fieldDescription)
    }
    return { op, input, words }
  })
  const frequencies = new Map<string, number>()
  for (const { words } of documents)
    for (const word of words.keys()) frequencies.set(word, (frequencies.get(word) ?? 0) + 1)
  return { documents, frequencies }
}

/** Returns the documents that fit the words of `query`, best first; those of equal rank as in the catalog. */
export const searchOperations = (
  { documents, frequencies }: OperationIndex,
  query: string,
  isWanted: (op: Operation) => boolean,
): Document[] => {
  const terms = [...new Set(splitWords(query))].map((word) => [
    ...new Set([stem(word), ...(synonymsOf.get(stem(word)) ?? [])]),
  ])
  const rarity = (word: string) => Math.log(1 + documents.length / (frequencies.get(word) ?? 1))
  const scoreOf = ({ words }: Document): number =>
    terms.reduce((sum, forms) => {
      const found = forms.map((word) => (words.get(word) ?? 0) * rarity(word))
      return sum + Math.max(0, ...found)
    }, 0)
  return documents
    .filter(({ op }) => isWanted(op))
    .map((document) => ({
      document,
      score: document.op.name === query.trim() ? Infinity : scoreOf(document),
    }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => (a.score === b.score ? 0 : b.score - a.score))
    .map(({ document }) => document)
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
