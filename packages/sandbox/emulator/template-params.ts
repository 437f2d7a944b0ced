import { countCharacters, maxLengths } from '../../../catalog/templates/rules.ts'
import { isObject } from '../../../catalog/values.ts'
import type { SandboxTemplate } from '../storage/templates.ts'
import { type SandboxCall, isNonEmptyText } from './call.ts'
import { badParameterValue, invalidParameter, missingPart, providerError } from './errors.ts'
import { checkLocation, checkMedia } from './part-checks.ts'

type Part = Record<string, unknown>

/** Returns the distinct variables of a text: `1`, `2` … or names. */
const variablesOf = (text: unknown): string[] => [
  ...new Set(typeof text === 'string' ? [...text.matchAll(/\{\{\s*(\w+)\s*\}\}/g)].map((m) => m[1]!) : []),
]

const wrongCount = (where: string, given: number, wanted: number) =>
  providerError(
    132000,
    `${where}: number of localizable_params (${given}) ` +
      `does not match the expected number of params (${wanted})`,
  )
const formatMismatch = (where: string, wanted: string, given: unknown) => {
  const received = isNonEmptyText(given) ? given.toUpperCase().slice(0, 40) : 'UNKNOWN'
  return providerError(132012, `${where}: Format mismatch, expected ${wanted}, received ${received}`)
}

const parametersOf = (component: Part | undefined, where: string): Part[] => {
  const parameters = component?.parameters ?? []
  if (!Array.isArray(parameters) || !parameters.every(isObject))
    throw badParameterValue(`${where}: parameters must be a list of objects.`)
  return parameters
}

const requireParameterText = (parameter: Part, where: string): string => {
  switch (parameter.type) {
    case 'text': {
      if (!isNonEmptyText(parameter.text)) throw missingPart('Parameter of type text is missing text value')
      if (/[\n\t]| {5}/.test(parameter.text))
        throw invalidParameter(
          'Param text cannot have new-line/tab characters or more than 4 consecutive spaces',
        )
      return parameter.text
    }
    case 'currency':
    case 'date_time': {
      const value = parameter[parameter.type]
      if (!isObject(value) || !isNonEmptyText(value.fallback_value))
        throw missingPart(`Parameter of type ${parameter.type} is missing fallback_value`)
      return value.fallback_value
    }
    default:
      throw formatMismatch(where, 'TEXT', parameter.type)
  }
}

/** Checks the values of a text's variables: as many as it has, by name where they are named. */
const checkTexts = (text: unknown, parameters: readonly Part[], where: string, named: boolean): void => {
  const wanted = variablesOf(text)
  if (parameters.length !== wanted.length) throw wrongCount(where, parameters.length, wanted.length)
  const values = parameters.map((p) => requireParameterText(p, where))
  if (named) {
    for (const p of parameters)
      if (!isNonEmptyText(p.parameter_name)) throw invalidParameter('Parameter name is missing or empty')
    const absent = wanted.find((name) => !parameters.some((p) => p.parameter_name === name))
    if (absent !== undefined) throw invalidParameter(`Parameter ${absent} of the template is missing`)
  }
  const whole = String(text).replace(
    /\{\{\s*(\w+)\s*\}\}/g,
    (_, name: string) =>
      values[named ? parameters.findIndex((p) => p.parameter_name === name) : wanted.indexOf(name)] ?? '',
  )
  if (wanted.length > 0 && countCharacters(whole) > maxLengths.body)
    throw providerError(132005, `${where}: Translated text too long, at most ${maxLengths.body} characters`)
}

const checkHeader = async (
  call: SandboxCall,
  stored: Part | undefined,
  component: Part | undefined,
  named: boolean,
): Promise<void> => {
  const parameters = parametersOf(component, 'header')
  const format = stored === undefined ? undefined : String(stored.format)
  if (format === undefined || format === 'TEXT')
    return checkTexts(stored?.text ?? '', parameters, 'header', named)
  const [parameter] = parameters
  const type = format.toLowerCase()
  if (!parameter) throw formatMismatch('header', format, undefined)
  if (parameters.length > 1) throw wrongCount('header', parameters.length, 1)
  const value = parameter[type]
  if (parameter.type !== type || !isObject(value)) throw formatMismatch('header', format, parameter.type)
  if (type === 'location') return checkLocation(value)
  const given = (await checkMedia(call, type, value)) ?? typeOfLink(value.link)
  if (given !== undefined && !MEDIA_TYPES_BY_HEADER[type]?.test(given))
    throw providerError(
      131053,
      `header: Media of type ${given} cannot be sent in a header of format ${format}.`,
    )
}

/** The types of files in media headers; documents are PDF only, other than in messages without a template. */
const MEDIA_TYPES_BY_HEADER: Readonly<Record<string, RegExp>> = {
  image: /^image\/(?:jpeg|png)$/,
  video: /^video\/(?:mp4|3gpp?)$/,
  gif: /^video\/mp4$/,
  document: /^application\/pdf$/,
}

/** The sandbox fetches no links: the end of a link's path stands for the type that the file would have. */
const LINK_TYPES: Readonly<Record<string, string>> = {
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  png: 'image/png',
  gif: 'image/gif',
  webp: 'image/webp',
  mp4: 'video/mp4',
  '3gp': 'video/3gpp',
  mov: 'video/quicktime',
  webm: 'video/webm',
  pdf: 'application/pdf',
  docx: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  mp3: 'audio/mpeg',
  ogg: 'audio/ogg',
}

const typeOfLink = (link: unknown): string | undefined => {
  const extension = /\.(\w{2,5})$/.exec(URL.parse(String(link))?.pathname ?? '')?.[1]?.toLowerCase() ?? ''
  return Object.hasOwn(LINK_TYPES, extension) ? LINK_TYPES[extension] : undefined
}

/** The parameter that a button needs in every send; undefined: none. */
const requiredParameter = (button: Part): { kind: string; parameter: string } | undefined => {
  switch (String(button.type)) {
    case 'URL':
      return variablesOf(button.url).length > 0 ? { kind: 'url', parameter: 'text' } : undefined
    case 'OTP':
      return { kind: 'url', parameter: 'text' }
    case 'COPY_CODE':
      return { kind: 'copy_code', parameter: 'coupon_code' }
    case 'MPM':
      return { kind: 'mpm', parameter: 'action' }
    default:
      return undefined
  }
}
const subTypeOf = (button: Part): string =>
  button.type === 'OTP' ? 'url' : String(button.type).toLowerCase()

const checkButtons = (stored: Part | undefined, components: readonly Part[]): void => {
  const buttons = Array.isArray(stored?.buttons) ? stored.buttons.filter(isObject) : []
  for (const component of components) {
    const button = /^\d{1,2}$/.test(String(component.index)) ? buttons[Number(component.index)] : undefined
    if (!button)
      throw badParameterValue(
        `buttons: Template has no button at index ${String(component.index).slice(0, 20)}`,
      )
    if (String(component.sub_type).toLowerCase() !== subTypeOf(button))
      throw providerError(
        132012,
        `buttons: Button at index ${String(component.index)} is of type ${String(button.type)}, ` +
          `not ${String(component.sub_type).slice(0, 40)}`,
      )
  }
  buttons.forEach((button, index) => {
    const need = requiredParameter(button)
    if (!need) return
    const given = components.find((c) => String(c.index) === String(index))
    const [parameter] = parametersOf(given, 'buttons')
    if (!parameter)
      throw missingPart(
        `buttons: Button at index ${index} of type ${formatButtonType(button)} requires a parameter`,
      )
    if (parameter.type !== need.parameter)
      throw formatMismatch('buttons', need.parameter.toUpperCase(), parameter.type)
    const value = parameter[need.parameter]
    if (need.parameter === 'action' ? !isObject(value) : !isNonEmptyText(value))
      throw missingPart(`buttons: Parameter of type ${need.parameter} is missing its value`)
    if (need.parameter === 'coupon_code' && countCharacters(value as string) > maxLengths.sentCode)
      throw providerError(132018, `buttons: Coupon code must be at most ${maxLengths.sentCode} characters`)
  })
}
const formatButtonType = (button: Part): string =>
  String(button.type)
    .split('_')
    .map((w) => w.charAt(0) + w.slice(1).toLowerCase())
    .join('')

const checkOffer = (stored: Part | undefined, component: Part | undefined): void => {
  const offer = stored?.limited_time_offer
  if (!stored || !isObject(offer) || offer.has_expiration !== true) {
    if (component && !stored) throw badParameterValue('limited_time_offer: Template has no such component')
    return
  }
  const [parameter] = parametersOf(component, 'limited_time_offer')
  const value = parameter?.limited_time_offer
  if (!isObject(value) || !Number.isSafeInteger(value.expiration_time_ms))
    throw missingPart('limited_time_offer: expiration_time_ms is required')
}

const checkCarousel = async (
  call: SandboxCall,
  stored: Part | undefined,
  component: Part | undefined,
  template: SandboxTemplate,
): Promise<void> => {
  const wanted = Array.isArray(stored?.cards) ? stored.cards.filter(isObject) : []
  const cards = component?.cards ?? []
  if (!Array.isArray(cards) || !cards.every(isObject))
    throw badParameterValue('carousel: cards must be a list of objects.')
  if (cards.length !== wanted.length)
    throw providerError(
      132012,
      `carousel: number of cards (${cards.length}) ` +
        `does not match the expected number of cards (${wanted.length})`,
    )
  for (const [n, card] of cards.entries()) {
    const own = wanted[Number(card.card_index ?? n)]
    if (!own) throw badParameterValue('carousel: card_index is not of a card of the template')
    await checkComponents(
      call,
      parseComponents(own.components, 'carousel'),
      parseComponents(card.components, 'carousel'),
      template,
    )
  }
}

const parseComponents = (value: unknown, where: string): Part[] => {
  if (value === undefined) return []
  if (!Array.isArray(value) || !value.every(isObject))
    throw badParameterValue(`${where}: components must be a list of objects.`)
  return value
}

const TYPES = [
  'header',
  'body',
  'button',
  'limited_time_offer',
  'carousel',
  'order_status',
  'tap_target_configuration',
]

/** Throws when the components of a send do not fit those of the template. */
export const checkComponents = async (
  call: SandboxCall,
  stored: readonly Part[],
  given: readonly Part[],
  template: SandboxTemplate,
): Promise<void> => {
  const own = (type: string) => stored.find((c) => String(c.type).toUpperCase() === type)
  const sent = (type: string) => given.find((c) => String(c.type).toLowerCase() === type)
  const unknown = given.find((c) => !TYPES.includes(String(c.type).toLowerCase()))
  if (unknown)
    throw badParameterValue(`Param template['components'][..]['type'] must be one of {${TYPES.join(', ')}}.`)
  const named = template.parameter_format === 'NAMED'
  await checkHeader(call, own('HEADER'), sent('header'), named)
  const body = own('BODY')
  // The provider writes the text of an authentication template, with the code in it.
  checkTexts(
    template.category === 'AUTHENTICATION' && body?.text === undefined ? '{{1}}' : (body?.text ?? ''),
    parametersOf(sent('body'), 'body'),
    'body',
    named,
  )
  checkButtons(
    own('BUTTONS'),
    given.filter((c) => String(c.type).toLowerCase() === 'button'),
  )
  checkOffer(own('LIMITED_TIME_OFFER'), sent('limited_time_offer'))
  await checkCarousel(call, own('CAROUSEL'), sent('carousel'), template)
}
