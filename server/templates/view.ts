import type { z } from 'zod'
import type { Template } from '../../catalog/templates/read.ts'
import type { TemplateDetails } from '../../storage/templates.ts'
import type { Actor } from '../core/context.ts'
import { type JsonObject, asObject, asObjects, asText } from '../inbound/json.ts'
import { templateBodyText } from '../messaging/template-components.ts'
import { fillVariables, listVariables } from './variables.ts'
import { showQuotingText } from '../visibility/phones.ts'

type ShownTemplate = z.input<typeof Template>

/**
 * Returns a template as get and list show it. Its components may come from the provider, so any member may
 * be missing or of another type.
 */
export const showTemplate = (actor: Actor, row: TemplateDetails): ShownTemplate => {
  const parts = asObjects(row.components)
  const find = (type: string): JsonObject | undefined =>
    parts.find((part) => asText(part['type'])?.toUpperCase() === type)
  const header = showHeader(find('HEADER'))
  const body = showBody(find('BODY'), row.category)
  const offer = find('LIMITED_TIME_OFFER')
  return {
    id: row.id,
    name: row.name,
    language: row.language,
    category: row.category,
    sub_category: row.sub_category,
    status: row.status,
    // The reason is kept while a template is archived, in case it is restored.
    rejection_reason: row.status === 'ARCHIVED' ? null : row.rejection_reason,
    body_preview: showPreview(body),
    variable_count: body?.variables.length ?? 0,
    header_format: header?.format ?? null,
    header,
    body,
    footer: footerText(find('FOOTER')),
    buttons: asObjects(find('BUTTONS')?.['buttons']).map(showButton),
    carousel_cards: asObjects(find('CAROUSEL')?.['cards']).length,
    limited_time_offer: offer ? showOffer(asObject(offer['limited_time_offer'])) : null,
    meta_errors: showTexts(actor, row.meta_errors),
    created_at: row.created_at,
    updated_at: row.updated_at,
  }
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
  return { text, variables: names.map((name, i) => ({ index: i + 1, sample: samples(name, i) })) }
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
  }
}
