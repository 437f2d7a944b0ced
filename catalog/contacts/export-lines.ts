import { csvLine } from '../csv-line.ts'
import { isObject } from '../values.ts'

/*
 * Contacts as lines of a file that an import reads back: the command line writes it from pages of a search, the server
 * as the file of an export. Both files have the same bytes.
 */

type ContactFileFormat = 'csv' | 'jsonl'
/** A contact as `crm_search_contacts` shows it with all details. */
export type ShownContact = Readonly<Record<string, unknown>>
export type ExportedAttribute = {
  readonly key?: unknown
  readonly type?: unknown
  readonly value?: unknown
  readonly typed_value?: unknown
  readonly truncated?: unknown
}

const COLUMNS = [
  'id',
  'name',
  'phone',
  'email',
  'external_id',
  'dnd',
  'starred',
  'metadata',
  'created_at',
  'updated_at',
  'last_activity_at',
  'chatapp_user_id',
  'username',
  'web_visitor_id',
  'tags',
  'groups',
]

/** Joins names so that an import splits them: a name with a comma, a semicolon or quotes is quoted. */
export const joinNames = (names: readonly string[]): string =>
  names.map((name) => (/[;,"]|^\s|\s$/.test(name) ? `"${name.replaceAll('"', '""')}"` : name)).join(', ')

const formatNames = (value: unknown): string =>
  joinNames(((value as { name: string | null }[] | undefined) ?? []).map(({ name }) => name ?? ''))

/** Metadata is one cell of JSON; empty when there is none, or none may be seen. */
const formatMetadata = (value: unknown): string =>
  isObject(value) && Object.keys(value).length > 0 ? JSON.stringify(value) : ''

const toText = (value: unknown): string => (value === null || value === undefined ? '' : String(value))

/**
 * Returns the form of an exported value that an import restores exactly: numbers with all digits, times to the
 * millisecond, options by value.
 */
export const losslessValue = ({ type, value, typed_value: typedValue }: ExportedAttribute): unknown =>
  (type === 'datetime' || type === 'multiselect') && typedValue !== null && typedValue !== undefined
    ? typedValue
    : value

const attributesOf = (contact: ShownContact): readonly ExportedAttribute[] =>
  (contact['attributes'] as ExportedAttribute[] | undefined) ?? []

/** Whether a long text was cut, as it is in answers: an import cannot restore what was cut. */
export const hasTruncatedValue = (contact: ShownContact): boolean =>
  attributesOf(contact).some(({ truncated }) => truncated === true)

const formatCell = (contact: ShownContact, column: string): string => {
  const value = contact[column]
  if (column === 'tags' || column === 'groups') return formatNames(value)
  return column === 'metadata' ? formatMetadata(value) : toText(value)
}

/**
 * Creates the lines of a format. `header`: what comes before the first contact, which may be nothing. `fieldKeys`: of
 * the custom fields, which are columns of CSV.
 */
export const createContactLines = (
  format: ContactFileFormat,
  fieldKeys: readonly string[],
): { header: string; line: (contact: ShownContact) => string } => {
  if (format === 'jsonl') return { header: '', line: (contact) => `${JSON.stringify(contact)}\n` }
  // The email has a column of its own.
  const keys = fieldKeys.filter((key) => key !== 'email')
  return {
    header: csvLine([...COLUMNS, ...keys.map((key) => `attributes.${key}`)]),
    line: (contact) => {
      const values = new Map(attributesOf(contact).map((one) => [one.key, toText(losslessValue(one))]))
      return csvLine([
        ...COLUMNS.map((column) => formatCell(contact, column)),
        ...keys.map((key) => values.get(key) ?? ''),
      ])
    },
  }
}
