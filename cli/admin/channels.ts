import { randomInt } from 'node:crypto'
import { channelStatuses, channelTypes, ownChannelTypes } from '../../catalog/channels.ts'
import type { Config } from '../../server/config.ts'
import { parsePhone } from '../../server/domains/contacts/phone.ts'
import {
  type AdminChannelRow,
  type ChannelFields,
  createChannel,
  listAllChannels,
  updateChannel,
} from '../../storage/workspace/admin.ts'
import type { Db } from '../../storage/database.ts'
import type { ProviderOwnerError } from '../../storage/channels/provider-owners.ts'
import { usageError } from '../error.ts'
import type { CommandResult } from '../result.ts'
import {
  parseId,
  nameFlag,
  nothingToChangeError,
  choiceFlag,
  omitUndefined,
  stringFlag,
  notFoundError,
} from './flags.ts'
import { openSealer } from './sealing.ts'
import type { AdminFlags, AdminGroup, AdminSession, AdminVerb } from './verb.ts'
import { createChannelToken, hashApiKey } from '../../server/api-keys.ts'
import { addSigningSecret } from '../../server/domains/channels/secrets.ts'
import { Problem } from '../../server/kernel/problem.ts'
import { checkWebhookUrl, createWebhookGuard } from '../../server/outbound-guard.ts'
import { createSigningSecret, MAX_SIGNING_SECRETS } from '../../server/domains/webhooks/secrets.ts'
import { addChannelToken, lockChannelSecrets, upsertChannelSecrets } from '../../storage/channels/secrets.ts'
import type { Sealer } from '../../server/sealer.ts'
import { overlapFlag } from './keys.ts'

// Bridged channels: their URL, and the secrets that they share with their bridge.

/** Parses `--url`, a public https address; null for `none`. */
const urlFlag = async (session: AdminSession, flags: AdminFlags): Promise<string | null | undefined> => {
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
const requireOwnType = (type: string, url: string | null | undefined): void => {
  if (url === null || url === undefined || (ownChannelTypes as readonly string[]).includes(type)) return
  throw usageError(
    `A channel of type ${type} has no URL of its own: its messages go through the messaging provider.`,
    '--url',
    `Channels of these types can: ${ownChannelTypes.join(', ')}.`,
  )
}

const noSuchChannelError = (id: string) =>
  notFoundError(`The workspace has no channel ${id}.`, '<id>', 'List them with: wcrm admin channels list')

/** Returns a channel. Throws when the workspace has none with this id. */
const findChannel = async (db: Db, workspaceId: string, id: string): Promise<AdminChannelRow> => {
  const found = (await listAllChannels(db, workspaceId)).find((channel) => channel.id === id)
  if (!found) throw noSuchChannelError(id)
  return found
}

/** What a new bridge is told once. */
type BridgeSecrets = { signing_secret: string; token: string; inbound_path: string; statuses_path: string }

/** Gives a channel with a URL its secrets; undefined when it has some. */
const ensureBridgeSecrets = async (
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

const rotationVerbs: readonly AdminVerb[] = [
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

const accountFlag = (flags: AdminFlags): Pick<ChannelFields, 'account_id' | 'account_name'> => {
  const account = stringFlag(flags, 'account')
  if (account === undefined) return {}
  if (account.trim() === 'none') return { account_id: null, account_name: null }
  const [, id, name] = /^([^:]+):(.+)$/.exec(account.trim()) ?? []
  if (id === undefined || name === undefined)
    throw usageError(
      `--account must be ID:NAME or none, not "${account}".`,
      '--account',
      'For example --account "100200:Main account".',
    )
  // The account of the channels of a workspace that have none of their own, in the sandbox.
  if (/^workspace\d+$/.test(id.trim()))
    throw usageError(
      `--account ${id.trim()} is reserved: the sandbox uses such names itself.`,
      '--account',
      "Give the account's id at the provider.",
    )
  return { account_id: id.trim(), account_name: name.trim() }
}

/** Normalizes an identifier that is a phone number; returns any other text unchanged. */
const identifierFlag = (flags: AdminFlags): string | undefined => {
  const identifier = nameFlag(flags, 'identifier')
  if (identifier === undefined || !/^[\d\s+().\-/]+$/.test(identifier)) return identifier
  const phone = parsePhone(identifier)
  return 'digits' in phone ? phone.digits : identifier
}

const numberFlag = (flags: AdminFlags): string | null | undefined => {
  const number = nameFlag(flags, 'providerPhoneNumberId')
  return number === 'none' ? null : number
}

/** Explains that the number or the account at the provider is taken, and how to free it. */
export const explainOwner = (error: unknown): unknown => {
  const { code, message, owner } = error as Partial<ProviderOwnerError>
  if (code !== 'PROVIDER_OWNER' || !owner) return error
  const flag = owner.kind === 'number' ? '--provider-phone-number-id' : '--account'
  const belongsTo = owner.kind === 'number' ? 'one channel' : 'one workspace'
  return usageError(
    `${message} What customers and the provider send to it goes to ${belongsTo} only.`,
    flag,
    `Give it another ${owner.kind}, or free this one first: ` +
      (owner.id === null
        ? `wcrm admin accounts remove ${owner.value} --workspace ${owner.workspace_id}`
        : `wcrm admin channels update ${owner.id} --workspace ${owner.workspace_id} ${flag} none`),
  )
}

const explainingOwners = async <T>(work: Promise<T>): Promise<T> => {
  try {
    return await work
  } catch (error) {
    throw explainOwner(error)
  }
}

const channelFields = (flags: AdminFlags): ChannelFields =>
  omitUndefined({
    type: choiceFlag(flags, 'type', channelTypes),
    name: nameFlag(flags),
    identifier: identifierFlag(flags),
    status: choiceFlag(flags, 'status', channelStatuses),
    ...accountFlag(flags),
    provider_channel_id: nameFlag(flags, 'providerChannelId'),
    provider_phone_number_id: numberFlag(flags),
    is_default: flags['default'] === true ? true : undefined,
  }) as ChannelFields

/** Without a configured provider, the sandbox identifies a phone number by the id that is generated here. */
const sandboxPhoneNumberId = ({ providerUrl }: Config, fields: ChannelFields): ChannelFields =>
  providerUrl === undefined && fields.type === 'chatapp' && fields.provider_phone_number_id === undefined
    ? { provider_phone_number_id: String(randomInt(990_000_000_000, 999_999_999_999)) }
    : {}

const identityFlags = [
  ['--type <type>', `one of: ${channelTypes.join(', ')}`],
  ['--name <name>', 'display name'],
  ['--identifier <text>', 'business phone number, username or page'],
] as const

const optionalFlags = [
  ['--status <status>', `one of: ${channelStatuses.join(', ')}`],
  [
    '--account <id:name>',
    'business account of the channel at the provider, of this workspace alone; or none',
  ],
  ['--provider-channel-id <id>', 'id of the channel at the provider'],
  [
    '--provider-phone-number-id <id>',
    'id of the phone number at the provider, of this channel alone; or none (default without a provider: ' +
      'one for the sandbox)',
  ],
  ['--default', 'make it the default channel for sends that name none'],
  [
    '--url <url>',
    `public https address that replies are delivered to, on channels of type ${ownChannelTypes.join(', ')}; or ` +
      'none. The first one creates the secret and the token of the bridge, shown only then (docs/channels.md)',
  ],
] as const

/** Writes a channel, and the secrets of its bridge when this gives it its first URL. */
const writeChannel = async (
  session: AdminSession,
  url: string | null | undefined,
  write: (db: Db) => Promise<AdminChannelRow>,
): Promise<CommandResult> => {
  const db = await session.db()
  if (url === undefined || url === null) return await explainingOwners(write(db))
  const workspaceId = (await session.workspace()).id
  const sealer = await openSealer(session, 'webhooks')
  return await db.transaction().execute(async (tx) => {
    const row = await explainingOwners(write(tx))
    return { ...row, ...(await ensureBridgeSecrets(tx, sealer, workspaceId, row.id)) }
  })
}

export const channelsGroup: AdminGroup = {
  name: 'channels',
  summary: 'Channels for messages',
  verbs: [
    {
      name: 'create',
      summary: 'Add a channel',
      scoped: true,
      required: identityFlags,
      options: optionalFlags.map(
        ([flags, about]) =>
          [flags, flags.startsWith('--status') ? `${about} (default: connected)` : about] as const,
      ),
      run: async (session, flags) => {
        const url = await urlFlag(session, flags)
        const fields = omitUndefined({ ...channelFields(flags), url })
        requireOwnType(fields.type!, url)
        const id = (await session.workspace()).id
        const channel = {
          status: 'connected' as const,
          ...sandboxPhoneNumberId(session.config, fields),
          ...fields,
          type: fields.type!,
        }
        return await writeChannel(session, url, (db) => createChannel(db, id, channel, session.now))
      },
    },
    {
      name: 'list',
      access: 'read',
      summary: 'List the channels',
      scoped: true,
      columns: [
        'id',
        'type',
        'name',
        'identifier',
        'status',
        'is_default',
        'account_id',
        'account_name',
        'provider_channel_id',
        'provider_phone_number_id',
        'url',
      ],
      run: async (session) => ({
        data: await listAllChannels(await session.db(), (await session.workspace()).id),
      }),
    },
    {
      name: 'update',
      summary: 'Update a channel; omitted values stay',
      scoped: true,
      argument: ['<id>', 'channel'],
      options: [...identityFlags, ...optionalFlags],
      run: async (session, flags, argument) => {
        const id = parseId(argument, '<id>')
        const url = await urlFlag(session, flags)
        const fields = omitUndefined({ ...channelFields(flags), url })
        if (Object.keys(fields).length === 0) throw nothingToChangeError()
        const workspaceId = (await session.workspace()).id
        if (fields.url !== undefined || fields.type !== undefined) {
          const before = await findChannel(await session.db(), workspaceId, id)
          requireOwnType(fields.type ?? before.type, url === undefined ? before.url : url)
        }
        return await writeChannel(session, url, async (db) => {
          const row = await updateChannel(db, workspaceId, id, fields)
          if (!row) throw noSuchChannelError(id)
          return row
        })
      },
    },
    ...rotationVerbs,
  ],
}
