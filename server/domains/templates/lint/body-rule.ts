import { type DraftBody, type LintFinding, type LintRule, noFindings, type RuleExample } from './rule.ts'

/** A rule for the text of a message and of carousel cards. */
export type BodyRule = Omit<LintRule, 'id' | 'find' | 'breaks' | 'passes'> & {
  name: string
  find: (body: DraftBody) => LintFinding[]
  breaks: { text: string; examples?: string[]; at?: string }
  passes: { text: string; examples?: string[] }
  /** Applies to the message only, not to cards. */
  message?: true
}

const messageExample = ({ text, examples }: { text: string; examples?: string[] }): RuleExample => ({
  set: { 'body.text': text, ...(examples ? { 'body.examples': examples } : {}) },
})
const cardExample = ({ text, examples }: { text: string; examples?: string[] }): RuleExample => ({
  base: 'carousel',
  set: {
    'carousel.cards[1].body.text': text,
    ...(examples ? { 'carousel.cards[1].body.examples': examples } : {}),
  },
})

/** Makes a rule for the message (`body.…`) or for cards (`card_body.…`). */
export const toLintRule =
  (card: boolean) =>
  ({ name, severity, source, about, find, breaks, passes }: BodyRule): LintRule => {
    const id = `${card ? 'card_body' : 'body'}.${name}`
    const example = card ? cardExample : messageExample
    return {
      id,
      severity,
      source,
      about,
      find: ({ bodies }) => bodies.flatMap((body) => (body.card === card ? find(body) : noFindings)),
      breaks: {
        ...example(breaks),
        at: `${card ? 'carousel.cards[1].body' : 'body'}.${breaks.at ?? 'text'}`,
      },
      passes: example(passes),
    }
  }
