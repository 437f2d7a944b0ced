import {
  cardButtonTypes,
  cardCount,
  hasNewline,
  hasVariable,
  MAX_CARD_BUTTONS,
  maxLengths,
  pictureFormats,
} from '../../../catalog/templates/rules.ts'
import { isBlank, isObject } from '../../../catalog/values.ts'
import { invalidTemplate, invalidParameter, type ProviderError } from './errors.ts'
import { checkEachButton } from './template-buttons.ts'
import { checkBodyText, checkHeader } from './template-parts.ts'
import { requireLength } from './template-texts.ts'

type Part = Record<string, unknown>

/** Beyond those of drafts: cards of products. */
const CARD_FORMATS = [...pictureFormats, 'PRODUCT']
const CARD_BUTTONS = [...cardButtonTypes, 'SPM']

const invalidOffer = (sentence: string): ProviderError =>
  invalidTemplate(undefined, 'Limited-time offer is incorrect', sentence)
const invalidCarousel = (sentence: string): ProviderError =>
  invalidTemplate(undefined, 'Carousel is incorrect', sentence)

/** The other components of a template with an offer. */
type OfferContext = {
  category: string
  carousel: boolean
  header: Part | undefined
  body: Part
  footer: Part | undefined
  buttons: Part | undefined
}

/** Checks the components beside an offer. The provider's notes list no subcodes for them. */
const checkBesideOffer = ({ category, carousel, header, body, footer, buttons }: OfferContext): void => {
  if (category !== 'MARKETING') throw invalidOffer('Only marketing templates can have a limited-time offer.')
  if (carousel) throw invalidOffer("A limited-time offer can't stand beside a carousel.")
  if (header && !pictureFormats.includes(String(header.format).toUpperCase()))
    throw invalidOffer('The header of a limited-time offer must be an image or a video.')
  if (footer) throw invalidOffer("A limited-time offer can't have a footer.")
  requireLength(String(body.text), maxLengths.bodyWithOffer, 'The body of a limited-time offer')
  const list = (buttons?.buttons ?? []) as Part[]
  const types = list.map(({ type }) => String(type).toUpperCase())
  if (types[0] !== 'COPY_CODE')
    throw invalidOffer('The first button of a limited-time offer must be a COPY_CODE button.')
  if (!types.includes('URL')) throw invalidOffer('A limited-time offer needs a URL button.')
  const [example] = [list[0]!.example].flat()
  requireLength(String(example), maxLengths.sentCode, 'The code of a limited-time offer')
}

/** Checks an offer and the components beside it. */
export const checkOffer = (part: Part, context: OfferContext): void => {
  checkBesideOffer(context)
  const { text, has_expiration: expires } = isObject(part.limited_time_offer) ? part.limited_time_offer : {}
  if (typeof text !== 'string' || isBlank(text)) throw invalidOffer('A limited-time offer needs text.')
  requireLength(text, maxLengths.offer, 'The text of a limited-time offer')
  if (hasNewline(text) || hasVariable(text))
    throw invalidOffer("The text of a limited-time offer can't have new lines or variables.")
  if (expires !== undefined && typeof expires !== 'boolean')
    throw invalidParameter('Param has_expiration must be a boolean.')
}

/** Checks a card. Returns a text that must be the same for all cards. */
const checkCard = (card: unknown, named: boolean): string => {
  const components = isObject(card) ? card.components : undefined
  if (!Array.isArray(components) || !components.every(isObject))
    throw invalidParameter("Param cards[..]['components'] must be a list of objects.")
  const find = (type: string): Part | undefined =>
    components.find((c) => String(c.type).toUpperCase() === type)
  const [header, body, buttons] = [find('HEADER'), find('BODY'), find('BUTTONS')]
  if (components.some((c) => ![header, body, buttons].includes(c)))
    throw invalidCarousel('A card can have a header, a body and buttons, each once.')
  const format = String(header?.format).toUpperCase()
  if (!header || !CARD_FORMATS.includes(format))
    throw invalidCarousel('Each card needs a header with an image or a video.')
  checkHeader(header, named)
  if (body) checkBodyText(body, named, true)
  if (!buttons) throw invalidCarousel('Each card needs buttons.')
  const types = checkEachButton(buttons, named)
  if (types.length > MAX_CARD_BUTTONS)
    throw invalidCarousel(`A card can have at most ${MAX_CARD_BUTTONS} buttons.`)
  if (types.some((type) => !CARD_BUTTONS.includes(type)))
    throw invalidCarousel(`The buttons of cards are of type {${CARD_BUTTONS.join(', ')}}.`)
  return JSON.stringify([format, body !== undefined, types])
}

/** Checks a carousel. `beside`: the message has a header, a footer or buttons of its own. */
export const checkCarousel = (
  part: Part,
  { category, beside }: { category: string; beside: boolean },
  named: boolean,
): void => {
  if (category !== 'MARKETING') throw invalidCarousel('Only marketing templates can have a carousel.')
  if (beside)
    throw invalidCarousel("A template with a carousel can't have a header, a footer or buttons of its own.")
  const { cards } = part
  if (!Array.isArray(cards) || cards.length < cardCount.min || cards.length > cardCount.max)
    throw invalidCarousel(`A carousel has ${cardCount.min} to ${cardCount.max} cards.`)
  const kinds = new Set(cards.map((card) => checkCard(card, named)))
  if (kinds.size > 1)
    throw invalidCarousel(
      'All cards must have the same header format, the same components ' +
        'and the same buttons in the same order.',
    )
}
