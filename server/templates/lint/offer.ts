import { type Draft, fine, type Finding, found, type Rule, type Subject } from './rule.ts'
import { excess, hasNewline, isBlank, oneLine, suggest } from './text.ts'

const LONGEST_OFFER = 16
const LONGEST_OFFER_BODY = 600

/** Codes have no offer at all, which a rule of theirs says. */
const onOffer =
  (find: (offer: NonNullable<Draft['limited_time_offer']>, subject: Subject) => Finding[]) =>
  (subject: Subject): Finding[] => {
    const offer = subject.isCode ? undefined : subject.draft.limited_time_offer
    return offer ? find(offer, subject) : fine
  }

export const offerRules: readonly Rule[] = [
  {
    id: 'offer.category',
    severity: 'error',
    about: 'Limited-time offers belong to `MARKETING`.',
    find: onOffer((_, { category }) =>
      category === 'MARKETING'
        ? fine
        : found(
            'limited_time_offer',
            'Only MARKETING templates have a limited-time offer.',
            'Choose the category MARKETING, or leave out the offer.',
          ),
    ),
    breaks: { base: 'offer', set: { category: 'UTILITY' }, at: 'limited_time_offer' },
    passes: { base: 'offer' },
  },
  {
    id: 'offer.copy_code',
    severity: 'error',
    about: 'There is a COPY_CODE button with the code of the offer.',
    find: onOffer((_, { draft: { buttons = [], carousel } }) =>
      carousel || buttons.some(({ type }) => type === 'COPY_CODE')
        ? fine
        : found(
            'buttons',
            'The limited-time offer has no COPY_CODE button.',
            'Add a button such as {"type": "COPY_CODE", "coupon_code": "SPRING25"}.',
          ),
    ),
    breaks: { base: 'offer', set: { buttons: [] }, at: 'buttons' },
    passes: { base: 'offer' },
  },
  {
    id: 'offer.text_required',
    severity: 'error',
    about: 'An offer has a text.',
    find: onOffer(({ text }) =>
      isBlank(text)
        ? found(
            'limited_time_offer.text',
            'The limited-time offer has no text.',
            'Write it in a few words, such as "Spring offer".',
          )
        : fine,
    ),
    breaks: { base: 'offer', set: { 'limited_time_offer.text': '' }, at: 'limited_time_offer.text' },
    passes: { base: 'offer' },
  },
  {
    id: 'offer.text_length',
    severity: 'error',
    about: `At most ${LONGEST_OFFER} characters.`,
    find: onOffer(({ text }) => {
      const over = isBlank(text) ? 0 : excess(text, LONGEST_OFFER)
      return over === 0
        ? fine
        : found(
            'limited_time_offer.text',
            `The offer's text has ${LONGEST_OFFER + over} characters; the provider takes ${LONGEST_OFFER}.`,
            `Shorten it by ${over}.`,
          )
    }),
    breaks: {
      base: 'offer',
      set: { 'limited_time_offer.text': 'Our very big spring offer' },
      at: 'limited_time_offer.text',
    },
    passes: { base: 'offer', set: { 'limited_time_offer.text': '🌷'.repeat(16) } },
  },
  {
    id: 'offer.text_characters',
    severity: 'error',
    about: 'No line breaks and no variables.',
    find: onOffer(({ text }) =>
      !isBlank(text) && (hasNewline(text) || text.includes('{{'))
        ? found(
            'limited_time_offer.text',
            `The offer's text holds ${hasNewline(text) ? 'a line break' : 'a variable'}.`,
            suggest(
              oneLine(text.replaceAll(/\{\{[^{}]*\}\}/g, '').replaceAll('{{', '')),
              'Write plain words on one line.',
            ),
          )
        : fine,
    ),
    breaks: { base: 'offer', set: { 'limited_time_offer.text': '{{1}} off' }, at: 'limited_time_offer.text' },
    passes: { base: 'offer', set: { 'limited_time_offer.text': '25% off' } },
  },
  {
    id: 'offer.footer',
    severity: 'warning',
    about: 'No footer beside an offer: it is not shown.',
    find: onOffer((_, { draft: { footer, carousel } }) =>
      footer && !carousel
        ? found('footer', 'Beside a limited-time offer no footer is shown.', 'Leave out the footer.')
        : fine,
    ),
    breaks: { base: 'offer', set: { footer: { text: 'Thank you' } }, at: 'footer' },
    passes: { base: 'offer' },
  },
  {
    id: 'offer.body_length',
    severity: 'warning',
    about: `Beside an offer the body has at most ${LONGEST_OFFER_BODY} characters.`,
    find: onOffer((_, { draft: { body } }) => {
      const over = excess(body.text ?? '', LONGEST_OFFER_BODY)
      return over === 0
        ? fine
        : found(
            'body.text',
            `Beside a limited-time offer the body should have at most ${LONGEST_OFFER_BODY} characters; it has ${LONGEST_OFFER_BODY + over}.`,
            `Shorten it by ${over}.`,
          )
    }),
    breaks: { base: 'offer', set: { 'body.text': 'x'.repeat(601) }, at: 'body.text' },
    passes: { base: 'offer', set: { 'body.text': 'x'.repeat(600) } },
  },
  {
    id: 'offer.carousel',
    severity: 'error',
    about: 'No offer together with a carousel.',
    find: onOffer((_, { draft: { carousel } }) =>
      carousel
        ? found(
            'limited_time_offer',
            'A carousel has no limited-time offer.',
            'Leave out the offer or the carousel.',
          )
        : fine,
    ),
    breaks: {
      base: 'carousel',
      set: { limited_time_offer: { text: 'Spring offer' } },
      at: 'limited_time_offer',
    },
    passes: { base: 'carousel' },
  },
]
