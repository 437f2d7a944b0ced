import { isObject } from '../../../catalog/values.ts'
import { type SandboxCall, isNonEmptyText, requireText } from './call.ts'
import { badParameterValue, missingPart } from './errors.ts'
import { checkMedia } from './part-checks.ts'

const requireList = (value: unknown, name: string, min: number, max: number): Record<string, unknown>[] => {
  if (!Array.isArray(value) || value.length < min || value.length > max || !value.every(isObject))
    throw badParameterValue(`Param ${name} must be a list of ${min} to ${max} objects.`)
  return value
}

const requireDistinct = (values: readonly unknown[], what: string): void => {
  if (new Set(values).size < values.length)
    throw badParameterValue(`Duplicated ${what} in interactive message.`)
}

const checkButtons = (action: Record<string, unknown>): void => {
  const replies = requireList(action.buttons, "interactive['action']['buttons']", 1, 3).map(
    ({ type, reply }, n) => {
      if (type !== 'reply' || !isObject(reply))
        throw badParameterValue(`Param interactive['action']['buttons'][${n}] must be of type reply.`)
      requireText(reply.title, `interactive['action']['buttons'][${n}]['reply']['title']`, 20)
      requireText(reply.id, `interactive['action']['buttons'][${n}]['reply']['id']`, 256)
      return reply
    },
  )
  requireDistinct(
    replies.map((r) => r.id),
    'button id',
  )
  requireDistinct(
    replies.map((r) => r.title),
    'button title',
  )
}

const checkList = (action: Record<string, unknown>): void => {
  requireText(action.button, "interactive['action']['button']", 20)
  const sections = requireList(action.sections, "interactive['action']['sections']", 1, 10)
  const rows = sections.flatMap((section, n) => {
    if (sections.length > 1)
      requireText(section.title, `interactive['action']['sections'][${n}]['title']`, 24)
    return requireList(section.rows, `interactive['action']['sections'][${n}]['rows']`, 1, 10)
  })
  if (rows.length > 10) throw badParameterValue('Total row count exceed max allowed count: 10')
  for (const row of rows) {
    requireText(row.id, 'interactive row id', 200)
    requireText(row.title, 'interactive row title', 24)
    if (row.description !== undefined) requireText(row.description, 'interactive row description', 72, 0)
  }
  requireDistinct(
    rows.map((r) => r.id),
    'row id',
  )
}

const parametersOf = (action: Record<string, unknown>, name: string): Record<string, unknown> => {
  if (action.name !== name) throw badParameterValue(`Param interactive['action']['name'] must be ${name}.`)
  if (!isObject(action.parameters))
    throw missingPart("Param interactive['action']['parameters'] is required.")
  return action.parameters
}

const checkUrl = (action: Record<string, unknown>): void => {
  const parameters = parametersOf(action, 'cta_url')
  requireText(parameters.display_text, 'display_text', 20)
  if (!isNonEmptyText(parameters.url) || !URL.canParse(parameters.url))
    throw badParameterValue('Param url is not a valid URI.')
}

const checkFlow = (action: Record<string, unknown>): void => {
  const parameters = parametersOf(action, 'flow')
  if (!isNonEmptyText(parameters.flow_id) && !isNonEmptyText(parameters.flow_name))
    throw missingPart('Param flow_id or flow_name is required.')
}

const checkProducts = (action: Record<string, unknown>): void => {
  if (!isNonEmptyText(action.catalog_id))
    throw missingPart("Param interactive['action']['catalog_id'] is required.")
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

/** Types whose text is optional. */
const OPTIONAL_TEXT_TYPES = ['product']

/** Throws when an interactive message is not what its type requires. */
export const checkInteractive = async (call: SandboxCall, part: Record<string, unknown>): Promise<void> => {
  const type = String(part.type)
  if (!Object.hasOwn(actions, type))
    throw badParameterValue(`Param interactive['type'] must be one of {${Object.keys(actions).join(', ')}}.`)
  if (!isObject(part.action)) throw missingPart("Param interactive['action'] is required.")
  if (part.body !== undefined || !OPTIONAL_TEXT_TYPES.includes(type)) {
    if (!isObject(part.body)) throw missingPart("Param interactive['body'] is required.")
    requireText(part.body.text, "interactive['body']['text']", type === 'list' ? 4096 : 1024)
  }
  if (part.footer !== undefined)
    requireText(isObject(part.footer) ? part.footer.text : undefined, "interactive['footer']['text']", 60)
  if (part.header !== undefined) await checkHeader(call, part.header)
  actions[type]!(part.action)
}

const checkHeader = async (call: SandboxCall, header: unknown): Promise<void> => {
  if (!isObject(header) || !isNonEmptyText(header.type))
    throw missingPart("Param interactive['header']['type'] is required.")
  if (header.type === 'text') return void requireText(header.text, "interactive['header']['text']", 60)
  const file = ['image', 'video', 'document'].includes(header.type) ? header[header.type] : undefined
  if (!isObject(file))
    throw badParameterValue("Param interactive['header'] must hold a text, image, video or document.")
  await checkMedia(call, header.type, file)
}
