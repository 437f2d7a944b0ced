import type { z } from 'zod'
import type { Template } from '../../catalog/templates.ts'
import type { StoredTemplate } from '../../storage/templates.ts'
import { maskDigits } from '../contacts/view.ts'
import { type Actor, phonesHidden } from '../core/context.ts'
import { type Json, objectOf, objectsOf, textOf } from '../inbound/json.ts'
import { bodyText } from '../messaging/template-components.ts'
import { fillText, variablesOf } from './variables.ts'

type Shown = z.input<typeof Template>

/**
 * A template as get and list show it. Its components may come from the provider's own hand, so everything
 * may be missing or of another kind.
 */
export const showTemplate = (actor: Actor, row: StoredTemplate): Shown => {
  const parts = objectsOf(row.components)
  const find = (type: string): Json | undefined =>
    parts.find((part) => textOf(part['type'])?.toUpperCase() === type)
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
    // While it is archived the reason is kept for its return.
    rejection_reason: row.status === 'ARCHIVED' ? null : row.rejection_reason,
    body_preview: previewOf(body),
    variable_count: body?.variables.length ?? 0,
    header_format: header?.format ?? null,
    header,
    body,
    footer: footerText(find('FOOTER')),
    buttons: objectsOf(find('BUTTONS')?.['buttons']).map(showButton),
    carousel_cards: objectsOf(find('CAROUSEL')?.['cards']).length,
    limited_time_offer: offer ? showOffer(objectOf(offer['limited_time_offer'])) : null,
    meta_errors: phonesHidden(actor) ? masked(row.meta_errors) : (row.meta_errors ?? null),
    created_at: row.created_at,
    updated_at: row.updated_at,
  }
}

const masked = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value ?? null), (_, member: unknown) =>
    typeof member === 'string' ? maskDigits(member) : member,
  )

const first = (value: unknown): unknown => (Array.isArray(value) ? value[0] : value)

const showHeader = (header: Json | undefined): Shown['header'] => {
  if (!header) return null
  const format = textOf(header['format'])?.toUpperCase() ?? 'TEXT'
  const text = textOf(header['text'])
  const example = objectOf(header['example'])
  const handle = textOf(first(example['header_handle']))
  const samples = samplesOf(example['header_text'], example['header_text_named_params'])
  const variables = ['IMAGE', 'VIDEO', 'DOCUMENT', 'GIF'].includes(format)
    ? [{ index: 1, sample: null, media_sample: handle }]
    : variablesOf(text ?? '').map((name, i) => ({
        index: i + 1,
        sample: samples(name, i),
        media_sample: null,
      }))
  return { format, text, variables }
}

/** The samples of a text: in the order of its variables, or by their names. */
const samplesOf = (inOrder: unknown, byName: unknown) => {
  const named = new Map(
    objectsOf(byName).map((param) => [textOf(param['param_name']), textOf(param['example'])]),
  )
  const list: unknown[] = Array.isArray(inOrder) ? inOrder : []
  return (name: string, i: number): string | null => named.get(name) ?? textOf(list[i])
}

const showBody = (body: Json | undefined, category: string | null): Shown['body'] => {
  if (!body) return null
  const text = textOf(body['text'])
  const example = objectOf(body['example'])
  const samples = samplesOf(first(example['body_text']), example['body_text_named_params'])
  // The provider writes the text of a code, which has one variable.
  const names = variablesOf(text ?? bodyText(category, undefined))
  return { text, variables: names.map((name, i) => ({ index: i + 1, sample: samples(name, i) })) }
}

const previewOf = (body: Shown['body']): string | null => {
  if (!body || body.text === null) return null
  const names = variablesOf(body.text)
  return fillText(
    body.text,
    names,
    body.variables.map(({ sample }, i) => sample ?? `{{${names[i]!}}}`),
  )
}

/** The provider writes the footer of a code, which says when it expires. */
const footerText = (footer: Json | undefined): string | null => textOf(footer?.['text'])

const showOffer = (offer: Json): Shown['limited_time_offer'] => ({
  text: textOf(offer['text']),
  has_expiration: offer['has_expiration'] === true,
})

const showButton = (button: Json, index: number): Shown['buttons'][number] => {
  const type = textOf(button['type'])?.toUpperCase() ?? 'UNKNOWN'
  const url = textOf(button['url'])
  const example = textOf(first(button['example']))
  return {
    index,
    type,
    text: textOf(button['text']),
    url,
    dynamic_url: url !== null && /\{\{\s*\w+\s*\}\}$/.test(url),
    url_example: type === 'URL' ? example : null,
    phone_number: textOf(button['phone_number']),
    coupon_code: type === 'COPY_CODE' ? (example ?? textOf(button['coupon_code'])) : null,
    flow_id: textOf(button['flow_id']),
  }
}
