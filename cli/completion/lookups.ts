import type { Field } from '../manifest.ts'

/** A list on the server whose rows a value is one of. */
export type Lookup = {
  readonly operation: string
  /** The fields of a row that hold its names; none where only its id is taken. */
  readonly by: readonly string[]
  /** The path of what tells a row apart for a person. */
  readonly beside?: string
  /** The field of the list's input that narrows it to rows with a text. */
  readonly search?: string
  /** What else the list is asked; it answers faster. */
  readonly input?: Readonly<Record<string, unknown>>
  /** `@me` is one of them. */
  readonly me?: true
}

const tags: Lookup = { operation: 'crm_list_tags', by: ['name'], search: 'search' }
const contacts: Lookup = {
  operation: 'crm_search_contacts',
  by: [],
  beside: 'name',
  input: { detail: 'compact', limit: 50 },
}
const conversations: Lookup = {
  operation: 'inbox_search_conversations',
  by: [],
  beside: 'contact.name',
  input: { limit: 50 },
}
const endpoints: Lookup = { operation: 'webhooks_list_endpoints', by: [], beside: 'url' }

/** Lists of what fields hold that take no names, or whose names the server looks up. */
const LOOKUPS: Readonly<Record<string, Lookup>> = {
  tags,
  tag: tags,
  contact_tag: tags,
  add: tags,
  remove: tags,
  contact_id: contacts,
  contact_ids: contacts,
  conversation_id: conversations,
  endpoint_id: endpoints,
  approval_id: { operation: 'approvals_list', by: [], beside: 'operation' },
  short_link_id: { operation: 'messaging_list_short_links', by: [], beside: 'message' },
  ids: { operation: 'messaging_list_templates', by: [], beside: 'name' },
}

/** The endpoints of webhooks, for `--endpoint` of `wcrm trigger`. */
export const endpointLookup: Lookup = endpoints

/** Returns the list that a field's values come from; undefined where it has none. */
export const lookupOf = ({ name, names }: Field): Lookup | undefined => {
  if (!names) return LOOKUPS[name]
  return {
    operation: names.operation,
    by: names.by,
    search: names.search ?? 'search',
    ...(names.beside === undefined ? {} : { beside: names.beside }),
    ...(names.me ? { me: true as const } : {}),
  }
}
