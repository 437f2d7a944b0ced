import { z } from 'zod'
import { ChannelHealth } from './channel-health.ts'
import { Id, listWithTotal, page, Search } from './fields.ts'
import { defineOperation } from './operation.ts'

export const channelTypes = [
  'chatapp',
  'photoapp',
  'socialchat',
  'web',
  'videoapp',
  'messengerapp',
  'email',
  'sms',
  'custom',
] as const

/**
 * Types without a reply window of a provider: a channel of these can be bridged, with a URL that replies are
 * delivered to.
 */
export const ownChannelTypes = ['web', 'custom', 'messengerapp', 'email', 'sms'] as const
export const channelStatuses = ['connected', 'disconnected', 'inactive', 'unknown'] as const

const Channel = z
  .object({
    id: Id.describe('Workspace channel id; `channel_id` when sending.'),
    provider_channel_id: z
      .string()
      .nullable()
      .describe('The same channel at the messaging provider; null when not linked.'),
    name: z.string().nullable().describe('Display name.'),
    type: z.string().nullable().describe('Channel type, such as `chatapp` or `web`.'),
    identifier: z.string().nullable().describe('Business phone number, username or page.'),
    is_default: z.boolean().describe('Used when a send names no channel.'),
    status: z.enum(channelStatuses).describe('Connection state.'),
    web_surface: z.string().nullable().describe('`web`, `ios` or `android` for web chat channels.'),
    provider_phone_number_id: z
      .string()
      .nullable()
      .describe("The number's id at the provider; not a secret."),
    payment_configuration: z.string().nullable().describe('Name of the payment configuration.'),
    quality_rating: z
      .string()
      .nullable()
      .describe('Quality rating by the provider; null when not available.'),
    health: ChannelHealth.nullable().describe('Health at the provider; null for channels without a number.'),
  })
  .meta({ id: 'Channel' })

export const listChannels = defineOperation({
  name: 'workspace_channels',
  cli: 'channels list',
  routes: ['GET /v1/channels'],
  since: '2026-10-01',
  stability: 'stable',
  summary: 'List the channels of the workspace',
  description: 'In order of creation. Staff limited to some channels see only those.',
  slim: ['id', 'name', 'type', 'identifier', 'is_default', 'status', 'health.status', 'health.reason'],
  words:
    'channels, WhatsApp numbers, connected phone numbers, our numbers, sender, lines, inboxes, ' +
    'connection, health',
  scope: 'mcp:read',
  view: [
    { path: 'id' },
    { path: 'name' },
    { path: 'type' },
    { path: 'status' },
    { path: 'health.status', title: 'health' },
    { path: 'health.reason', title: 'reason' },
    { path: 'identifier' },
    { path: 'is_default', title: 'default' },
    { path: 'quality_rating', title: 'quality' },
  ],
  names: { fields: { channel_id: 'channel' }, by: ['name'], beside: 'identifier' },
  input: z.object({
    type: z.enum(channelTypes).optional().describe('Only channels of this type.'),
    search: Search('Name or number'),
    ...page,
  }),
  output: z.object({
    ...listWithTotal(Channel),
    warnings: z.array(z.string()).describe('Problems, such as a default channel that is not connected.'),
  }),
  errors: [],
  examples: [
    {
      title: 'Channels of the messaging app',
      input: { type: 'chatapp' },
      output: {
        data: [
          {
            id: '1',
            provider_channel_id: '100200300',
            name: 'Main line',
            type: 'chatapp',
            identifier: '15550100001',
            is_default: true,
            status: 'connected',
            web_surface: null,
            provider_phone_number_id: '100200300',
            payment_configuration: null,
            quality_rating: 'GREEN',
            health: {
              status: 'ok',
              reason: null,
              provider_code: null,
              messaging_limit: 'TIER_1K',
              since: null,
              until: null,
            },
          },
        ],
        total: 1,
        next_cursor: null,
        warnings: [],
      },
    },
  ],
})
