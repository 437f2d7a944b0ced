import { parsePhoneNumberFromString } from 'libphonenumber-js'
import { isObject, isText } from './call.ts'
import { badTemplate, invalid, type RefusalError } from './errors.ts'
import {
  holdsEmoji,
  holdsNewline,
  isBlank,
  opensVariable,
  readTemplateText,
  requireLength,
} from './template-texts.ts'

type Part = Record<string, unknown>

/** The protocol notes know no subcode of buttons. */
const wrong = (sentence: string): RefusalError =>
  badTemplate(undefined, 'Message template button is incorrect', sentence)

const MOST_BUTTONS = 10
const MOST_TEXT = 25
const MOST_URL = 2000
const MOST_PHONE = 20
const MOST_COUPON = 20

/** How many of a type a message can have. */
const most: Readonly<Record<string, number>> = {
  QUICK_REPLY: MOST_BUTTONS,
  URL: 2,
  PHONE_NUMBER: 1,
  COPY_CODE: 1,
  FLOW: 1,
  VOICE_CALL: 1,
  OTP: 1,
  CATALOG: 1,
  MPM: 1,
  SPM: 1,
}
const UNLABELED = ['COPY_CODE', 'OTP']

const webAddress = (text: unknown): URL | undefined =>
  typeof text === 'string' && /^https:\/\/[^/?#\s]/i.test(text) && !/\s/.test(text)
    ? (URL.parse(text) ?? undefined)
    : undefined

const firstOf = (example: unknown): unknown => (Array.isArray(example) ? (example as unknown[])[0] : example)

const CHATS = ['wa.me', 'api.whatsapp.com']

const checkUrl = (button: Part, named: boolean): void => {
  const { url } = button
  if (typeof url !== 'string' || isBlank(url)) throw wrong('A URL button needs an address.')
  requireLength(url, MOST_URL, 'The address of a button')
  const { pieces, variables } = readTemplateText(url, named)
  if (pieces.some((piece) => piece.includes('{{')) || variables.length > 1)
    throw wrong('The address of a button can have one variable at most.')
  if (variables.length === 1 && (pieces[1] !== '' || (!named && variables[0] !== '1')))
    throw wrong('The variable of an address is {{1}}, at its end.')
  const address = webAddress(pieces.join('x'))
  if (!address) throw wrong('The address of a button must be a whole one that begins with https://.')
  if (CHATS.includes(address.hostname)) throw wrong('Direct links to WhatsApp are not allowed for buttons.')
  if (variables.length === 0) return
  const example = firstOf(button.example)
  if (!isText(example) || isBlank(example)) throw wrong('An address with a variable needs an example.')
  if (!webAddress(example) || !example.startsWith(pieces[0]!) || example.length <= pieces[0]!.length)
    throw wrong('The example must be the address with the variable filled in.')
}

/** With the country code, the plus before it or not; without an extension. */
const isInternational = (phone: string): boolean => {
  if (!/^\+?[1-9][0-9 ()./-]*$/.test(phone)) return false
  const parsed = parsePhoneNumberFromString(phone.startsWith('+') ? phone : `+${phone}`, { extract: false })
  return parsed !== undefined && parsed.isPossible() && parsed.number.length <= '+'.length + 15
}

const checkPhone = (button: Part): void => {
  const { phone_number: phone } = button
  if (typeof phone !== 'string' || isBlank(phone)) throw wrong('A PHONE_NUMBER button needs a number.')
  if ([...phone].length > MOST_PHONE || !isInternational(phone))
    throw wrong('The number of a button must be an international one of at most 20 characters.')
}

const checkCoupon = (button: Part): void => {
  const code = firstOf(button.example)
  if (!isText(code) || isBlank(code)) throw wrong('A COPY_CODE button needs an example of a code.')
  if ([...code].length > MOST_COUPON || /\s/.test(code))
    throw wrong('A coupon code has at most 20 characters and no spaces.')
}

const checkFlow = (button: Part): void => {
  if ([button.flow_id, button.flow_name, button.flow_json].every(isBlank))
    throw wrong('A FLOW button needs one of flow_id, flow_name and flow_json.')
  const action = String(button.flow_action ?? 'navigate').toLowerCase()
  if (!['navigate', 'data_exchange'].includes(action))
    throw wrong('Param flow_action must be one of {navigate, data_exchange}.')
  if (action === 'navigate' && isBlank(button.navigate_screen))
    throw wrong('A FLOW button that navigates needs navigate_screen.')
}

const checkApp = (app: unknown): void => {
  const { package_name: name, signature_hash: hash } = isObject(app) ? app : {}
  if (!isText(name) || !/^[A-Za-z]\w*(?:\.[A-Za-z]\w*)+$/.test(name))
    throw wrong('package_name must be the name of an Android package.')
  if (!isText(hash) || !/^[A-Za-z0-9+/=]{11}$/.test(hash))
    throw wrong('signature_hash must be the 11 characters of an app signing key hash.')
}

const checkCode = (button: Part): void => {
  const type = String(button.otp_type ?? 'COPY_CODE').toUpperCase()
  if (!['COPY_CODE', 'ONE_TAP', 'ZERO_TAP'].includes(type))
    throw wrong('Param otp_type must be one of {COPY_CODE, ONE_TAP, ZERO_TAP}.')
  if (type === 'COPY_CODE') return
  // Older clients put one app into the button itself.
  const apps = button.supported_apps ?? (button.package_name === undefined ? [] : [button])
  if (!Array.isArray(apps) || apps.length === 0) throw wrong(`A button of type ${type} needs supported_apps.`)
  apps.forEach(checkApp)
}

const checks: Readonly<Record<string, (button: Part, named: boolean) => void>> = {
  URL: checkUrl,
  PHONE_NUMBER: checkPhone,
  COPY_CODE: checkCoupon,
  FLOW: checkFlow,
  OTP: checkCode,
}

const checkLabel = (button: Part, type: string): void => {
  const { text } = button
  if (isBlank(text)) {
    if (!UNLABELED.includes(type)) throw wrong('A button needs text.')
    return
  }
  const label = text as string
  requireLength(label, MOST_TEXT, 'The text of a button')
  if (opensVariable(label) || holdsNewline(label) || holdsEmoji(label))
    throw wrong("The text of a button can't have variables, new lines or emojis.")
}

/** Each button by itself, and that no two have the same text; answers their types. */
export const checkEachButton = (part: Part, named: boolean): string[] => {
  const { buttons } = part
  if (!Array.isArray(buttons) || buttons.length === 0 || !buttons.every(isObject))
    throw invalid('Param buttons must be a list of objects.')
  const labels = new Set<string>()
  return buttons.map((button) => {
    const type = String(button.type).toUpperCase()
    if (!Object.hasOwn(most, type))
      throw invalid(`Param buttons[..]['type'] must be one of {${Object.keys(most).join(', ')}}.`)
    if (type !== 'COPY_CODE') checkLabel(button, type)
    checks[type]?.(button, named)
    if (type === 'COPY_CODE' || isBlank(button.text)) return type
    const label = (button.text as string).trim()
    if (labels.has(label)) throw wrong('Two buttons have the same text.')
    labels.add(label)
    return type
  })
}

/** Quick replies stand together, before the others or after them. */
const areGrouped = (types: readonly string[]): boolean =>
  types.filter((type, n) => n > 0 && (type === 'QUICK_REPLY') !== (types[n - 1] === 'QUICK_REPLY')).length <=
  1

/** The buttons of a message; answers their types. */
export const checkButtons = (part: Part | undefined, authentication: boolean, named: boolean): string[] => {
  const types = part ? checkEachButton(part, named) : []
  if (authentication !== types.includes('OTP') || (authentication && types.length !== 1)) {
    throw wrong(
      authentication
        ? 'An authentication template needs one button, of type OTP.'
        : 'Only authentication templates have buttons of type OTP.',
    )
  }
  if (types.length > MOST_BUTTONS) throw wrong(`A template can have at most ${MOST_BUTTONS} buttons.`)
  const crowded = types.find((type) => types.filter((t) => t === type).length > most[type]!)
  if (crowded) throw wrong(`A template can have at most ${most[crowded]} of type ${crowded}.`)
  if (!areGrouped(types))
    throw wrong('Quick replies must stand together, before the other buttons or after them.')
  return types
}
