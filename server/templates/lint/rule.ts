import type { TemplateDraft } from '../../../catalog/templates.ts'
import { parseVariables, type Variables } from '../variables.ts'
import { isBlank } from './text.ts'

export type Draft = TemplateDraft
export type Button = NonNullable<Draft['buttons']>[number]
export type Card = NonNullable<Draft['carousel']>['cards'][number]
export type Category = 'MARKETING' | 'UTILITY' | 'AUTHENTICATION'

/** Where, what is wrong, and the mend: two sentences. */
export type Finding = { path: string; message: string; fix: string }

/**
 * A draft by what it changes in one of the plain drafts (examples.ts): values by path, null for what is
 * left out.
 */
export type Example = {
  base?: 'plain' | 'code' | 'offer' | 'carousel'
  set?: Readonly<Record<string, unknown>>
}

/**
 * One rule. `about` completes the page of rules; `breaks` raises it at `at` (and whatever `also` names),
 * `passes` does not.
 */
export type Rule = {
  id: string
  severity: 'error' | 'warning'
  about: string
  find: (subject: Subject) => Finding[]
  breaks: Example & { at: string; also?: readonly string[] }
  passes: Example
}

/** The text of the message or of a card. */
export type Body = {
  path: string
  card: boolean
  text: string
  examples: readonly string[]
  variables: Variables
}

/** A button that the per-button rules hold for; `place` among its neighbours. */
export type Placed = { path: string; button: Button; place: number; neighbours: readonly Button[] }

/** A draft, read once for all rules. */
export type Subject = {
  draft: Draft
  /** The category whose rules hold: an unknown one is taken for the one it looks like, else for UTILITY. */
  category: Category
  /** The category is AUTHENTICATION: the provider writes the texts. */
  isCode: boolean
  /** The texts that the body rules hold for, none that is blank. */
  bodies: readonly Body[]
  buttons: readonly Placed[]
}

export const categories: readonly Category[] = ['MARKETING', 'UTILITY', 'AUTHENTICATION']
export const cardButtonTypes: readonly string[] = ['QUICK_REPLY', 'URL', 'PHONE_NUMBER']

const categoryOf = (given: string): Category =>
  categories.find((category) => category === given.trim().toUpperCase()) ?? 'UTILITY'

const bodyOf = (
  path: string,
  card: boolean,
  body: { text?: string | undefined; examples?: string[] | undefined } = {},
): Body[] =>
  isBlank(body.text)
    ? []
    : [{ path, card, text: body.text!, examples: body.examples ?? [], variables: parseVariables(body.text!) }]

const placed = (path: string, neighbours: readonly Button[]): Placed[] =>
  neighbours.map((button, place) => ({ path: `${path}[${place}]`, button, place, neighbours }))

export const readDraft = (draft: Draft): Subject => {
  const category = categoryOf(draft.category)
  const isCode = category === 'AUTHENTICATION'
  // Nothing that stands beside a carousel is looked at more closely, nor a carousel of codes: neither may
  // be there.
  const cards = isCode ? [] : (draft.carousel?.cards ?? [])
  return {
    draft,
    category,
    isCode,
    bodies: isCode
      ? []
      : [
          ...bodyOf('body', false, draft.body),
          ...cards.flatMap((card, i) => bodyOf(`carousel.cards[${i}].body`, true, card.body)),
        ],
    buttons: draft.carousel
      ? cards.flatMap((card, i) =>
          placed(`carousel.cards[${i}].buttons`, card.buttons).filter(({ button }) =>
            cardButtonTypes.includes(button.type),
          ),
        )
      : placed('buttons', draft.buttons ?? []),
  }
}

export const fine: Finding[] = []
export const found = (path: string, message: string, fix: string): Finding[] => [{ path, message, fix }]
