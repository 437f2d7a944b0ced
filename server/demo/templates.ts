import type { DemoQuickMessage } from '../../storage/demo/quick-messages.ts'

/** Templates and quick messages of the demo workspace, as its staff wrote them. */

const template = (name: string, category: string, body: object, more: object = {}) => ({
  name,
  language: 'en_US',
  category,
  body,
  ...more,
})

const news = 'Hi {{1}}, our autumn blend is here: plum, cocoa, and {{2}} off until Sunday.'
const invitation = 'Dear {{1}}, two places are left in the workshop on {{2}}.'
const shop = 'https://www.example.com/shop'

/** `event`: what came of the review; none so far. `reason`: the reviewer's. */
export const demoTemplates: readonly { draft: object; event?: string; reason?: string }[] = [
  {
    draft: template('order_update', 'UTILITY', {
      text: 'Hello {{1}}, your order is on its way.',
      examples: ['Ada'],
    }),
    event: 'APPROVED',
  },
  {
    draft: template(
      'order_update',
      'UTILITY',
      { text: 'Hallo {{1}}, Ihre Bestellung ist unterwegs.', examples: ['Ada'] },
      { language: 'de' },
    ),
    event: 'APPROVED',
  },
  {
    draft: template(
      'autumn_blend',
      'MARKETING',
      { text: news, examples: ['Ada', '15 %'] },
      {
        header: { format: 'IMAGE', media_handle: '4::aW1hZ2UvanBlZw==:demo' },
        footer: { text: 'Reply STOP to hear no more of this' },
        buttons: [
          { type: 'URL', text: 'See the blend', url: `${shop}/{{1}}`, url_example: `${shop}/autumn` },
          { type: 'QUICK_REPLY', text: 'Not now' },
        ],
      },
    ),
    event: 'APPROVED',
  },
  {
    draft: template(
      'login_code',
      'AUTHENTICATION',
      { add_security_recommendation: true },
      {
        footer: { code_expiration_minutes: 10 },
        buttons: [{ type: 'OTP', otp_type: 'COPY_CODE', text: 'Copy code' }],
      },
    ),
    event: 'APPROVED',
  },
  {
    draft: template('opening_hours', 'UTILITY', {
      text: 'In the holidays we are open from 10 to 14, and closed on the 25th.',
    }),
    event: 'APPROVED',
  },
  {
    draft: template('order_survey', 'MARKETING', { text: 'How was your order, {{1}}?', examples: ['Ada'] }),
    event: 'PAUSED',
    reason: 'Customers reported this template often.',
  },
  {
    draft: template('gift_boxes', 'MARKETING', {
      text: 'Free gift boxes for {{1}} are ready.',
      examples: ['Ada'],
    }),
    event: 'REJECTED',
    reason: 'The offer does not say what customers have to do for it.',
  },
  {
    draft: template('workshop_invitation', 'MARKETING', {
      text: invitation,
      examples: ['Ada', '28 October'],
    }),
  },
]

/** `owner`, `team`, `favoriteOf`: indexes in the lists of staff and teams. */
const write = (
  message: Pick<DemoQuickMessage, 'code' | 'title' | 'type' | 'text'>,
  more: Omit<DemoQuickMessage, 'code' | 'title' | 'type' | 'text' | 'visibility'>,
  visibility: DemoQuickMessage['visibility'] = 'company',
): DemoQuickMessage => ({ ...message, ...more, visibility })

const media = (name: string) => ({ media_url: `https://www.example.com/media/${name}` })

export const demoQuickMessages: readonly DemoQuickMessage[] = [
  write(
    { code: 'hello', title: 'Greeting', type: 'TEXT', text: 'Hello {{contact.name}}, how can we help?' },
    { owner: 0, favoriteOf: [0, 4, 5] },
  ),
  write(
    { code: 'hours', title: 'Opening hours', type: 'TEXT', text: 'We are open Monday to Saturday, 9 to 16.' },
    { owner: 2, favoriteOf: [0, 2], description: 'Also on the website' },
  ),
  write(
    { code: 'danke', title: 'Dank', type: 'TEXT', text: 'Vielen Dank und bis bald ☕' },
    { owner: 4, team: 0, favoriteOf: [4] },
    'team',
  ),
  write(
    { code: 'menu', title: 'Menu as a picture', type: 'IMAGE', text: 'Our menu' },
    { owner: 2, ...media('menu.jpg') },
  ),
  write(
    { code: 'brewing', title: 'How to brew', type: 'VIDEO', text: null },
    { owner: 3, team: 1, ...media('brewing.mp4') },
    'team',
  ),
  write(
    { code: 'prices', title: 'Price list', type: 'DOCUMENT', text: 'Prices for wholesale' },
    { owner: 0, ...media('prices.pdf'), file_name: 'prices.pdf' },
    'private',
  ),
  write(
    { code: 'onway', title: 'On its way', type: 'TEMPLATE', text: null },
    { owner: 0, template_name: 'order_update' },
  ),
]
