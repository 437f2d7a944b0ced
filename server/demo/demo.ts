import { consumer, loggedEvent } from '../../catalog/event-log.ts'
import { currentVersion, scopes } from '../../catalog/index.ts'
import { createKey } from '../../storage/access/admin-keys.ts'
import { errorCode } from '../../storage/client/error-codes.ts'
import { listMatchBatches } from '../../storage/contacts/matches.ts'
import { insertSlaPolicy } from '../../storage/conversations/sla.ts'
import type { Db } from '../../storage/database.ts'
import { findOrInsertBroadcast, insertRecipients } from '../../storage/demo/broadcasts.ts'
import { insertDemoJobs } from '../../storage/demo/jobs.ts'
import { insertDemoQuickMessages } from '../../storage/demo/quick-messages.ts'
import { moveEventConsumer } from '../../storage/events/consumers.ts'
import { findEventPosition, insertEvents } from '../../storage/events/events.ts'
import { insertMembership, insertTracking } from '../../storage/filters/memberships.ts'
import {
  type ChannelFields,
  createChannel,
  createStaff,
  createTeam,
  createWorkspace,
  lockWorkspaces,
  hasNoWorkspace,
  restartIds,
  type StaffFields,
} from '../../storage/workspace/admin.ts'
import { deriveUserId } from '../../packages/sandbox/emulator/ids.ts'
import { upsertSandboxCustomer } from '../../packages/sandbox/storage/customers.ts'
import { hashApiKey, createApiKey } from '../api-keys.ts'
import type { Actor } from '../kernel/context.ts'
import { parseSavedFilter } from '../domains/filters/parse-filter.ts'
import { applyTemplateChange } from '../domains/inbound/changes.ts'
import { createUnlimitedActor, digestFilter } from '../domains/reports/filter-membership.ts'
import type { Sealer } from '../sealer.ts'
import { createDemoApprovals } from './approvals.ts'
import { type Caller, createCallers } from './calls.ts'
import { createPhone, generateContacts } from './contacts.ts'
import { demoFields } from './labels.ts'
import { playStory, type Writer } from './story.ts'
import { demoQuickMessages, demoTemplates } from './templates.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS, toIso } from './time.ts'
import { createDemoWebhook } from './webhook.ts'

export type Demo = { workspaceId: string; apiKey: string; testKey: string }

/** Few, so that the first start stays fast. */
const CONTACTS = 200
const SEED = 20_261_001

const account = { account_id: '100200', account_name: 'Roastery Berlin' }

const chatapp = (n: number, name: string, status: ChannelFields['status']) => {
  const id = `10020030${n}`
  const provider = { ...account, provider_channel_id: id, provider_phone_number_id: id }
  return { type: 'chatapp', name, identifier: `1555010000${n}`, status, ...provider }
}
const channels: readonly (ChannelFields & { type: string })[] = [
  { ...chatapp(1, 'Main line', 'connected'), is_default: true, quality_rating: 'GREEN' },
  { ...chatapp(2, 'Orders', 'connected'), quality_rating: 'YELLOW' },
  chatapp(3, 'Old hotline', 'disconnected'),
  {
    type: 'web',
    name: 'Website chat',
    identifier: 'roastery.example',
    status: 'connected',
    web_surface: 'web',
  },
]

type DemoStaff = StaffFields & { teams?: readonly number[]; channels?: readonly number[] }

const teams = ['Support', 'Sales', 'Billing'] as const

/** Teams and channels are indexes in the lists above. */
const staff: readonly DemoStaff[] = [
  { name: 'Olivia Owner', role: 'owner', reports: true },
  { name: 'Amir Haddad', role: 'admin', reports: true, teams: [0, 1, 2] },
  { name: 'Mara Lindqvist', role: 'manager', reports: true, teams: [0] },
  { name: 'Tomás Ortega', role: 'manager', teams: [1, 2] },
  { name: 'Lena Kowalska', role: 'agent', reports: true, teams: [0] },
  { name: 'Yuki Tanaka', role: 'agent', hide_phone_numbers: true, teams: [0, 1] },
  { name: 'Samuel Okafor', role: 'agent', teams: [1], channels: [1, 3] },
  { name: 'Ghost Writer', role: 'agent', enabled: false, teams: [0] },
]

const savedFilters = (now: string) => [
  { name: 'VIP customers', filter: { tags: { some: { name: { eq: 'VIP' } } } } },
  {
    name: 'Waiting for an answer',
    description: 'Open conversations with messages that nobody has read.',
    filter: { conversations: { some: { state: { eq: 'open' }, unreadCount: { gt: 0 } } } },
  },
  {
    name: 'Quiet Enterprise customers',
    description: 'On the Enterprise plan, and not heard of for 90 days.',
    filter: {
      and: [
        { attributes: { some: { attributeName: { eq: 'plan' }, stringValue: { eq: 'enterprise' } } } },
        { lastActivityAt: { lt: toIso(Date.parse(now) - 90 * DAY_MS) } },
      ],
    },
  },
]

const policy = {
  name: 'Standard',
  enabled: true,
  channel_ids: null,
  hours: null,
  first_response_seconds: 1800,
  next_response_seconds: 3600,
  resolution_seconds: 2 * 24 * 3600,
}

/** Name, template and status; when from now; the share of the contacts who receive it, and of those so far. */
const broadcasts = [
  ['Autumn blend is here', 'autumn_blend', 'completed', -12 * DAY_MS, 0.3, 1],
  ['Opening hours in the holidays', 'opening_hours', 'completed', -26 * DAY_MS, 0.06, 1],
  ['How was your order?', 'order_survey', 'running', -20 * MINUTE_MS, 0.04, 0.6],
  ['Gift boxes for the season', 'gift_boxes', 'scheduled', 2 * DAY_MS, 0.05, 0],
  ['Brewing workshop', 'workshop_invitation', 'cancelled', -5 * DAY_MS, 0.02, 0.4],
] as const

/** Index of the channel, message, format of the QR image, and days ago. */
const links = [
  [0, 'Hello, I would like to order.', 'PNG', 90],
  [1, 'Where is my order?', 'SVG', 31],
  [0, 'Hallo! Ich habe eine Frage zum Herbstkaffee ☕', 'PNG', 12],
  [0, 'I saw you at the market: tell me about the workshop.', 'NONE', 4],
] as const

/** What some records of the demo workspace need: without it they are left out. */
export type DemoOptions = {
  /** The address of the server, to which short links lead. */
  publicUrl?: string | undefined
  /** Seals the secret of the webhook endpoint. */
  webhookSealer?: Sealer | undefined
}

/** Each waits for the lock as long as a statement may: together a minute. */
const MAX_ATTEMPTS = 30

/**
 * Creates the demo workspace in an empty database, in one transaction. Returns undefined when a workspace
 * exists. Both keys belong to the owner and have all scopes. It has one of each kind of record that the examples
 * of the catalog name by its id.
 */
export const createDemo = async (
  db: Db,
  now: string,
  options: DemoOptions = {},
): Promise<Demo | undefined> => {
  for (let attempt = 1; ; attempt++) {
    try {
      return await createOnce(db, now, options)
    } catch (error) {
      // Another server that started with this one creates it, on a busy machine for longer than statements wait.
      if (attempt >= MAX_ATTEMPTS || (error as { code?: string }).code !== errorCode.lockNotAvailable)
        throw error
    }
  }
}

/** The contact of the examples of the catalog, a regular customer: the 42nd. */
const REGULAR = { n: 41, id: '42' }

const createOnce = (db: Db, now: string, options: DemoOptions): Promise<Demo | undefined> =>
  db.transaction().execute(async (tx) => {
    if (!(await hasNoWorkspace(tx))) return undefined
    await lockWorkspaces(tx)
    if (!(await hasNoWorkspace(tx))) return undefined
    await restartIds(tx)
    const nowMs = Date.parse(now)
    const settings = { name: 'Demo', timezone: 'Europe/Berlin' }
    const { id: workspaceId } = await createWorkspace(tx, settings, now)
    const company = await createStaffTeamsChannels(tx, workspaceId, now)
    const { staffIds, teamIds, channelIds } = company
    const [owner, admin, manager, , lena, yuki] = company.members as [Actor['staff'], ...Actor['staff'][]]
    const keys = await createOwnerKeys(tx, workspaceId, owner.id, now)
    const caller = createCallers(options.publicUrl)(tx, { id: workspaceId, ...settings })
    const { call } = caller
    const by = (staff: Actor['staff'], agoMs = 0) => ({ staff, keyId: keys.id, atMs: nowMs - agoMs })
    await submitTemplates(caller, owner, nowMs)
    await insertDemoQuickMessages(tx, workspaceId, demoQuickMessages, { staffIds, teamIds, now })
    if (options.publicUrl !== undefined)
      for (const [channel, message, qr_format, days] of links)
        await call(
          'messaging_create_short_link',
          { channel_id: channelIds[channel], message, qr_format },
          by(manager!, days * DAY_MS),
        )
    await insertSlaPolicy(tx, workspaceId, policy, toIso(nowMs - 730 * DAY_MS))
    await generateContacts((work) => work(caller), {
      contacts: CONTACTS,
      seed: SEED,
      now,
      fields: demoFields,
    })
    // Only who saved a filter may change it: the owner, whose the keys are, has the first.
    for (const [index, filter] of savedFilters(now).entries())
      await call('crm_create_saved_filter', filter, by(index === 0 ? owner : manager!))
    const [main, orders, web] = [0, 1, 3].map((i) => ({ id: channelIds[i]!, type: channels[i]!.type }))
    const writers = await playStory(caller, {
      channels: { main: main!, orders: orders!, web: web! },
      staff: [owner, admin!, lena!, yuki!],
      teamId: teamIds[0]!,
      regular: REGULAR,
      nowMs,
    })
    await registerSandboxCustomers(tx, writers, channelIds, nowMs)
    for (const [name, template_name, status, atMs, share, reached] of broadcasts) {
      const scheduled_at = toIso(nowMs + atMs)
      const started_at = status === 'scheduled' ? null : scheduled_at
      const created_at = toIso(Math.min(nowMs + atMs, nowMs) - DAY_MS)
      const broadcast = { name, template_name, status, scheduled_at, started_at, created_at }
      const row = { ...broadcast, channel_id: channelIds[0]! }
      const { id } = await findOrInsertBroadcast(tx, workspaceId, row)
      await insertRecipients(tx, workspaceId, { id, share, reached, started_at }, now)
    }
    const visitor = (n: number, name: string) =>
      call('crm_upsert_contact', { phone: `+${createPhone(n).phone}`, name }, by(owner, HOUR_MS))
    const { id: other } = await visitor(CONTACTS, 'Ada (web shop)')
    const pair = { contact_id: REGULAR.id, other_contact_id: other }
    await call('crm_merge_contacts', pair, by(owner, HOUR_MS))
    await insertDemoJobs(tx, { workspace_id: workspaceId, staff_id: owner.id, key_id: keys.id }, now)
    const { id: gone } = await visitor(CONTACTS + 1, 'Somebody else')
    await call('crm_erase_contact', { contact_id: gone }, by(owner))
    await call('crm_export_person', { contact_id: REGULAR.id }, by(owner))
    await trackFilter(caller, '1', now)
    await insertEvents(tx, workspaceId, [{ ...loggedEvent, occurred_at: now }])
    const position = await findEventPosition(tx, workspaceId, loggedEvent.id)
    const move = { rewind: false, now, agentStaffId: null }
    await moveEventConsumer(tx, workspaceId, consumer.name, position!, move)
    if (options.webhookSealer) await createDemoWebhook(tx, workspaceId, options.webhookSealer, now)
    await createDemoApprovals(tx, workspaceId, { declinedBy: { staffId: owner.id, keyId: keys.id }, now })
    return { workspaceId, apiKey: keys.apiKey, testKey: keys.testKey }
  })

/** Submits the templates, one a day some weeks ago; the provider answers a day later. */
const submitTemplates = async (
  { tx, call, contextAt, lastProviderId }: Caller,
  staff: Actor['staff'],
  nowMs: number,
): Promise<void> => {
  for (const [i, { draft, event, reason }] of demoTemplates.entries()) {
    const atMs = nowMs - (39 - i) * DAY_MS
    await call('messaging_create_template', { template: draft }, { staff, atMs })
    if (event === undefined) continue
    const context = contextAt(atMs + DAY_MS)
    await applyTemplateChange(tx, () => context, {
      account: account.account_id,
      time: null,
      field: 'message_template_status_update',
      value: { event, message_template_id: lastProviderId(), reason: reason ?? 'NONE' },
    })
  }
}

/** Tracks a saved filter: one of its members was not yet there when its members were recorded first. */
const trackFilter = async ({ tx, workspace }: Caller, filterId: string, now: string): Promise<void> => {
  const actor = createUnlimitedActor({ ...workspace, features: [], contactLimit: null, templateLimit: null })
  const filters = { enabled: true, countTimeBoxMs: 1000, stepMs: undefined }
  const filter = await parseSavedFilter(
    { tx, heavy: tx, actor, now, services: { regexVerdicts: new Map(), config: { filters } } },
    filterId,
  )
  const batches = await listMatchBatches(tx, workspace.id, [filter], { size: 5000, stepMs: undefined })
  const before = toIso(Date.parse(now) - 8 * DAY_MS)
  await insertTracking(tx, workspace.id, filterId, before)
  const record = { filterId, digest: digestFilter(filter) }
  const earlier = batches.map((batch) => batch.replace(/,\d+}$/, '}'))
  await insertMembership(tx, workspace.id, { ...record, batches: earlier }, before)
  await insertMembership(tx, workspace.id, { ...record, batches }, now)
}

/** Creates the live key of the owner, whose id it returns, and the test key. */
const createOwnerKeys = async (tx: Db, workspaceId: string, owner: string, now: string) => {
  const create = async (test: boolean): Promise<{ id: string; text: string }> => {
    const text = createApiKey(test)
    const { id } = await createKey(
      tx,
      workspaceId,
      hashApiKey(text),
      {
        staff_id: owner,
        scopes: [...scopes],
        name: test ? 'demo test' : 'demo',
        test,
        api_version: currentVersion,
      },
      now,
    )
    return { id, text }
  }
  const live = await create(false)
  const test = await create(true)
  return { id: live.id, apiKey: live.text, testKey: test.text }
}

/**
 * Informs the sandbox of the customers who wrote recently, so that it accepts replies to them while the reply
 * window is open.
 */
const registerSandboxCustomers = async (
  tx: Db,
  writers: readonly Writer[],
  channelIds: readonly string[],
  nowMs: number,
): Promise<void> => {
  for (const { phone, name, channelId, atMs, ad } of writers) {
    const { account_id: accountId, provider_phone_number_id: number } =
      channels[channelIds.indexOf(channelId)]!
    if (!number || !accountId || atMs < nowMs - 3 * DAY_MS) continue
    await upsertSandboxCustomer(tx, {
      number_id: number,
      wa_id: phone,
      user_id: deriveUserId(accountId, phone),
      name,
      last_inbound_at: toIso(atMs),
      free_entry_at: ad ? toIso(atMs) : null,
    })
  }
}

const createStaffTeamsChannels = async (tx: Db, workspaceId: string, now: string) => {
  const channelIds: string[] = []
  for (const channel of channels) channelIds.push((await createChannel(tx, workspaceId, channel, now)).id)
  const teamIds: string[] = []
  for (const name of teams) teamIds.push((await createTeam(tx, workspaceId, name, now)).id)
  const members: Actor['staff'][] = []
  for (const { teams: inTeams = [], channels: onChannels, ...fields } of staff) {
    const allowed = onChannels ? onChannels.map((i) => channelIds[i]!) : null
    const member = { ...fields, channel_ids: allowed }
    const { id } = await createStaff(
      tx,
      workspaceId,
      member,
      inTeams.map((i) => teamIds[i]!),
      now,
    )
    members.push({
      id,
      name: fields.name,
      role: fields.role,
      // What was seen has no part in what was done.
      hidePhoneNumbers: false,
      reports: fields.reports ?? false,
      channelIds: allowed,
    })
  }
  return { staffIds: members.map(({ id }) => id), members, teamIds, channelIds }
}
