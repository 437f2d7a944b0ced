import { cardButtonTypes, templateCategories } from '../../../../catalog/templates/rules.ts'
import { isBlank } from '../../../../catalog/values.ts'
import type { TemplateDraft } from '../../../../catalog/templates/schemas.ts'
import { parseVariables, type Variables } from '../variables.ts'

export type Draft = TemplateDraft
export type DraftButton = NonNullable<Draft['buttons']>[number]
export type DraftCard = NonNullable<Draft['carousel']>['cards'][number]
type TemplateCategory = (typeof templateCategories)[number]

/** `message`: what is wrong, in one sentence. `fix`: how to fix it, in one sentence. */
export type LintFinding = { path: string; message: string; fix: string }

/** A draft as changes to one of the example drafts (examples.ts): values by path, null to leave one out. */
export type RuleExample = {
  base?: 'plain' | 'code' | 'offer' | 'carousel'
  set?: Readonly<Record<string, unknown>>
}

/** Where rules come from, and how sure they are; the texts of docs/template-rules.md. */
export const ruleSources = {
  spec: "The specification of this service, which states the provider's limits. Certain.",
  error_list: 'The error codes that the provider publishes. Certain.',
  guidelines: 'The guidelines and the reference of template components that the provider publishes. Certain.',
  practice: 'Not documented: seen in refusals and in libraries for the provider. Likely.',
  service: 'This service: the field has no effect. Certain.',
} as const
export type RuleSource = keyof typeof ruleSources

/**
 * One rule. `about` is its text in docs/template-rules.md. The example `breaks` raises it at the path `at`
 * (and the rules in `also`), `passes` does not.
 */
export type LintRule = {
  id: string
  severity: 'error' | 'warning'
  source: RuleSource
  about: string
  find: (subject: LintSubject) => LintFinding[]
  breaks: RuleExample & { at: string; also?: readonly string[] }
  passes: RuleExample
}

/** The text of the message or of a card. */
export type DraftBody = {
  path: string
  card: boolean
  text: string
  examples: readonly string[]
  variables: Variables
}

/** A button that is checked by itself; `place`: its index among its neighbours. */
export type PlacedButton = {
  path: string
  button: DraftButton
  place: number
  neighbours: readonly DraftButton[]
}

/** A draft, parsed once for all rules. */
export type LintSubject = {
  draft: Draft
  /** The category whose rules apply: for an unknown one the one it resembles, else UTILITY. */
  category: TemplateCategory
  /** The category is AUTHENTICATION: the provider writes the texts. */
  isCode: boolean
  /** The texts that the body rules apply to, without blank ones. */
  bodies: readonly DraftBody[]
  buttons: readonly PlacedButton[]
}

const parseCategory = (given: string): TemplateCategory =>
  templateCategories.find((category) => category === given.trim().toUpperCase()) ?? 'UTILITY'

const parseBody = (
  path: string,
  card: boolean,
  body: { text?: string | undefined; examples?: string[] | undefined } = {},
): DraftBody[] =>
  isBlank(body.text)
    ? []
    : [{ path, card, text: body.text!, examples: body.examples ?? [], variables: parseVariables(body.text!) }]

const placeButtons = (path: string, neighbours: readonly DraftButton[]): PlacedButton[] =>
  neighbours.map((button, place) => ({ path: `${path}[${place}]`, button, place, neighbours }))

export const parseDraft = (draft: Draft): LintSubject => {
  const category = parseCategory(draft.category)
  const isCode = category === 'AUTHENTICATION'
  // Other parts beside a carousel, and a carousel of codes, are not checked in detail: neither is allowed.
  const cards = isCode ? [] : (draft.carousel?.cards ?? [])
  return {
    draft,
    category,
    isCode,
    bodies: isCode
      ? []
      : [
          ...parseBody('body', false, draft.body),
          ...cards.flatMap((card, i) => parseBody(`carousel.cards[${i}].body`, true, card.body)),
        ],
    buttons: draft.carousel
      ? cards.flatMap((card, i) =>
          placeButtons(`carousel.cards[${i}].buttons`, card.buttons).filter(({ button }) =>
            cardButtonTypes.includes(button.type),
          ),
        )
      : placeButtons('buttons', draft.buttons ?? []),
  }
}

export const noFindings: LintFinding[] = []
export const finding = (path: string, message: string, fix: string): LintFinding[] => [{ path, message, fix }]
