import {
  LANGUAGE_CODE,
  maxLengths,
  TEMPLATE_NAME,
  templateCategories,
} from '../../../catalog/templates/rules.ts'
import { isObject } from '../../../catalog/values.ts'
import { isNonEmptyText } from './call.ts'
import { invalidTemplate, invalidParameter, parameterRequired } from './errors.ts'
import { checkButtons } from './template-buttons.ts'
import { checkCarousel, checkOffer } from './template-cards.ts'
import { checkBody, checkFooter, checkHeader } from './template-parts.ts'
import { hasAdjacentVariables, readTemplateText, requireLength } from './template-texts.ts'

export const TEMPLATE_CATEGORIES: readonly string[] = templateCategories

type Part = Record<string, unknown>

/** Returns the name, language and category of a new template; throws when one is invalid. */
export const checkEnvelope = (body: Part): { name: string; language: string; category: string } => {
  const { name, language, category } = body
  if (name === undefined) throw parameterRequired('name')
  if (typeof name !== 'string' || !TEMPLATE_NAME.test(name))
    throw invalidTemplate(
      2388046,
      'Name Format is Incorrect',
      'The message template name can only have lowercase letters, digits and underscores.',
    )
  requireLength(name, maxLengths.name, 'The name')
  if (language === undefined) throw parameterRequired('language')
  if (typeof language !== 'string' || !LANGUAGE_CODE.test(language))
    throw invalidParameter('Param language is not a supported language.')
  if (category === undefined) throw parameterRequired('category')
  if (typeof category !== 'string' || !TEMPLATE_CATEGORIES.includes(category))
    throw invalidParameter(`Param category must be one of {${TEMPLATE_CATEGORIES.join(', ')}}.`)
  return { name, language, category }
}

const TYPES = [
  'HEADER',
  'BODY',
  'FOOTER',
  'BUTTONS',
  'CAROUSEL',
  'LIMITED_TIME_OFFER',
  'CALL_PERMISSION_REQUEST',
]
const AUTHENTICATION_TYPES = ['BODY', 'FOOTER', 'BUTTONS']

/** Returns the components of a new template; throws when the provider would not accept them. */
export const checkTemplateComponents = (components: unknown, category: string, named: boolean): Part[] => {
  if (components === undefined) throw parameterRequired('components')
  if (
    !Array.isArray(components) ||
    components.length === 0 ||
    components.length > 20 ||
    !components.every(isObject)
  )
    throw invalidParameter('Param components must be a list of objects.')
  const unknown = components.find((c) => typeof c.type !== 'string' || !TYPES.includes(c.type.toUpperCase()))
  if (unknown) throw invalidParameter(`Param components[..]['type'] must be one of {${TYPES.join(', ')}}.`)
  const typed = components.map((c) => ({ ...c, type: String(c.type).toUpperCase() }) as Part)
  checkParts(typed, category, named)
  return typed
}

const checkParts = (parts: readonly Part[], category: string, named: boolean): void => {
  const authentication = category === 'AUTHENTICATION'
  const find = (type: string): Part | undefined => parts.find((part) => part.type === type)
  const body = find('BODY')
  if (!body)
    throw invalidTemplate(
      2388072,
      'Message template body is missing',
      'A template needs exactly one component of type BODY.',
    )
  const twice = parts.find((part) => find(String(part.type)) !== part)
  if (twice)
    throw invalidTemplate(
      undefined,
      'Message template has a component twice',
      `A template can have only one component of type ${String(twice.type)}.`,
    )
  const unfit = authentication && parts.find((part) => !AUTHENTICATION_TYPES.includes(String(part.type)))
  if (unfit)
    throw invalidTemplate(
      undefined,
      'Authentication templates have a fixed form',
      `An authentication template can't have a component of type ${String(unfit.type)}.`,
    )
  checkBody(body, authentication, named)
  const [header, footer, buttons, offer, carousel] = [
    'HEADER',
    'FOOTER',
    'BUTTONS',
    'LIMITED_TIME_OFFER',
    'CAROUSEL',
  ].map(find)
  if (header) checkHeader(header, named)
  if (footer) checkFooter(footer, authentication)
  checkButtons(buttons, authentication, named)
  if (offer) checkOffer(offer, { category, carousel: carousel !== undefined, header, body, footer, buttons })
  if (carousel)
    checkCarousel(
      carousel,
      { category, beside: [header, footer, buttons].some((part) => part !== undefined) },
      named,
    )
}

/** Why the reviewer rejects a template that was accepted at first: `reason` and what to do. */
export type ReviewFinding = { reason: string; recommendation: string }

const listBodies = (components: unknown): string[] => {
  if (!Array.isArray(components)) return []
  return components
    .filter(isObject)
    .flatMap((part) => [
      ...(String(part.type).toUpperCase() === 'BODY' && isNonEmptyText(part.text) ? [part.text] : []),
      ...(Array.isArray(part.cards)
        ? part.cards.filter(isObject).flatMap((card) => listBodies(card.components))
        : []),
    ])
}

/** Adjacent variables are accepted at first, and rejected in review. */
export const findReviewFinding = (components: readonly Part[], named: boolean): ReviewFinding | undefined =>
  listBodies(components).some((text) => hasAdjacentVariables(readTemplateText(text, named)))
    ? {
        reason:
          'Your template has parameters placed next to each other (like {{1}}{{2}}) ' +
          'without text or punctuation between them.',
        recommendation:
          'Separate parameters with descriptive text and ensure each parameter is clearly contextualized.',
      }
    : undefined
