import { z } from 'zod'
import { mark, marks, type RecordName } from './marks.ts'
import { hasVisibleText, isInternationalEmail, untrusted } from './text.ts'

/** Ids are 64-bit integers of the database, as text: JSON numbers would lose digits. */
export const Id = z
  .string()
  .regex(/^[1-9]\d{0,18}$/, 'must be 1 to 19 digits, not starting with 0')
  .meta({ examples: ['42'] })

/** The id of a record of this kind. */
export const idOf = (kind: RecordName) => mark(Id, { idOf: kind })

/**
 * An id in a list of ids: a decimal string or an integer. Both are the same request to an idempotency key.
 */
export const IdInput = z
  .union([Id, z.int().positive()], 'must be an id: 1 to 19 digits as a string, or an integer')
  .transform(String)

/** What people call something: it must show, or nobody could tell it from another. */
export const VisibleName = (max: number) =>
  z
    .string()
    .trim()
    .min(1)
    .max(max)
    .refine(
      (text) => text === '' || hasVisibleText(text),
      'must have a visible character, not only spaces and invisible ones',
    )

/** The name of a contact as it is shown. */
export const ContactName = untrusted(z.string().nullable().describe('Name.'), { phone: 'name' })

/** The phone of a contact as it is stored: E.164 digits without `+`. */
export const ContactPhone = mark(z.string().nullable(), { phone: 'number' })

/** An input whose texts are those of a message or a note. */
export const messageInput = <S extends z.ZodRawShape>(shape: S) =>
  z.object(shape).register(marks, { private: 'messageText' })

/** An email address, also an international one, which has at most 254 bytes of UTF-8. */
export const EmailAddress = z
  .string()
  .max(255)
  .refine(
    (text) => z.email().safeParse(text).success || (/[^\0-\x7f]/.test(text) && isInternationalEmail(text)),
    {
      error: 'must be an email address',
      params: { code: 'invalid_format', fix: 'Send an email address, such as ada@example.com.' },
    },
  )
  .meta({ format: 'idn-email' })

/**
 * A record's id, or its name: an integer or a digit string that is an existing id is an id, any other
 * string a name.
 */
export const IdOrName = (max: number) =>
  z.union(
    [VisibleName(max), z.int().positive()],
    `must be a name of 1 to ${max} characters, one of them visible, or an id`,
  )

/** The id that another system has for a record of ours. */
export const ExternalId = z
  .string()
  .trim()
  .min(1)
  .max(255)
  .refine((text) => !/\p{Cc}/u.test(text), {
    error: 'must not have control characters',
    params: { code: 'invalid_format', fix: 'Remove line breaks, tabs and the like.' },
  })

/** ISO 8601 in UTC, milliseconds. */
export const Timestamp = z.string().meta({ format: 'date-time', examples: ['2026-10-01T09:30:00.000Z'] })

export const Limit = z.int().min(1).max(100).default(25).describe('Rows per page: 1 to 100, 25 when absent.')
export const Cursor = z
  .string()
  .min(1)
  .max(2000)
  .optional()
  .describe('`next_cursor` of the previous page; send the same filters. Cursors expire after 24 hours.')
export const Search = (what: string) =>
  z
    .string()
    .trim()
    .min(1)
    .max(100)
    .optional()
    .describe(`${what} contains this, ignoring case; \`%\` and \`_\` are literal.`)

/** The input fields of every list. */
export const page = { limit: Limit, cursor: Cursor }

export const NextCursor = z
  .string()
  .nullable()
  .describe('Pass as `cursor` for the next page; null on the last.')
export const Total = z
  .int()
  .nullable()
  .describe('Count of matching rows, on the first page; null on later pages.')

/** A list's envelope: rows and the next cursor. */
export const list = <T extends z.ZodType>(row: T) => ({
  data: z.array(row).describe('The rows of this page.'),
  next_cursor: NextCursor,
})

/** A list's envelope with a total. */
export const listWithTotal = <T extends z.ZodType>(row: T) => ({
  data: z.array(row).describe('The rows of this page.'),
  total: Total,
  next_cursor: NextCursor,
})

/** The output of a delete, the same for every kind of record. */
export const deleted = {
  id: Id.describe('The requested id.'),
  deleted: z.boolean().describe('True: it was deleted.'),
}

/** What a deletion answers where saved filters may name what is deleted. */
export const SavedFiltersNaming = z.array(
  z.object({
    id: idOf('saved_filter').describe('Saved filter id.'),
    name: z.string().describe('Its name.'),
  }),
)
export const deletedNamed = {
  ...deleted,
  saved_filters: SavedFiltersNaming.describe(
    'Saved filters that name it. They stay as they are, and nothing has it any more: what includes it matches ' +
      'nobody, what excludes it everybody.',
  ),
}

const Failure = z.object({
  id: z.string().describe('The id that failed.'),
  code: z.string().describe('Error code, such as `not_found`.'),
  message: z.string().describe('What is wrong.'),
})

/** The output of an operation on many records, such as `crm_tag_contacts`. */
export const bulkResult = {
  requested: z.int().describe('Distinct ids requested.'),
  succeeded: z.int().describe('Ids that are now as requested, changed or not.'),
  failed: z.int().describe('Ids that failed.'),
  failures: z.array(Failure).max(50).describe('The first 50 failures.'),
  stopped_early: z.boolean().describe('True: a fatal error stopped the rest; retry the missing ids.'),
  matched: z.int().optional().describe('How many were found.'),
}

export const Changed = z.boolean().describe('False: nothing changed.')

/** The version of a record, as operations with `versioned` show it. */
export const Version = z
  .string()
  .regex(/^\d+$/)
  .nullable()
  .describe('Changes with each change of the record; send it as `if_version`. Null in a dry run.')

/** Warns that a dry run does not reveal whether a contact has the phone. */
export const DryRunWarnings = z
  .array(z.string())
  .optional()
  .describe('Only in a dry run with hidden phone numbers: what it cannot show.')

/** Said of operations that are `heavy`. */
export const EXPENSIVE_READ =
  'an expensive read: few run at a time for each key and workspace, others wait, then get 429.'

const OFFSET = /[+-](\d\d):?\d\d$/
const MAX_OFFSET_HOURS = 15
const LONG_FRACTION = /\.\d{10}/

/** What is no time at all is refused by its form. */
const isNoTime = (text: string): boolean => Number.isNaN(Date.parse(text))

/** Whether PostgreSQL takes a time: offsets of the world are at most 14 hours. */
const isStorable = (text: string): boolean =>
  isNoTime(text) || (Number(OFFSET.exec(text)?.[1] ?? 0) <= MAX_OFFSET_HOURS && !LONG_FRACTION.test(text))

const NOT_STORABLE = {
  abort: true,
  message: 'must have an offset of less than 16 hours, and at most nine digits of seconds',
  params: { code: 'invalid_date', fix: 'Send it in UTC, such as 2026-10-01T09:30:00Z.' },
}

/** A time with its zone. */
export const Instant = z.iso.datetime({ offset: true }).refine(isStorable, NOT_STORABLE)

/** The same, or without a zone: a time in that of the workspace. Clients with a type for times send the former. */
export const InstantOrLocal = z.iso
  .datetime({ offset: true, local: true })
  .refine(isStorable, NOT_STORABLE)
  .meta({ format: 'date-time' })

/** Whether a time is one of the years 1 to 9999 in UTC. */
const isOfYears = (text: string): boolean => {
  const year = new Date(text).getUTCFullYear()
  return isNoTime(text) || (year >= 1 && year <= 9999)
}

/** A time that is stored; `fix`: what to do about one of another year. */
export const StoredInstant = (fix: string) =>
  Instant.refine(isOfYears, {
    message: 'must lie in the years 0001 to 9999, in UTC',
    params: { code: 'invalid_date', fix },
  })
