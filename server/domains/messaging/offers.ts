import { type Interactive, maxTextWith, tapId } from '../../../catalog/interactive.ts'
import { invalidField } from '../../kernel/problem.ts'

/* What a reply offers to tap: buttons, a list, a link, a location request. */

/** Throws 400 for a text that the provider takes only without them. */
export const requireTextFits = (text: string, offer: Interactive): void => {
  const max = maxTextWith(offer)
  if (text.length > max)
    throw invalidField('text', 'too_long', `has more than ${max} characters, the most with ${offer.kind}`, {
      fix: 'Shorten it.',
    })
}

/** Returns what can be tapped in the provider's form. */
export const toProviderInteractive = (text: string, offer: Interactive): Record<string, unknown> => {
  const body = { text }
  if (offer.kind === 'location_request')
    return { type: 'location_request_message', body, action: { name: 'send_location' } }
  const around = {
    body,
    ...(offer.header === undefined ? {} : { header: { type: 'text', text: offer.header } }),
    ...(offer.footer === undefined ? {} : { footer: { text: offer.footer } }),
  }
  if (offer.kind === 'buttons') {
    const buttons = offer.buttons.map((button) => ({
      type: 'reply',
      reply: { id: tapId(button), title: button.title },
    }))
    return { type: 'button', ...around, action: { buttons } }
  }
  if (offer.kind === 'link') {
    const parameters = { display_text: offer.title, url: offer.url }
    return { type: 'cta_url', ...around, action: { name: 'cta_url', parameters } }
  }
  const sections = [...Map.groupBy(offer.rows, ({ section }) => section)].map(([title, rows]) => ({
    ...(title === undefined ? {} : { title }),
    rows: rows.map((row) => ({
      id: tapId(row),
      title: row.title,
      ...(row.description === undefined ? {} : { description: row.description }),
    })),
  }))
  return { type: 'list', ...around, action: { button: offer.button, sections } }
}
