import { insertText } from './compose.ts'
import { type Inbox, notify } from './data.ts'
import { askAfter } from './overlays.ts'

// Saved replies: found by their code, filled in for the customer.

/** The name is trimmed by whoever reads it: spaces that several parts may take make the time grow with their cube. */
const PLACEHOLDER = /\{\{([^{}]+)\}\}/g

type Contact = {
  readonly name: string | null
  readonly phone: string | null
  readonly attributes: readonly { readonly key: string; readonly display: string | null }[]
}

/** Returns the values of the placeholders of a customer, as a send by the id of the saved reply fills them in. */
const readValues = async (inbox: Inbox): Promise<ReadonlyMap<string, string | null>> => {
  const { me, thread } = inbox.state
  const values = new Map<string, string | null>([['staff.name', me.name]])
  const id = thread?.conversation.contact?.id
  if (id === undefined) return values
  const { value } = await inbox.api('crm_get_contact', { contact_id: id })
  const { name, phone, attributes } = value as unknown as Contact
  for (const { key, display } of attributes) values.set(`contact.${key}`, display)
  // A masked number would reach the customer as it is.
  return values.set('contact.name', name).set('contact.phone', me.hidesPhones ? null : phone)
}

/** Fills in what is known; what is missing stays a placeholder, and is named. */
const fill = (text: string, values: ReadonlyMap<string, string | null>) => {
  const missing = new Set<string>()
  const filled = text.replaceAll(PLACEHOLDER, (placeholder: string, name: string) => {
    const value = values.get(name.trim()) ?? ''
    if (value === '') missing.add(placeholder)
    return value || placeholder
  })
  return { filled, missing: [...missing].join(', ') }
}

/** Asks for a saved reply by its code or words, with the texts filled in, and inserts the one that is chosen. */
export const askSavedReply = (inbox: Inbox, text = ''): Promise<void> =>
  askAfter(inbox, { label: 'Saved reply', text, cancel: (typed) => insertText(inbox, typed) }, async () => {
    const [{ value }, values] = await Promise.all([
      inbox.api('messaging_list_quick_messages', { limit: 100 }),
      readValues(inbox),
    ])
    const found = (
      value['data'] as { code: string | null; title: string | null; text: string | null }[]
    ).filter(({ text }) => (text ?? '') !== '')
    if (found.length === 0) return 'There is no saved reply yet: wcrm quick-messages create --help'
    return found.map(({ code, title, text }) => {
      const { filled, missing } = fill(text!, values)
      return {
        label: `/${code ?? ''}  ${missing ? `(no ${missing}) ` : ''}${title ?? ''}  ${filled}`,
        run: () => {
          insertText(inbox, filled)
          if (missing) notify(inbox, `The customer has no value for ${missing}: write it yourself.`)
        },
      }
    })
  })
