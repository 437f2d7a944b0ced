import { countCharacters, maxLengths, sampleTypes } from '../../../catalog/templates/rules.ts'
import { findUrlFault, isSampleHandle } from '../templates/sample-types.ts'
import { fillVariables, textParameter, listVariables } from '../templates/variables.ts'
import type { TemplateComponent } from './template-components.ts'
import { checkTextValue, type TemplateValues, type ValueErrors } from './template-values.ts'

type HeaderValues = NonNullable<TemplateValues['header']>

/** The values that a header takes, by its format. */
const FIELDS_BY_FORMAT: Readonly<Record<string, readonly (keyof HeaderValues)[]>> = {
  TEXT: ['text'],
  IMAGE: ['media_url', 'media_handle'],
  VIDEO: ['media_url', 'media_handle'],
  DOCUMENT: ['media_url', 'media_handle', 'file_name'],
  LOCATION: ['latitude', 'longitude', 'name', 'address'],
}

/** Returns the provider's header component, none when the header takes no values. */
export const fillHeader = (
  header: TemplateComponent | undefined,
  values: HeaderValues = {},
  errors: ValueErrors,
): object[] => {
  const format = (header?.format ?? (header ? 'TEXT' : '')).toUpperCase()
  const text = format === 'TEXT' ? (header?.text ?? '') : ''
  const names = listVariables(text)
  const fields = format === 'TEXT' && names.length === 0 ? [] : (FIELDS_BY_FORMAT[format] ?? [])
  for (const field of Object.keys(values) as (keyof HeaderValues)[]) {
    if (values[field] === undefined || fields.includes(field)) continue
    errors.add(
      [field],
      'not_in_template',
      fields.length === 0
        ? 'has nothing to fill: this header takes no values'
        : `does not belong to this header, which takes ${fields.join(', ')}`,
      'Leave it out.',
    )
  }
  if (fields.length === 0) return []
  if (format === 'TEXT') return fillTextHeader(text, names, values.text, errors)
  return Object.hasOwn(sampleTypes, format)
    ? fillMediaHeader(format.toLowerCase(), values, errors)
    : fillLocationHeader(values, errors)
}

const fillTextHeader = (
  text: string,
  names: readonly string[],
  value: string | undefined,
  errors: ValueErrors,
): object[] => {
  if (value === undefined)
    errors.add(['text'], 'required', `is missing: the value of {{${names[0]!}}} in the header`, 'Send it.')
  else {
    checkTextValue(value, ['text'], errors)
    const length = countCharacters(fillVariables(text, names, [value]))
    if (length > maxLengths.header)
      errors.add(
        ['text'],
        'too_long',
        `makes a header of ${length} characters; the provider accepts ${maxLengths.header}`,
        'Send a shorter value.',
      )
  }
  return [{ type: 'header', parameters: [textParameter(names[0]!, value ?? '')] }]
}

/** `type`: image, video or document. */
const fillMediaHeader = (type: string, values: HeaderValues, errors: ValueErrors): object[] => {
  const { media_url: link, media_handle: id, file_name: filename } = values
  if (link === undefined && id === undefined)
    errors.add(
      ['media_url'],
      'required',
      `is missing: the header is ${type === 'image' ? 'an' : 'a'} ${type}`,
      'Send media_url or media_handle.',
    )
  if (link !== undefined && id !== undefined)
    errors.add(['media_handle'], 'ambiguous', 'cannot be combined with media_url', 'Send only one of them.')
  checkMediaKind(type, values, errors)
  return [
    {
      type: 'header',
      parameters: [
        {
          type,
          [type]: {
            ...(link === undefined ? { id } : { link }),
            ...(filename === undefined ? {} : { filename }),
          },
        },
      ],
    },
  ]
}

/** Finds what the provider could only refuse after it has accepted the message. */
const checkMediaKind = (
  type: string,
  { media_url: link, media_handle: id }: HeaderValues,
  errors: ValueErrors,
) => {
  const fault = link === undefined ? undefined : findUrlFault(type.toUpperCase(), link)
  if (fault) errors.add(['media_url'], 'wrong_type', fault.problem, fault.fix)
  if (id !== undefined && isSampleHandle(id))
    errors.add(
      ['media_handle'],
      'sample_handle',
      'is the handle of a template sample, which only a draft takes',
      'Send media_url, or the id of a file that was uploaded for messages.',
    )
}

const fillLocationHeader = (
  { latitude, longitude, name, address }: HeaderValues,
  errors: ValueErrors,
): object[] => {
  for (const [field, value] of Object.entries({ latitude, longitude }))
    if (value === undefined)
      errors.add([field], 'required', 'is missing: the header is a location', 'Send it in degrees.')
  return [
    {
      type: 'header',
      parameters: [
        {
          type: 'location',
          location: {
            latitude,
            longitude,
            ...(name === undefined ? {} : { name }),
            ...(address === undefined ? {} : { address }),
          },
        },
      ],
    },
  ]
}
