import { sampleHandles } from '../samples.ts'
import { buildEntries, type Fields, refused, rejected, type Row, type Verdict } from './entry.ts'

/** The provider's lists have no error of samples; libraries quote this one of a handle that it does not know. */
const badSample: Verdict = { code: 131009, subcode: 2494102 }

const media = (format: string, handle?: string) => ({
  header: { format, ...(handle === undefined ? {} : { media_handle: handle }) },
})

const mediaRows: readonly Row[] = [
  ['media_image', media('IMAGE', sampleHandles.IMAGE), 'accepted', 'reference'],
  ['media_video', media('VIDEO', sampleHandles.VIDEO), 'accepted', 'reference'],
  ['media_document', media('DOCUMENT', sampleHandles.DOCUMENT), 'accepted', 'reference'],
  ['media_location', media('LOCATION'), 'accepted', 'reference'],
  ['media_image_missing', media('IMAGE'), refused(2388043), 'error_codes'],
  ['media_video_blank', media('VIDEO', ' '), refused(2388043), 'error_codes', 'assumed'],
  ['media_document_missing', media('DOCUMENT'), refused(2388043), 'error_codes'],
  ['media_image_as_video', media('VIDEO', sampleHandles.IMAGE), badSample, 'libraries', 'assumed'],
  ['media_video_as_image', media('IMAGE', sampleHandles.VIDEO), badSample, 'libraries', 'assumed'],
  ['media_document_as_image', media('IMAGE', sampleHandles.DOCUMENT), badSample, 'libraries', 'assumed'],
  ['media_image_as_document', media('DOCUMENT', sampleHandles.IMAGE), badSample, 'libraries', 'assumed'],
  ['media_address', media('IMAGE', 'https://shop.example/a.png'), badSample, 'libraries', 'likely'],
]

const otp = (more: Fields = {}): Fields => ({ buttons: [{ type: 'OTP', otp_type: 'COPY_CODE', ...more }] })
const app = { package_name: 'com.example.shop', signature_hash: 'K8a/AINcGX7' }
const oneTap = (...apps: Fields[]) => otp({ otp_type: 'ONE_TAP', supported_apps: apps })
const zeroTap = (more: Fields) => otp({ otp_type: 'ZERO_TAP', supported_apps: [app], ...more })
const minutes = (count: number) => ({ footer: { code_expiration_minutes: count } })

const codeRows: readonly Row[] = [
  ['code_copy', {}, 'accepted', 'authentication'],
  ['code_default_type', { buttons: [{ type: 'OTP' }] }, 'accepted', 'authentication', 'assumed'],
  ['code_plain_body', { body: {} }, 'accepted', 'authentication'],
  ['code_label_25', otp({ text: 'b'.repeat(25) }), 'accepted', 'authentication'],
  ['code_label_26', otp({ text: 'b'.repeat(26) }), refused(2388040), 'authentication'],
  ['code_minutes_1', minutes(1), 'accepted', 'authentication'],
  ['code_minutes_90', minutes(90), 'accepted', 'authentication'],
  ['code_minutes_0', minutes(0), refused(2388073), 'authentication'],
  ['code_minutes_91', minutes(91), refused(2388073), 'authentication'],
  ['code_footer_empty', { footer: {} }, refused(2388073), 'authentication', 'assumed'],
  [
    'code_footer_text',
    { footer: { text: 'Lasts ten minutes', code_expiration_minutes: 10 } },
    refused(2388073),
    'authentication',
  ],
  ['code_text', { body: { text: 'Your code is {{1}}.' } }, refused(2388072), 'authentication'],
  ['code_samples', { body: { examples: ['123456'] } }, refused(2388072), 'authentication', 'assumed'],
  ['code_header', { header: { format: 'TEXT', text: 'Your code' } }, refused(), 'authentication'],
  ['code_media', media('IMAGE', sampleHandles.IMAGE), refused(), 'authentication'],
  ['code_no_button', { buttons: [] }, refused(), 'authentication'],
  ['code_reply', { buttons: [{ type: 'QUICK_REPLY', text: 'Thanks' }] }, refused(), 'authentication'],
  [
    'code_and_reply',
    { buttons: [{ type: 'OTP' }, { type: 'QUICK_REPLY', text: 'Thanks' }] },
    refused(),
    'authentication',
  ],
  [
    'code_twice',
    {
      buttons: [
        { type: 'OTP', text: 'A' },
        { type: 'OTP', text: 'B' },
      ],
    },
    refused(),
    'authentication',
  ],
  ['code_offer', { limited_time_offer: { text: 'Ends soon' } }, refused(), 'authentication'],
  ['code_one_tap', oneTap(app), 'accepted', 'authentication'],
  ['code_one_tap_5', oneTap(...Array.from({ length: 5 }, () => app)), 'accepted', 'authentication'],
  ['code_one_tap_no_app', otp({ otp_type: 'ONE_TAP' }), refused(), 'authentication'],
  ['code_package', oneTap({ ...app, package_name: 'shop' }), refused(), 'authentication', 'likely'],
  [
    'code_package_digit',
    oneTap({ ...app, package_name: 'com.1example' }),
    refused(),
    'authentication',
    'likely',
  ],
  [
    'code_package_224',
    oneTap({ ...app, package_name: `com.${'e'.repeat(220)}` }),
    'accepted',
    'authentication',
  ],
  [
    'code_package_225',
    oneTap({ ...app, package_name: `com.${'e'.repeat(221)}` }),
    refused(),
    'authentication',
  ],
  ['code_hash_10', oneTap({ ...app, signature_hash: 'K8a/AINcGX' }), refused(), 'authentication'],
  ['code_hash_12', oneTap({ ...app, signature_hash: 'K8a/AINcGX77' }), refused(), 'authentication'],
  ['code_zero_tap', zeroTap({ zero_tap_terms_accepted: true }), 'accepted', 'authentication'],
  ['code_zero_tap_silent', zeroTap({}), refused(), 'authentication'],
  ['code_zero_tap_false', zeroTap({ zero_tap_terms_accepted: false }), refused(), 'authentication'],
]

const coupon = (code: string): Fields => ({ type: 'COPY_CODE', coupon_code: code })
const shop: Fields = { type: 'URL', text: 'Shop', url: 'https://shop.example/' }
const offer = (text: string, more: Fields = {}) => ({ limited_time_offer: { text, ...more } })

const offerRows: readonly Row[] = [
  ['offer_plain', {}, 'accepted', 'offer'],
  ['offer_still', offer('Ends soon', { has_expiration: false }), 'accepted', 'offer'],
  ['offer_16', offer('o'.repeat(16)), 'accepted', 'offer'],
  ['offer_17', offer('o'.repeat(17)), refused(2388040), 'offer'],
  ['offer_16_astral', offer('𝒳'.repeat(16)), 'accepted', 'offer', 'assumed'],
  ['offer_blank', offer(' '), refused(), 'offer', 'assumed'],
  ['offer_line', offer('Ends\nsoon'), refused(), 'offer', 'likely'],
  ['offer_variable', offer('Ends {{1}}'), refused(), 'offer', 'likely'],
  ['offer_utility', { category: 'UTILITY' }, refused(), 'offer'],
  ['offer_body_600', { body: { text: 'x'.repeat(600) } }, 'accepted', 'offer'],
  ['offer_body_601', { body: { text: 'x'.repeat(601) } }, refused(2388040), 'offer'],
  ['offer_code_15', { buttons: [coupon('C'.repeat(15)), shop] }, 'accepted', 'offer'],
  ['offer_code_16', { buttons: [coupon('C'.repeat(16)), shop] }, refused(2388040), 'offer'],
  ['offer_no_code', { buttons: [shop] }, refused(), 'offer'],
  ['offer_code_second', { buttons: [shop, coupon('SPRING25')] }, refused(), 'offer'],
  ['offer_no_link', { buttons: [coupon('SPRING25')] }, refused(), 'offer'],
  ['offer_footer', { footer: { text: 'Until Sunday' } }, refused(), 'offer'],
  ['offer_image', media('IMAGE', sampleHandles.IMAGE), 'accepted', 'offer'],
  ['offer_video', media('VIDEO', sampleHandles.VIDEO), 'accepted', 'offer'],
  ['offer_document', media('DOCUMENT', sampleHandles.DOCUMENT), refused(), 'offer'],
  ['offer_text_header', { header: { format: 'TEXT', text: 'Spring' } }, refused(), 'offer'],
]

const card = (more: Fields = {}): Fields => ({
  header_format: 'IMAGE',
  media_handle: sampleHandles.IMAGE,
  body: { text: 'Warm and light.' },
  buttons: [{ type: 'QUICK_REPLY', text: 'Tell me more' }],
  ...more,
})
const cards = (...list: Fields[]) => ({ carousel: { cards: list } })
const video = { header_format: 'VIDEO', media_handle: sampleHandles.VIDEO }
const both = (more: Fields) => cards(card(more), card(more))
const bodyText = (text: string, ...examples: string[]) => ({
  body: { text, ...(examples.length > 0 ? { examples } : {}) },
})
const many = (count: number) => cards(...Array.from({ length: count }, () => card()))

const carouselRows: readonly Row[] = [
  ['cards_1', many(1), refused(), 'carousel'],
  ['cards_2', many(2), 'accepted', 'carousel'],
  ['cards_10', many(10), 'accepted', 'carousel'],
  ['cards_11', many(11), refused(), 'carousel'],
  ['cards_video', both(video), 'accepted', 'carousel'],
  ['cards_mixed', cards(card(), card(video)), refused(), 'carousel'],
  ['cards_without_text', both({ body: undefined }), 'accepted', 'carousel', 'likely'],
  ['cards_some_text', cards(card(), card({ body: undefined })), refused(), 'carousel', 'likely'],
  ['cards_text_160', both(bodyText('c'.repeat(160))), 'accepted', 'carousel'],
  ['cards_text_161', both(bodyText('c'.repeat(161))), refused(2388040), 'carousel'],
  ['cards_variable', both(bodyText('Coffee for {{1}} today.', 'Ada')), 'accepted', 'carousel'],
  ['cards_variable_last', both(bodyText('Coffee for {{1}}', 'Ada')), refused(2388299), 'carousel', 'assumed'],
  ['cards_sample_missing', both(bodyText('Coffee for {{1}} today.')), refused(2388043), 'carousel'],
  [
    'cards_adjacent',
    both(bodyText('Coffee for {{1}} {{2}} today.', 'Ada', 'L.')),
    rejected,
    'carousel',
    'assumed',
  ],
  [
    'cards_sample_type',
    cards(card(), card({ media_handle: sampleHandles.VIDEO })),
    badSample,
    'libraries',
    'assumed',
  ],
  ['cards_sample_blank', cards(card(), card({ media_handle: '' })), refused(2388043), 'carousel'],
  ['cards_no_button', both({ buttons: [] }), refused(), 'carousel'],
  [
    'cards_2_buttons',
    both({ buttons: [{ type: 'QUICK_REPLY', text: 'More' }, shop] }),
    'accepted',
    'carousel',
  ],
  [
    'cards_3_buttons',
    both({ buttons: [{ type: 'QUICK_REPLY', text: 'More' }, shop, { type: 'QUICK_REPLY', text: 'No' }] }),
    refused(),
    'carousel',
  ],
  ['cards_coupon', both({ buttons: [coupon('A1')] }), refused(), 'carousel'],
  [
    'cards_phone',
    both({ buttons: [{ type: 'PHONE_NUMBER', text: 'Call', phone_number: '+15550051310' }] }),
    'accepted',
    'carousel',
  ],
  ['cards_other_buttons', cards(card(), card({ buttons: [shop] })), refused(), 'carousel'],
  [
    'cards_link_variable',
    both({
      buttons: [{ ...shop, url: 'https://shop.example/{{1}}', url_example: 'https://shop.example/17' }],
    }),
    'accepted',
    'carousel',
  ],
  ['cards_header', { ...many(2), ...media('IMAGE', sampleHandles.IMAGE) }, refused(), 'carousel'],
  ['cards_footer', { ...many(2), footer: { text: 'Thanks' } }, refused(), 'carousel'],
  ['cards_buttons', { ...many(2), buttons: [{ type: 'QUICK_REPLY', text: 'Stop' }] }, refused(), 'carousel'],
  ['cards_utility', { ...many(2), category: 'UTILITY' }, refused(), 'carousel'],
  ['cards_body_missing', { ...many(2), body: {} }, refused(2388072), 'carousel'],
]

const message = { body: { text: 'Everything for less until Sunday.' } }

/** Headers with media, codes, limited-time offers, and carousels. */
export const kindEntries = [
  ...buildEntries({ category: 'MARKETING', ...message }, [...mediaRows, ...carouselRows]),
  ...buildEntries(
    { category: 'AUTHENTICATION', body: { add_security_recommendation: true }, ...otp() },
    codeRows,
  ),
  ...buildEntries(
    { category: 'MARKETING', ...message, ...offer('Spring offer'), buttons: [coupon('SPRING25'), shop] },
    offerRows,
  ),
]
