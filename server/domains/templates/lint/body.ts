import {
  countWords,
  excessLength,
  findBadSpace,
  isInvisible,
  maxLengths,
  minWords,
} from '../../../../catalog/templates/rules.ts'
import { isBlank, pluralize } from '../../../../catalog/values.ts'
import { renumber } from '../variables.ts'
import { type BodyRule, toLintRule } from './body-rule.ts'
import {
  clipName,
  findShortener,
  fixBraces,
  formatVariables,
  leftoverBraces,
  MAX_SAMPLE_LENGTH,
  renderPreview,
  spellVariables,
  wordShortage,
} from './body-text.ts'
import { type DraftBody, noFindings, finding, type LintRule } from './rule.ts'
import { joinWords, oneLine, quote, suggest } from './text.ts'

const maxLength = ({ card }: Pick<DraftBody, 'card'>): number => maxLengths[card ? 'cardBody' : 'body']

const textRules: readonly BodyRule[] = [
  {
    name: 'variables_form',
    severity: 'error',
    source: 'guidelines',
    about: 'Double braces are only for variables: `{{1}}`, without names, spaces or leading zeros.',
    find: ({ path, text, variables: { leftover } }) =>
      leftover
        ? finding(
            `${path}.text`,
            `The text contains double braces that form no variable: ${quote(leftoverBraces(text))}.`,
            suggest(fixBraces(text), 'Write variables as {{1}}, {{2}} and so on.'),
          )
        : noFindings,
    breaks: { text: 'Your order {{id}} is on its way.' },
    passes: { text: 'Your order {{1}} is on its way.', examples: ['17'] },
  },
  {
    name: 'variables_sequence',
    severity: 'error',
    source: 'guidelines',
    about: 'Variables are numbered `{{1}}`, `{{2}}` and so on, without gaps.',
    find: ({ path, text, variables: { names } }) =>
      names.every((name, i) => name === String(i + 1))
        ? noFindings
        : finding(
            `${path}.text`,
            `The variables are ${formatVariables(names)}, which is not 1 to ${names.length}.`,
            suggest(renumber(text), `Number them 1 to ${names.length}.`),
          ),
    breaks: { text: 'Your order {{2}} is on its way.', examples: ['17'] },
    passes: { text: 'Your order {{1}} is on its way. Thank you for order {{1}}.', examples: ['17'] },
  },
  {
    name: 'variable_edge',
    severity: 'error',
    source: 'error_list',
    about: 'The text neither begins nor ends with a variable; invisible characters do not count.',
    find: ({ path, text, variables: { places } }) => {
      if (places.length === 0) return noFindings
      const begins = isInvisible(text.slice(0, places[0]!.start))
      const ends = isInvisible(text.slice(places.at(-1)!.end))
      if (!begins && !ends) return noFindings
      const where = [
        ...(begins ? [`begins with {{${clipName(places[0]!.name)}}}`] : []),
        ...(ends ? [`ends with {{${clipName(places.at(-1)!.name)}}}`] : []),
      ]
      const positions = [
        ...(begins ? ['before the first variable'] : []),
        ...(ends ? ['after the last one'] : []),
      ]
      const hint = ends && !begins ? '; a full stop is enough' : ''
      return finding(
        `${path}.text`,
        `The text ${joinWords(where)}.`,
        `Put words ${joinWords(positions)}${hint}.`,
      )
    },
    breaks: { text: 'Your order is on its way with {{1}}', examples: ['DHL'] },
    passes: { text: 'Your order is on its way with {{1}}.', examples: ['DHL'] },
  },
  {
    name: 'variables_adjacent',
    severity: 'error',
    source: 'guidelines',
    about:
      'Two variables have text between them; the provider accepts adjacent ones, but rejects them in review.',
    find: ({ path, text, variables: { places } }) => {
      const at = places.findIndex(
        (place, i) => i > 0 && isInvisible(text.slice(places[i - 1]!.end, place.start)),
      )
      if (at === -1) return noFindings
      const pair = formatVariables([places[at - 1]!.name, places[at]!.name])
      return finding(
        `${path}.text`,
        `There is nothing between ${pair}.`,
        `Put a word or a comma between ${pair}, or make them one variable.`,
      )
    },
    breaks: { text: 'Your order {{1}} {{2}} is on its way now, as promised.', examples: ['17', 'A'] },
    passes: { text: 'Your order {{1}}, size {{2}}, is on its way now.', examples: ['17', 'A'] },
  },
  {
    name: 'variables_ratio',
    severity: 'error',
    source: 'error_list',
    about: 'With n variables, the text has at least 2n + 1 words, each variable counted as one.',
    message: true,
    find: (body) => {
      const n = body.variables.names.length
      return wordShortage(body) !== 'refused'
        ? noFindings
        : finding(
            `${body.path}.text`,
            `The text has ${pluralize(countWords(spellVariables(body.text), minWords(n)), 'word')}, ` +
              `including variables; with ${pluralize(n, 'variable')} the provider requires ${minWords(n)}.`,
            'Use more fixed words, or fewer variables.',
          )
    },
    breaks: { text: 'Order {{1}}, {{2}}.', examples: ['17', 'sent'] },
    passes: { text: 'Your order {{1}} has now been sent with {{2}}, thank you.', examples: ['17', 'DHL'] },
  },
  {
    name: 'variables_many',
    severity: 'warning',
    source: 'practice',
    about: 'With n variables, the text has at least 3n + 1 fixed words, which reviewers accept.',
    message: true,
    find: (body) =>
      wordShortage(body) !== 'risky'
        ? noFindings
        : finding(
            `${body.path}.text`,
            `The text has few fixed words for ${pluralize(body.variables.names.length, 'variable')}; ` +
              'reviewers may reject it.',
            `Write at least ${3 * body.variables.names.length + 1} fixed words, or use fewer variables.`,
          ),
    breaks: { text: 'Your order: {{1}}.', examples: ['17'] },
    passes: { text: 'Your order is now: {{1}}.', examples: ['17'] },
  },
  {
    name: 'samples_count',
    severity: 'error',
    source: 'error_list',
    about: 'Each variable has one sample.',
    find: ({ path, examples, variables: { names } }) => {
      const missing = names.length - examples.length
      if (missing === 0) return noFindings
      if (missing < 0)
        return finding(
          `${path}.examples`,
          `Samples given: ${examples.length}; variables: ${names.length}.`,
          `Leave out the last ${pluralize(-missing, 'sample')}.`,
        )
      return finding(
        `${path}.examples`,
        `Samples given: ${examples.length}; variables: ${names.length}.`,
        `Give a sample for ${formatVariables(names.slice(examples.length))}, in the order of their numbers.`,
      )
    },
    breaks: { text: 'Your order {{1}} is on its way.', at: 'examples' },
    passes: { text: 'Your order {{1}} is on its way.', examples: ['17'] },
  },
  {
    name: 'sample_empty',
    severity: 'error',
    source: 'practice',
    about: 'No sample is blank.',
    find: ({ path, examples }) =>
      examples.flatMap((sample, i) =>
        isBlank(sample)
          ? finding(
              `${path}.examples[${i}]`,
              `Sample ${i + 1} is blank.`,
              'Write what a customer might read there.',
            )
          : noFindings,
      ),
    breaks: { text: 'Your order {{1}} is on its way.', examples: [' '], at: 'examples[0]' },
    passes: { text: 'Your order {{1}} is on its way.', examples: ['17'] },
  },
  {
    name: 'sample_whitespace',
    severity: 'error',
    source: 'practice',
    about: 'Samples have no line breaks, no tabs and at most four spaces in a row.',
    find: ({ path, examples }) =>
      examples.flatMap((sample, i) => {
        const bad = isBlank(sample) ? undefined : findBadSpace(sample)
        return bad === undefined
          ? noFindings
          : finding(
              `${path}.examples[${i}]`,
              `Sample ${i + 1} has ${bad}.`,
              suggest(oneLine(sample.slice(0, MAX_SAMPLE_LENGTH)), 'Put it on one line.'),
            )
      }),
    breaks: { text: 'Your order {{1}} is on its way.', examples: ['17\n18'], at: 'examples[0]' },
    passes: { text: 'Your order {{1}} is on its way.', examples: ['17, 18'] },
  },
  {
    name: 'filled_length',
    severity: 'warning',
    source: 'guidelines',
    about:
      'Filled with its samples the text is within its maximum length, which is checked again when sending.',
    find: (body) => {
      const {
        path,
        text,
        variables: { places },
      } = body
      const max = maxLength(body)
      if (places.length === 0 || excessLength(text, max) > 0) return noFindings
      const over = excessLength(renderPreview(body), max)
      return over === 0
        ? noFindings
        : finding(
            `${path}.text`,
            `With its samples the text is at least ${over} characters longer than the maximum of ${max}.`,
            'Shorten the text or the samples.',
          )
    },
    breaks: { text: 'Your order {{1}} is on its way.', examples: ['x'.repeat(1001)] },
    passes: { text: 'Your order {{1}} is on its way.', examples: ['x'.repeat(100)] },
  },
  {
    name: 'whitespace',
    severity: 'warning',
    source: 'practice',
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
        ? noFindings
        : finding(
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
    source: 'guidelines',
    about: 'No shortened links, which reviewers reject because they hide their destination.',
    find: ({ path, text }) => {
      const host = findShortener(text)
      return host === undefined
        ? noFindings
        : finding(
            `${path}.text`,
            `The text has a link of ${host}, which hides its destination.`,
            'Write the whole link, or use a URL button.',
          )
    },
    breaks: { text: 'See your order at https://bit.ly/3xAmPle today.' },
    passes: { text: 'See your order at https://shop.example/orders today.' },
  },
]

const lengthRule = (card: boolean): BodyRule => {
  const max = maxLength({ card })
  return {
    name: 'length',
    severity: 'error',
    source: 'error_list',
    about: `At most ${max} characters.`,
    find: ({ path, text }) => {
      const over = excessLength(text, max)
      return over === 0
        ? noFindings
        : finding(
            `${path}.text`,
            `The text has ${max + over} characters; the provider accepts ${max}${card ? ' on a card' : ''}.`,
            `Shorten it by ${over}.`,
          )
    },
    breaks: { text: 'x'.repeat(max + 1) },
    passes: { text: 'x'.repeat(max) },
  }
}

export const bodyRules: readonly LintRule[] = [
  {
    id: 'body.required',
    severity: 'error',
    source: 'error_list',
    about: 'A text is required, except for `AUTHENTICATION`.',
    find: ({ draft: { body }, isCode }) =>
      !isCode && isBlank(body.text)
        ? finding('body.text', 'The body has no text.', 'Write the message in body.text.')
        : noFindings,
    breaks: { set: { body: {} }, at: 'body.text' },
    passes: { base: 'code' },
  },
  ...[lengthRule(false), ...textRules].map(toLintRule(false)),
  {
    id: 'body.security_recommendation',
    severity: 'error',
    source: 'spec',
    about: 'The security recommendation is only for `AUTHENTICATION`.',
    find: ({ draft: { body }, isCode }) =>
      !isCode && body.add_security_recommendation === true
        ? finding(
            'body.add_security_recommendation',
            'Only AUTHENTICATION templates have a security recommendation.',
            'Leave out add_security_recommendation.',
          )
        : noFindings,
    breaks: { set: { 'body.add_security_recommendation': true }, at: 'body.add_security_recommendation' },
    passes: { base: 'code' },
  },
]

export const cardBodyRules: readonly LintRule[] = [
  ...[lengthRule(true), ...textRules.filter(({ message }) => !message)].map(toLintRule(true)),
  {
    id: 'card_body.unused',
    severity: 'warning',
    source: 'service',
    about: 'Samples need a text.',
    find: ({ draft, isCode }) =>
      (isCode ? [] : (draft.carousel?.cards ?? [])).flatMap(({ body }, i) =>
        isBlank(body?.text) && (body?.examples ?? []).length > 0
          ? finding(
              `carousel.cards[${i}].body.examples`,
              `Card ${i + 1} has samples but no text.`,
              'Write the text of the card, or leave out the samples.',
            )
          : noFindings,
      ),
    breaks: {
      base: 'carousel',
      set: { 'carousel.cards[0].body': { examples: ['17'] }, 'carousel.cards[1].body': null },
      at: 'carousel.cards[0].body.examples',
    },
    passes: { base: 'carousel' },
  },
]
