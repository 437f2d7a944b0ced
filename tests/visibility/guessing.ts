import { sql } from 'kysely'
import { createChannel } from '../../storage/workspace/admin.ts'
import { doAs } from '../calls.ts'
import type { Reply } from '../doors.ts'
import { plantConversation } from '../inbox/conversations.ts'
import { insertSandboxTemplates, ORDER_UPDATE } from '../messaging/send-template.ts'
import { makeWorkspace, type TestServer, type TestWorkspace } from '../servers.ts'

/** All phones end alike, so that their masks are the same. */
const ENDING = '0042'
/** A template that a contact who wants no marketing does not get. */
const MARKETING = { ...ORDER_UPDATE, name: 'summer_sale' }

/** The n-th phone: customers have the first ones. */
export const phoneOf = (n: number): string => `1555${String(730 + n)}${ENDING}`

export type GuessScene = {
  workspace: TestWorkspace
  /** A key of the agent from whom phones are hidden, and one that changes nothing. */
  agent: string
  testKey: string
  /** The contact with the first phone, also as a custom field. */
  contactId: string
}

/** Makes `known` contacts, each different in what a call could show, and an agent from whom phones are hidden. */
export const createGuessScene = async (
  server: TestServer,
  known: number,
  fields: { contact_limit?: number } = {},
): Promise<GuessScene> => {
  const workspace = await makeWorkspace(server, fields)
  const run = doAs(server, workspace.owner.key)
  await insertSandboxTemplates(server, workspace, {}, { name: MARKETING.name, category: 'MARKETING' })
  await run('crm_create_custom_field', { key: 'mobile', type: 'phone' })
  const contacts: { id: string }[] = []
  for (let n = 0; n < known; n++)
    contacts.push(
      await run('crm_upsert_contact', {
        phone: `+${phoneOf(n)}`,
        ...(n % 2 === 0 ? { name: 'Ada', tags: ['VIP'], attributes: { mobile: `+${phoneOf(n)}` } } : {}),
      }),
    )
  // The second has written on another channel; the last wants no marketing and has a number as its name.
  const { id: channelId } = await createChannel(
    server.db,
    workspace.id,
    {
      type: 'chatapp',
      name: 'Second line',
      identifier: '15550100002',
      status: 'connected',
      account_id: `77${workspace.id}`,
      provider_phone_number_id: `99${workspace.id}`,
    },
    server.app.now(),
  )
  await plantConversation(server, workspace.id, { contactId: contacts[1]!.id, channelId })
  await run('crm_update_contact', { contact_id: contacts.at(-1)!.id, dnd: true })
  await sql`
    update contacts set name = '+' || phone, name_key = '+' || phone, chatapp_user_id = phone || '@c.us'
    where workspace_id = ${workspace.id} and id = ${contacts.at(-1)!.id}`.execute(server.db)
  const agent = await workspace.staff({ role: 'agent', hide_phone_numbers: true })
  const testKey = await workspace.key(agent.staffId, { test: true })
  return { workspace, agent: agent.key, testKey: testKey.key, contactId: contacts[0]!.id }
}

type Input = Record<string, unknown>

/** Writes the digits of a phone in another script, with invisible characters between them. */
const disguise = (phone: string): string =>
  Array.from(phone, (digit) => String.fromCodePoint(0xff10 + Number(digit))).join('\u200b')

/** Filters that would find a phone. */
const listFilters = (phone: string): Input[] => [
  { phoneNumber: { eq: phone } },
  { phoneNumber: { isNull: false } },
  { chatappUserId: { startsWith: phone } },
  { name: { contains: phone } },
  { name: { in: ['Ada', disguise(phone)] } },
  { name: { regex: '^[+][1]' } },
  { or: [{ name: { eq: 'Ada' } }, { not: { phoneNumber: { contains: phone } } }] },
  { attributes: { some: { attributeName: { eq: 'mobile' }, stringValue: { eq: phone } } } },
]

/** Every way to ask for a phone, by operation: what takes a phone, a text to find, or a filter. */
export const listGuesses = (phone: string, contactId: string): Record<string, Input[]> => {
  const send = { dry_run: true, template: ORDER_UPDATE }
  const filters = listFilters(phone)
  return {
    crm_upsert_contact: [
      { phone: `+${phone}`, dry_run: true },
      { phone: disguise(phone), name: 'Ada', tags: ['VIP', 'New'], dry_run: true },
      { phone, name: phone, attributes: { mobile: phone, email: 'ada@example.com' }, dry_run: true },
    ],
    messaging_send_template: [
      { ...send, phone: `+${phone}` },
      { ...send, phone: disguise(phone), template: MARKETING },
      { ...send, phone, template: { ...ORDER_UPDATE, body: ['Ada'] } },
    ],
    messaging_create_short_link: [{ phone, message: 'Hello', dry_run: true }],
    crm_import_contacts: [
      { rows: [{ phone }, { phone, name: 'Ada' }], dry_run: true },
      { rows: [{ phone }] },
    ],
    crm_update_contact: [
      { attributes: { mobile: phone } },
      { attributes: { mobile: phone }, name: `Ada ${phone}` },
      { name: phone },
    ].map((change) => ({ ...change, contact_id: contactId, dry_run: true })),
    crm_change_phone: [
      { contact_id: contactId, phone: `+${phone}`, dry_run: true },
      { contact_id: contactId, phone: disguise(phone), dry_run: true },
    ],
    crm_search_contacts: [
      { query: phone },
      { query: disguise(phone).slice(0, 8) },
      { sort: { field: 'phoneNumber' } },
      ...filters.map((filter) => ({ filter })),
    ],
    crm_count_contacts: filters.slice(0, 1).map((filter) => ({ filter })),
    ...Object.fromEntries(
      ['crm_tag_contacts', 'crm_untag_contacts'].map((op) => [
        op,
        filters.slice(0, 1).map((filter) => ({ filter, tags: ['VIP'], dry_run: true })),
      ]),
    ),
    crm_update_contacts: [
      ...filters.slice(0, 1).map((filter) => ({ filter, starred: true })),
      { contact_ids: [contactId], attributes: { mobile: `+${phone}` } },
    ].map((change) => ({ ...change, dry_run: true })),
    ...Object.fromEntries(
      ['crm_add_contacts_to_group', 'crm_remove_contacts_from_group'].map((op) => [
        op,
        filters.slice(0, 1).map((filter) => ({ filter, group_id: '999999999', dry_run: true })),
      ]),
    ),
    ...Object.fromEntries(
      ['crm_delete_contacts', 'crm_export_contacts'].map((op) => [
        op,
        filters.slice(0, 1).map((filter) => ({ filter, dry_run: true })),
      ]),
    ),
    messaging_send_bulk: filters.slice(0, 1).map((filter) => ({
      filter,
      template: { name: ORDER_UPDATE.name, language: ORDER_UPDATE.language, body: [{ text: 'Ada' }] },
      dry_run: true,
    })),
    ...Object.fromEntries(
      ['inbox_assign_conversations', 'inbox_close_conversations'].map((op) => [
        op,
        [{ query: phone }, { contact: filters[0] }].map((filter) => ({
          filter,
          ...(op === 'inbox_assign_conversations' ? { staff_id: '999999999' } : {}),
          dry_run: true,
        })),
      ]),
    ),
    crm_check_filter: filters.slice(3, 4).map((filter) => ({ filter })),
    crm_create_saved_filter: filters
      .slice(-1)
      .map((filter) => ({ filter, name: 'Guess', count: true, dry_run: true })),
    inbox_search_conversations: [{ query: phone }, { query: disguise(phone).slice(0, 8) }],
    inbox_search_messages: [{ query: phone }, { query: disguise(phone).slice(0, 8) }],
  }
}

/**
 * Returns a reply without what differs from call to call: the phone that was sent, ids of requests, and times,
 * of which is kept which are the same.
 */
export const withoutGuess = (reply: Reply, phone: string): string => {
  const times: string[] = []
  const numberTime = (time: string): string => {
    if (!times.includes(time)) times.push(time)
    return `time ${times.indexOf(time)}`
  }
  return `${reply.status} ${reply.text}`
    .replaceAll(disguise(phone), '#')
    .replaceAll(disguise(phone).slice(0, 8), '#')
    .replaceAll(phone, '#')
    .replaceAll(/req_\w+/g, 'req')
    .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, numberTime)
}
