import { randomUUID } from 'node:crypto'
import { isObject } from '../../catalog/values.ts'
import { describeFailure } from './api.ts'
import { startSend } from './compose.ts'
import { type Inbox, notify } from './data.ts'
import { askAfter, type Pressed } from './overlays.ts'
import {
  describeContact,
  explainNoReply,
  type FormField,
  takesTemplates,
  type TemplateForm,
} from './state.ts'

// Approved templates: which one, the values of its variables, a preview, and its send.

type Schema = {
  readonly const?: unknown
  readonly items?: Schema | false
  readonly prefixItems?: readonly Schema[]
  readonly properties?: Readonly<Record<string, Schema>>
}
type Path = readonly (string | number)[]

const toLabel = (path: Path): string => {
  const [part, name] = path
  if (part === 'body') return `{{${typeof name === 'number' ? name + 1 : name}}}`
  return path.map((step) => (typeof step === 'number' ? step + 1 : step.replaceAll('_', ' '))).join(' ')
}

/** Returns the values of a send that are not fixed by its schema. */
const listFields = (schema: Schema, example: unknown, path: Path = []): FormField[] => {
  if (schema.const !== undefined) return []
  if (typeof example === 'string') return [{ path, label: toLabel(path), sample: example, text: '' }]
  if (Array.isArray(example))
    return example.flatMap((item, i) =>
      listFields(schema.prefixItems?.[i] ?? (schema.items || {}), item, [...path, i]),
    )
  return isObject(example)
    ? Object.entries(example).flatMap(([name, item]) =>
        listFields(schema.properties?.[name] ?? {}, item, [...path, name]),
      )
    : []
}

/** Returns the example with the values of the form in it. */
const fillExample = ({ example, fields }: TemplateForm): Record<string, unknown> => {
  const filled = structuredClone(example) as Record<string, unknown>
  for (const { path, text } of fields) {
    let place = filled as Record<string | number, unknown>
    for (const step of path.slice(0, -1)) place = place[step] as Record<string | number, unknown>
    place[path.at(-1)!] = text
  }
  return filled
}

/** The body as far as it is filled in. */
export const previewBody = ({ body, fields }: TemplateForm): string =>
  body.replaceAll(
    /\{\{\s*([^{}]+?)\s*\}\}/g,
    (placeholder: string, name: string) =>
      fields.find(({ label, text }) => label === `{{${name}}}` && text !== '')?.text ?? placeholder,
  )

const openForm = (inbox: Inbox, label: string, id: string): Promise<void> =>
  askAfter(inbox, { label }, async () => {
    const { value } = await inbox.api('messaging_get_template', { template_id: id })
    const { name, body, send_schema: schema, send_example: example } = value
    if (!isObject(schema) || !isObject(example)) return 'This template cannot be sent from here.'
    const fields = listFields(schema, example)
    const text = isObject(body) && typeof body['text'] === 'string' ? body['text'] : ''
    return { kind: 'form', name: String(name), body: text, example, fields, at: 0 }
  })

/** Control-T: asks for an approved template. The text in the composer is kept. */
export const askTemplate = (inbox: Inbox): void => {
  const { thread, scopes } = inbox.state
  if (!thread) return notify(inbox, 'Open a conversation first.')
  const { conversation } = thread
  if (!takesTemplates(conversation))
    return notify(
      inbox,
      conversation.channel?.type === 'chatapp'
        ? explainNoReply(conversation)!
        : 'This channel does not support templates.',
    )
  if (!scopes.includes('messaging:write')) return notify(inbox, 'The key lacks the scope messaging:write.')
  const label = `Template for ${describeContact(thread.conversation)}`
  void askAfter(inbox, { label }, async () => {
    const { value } = await inbox.api('messaging_list_templates', { status: 'APPROVED', limit: 100 })
    const found = value['data'] as { id: string; name: string; language: string; body_preview: string }[]
    if (found.length === 0) return 'There is no approved template: wcrm templates create --help'
    return found.map(({ id, name, language, body_preview: text }) => ({
      label: `${name}  ${language}  ${text ?? ''}`,
      run: () => void openForm(inbox, label, id),
    }))
  })
}

const toInput = (inbox: Inbox, form: TemplateForm): Record<string, unknown> => {
  const { contact, channel } = inbox.state.thread!.conversation
  return { contact_id: contact!.id, channel_id: channel!.id, template: fillExample(form) }
}

const update = (inbox: Inbox, form: TemplateForm, change: Partial<TemplateForm>): void => {
  inbox.state.overlay = { ...form, rehearsed: undefined, problem: undefined, ...change }
  inbox.changed()
}

/** Rehearses the send, which checks all values and shows what the customer will read. */
const rehearse = async (inbox: Inbox, form: TemplateForm): Promise<void> => {
  try {
    const { value } = await inbox.api('messaging_send_template', { ...toInput(inbox, form), dry_run: true })
    if (inbox.state.overlay === form)
      update(inbox, form, { rehearsed: { preview: String(value['preview']) } })
  } catch (error) {
    if (inbox.state.overlay === form) update(inbox, form, { problem: describeFailure(error) })
  }
}

const submit = (inbox: Inbox, form: TemplateForm): void => {
  const { state } = inbox
  const empty = form.fields.findIndex(({ text }) => text.trim() === '')
  if (empty !== -1)
    return update(inbox, form, { at: empty, problem: `${form.fields[empty]!.label} has no value yet.` })
  if (!form.rehearsed) return void rehearse(inbox, form)
  const { thread } = state
  if (!thread?.conversation.contact) return
  const { preview } = form.rehearsed
  state.overlay = undefined
  const input = toInput(inbox, form)
  startSend(inbox, thread.id, {
    key: randomUUID(),
    kind: 'template',
    text: preview,
    input,
    status: 'sending',
  })
}

const setText = (inbox: Inbox, form: TemplateForm, text: string): void =>
  update(inbox, form, { fields: form.fields.map((field, i) => (i === form.at ? { ...field, text } : field)) })

/** Adds pasted or typed text to the value under the cursor. */
export const insertInForm = (inbox: Inbox, form: TemplateForm, text: string): void => {
  const field = form.fields[form.at]
  if (field) setText(inbox, form, field.text + text.replaceAll(/\s+/g, ' ').replaceAll(/\p{Cc}/gu, ''))
}

/** Acts on a key in the form. */
export const pressInForm = (inbox: Inbox, form: TemplateForm, { input, key }: Pressed): void => {
  const { fields, at, rehearsed } = form
  const text = fields[at]?.text ?? ''
  if (key.escape) {
    if (rehearsed) return update(inbox, form, {})
    inbox.state.overlay = undefined
    inbox.changed()
  } else if (key.ctrl && input === 's') submit(inbox, form)
  else if (key.return && (rehearsed || at >= fields.length - 1)) submit(inbox, form)
  else if (key.return || key.downArrow || (key.tab && !key.shift))
    update(inbox, form, { at: Math.min(fields.length - 1, at + 1) })
  else if (key.upArrow || key.tab) update(inbox, form, { at: Math.max(0, at - 1) })
  else if (key.backspace || key.delete) setText(inbox, form, [...text].slice(0, -1).join(''))
  else if (key.ctrl && input === 'u') setText(inbox, form, '')
  else if (!key.ctrl && !key.meta) insertInForm(inbox, form, input)
}
