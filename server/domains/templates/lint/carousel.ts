import { cardButtonTypes, cardCount, MAX_CARD_BUTTONS } from '../../../../catalog/templates/rules.ts'
import { isBlank } from '../../../../catalog/values.ts'
import { findHandleFault } from '../sample-types.ts'
import {
  type DraftCard,
  noFindings,
  type LintFinding,
  finding,
  type LintRule,
  type LintSubject,
} from './rule.ts'
import { joinWords } from './text.ts'

/** Authentication templates may have no carousel, which a rule of theirs reports. */
const checkCards =
  (find: (cards: readonly DraftCard[], subject: LintSubject) => LintFinding[]) =>
  (subject: LintSubject): LintFinding[] => {
    const carousel = subject.isCode ? undefined : subject.draft.carousel
    return carousel ? find(carousel.cards, subject) : noFindings
  }

const checkEachCard = (find: (card: DraftCard, path: string, first: DraftCard) => LintFinding[]) =>
  checkCards((cards) => cards.flatMap((card, i) => find(card, `carousel.cards[${i}]`, cards[0]!)))

const formatLayout = ({ buttons }: DraftCard): string => buttons.map(({ type }) => type).join(', ')

const card = (set: Record<string, unknown>) => ({ base: 'carousel' as const, set })
const reply = { type: 'QUICK_REPLY', text: 'Tell me more' }
const order = { type: 'URL', text: 'Order', url: 'https://shop.example/' }
const passes = { base: 'carousel' as const }

export const carouselRules: readonly LintRule[] = [
  {
    id: 'carousel.category',
    severity: 'error',
    source: 'spec',
    about: 'Carousels are only for `MARKETING`.',
    find: checkCards((_, { category }) =>
      category === 'MARKETING'
        ? noFindings
        : finding(
            'carousel',
            'Only MARKETING templates have a carousel.',
            'Choose the category MARKETING, or leave out the carousel.',
          ),
    ),
    breaks: { ...card({ category: 'UTILITY' }), at: 'carousel' },
    passes,
  },
  {
    id: 'carousel.top_level',
    severity: 'error',
    source: 'spec',
    about: 'No header, footer or buttons besides the cards.',
    find: ({ draft: { header, footer, buttons = [], carousel } }) =>
      !carousel
        ? noFindings
        : [
            ...(header ? [{ path: 'header', move: ', or move it to the cards' }] : []),
            ...(footer ? [{ path: 'footer', move: '' }] : []),
            ...(buttons.length > 0 ? [{ path: 'buttons', move: ', or move them to the cards' }] : []),
          ].flatMap(({ path, move }) =>
            finding(path, `A carousel has no ${path} besides its cards.`, `Leave out ${path}${move}.`),
          ),
    breaks: { ...card({ footer: { text: 'Thank you' } }), at: 'footer' },
    passes: card({ buttons: [] }),
  },
  {
    id: 'carousel.cards_count',
    severity: 'error',
    source: 'spec',
    about: `${cardCount.min} to ${cardCount.max} cards.`,
    find: checkCards(({ length }) =>
      length >= cardCount.min && length <= cardCount.max
        ? noFindings
        : finding(
            'carousel.cards',
            `A carousel has ${cardCount.min} to ${cardCount.max} cards, not ${length}.`,
            length < cardCount.min
              ? `Add ${length === 0 ? 'two cards' : 'a card'}, or leave out the carousel.`
              : `Leave out ${length - cardCount.max}.`,
          ),
    ),
    breaks: {
      ...card({
        'carousel.cards': [{ header_format: 'IMAGE', media_handle: '4::aW1hZ2U', buttons: [reply] }],
      }),
      at: 'carousel.cards',
    },
    passes,
  },
  {
    id: 'carousel.header_same',
    severity: 'error',
    source: 'spec',
    about: 'All cards have the same header format.',
    find: checkEachCard(({ header_format: format }, path, first) =>
      format === first.header_format
        ? noFindings
        : finding(
            `${path}.header_format`,
            `The card has a header of ${format}, and the first card of ${first.header_format}.`,
            `Make it ${first.header_format}, with a sample of that kind.`,
          ),
    ),
    breaks: {
      ...card({ 'carousel.cards[1].header_format': 'VIDEO' }),
      at: 'carousel.cards[1].header_format',
    },
    passes: card({ 'carousel.cards[0].header_format': 'VIDEO', 'carousel.cards[1].header_format': 'VIDEO' }),
  },
  {
    id: 'carousel.media_required',
    severity: 'error',
    source: 'spec',
    about: 'Every card has the handle of an uploaded sample.',
    find: checkEachCard(({ media_handle: handle }, path) =>
      isBlank(handle)
        ? finding(
            `${path}.media_handle`,
            'The card has no sample for its header.',
            'Upload one with messaging_upload_template_sample, and give its media_handle.',
          )
        : noFindings,
    ),
    breaks: { ...card({ 'carousel.cards[1].media_handle': '' }), at: 'carousel.cards[1].media_handle' },
    passes,
  },
  {
    id: 'carousel.media_type',
    severity: 'error',
    source: 'practice',
    about: 'The handle of a card is of an uploaded sample that fits the format: JPEG or PNG, or MP4.',
    find: checkEachCard(({ header_format: format, media_handle: handle }, path) => {
      const fault = isBlank(handle) ? undefined : findHandleFault(format, handle)
      return fault
        ? finding(`${path}.media_handle`, `The media handle ${fault.problem}.`, fault.fix)
        : noFindings
    }),
    breaks: {
      ...card({ 'carousel.cards[1].media_handle': 'https://shop.example/coffee.png' }),
      at: 'carousel.cards[1].media_handle',
    },
    passes,
  },
  {
    id: 'carousel.buttons_count',
    severity: 'error',
    source: 'spec',
    about: 'Every card has one or two buttons.',
    find: checkEachCard(({ buttons: { length } }, path) =>
      length >= 1 && length <= MAX_CARD_BUTTONS
        ? noFindings
        : finding(
            `${path}.buttons`,
            `A card has 1 or ${MAX_CARD_BUTTONS} buttons, not ${length}.`,
            length === 0
              ? 'Add a QUICK_REPLY, URL or PHONE_NUMBER button.'
              : `Leave out ${length - MAX_CARD_BUTTONS}.`,
          ),
    ),
    breaks: {
      ...card({ 'carousel.cards[1].buttons': [] }),
      at: 'carousel.cards[1].buttons',
      also: ['carousel.buttons_same'],
    },
    passes,
  },
  {
    id: 'carousel.button_type',
    severity: 'error',
    source: 'spec',
    about: `Buttons of cards are of the types ${joinWords(cardButtonTypes)}.`,
    find: checkEachCard(({ buttons }, path) =>
      buttons.flatMap(({ type }, i) =>
        cardButtonTypes.includes(type)
          ? noFindings
          : finding(
              `${path}.buttons[${i}].type`,
              `Cards have no ${type} buttons.`,
              `Choose ${joinWords(cardButtonTypes).replace(' and ', ' or ')}.`,
            ),
      ),
    ),
    breaks: {
      ...card({
        'carousel.cards[0].buttons': [{ type: 'VOICE_CALL', text: 'Call' }],
        'carousel.cards[1].buttons': [reply],
      }),
      at: 'carousel.cards[0].buttons[0].type',
      also: ['carousel.buttons_same'],
    },
    passes,
  },
  {
    id: 'carousel.buttons_same',
    severity: 'error',
    source: 'spec',
    about: 'All cards have the same types of buttons in the same order.',
    find: checkEachCard((one, path, first) =>
      formatLayout(one) === formatLayout(first)
        ? noFindings
        : finding(
            `${path}.buttons`,
            `The card has ${formatLayout(one) || 'no buttons'}, ` +
              `and the first card ${formatLayout(first) || 'none'}.`,
            'Give all cards the same buttons in the same order' +
              `${first.buttons.length > 0 ? `: ${formatLayout(first)}` : ''}.`,
          ),
    ),
    breaks: { ...card({ 'carousel.cards[1].buttons': [reply, order] }), at: 'carousel.cards[1].buttons' },
    passes: card({
      'carousel.cards[0].buttons': [reply, order],
      'carousel.cards[1].buttons': [reply, order],
    }),
  },
  {
    id: 'carousel.body_same',
    severity: 'error',
    source: 'practice',
    about: 'Either all cards have a text, or none.',
    find: checkCards((cards) => {
      const without = cards.flatMap(({ body }, i) => (isBlank(body?.text) ? [i] : []))
      return without.length === cards.length
        ? noFindings
        : without.flatMap((i) =>
            finding(
              `carousel.cards[${i}].body.text`,
              'The card has no text, and others have one.',
              "Write a text for it, or leave out the others'.",
            ),
          )
    }),
    breaks: { ...card({ 'carousel.cards[1].body': null }), at: 'carousel.cards[1].body.text' },
    passes: card({ 'carousel.cards[0].body': null, 'carousel.cards[1].body': null }),
  },
]
