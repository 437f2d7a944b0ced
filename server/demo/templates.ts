import type { DemoTemplate, DemoQuickMessage } from '../../storage/demo/templates.ts'

/** Templates and quick messages of the demo workspace. Components have the provider's own format. */

const body = (text: string, ...samples: string[]) => ({
  type: 'BODY',
  text,
  ...(samples.length > 0 ? { example: { body_text: [samples] } } : {}),
})

export const demoTemplates: readonly DemoTemplate[] = [
  {
    name: 'order_update',
    language: 'en_US',
    category: 'UTILITY',
    status: 'APPROVED',
    components: [body('Hello {{1}}, your order is on its way.', 'Ada')],
  },
  {
    name: 'order_update',
    language: 'de',
    category: 'UTILITY',
    status: 'APPROVED',
    components: [body('Hallo {{1}}, Ihre Bestellung ist unterwegs.', 'Ada')],
  },
  {
    name: 'autumn_blend',
    language: 'en_US',
    category: 'MARKETING',
    status: 'APPROVED',
    components: [
      { type: 'HEADER', format: 'IMAGE', example: { header_handle: ['4::aW1hZ2UvanBlZw==:demo'] } },
      body('Hi {{1}}, our autumn blend is here: plum, cocoa, and {{2}} off until Sunday.', 'Ada', '15 %'),
      { type: 'FOOTER', text: 'Reply STOP to hear no more of this' },
      {
        type: 'BUTTONS',
        buttons: [
          {
            type: 'URL',
            text: 'See the blend',
            url: 'https://www.example.com/shop/{{1}}',
            example: ['https://www.example.com/shop/autumn'],
          },
          { type: 'QUICK_REPLY', text: 'Not now' },
        ],
      },
    ],
  },
  {
    name: 'login_code',
    language: 'en_US',
    category: 'AUTHENTICATION',
    status: 'APPROVED',
    components: [
      {
        type: 'BODY',
        text: '*{{1}}* is your verification code. For your security, do not share this code.',
        add_security_recommendation: true,
        example: { body_text: [['123456']] },
      },
      { type: 'FOOTER', text: 'This code expires in 10 minutes.', code_expiration_minutes: 10 },
      {
        type: 'BUTTONS',
        buttons: [
          {
            type: 'URL',
            text: 'Copy code',
            url: 'https://www.example.com/otp/code/?otp_type=COPY_CODE&code=otp{{1}}',
            example: ['https://www.example.com/otp/code/?otp_type=COPY_CODE&code=otp123456'],
          },
        ],
      },
    ],
  },
  {
    name: 'opening_hours',
    language: 'en_US',
    category: 'UTILITY',
    status: 'APPROVED',
    components: [body('In the holidays we are open from 10 to 14, and closed on the 25th.')],
  },
  {
    name: 'order_survey',
    language: 'en_US',
    category: 'MARKETING',
    status: 'PAUSED',
    rejection_reason: 'Customers reported this template often.',
    components: [body('How was your order, {{1}}?', 'Ada')],
  },
  {
    name: 'gift_boxes',
    language: 'en_US',
    category: 'MARKETING',
    status: 'REJECTED',
    rejection_reason:
      'Your template has parameters placed next to each other (like {{1}}{{2}}) without text or ' +
      'punctuation between them.',
    components: [body('Gift boxes for {{1}}{{2}} are ready.', 'Ada', 'Grace')],
  },
  {
    name: 'workshop_invitation',
    language: 'en_US',
    category: 'MARKETING',
    status: 'PENDING',
    components: [body('Dear {{1}}, two places are left in the workshop on {{2}}.', 'Ada', '28 October')],
  },
]

/** `owner`, `team`, `favoriteOf`: indexes in the lists of staff and teams. */
export const demoQuickMessages: readonly DemoQuickMessage[] = [
  {
    code: 'hello',
    title: 'Greeting',
    type: 'TEXT',
    text: 'Hello {{contact.name}}, how can we help?',
    visibility: 'company',
    owner: 0,
    favoriteOf: [0, 4, 5],
  },
  {
    code: 'hours',
    title: 'Opening hours',
    type: 'TEXT',
    description: 'Also on the website',
    text: 'We are open Monday to Saturday, 9 to 16.',
    visibility: 'company',
    owner: 2,
    favoriteOf: [0, 2],
  },
  {
    code: 'danke',
    title: 'Dank',
    type: 'TEXT',
    text: 'Vielen Dank und bis bald ☕',
    visibility: 'team',
    team: 0,
    owner: 4,
    favoriteOf: [4],
  },
  {
    code: 'menu',
    title: 'Menu as a picture',
    type: 'IMAGE',
    text: 'Our menu',
    media_url: 'https://www.example.com/media/menu.jpg',
    visibility: 'company',
    owner: 2,
  },
  {
    code: 'brewing',
    title: 'How to brew',
    type: 'VIDEO',
    text: null,
    media_url: 'https://www.example.com/media/brewing.mp4',
    visibility: 'team',
    team: 1,
    owner: 3,
  },
  {
    code: 'prices',
    title: 'Price list',
    type: 'DOCUMENT',
    text: 'Prices for wholesale',
    media_url: 'https://www.example.com/media/prices.pdf',
    file_name: 'prices.pdf',
    visibility: 'private',
    owner: 0,
  },
  {
    code: 'onway',
    title: 'On its way',
    type: 'TEMPLATE',
    text: null,
    template_name: 'order_update',
    visibility: 'company',
    owner: 0,
  },
]
