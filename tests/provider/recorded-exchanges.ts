/**
 * Literal exchanges with the provider, from its documentation and from open-source clients. The adapter is
 * tested against them, and the sandbox must respond in the same structure. `name` is the name in the appendix
 * of the protocol notes.
 */
export type RecordedExchange = {
  name: string
  request: {
    method: 'GET' | 'POST' | 'DELETE'
    path: string
    query?: Record<string, string>
    body?: unknown
    unversioned?: boolean
  }
  response: { status: number; body: unknown }
}

export const recordedIds = { version: 'v23.0', phone: '106540352242922', account: '102290129340398' } as const
const { phone, account } = recordedIds

const buildError = (code: number, message: string, fields: Record<string, unknown> = {}): unknown => ({
  error: { message, type: 'OAuthException', code, fbtrace_id: 'AXsgnV2Cm3ZMGF3dF_cfYIn', ...fields },
})

const link = {
  prefilled_message: "Hi! I'm interested in your products. Can you help me?",
  generate_qr_image: 'SVG',
}
const createLink = (status: number, body: unknown) => ({
  request: { method: 'POST' as const, path: `${phone}/message_qrdls`, body: link },
  response: { status, body },
})

const links: RecordedExchange[] = [
  {
    name: 'A1 create',
    ...createLink(200, {
      code: 'ANED2T5QRU7HG1',
      prefilled_message: link.prefilled_message,
      deep_link_url: 'https://wa.me/message/ANED2T5QRU7HG1',
      qr_image_url: 'https://scontent.../m1/v/t6/An-...',
    }),
  },
  {
    name: 'A1 too long',
    ...createLink(400, buildError(100, 'Invalid prefilled_message length. Maximum 140 characters allowed')),
  },
  {
    name: 'A1 bad token',
    ...createLink(401, buildError(190, 'Invalid OAuth access token', { error_subcode: 463 })),
  },
  {
    name: 'A1 no permission',
    ...createLink(
      403,
      buildError(200, "Your app doesn't have permission to manage QR codes for this phone number", {
        error_subcode: 1349174,
        error_user_title: 'Permission Denied',
        error_user_msg: "Your app doesn't have permission to access this resource",
      }),
    ),
  },
  {
    name: 'A1 no such number',
    ...createLink(404, buildError(803, 'Phone number not found', { type: 'GraphMethodException' })),
  },
  {
    name: 'A1 throttled',
    ...createLink(
      429,
      buildError(4, 'Too many QR code operations. Please try again later', {
        error_subcode: 2446079,
        is_transient: true,
      }),
    ),
  },
  {
    name: 'A1 fault',
    ...createLink(
      500,
      buildError(2, 'An unexpected error occurred. Please retry your request', {
        type: 'GraphMethodException',
        is_transient: true,
      }),
    ),
  },
  {
    name: 'A1 update',
    request: {
      method: 'POST',
      path: `${phone}/message_qrdls`,
      body: {
        code: 'ANED2T5QRU7HG1',
        prefilled_message: "Hello! I'd like to know more about your latest offers.",
      },
    },
    response: {
      status: 200,
      body: {
        code: 'ANED2T5QRU7HG1',
        prefilled_message: "Hello! I'd like to know more about your latest offers.",
        deep_link_url: 'https://wa.me/message/ANED2T5QRU7HG1',
      },
    },
  },
  {
    name: 'A2 list',
    request: {
      method: 'GET',
      path: `${phone}/message_qrdls`,
      query: { fields: 'code,prefilled_message,deep_link_url,qr_image_url.format(SVG)' },
    },
    response: {
      status: 200,
      body: {
        data: [
          {
            code: '5QBPAD2DC6L5A1',
            prefilled_message: 'Show me Cyber Tuesday deals!',
            deep_link_url: 'https://wa.me/message/5QBPAD2DC6L5A1',
          },
        ],
      },
    },
  },
  {
    name: 'A2 empty',
    request: {
      method: 'GET',
      path: `${phone}/message_qrdls`,
      query: { fields: 'code,prefilled_message,deep_link_url,qr_image_url.format(SVG)' },
    },
    response: { status: 200, body: { data: [] } },
  },
]

export const seasonSale = {
  name: 'season_sale',
  language: 'en_US',
  category: 'MARKETING',
  components: [
    { type: 'HEADER', format: 'TEXT', text: 'Our {{1}} is on!', example: { header_text: ['Summer Sale'] } },
    {
      type: 'BODY',
      text: 'Shop now through {{1}} and use code {{2}} to get {{3}} off of all merchandise.',
      example: { body_text: [['the end of August', '25OFF', '25%']] },
    },
    { type: 'FOOTER', text: 'Use the buttons below to manage your marketing subscriptions' },
    {
      type: 'BUTTONS',
      buttons: [
        { type: 'QUICK_REPLY', text: 'Unsubscribe from Promos' },
        { type: 'QUICK_REPLY', text: 'Unsubscribe from All' },
      ],
    },
  ],
} as const

const templates: RecordedExchange[] = [
  {
    name: 'A3 create',
    request: { method: 'POST', path: `${account}/message_templates`, body: seasonSale },
    response: { status: 200, body: { id: '1689556908129832', status: 'PENDING', category: 'UTILITY' } },
  },
  {
    name: 'A3 exists',
    request: { method: 'POST', path: `${account}/message_templates`, body: seasonSale },
    response: {
      status: 400,
      body: buildError(100, 'Invalid parameter', {
        error_subcode: 2388024,
        is_transient: false,
        error_user_title: 'Content in This Language Already Exists',
        error_user_msg: '...',
      }),
    },
  },
  {
    name: 'A4 delete',
    request: {
      method: 'DELETE',
      path: `${account}/message_templates`,
      query: { name: 'season_sale', hsm_id: '1689556908129832' },
    },
    response: { status: 200, body: { success: true } },
  },
  {
    name: 'A5 archive',
    request: {
      method: 'POST',
      path: `${account}/message_templates/archive`,
      body: { hsm_ids: ['1689556908129832', '42'] },
      unversioned: true,
    },
    response: {
      status: 200,
      body: {
        archived_templates: ['1689556908129832'],
        failed_templates: { 42: 'Only approved or rejected templates can be archived' },
      },
    },
  },
]

const accounts: RecordedExchange[] = [
  {
    name: 'A6 phone numbers',
    request: { method: 'GET', path: `${account}/phone_numbers` },
    response: {
      status: 200,
      body: {
        data: [
          {
            id: '1906385232743451',
            display_phone_number: '+1 631-555-5555',
            verified_name: "Jasper's Market",
            status: 'LINKED',
            quality_rating: 'GREEN',
            country_code: 'US',
            country_dial_code: '1',
            code_verification_status: 'VERIFIED',
            unified_cert_status: 'APPROVED',
            account_mode: 'LIVE',
            host_platform: 'CLOUD_API',
            messaging_limit_tier: 'TIER_1K',
          },
        ],
      },
    },
  },
  {
    name: 'A7 subscribe',
    request: { method: 'POST', path: `${account}/subscribed_apps`, body: {} },
    response: { status: 200, body: { success: true } },
  },
  {
    name: 'A7 subscribe elsewhere',
    request: {
      method: 'POST',
      path: `${account}/subscribed_apps`,
      body: { override_callback_uri: 'https://crm.example.com/provider/webhook', verify_token: 'T' },
    },
    response: {
      status: 200,
      body: {
        success: true,
        data: [
          {
            override_callback_uri: 'https://crm.example.com/provider/webhook',
            whatsapp_business_api_data: { id: '1', name: 'App', link: 'https://example.com' },
          },
        ],
      },
    },
  },
  {
    name: 'A7 unreachable',
    request: {
      method: 'POST',
      path: `${account}/subscribed_apps`,
      body: { override_callback_uri: 'https://crm.example.com/provider/webhook', verify_token: 'T' },
    },
    response: { status: 422, body: buildError(100, 'Webhook callback URL is not reachable or invalid') },
  },
]

const messages: RecordedExchange[] = [
  {
    name: 'A8 send',
    request: {
      method: 'POST',
      path: `${phone}/messages`,
      body: {
        messaging_product: 'whatsapp',
        recipient_type: 'individual',
        to: '16315551234',
        type: 'text',
        text: { body: 'Hi' },
        biz_opaque_callback_data: 'msg_01J...',
      },
    },
    response: {
      status: 200,
      body: {
        messaging_product: 'whatsapp',
        contacts: [{ input: '16315551234', wa_id: '16315551234' }],
        messages: [{ id: 'wamid.HBgLMTYz...' }],
      },
    },
  },
  {
    name: '2.8 no such template',
    request: {
      method: 'POST',
      path: `${phone}/messages`,
      body: {
        messaging_product: 'whatsapp',
        recipient_type: 'individual',
        to: '16315551234',
        type: 'template',
        template: { name: 'x', language: { code: 'en_US' } },
        biz_opaque_callback_data: 'msg_01K...',
      },
    },
    response: {
      status: 404,
      body: buildError(132001, '(#132001) Template name does not exist in the translation', {
        error_data: { messaging_product: 'whatsapp', details: 'template name (x) does not exist in en_US' },
      }),
    },
  },
]

export const recordedExchanges: readonly RecordedExchange[] = [
  ...links,
  ...templates,
  ...accounts,
  ...messages,
]

/** Returns the exchange of this name. Throws when there is none. */
export const findExchange = (name: string): RecordedExchange => {
  const found = recordedExchanges.find((e) => e.name === name)
  if (!found) throw new Error(`No recorded exchange is called ${name}.`)
  return found
}
