import { type Call, isObject, isText, textWithin } from './call.ts'
import { badValue, missing } from './errors.ts'
import { checkMedia } from './part-checks.ts'

const list = (value: unknown, name: string, least: number, most: number): Record<string, unknown>[] => {
  if (!Array.isArray(value) || value.length < least || value.length > most || !value.every(isObject))
    throw badValue(`Param ${name} must be a list of ${least} to ${most} objects.`)
  return value
}

const distinct = (values: readonly unknown[], what: string): void => {
  if (new Set(values).size < values.length) throw badValue(`Duplicated ${what} in interactive message.`)
}

const checkButtons = (action: Record<string, unknown>): void => {
  const replies = list(action.buttons, "interactive['action']['buttons']", 1, 3).map(({ type, reply }, n) => {
    if (type !== 'reply' || !isObject(reply))
      throw badValue(`Param interactive['action']['buttons'][${n}] must be of type reply.`)
    textWithin(reply.title, `interactive['action']['buttons'][${n}]['reply']['title']`, 20)
    textWithin(reply.id, `interactive['action']['buttons'][${n}]['reply']['id']`, 256)
    return reply
  })
  distinct(
    replies.map((r) => r.id),
    'button id',
  )
  distinct(
    replies.map((r) => r.title),
    'button title',
  )
}

const checkList = (action: Record<string, unknown>): void => {
  textWithin(action.button, "interactive['action']['button']", 20)
  const sections = list(action.sections, "interactive['action']['sections']", 1, 10)
  const rows = sections.flatMap((section, n) => {
    if (sections.length > 1) textWithin(section.title, `interactive['action']['sections'][${n}]['title']`, 24)
    return list(section.rows, `interactive['action']['sections'][${n}]['rows']`, 1, 10)
  })
  if (rows.length > 10) throw badValue('Total row count exceed max allowed count: 10')
  for (const row of rows) {
    textWithin(row.id, 'interactive row id', 200)
    textWithin(row.title, 'interactive row title', 24)
    if (row.description !== undefined) textWithin(row.description, 'interactive row description', 72, 0)
  }
  distinct(
    rows.map((r) => r.id),
    'row id',
  )
}

const parametersOf = (action: Record<string, unknown>, name: string): Record<string, unknown> => {
  if (action.name !== name) throw badValue(`Param interactive['action']['name'] must be ${name}.`)
  if (!isObject(action.parameters)) throw missing("Param interactive['action']['parameters'] is required.")
  return action.parameters
}

const checkUrl = (action: Record<string, unknown>): void => {
  const parameters = parametersOf(action, 'cta_url')
  textWithin(parameters.display_text, 'display_text', 20)
  if (!isText(parameters.url) || !URL.canParse(parameters.url))
    throw badValue('Param url is not a valid URI.')
}

const checkFlow = (action: Record<string, unknown>): void => {
  const parameters = parametersOf(action, 'flow')
  if (!isText(parameters.flow_id) && !isText(parameters.flow_name))
    throw missing('Param flow_id or flow_name is required.')
}

const checkProducts = (action: Record<string, unknown>): void => {
  if (!isText(action.catalog_id)) throw missing("Param interactive['action']['catalog_id'] is required.")
}

const actions: Readonly<Record<string, (action: Record<string, unknown>) => void>> = {
  button: checkButtons,
  list: checkList,
  cta_url: checkUrl,
  flow: checkFlow,
  product: checkProducts,
  product_list: checkProducts,
  catalog_message: () => {},
  location_request_message: () => {},
}

/** Types whose text may be absent. */
const TEXTLESS = ['product']

/** Refuses an interactive message that is not what its type needs. */
export const checkInteractive = async (call: Call, part: Record<string, unknown>): Promise<void> => {
  const type = String(part.type)
  if (!Object.hasOwn(actions, type))
    throw badValue(`Param interactive['type'] must be one of {${Object.keys(actions).join(', ')}}.`)
  if (!isObject(part.action)) throw missing("Param interactive['action'] is required.")
  if (part.body !== undefined || !TEXTLESS.includes(type)) {
    if (!isObject(part.body)) throw missing("Param interactive['body'] is required.")
    textWithin(part.body.text, "interactive['body']['text']", type === 'list' ? 4096 : 1024)
  }
  if (part.footer !== undefined)
    textWithin(isObject(part.footer) ? part.footer.text : undefined, "interactive['footer']['text']", 60)
  if (part.header !== undefined) await checkHeader(call, part.header)
  actions[type]!(part.action)
}

const checkHeader = async (call: Call, header: unknown): Promise<void> => {
  if (!isObject(header) || !isText(header.type))
    throw missing("Param interactive['header']['type'] is required.")
  if (header.type === 'text') return void textWithin(header.text, "interactive['header']['text']", 60)
  const file = ['image', 'video', 'document'].includes(header.type) ? header[header.type] : undefined
  if (!isObject(file))
    throw badValue("Param interactive['header'] must hold a text, image, video or document.")
  await checkMedia(call, header.type, file)
}
