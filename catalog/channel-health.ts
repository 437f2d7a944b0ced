import { z } from 'zod'
import { Timestamp } from './fields.ts'

const channelHealthStatuses = ['ok', 'limited', 'restricted', 'disconnected'] as const

export const ChannelHealth = z
  .object({
    status: z
      .enum(channelHealthStatuses)
      .describe(
        '`limited`: throttled for a time; `restricted`: some sends are refused; `disconnected`: all are, ' +
          'until an administrator acts.',
      ),
    reason: z.string().nullable().describe('Why, such as `token_revoked` or `throughput`; null when ok.'),
    provider_code: z.int().nullable().describe("The provider's error code, if any."),
    messaging_limit: z.string().nullable().describe('Customers it may write to in a day, such as `TIER_1K`.'),
    since: Timestamp.nullable().describe('Since when it has this status.'),
    until: Timestamp.nullable().describe('When a temporary limit ends.'),
  })
  .meta({ id: 'ChannelHealth' })

/** Events name the rating here too. */
export const HealthQuality = z.string().nullable().describe('Quality rating by the provider.')
