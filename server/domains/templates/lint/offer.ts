import {
  excessLength,
  hasNewline,
  hasVariable,
  maxLengths,
  pictureFormats,
} from '../../../../catalog/templates/rules.ts'
import { isBlank } from '../../../../catalog/values.ts'
import { type Draft, noFindings, type LintFinding, finding, type LintRule, type LintSubject } from './rule.ts'
import { oneLine, suggest } from './text.ts'

/** Authentication templates may have no offer, which a rule of theirs reports. */
const checkOffer =
  (find: (offer: NonNullable<Draft['limited_time_offer']>, subject: LintSubject) => LintFinding[]) =>
  (subject: LintSubject): LintFinding[] => {
    const offer = subject.isCode ? undefined : subject.draft.limited_time_offer
    return offer ? find(offer, subject) : noFindings
  }

const code = { type: 'COPY_CODE', coupon_code: 'SPRING25' }
const shop = { type: 'URL', text: 'Shop', url: 'https://shop.example' }

export const offerRules: readonly LintRule[] = [
  {
    id: 'offer.category',
    severity: 'error',
    source: 'spec',
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
    breaks: {
      base: 'offer',
      set: { category: 'UTILITY' },
      at: 'limited_time_offer',
      also: ['buttons.coupon_category'],
    },
    passes: { base: 'offer' },
  },
  {
    id: 'offer.copy_code',
    severity: 'error',
    source: 'spec',
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
    breaks: { base: 'offer', set: { buttons: [shop] }, at: 'buttons' },
    passes: { base: 'offer' },
  },
  {
    id: 'offer.copy_code_first',
    severity: 'error',
    source: 'guidelines',
    about: 'The COPY_CODE button of an offer comes before all other buttons.',
    find: checkOffer((_, { draft: { buttons = [], carousel } }) => {
      const place = buttons.findIndex(({ type }) => type === 'COPY_CODE')
      return carousel || place <= 0
        ? noFindings
        : finding(
            `buttons[${place}]`,
            'Together with a limited-time offer, the COPY_CODE button is the first one.',
            'Move it to the front.',
          )
    }),
    breaks: { base: 'offer', set: { buttons: [shop, code] }, at: 'buttons[1]' },
    passes: { base: 'offer', set: { buttons: [code, shop] } },
  },
  {
    id: 'offer.url_button',
    severity: 'error',
    source: 'guidelines',
    about: 'A URL button leads to the offer.',
    find: checkOffer((_, { draft: { buttons = [], carousel } }) =>
      carousel || buttons.some(({ type }) => type === 'URL')
        ? noFindings
        : finding(
            'buttons',
            'The limited-time offer has no URL button.',
            'Add a button such as {"type": "URL", "text": "Shop", "url": "https://shop.example"}.',
          ),
    ),
    breaks: { base: 'offer', set: { buttons: [code] }, at: 'buttons' },
    passes: { base: 'offer' },
  },
  {
    id: 'offer.code_length',
    severity: 'error',
    source: 'guidelines',
    about: `The code of an offer has at most ${maxLengths.sentCode} characters.`,
    find: checkOffer((_, { buttons }) =>
      buttons.flatMap(({ path, button: { type, coupon_code: code = '' } }) => {
        const over = type === 'COPY_CODE' ? excessLength(code, maxLengths.sentCode) : 0
        return over === 0
          ? noFindings
          : finding(
              `${path}.coupon_code`,
              `The code has ${maxLengths.sentCode + over} characters; ` +
                `with an offer the provider accepts ${maxLengths.sentCode}.`,
              `Shorten it by ${over}.`,
            )
      }),
    ),
    breaks: {
      base: 'offer',
      set: { 'buttons[0].coupon_code': 'SPRING25SPRING25' },
      at: 'buttons[0].coupon_code',
    },
    passes: { base: 'offer', set: { 'buttons[0].coupon_code': 'SPRING25SPRING2' } },
  },
  {
    id: 'offer.header',
    severity: 'error',
    source: 'guidelines',
    about: 'The header of an offer is an `IMAGE` or a `VIDEO`.',
    find: checkOffer((_, { draft: { header, carousel } }) =>
      !header || carousel || pictureFormats.includes(header.format)
        ? noFindings
        : finding(
            'header.format',
            `Together with a limited-time offer, the header is no ${header.format}.`,
            'Use an IMAGE or a VIDEO, or leave out the header.',
          ),
    ),
    breaks: {
      base: 'offer',
      set: { header: { format: 'TEXT', text: 'Spring offer' } },
      at: 'header.format',
    },
    passes: { base: 'offer', set: { header: { format: 'IMAGE', media_handle: '4::aW1hZ2U' } } },
  },
  {
    id: 'offer.text_required',
    severity: 'error',
    source: 'spec',
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
    source: 'spec',
    about: `At most ${maxLengths.offer} characters.`,
    find: checkOffer(({ text }) => {
      const over = isBlank(text) ? 0 : excessLength(text, maxLengths.offer)
      return over === 0
        ? noFindings
        : finding(
            'limited_time_offer.text',
            `The offer's text has ${maxLengths.offer + over} characters; ` +
              `the provider accepts ${maxLengths.offer}.`,
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
    source: 'practice',
    about: 'No line breaks and no variables.',
    find: checkOffer(({ text }) =>
      !isBlank(text) && (hasNewline(text) || hasVariable(text))
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
    severity: 'error',
    source: 'guidelines',
    about: 'No footer together with an offer.',
    find: checkOffer((_, { draft: { footer, carousel } }) =>
      footer && !carousel
        ? finding('footer', 'A template with a limited-time offer has no footer.', 'Leave out the footer.')
        : noFindings,
    ),
    breaks: { base: 'offer', set: { footer: { text: 'Thank you' } }, at: 'footer' },
    passes: { base: 'offer' },
  },
  {
    id: 'offer.body_length',
    severity: 'error',
    source: 'guidelines',
    about: `Together with an offer the body has at most ${maxLengths.bodyWithOffer} characters.`,
    find: checkOffer((_, { draft: { body } }) => {
      const over = excessLength(body.text ?? '', maxLengths.bodyWithOffer)
      return over === 0
        ? noFindings
        : finding(
            'body.text',
            'Together with a limited-time offer the body has ' +
              `at most ${maxLengths.bodyWithOffer} characters; ` +
              `it has ${maxLengths.bodyWithOffer + over}.`,
            `Shorten it by ${over}.`,
          )
    }),
    breaks: { base: 'offer', set: { 'body.text': 'x'.repeat(601) }, at: 'body.text' },
    passes: { base: 'offer', set: { 'body.text': 'x'.repeat(600) } },
  },
  {
    id: 'offer.carousel',
    severity: 'error',
    source: 'practice',
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
