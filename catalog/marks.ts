import { z } from 'zod'

/**
 * How a phone of a customer may be in a field, and so how it is masked. Numbers of the business are no secret.
 *
 * - `number`: it is one.
 * - `text`: it quotes what the provider, a receiver or the service said, or is an id made of one.
 * - `name`: the name of a contact, which may be a number, or hold one.
 * - `message`: the text of a message, which quotes phones where the type beside it is `SYSTEM` or `CONTACTS`.
 * - `value`: of a custom field, which is one where the type beside it is `phone`.
 * - `masked`: says whether the `phone` beside it is masked.
 * - `anything`: data of others, so it is left out.
 * - `filter`: a filter of the owner beside it.
 * - `job`: the input of a job.
 * - `unknown`: it is in an event, and the schema of that does not name it.
 */
export type PhoneMark =
  | 'number'
  | 'text'
  | 'name'
  | 'message'
  | 'value'
  | 'masked'
  | 'anything'
  | 'filter'
  | 'job'
  | 'unknown'

/**
 * What the audit trail keeps nothing of.
 *
 * - `secret`: of the value.
 * - `secrets`: of the values of an object, such as of headers: only their names are kept.
 * - `messageText`: of what the texts in it say: only their lengths are kept.
 * - `personal`: of the people in a list, whom no id names, so that an erasure would not find them: only how many.
 */
type PrivateMark = 'secret' | 'secrets' | 'messageText' | 'personal'

/** Kinds of records whose ids are marked: those of customers, and those that plans list. */
export type RecordName =
  | 'contact'
  | 'conversation'
  | 'message'
  | 'template'
  | 'saved_filter'
  | 'short_link'
  | 'endpoint'
  | 'delivery'
  | 'approval'
  | 'job'
  | 'broadcast'
  | 'group'
  | 'custom_field'
  | 'quick_message'

/**
 * What schemas are found by: the input or the answer of an operation, what the audit trail has of one,
 * the data of an event, a record of a kind.
 */
export type SchemaKind = 'input' | 'answer' | 'changes' | 'event' | 'record'

/** What a field is (docs/decisions/0074). */
export type Marks = {
  readonly phone?: PhoneMark
  /** Of what it is the id; `type`: the field `type` beside it says so. */
  readonly idOf?: RecordName | 'type'
  readonly private?: PrivateMark
  /** Outsiders wrote it. */
  readonly untrusted?: true
  /** Its schema is that of another thing, whose name is in the field `by` beside it. */
  readonly holds?: { readonly kind: SchemaKind; readonly by: string }
}

/** They are in no JSON Schema, and so neither in the OpenAPI document nor in tools. */
export const marks = z.registry<Marks>()

/** Marks a field. What is made of it later, as by `describe`, keeps its marks. */
export const mark = <T extends z.ZodType>(schema: T, given: Marks): T => {
  const marked = schema.clone()
  marks.add(marked, given as never)
  return marked
}

/** Returns the JSON Schema of a schema with the marks of its fields as keywords, and no other metadata. */
export const toMarkedJsonSchema = (schema: z.ZodType): Marks & Record<string, unknown> =>
  z.toJSONSchema(schema, { io: 'input', metadata: marks }) as Record<string, unknown>
