import { randomInt } from 'node:crypto'
import { channelStatuses, channelTypes } from '../../catalog/channels.ts'
import type { Config } from '../../server/config.ts'
import { parsePhone } from '../../server/contacts/phone.ts'
import { type ChannelFields, createChannel, listAllChannels, updateChannel } from '../../storage/admin.ts'
import { usageError } from '../error.ts'
import {
  parseId,
  notFoundError,
  nameFlag,
  nothingToChangeError,
  choiceFlag,
  omitUndefined,
  stringFlag,
} from './flags.ts'
import type { AdminFlags, AdminGroup } from './verb.ts'

const accountFlag = (flags: AdminFlags): { account_id?: string; account_name?: string } => {
  const account = stringFlag(flags, 'account')
  if (account === undefined) return {}
  const [, id, name] = /^([^:]+):(.+)$/.exec(account.trim()) ?? []
  if (id === undefined || name === undefined)
    throw usageError(
      `--account must be ID:NAME, not "${account}".`,
      '--account',
      'For example --account "100200:Main account".',
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

const channelFields = (flags: AdminFlags): ChannelFields =>
  omitUndefined({
    type: choiceFlag(flags, 'type', channelTypes),
    name: nameFlag(flags),
    identifier: identifierFlag(flags),
    status: choiceFlag(flags, 'status', channelStatuses),
    ...accountFlag(flags),
    provider_channel_id: nameFlag(flags, 'providerChannelId'),
    provider_phone_number_id: nameFlag(flags, 'providerPhoneNumberId'),
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
  ['--account <id:name>', 'business account of the channel at the provider'],
  ['--provider-channel-id <id>', 'id of the channel at the provider'],
  [
    '--provider-phone-number-id <id>',
    'id of the phone number at the provider (default without a provider: one for the sandbox)',
  ],
  ['--default', 'make it the default channel for sends that name none'],
] as const

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
        const fields = channelFields(flags)
        return await createChannel(
          await session.db(),
          (await session.workspace()).id,
          {
            status: 'connected',
            ...sandboxPhoneNumberId(session.config, fields),
            ...fields,
            type: fields.type!,
          },
          session.now,
        )
      },
    },
    {
      name: 'list',
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
        const fields = channelFields(flags)
        if (Object.keys(fields).length === 0) throw nothingToChangeError()
        const row = await updateChannel(await session.db(), (await session.workspace()).id, id, fields)
        if (!row)
          throw notFoundError(
            `The workspace has no channel ${id}.`,
            '<id>',
            'List them with: wcrm admin channels list',
          )
        return row
      },
    },
  ],
}
