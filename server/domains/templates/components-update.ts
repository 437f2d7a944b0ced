import { type JsonObject, asObject, asObjects, asText } from '../inbound/json.ts'
import { findPart } from './parts.ts'
import { listVariables } from './variables.ts'

/**
 * Returns a template's components with the texts of `message_template_components_update`: what was edited at the
 * provider. That update has texts alone, so that samples, media, offers, cards, and the buttons it does not list
 * are kept, and so is a header or footer that it leaves out. Undefined when it changes nothing here.
 */
export const mergeComponentsUpdate = (
  components: unknown,
  update: JsonObject,
): readonly JsonObject[] | undefined => {
  const parts = asObjects(components)
  const body = asText(update['message_template_element'])
  const title = asText(update['message_template_title'])
  const footer = asText(update['message_template_footer'])
  if (body === null || parts.length === 0) return undefined
  const merged = parts.map((part): JsonObject => {
    switch (asText(part['type'])?.toUpperCase()) {
      case 'BODY':
        return withBodyText(part, body)
      case 'HEADER':
        return withHeaderText(part, title)
      case 'FOOTER':
        return footer === null ? part : { ...part, text: footer }
      case 'BUTTONS':
        return withButtons(part, asObjects(update['message_template_buttons']))
      default:
        return part
    }
  })
  if (footer !== null && !findPart(merged, 'FOOTER')) merged.push({ type: 'FOOTER', text: footer })
  if (title !== null && !findPart(merged, 'HEADER'))
    merged.unshift({ type: 'HEADER', format: 'TEXT', text: title })
  return JSON.stringify(merged) === JSON.stringify(parts) ? undefined : merged
}

/** Samples beyond the variables of the new text are dropped; the update has none for new variables. */
const withBodyText = (part: JsonObject, text: string): JsonObject => {
  const { example, ...rest } = part
  const rows = asObject(example)['body_text']
  const [samples]: unknown[] = Array.isArray(rows) ? rows : []
  if (!Array.isArray(samples)) return { ...part, text }
  const kept = samples.slice(0, listVariables(text).length)
  return {
    ...rest,
    text,
    ...(kept.length > 0 ? { example: { ...asObject(example), body_text: [kept] } } : {}),
  }
}

/** A header of media has no text. */
const withHeaderText = (part: JsonObject, title: string | null): JsonObject =>
  title === null || (asText(part['format'])?.toUpperCase() ?? 'TEXT') !== 'TEXT'
    ? part
    : { ...part, text: title }

const typeOf = (button: JsonObject, member: string): string => asText(button[member])?.toUpperCase() ?? ''

/** The update lists URL and PHONE_NUMBER buttons only; where it has another number of a type, none is matched. */
const withButtons = (part: JsonObject, updates: readonly JsonObject[]): JsonObject => {
  const remaining = new Map(
    ['URL', 'PHONE_NUMBER'].map((type) => [
      type,
      updates.filter((button) => typeOf(button, 'message_template_button_type') === type),
    ]),
  )
  const buttons = asObjects(part['buttons'])
  for (const [type, list] of remaining)
    if (buttons.filter((button) => typeOf(button, 'type') === type).length !== list.length)
      remaining.delete(type)
  return {
    ...part,
    buttons: buttons.map((button) => {
      const update = remaining.get(typeOf(button, 'type'))?.shift()
      return update ? withButtonUpdate(button, update) : button
    }),
  }
}

const withButtonUpdate = (button: JsonObject, update: JsonObject): JsonObject => {
  const text = asText(update['message_template_button_text'])
  const url = asText(update['message_template_button_url'])
  const phone = asText(update['message_template_button_phone_number'])
  return {
    ...button,
    ...(text === null ? {} : { text }),
    ...(url === null || button['url'] === undefined ? {} : { url }),
    ...(phone === null || button['phone_number'] === undefined ? {} : { phone_number: phone }),
  }
}
