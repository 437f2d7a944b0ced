import { parseUniqueJson } from '../../catalog/duplicate-names.ts'
import { type ExportedAttribute, losslessValue } from '../../catalog/contacts/export-lines.ts'
import { isObject } from '../../catalog/values.ts'
import { type ColumnMapping, type ImportField, READ_ONLY_FIELDS } from './columns.ts'

/** The fields of an upsert, but with groups by name or id. */
type RowDraft = { phone?: unknown; attributes?: unknown; groups?: string[]; [field: string]: unknown }
type RowRejection = { readonly code: string; readonly message: string; readonly errors: readonly object[] }
/** A row of the file and the number of its first line; `rejection` when it must not be sent. */
export type ParsedRow = { readonly line: number; readonly draft: RowDraft; readonly rejection?: RowRejection }

const createRejection = (code: string, pointer: string, detail: string, fix: string): RowRejection => ({
  code: 'invalid_input',
  message: `${pointer === '#' ? 'The row' : pointer.slice(2)} ${detail}.`,
  errors: [{ pointer, code, detail, fix }],
})

/** Rejects a masked or rounded phone number, which might still parse as another number. */
const checkPhone = (phone: unknown): RowRejection | undefined => {
  if (typeof phone !== 'string') return undefined
  if (phone.includes('*'))
    return createRejection(
      'masked_phone',
      '#/phone',
      'is masked',
      'Export with a key whose owner may see phone numbers.',
    )
  if (/^\s*\d(?:[.,]\d+)?E\+?\d+\s*$/i.test(phone))
    return createRejection(
      'rounded_phone',
      '#/phone',
      'was rounded by a spreadsheet',
      'Format the column as text and enter the numbers again.',
    )
  return undefined
}

const FLAGS: Readonly<Record<string, boolean>> = {
  true: true,
  yes: true,
  1: true,
  false: false,
  no: false,
  0: false,
}

/** Parses a cell of true or false. */
const parseFlag = (name: string, cell: string): boolean | RowRejection =>
  FLAGS[cell.trim().toLowerCase()] ??
  createRejection('invalid_flag', `#/${name}`, 'is neither true nor false', 'Write true or false.')

/** Parses a cell of metadata: a JSON object. */
const parseMetadata = (cell: string): Record<string, unknown> | RowRejection => {
  try {
    const value = parseUniqueJson(cell)
    if (isObject(value)) return { value }
  } catch {
    // What is no JSON is rejected as other values are.
  }
  return createRejection(
    'invalid_json',
    '#/metadata',
    'is not a JSON object',
    'Write a JSON object, such as {"segment": "B"}.',
  )
}

/** Creates a row, rejected when its phone number must not be sent. */
const toImportRow = (line: number, draft: RowDraft): ParsedRow => {
  const rejection = checkPhone(draft.phone)
  return rejection ? { line, draft, rejection } : { line, draft }
}

/**
 * Splits names at commas or semicolons. A name that contains one is quoted, and quotes in it are doubled.
 */
export const splitNames = (text: string): string[] =>
  [...text.matchAll(/\s*(?:"((?:[^"]|"")*)"\s*|([^;,]*))(?:[;,]|$)/g)]
    .map(([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain!.trim())
    .filter((name) => name !== '')

/** Takes away what `escapeFormula` added. */
const unescapeFormula = (text: string): string => (/^'+[=+\-@\t\r]/.test(text) ? text.slice(1) : text)

/**
 * Parses a CSV record. Empty cells are omitted; with `clearEmpty` they clear the fields that can be cleared.
 */
export const parseCsvRow = (
  line: number,
  cells: readonly string[],
  { targets }: ColumnMapping,
  clearEmpty: boolean,
): ParsedRow => {
  const draft: RowDraft = {}
  const attributes: Record<string, string> = {}
  let wrong: RowRejection | undefined
  targets.forEach((target, at) => {
    const cell = unescapeFormula(cells[at] ?? '')
    if (target === undefined) return
    const key = target.startsWith('attributes.') ? target.slice('attributes.'.length) : undefined
    if (cell.trim() === '') {
      if (clearEmpty && key !== undefined) attributes[key] = ''
      else if (clearEmpty && target === 'email') draft['email'] = ''
    } else if (key !== undefined) attributes[key] = cell
    else if (target === 'tags' || target === 'groups')
      draft[target] = [...((draft[target] as string[] | undefined) ?? []), ...splitNames(cell)]
    else if (target === 'name')
      draft['name'] = draft['name'] === undefined ? cell : `${String(draft['name'])} ${cell}`
    else if (target === 'dnd' || target === 'starred') {
      const flag = parseFlag(target, cell)
      if (typeof flag === 'boolean') draft[target] = flag
      else wrong ??= flag
    } else if (target === 'metadata') {
      const metadata = parseMetadata(cell)
      if ('value' in metadata) draft['metadata'] = metadata.value
      else wrong ??= metadata as RowRejection
    } else draft[target] = cell.trim()
  })
  if (Object.keys(attributes).length > 0) draft.attributes = attributes
  if (wrong) return { line, draft, rejection: wrong }
  if (cells.length <= targets.length) return toImportRow(line, draft)
  return {
    line,
    draft,
    rejection: createRejection(
      'too_many_cells',
      '#',
      `has ${cells.length} cells, but the header has ${targets.length}`,
      'Quote cells that contain the delimiter.',
    ),
  }
}

type Named = { name?: unknown }
const toName = (item: unknown): unknown => (isObject(item) && 'name' in item ? (item as Named).name : item)

/** Converts the attributes of an export to those of an upsert, without read-only ones. */
const toAttributes = (
  exported: readonly ExportedAttribute[],
  fields: readonly ImportField[],
): Record<string, unknown> =>
  Object.fromEntries(
    exported
      .filter(({ key }) => key !== 'email' && !fields.some((f) => f.key === key && f.read_only))
      .map((one) => [String(one.key), losslessValue(one)]),
  )

/**
 * Parses a line of NDJSON: the fields of an upsert, or a contact as an export writes it. Adds the names of
 * read-only fields to `ignored`.
 */
export const parseJsonRow = (
  line: number,
  text: string,
  fields: readonly ImportField[],
  ignored: Set<string>,
): ParsedRow => {
  let value: unknown
  try {
    value = parseUniqueJson(text)
  } catch (error) {
    return {
      line,
      draft: {},
      rejection: createRejection(
        'invalid_json',
        '#',
        `is not JSON: ${(error as Error).message}`,
        'Write one JSON object per line.',
      ),
    }
  }
  if (!isObject(value))
    return {
      line,
      draft: {},
      rejection: createRejection(
        'invalid_json',
        '#',
        'is not a JSON object',
        'Write one JSON object per line.',
      ),
    }
  const draft: RowDraft = {}
  for (const [name, fieldValue] of Object.entries(value)) {
    if (READ_ONLY_FIELDS.includes(name)) ignored.add(name)
    else if (fieldValue === null && ['phone', 'name', 'email', 'external_id'].includes(name)) continue
    else if (name === 'phone' && typeof fieldValue === 'number') draft.phone = String(fieldValue)
    else if (name === 'tags' && Array.isArray(fieldValue)) draft['tags'] = fieldValue.map(toName)
    else if (name === 'groups' && Array.isArray(fieldValue))
      draft.groups = fieldValue.map((item) => String(toName(item)))
    else if (name === 'attributes' && Array.isArray(fieldValue))
      draft.attributes = toAttributes(fieldValue as ExportedAttribute[], fields)
    else draft[name] = fieldValue
  }
  return toImportRow(line, draft)
}
