import { randomInt } from 'node:crypto'
import { channelStatuses, channelTypes } from '../../catalog/channels.ts'
import type { Config } from '../../server/config.ts'
import { parsePhone } from '../../server/contacts/phone.ts'
import { type ChannelFields, createChannel, listAllChannels, updateChannel } from '../../storage/admin.ts'
import { usage } from '../fault.ts'
import { idOf, missing, nameOf, nothingSaid, oneOf, said, text } from './flags.ts'
import type { Flags, Group } from './verb.ts'

const accountOf = (flags: Flags): { account_id?: string; account_name?: string } => {
  const account = text(flags, 'account')
  if (account === undefined) return {}
  const [, id, name] = /^([^:]+):(.+)$/.exec(account.trim()) ?? []
  if (id === undefined || name === undefined)
    throw usage(
      `--account takes ID:NAME, not "${account}".`,
      '--account',
      'For example --account "100200:Main account".',
    )
  return { account_id: id.trim(), account_name: name.trim() }
}

/** A phone number in the form that all others have; anything else as it is. */
const identifierOf = (flags: Flags): string | undefined => {
  const given = nameOf(flags, 'identifier')
  if (given === undefined || !/^[\d\s+().\-/]+$/.test(given)) return given
  const phone = parsePhone(given)
  return 'digits' in phone ? phone.digits : given
}

const fieldsOf = (flags: Flags): ChannelFields =>
  said({
    type: oneOf(flags, 'type', channelTypes),
    name: nameOf(flags),
    identifier: identifierOf(flags),
    status: oneOf(flags, 'status', channelStatuses),
    ...accountOf(flags),
    provider_channel_id: nameOf(flags, 'providerChannelId'),
    provider_phone_number_id: nameOf(flags, 'providerPhoneNumberId'),
    is_default: flags['default'] === true ? true : undefined,
  }) as ChannelFields

/** The sandbox stands in where no provider is configured, and knows a number by the id that we give it. */
const sandboxNumber = ({ providerUrl }: Config, fields: ChannelFields): ChannelFields =>
  providerUrl === undefined && fields.type === 'chatapp' && fields.provider_phone_number_id === undefined
    ? { provider_phone_number_id: String(randomInt(990_000_000_000, 999_999_999_999)) }
    : {}

const basics = [
  ['--type <type>', `one of: ${channelTypes.join(', ')}`],
  ['--name <name>', 'display name'],
  ['--identifier <text>', 'business phone number, username or page'],
] as const

const options = [
  ['--status <status>', `one of: ${channelStatuses.join(', ')}`],
  ['--account <id:name>', 'business account at the provider that it belongs to'],
  ['--provider-channel-id <id>', 'the same channel at the provider'],
  [
    '--provider-phone-number-id <id>',
    "the number's id at the provider; a chatapp channel is given one for the sandbox where no provider is configured",
  ],
  ['--default', 'used when a send names no channel; the one before loses the mark'],
] as const

export const channels: Group = {
  name: 'channels',
  summary: 'Channels that messages come and go by',
  verbs: [
    {
      name: 'create',
      summary: 'Add a channel',
      scoped: true,
      required: basics,
      options: options.map(
        ([flags, about]) =>
          [flags, flags.startsWith('--status') ? `${about} (default: connected)` : about] as const,
      ),
      run: async (session, flags) => {
        const fields = fieldsOf(flags)
        return await createChannel(
          await session.db(),
          (await session.workspace()).id,
          { status: 'connected', ...sandboxNumber(session.config, fields), ...fields, type: fields.type! },
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
      summary: 'Change a channel; what is not given stays',
      scoped: true,
      argument: ['<id>', 'channel'],
      options: [...basics, ...options],
      run: async (session, flags, argument) => {
        const id = idOf(argument, '<id>')
        const fields = fieldsOf(flags)
        if (Object.keys(fields).length === 0) throw nothingSaid()
        const row = await updateChannel(await session.db(), (await session.workspace()).id, id, fields)
        if (!row)
          throw missing(
            `The workspace has no channel ${id}.`,
            '<id>',
            'wcrm admin channels list shows those it has.',
          )
        return row
      },
    },
  ],
}
