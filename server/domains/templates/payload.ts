import type { TemplateDraft } from '../../../catalog/templates/schemas.ts'
import { parseVariables } from './variables.ts'

/** A component of a template in the provider's shape. */
export type PayloadComponent = { type: string } & Record<string, unknown>

type DraftInput = TemplateDraft
type Button = NonNullable<DraftInput['buttons']>[number]
type Card = NonNullable<DraftInput['carousel']>['cards'][number]
type Body = { text?: string | undefined; examples?: string[] | undefined }

/**
 * Builds the components that the provider gets. Fields that lint reports as unused are left out; errors are
 * sent along, so that the provider refuses an invalid draft rather than creating a different template.
 */
export const buildPayload = (draft: DraftInput): PayloadComponent[] => {
  const isCode = draft.category === 'AUTHENTICATION'
  const { header, body, footer, buttons = [], limited_time_offer: offer, carousel } = draft
  return [
    ...(header ? [buildHeader(header)] : []),
    ...(offer
      ? [
          {
            type: 'LIMITED_TIME_OFFER',
            limited_time_offer: { text: offer.text, has_expiration: offer.has_expiration ?? false },
          },
        ]
      : []),
    isCode ? buildCodeBody(body) : buildBody(body, body.add_security_recommendation === true),
    ...(footer ? [buildFooter(footer, isCode)] : []),
    ...buildButtons(buttons),
    ...(carousel ? [{ type: 'CAROUSEL', cards: carousel.cards.map(buildCard) }] : []),
  ]
}

const isGiven = (text: string | undefined): boolean => text !== undefined && text.trim() !== ''

const hasVariables = (text: string | undefined): boolean =>
  text !== undefined && parseVariables(text).names.length > 0

const buildHeader = ({
  format,
  text,
  example,
  media_handle: handle,
}: NonNullable<DraftInput['header']>): PayloadComponent => {
  if (format === 'LOCATION') return { type: 'HEADER', format }
  if (format !== 'TEXT')
    return {
      type: 'HEADER',
      format,
      ...(handle === undefined ? {} : { example: { header_handle: [handle] } }),
    }
  return {
    type: 'HEADER',
    format,
    ...(text === undefined ? {} : { text }),
    ...(hasVariables(text) && example !== undefined ? { example: { header_text: [example] } } : {}),
  }
}

const buildBody = ({ text, examples = [] }: Body, recommends = false): PayloadComponent => ({
  type: 'BODY',
  ...(text === undefined ? {} : { text }),
  ...(examples.length > 0 ? { example: { body_text: [examples] } } : {}),
  ...(recommends ? { add_security_recommendation: true } : {}),
})

/** The provider writes the text of an authentication template itself. */
const buildCodeBody = ({
  text,
  examples = [],
  add_security_recommendation: recommends,
}: DraftInput['body']): PayloadComponent => ({
  type: 'BODY',
  ...(isGiven(text) ? { text } : {}),
  ...(examples.length > 0 ? { example: { body_text: [examples] } } : {}),
  add_security_recommendation: recommends ?? false,
})

const buildFooter = (
  { text, code_expiration_minutes: minutes }: NonNullable<DraftInput['footer']>,
  isCode: boolean,
): PayloadComponent => ({
  type: 'FOOTER',
  ...(text !== undefined && !(isCode && !isGiven(text)) ? { text } : {}),
  ...(minutes === undefined ? {} : { code_expiration_minutes: minutes }),
})

const buildButtons = (buttons: readonly Button[]): PayloadComponent[] =>
  buttons.length === 0 ? [] : [{ type: 'BUTTONS', buttons: buttons.map(buildButton) }]

const buildButton = (button: Button): PayloadComponent => {
  const {
    type,
    text,
    url,
    url_example: example,
    phone_number: phone,
    coupon_code: coupon,
    flow_id: flow,
  } = button
  const label = text === undefined ? {} : { text }
  switch (type) {
    case 'QUICK_REPLY':
    case 'VOICE_CALL':
      return { type, ...label }
    case 'URL':
      return {
        type,
        ...label,
        ...(url === undefined ? {} : { url }),
        ...(url?.includes('{{') && example !== undefined ? { example: [example] } : {}),
      }
    case 'PHONE_NUMBER':
      return { type, ...label, ...(phone === undefined ? {} : { phone_number: phone }) }
    case 'COPY_CODE':
      return { type, ...(coupon === undefined ? {} : { example: coupon }) }
    case 'FLOW':
      return { type, ...label, ...(flow === undefined ? {} : { flow_id: flow }), ...flowFields(button) }
    case 'OTP':
      return buildOtpButton(button)
  }
}

const flowFields = ({ flow_action: action = 'NAVIGATE', navigate_screen: screen }: Button) => ({
  flow_action: action.toLowerCase(),
  ...(action === 'NAVIGATE' && screen !== undefined ? { navigate_screen: screen } : {}),
})

const buildOtpButton = ({
  type,
  otp_type: kind = 'COPY_CODE',
  text,
  supported_apps: apps = [],
  zero_tap_terms_accepted: termsAccepted,
}: Button): PayloadComponent => ({
  type,
  otp_type: kind,
  ...(isGiven(text) ? { text } : {}),
  ...(kind !== 'COPY_CODE' && apps.length > 0 ? { supported_apps: apps } : {}),
  ...(kind === 'ZERO_TAP' && termsAccepted !== undefined ? { zero_tap_terms_accepted: termsAccepted } : {}),
})

const buildCard = ({ header_format: format, media_handle: handle, body, buttons }: Card) => ({
  components: [
    { type: 'HEADER', format, example: { header_handle: [handle] } },
    ...(body && isGiven(body.text) ? [buildBody(body)] : []),
    ...buildButtons(buttons),
  ],
})
