import type { OperationName } from '../catalog/index.ts'
import { presets } from '../catalog/reports.ts'

/** Runs a read as the caller, through every step of a call. Returns its JSON text; throws when it is refused. */
export type RunRead = (operation: OperationName, input: Record<string, unknown>) => Promise<string>

/** A resource template: records of the workspace under addresses with one variable. */
export type RecordResource = {
  uriTemplate: string
  name: string
  title: string
  description: string
  mimeType: 'application/json'
  /** The name of the variable. */
  variable: string
  /** The operations that it reads by. */
  operations: readonly OperationName[]
  /** Returns the JSON text of the record; undefined when the value can be none. */
  read: (run: RunRead, value: string) => Promise<string | undefined>
  /** Returns the values that begin so. */
  complete: (run: RunRead, value: string) => Promise<string[]>
}

/** Suggestions of one request. */
const MAX_SUGGESTIONS = 10
const MAX_LABEL_LENGTH = 80

/** An id, alone or with the name that completion puts behind it. */
const readId = (value: string): string | undefined => /^([1-9]\d{0,18})(?:$| )/.exec(value)?.[1]

const toSuggestion = (id: string, name: string | null | undefined): string =>
  [...`${id} ${name ?? ''}`].slice(0, MAX_LABEL_LENGTH).join('').trimEnd()

type Named = { id: string; name: string | null }

/** Suggests contacts by name: `42 Ada Lovelace`. */
export const suggestContacts = async (run: RunRead, value: string): Promise<Named[]> => {
  const query = value.trim().replace(/^[1-9]\d{0,18} /, '')
  const text = await run('crm_search_contacts', {
    ...(query === '' ? {} : { query: query.slice(0, 100) }),
    limit: MAX_SUGGESTIONS,
  })
  return (JSON.parse(text) as { data: Named[] }).data
}

/** Returns answers as one, with one list of the fields that outsiders wrote. */
const joinAnswers = (texts: Record<string, string>): string => {
  const untrusted: string[] = []
  const parts = Object.entries(texts).map(([name, text]) => {
    const { untrusted_fields: fields = [], ...answer } = JSON.parse(text) as { untrusted_fields?: string[] }
    untrusted.push(...fields.map((pointer) => `/${name}${pointer}`))
    return [name, answer] as const
  })
  return JSON.stringify({
    ...Object.fromEntries(parts),
    ...(untrusted.length > 0 ? { untrusted_fields: untrusted } : {}),
  })
}

const contacts: RecordResource = {
  uriTemplate: 'wcrm://contacts/{contact}',
  name: 'contact',
  title: 'A contact',
  description: 'A contact in full, by its id.',
  mimeType: 'application/json',
  variable: 'contact',
  operations: ['crm_get_contact', 'crm_search_contacts'],
  read: async (run, value) => {
    const contact_id = readId(value)
    return contact_id === undefined ? undefined : await run('crm_get_contact', { contact_id })
  },
  complete: async (run, value) =>
    (await suggestContacts(run, value)).map(({ id, name }) => toSuggestion(id, name)),
}

const conversations: RecordResource = {
  uriTemplate: 'wcrm://conversations/{conversation}',
  name: 'conversation',
  title: 'A conversation',
  description: 'A conversation by its id, with its latest messages.',
  mimeType: 'application/json',
  variable: 'conversation',
  operations: ['inbox_get_conversation', 'inbox_list_messages', 'inbox_search_conversations'],
  read: async (run, value) => {
    const conversation_id = readId(value)
    if (conversation_id === undefined) return undefined
    const conversation = await run('inbox_get_conversation', { conversation_id })
    const messages = await run('inbox_list_messages', { conversation_id })
    return joinAnswers({ conversation, messages })
  },
  complete: async (run, value) => {
    const query = value.trim().replace(/^[1-9]\d{0,18} /, '')
    const text = await run('inbox_search_conversations', {
      ...(query === '' ? { state: 'open' } : { query: query.slice(0, 255) }),
      limit: MAX_SUGGESTIONS,
    })
    const { data } = JSON.parse(text) as { data: { id: string; contact: Named | null }[] }
    return data.map(({ id, contact }) => toSuggestion(id, contact?.name))
  },
}

const Day = '\\d{4}-\\d{2}-\\d{2}'
const days = new RegExp(`^(${Day})\\.\\.(${Day})$`)

export const suggestRanges = (value: string): string[] => presets.filter((preset) => preset.startsWith(value))

const reports: RecordResource = {
  uriTemplate: 'wcrm://reports/{range}',
  name: 'report',
  title: 'A report',
  description:
    'The figures of the workspace: `last_week` or another preset, or days such as `2026-10-01..2026-10-07`.',
  mimeType: 'application/json',
  variable: 'range',
  operations: ['reports_workspace_summary'],
  read: async (run, value) => {
    const [, from, to] = days.exec(value) ?? []
    if (from !== undefined) return await run('reports_workspace_summary', { from, to })
    return (presets as readonly string[]).includes(value)
      ? await run('reports_workspace_summary', { preset: value })
      : undefined
  },
  complete: async (_run, value) => suggestRanges(value),
}

export const recordResources: readonly RecordResource[] = [contacts, conversations, reports]

/** Returns the record that an address names: the template and the value of its variable. */
export const findRecord = (uri: string): { resource: RecordResource; value: string } | undefined => {
  for (const resource of recordResources) {
    const prefix = resource.uriTemplate.replace(/\{.*$/, '')
    if (!uri.startsWith(prefix)) continue
    try {
      return { resource, value: decodeURIComponent(uri.slice(prefix.length)) }
    } catch {
      return undefined
    }
  }
  return undefined
}
