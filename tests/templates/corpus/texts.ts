import { buildEntries, refused, rejected, type Row } from './entry.ts'

const text = (value: string, ...examples: string[]) => ({
  body: { text: value, ...(examples.length > 0 ? { examples } : {}) },
})
const header = (value: string | undefined, example?: string) => ({
  header: {
    format: 'TEXT',
    ...(value === undefined ? {} : { text: value }),
    ...(example === undefined ? {} : { example }),
  },
})
const footer = (value: string) => ({ footer: { text: value } })

const envelope: readonly Row[] = [
  ['a', {}, 'accepted', 'reference'],
  ['name_512', { name: 'n'.repeat(512) }, 'accepted', 'reference'],
  ['name_513', { name: 'n'.repeat(513) }, refused(2388040), 'reference', 'assumed'],
  ['name_digits', { name: '2026_sale_1' }, 'accepted', 'reference'],
  ['name_uppercase', { name: 'Order_update' }, refused(2388046), 'libraries', 'likely'],
  ['name_hyphen', { name: 'order-update' }, refused(2388046), 'libraries', 'likely'],
  ['name_space', { name: 'order update' }, refused(2388046), 'libraries', 'likely'],
  ['name_umlaut', { name: 'grüße' }, refused(2388046), 'libraries', 'likely'],
  ['language_only', { language: 'de' }, 'accepted', 'languages'],
  ['language_three_letters', { language: 'fil' }, 'accepted', 'languages'],
  ['language_country', { language: 'pt_BR' }, 'accepted', 'languages'],
  ['language_hyphen', { language: 'en-US' }, refused(), 'languages'],
  ['language_case', { language: 'EN_us' }, refused(), 'languages'],
  ['category_marketing', { category: 'MARKETING' }, 'accepted', 'reference'],
  ['category_unknown', { category: 'SERVICE' }, refused(), 'reference'],
  ['category_old', { category: 'TRANSACTIONAL' }, refused(), 'reference'],
]

const bodies: readonly Row[] = [
  ['body_missing', { body: {} }, refused(2388072), 'error_codes'],
  ['body_blank', text(' \n '), refused(2388072), 'error_codes'],
  ['body_1024', text('x'.repeat(1024)), 'accepted', 'reference'],
  ['body_1025', text('x'.repeat(1025)), refused(2388040), 'error_codes'],
  // The provider does not say what a character is; code points are assumed. These have two UTF-16 units each.
  ['body_1024_emoji', text('😀'.repeat(1024)), 'accepted', 'reference', 'assumed'],
  ['body_1025_emoji', text('😀'.repeat(1025)), refused(2388040), 'reference', 'assumed'],
  ['body_512_combined', text('e\u0301'.repeat(512)), 'accepted', 'reference', 'assumed'],
  ['body_513_combined', text('e\u0301'.repeat(513)), refused(2388040), 'reference', 'assumed'],
  ['body_lines', text('Hello.\n\nYour *order* is _on_ its ~slow~ way. 🎉'), 'accepted', 'reference'],
  ['body_variable', text('Your order {{1}} is on its way.', '17'), 'accepted', 'reference'],
  ['body_variable_twice', text('Order {{1}} is here. Thank you for {{1}}.', '17'), 'accepted', 'reference'],
  [
    'body_variables_swapped',
    text('The order {{2}} for {{1}} is on its way to you.', 'Ada', '17'),
    'accepted',
    'reference',
  ],
  ['body_variable_first', text('{{1}}, your order is on its way.', 'Ada'), refused(2388299), 'error_codes'],
  ['body_variable_last', text('Your order is on its way, {{1}}', 'Ada'), refused(2388299), 'error_codes'],
  ['body_variable_before_stop', text('Your order is on its way, {{1}}.', 'Ada'), 'accepted', 'error_codes'],
  [
    'body_variable_before_space',
    text('Your order is on its way, {{1}} ', 'Ada'),
    refused(2388299),
    'error_codes',
    'assumed',
  ],
  [
    'body_variable_after_joiner',
    text('\u200d{{1}}, your order is on its way.', 'Ada'),
    refused(2388299),
    'error_codes',
    'assumed',
  ],
  ['body_words_3_of_1', text('Hello {{1}} there', 'Ada'), 'accepted', 'libraries', 'likely'],
  ['body_words_2_of_1', text('Hello {{1}}!', 'Ada'), refused(2388293), 'error_codes'],
  ['body_words_5_of_2', text('Hello {{1}}, here is {{2}}.', 'Ada', '17'), 'accepted', 'libraries', 'likely'],
  [
    'body_words_4_of_2',
    text('Hello {{1}}, see {{2}}.', 'Ada', '17'),
    refused(2388293),
    'libraries',
    'likely',
  ],
  [
    'body_words_6_of_3',
    text('Hello {{1}}: now {{2}} or {{3}}.', 'Ada', '17', '18'),
    refused(2388293),
    'libraries',
    'likely',
  ],
  [
    'body_adjacent',
    text('Gift boxes for {{1}}{{2}} are ready in the shop.', 'Ada', 'Grace'),
    rejected,
    'guidelines',
  ],
  [
    'body_adjacent_space',
    text('Gift boxes for {{1}} {{2}} are ready in the shop.', 'Ada', 'Grace'),
    rejected,
    'guidelines',
  ],
  [
    'body_adjacent_line',
    text('Gift boxes for {{1}}\n{{2}} are ready in the shop.', 'Ada', 'Grace'),
    rejected,
    'guidelines',
    'assumed',
  ],
  [
    'body_adjacent_comma',
    text('Gift boxes for {{1}}, {{2}} are ready in the shop.', 'Ada', 'Grace'),
    'accepted',
    'guidelines',
  ],
  [
    'body_gap',
    text('Order {{1}} goes to {{3}} by the end of today.', '17', 'Ada'),
    refused(2388072),
    'guidelines',
  ],
  ['body_from_two', text('Your order {{2}} is on its way.', '17'), refused(2388072), 'guidelines'],
  ['body_zero', text('Your order {{0}} is on its way.', '17'), refused(2388072), 'guidelines'],
  [
    'body_leading_zero',
    text('Your order {{01}} is on its way.', '17'),
    refused(2388072),
    'guidelines',
    'assumed',
  ],
  ['body_spaced', text('Your order {{ 1 }} is on its way.', '17'), refused(2388072), 'guidelines', 'assumed'],
  // Drafts have numbered variables; a name needs another format of parameters.
  ['body_named', text('Your order {{order_id}} is on its way.', '17'), refused(2388072), 'reference'],
  ['body_expression', text('Your order {{1|upper}} is on its way.', '17'), refused(2388072), 'guidelines'],
  ['body_open_braces', text('Your order {{1 is on its way.'), refused(2388072), 'guidelines'],
  ['body_single_braces', text('Your order {1} is on its way.'), 'accepted', 'guidelines', 'assumed'],
  ['sample_missing', text('Your order {{1}} is on its way.'), refused(2388043), 'error_codes'],
  ['sample_too_few', text('Order {{1}} for {{2}} is on its way.', '17'), refused(2388043), 'error_codes'],
  ['sample_too_many', text('Your order {{1}} is on its way.', '17', '18'), refused(2388043), 'error_codes'],
  ['sample_unneeded', text('Your order is on its way.', '17'), refused(2388043), 'error_codes', 'assumed'],
  ['sample_blank', text('Your order {{1}} is on its way.', ' '), refused(2388043), 'libraries', 'assumed'],
  ['sample_line', text('Your order {{1}} is on its way.', '1\n7'), refused(2388072), 'guidelines'],
  ['sample_tab', text('Your order {{1}} is on its way.', '1\t7'), refused(2388072), 'guidelines'],
  ['sample_4_spaces', text('Your order {{1}} is on its way.', '1    7'), 'accepted', 'guidelines'],
  ['sample_5_spaces', text('Your order {{1}} is on its way.', '1     7'), refused(2388072), 'guidelines'],
  [
    'body_recommendation',
    { body: { text: 'Your order is on its way.', add_security_recommendation: true } },
    refused(2388072),
    'authentication',
    'assumed',
  ],
]

const headers: readonly Row[] = [
  ['header_60', header('h'.repeat(60)), 'accepted', 'reference'],
  ['header_61', header('h'.repeat(61)), refused(2388040), 'error_codes'],
  ['header_60_astral', header('𝒳'.repeat(60)), 'accepted', 'reference', 'assumed'],
  ['header_61_astral', header('𝒳'.repeat(61)), refused(2388040), 'reference', 'assumed'],
  ['header_missing', header(undefined), refused(2388043), 'error_codes'],
  ['header_blank', header(' '), refused(2388043), 'error_codes', 'assumed'],
  ['header_emoji', header('Big news 🎉'), refused(2388047), 'error_codes'],
  ['header_flag', header('News from 🇩🇪'), refused(2388047), 'error_codes'],
  ['header_line', header('Big\nnews'), refused(2388047), 'error_codes'],
  ['header_asterisk', header('Big *news*'), refused(2388047), 'error_codes'],
  ['header_underscore', header('Big _news_'), refused(2388047), 'error_codes'],
  ['header_tilde', header('Big ~news~'), refused(2388047), 'error_codes'],
  ['header_backtick', header('Big `news`'), refused(2388047), 'error_codes'],
  ['header_copyright', header('News © Demo™'), 'accepted', 'error_codes', 'assumed'],
  ['header_variable', header('News for {{1}}', 'Ada'), 'accepted', 'reference'],
  ['header_variable_only', header('{{1}} news', 'Big'), 'accepted', 'reference'],
  ['header_variables', header('{{1}} news for {{2}}', 'Big'), refused(2388047), 'reference'],
  ['header_from_two', header('News for {{2}}', 'Ada'), refused(2388047), 'guidelines'],
  ['header_named', header('News for {{name}}', 'Ada'), refused(2388047), 'reference'],
  ['header_sample_missing', header('News for {{1}}'), refused(2388043), 'error_codes'],
  ['header_sample_line', header('News for {{1}}', 'A\nda'), refused(2388047), 'guidelines', 'assumed'],
]

const footers: readonly Row[] = [
  ['footer_60', footer('f'.repeat(60)), 'accepted', 'reference'],
  ['footer_61', footer('f'.repeat(61)), refused(2388040), 'error_codes'],
  ['footer_60_wide', footer('字'.repeat(60)), 'accepted', 'reference'],
  ['footer_blank', footer(' '), refused(2388073), 'error_codes', 'assumed'],
  ['footer_variable', footer('Thank you, {{1}}'), refused(2388073), 'error_codes'],
  ['footer_line', footer('Thank\nyou'), refused(2388073), 'error_codes'],
  ['footer_emoji', footer('Thank you ☕'), refused(2388073), 'error_codes'],
  ['footer_format', footer('Thank *you*'), 'accepted', 'error_codes', 'assumed'],
  [
    'footer_expiration',
    { footer: { text: 'Thank you', code_expiration_minutes: 10 } },
    refused(2388073),
    'authentication',
    'assumed',
  ],
]

/** Name, language, category, and the texts of a message. */
export const textEntries = buildEntries(
  { category: 'UTILITY', body: { text: 'Your order is on its way.' } },
  [...envelope, ...bodies, ...headers, ...footers],
)
