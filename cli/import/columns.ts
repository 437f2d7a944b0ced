import { closest, distance } from 'fastest-levenshtein'
import { usageError } from '../error.ts'

export type ImportField = {
  readonly key: string
  readonly label: string | null
  readonly type: string | null
  readonly read_only: boolean
}

/** The target of each column: a field of the row, `attributes.<key>`, or undefined for an ignored column. */
export type ColumnMapping = {
  readonly targets: readonly (string | undefined)[]
  readonly ignored: readonly string[]
}

/** Normalizes a column name for comparison: without case, spaces, hyphens and underscores. */
const normalizeName = (text: string): string =>
  text
    .normalize('NFC')
    .toLowerCase()
    .replaceAll(/[\s_-]+/g, '')

const SETTABLE_FIELDS = [
  'phone',
  'external_id',
  'name',
  'email',
  'tags',
  'groups',
  'dnd',
  'starred',
  'metadata',
] as const
/** Fields that several columns may map to; their cells are combined. */
const COMBINABLE_FIELDS: readonly string[] = ['name', 'tags', 'groups']

/**
 * Common column names of spreadsheets and address books. A custom field with such a name takes precedence.
 */
const FIELD_ALIASES: Readonly<Record<string, string>> = {
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

/** Columns of an export that cannot be imported. */
export const READ_ONLY_FIELDS: readonly string[] = [
  'id',
  'phone_masked',
  'chatapp_user_id',
  'username',
  'created_at',
  'updated_at',
  'web_visitor_id',
  'version',
  'conversations',
  'last_activity_at',
  'unavailable',
]
const NORMALIZED_READ_ONLY_FIELDS = READ_ONLY_FIELDS.map(normalizeName)

/** Finds a field by name: a field of the row, or a custom field by `attributes.<key>`, key or label. */
const findTarget = (text: string, fields: readonly ImportField[]): string | undefined => {
  const normalized = normalizeName(text)
  const rowField = SETTABLE_FIELDS.find((name) => normalizeName(name) === normalized)
  if (rowField) return rowField
  const key = /^attributes\.(.+)$/i.exec(text.trim())?.[1]
  const wanted = key === undefined ? normalized : normalizeName(key)
  const field =
    fields.find((f) => normalizeName(f.key) === wanted) ??
    (key === undefined ? fields.find((f) => normalizeName(f.label ?? '') === wanted) : undefined)
  if (field) return field.key === 'email' ? 'email' : `attributes.${field.key}`
  return key === undefined ? FIELD_ALIASES[normalized] : undefined
}

/** Returns the most similar of the names; undefined when none is similar. */
export const findNearestColumnName = (text: string, names: readonly string[]): string | undefined => {
  const nearest =
    names.length > 0
      ? closest(
          text.toLowerCase(),
          names.map((name) => name.toLowerCase()),
        )
      : undefined
  return nearest !== undefined &&
    distance(text.toLowerCase(), nearest) <= Math.max(2, Math.floor(text.length / 3))
    ? names.find((name) => name.toLowerCase() === nearest)
    : undefined
}

const findNearestField = (text: string, fields: readonly ImportField[]): string | undefined =>
  findTarget(
    findNearestColumnName(text.trim().replace(/^attributes\./i, ''), [
      ...SETTABLE_FIELDS,
      ...fields.flatMap((f) => [f.key, ...(f.label ? [f.label] : [])]),
    ]) ?? '',
    fields,
  )

/** The first column of this name, which is exact before it is similar. */
const findColumn = (header: readonly string[], name: string, flag: string): number => {
  const exact = header.indexOf(name)
  const at =
    exact === -1 ? header.findIndex((column) => normalizeName(column) === normalizeName(name)) : exact
  if (at === -1)
    throw usageError(`${flag}: there is no column "${name}".`, flag, `The columns are: ${header.join(', ')}.`)
  return at
}

/**
 * The columns that `--ignore` leaves out. Of several with the same name the one that `--map` names stays: nothing else
 * tells them apart.
 */
const findIgnored = (
  header: readonly string[],
  names: readonly string[],
  mapped: ReadonlyMap<number, string>,
): ReadonlySet<number> =>
  new Set(
    names.flatMap((name) => {
      const found = header[findColumn(header, name, '--ignore')]
      const same = [...header.keys()].filter((at) => header[at] === found)
      return same.length > 1 ? same.filter((at) => !mapped.has(at)) : same
    }),
  )

/** Parses `column=field`, the value of `--map`. Returns the index of the column and its target. */
const parseMapFlag = (
  text: string,
  header: readonly string[],
  fields: readonly ImportField[],
): [number, string] => {
  const separator = text.lastIndexOf('=')
  if (separator <= 0)
    throw usageError(
      `--map takes column=field, not "${text}".`,
      '--map',
      'For example --map "City=attributes.city".',
    )
  const target = findTarget(text.slice(separator + 1), fields)
  if (!target)
    throw usageError(
      `--map: there is no field "${text.slice(separator + 1)}".`,
      '--map',
      `One of: ${[...SETTABLE_FIELDS, ...fields.map((f) => `attributes.${f.key}`)].join(', ')}.`,
    )
  return [findColumn(header, text.slice(0, separator), '--map'), target]
}

/**
 * Maps each column to a field. Throws a usage error for an unknown column, or for two columns of one field.
 */
export const mapColumns = (
  header: readonly string[],
  fields: readonly ImportField[],
  flags: { map: readonly string[]; ignore: readonly string[] },
): ColumnMapping => {
  const mapped = new Map(flags.map.map((text) => parseMapFlag(text, header, fields)))
  const skipped = findIgnored(header, flags.ignore, mapped)
  const readOnly = new Set(fields.filter((f) => f.read_only).map((f) => `attributes.${f.key}`))
  const ignored: string[] = []
  const unknown: string[] = []
  const targets = header.map((column, at) => {
    if (skipped.has(at)) return undefined
    const target = mapped.get(at) ?? findTarget(column, fields)
    if (target !== undefined && !readOnly.has(target)) return target
    if (
      target !== undefined ||
      column.trim() === '' ||
      NORMALIZED_READ_ONLY_FIELDS.includes(normalizeName(column))
    )
      ignored.push(column.trim() || `column ${at + 1} (no name)`)
    else unknown.push(column)
    return undefined
  })
  if (unknown.length > 0) {
    const [first] = unknown as [string]
    const nearest = findNearestField(first, fields)
    const names = unknown.map((name) => `"${name}"`).join(', ')
    throw usageError(
      `There is no field for ${unknown.length > 1 ? 'the columns' : 'the column'} ${names}.`,
      'file',
      `${nearest ? `Did you mean ${nearest}? ` : ''}` +
        `Use --map "${first}=${nearest ?? 'attributes.<key>'}" or --ignore "${first}".`,
    )
  }
  targets.forEach((target, at) => {
    const other = target === undefined ? -1 : targets.indexOf(target)
    if (
      other === -1 ||
      other === at ||
      (COMBINABLE_FIELDS.includes(target!) && mapped.has(other) && mapped.has(at))
    )
      return
    throw usageError(
      `Both "${header[other]}" and "${header[at]}" map to ${target}.`,
      'file',
      header[other] === header[at]
        ? `Rename one in the file. To take the first: --map "${header[at]}=${target}" --ignore "${header[at]}".`
        : `Use --ignore "${header[at]}" or --map "${header[at]}=…".`,
    )
  })
  if (!targets.includes('phone') && !targets.includes('external_id'))
    throw usageError(
      'No column holds the phone number or the external id.',
      'file',
      `Name it with --map "${header[0]}=phone". The first line of the file must hold the column names.`,
    )
  return { targets, ignored }
}
