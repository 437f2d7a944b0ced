import { isObject } from '../../../catalog/values.ts'
/**
 * A template's components in the provider's shape. They come from outside, so every member
 * may be missing.
 */
export type TemplateButton = { type: string; text?: string; url?: string; example?: unknown }
export type TemplateComponent = {
  type: string
  format?: string
  text?: string
  buttons?: TemplateButton[]
  cards?: { components?: TemplateComponent[] }[]
  example?: {
    header_text?: unknown
    header_text_named_params?: unknown
    header_handle?: unknown
    body_text?: unknown
    body_text_named_params?: unknown
  }
  add_security_recommendation?: boolean
  limited_time_offer?: { text?: string; has_expiration?: boolean }
}

/** The components of a message or of a carousel card, by type. */
export type TemplateParts = {
  header?: TemplateComponent
  body?: TemplateComponent
  buttons: readonly TemplateButton[]
  offer?: TemplateComponent
  cards?: readonly TemplateComponent[][]
}

/** Returns the components that can be read. */
export const parseComponents = (value: unknown): TemplateComponent[] =>
  Array.isArray(value)
    ? value.filter((c): c is TemplateComponent => isObject(c) && typeof c['type'] === 'string')
    : []

/** Sorts components by type; unreadable ones are left out. */
export const parseTemplateParts = (components: unknown): TemplateParts => {
  const all = parseComponents(components)
  const find = (type: string) => all.find((c) => c.type.toUpperCase() === type)
  const [header, body, offer, carousel] = [
    find('HEADER'),
    find('BODY'),
    find('LIMITED_TIME_OFFER'),
    find('CAROUSEL'),
  ]
  return {
    ...(header ? { header } : {}),
    ...(body ? { body } : {}),
    ...(offer ? { offer } : {}),
    buttons:
      find('BUTTONS')?.buttons?.filter(
        (b): b is TemplateButton => isObject(b) && typeof b.type === 'string',
      ) ?? [],
    ...(carousel ? { cards: (carousel.cards ?? []).map((card) => parseComponents(card.components)) } : {}),
  }
}

/**
 * Returns the text of a template's body, with its variables. The provider writes the body of an
 * authentication template in the template's language; this is the English one.
 */
export const templateBodyText = (category: string | null, body: TemplateComponent | undefined): string => {
  if (body?.text !== undefined) return body.text
  if (category !== 'AUTHENTICATION') return ''
  const advice =
    body?.add_security_recommendation === true ? ' For your security, do not share this code.' : ''
  return `{{1}} is your verification code.${advice}`
}
