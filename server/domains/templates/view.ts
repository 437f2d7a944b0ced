import type { z } from 'zod'
import type { Template } from '../../../catalog/templates/read.ts'
import type { TemplateDetails } from '../../../storage/templates/templates.ts'
import type { Actor } from '../../kernel/context.ts'
import { type JsonObject, asNumber, asObject, asObjects, asText } from '../inbound/json.ts'
import { findPart, hasNamedVariables } from './parts.ts'
import { templateBodyText } from '../messaging/template-components.ts'
import { fillVariables, listVariables } from './variables.ts'
import { showQuotingText } from '../../visibility/phones.ts'

type ShownTemplate = z.input<typeof Template>

/**
 * Returns a template as get and list show it. Its components may come from the provider, so any member may
 * be missing or of another type.
 */
export const showTemplate = (actor: Actor, row: TemplateDetails): ShownTemplate => {
  const parts = asObjects(row.components)
  const find = (type: string): JsonObject | undefined => findPart(parts, type)
  const { header, body, buttons } = showParts(parts, row.category)
  const offer = find('LIMITED_TIME_OFFER')
  const cards = asObjects(find('CAROUSEL')?.['cards']).map(({ components }) =>
    showParts(asObjects(components), null),
  )
  return {
    id: row.id,
    name: row.name,
    language: row.language,
    category: row.category,
    sub_category: row.sub_category,
    status: row.status,
    // The reason is kept while a template is archived, in case it is restored.
    rejection_reason: row.status === 'ARCHIVED' ? null : row.rejection_reason,
    quality_rating: row.quality_rating,
    body_preview: showPreview(body),
    variable_count: body?.variables.length ?? 0,
    header_format: header?.format ?? null,
    header,
    body,
    footer: footerText(find('FOOTER')),
    code_expiration_minutes: asInteger(find('FOOTER')?.['code_expiration_minutes']),
    buttons,
    carousel_cards: cards.length,
    cards,
    parameter_format: hasNamedVariables(parts) ? 'NAMED' : 'POSITIONAL',
    limited_time_offer: offer ? showOffer(asObject(offer['limited_time_offer'])) : null,
    meta_errors: showTexts(actor, row.meta_errors),
    created_at: row.created_at,
    updated_at: row.updated_at,
    version: String(row.version),
  }
}

/** Shows the parts of the message, or of a card. */
const showParts = (parts: readonly JsonObject[], category: string | null) => ({
  header: showHeader(findPart(parts, 'HEADER')),
  body: showBody(findPart(parts, 'BODY'), category),
  buttons: asObjects(findPart(parts, 'BUTTONS')?.['buttons']).map(showButton),
})

const asInteger = (value: unknown): number | null => {
  const number = asNumber(value)
  return Number.isSafeInteger(number) ? number : null
}

const showTexts = (actor: Actor, value: unknown): unknown =>
  JSON.parse(JSON.stringify(value ?? null), (_, member: unknown) =>
    typeof member === 'string' ? showQuotingText(actor, member) : member,
  )

const firstItem = (value: unknown): unknown => (Array.isArray(value) ? value[0] : value)

const showHeader = (header: JsonObject | undefined): ShownTemplate['header'] => {
  if (!header) return null
  const format = asText(header['format'])?.toUpperCase() ?? 'TEXT'
  const text = asText(header['text'])
  const example = asObject(header['example'])
  const handle = asText(firstItem(example['header_handle']))
  const samples = sampleLookup(example['header_text'], example['header_text_named_params'])
  const variables = ['IMAGE', 'VIDEO', 'DOCUMENT', 'GIF'].includes(format)
    ? [{ index: 1, sample: null, media_sample: handle }]
    : listVariables(text ?? '').map((name, i) => ({
        index: i + 1,
        sample: samples(name, i),
        media_sample: null,
      }))
  return { format, text, variables }
}

/** Returns a look-up of a text's samples, which are in the order of its variables or by name. */
const sampleLookup = (inOrder: unknown, byName: unknown) => {
  const named = new Map(
    asObjects(byName).map((param) => [asText(param['param_name']), asText(param['example'])]),
  )
  const list: unknown[] = Array.isArray(inOrder) ? inOrder : []
  return (name: string, i: number): string | null => named.get(name) ?? asText(list[i])
}

const showBody = (body: JsonObject | undefined, category: string | null): ShownTemplate['body'] => {
  if (!body) return null
  const text = asText(body['text'])
  const example = asObject(body['example'])
  const samples = sampleLookup(firstItem(example['body_text']), example['body_text_named_params'])
  // The provider writes the text of an authentication template, which has one variable.
  const names = listVariables(text ?? templateBodyText(category, undefined))
  const recommends = body['add_security_recommendation']
  return {
    text,
    variables: names.map((name, i) => ({ index: i + 1, sample: samples(name, i) })),
    ...(typeof recommends === 'boolean' ? { add_security_recommendation: recommends } : {}),
  }
}

const showPreview = (body: ShownTemplate['body']): string | null => {
  if (!body || body.text === null) return null
  const names = listVariables(body.text)
  return fillVariables(
    body.text,
    names,
    body.variables.map(({ sample }, i) => sample ?? `{{${names[i]!}}}`),
  )
}

/** The provider writes the footer of an authentication template, which says when the code expires. */
const footerText = (footer: JsonObject | undefined): string | null => asText(footer?.['text'])

const showOffer = (offer: JsonObject): ShownTemplate['limited_time_offer'] => ({
  text: asText(offer['text']),
  has_expiration: offer['has_expiration'] === true,
})

const showButton = (button: JsonObject, index: number): ShownTemplate['buttons'][number] => {
  const type = asText(button['type'])?.toUpperCase() ?? 'UNKNOWN'
  const url = asText(button['url'])
  const example = asText(firstItem(button['example']))
  return {
    index,
    type,
    text: asText(button['text']),
    url,
    dynamic_url: url !== null && /\{\{\s*\w+\s*\}\}$/.test(url),
    url_example: type === 'URL' ? example : null,
    phone_number: asText(button['phone_number']),
    coupon_code: type === 'COPY_CODE' ? (example ?? asText(button['coupon_code'])) : null,
    flow_id: asText(button['flow_id']),
    ...(type === 'FLOW' ? showFlow(button) : {}),
    ...(type === 'OTP' ? showOtp(button) : {}),
  }
}

const showFlow = (button: JsonObject) => {
  const screen = asText(button['navigate_screen'])
  return {
    flow_action: asText(button['flow_action'])?.toUpperCase() ?? 'NAVIGATE',
    ...(screen === null ? {} : { navigate_screen: screen }),
  }
}

const showOtp = (button: JsonObject) => {
  const terms = button['zero_tap_terms_accepted']
  // Older clients put one app into the button itself.
  const apps = asObjects(button['supported_apps'] ?? (button['package_name'] === undefined ? [] : [button]))
  return {
    otp_type: asText(button['otp_type'])?.toUpperCase() ?? 'COPY_CODE',
    ...(apps.length > 0
      ? {
          supported_apps: apps.map((app) => ({
            package_name: asText(app['package_name']) ?? '',
            signature_hash: asText(app['signature_hash']) ?? '',
          })),
        }
      : {}),
    ...(typeof terms === 'boolean' ? { zero_tap_terms_accepted: terms } : {}),
  }
}
