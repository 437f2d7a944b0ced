import { fill, parseVariables, renumber, withoutVariables } from '../variables.ts'
import { type Body, type Example, fine, type Finding, found, type Rule } from './rule.ts'
import { badSpace, excess, isBlank, list, oneLine, plural, quote, suggest } from './text.ts'

const LONGEST_BODY = 1024
const LONGEST_CARD_BODY = 160

const longestOf = (body: Body): number => (body.card ? LONGEST_CARD_BODY : LONGEST_BODY)

/** Samples may have any length; beyond this the rest of one says nothing new. */
const LONGEST_SAMPLE = 2000

/** The text with its samples. A blank one shows nothing, so its variable stays. */
export const previewOf = ({ text, examples }: Pick<Body, 'text' | 'examples'>): string =>
  fill(
    text,
    examples.map((sample) => (isBlank(sample) ? undefined : sample.slice(0, LONGEST_SAMPLE))),
  )

const segmenter = new Intl.Segmenter('en', { granularity: 'word' })

/**
 * Words and variables of a text, counted to `enough`: only whether there are as many matters, and looking
 * takes time.
 */
const countWords = (text: string, enough: number): number => {
  let words = 0
  for (const { isWordLike } of segmenter.segment(withoutVariables(text, ' variable ')))
    if (isWordLike && ++words >= enough) break
  return words
}

const shortage = ({ text, variables: { names, places } }: Body): 'refused' | 'risky' | undefined => {
  const n = names.length
  if (n === 0) return undefined
  const words = countWords(text, 3 * n + 1 + places.length)
  return words < 2 * n + 1 ? 'refused' : words - places.length < 3 * n + 1 ? 'risky' : undefined
}

const clipName = (name: string): string => (name.length > 8 ? `${name.slice(0, 8)}…` : name)

const braces = (names: readonly string[]): string =>
  list(names.slice(0, 6).map((name) => `{{${clipName(name)}}}`))

/** `{{ 1 }}`, `{{01}}` and `{{name}}` written as variables. */
const mendBraces = (text: string): string => {
  const names: string[] = []
  const mended = text.replaceAll(/\{\{([^{}]*)\}\}/g, (_, inner: string) => {
    const name = inner.trim().replace(/^0+(?=\d)/, '')
    if (!names.includes(name)) names.push(name)
    return /^[1-9]\d*$/.test(name) ? `{{${name}}}` : `{{${names.indexOf(name) + 1}}}`
  })
  return parseVariables(mended).leftover ? '' : mended
}

/** From the first braces that make no variable. */
const leftoverOf = (text: string): string => {
  const rest = withoutVariables(text, '…')
  return rest.slice(rest.search(/\{\{|\}\}/))
}

const SHORTENERS =
  /(?<![\p{L}\p{N}._-])(?:www\.)?(bit\.ly|tinyurl\.com|goo\.gl|t\.co|wa\.me)(?![\p{L}\p{N}_-]|\.[\p{L}\p{N}])/iu

type BodyRule = Omit<Rule, 'id' | 'find' | 'breaks' | 'passes'> & {
  name: string
  find: (body: Body) => Finding[]
  breaks: { text: string; examples?: string[]; at?: string }
  passes: { text: string; examples?: string[] }
  /** Of the message alone. */
  message?: true
}

const bodyRules: readonly BodyRule[] = [
  {
    name: 'variables_form',
    severity: 'error',
    about: 'Double braces stand for variables alone: `{{1}}`, without names, spaces or leading zeros.',
    find: ({ path, text, variables: { leftover } }) =>
      leftover
        ? found(
            `${path}.text`,
            `The text holds double braces that make no variable: ${quote(leftoverOf(text))}.`,
            suggest(mendBraces(text), 'Write variables as {{1}}, {{2}} and so on.'),
          )
        : fine,
    breaks: { text: 'Your order {{id}} is on its way.' },
    passes: { text: 'Your order {{1}} is on its way.', examples: ['17'] },
  },
  {
    name: 'variables_sequence',
    severity: 'error',
    about: 'Variables are numbered `{{1}}`, `{{2}}` and so on, without gaps.',
    find: ({ path, text, variables: { names } }) =>
      names.every((name, i) => name === String(i + 1))
        ? fine
        : found(
            `${path}.text`,
            `The variables are ${braces(names)}, which is not 1 to ${names.length}.`,
            suggest(renumber(text), `Number them 1 to ${names.length}.`),
          ),
    breaks: { text: 'Your order {{2}} is on its way.', examples: ['17'] },
    passes: { text: 'Your order {{1}} is on its way. Thank you for order {{1}}.', examples: ['17'] },
  },
  {
    name: 'variable_edge',
    severity: 'error',
    about: 'The text neither begins nor ends with a variable.',
    find: ({ path, text, variables: { places } }) => {
      if (places.length === 0) return fine
      const begins = isBlank(text.slice(0, places[0]!.start))
      const ends = isBlank(text.slice(places.at(-1)!.end))
      if (!begins && !ends) return fine
      const where = [
        ...(begins ? [`begins with {{${clipName(places[0]!.name)}}}`] : []),
        ...(ends ? [`ends with {{${clipName(places.at(-1)!.name)}}}`] : []),
      ]
      return found(
        `${path}.text`,
        `The text ${list(where)}.`,
        `Put words ${list([...(begins ? ['before the first variable'] : []), ...(ends ? ['after the last one'] : [])])}${ends && !begins ? '; a full stop is enough' : ''}.`,
      )
    },
    breaks: { text: 'Your order is on its way with {{1}}', examples: ['DHL'] },
    passes: { text: 'Your order is on its way with {{1}}.', examples: ['DHL'] },
  },
  {
    name: 'variables_adjacent',
    severity: 'error',
    about:
      'Something stands between two variables; the provider takes adjacent ones and rejects them in review.',
    find: ({ path, text, variables: { places } }) => {
      const at = places.findIndex((place, i) => i > 0 && isBlank(text.slice(places[i - 1]!.end, place.start)))
      if (at === -1) return fine
      const pair = braces([places[at - 1]!.name, places[at]!.name])
      return found(
        `${path}.text`,
        `Nothing stands between ${pair}.`,
        `Put a word or a comma between ${pair}, or make them one variable.`,
      )
    },
    breaks: { text: 'Your order {{1}} {{2}} is on its way now, as promised.', examples: ['17', 'A'] },
    passes: { text: 'Your order {{1}}, size {{2}}, is on its way now.', examples: ['17', 'A'] },
  },
  {
    name: 'variables_ratio',
    severity: 'error',
    about: 'Of n variables, the text has 2n + 1 words or more, each variable counted as one.',
    message: true,
    find: (body) => {
      const n = body.variables.names.length
      return shortage(body) !== 'refused'
        ? fine
        : found(
            `${body.path}.text`,
            `The text has ${plural(countWords(body.text, 2 * n + 1), 'word')}, variables among them; with ${plural(n, 'variable')} the provider wants ${2 * n + 1}.`,
            'Say more in fixed words, or use fewer variables.',
          )
    },
    breaks: { text: 'Order {{1}}, {{2}}.', examples: ['17', 'sent'] },
    passes: { text: 'Your order {{1}} has now been sent with {{2}}, thank you.', examples: ['17', 'DHL'] },
  },
  {
    name: 'variables_many',
    severity: 'warning',
    about: 'Of n variables, the text has 3n + 1 fixed words or more, which reviewers let pass.',
    message: true,
    find: (body) =>
      shortage(body) !== 'risky'
        ? fine
        : found(
            `${body.path}.text`,
            `The text has few fixed words for ${plural(body.variables.names.length, 'variable')}; reviewers may reject it.`,
            `Have ${3 * body.variables.names.length + 1} fixed words or more, or use fewer variables.`,
          ),
    breaks: { text: 'Your order: {{1}}.', examples: ['17'] },
    passes: { text: 'Your order is now: {{1}}.', examples: ['17'] },
  },
  {
    name: 'samples_count',
    severity: 'error',
    about: 'There is one sample for each variable.',
    find: ({ path, examples, variables: { names } }) => {
      const missing = names.length - examples.length
      if (missing === 0) return fine
      if (missing < 0)
        return found(
          `${path}.examples`,
          `Samples given: ${examples.length}; variables: ${names.length}.`,
          `Leave out the last ${plural(-missing, 'sample')}.`,
        )
      return found(
        `${path}.examples`,
        `Samples given: ${examples.length}; variables: ${names.length}.`,
        `Give a sample for ${braces(names.slice(examples.length))}, in the order of their numbers.`,
      )
    },
    breaks: { text: 'Your order {{1}} is on its way.', at: 'examples' },
    passes: { text: 'Your order {{1}} is on its way.', examples: ['17'] },
  },
  {
    name: 'sample_empty',
    severity: 'error',
    about: 'No sample is blank.',
    find: ({ path, examples }) =>
      examples.flatMap((sample, i) =>
        isBlank(sample)
          ? found(
              `${path}.examples[${i}]`,
              `Sample ${i + 1} is blank.`,
              'Write what a customer might read there.',
            )
          : fine,
      ),
    breaks: { text: 'Your order {{1}} is on its way.', examples: [' '], at: 'examples[0]' },
    passes: { text: 'Your order {{1}} is on its way.', examples: ['17'] },
  },
  {
    name: 'sample_whitespace',
    severity: 'error',
    about: 'Samples have no line breaks, no tabs and at most four spaces in a row.',
    find: ({ path, examples }) =>
      examples.flatMap((sample, i) => {
        const bad = isBlank(sample) ? undefined : badSpace(sample)
        return bad === undefined
          ? fine
          : found(
              `${path}.examples[${i}]`,
              `Sample ${i + 1} has ${bad}.`,
              suggest(oneLine(sample.slice(0, LONGEST_SAMPLE)), 'Put it on one line.'),
            )
      }),
    breaks: { text: 'Your order {{1}} is on its way.', examples: ['17\n18'], at: 'examples[0]' },
    passes: { text: 'Your order {{1}} is on its way.', examples: ['17, 18'] },
  },
  {
    name: 'filled_length',
    severity: 'warning',
    about:
      'Filled with its samples the text is still within its length, which is checked again when sending.',
    find: (body) => {
      const {
        path,
        text,
        variables: { places },
      } = body
      const most = longestOf(body)
      if (places.length === 0 || excess(text, most) > 0) return fine
      const over = excess(previewOf(body), most)
      return over === 0
        ? fine
        : found(
            `${path}.text`,
            `With its samples the text is ${over} or more characters over ${most}.`,
            'Shorten the text or the samples.',
          )
    },
    breaks: { text: 'Your order {{1}} is on its way.', examples: ['x'.repeat(1001)] },
    passes: { text: 'Your order {{1}} is on its way.', examples: ['x'.repeat(100)] },
  },
  {
    name: 'whitespace',
    severity: 'warning',
    about: 'The text has no tabs, at most four spaces in a row and at most one empty line in a row.',
    find: ({ path, text }) => {
      const bad = text.includes('\t')
        ? 'a tab'
        : text.includes('     ')
          ? 'more than four spaces in a row'
          : /(?:\r?\n){3}/.test(text)
            ? 'more than two line breaks in a row'
            : undefined
      return bad === undefined
        ? fine
        : found(
            `${path}.text`,
            `The text has ${bad}.`,
            suggest(
              text
                .replaceAll('\t', ' ')
                .replaceAll(/ {5,}/g, ' ')
                .replaceAll(/(?:\r?\n){3,}/g, '\n\n'),
              'Leave out the extra space.',
            ),
          )
    },
    breaks: { text: 'Your order\tis on its way.' },
    passes: { text: 'Hello.\n\nYour order is on its way.' },
  },
  {
    name: 'link_shortener',
    severity: 'warning',
    about: 'No shortened links, which reviewers reject since they hide where they lead.',
    find: ({ path, text }) => {
      const host = SHORTENERS.exec(text)?.[1]
      return host === undefined
        ? fine
        : found(
            `${path}.text`,
            `The text has a link of ${host.toLowerCase()}, which hides where it leads.`,
            'Write the whole link, or use a URL button.',
          )
    },
    breaks: { text: 'See your order at https://bit.ly/3xAmPle today.' },
    passes: { text: 'See your order at https://shop.example/orders today.' },
  },
]

const lengthRule = (card: boolean): BodyRule => {
  const most = card ? LONGEST_CARD_BODY : LONGEST_BODY
  return {
    name: 'length',
    severity: 'error',
    about: `At most ${most} characters.`,
    find: ({ path, text }) => {
      const over = excess(text, most)
      return over === 0
        ? fine
        : found(
            `${path}.text`,
            `The text has ${most + over} characters; the provider takes ${most}${card ? ' on a card' : ''}.`,
            `Shorten it by ${over}.`,
          )
    },
    breaks: { text: 'x'.repeat(most + 1) },
    passes: { text: 'x'.repeat(most) },
  }
}

const inMessage = ({ text, examples }: { text: string; examples?: string[] }): Example => ({
  set: { 'body.text': text, ...(examples ? { 'body.examples': examples } : {}) },
})
const inCard = ({ text, examples }: { text: string; examples?: string[] }): Example => ({
  base: 'carousel',
  set: {
    'carousel.cards[1].body.text': text,
    ...(examples ? { 'carousel.cards[1].body.examples': examples } : {}),
  },
})

/** The same rule for the message (`body.…`) or for cards (`card_body.…`). */
const rulesFor =
  (card: boolean) =>
  ({ name, severity, about, find, breaks, passes }: BodyRule): Rule => {
    const id = `${card ? 'card_body' : 'body'}.${name}`
    const example = card ? inCard : inMessage
    return {
      id,
      severity,
      about,
      find: ({ bodies }) => bodies.flatMap((body) => (body.card === card ? find(body) : fine)),
      breaks: {
        ...example(breaks),
        at: `${card ? 'carousel.cards[1].body' : 'body'}.${breaks.at ?? 'text'}`,
      },
      passes: example(passes),
    }
  }

export const bodyTopic: readonly Rule[] = [
  {
    id: 'body.required',
    severity: 'error',
    about: 'There is a text, but for `AUTHENTICATION`.',
    find: ({ draft: { body }, isCode }) =>
      !isCode && isBlank(body.text)
        ? found('body.text', 'The body has no text.', 'Write the message in body.text.')
        : fine,
    breaks: { set: { body: {} }, at: 'body.text' },
    passes: { base: 'code' },
  },
  ...[lengthRule(false), ...bodyRules].map(rulesFor(false)),
  {
    id: 'body.security_recommendation',
    severity: 'error',
    about: "The provider's advice about codes belongs to `AUTHENTICATION`.",
    find: ({ draft: { body }, isCode }) =>
      !isCode && body.add_security_recommendation === true
        ? found(
            'body.add_security_recommendation',
            'Only AUTHENTICATION templates have a security recommendation.',
            'Leave out add_security_recommendation.',
          )
        : fine,
    breaks: { set: { 'body.add_security_recommendation': true }, at: 'body.add_security_recommendation' },
    passes: { base: 'code' },
  },
]

export const cardBodyTopic: readonly Rule[] = [
  ...[lengthRule(true), ...bodyRules.filter(({ message }) => !message)].map(rulesFor(true)),
  {
    id: 'card_body.unused',
    severity: 'warning',
    about: 'Samples stand beside a text.',
    find: ({ draft, isCode }) =>
      (isCode ? [] : (draft.carousel?.cards ?? [])).flatMap(({ body }, i) =>
        isBlank(body?.text) && (body?.examples ?? []).length > 0
          ? found(
              `carousel.cards[${i}].body.examples`,
              `Card ${i + 1} has samples and no text.`,
              'Write the text of the card, or leave out the samples.',
            )
          : fine,
      ),
    breaks: {
      base: 'carousel',
      set: { 'carousel.cards[0].body': { examples: ['17'] }, 'carousel.cards[1].body': null },
      at: 'carousel.cards[0].body.examples',
    },
    passes: { base: 'carousel' },
  },
]
