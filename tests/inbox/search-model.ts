import fc from 'fast-check'
import { insertSlaPolicy } from '../../storage/conversations/sla.ts'
import { insertTags } from '../../storage/labels/labels.ts'
import { fold } from '../../storage/values/text.ts'
import { makeWorkspace, type TestServer, type TestWorkspace } from '../servers.ts'
import {
  at,
  insertContact,
  type ConversationFields,
  insertConversation,
  insertChannel,
  insertMessage,
} from './inbox-rows.ts'

/** What a search of conversations should find: data with every combination of its filters, and a plain filter. */

export type ConversationRow = Required<
  Pick<
    ConversationFields,
    'contact_id' | 'channel_id' | 'state' | 'assigned_staff_id' | 'assigned_team_id' | 'reply_status'
  >
> & {
  id: string
  name: string | null
  phone: string | null
  activity: string
  /** When the customer wrote last. */
  inbound: string | null
  /** Null when the customer does not wait. */
  waitingSince: string | null
  delivery: Delivery
  tags: string[]
  contactTags: string[]
  sla: SlaState | null
}
/**
 * Of the messages to the customer. `retried`: one failed, a later one did not. `queued`: one waits for a
 * bridge, not for the provider.
 */
type Delivery = 'failed' | 'unknown' | 'retried' | 'queued' | 'none'

type SlaState = 'running' | 'breached' | 'met'

export type SearchData = {
  workspace: TestWorkspace
  key: string
  channels: string[]
  /** The owner of the key, and a colleague. */
  staff: string[]
  contacts: string[]
  rows: ConversationRow[]
}

const names = ['Ada', 'Émile Zola', null, 'ÆLF', '李小龍', 'ada bader', 'Zoë 100%']

const tagNames = ['vip', 'Großhandel', 'refund']

const deliveries: readonly Delivery[] = ['none', 'failed', 'unknown', 'retried', 'queued']

/** Inserts what was sent in a conversation, the latest message last. */
const insertDelivery = async (
  { db }: TestServer,
  workspaceId: string,
  conversationId: string,
  delivery: Delivery,
): Promise<void> => {
  const call = { opens: false, makes_contact: false }
  const sent: Partial<Parameters<typeof insertMessage>[2]>[] = {
    none: [],
    failed: [{ status: 'sent' as const }, { status: 'failed' as const }],
    unknown: [{ status: 'pending' as const, content: { call } }, { status: 'sent' as const }],
    retried: [{ status: 'failed' as const }, { status: 'read' as const }],
    queued: [{ status: 'pending' as const }],
  }[delivery]
  for (const [n, message] of sent.entries())
    await insertMessage(db, workspaceId, {
      conversation_id: conversationId,
      created_at: at(n),
      direction: 'outbound',
      ...message,
    })
}

const LATER = '2100-01-01T00:00:00.000Z'

/** Two ways to each state of a service level, and none. */
const slaCases: readonly [SlaState | null, Partial<ConversationFields>][] = [
  [null, {}],
  ['met', {}],
  ['running', { first_response_due_at: LATER }],
  ['running', { resolution_due_at: LATER }],
  ['breached', { first_response_due_at: at(-50), resolution_due_at: LATER }],
  ['breached', { sla_breached: true }],
]

const insertPolicy = async ({ db }: TestServer, workspaceId: string): Promise<string> => {
  const policy = { name: 'Promise', enabled: true, channel_ids: null, hours: null }
  const targets = { first_response_seconds: 60, next_response_seconds: null, resolution_seconds: null }
  return (await insertSlaPolicy(db, workspaceId, { ...policy, ...targets }, at(0))).id
}

/** Tags conversations, and their contacts, by number: some with none, some with all three. */
const insertTagged = async (
  { db }: TestServer,
  workspaceId: string,
  rows: ConversationRow[],
): Promise<void> => {
  await insertTags(db, workspaceId, tagNames, at(0))
  const tags = await db
    .selectFrom('tags')
    .select(['id', 'name'])
    .where('workspace_id', '=', workspaceId)
    .execute()
  const idOf = new Map(tags.map(({ id, name }) => [name, id]))
  await db
    .insertInto('conversation_tags')
    .values(
      rows.flatMap((row) =>
        row.tags.map((tag) => ({
          workspace_id: workspaceId,
          conversation_id: row.id,
          tag_id: idOf.get(tag)!,
        })),
      ),
    )
    .execute()
  const ofContacts = new Map(
    rows.flatMap((row) => (row.contact_id ? [[row.contact_id, row.contactTags]] : [])),
  )
  await db
    .insertInto('contact_tags')
    .values(
      [...ofContacts].flatMap(([contactId, tags]) =>
        tags.map((tag) => ({ workspace_id: workspaceId, contact_id: contactId, tag_id: idOf.get(tag)! })),
      ),
    )
    .execute()
}

/**
 * Inserts 72 conversations of 24 contacts with every combination of the filters and with equal times. Some
 * have no contact, no channel or no messages; of some it is not known since when the customer waits.
 */
export const insertSearchData = async (server: TestServer): Promise<SearchData> => {
  const workspace = await makeWorkspace(server)
  const channels = [
    await insertChannel(server, workspace, 'One'),
    await insertChannel(server, workspace, 'Two'),
    await insertChannel(server, workspace, 'Three', 'web'),
  ]
  const staff = [workspace.owner.staffId, (await workspace.staff({ role: 'manager' })).staffId]
  const contacts: { id: string; name: string | null; phone: string }[] = []
  for (let i = 0; i < 24; i++) {
    const person = { name: names[i % names.length]!, phone: `1555010${String(i * 131).padStart(4, '0')}` }
    contacts.push({ id: await insertContact(server.db, workspace.id, person.name, person.phone), ...person })
  }
  const policy = await insertPolicy(server, workspace.id)
  const rows: ConversationRow[] = []
  for (let i = 0; i < 72; i++) {
    const person = i % 17 === 5 ? null : contacts[(i * 7) % 24]!
    const fields = {
      contact_id: person?.id ?? null,
      channel_id: i % 19 === 7 ? null : channels[i % 3]!,
      state: i & 1 ? ('closed' as const) : ('open' as const),
      assigned_staff_id: (i >> 1) % 3 === 1 ? staff[(i >> 3) % 2]! : null,
      assigned_team_id: (i >> 1) % 3 === 2 ? '77' : null,
      reply_status: ([null, 'incoming_no_reply', 'outgoing_no_response'] as const)[Math.floor(i / 6) % 3]!,
    }
    const activity = at((i * 5) % 29)
    const [sla, clocks] = slaCases[(i * 5 + Math.floor(i / 6)) % slaCases.length]!
    const inbound = i % 4 === 0 ? null : at((i * 11) % 29)
    const since = i % 5 === 2 ? null : at(-((i * 7) % 13))
    const id = await insertConversation(server.db, workspace.id, {
      ...fields,
      ...clocks,
      sla_policy_id: sla === null ? null : policy,
      waiting_since: since,
      last_inbound_at: inbound,
      ...(i % 11 === 3 ? { created_at: activity } : { created_at: at(-100), last_activity_at: activity }),
    })
    const delivery = deliveries[Math.floor(i / 2) % deliveries.length]!
    await insertDelivery(server, workspace.id, id, delivery)
    const waits = fields.state === 'open' && fields.reply_status === 'incoming_no_reply'
    rows.push({
      id,
      ...fields,
      name: person?.name ?? null,
      phone: person?.phone ?? null,
      activity,
      inbound,
      waitingSince: waits ? (since ?? activity) : null,
      delivery,
      tags: tagNames.filter((_, n) => i % 7 === 6 || i % (n + 3) === 1),
      contactTags: person ? tagNames.filter((_, k) => ((i * 7) % 24) % (k + 2) === 1) : [],
      sla,
    })
  }
  await insertTagged(server, workspace.id, rows)
  return {
    workspace,
    key: workspace.owner.key,
    channels,
    staff,
    contacts: contacts.map(({ id }) => id),
    rows,
  }
}

/** One in four: with all of them, few searches would find anything. */
const seldom = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: value })

/** Times before, among and after those of the data. */
const anyTime = fc.integer({ min: -15, max: 30 }).map(at)
export const ageFilters = {
  last_message_before: seldom(anyTime),
  last_customer_message_before: seldom(anyTime),
  waiting_longer_than: seldom(anyTime),
}

const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined, freq: 2 })
export const filtersArbitrary: fc.Arbitrary<Filters> = fc.record({
  query: optional(
    fc.constantFrom(
      'ADA',
      'a',
      'é',
      'émile',
      'ælf',
      '李小',
      '龍',
      '0100',
      '+1 555 010',
      '100%',
      '%',
      'nobody',
    ),
  ),
  state: optional(fc.constantFrom('open', 'closed')),
  assigned: optional(fc.boolean()),
  channel: optional(fc.nat(2)),
  reply_status: optional(fc.constantFrom('incoming_no_reply', 'outgoing_no_response')),
  assignee: optional(fc.constantFrom('me', 'none', 0, 1)),
  team: seldom(fc.constantFrom('77', '78')),
  tag: seldom(fc.constantFrom('vip', 'GROSSHANDEL', 'Refund')),
  sla: seldom(fc.constantFrom('running', 'breached', 'met')),
  contact: seldom(fc.nat(23)),
  delivery: optional(fc.constantFrom('failed', 'unknown')),
  ...ageFilters,
  sort: optional(fc.constantFrom('newest_activity', 'longest_wait')),
})

export type Filters = {
  query?: string | undefined
  state?: string | undefined
  assigned?: boolean | undefined
  channel?: number | undefined
  reply_status?: string | undefined
  assignee?: string | number | undefined
  team?: string | undefined
  tag?: string | undefined
  contact_tag?: string | undefined
  sla?: string | undefined
  contact?: number | undefined
  delivery?: string | undefined
  last_message_before?: string | undefined
  last_customer_message_before?: string | undefined
  waiting_longer_than?: string | undefined
  sort?: string | undefined
}

export const toSearchInput = (
  { channel, assignee, contact, team, sla, ...rest }: Filters,
  { channels, staff, contacts }: SearchData,
): Record<string, unknown> =>
  JSON.parse(
    JSON.stringify({
      ...rest,
      team_id: team,
      sla_status: sla,
      ...(channel === undefined ? {} : { channel_id: channels[channel] }),
      ...(assignee === undefined
        ? {}
        : { assigned_staff_id: typeof assignee === 'number' ? staff[assignee] : assignee }),
      ...(contact === undefined ? {} : { contact_id: contacts[contact] }),
    }),
  ) as Record<string, unknown>

const matchesFilters =
  (
    { query, state, assigned, channel, reply_status: reply, assignee, contact, delivery, ...more }: Filters,
    { channels, staff, contacts }: SearchData,
  ) =>
  (row: ConversationRow): boolean =>
    (assignee === undefined ||
      (assignee === 'none'
        ? row.assigned_staff_id === null && (more.team !== undefined || row.assigned_team_id === null)
        : row.assigned_staff_id === staff[assignee === 'me' ? 0 : Number(assignee)])) &&
    (more.team === undefined || row.assigned_team_id === more.team) &&
    (more.tag === undefined || row.tags.some((name) => fold(name) === fold(more.tag!))) &&
    (more.contact_tag === undefined ||
      row.contactTags.some((name) => fold(name) === fold(more.contact_tag!))) &&
    (more.sla === undefined || row.sla === more.sla) &&
    (more.last_message_before === undefined || row.activity < more.last_message_before) &&
    (more.last_customer_message_before === undefined ||
      (row.inbound !== null && row.inbound < more.last_customer_message_before)) &&
    (more.waiting_longer_than === undefined ||
      (row.waitingSince !== null && row.waitingSince <= more.waiting_longer_than)) &&
    (contact === undefined || row.contact_id === contacts[contact]) &&
    (delivery === undefined || row.delivery === delivery) &&
    (query === undefined ||
      (row.contact_id !== null &&
        ((row.name ?? '').toLowerCase().includes(query.toLowerCase()) ||
          (row.phone ?? '').includes(query.replaceAll(/[ +]/g, '') || query)))) &&
    (state === undefined || row.state === state) &&
    (assigned === undefined ||
      assigned === (row.assigned_staff_id !== null || row.assigned_team_id !== null)) &&
    (channel === undefined || row.channel_id === channels[channel]) &&
    (reply === undefined || row.reply_status === reply)

const compareByActivity = (a: ConversationRow, b: ConversationRow): number =>
  a.activity === b.activity ? Number(BigInt(b.id) - BigInt(a.id)) : a.activity < b.activity ? 1 : -1

/** Who waits longest comes first; then those who do not wait. */
const compareByWait = (a: ConversationRow, b: ConversationRow): number => {
  const [left, right] = [a.waitingSince, b.waitingSince]
  if (left === null || right === null)
    return left === right ? compareByActivity(a, b) : left === null ? 1 : -1
  return left === right ? Number(BigInt(a.id) - BigInt(b.id)) : left < right ? -1 : 1
}

export const expectedIds = (data: SearchData, filter: Filters): string[] =>
  data.rows
    .filter(matchesFilters(filter, data))
    .toSorted(filter.sort === 'longest_wait' ? compareByWait : compareByActivity)
    .map((row) => row.id)
