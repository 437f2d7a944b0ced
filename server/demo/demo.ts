import { currentVersion, scopes } from '../../catalog/index.ts'
import { createKey } from '../../storage/access/admin-keys.ts'
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
import type { Db } from '../../storage/database.ts'
import { listRecentWriters, setDemoExternalId } from '../../storage/demo/conversations.ts'
import { insertDoneErasure } from '../../storage/demo/erasure.ts'
import { insertExpiredExport } from '../../storage/demo/exports.ts'
import { insertDemoJobs } from '../../storage/demo/jobs.ts'
import { insertDemoMerge } from '../../storage/demo/merge.ts'
import {
  insertDemoSlaPolicy,
  insertDemoQuickMessages,
  insertDemoTemplates,
} from '../../storage/demo/templates.ts'
import { errorCode } from '../../storage/client/error-codes.ts'
import { upsertSandboxCustomer } from '../../packages/sandbox/storage/customers.ts'
import { insertSavedFilter } from '../../storage/filters/saved-filters.ts'
import { hashApiKey, createApiKey } from '../api-keys.ts'
import { deriveUserId } from '../../packages/sandbox/emulator/ids.ts'
import type { Sealer } from '../sealer.ts'
import { createDemoApprovals } from './approvals.ts'
import { createDemoConsumer } from './events.ts'
import { generateContacts } from './generate.ts'
import { otherDemoFields } from './labels.ts'
import { createDemoLinks } from './links.ts'
import { trackDemoFilter } from './membership.ts'
import type { RecentSlot } from './outlines.ts'
import { DAY_MS, toIso } from './time.ts'
import { demoQuickMessages, demoTemplates } from './templates.ts'
import { createDemoWebhook } from './webhook.ts'

export type Demo = { workspaceId: string; apiKey: string; testKey: string }

/** Few, so that the first start stays fast. */
const CONTACTS = 200
const SEED = 20_261_001

const account = { account_id: '100200', account_name: 'Roastery Berlin' }

const channels: readonly (ChannelFields & { type: string })[] = [
  {
    type: 'chatapp',
    name: 'Main line',
    identifier: '15550100001',
    status: 'connected',
    is_default: true,
    ...account,
    provider_channel_id: '100200301',
    provider_phone_number_id: '100200301',
    quality_rating: 'GREEN',
  },
  {
    type: 'chatapp',
    name: 'Orders',
    identifier: '15550100002',
    status: 'connected',
    ...account,
    provider_channel_id: '100200302',
    provider_phone_number_id: '100200302',
    quality_rating: 'YELLOW',
  },
  {
    type: 'chatapp',
    name: 'Old hotline',
    identifier: '15550100003',
    status: 'disconnected',
    ...account,
    provider_channel_id: '100200303',
    provider_phone_number_id: '100200303',
  },
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
  { name: 'VIP customers', description: null, filter: { tags: { some: { name: { eq: 'VIP' } } } } },
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
  first_response_seconds: 1800,
  next_response_seconds: 3600,
  resolution_seconds: 2 * 24 * 3600,
}

/** Every 25th contact has a dozen conversations, every fourth none. */
const countConversations = (n: number): number => (n % 25 === 0 ? 12 : n % 4)

/**
 * Assigns five contacts to each of the last days, the newest contacts to the latest days, so that no contact
 * writes before it was created.
 */
const assignRecentSlots = (): ((n: number) => RecentSlot) => {
  const writers = Array.from({ length: CONTACTS }, (_, n) => n)
    .filter((n) => countConversations(n) > 0)
    .reverse()
  const places = new Map(writers.map((n, place) => [n, { day: Math.floor(place / 5), slot: place % 5 }]))
  return (n) => places.get(n)!
}

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

const createOnce = (
  db: Db,
  now: string,
  { publicUrl, webhookSealer }: DemoOptions,
): Promise<Demo | undefined> =>
  db.transaction().execute(async (tx) => {
    if (!(await hasNoWorkspace(tx))) return undefined
    await lockWorkspaces(tx)
    if (!(await hasNoWorkspace(tx))) return undefined
    await restartIds(tx)
    const settings = { name: 'Demo', timezone: 'Europe/Berlin' }
    const { id: workspaceId } = await createWorkspace(tx, settings, now)
    const { staffIds, teamIds, channelIds } = await createStaffTeamsChannels(tx, workspaceId, now)
    const [owner, , manager] = staffIds as [string, string, string]
    // Only who saved a filter may change it: the owner, whose the keys are, has the first.
    for (const [index, filter] of savedFilters(now).entries())
      await insertSavedFilter(
        tx,
        workspaceId,
        { ...filter, owner_staff_id: index === 0 ? owner : manager },
        now,
      )
    await insertDemoTemplates(tx, workspaceId, demoTemplates, {
      account,
      submittedBy: owner,
      firstProviderId: 100_200_900,
      now,
    })
    await insertDemoQuickMessages(tx, workspaceId, demoQuickMessages, { staffIds, teamIds, now })
    if (publicUrl !== undefined)
      await createDemoLinks(tx, workspaceId, { channelIds, createdBy: manager, publicUrl, now })
    const policyId = await insertDemoSlaPolicy(tx, workspaceId, policy, now)
    await generateContacts(tx, workspaceId, {
      contacts: CONTACTS,
      seed: SEED,
      now,
      otherFields: otherDemoFields,
      conversations: countConversations,
      recent: assignRecentSlots(),
      policy: { id: policyId, ...policy },
    })
    await registerSandboxCustomers(tx, workspaceId, now)
    await setDemoExternalId(tx, workspaceId, 'order-1042')
    await insertDemoMerge(tx, workspaceId, { name: 'Ada (web shop)', intoId: '42' }, now)
    const keys = await createOwnerKeys(tx, workspaceId, owner, now)
    await insertDemoJobs(tx, { workspace_id: workspaceId, staff_id: owner, key_id: keys.id }, now)
    await insertDoneErasure(tx, { workspaceId, staffId: owner }, now)
    await insertExpiredExport(tx, { workspaceId, staffId: owner, contactId: '42' }, now)
    await trackDemoFilter(tx, { id: workspaceId, ...settings }, '1', now)
    await createDemoConsumer(tx, workspaceId, now)
    if (webhookSealer) await createDemoWebhook(tx, workspaceId, webhookSealer, now)
    await createDemoApprovals(tx, workspaceId, { declinedBy: { staffId: owner, keyId: keys.id }, now })
    return { workspaceId, apiKey: keys.apiKey, testKey: keys.testKey }
  })

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
const registerSandboxCustomers = async (tx: Db, workspaceId: string, now: string): Promise<void> => {
  for (const { account_id, phone, ...writer } of await listRecentWriters(
    tx,
    workspaceId,
    toIso(Date.parse(now) - 3 * DAY_MS),
  )) {
    await upsertSandboxCustomer(tx, { ...writer, user_id: deriveUserId(account_id, phone), wa_id: phone })
  }
}

const createStaffTeamsChannels = async (
  tx: Db,
  workspaceId: string,
  now: string,
): Promise<{ staffIds: string[]; teamIds: string[]; channelIds: string[] }> => {
  const channelIds: string[] = []
  for (const channel of channels) channelIds.push((await createChannel(tx, workspaceId, channel, now)).id)
  const teamIds: string[] = []
  for (const name of teams) teamIds.push((await createTeam(tx, workspaceId, name, now)).id)
  const staffIds: string[] = []
  for (const { teams: inTeams = [], channels: onChannels, ...fields } of staff) {
    const allowed = onChannels ? onChannels.map((i) => channelIds[i]!) : null
    staffIds.push(
      (
        await createStaff(
          tx,
          workspaceId,
          { ...fields, channel_ids: allowed },
          inTeams.map((i) => teamIds[i]!),
          now,
        )
      ).id,
    )
  }
  return { staffIds, teamIds, channelIds }
}
