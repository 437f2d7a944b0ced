import { TemplateDraft } from '../../../catalog/templates/schemas.ts'
import type { TemplateDetails } from '../../../storage/templates/templates.ts'
import { type JsonObject, asNumber, asObject, asObjects, asText, omitAbsent } from '../inbound/json.ts'
import { findPart, hasNamedVariables } from './parts.ts'
import { buildPayload } from './payload.ts'
import { isSameTemplate } from './same-template.ts'

type Described = Pick<TemplateDetails, 'name' | 'language' | 'category' | 'components'>

/**
 * Returns a template as the draft that would make it. Undefined when a draft cannot express it: a template that
 * was made elsewhere may have named variables, or components that drafts do not have.
 */
export const toDraft = ({ name, language, category, components }: Described): TemplateDraft | undefined => {
  const parts = asObjects(components)
  if (hasNamedVariables(parts)) return undefined
  const isCode = category === 'AUTHENTICATION'
  const find = (type: string): JsonObject | undefined => findPart(parts, type)
  const [header, offer, carousel] = [find('HEADER'), find('LIMITED_TIME_OFFER'), find('CAROUSEL')]
  const { data } = TemplateDraft.safeParse({
    name,
    language,
    category,
    ...(header ? { header: toHeader(header) } : {}),
    body: toBody(find('BODY') ?? {}, isCode),
    ...toFooter(find('FOOTER'), isCode),
    ...toButtons(find('BUTTONS'), isCode),
    ...(offer ? { limited_time_offer: toOffer(asObject(offer['limited_time_offer'])) } : {}),
    ...(carousel ? { carousel: { cards: asObjects(carousel['cards']).map(toCard) } } : {}),
  })
  return data && isSameTemplate(buildPayload(data), components, category) ? data : undefined
}

const isGiven = (value: unknown): boolean => value !== null && value !== undefined
const firstOf = (value: unknown): unknown => (Array.isArray(value) ? value[0] : value)
const textsOf = (value: unknown): string[] =>
  (Array.isArray(value) ? value : []).map((item) => asText(item) ?? '')

const toHeader = (header: JsonObject) => {
  const example = asObject(header['example'])
  return omitAbsent({
    format: asText(header['format'])?.toUpperCase() ?? 'TEXT',
    text: asText(header['text']),
    example: asText(firstOf(example['header_text'])),
    media_handle: asText(firstOf(example['header_handle'])),
  })
}

/** `isCode`: what the provider returns as the text is its own. */
const toBody = (body: JsonObject, isCode: boolean): JsonObject => {
  const examples = textsOf(firstOf(asObject(body['example'])['body_text']))
  return (
    omitAbsent({
      text: isCode ? null : asText(body['text']),
      examples: isCode || examples.length === 0 ? null : examples,
      add_security_recommendation: body['add_security_recommendation'],
    }) ?? {}
  )
}

const toFooter = (footer: JsonObject | undefined, isCode: boolean): JsonObject => {
  const members =
    footer &&
    omitAbsent({
      text: isCode ? null : asText(footer['text']),
      code_expiration_minutes: asNumber(footer['code_expiration_minutes']),
    })
  return members ? { footer: members } : {}
}

const toButtons = (part: JsonObject | undefined, isCode = false): JsonObject =>
  part ? { buttons: asObjects(part['buttons']).map((button) => toButton(button, isCode)) } : {}

const toButton = (button: JsonObject, isCode: boolean): JsonObject | undefined => {
  const type = asText(button['type'])?.toUpperCase()
  const url = asText(button['url'])
  if (type === 'OTP' || (type === 'URL' && isCode)) return toOtpButton(button, url)
  const action = asText(button['flow_action'])?.toUpperCase()
  const example = asText(firstOf(button['example']))
  return omitAbsent({
    type,
    text: type === 'COPY_CODE' ? null : asText(button['text']),
    url,
    url_example: type === 'URL' ? example : null,
    phone_number: asText(button['phone_number']),
    coupon_code: type === 'COPY_CODE' ? (example ?? asText(button['coupon_code'])) : null,
    flow_id: asText(button['flow_id']),
    flow_action: action,
    navigate_screen: asText(button['navigate_screen']),
  })
}

/** The provider returns the button of a code as a URL button whose address names the type. */
const toOtpButton = (button: JsonObject, url: string | null): JsonObject | undefined => {
  const apps = asObjects(button['supported_apps'] ?? (isGiven(button['package_name']) ? [button] : []))
  return omitAbsent({
    type: 'OTP',
    otp_type:
      asText(button['otp_type'])?.toUpperCase() ?? /[?&]otp_type=(\w+)/.exec(url ?? '')?.[1] ?? 'COPY_CODE',
    text: asText(button['text']),
    supported_apps:
      apps.length === 0
        ? null
        : apps.map((app) => ({
            package_name: asText(app['package_name']),
            signature_hash: asText(app['signature_hash']),
          })),
    zero_tap_terms_accepted: button['zero_tap_terms_accepted'],
  })
}

const toOffer = (offer: JsonObject) =>
  omitAbsent({ text: asText(offer['text']), has_expiration: offer['has_expiration'] })

const toCard = ({ components }: JsonObject) => {
  const parts = asObjects(components)
  const header = findPart(parts, 'HEADER') ?? {}
  const body = findPart(parts, 'BODY')
  return {
    header_format: asText(header['format'])?.toUpperCase(),
    media_handle: asText(firstOf(asObject(header['example'])['header_handle'])) ?? '',
    ...(body ? { body: toBody(body, false) } : {}),
    ...toButtons(findPart(parts, 'BUTTONS')),
  }
}
