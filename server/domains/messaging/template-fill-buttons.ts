import { countCharacters, maxLengths } from '../../../catalog/templates/rules.ts'
import { fillVariables, listVariables } from '../templates/variables.ts'
import type { TemplateButton } from './template-components.ts'
import { checkTextValue, type TemplateValues, type ValueErrors } from './template-values.ts'

type ButtonValues = NonNullable<TemplateValues['buttons']>[number]
export type ButtonField = 'text' | 'payload' | 'coupon_code'

const BUTTON_FIELDS: readonly ButtonField[] = ['text', 'payload', 'coupon_code']

/** Buttons whose products or thumbnails cannot be given here. */
const UNSUPPORTED_TYPES = new Set(['MPM', 'SPM', 'CATALOG'])

export const isUnsupportedButton = ({ type }: TemplateButton): boolean =>
  UNSUPPORTED_TYPES.has(type.toUpperCase())

/** The value that a button takes; undefined: none. */
export const buttonFieldOf = (
  button: TemplateButton,
): { field: ButtonField; required: boolean } | undefined => {
  switch (button.type.toUpperCase()) {
    case 'URL':
      return listVariables(button.url).length > 0 ? { field: 'text', required: true } : undefined
    case 'COPY_CODE':
      return { field: 'coupon_code', required: true }
    case 'QUICK_REPLY':
      return { field: 'payload', required: false }
    default:
      return undefined
  }
}

/** Returns the provider's button components. `code`: the code that an OTP button copies. */
export const fillButtons = (
  buttons: readonly TemplateButton[],
  values: readonly ButtonValues[],
  code: string,
  errors: ValueErrors,
): object[] => {
  checkIndexes(buttons, values, errors)
  return buttons.flatMap((button, index) => {
    const position = values.findIndex((value) => value.index === index)
    const parameter = fillButton(
      { button, index, code },
      values[position],
      errors.at(position === -1 ? values.length : position),
    )
    return parameter === undefined
      ? []
      : [{ type: 'button', sub_type: subTypeOf(button), index: String(index), parameters: [parameter] }]
  })
}

const checkIndexes = (
  buttons: readonly TemplateButton[],
  values: readonly ButtonValues[],
  errors: ValueErrors,
): void => {
  values.forEach(({ index }, position) => {
    if (index >= buttons.length)
      errors.add(
        [position, 'index'],
        'not_in_template',
        buttons.length === 0
          ? 'names no button: there are none'
          : `names no button: the last one is ${buttons.length - 1}`,
        'Leave it out.',
      )
    else if (values.findIndex((value) => value.index === index) < position)
      errors.add(
        [position, 'index'],
        'duplicate',
        'names a button a second time',
        'Send one entry for each button.',
      )
  })
}

/** The provider sends codes with a URL button of its own. */
const subTypeOf = ({ type }: TemplateButton): string =>
  type.toUpperCase() === 'OTP' ? 'url' : type.toLowerCase()

const fillButton = (
  { button, index, code }: { button: TemplateButton; index: number; code: string },
  values: ButtonValues | undefined,
  errors: ValueErrors,
): object | undefined => {
  const expected = buttonFieldOf(button)
  for (const field of BUTTON_FIELDS) {
    if (values?.[field] === undefined || expected?.field === field) continue
    errors.add(
      [field],
      'not_in_template',
      expected
        ? `does not belong to this button, which takes ${expected.field}`
        : 'has nothing to fill: this button takes no value',
      'Leave it out.',
    )
  }
  const value = expected && values?.[expected.field]
  if (expected && value !== undefined) checkButtonValue(button, expected.field, value, errors)
  else if (expected?.required)
    errors.add(
      [expected.field],
      'required',
      `is missing: the value of button ${index}`,
      `Send {"index": ${index}, "${expected.field}": …}.`,
    )
  switch (button.type.toUpperCase()) {
    case 'OTP':
      return { type: 'text', text: code }
    // A flow takes no value, but the provider requires the parameter.
    case 'FLOW':
      return { type: 'action', action: { flow_token: 'unused' } }
    default:
      return !expected || value === undefined ? undefined : { type: expected.field, [expected.field]: value }
  }
}

const checkButtonValue = (
  button: TemplateButton,
  field: ButtonField,
  value: string,
  errors: ValueErrors,
): void => {
  switch (field) {
    case 'payload':
      if (value.trim() === '') errors.add([field], 'blank', 'is blank', 'Send text, or leave the button out.')
      return
    case 'coupon_code':
      checkTextValue(value, [field], errors)
      if (countCharacters(value) > maxLengths.sentCode)
        errors.add(
          [field],
          'too_long',
          `must have at most ${maxLengths.sentCode} characters, as a coupon code`,
          'Send a shorter code.',
        )
      return
    case 'text':
      checkUrlValue(button.url ?? '', value, errors)
  }
}

const checkUrlValue = (template: string, value: string, errors: ValueErrors): void => {
  if (/\s/.test(value))
    return errors.add(
      ['text'],
      'not_in_url',
      'has a space or line break, which no URL may contain',
      'Percent-encode it.',
    )
  const length = countCharacters(fillVariables(template, listVariables(template), [value]))
  if (length > maxLengths.buttonUrl)
    errors.add(
      ['text'],
      'too_long',
      `makes a URL of ${length} characters; the provider accepts ${maxLengths.buttonUrl}`,
      'Send a shorter value.',
    )
}
