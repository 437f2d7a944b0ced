import { createSandboxRequest } from '../messaging/fixtures.ts'
import type { TestServer, TestWorkspace } from '../servers.ts'
import { sampleHandles } from './samples.ts'

/** Valid drafts of every kind, and the payload that the provider receives for each. */
export const orderDraft = {
  name: 'order_update',
  language: 'en_US',
  category: 'UTILITY',
  body: { text: 'Hello {{1}}, your order {{2}} of today is on its way.', examples: ['Ada', '17'] },
}
export const plainDraft = {
  name: 'opening_hours',
  language: 'en_US',
  category: 'UTILITY',
  body: { text: 'We are open from ten to four.' },
}

const buildCard = (n: number) => ({
  header_format: 'IMAGE',
  media_handle: sampleHandles.IMAGE,
  body: { text: `Coffee for {{1}} in size ${n}.`, examples: ['Ada'] },
  buttons: [
    {
      type: 'URL',
      text: 'Buy',
      url: 'https://shop.example.com/{{1}}',
      url_example: `https://shop.example.com/${n}`,
    },
    { type: 'QUICK_REPLY', text: 'Not now' },
  ],
})

export const acceptedDrafts = [
  orderDraft,
  plainDraft,
  {
    name: 'titled',
    language: 'pt_BR',
    category: 'UTILITY',
    header: { format: 'TEXT', text: 'For {{1}}', example: 'Ada' },
    body: { text: 'Tudo pronto 😀' },
    footer: { text: 'Thanks' },
    buttons: [
      { type: 'QUICK_REPLY', text: 'Stop' },
      { type: 'PHONE_NUMBER', text: 'Call us', phone_number: '+15550051310' },
      { type: 'VOICE_CALL', text: 'Speak' },
      { type: 'FLOW', text: 'Book', flow_id: '123', navigate_screen: 'START' },
    ],
  },
  {
    name: 'placed',
    language: 'en',
    category: 'UTILITY',
    header: { format: 'LOCATION' },
    body: { text: 'Your parcel waits here.' },
    buttons: [{ type: 'FLOW', text: 'Book', flow_id: '123', flow_action: 'DATA_EXCHANGE' }],
  },
  {
    name: 'spring_offer',
    language: 'en_US',
    category: 'MARKETING',
    header: { format: 'IMAGE', media_handle: sampleHandles.IMAGE },
    body: { text: 'Everything for less until Sunday.' },
    limited_time_offer: { text: 'Ends soon', has_expiration: true },
    buttons: [
      { type: 'COPY_CODE', coupon_code: 'SPRING25' },
      {
        type: 'URL',
        text: 'Shop',
        url: 'https://shop.example.com/{{1}}',
        url_example: 'https://shop.example.com/sale',
      },
    ],
  },
  {
    name: 'login_code',
    language: 'en_US',
    category: 'AUTHENTICATION',
    body: { add_security_recommendation: true },
    footer: { code_expiration_minutes: 10 },
    buttons: [
      {
        type: 'OTP',
        otp_type: 'ONE_TAP',
        text: 'Copy code',
        supported_apps: [{ package_name: 'com.example.shop', signature_hash: 'K8a/AINcGX7' }],
      },
    ],
  },
  {
    name: 'cards',
    language: 'en_US',
    category: 'MARKETING',
    body: { text: 'Our new coffees are here.' },
    carousel: { cards: [buildCard(1), buildCard(2)] },
  },
]

const buildCardPayload = (n: number) => ({
  components: [
    { type: 'HEADER', format: 'IMAGE', example: { header_handle: [sampleHandles.IMAGE] } },
    { type: 'BODY', text: `Coffee for {{1}} in size ${n}.`, example: { body_text: [['Ada']] } },
    {
      type: 'BUTTONS',
      buttons: [
        {
          type: 'URL',
          text: 'Buy',
          url: 'https://shop.example.com/{{1}}',
          example: [`https://shop.example.com/${n}`],
        },
        { type: 'QUICK_REPLY', text: 'Not now' },
      ],
    },
  ],
})

export const expectedPayloads: Readonly<Record<string, unknown[]>> = {
  order_update: [{ type: 'BODY', text: orderDraft.body.text, example: { body_text: [['Ada', '17']] } }],
  opening_hours: [{ type: 'BODY', text: plainDraft.body.text }],
  titled: [
    { type: 'HEADER', format: 'TEXT', text: 'For {{1}}', example: { header_text: ['Ada'] } },
    { type: 'BODY', text: 'Tudo pronto 😀' },
    { type: 'FOOTER', text: 'Thanks' },
    {
      type: 'BUTTONS',
      buttons: [
        { type: 'QUICK_REPLY', text: 'Stop' },
        { type: 'PHONE_NUMBER', text: 'Call us', phone_number: '+15550051310' },
        { type: 'VOICE_CALL', text: 'Speak' },
        { type: 'FLOW', text: 'Book', flow_id: '123', flow_action: 'navigate', navigate_screen: 'START' },
      ],
    },
  ],
  placed: [
    { type: 'HEADER', format: 'LOCATION' },
    { type: 'BODY', text: 'Your parcel waits here.' },
    {
      type: 'BUTTONS',
      buttons: [{ type: 'FLOW', text: 'Book', flow_id: '123', flow_action: 'data_exchange' }],
    },
  ],
  spring_offer: [
    { type: 'HEADER', format: 'IMAGE', example: { header_handle: [sampleHandles.IMAGE] } },
    { type: 'LIMITED_TIME_OFFER', limited_time_offer: { text: 'Ends soon', has_expiration: true } },
    { type: 'BODY', text: 'Everything for less until Sunday.' },
    {
      type: 'BUTTONS',
      buttons: [
        { type: 'COPY_CODE', example: 'SPRING25' },
        {
          type: 'URL',
          text: 'Shop',
          url: 'https://shop.example.com/{{1}}',
          example: ['https://shop.example.com/sale'],
        },
      ],
    },
  ],
  login_code: [
    { type: 'BODY', add_security_recommendation: true },
    { type: 'FOOTER', code_expiration_minutes: 10 },
    {
      type: 'BUTTONS',
      buttons: [
        {
          type: 'OTP',
          otp_type: 'ONE_TAP',
          text: 'Copy code',
          supported_apps: [{ package_name: 'com.example.shop', signature_hash: 'K8a/AINcGX7' }],
        },
      ],
    },
  ],
  cards: [
    { type: 'BODY', text: 'Our new coffees are here.' },
    { type: 'CAROUSEL', cards: [buildCardPayload(1), buildCardPayload(2)] },
  ],
}

type TemplateAtProvider = {
  id: string
  name: string
  status: string
  category: string
  account_id: string
  components: unknown[]
}

/** Controls the templates of a workspace in the sandbox. */
export const createTemplateDriver = (
  server: Pick<TestServer, 'url' | 'settle'>,
  workspace: Pick<TestWorkspace, 'owner'>,
) => {
  const request = createSandboxRequest(server, workspace)
  return {
    templates: async (): Promise<TemplateAtProvider[]> =>
      (await request<{ data: TemplateAtProvider[] }>('GET', 'templates')).data,
    /** Has the reviewer decide. Resolves when the server has applied the webhook. */
    review: async (
      templateId: string,
      decision: string,
      reason?: string,
      category?: string,
    ): Promise<void> => {
      await request('POST', 'review', {
        template_id: templateId,
        decision,
        ...(reason === undefined ? {} : { reason }),
        ...(category === undefined ? {} : { category }),
      })
      await server.settle()
    },
    fault: (fault: object) => request('POST', 'faults', { on: 'templates', times: 1, ...fault }),
  }
}
