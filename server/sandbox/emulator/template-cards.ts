import { isObject } from './call.ts'
import { badTemplate, invalid, type RefusalError } from './errors.ts'
import { checkEachButton } from './template-buttons.ts'
import { checkBodyText, checkHeader } from './template-parts.ts'
import { holdsNewline, isBlank, opensVariable, requireLength } from './template-texts.ts'

type Part = Record<string, unknown>

const MOST_OFFER = 16
const LEAST_CARDS = 2
const MOST_CARDS = 10
const MOST_CARD_BUTTONS = 2
const CARD_BUTTONS = ['QUICK_REPLY', 'URL', 'PHONE_NUMBER', 'SPM']

const badOffer = (sentence: string): RefusalError =>
  badTemplate(undefined, 'Limited-time offer is incorrect', sentence)
const badCarousel = (sentence: string): RefusalError =>
  badTemplate(undefined, 'Carousel is incorrect', sentence)

/** `coupon`: there is a button that copies a code. */
export const checkOffer = (
  part: Part,
  { category, coupon, carousel }: { category: string; coupon: boolean; carousel: boolean },
): void => {
  if (category !== 'MARKETING') throw badOffer('Only marketing templates can have a limited-time offer.')
  if (carousel) throw badOffer("A limited-time offer can't stand beside a carousel.")
  if (!coupon) throw badOffer('A limited-time offer needs a COPY_CODE button.')
  const { text, has_expiration: expires } = isObject(part.limited_time_offer) ? part.limited_time_offer : {}
  if (typeof text !== 'string' || isBlank(text)) throw badOffer('A limited-time offer needs text.')
  requireLength(text, MOST_OFFER, 'The text of a limited-time offer')
  if (holdsNewline(text) || opensVariable(text))
    throw badOffer("The text of a limited-time offer can't have new lines or variables.")
  if (expires !== undefined && typeof expires !== 'boolean')
    throw invalid('Param has_expiration must be a boolean.')
}

/** Checks a card; answers what must be the same on every card. */
const checkCard = (card: unknown, named: boolean): string => {
  const components = isObject(card) ? card.components : undefined
  if (!Array.isArray(components) || !components.every(isObject))
    throw invalid("Param cards[..]['components'] must be a list of objects.")
  const find = (type: string): Part | undefined =>
    components.find((c) => String(c.type).toUpperCase() === type)
  const [header, body, buttons] = [find('HEADER'), find('BODY'), find('BUTTONS')]
  if (components.some((c) => ![header, body, buttons].includes(c)))
    throw badCarousel('A card can have a header, a body and buttons, each once.')
  const format = String(header?.format).toUpperCase()
  if (!header || !['IMAGE', 'VIDEO', 'PRODUCT'].includes(format))
    throw badCarousel('Each card needs a header with an image or a video.')
  checkHeader(header, named)
  if (body) checkBodyText(body, named, true)
  if (!buttons) throw badCarousel('Each card needs buttons.')
  const types = checkEachButton(buttons, named)
  if (types.length > MOST_CARD_BUTTONS)
    throw badCarousel(`A card can have at most ${MOST_CARD_BUTTONS} buttons.`)
  if (types.some((type) => !CARD_BUTTONS.includes(type)))
    throw badCarousel(`The buttons of cards are of type {${CARD_BUTTONS.join(', ')}}.`)
  return JSON.stringify([format, body !== undefined, types])
}

/** `beside`: the message has a header, a footer or buttons of its own. */
export const checkCarousel = (
  part: Part,
  { category, beside }: { category: string; beside: boolean },
  named: boolean,
): void => {
  if (category !== 'MARKETING') throw badCarousel('Only marketing templates can have a carousel.')
  if (beside)
    throw badCarousel("A template with a carousel can't have a header, a footer or buttons of its own.")
  const { cards } = part
  if (!Array.isArray(cards) || cards.length < LEAST_CARDS || cards.length > MOST_CARDS)
    throw badCarousel(`A carousel has ${LEAST_CARDS} to ${MOST_CARDS} cards.`)
  const kinds = new Set(cards.map((card) => checkCard(card, named)))
  if (kinds.size > 1)
    throw badCarousel(
      'All cards must have the same header format, the same components and the same buttons in the same order.',
    )
}
