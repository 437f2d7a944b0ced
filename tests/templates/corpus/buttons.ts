import { buildEntries, type Fields, refused, type Row } from './entry.ts'

const buttons = (...list: Fields[]) => ({ buttons: list })
const reply = (text: string): Fields => ({ type: 'QUICK_REPLY', text })
const replies = (count: number): Fields[] => Array.from({ length: count }, (_, n) => reply(`Answer ${n}`))
const link = (url: string, example?: string, text = 'Shop'): Fields => ({
  type: 'URL',
  text,
  url,
  ...(example === undefined ? {} : { url_example: example }),
})
const shop = (text: string): Fields => link('https://shop.example/', undefined, text)
const phone = (number: string, text = 'Call'): Fields => ({
  type: 'PHONE_NUMBER',
  text,
  phone_number: number,
})
const coupon = (code?: string): Fields => ({
  type: 'COPY_CODE',
  ...(code === undefined ? {} : { coupon_code: code }),
})
const flow = (more: Fields, text = 'Book'): Fields => ({ type: 'FLOW', text, ...more })
const screen = { flow_id: '123', navigate_screen: 'START' }
const call = (text: string): Fields => ({ type: 'VOICE_CALL', text })

const labels: readonly Row[] = [
  ['label_25', buttons(reply('b'.repeat(25))), 'accepted', 'reference'],
  ['label_26', buttons(reply('b'.repeat(26))), refused(2388040), 'error_codes'],
  ['label_25_astral', buttons(reply('𝒳'.repeat(25))), 'accepted', 'reference', 'assumed'],
  ['label_26_astral', buttons(reply('𝒳'.repeat(26))), refused(2388040), 'reference', 'assumed'],
  ['label_missing', buttons({ type: 'QUICK_REPLY' }), refused(), 'reference'],
  ['label_blank', buttons(reply(' ')), refused(), 'reference', 'assumed'],
  ['label_emoji', buttons(reply('Yes 👍')), refused(), 'guidelines', 'likely'],
  ['label_variable', buttons(reply('Yes, {{1}}')), refused(), 'guidelines', 'likely'],
  ['label_line', buttons(reply('Yes\nplease')), refused(), 'guidelines', 'likely'],
  ['label_format', buttons(reply('*Yes*')), refused(), 'guidelines', 'likely'],
  ['label_twice', buttons(reply('Yes'), reply('Yes')), refused(), 'guidelines', 'likely'],
  ['label_twice_kinds', buttons(reply('Shop'), shop('Shop')), refused(), 'guidelines', 'assumed'],
]

const counts: readonly Row[] = [
  ['replies_10', buttons(...replies(10)), 'accepted', 'reference'],
  ['replies_11', buttons(...replies(11)), refused(), 'reference'],
  ['buttons_10', buttons(...replies(8), shop('A'), shop('B')), 'accepted', 'reference'],
  ['buttons_11', buttons(...replies(9), shop('A'), shop('B')), refused(), 'reference'],
  ['links_2', buttons(shop('A'), shop('B')), 'accepted', 'reference'],
  ['links_3', buttons(shop('A'), shop('B'), shop('C')), refused(), 'reference'],
  ['phones_2', buttons(phone('+15550051310', 'A'), phone('+15550051311', 'B')), refused(), 'reference'],
  ['coupons_2', { category: 'MARKETING', ...buttons(coupon('A1'), coupon('B2')) }, refused(), 'reference'],
  ['flows_2', buttons(flow(screen, 'A'), flow(screen, 'B')), refused(), 'reference', 'assumed'],
  ['calls_2', buttons(call('A'), call('B')), refused(), 'reference', 'assumed'],
  ['replies_first', buttons(...replies(2), shop('A'), phone('+15550051310')), 'accepted', 'reference'],
  ['replies_last', buttons(shop('A'), phone('+15550051310'), ...replies(2)), 'accepted', 'reference'],
  ['replies_between', buttons(shop('A'), ...replies(1), phone('+15550051310')), refused(), 'reference'],
  ['replies_apart', buttons(reply('Yes'), shop('A'), reply('No')), refused(), 'reference'],
  ['list_empty', { buttons: [] }, 'accepted', 'reference', 'assumed'],
]

const values: readonly Row[] = [
  ['link_static', buttons(link('https://shop.example/sale?a=1#b')), 'accepted', 'reference'],
  [
    'link_variable',
    buttons(link('https://shop.example/{{1}}', 'https://shop.example/sale')),
    'accepted',
    'reference',
  ],
  [
    'link_variable_query',
    buttons(link('https://shop.example/?order={{1}}', 'https://shop.example/?order=17')),
    'accepted',
    'reference',
  ],
  ['link_missing', buttons({ type: 'URL', text: 'Shop' }), refused(), 'reference'],
  ['link_http', buttons(link('http://shop.example/')), refused(), 'guidelines', 'assumed'],
  ['link_without_scheme', buttons(link('shop.example/sale')), refused(), 'reference'],
  ['link_space', buttons(link('https://shop.example/a b')), refused(), 'reference', 'assumed'],
  ['link_chat', buttons(link('https://wa.me/15550051310')), refused(), 'guidelines', 'likely'],
  [
    'link_chat_api',
    buttons(link('https://api.whatsapp.com/send?phone=15550051310')),
    refused(),
    'guidelines',
    'assumed',
  ],
  [
    'link_variable_inside',
    buttons(link('https://shop.example/{{1}}/buy', 'https://shop.example/17/buy')),
    refused(),
    'reference',
  ],
  [
    'link_variable_two',
    buttons(link('https://shop.example/{{2}}', 'https://shop.example/17')),
    refused(),
    'reference',
  ],
  [
    'link_variables',
    buttons(link('https://shop.example/{{1}}{{2}}', 'https://shop.example/17')),
    refused(),
    'reference',
  ],
  ['link_no_example', buttons(link('https://shop.example/{{1}}')), refused(), 'reference'],
  [
    'link_other_example',
    buttons(link('https://shop.example/{{1}}', 'https://other.example/17')),
    refused(),
    'reference',
    'assumed',
  ],
  // The reference's own example: `"url": "…?promo={{1}}", "example": ["summer2023"]`.
  [
    'link_example_value',
    buttons(link('https://shop.example/?promo={{1}}', 'summer2023')),
    'accepted',
    'reference',
  ],
  [
    'link_example_space',
    buttons(link('https://shop.example/{{1}}', 'a b')),
    refused(),
    'reference',
    'assumed',
  ],
  // The provider strips the zero after the country code.
  ['phone_zero', buttons(phone('+55-0-955-585-9543')), 'accepted', 'reference'],
  ['phone_dashes', buttons(phone('+55-0-955-585-95436')), 'accepted', 'reference'],
  ['link_2000', buttons(link(`https://shop.example/${'u'.repeat(1979)}`)), 'accepted', 'reference'],
  ['link_2001', buttons(link(`https://shop.example/${'u'.repeat(1980)}`)), refused(2388040), 'reference'],
  ['phone_plus', buttons(phone('+15550051310')), 'accepted', 'reference'],
  ['phone_digits', buttons(phone('15550051310')), 'accepted', 'reference'],
  ['phone_national', buttons(phone('0301234')), refused(), 'reference'],
  ['phone_letters', buttons(phone('+1 555 CALL US')), refused(), 'reference'],
  ['phone_missing', buttons({ type: 'PHONE_NUMBER', text: 'Call' }), refused(), 'reference'],
  ['phone_21', buttons(phone('+1 (555) 005 - 1 3 10')), refused(), 'reference', 'assumed'],
  [
    'coupon_20',
    { category: 'MARKETING', ...buttons(coupon('C'.repeat(20))) },
    'accepted',
    'reference',
    'likely',
  ],
  [
    'coupon_21',
    { category: 'MARKETING', ...buttons(coupon('C'.repeat(21))) },
    refused(),
    'reference',
    'likely',
  ],
  ['coupon_missing', { category: 'MARKETING', ...buttons(coupon()) }, refused(), 'reference'],
  [
    'coupon_space',
    { category: 'MARKETING', ...buttons(coupon('25 OFF')) },
    refused(),
    'reference',
    'assumed',
  ],
  ['flow_screen', buttons(flow(screen)), 'accepted', 'reference'],
  ['flow_no_id', buttons(flow({ navigate_screen: 'START' })), refused(), 'reference'],
  ['flow_no_screen', buttons(flow({ flow_id: '123' })), refused(), 'reference', 'assumed'],
  ['flow_exchange', buttons(flow({ flow_id: '123', flow_action: 'DATA_EXCHANGE' })), 'accepted', 'reference'],
  ['call_one', buttons(call('Talk to us')), 'accepted', 'reference'],
  ['otp_elsewhere', buttons({ type: 'OTP', otp_type: 'COPY_CODE' }), refused(), 'authentication'],
]

/** Buttons of a message: labels, counts and order, and the values of each type. */
export const buttonEntries = buildEntries(
  { category: 'UTILITY', body: { text: 'Your order is on its way.' } },
  [...labels, ...counts, ...values],
)
