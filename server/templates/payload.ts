import type { TemplateDraft } from '../../catalog/templates.ts'
import { parseVariables } from './variables.ts'

/** A component of a template in the provider's own shape (reference 2.3). */
export type Component = { type: string } & Record<string, unknown>

type Draft = TemplateDraft
type Button = NonNullable<Draft['buttons']>[number]
type Card = NonNullable<Draft['carousel']>['cards'][number]
type Body = { text?: string | undefined; examples?: string[] | undefined }

/**
 * The components that the provider is given. Fields that lint calls unused stay out; what it calls an error
 * goes along, so that a draft that slipped through is refused by the provider rather than made into another
 * one.
 */
export const payloadOf = (draft: Draft): Component[] => {
  const isCode = draft.category === 'AUTHENTICATION'
  const { header, body, footer, buttons = [], limited_time_offer: offer, carousel } = draft
  return [
    ...(header ? [headerPart(header)] : []),
    ...(offer
      ? [
          {
            type: 'LIMITED_TIME_OFFER',
            limited_time_offer: { text: offer.text, has_expiration: offer.has_expiration ?? false },
          },
        ]
      : []),
    isCode ? codePart(body) : textPart(body, body.add_security_recommendation === true),
    ...(footer ? [footerPart(footer, isCode)] : []),
    ...buttonsPart(buttons),
    ...(carousel ? [{ type: 'CAROUSEL', cards: carousel.cards.map(cardPart) }] : []),
  ]
}

const given = (text: string | undefined): boolean => text !== undefined && text.trim() !== ''

const hasVariables = (text: string | undefined): boolean =>
  text !== undefined && parseVariables(text).names.length > 0

const headerPart = ({
  format,
  text,
  example,
  media_handle: handle,
}: NonNullable<Draft['header']>): Component => {
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

const textPart = ({ text, examples = [] }: Body, recommends = false): Component => ({
  type: 'BODY',
  ...(text === undefined ? {} : { text }),
  ...(examples.length > 0 ? { example: { body_text: [examples] } } : {}),
  ...(recommends ? { add_security_recommendation: true } : {}),
})

/** The provider writes the text of a code itself. */
const codePart = ({
  text,
  examples = [],
  add_security_recommendation: recommends,
}: Draft['body']): Component => ({
  type: 'BODY',
  ...(given(text) ? { text } : {}),
  ...(examples.length > 0 ? { example: { body_text: [examples] } } : {}),
  add_security_recommendation: recommends ?? false,
})

const footerPart = (
  { text, code_expiration_minutes: minutes }: NonNullable<Draft['footer']>,
  isCode: boolean,
): Component => ({
  type: 'FOOTER',
  ...(text !== undefined && !(isCode && !given(text)) ? { text } : {}),
  ...(minutes === undefined ? {} : { code_expiration_minutes: minutes }),
})

const buttonsPart = (buttons: readonly Button[]): Component[] =>
  buttons.length === 0 ? [] : [{ type: 'BUTTONS', buttons: buttons.map(buttonPart) }]

const buttonPart = (button: Button): Component => {
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
      return { type, ...label, ...(flow === undefined ? {} : { flow_id: flow }), ...flowPart(button) }
    case 'OTP':
      return otpPart(button)
  }
}

const flowPart = ({ flow_action: action = 'NAVIGATE', navigate_screen: screen }: Button) => ({
  flow_action: action.toLowerCase(),
  ...(action === 'NAVIGATE' && screen !== undefined ? { navigate_screen: screen } : {}),
})

const otpPart = ({
  type,
  otp_type: kind = 'COPY_CODE',
  text,
  supported_apps: apps = [],
}: Button): Component => ({
  type,
  otp_type: kind,
  ...(given(text) ? { text } : {}),
  ...(kind !== 'COPY_CODE' && apps.length > 0 ? { supported_apps: apps } : {}),
})

const cardPart = ({ header_format: format, media_handle: handle, body, buttons }: Card) => ({
  components: [
    { type: 'HEADER', format, example: { header_handle: [handle] } },
    ...(body && given(body.text) ? [textPart(body)] : []),
    ...buttonsPart(buttons),
  ],
})
