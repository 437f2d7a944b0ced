import {
  areRepliesTogether,
  BUTTON_PHONE,
  chatHosts,
  FORMATTING,
  hasEmoji,
  hasNewline,
  hasVariable,
  MAX_BUTTONS,
  maxButtonsByType,
  maxLengths,
  PACKAGE_NAME,
  SIGNATURE_HASH,
  unlabelledButtons,
} from '../../../catalog/templates/rules.ts'
import { isBlank, isObject } from '../../../catalog/values.ts'
import { parsePhoneNumberFromString } from 'libphonenumber-js'
import { isNonEmptyText } from './call.ts'
import { invalidTemplate, invalidParameter, type ProviderError } from './errors.ts'
import { readTemplateText, requireLength } from './template-texts.ts'

type Part = Record<string, unknown>

/** The protocol notes list no subcode for buttons. */
const invalidButton = (sentence: string): ProviderError =>
  invalidTemplate(undefined, 'Message template button is incorrect', sentence)

const TYPES = ['QUICK_REPLY', ...Object.keys(maxButtonsByType)]

const parseHttpsUrl = (text: unknown): URL | undefined =>
  typeof text === 'string' && /^https:\/\/[^/?#\s]/i.test(text) && !/\s/.test(text)
    ? (URL.parse(text) ?? undefined)
    : undefined

const firstExample = (example: unknown): unknown =>
  Array.isArray(example) ? (example as unknown[])[0] : example

const checkUrl = (button: Part, named: boolean): void => {
  const { url } = button
  if (typeof url !== 'string' || isBlank(url)) throw invalidButton('A URL button needs an address.')
  requireLength(url, maxLengths.buttonUrl, 'The address of a button')
  const { pieces, variables } = readTemplateText(url, named)
  if (pieces.some((piece) => piece.includes('{{')) || variables.length > 1)
    throw invalidButton('The address of a button can have one variable at most.')
  if (variables.length === 1 && (pieces[1] !== '' || (!named && variables[0] !== '1')))
    throw invalidButton('The variable of an address is {{1}}, at its end.')
  const address = parseHttpsUrl(pieces.join('x'))
  if (!address) throw invalidButton('The address of a button must be a whole one that begins with https://.')
  if (chatHosts.includes(address.hostname))
    throw invalidButton('Direct links to WhatsApp are not allowed for buttons.')
  if (variables.length === 0) return
  const example = firstExample(button.example)
  if (!isNonEmptyText(example) || isBlank(example))
    throw invalidButton('An address with a variable needs an example.')
  if (!isExampleOf(example, pieces[0]!))
    throw invalidButton('The example must be the address with the variable filled in.')
}

/** The provider's reference gives the value of the variable alone as example; whole addresses are common too. */
const isExampleOf = (example: string, start: string): boolean =>
  /^[a-z][a-z0-9+.-]*:\/\//i.test(example)
    ? parseHttpsUrl(example) !== undefined && example.startsWith(start) && example.length > start.length
    : !/\s/.test(example)

/** Whether the number has a country code, with or without the plus, and no extension. */
const isInternational = (phone: string): boolean => {
  if (!BUTTON_PHONE.test(phone)) return false
  const parsed = parsePhoneNumberFromString(phone.startsWith('+') ? phone : `+${phone}`, { extract: false })
  return parsed !== undefined && parsed.isPossible() && parsed.number.length <= '+'.length + 15
}

const checkPhone = (button: Part): void => {
  const { phone_number: phone } = button
  if (typeof phone !== 'string' || isBlank(phone))
    throw invalidButton('A PHONE_NUMBER button needs a number.')
  if ([...phone].length > maxLengths.buttonPhone || !isInternational(phone))
    throw invalidButton('The number of a button must be an international one of at most 20 characters.')
}

const checkCoupon = (button: Part): void => {
  const code = firstExample(button.example)
  if (!isNonEmptyText(code) || isBlank(code))
    throw invalidButton('A COPY_CODE button needs an example of a code.')
  if ([...code].length > maxLengths.coupon || /\s/.test(code))
    throw invalidButton('A coupon code has at most 20 characters and no spaces.')
}

const checkFlow = (button: Part): void => {
  if ([button.flow_id, button.flow_name, button.flow_json].every(isBlank))
    throw invalidButton('A FLOW button needs one of flow_id, flow_name and flow_json.')
  const action = String(button.flow_action ?? 'navigate').toLowerCase()
  if (!['navigate', 'data_exchange'].includes(action))
    throw invalidButton('Param flow_action must be one of {navigate, data_exchange}.')
  if (action === 'navigate' && isBlank(button.navigate_screen))
    throw invalidButton('A FLOW button that navigates needs navigate_screen.')
}

const checkApp = (app: unknown): void => {
  const { package_name: name, signature_hash: hash } = isObject(app) ? app : {}
  if (!isNonEmptyText(name) || !PACKAGE_NAME.test(name))
    throw invalidButton('package_name must be the name of an Android package.')
  if (!isNonEmptyText(hash) || !SIGNATURE_HASH.test(hash))
    throw invalidButton('signature_hash must be the 11 characters of an app signing key hash.')
}

const checkOtp = (button: Part): void => {
  const type = String(button.otp_type ?? 'COPY_CODE').toUpperCase()
  if (!['COPY_CODE', 'ONE_TAP', 'ZERO_TAP'].includes(type))
    throw invalidButton('Param otp_type must be one of {COPY_CODE, ONE_TAP, ZERO_TAP}.')
  if (type === 'COPY_CODE') return
  // Older clients put one app into the button itself.
  const apps = button.supported_apps ?? (button.package_name === undefined ? [] : [button])
  if (!Array.isArray(apps) || apps.length === 0)
    throw invalidButton(`A button of type ${type} needs supported_apps.`)
  apps.forEach(checkApp)
  if (type === 'ZERO_TAP' && button.zero_tap_terms_accepted !== true)
    throw invalidButton('A button of type ZERO_TAP needs zero_tap_terms_accepted.')
}

const checks: Readonly<Record<string, (button: Part, named: boolean) => void>> = {
  URL: checkUrl,
  PHONE_NUMBER: checkPhone,
  COPY_CODE: checkCoupon,
  FLOW: checkFlow,
  OTP: checkOtp,
}

const checkLabel = (button: Part, type: string): void => {
  const { text } = button
  if (isBlank(text)) {
    if (!unlabelledButtons.includes(type)) throw invalidButton('A button needs text.')
    return
  }
  const label = text as string
  requireLength(label, maxLengths.label, 'The text of a button')
  if (hasVariable(label) || hasNewline(label) || hasEmoji(label) || FORMATTING.test(label))
    throw invalidButton(
      "The text of a button can't have variables, new lines, emojis or formatting characters.",
    )
}

/** Checks each button, and that no two have the same text. Returns their types. */
export const checkEachButton = (part: Part, named: boolean): string[] => {
  const { buttons } = part
  if (!Array.isArray(buttons) || buttons.length === 0 || !buttons.every(isObject))
    throw invalidParameter('Param buttons must be a list of objects.')
  const labels = new Set<string>()
  return buttons.map((button) => {
    const type = String(button.type).toUpperCase()
    if (!TYPES.includes(type))
      throw invalidParameter(`Param buttons[..]['type'] must be one of {${TYPES.join(', ')}}.`)
    if (type !== 'COPY_CODE') checkLabel(button, type)
    checks[type]?.(button, named)
    if (type === 'COPY_CODE' || isBlank(button.text)) return type
    const label = (button.text as string).trim()
    if (labels.has(label)) throw invalidButton('Two buttons have the same text.')
    labels.add(label)
    return type
  })
}

/** Checks the buttons of a message. */
export const checkButtons = (part: Part | undefined, authentication: boolean, named: boolean): void => {
  const types = part ? checkEachButton(part, named) : []
  if (authentication !== types.includes('OTP') || (authentication && types.length !== 1)) {
    throw invalidButton(
      authentication
        ? 'An authentication template needs one button, of type OTP.'
        : 'Only authentication templates have buttons of type OTP.',
    )
  }
  if (types.length > MAX_BUTTONS) throw invalidButton(`A template can have at most ${MAX_BUTTONS} buttons.`)
  const crowded = types.find(
    (type) => types.filter((t) => t === type).length > (maxButtonsByType[type] ?? MAX_BUTTONS),
  )
  if (crowded)
    throw invalidButton(`A template can have at most ${maxButtonsByType[crowded]} of type ${crowded}.`)
  if (!areRepliesTogether(types))
    throw invalidButton('Quick replies must stand together, before the other buttons or after them.')
}
