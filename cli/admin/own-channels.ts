import { ownChannelTypes } from '../../catalog/channels.ts'
import { createChannelToken, hashApiKey } from '../../server/api-keys.ts'
import { addSigningSecret } from '../../server/channels/secrets.ts'
import { Problem } from '../../server/core/problem.ts'
import { checkWebhookUrl, createWebhookGuard } from '../../server/webhooks/guard.ts'
import { createSigningSecret, MAX_SIGNING_SECRETS } from '../../server/webhooks/secrets.ts'
import { type AdminChannelRow, listAllChannels } from '../../storage/workspace/admin.ts'
import { addChannelToken, lockChannelSecrets, upsertChannelSecrets } from '../../storage/channels/secrets.ts'
import type { Db } from '../../storage/database.ts'
import type { Sealer } from '../../server/sealer.ts'
import { usageError } from '../error.ts'
import type { CommandResult } from '../result.ts'
import { notFoundError, parseId, stringFlag } from './flags.ts'
import { overlapFlag } from './keys.ts'
import { openSealer } from './sealing.ts'
import type { AdminFlags, AdminSession, AdminVerb } from './verb.ts'

// Bridged channels: their URL, and the secrets that they share with their bridge.

/** Parses `--url`, a public https address; null for `none`. */
export const urlFlag = async (
  session: AdminSession,
  flags: AdminFlags,
): Promise<string | null | undefined> => {
  const text = stringFlag(flags, 'url')?.trim()
  if (text === undefined || text === 'none') return text && null
  try {
    return (await checkWebhookUrl(text, createWebhookGuard(session.config.webhookAllow))).url.href
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    const [fault] = error.extras.errors ?? []
    throw usageError(
      fault ? `--url ${fault.detail}.` : error.message,
      '--url',
      fault?.fix ?? 'Try again when a name server answers.',
    )
  }
}

/** Throws unless a channel of this type can have this URL. */
export const requireOwnType = (type: string, url: string | null | undefined): void => {
  if (url === null || url === undefined || (ownChannelTypes as readonly string[]).includes(type)) return
  throw usageError(
    `A channel of type ${type} has no URL of its own: its messages go through the messaging provider.`,
    '--url',
    `Channels of these types can: ${ownChannelTypes.join(', ')}.`,
  )
}

export const noSuchChannelError = (id: string) =>
  notFoundError(`The workspace has no channel ${id}.`, '<id>', 'List them with: wcrm admin channels list')

/** Returns a channel. Throws when the workspace has none with this id. */
export const findChannel = async (db: Db, workspaceId: string, id: string): Promise<AdminChannelRow> => {
  const found = (await listAllChannels(db, workspaceId)).find((channel) => channel.id === id)
  if (!found) throw noSuchChannelError(id)
  return found
}

/** What a new bridge is told once. */
type BridgeSecrets = { signing_secret: string; token: string; inbound_path: string; statuses_path: string }

/** Gives a channel with a URL its secrets; undefined when it has some. */
export const ensureBridgeSecrets = async (
  tx: Db,
  webhookSealer: Sealer,
  workspaceId: string,
  channelId: string,
): Promise<BridgeSecrets | undefined> => {
  if (await lockChannelSecrets(tx, workspaceId, channelId)) return undefined
  const [secret, token] = [createSigningSecret(), createChannelToken()]
  const key = { workspace_id: workspaceId, channel_id: channelId }
  await upsertChannelSecrets(tx, addSigningSecret({ webhookSealer }, key, secret)!)
  await addChannelToken(tx, workspaceId, channelId, hashApiKey(token), 0)
  return {
    signing_secret: secret,
    token,
    inbound_path: `/channels/${channelId}/inbound`,
    statuses_path: `/channels/${channelId}/statuses`,
  }
}

const noBridgeError = (id: string) =>
  usageError(
    `Channel ${id} has no bridge yet.`,
    '<id>',
    `Give it a URL, which creates its secret and its token: wcrm admin channels update ${id} --url URL`,
  )

const overlapOption = [
  '--overlap <duration>',
  'how long the old one stays valid: 24h (default), 7d, or 0',
] as const

const rotateSecret = async (
  session: AdminSession,
  flags: AdminFlags,
  argument: string,
): Promise<CommandResult> => {
  const id = parseId(argument, '<id>')
  const overlapMs = overlapFlag(flags)
  const db = await session.db()
  const workspaceId = (await session.workspace()).id
  const webhookSealer = await openSealer(session, 'webhooks')
  const secret = createSigningSecret()
  const now = new Date().toISOString()
  const oldUntil = new Date(Date.parse(now) + overlapMs).toISOString()
  await db.transaction().execute(async (tx) => {
    await findChannel(tx, workspaceId, id)
    const row = await lockChannelSecrets(tx, workspaceId, id)
    if (!row) throw noBridgeError(id)
    const rotated = addSigningSecret({ webhookSealer }, row, secret, { row, until: oldUntil, now })
    if (!rotated)
      throw usageError(
        `${MAX_SIGNING_SECRETS} secrets of channel ${id} are still valid, which is the maximum.`,
        '--overlap',
        'Wait until one has expired.',
      )
    await upsertChannelSecrets(tx, rotated)
  })
  return { id, signing_secret: secret, old_secret_valid_until: overlapMs === 0 ? null : oldUntil }
}

const rotateToken = async (
  session: AdminSession,
  flags: AdminFlags,
  argument: string,
): Promise<CommandResult> => {
  const id = parseId(argument, '<id>')
  const overlapMs = overlapFlag(flags)
  const db = await session.db()
  const workspaceId = (await session.workspace()).id
  const token = createChannelToken()
  const now = new Date().toISOString()
  const oldUntil = new Date(Date.parse(now) + overlapMs).toISOString()
  await db.transaction().execute(async (tx) => {
    await findChannel(tx, workspaceId, id)
    if (!(await lockChannelSecrets(tx, workspaceId, id))) throw noBridgeError(id)
    await addChannelToken(tx, workspaceId, id, hashApiKey(token), overlapMs / 1000)
  })
  return { id, token, old_token_valid_until: overlapMs === 0 ? null : oldUntil }
}

export const rotationVerbs: readonly AdminVerb[] = [
  {
    name: 'rotate-secret',
    summary: "Replace the secret that signs deliveries to a channel's URL; it is shown only once",
    scoped: true,
    argument: ['<id>', 'channel'],
    options: [overlapOption],
    run: rotateSecret,
  },
  {
    name: 'rotate-token',
    summary: "Replace the token with which a channel's bridge posts; it is shown only once",
    scoped: true,
    argument: ['<id>', 'channel'],
    options: [overlapOption],
    run: rotateToken,
  },
]
