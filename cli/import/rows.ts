import { type Columns, type Field, unsettable } from './columns.ts'

/** What an upsert takes, with groups by name or id as people write them. */
type Draft = { phone?: unknown; attributes?: unknown; groups?: string[]; [field: string]: unknown }
type Wrong = { readonly code: string; readonly message: string; readonly errors: readonly object[] }
/** A row of the file and the line on which it begins; `wrong` when it must not be sent. */
export type Row = { readonly line: number; readonly draft: Draft; readonly wrong?: Wrong }

const wrong = (code: string, pointer: string, detail: string, fix: string): Wrong => ({
  code: 'invalid_input',
  message: `${pointer === '#' ? 'The row' : pointer.slice(2)} ${detail}.`,
  errors: [{ pointer, code, detail, fix }],
})

/** What a number in the file shows to be no phone number, whatever a parser of phones would make of it. */
const phoneFault = (phone: unknown): Wrong | undefined => {
  if (typeof phone !== 'string') return undefined
  if (phone.includes('*'))
    return wrong('masked_phone', '#/phone', 'is masked', 'Export with a key whose owner sees phone numbers.')
  if (/^\s*\d(?:[.,]\d+)?E\+?\d+\s*$/i.test(phone))
    return wrong(
      'rounded_phone',
      '#/phone',
      'was rounded by a spreadsheet',
      'Format the column as text, and fill it in again.',
    )
  return undefined
}

/** A row with a draft is sent unless its phone shows that it must not be. */
const rowOf = (line: number, draft: Draft): Row => {
  const fault = phoneFault(draft.phone)
  return fault ? { line, draft, wrong: fault } : { line, draft }
}

/**
 * Names parted by commas or semicolons; one that holds such a sign stands in quotes, and its quotes are
 * doubled.
 */
export const splitNames = (text: string): string[] =>
  [...text.matchAll(/\s*(?:"((?:[^"]|"")*)"\s*|([^;,]*))(?:[;,]|$)/g)]
    .map(([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain!.trim())
    .filter((name) => name !== '')

export const joinNames = (names: readonly string[]): string =>
  names.map((name) => (/[;,"]|^\s|\s$/.test(name) ? `"${name.replaceAll('"', '""')}"` : name)).join(', ')

/**
 * Exports mark what a spreadsheet would run as a formula with an apostrophe; marked texts that begin with
 * one get another, so that taking one away is exact.
 */
export const guard = (text: string): string => (/^'*[=+\-@\t\r]/.test(text) ? `'${text}` : text)
const unguard = (text: string): string => (/^'+[=+\-@\t\r]/.test(text) ? text.slice(1) : text)

/**
 * A CSV record as a draft. Empty cells are left out; with `clearEmpty` they clear what an upsert can clear.
 */
export const rowOfCells = (
  line: number,
  cells: readonly string[],
  { targets }: Columns,
  clearEmpty: boolean,
): Row => {
  const draft: Draft = {}
  const attributes: Record<string, string> = {}
  targets.forEach((target, at) => {
    const cell = unguard(cells[at] ?? '')
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
    else draft[target] = cell.trim()
  })
  if (Object.keys(attributes).length > 0) draft.attributes = attributes
  if (cells.length <= targets.length) return rowOf(line, draft)
  return {
    line,
    draft,
    wrong: wrong(
      'too_many_cells',
      '#',
      `has ${cells.length} cells, and the header ${targets.length}`,
      'Quote cells that hold the delimiter.',
    ),
  }
}

type Named = { name?: unknown }
type Shown = { key?: unknown; type?: unknown; value?: unknown; typed_value?: unknown }

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const nameOf = (item: unknown): unknown => (isObject(item) && 'name' in item ? (item as Named).name : item)

/**
 * The shown form of a value that loses nothing on its way back: numbers with all digits, times to the
 * millisecond, options by their values.
 */
export const exactValue = ({ type, value, typed_value: typed }: Shown): unknown =>
  (type === 'datetime' || type === 'multiselect') && typed !== null && typed !== undefined ? typed : value

/** An export's list of attributes as an upsert takes them; what cannot be set is left out. */
const attributesOf = (shown: readonly Shown[], fields: readonly Field[]): Record<string, unknown> =>
  Object.fromEntries(
    shown
      .filter(({ key }) => key !== 'email' && !fields.some((f) => f.key === key && f.read_only))
      .map((one) => [String(one.key), exactValue(one)]),
  )

/**
 * A line of NDJSON as a draft: an upsert's fields, or a contact as an export writes it. What it has of
 * things that cannot be set goes to `ignored`.
 */
export const rowOfJson = (
  line: number,
  text: string,
  fields: readonly Field[],
  ignored: Set<string>,
): Row => {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    return {
      line,
      draft: {},
      wrong: wrong(
        'invalid_json',
        '#',
        `is not JSON: ${(error as Error).message}`,
        'Write one JSON object a line.',
      ),
    }
  }
  if (!isObject(value))
    return {
      line,
      draft: {},
      wrong: wrong('invalid_json', '#', 'is not a JSON object', 'Write one JSON object a line.'),
    }
  const draft: Draft = {}
  for (const [name, given] of Object.entries(value)) {
    if (unsettable.includes(name)) ignored.add(name)
    else if (given === null && (name === 'phone' || name === 'name' || name === 'email')) continue
    else if (name === 'phone' && typeof given === 'number') draft.phone = String(given)
    else if (name === 'tags' && Array.isArray(given)) draft['tags'] = given.map(nameOf)
    else if (name === 'groups' && Array.isArray(given))
      draft.groups = given.map((item) => String(nameOf(item)))
    else if (name === 'attributes' && Array.isArray(given))
      draft.attributes = attributesOf(given as Shown[], fields)
    else draft[name] = given
  }
  return rowOf(line, draft)
}
