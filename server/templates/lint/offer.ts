import { isBlank } from '../../../catalog/values.ts'
import { type Draft, noFindings, type LintFinding, finding, type LintRule, type LintSubject } from './rule.ts'
import { excessLength, hasNewline, oneLine, suggest } from './text.ts'

const MAX_OFFER_LENGTH = 16
const MAX_OFFER_BODY_LENGTH = 600

/** Authentication templates may have no offer, which a rule of theirs reports. */
const checkOffer =
  (find: (offer: NonNullable<Draft['limited_time_offer']>, subject: LintSubject) => LintFinding[]) =>
  (subject: LintSubject): LintFinding[] => {
    const offer = subject.isCode ? undefined : subject.draft.limited_time_offer
    return offer ? find(offer, subject) : noFindings
  }

export const offerRules: readonly LintRule[] = [
  {
    id: 'offer.category',
    severity: 'error',
    about: 'Limited-time offers are only for `MARKETING`.',
    find: checkOffer((_, { category }) =>
      category === 'MARKETING'
        ? noFindings
        : finding(
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
    about: 'A COPY_CODE button has the code of the offer.',
    find: checkOffer((_, { draft: { buttons = [], carousel } }) =>
      carousel || buttons.some(({ type }) => type === 'COPY_CODE')
        ? noFindings
        : finding(
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
    find: checkOffer(({ text }) =>
      isBlank(text)
        ? finding(
            'limited_time_offer.text',
            'The limited-time offer has no text.',
            'Write it in a few words, such as "Spring offer".',
          )
        : noFindings,
    ),
    breaks: { base: 'offer', set: { 'limited_time_offer.text': '' }, at: 'limited_time_offer.text' },
    passes: { base: 'offer' },
  },
  {
    id: 'offer.text_length',
    severity: 'error',
    about: `At most ${MAX_OFFER_LENGTH} characters.`,
    find: checkOffer(({ text }) => {
      const over = isBlank(text) ? 0 : excessLength(text, MAX_OFFER_LENGTH)
      return over === 0
        ? noFindings
        : finding(
            'limited_time_offer.text',
            `The offer's text has ${MAX_OFFER_LENGTH + over} characters; ` +
              `the provider accepts ${MAX_OFFER_LENGTH}.`,
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
    find: checkOffer(({ text }) =>
      !isBlank(text) && (hasNewline(text) || text.includes('{{'))
        ? finding(
            'limited_time_offer.text',
            `The offer's text contains ${hasNewline(text) ? 'a line break' : 'a variable'}.`,
            suggest(
              oneLine(text.replaceAll(/\{\{[^{}]*\}\}/g, '').replaceAll('{{', '')),
              'Write plain words on one line.',
            ),
          )
        : noFindings,
    ),
    breaks: { base: 'offer', set: { 'limited_time_offer.text': '{{1}} off' }, at: 'limited_time_offer.text' },
    passes: { base: 'offer', set: { 'limited_time_offer.text': '25% off' } },
  },
  {
    id: 'offer.footer',
    severity: 'warning',
    about: 'No footer together with an offer: it is not shown.',
    find: checkOffer((_, { draft: { footer, carousel } }) =>
      footer && !carousel
        ? finding(
            'footer',
            'The footer is not shown together with a limited-time offer.',
            'Leave out the footer.',
          )
        : noFindings,
    ),
    breaks: { base: 'offer', set: { footer: { text: 'Thank you' } }, at: 'footer' },
    passes: { base: 'offer' },
  },
  {
    id: 'offer.body_length',
    severity: 'warning',
    about: `Together with an offer the body has at most ${MAX_OFFER_BODY_LENGTH} characters.`,
    find: checkOffer((_, { draft: { body } }) => {
      const over = excessLength(body.text ?? '', MAX_OFFER_BODY_LENGTH)
      return over === 0
        ? noFindings
        : finding(
            'body.text',
            'Together with a limited-time offer the body should have ' +
              `at most ${MAX_OFFER_BODY_LENGTH} characters; ` +
              `it has ${MAX_OFFER_BODY_LENGTH + over}.`,
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
    find: checkOffer((_, { draft: { carousel } }) =>
      carousel
        ? finding(
            'limited_time_offer',
            'A carousel has no limited-time offer.',
            'Leave out the offer or the carousel.',
          )
        : noFindings,
    ),
    breaks: {
      base: 'carousel',
      set: { limited_time_offer: { text: 'Spring offer' } },
      at: 'limited_time_offer',
    },
    passes: { base: 'carousel' },
  },
]
