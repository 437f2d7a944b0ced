import { closest, distance } from 'fastest-levenshtein'
import { usage } from '../fault.ts'

export type Field = {
  readonly key: string
  readonly label: string | null
  readonly type: string | null
  readonly read_only: boolean
}

/** Where the cells of each column go: a field of the row, `attributes.<key>`, or nowhere. */
export type Columns = {
  readonly targets: readonly (string | undefined)[]
  readonly ignored: readonly string[]
}

/** Column names are compared without case, spaces and signs between words. */
const plainName = (text: string): string =>
  text
    .normalize('NFC')
    .toLowerCase()
    .replaceAll(/[\s_-]+/g, '')

const settable = ['phone', 'name', 'email', 'tags', 'groups'] as const
/** Several columns may go there: what they hold is put together. */
const many: readonly string[] = ['name', 'tags', 'groups']

/**
 * Other names that spreadsheets and address books give to the same; a custom field of such a name comes
 * first.
 */
const aliases: Readonly<Record<string, string>> = {
  phonenumber: 'phone',
  mobile: 'phone',
  mobilephone: 'phone',
  mobilenumber: 'phone',
  tel: 'phone',
  telephone: 'phone',
  cell: 'phone',
  cellphone: 'phone',
  whatsapp: 'phone',
  whatsappnumber: 'phone',
  fullname: 'name',
  contactname: 'name',
  emailaddress: 'email',
  mail: 'email',
  tag: 'tags',
  labels: 'tags',
  group: 'groups',
  groupids: 'groups',
  groupnames: 'groups',
}

/** What an export holds and nobody can set. */
export const unsettable: readonly string[] = [
  'id',
  'phone_masked',
  'chatapp_user_id',
  'dnd',
  'starred',
  'created_at',
  'updated_at',
  'web_visitor_id',
  'conversations',
  'last_activity_at',
  'unavailable',
]
const plainUnsettable = unsettable.map(plainName)

/** The field that a text names: one of a row's own, or a custom field by `attributes.<key>`, key or label. */
const targetOf = (text: string, fields: readonly Field[]): string | undefined => {
  const plain = plainName(text)
  const own = settable.find((name) => name === plain)
  if (own) return own
  const key = /^attributes\.(.+)$/i.exec(text.trim())?.[1]
  const wanted = key === undefined ? plain : plainName(key)
  const field =
    fields.find((f) => plainName(f.key) === wanted) ??
    (key === undefined ? fields.find((f) => plainName(f.label ?? '') === wanted) : undefined)
  if (field) return field.key === 'email' ? 'email' : `attributes.${field.key}`
  return key === undefined ? aliases[plain] : undefined
}

/** The one of these names that was probably meant. */
export const nearestOf = (text: string, names: readonly string[]): string | undefined => {
  const near =
    names.length > 0
      ? closest(
          text.toLowerCase(),
          names.map((name) => name.toLowerCase()),
        )
      : undefined
  return near !== undefined && distance(text.toLowerCase(), near) <= Math.max(2, Math.floor(text.length / 3))
    ? names.find((name) => name.toLowerCase() === near)
    : undefined
}

const nearestField = (text: string, fields: readonly Field[]): string | undefined =>
  targetOf(
    nearestOf(text.trim().replace(/^attributes\./i, ''), [
      ...settable,
      ...fields.flatMap((f) => [f.key, ...(f.label ? [f.label] : [])]),
    ]) ?? '',
    fields,
  )

const columnAt = (header: readonly string[], name: string, flag: string): number => {
  const exact = header.indexOf(name)
  const at = exact === -1 ? header.findIndex((column) => plainName(column) === plainName(name)) : exact
  if (at === -1)
    throw usage(`${flag}: there is no column "${name}".`, flag, `The columns are: ${header.join(', ')}.`)
  return at
}

/** `Column=field`, as `--map` takes it. */
const readMap = (text: string, header: readonly string[], fields: readonly Field[]): [number, string] => {
  const cut = text.lastIndexOf('=')
  if (cut <= 0)
    throw usage(
      `--map is a column and where it goes, not "${text}".`,
      '--map',
      'For example --map "City=attributes.city".',
    )
  const target = targetOf(text.slice(cut + 1), fields)
  if (!target)
    throw usage(
      `--map: there is no field "${text.slice(cut + 1)}".`,
      '--map',
      `One of: ${[...settable, ...fields.map((f) => `attributes.${f.key}`)].join(', ')}.`,
    )
  return [columnAt(header, text.slice(0, cut), '--map'), target]
}

/** Says where each column goes; a column that nobody knows, or two for one field, is a usage fault. */
export const readColumns = (
  header: readonly string[],
  fields: readonly Field[],
  typed: { map: readonly string[]; ignore: readonly string[] },
): Columns => {
  const mapped = new Map(typed.map.map((text) => readMap(text, header, fields)))
  const left = new Set(typed.ignore.map((name) => columnAt(header, name, '--ignore')))
  const readOnly = new Set(fields.filter((f) => f.read_only).map((f) => `attributes.${f.key}`))
  const ignored: string[] = []
  const unknown: string[] = []
  const targets = header.map((column, at) => {
    if (left.has(at)) return undefined
    const target = mapped.get(at) ?? targetOf(column, fields)
    if (target !== undefined && !readOnly.has(target)) return target
    if (target !== undefined || column.trim() === '' || plainUnsettable.includes(plainName(column)))
      ignored.push(column.trim() || `column ${at + 1}, which has no name`)
    else unknown.push(column)
    return undefined
  })
  if (unknown.length > 0) {
    const [first] = unknown as [string]
    const near = nearestField(first, fields)
    throw usage(
      `There is no field for ${unknown.length > 1 ? 'the columns' : 'the column'} ${unknown.map((name) => `"${name}"`).join(', ')}.`,
      'file',
      `${near ? `Did you mean ${near}? ` : ''}Say --map "${first}=${near ?? 'attributes.<key>'}", or --ignore "${first}".`,
    )
  }
  targets.forEach((target, at) => {
    const before = target === undefined ? -1 : targets.indexOf(target)
    if (before === -1 || before === at || (many.includes(target!) && mapped.has(before) && mapped.has(at)))
      return
    throw usage(
      `Both "${header[before]}" and "${header[at]}" are ${target}.`,
      'file',
      `Say --ignore "${header[at]}", or --map "${header[at]}=…".`,
    )
  })
  if (!targets.includes('phone'))
    throw usage(
      'No column holds the phone number.',
      'file',
      `Say which: --map "${header[0]}=phone". A file without a line of column names needs one.`,
    )
  return { targets, ignored }
}
