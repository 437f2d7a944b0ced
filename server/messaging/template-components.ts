/**
 * A template's components as the provider holds them (reference 2.3). They come from outside, so everything
 * may be missing.
 */
export type Button = { type: string; text?: string; url?: string }
export type Component = {
  type: string
  format?: string
  text?: string
  buttons?: Button[]
  cards?: { components?: Component[] }[]
  add_security_recommendation?: boolean
  limited_time_offer?: { text?: string; has_expiration?: boolean }
}

/** The parts of a message or of a carousel's card. */
export type Parts = {
  header?: Component
  body?: Component
  buttons: readonly Button[]
  offer?: Component
  cards?: readonly Component[][]
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  value !== null && typeof value === 'object' && !Array.isArray(value)

const componentsIn = (value: unknown): Component[] =>
  Array.isArray(value)
    ? value.filter((c): c is Component => isObject(c) && typeof c['type'] === 'string')
    : []

/** Sorts components by what they are. */
export const partsOf = (components: unknown): Parts => {
  const all = componentsIn(components)
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
      find('BUTTONS')?.buttons?.filter((b): b is Button => isObject(b) && typeof b.type === 'string') ?? [],
    ...(carousel ? { cards: (carousel.cards ?? []).map((card) => componentsIn(card.components)) } : {}),
  }
}

/**
 * The body of an authentication template: the provider writes it, in the language of the template; this is
 * the English one.
 */
export const bodyText = (category: string | null, body: Component | undefined): string => {
  if (body?.text !== undefined) return body.text
  if (category !== 'AUTHENTICATION') return ''
  return `{{1}} is your verification code.${body?.add_security_recommendation === true ? ' For your security, do not share this code.' : ''}`
}
