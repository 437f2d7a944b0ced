import type { Context } from '../../handler.ts'
import { listChannelNumbers, type ChannelNumberRow } from '../../../storage/messages/short-links.ts'
import { parsePhone } from '../contacts/phone.ts'
import { requireUsableChannel } from '../messaging/channels.ts'
import { invalidField, Problem } from '../../kernel/problem.ts'
import { canSeeChannel } from '../../visibility/policy.ts'

/** Returns the digits of a channel's identifier, or the identifier itself when it is not a phone number. */
export const toDigits = (identifier: string | null): string | null => {
  const parsed = identifier === null ? undefined : parsePhone(identifier)
  return parsed && 'digits' in parsed ? parsed.digits : identifier
}

const notFoundProblem = (what: string): Problem =>
  new Problem(
    'not_found',
    `${what} is not a number of this workspace. workspace_channels lists the numbers that you may use.`,
  )

const isReady = (number: ChannelNumberRow): boolean =>
  number.status === 'connected' && number.provider_phone_number_id !== null

/**
 * Returns the number that a link leads to: the one that the input names by channel or by phone, else the only
 * one that is connected. Throws 400 `channel_ambiguous` when several are, 404, and 409
 * `channel_not_connected`.
 */
export const chooseNumber = async (
  ctx: Context,
  input: { channel_id?: string | undefined; phone?: string | undefined },
): Promise<ChannelNumberRow> => {
  const numbers = (await listChannelNumbers(ctx.tx, ctx.actor.workspace.id)).filter((number) =>
    canSeeChannel(ctx.actor, number.id),
  )
  // Both may be empty strings.
  const channelId = input.channel_id?.trim() || undefined
  const phone = input.phone?.trim() || undefined
  const digits = phone === undefined ? undefined : requireDigits(phone)
  const matching = numbers.filter(
    (number) =>
      (channelId === undefined || number.id === channelId) &&
      (digits === undefined || toDigits(number.identifier) === digits),
  )
  if (channelId !== undefined && !numbers.some((number) => number.id === channelId))
    throw notFoundProblem(`Channel ${channelId}`)
  if (digits !== undefined && matching.length === 0) {
    if (channelId === undefined) throw notFoundProblem(`+${digits}`)
    throw invalidField('phone', 'mismatch', `is not the number of channel ${channelId}`, {
      fix: 'Send channel_id or phone, not both.',
    })
  }
  const ready = matching.filter(isReady)
  const isNamed = channelId !== undefined || digits !== undefined
  if (!isNamed && ready.length > 1) throw ambiguousChannel(ready)
  const number = ready[0] ?? matching[0]
  if (number === undefined || (ready.length === 0 && !isNamed)) {
    throw new Problem('conflict', 'No number that you may use is connected. Connect one first.', {
      reason: 'channel_not_connected',
    })
  }
  requireUsableChannel(number)
  return number
}

const requireDigits = (phone: string): string => {
  const parsed = parsePhone(phone)
  if ('error' in parsed) throw invalidField('phone', 'invalid_phone', parsed.error, { fix: parsed.fix })
  return parsed.digits
}

const ambiguousChannel = (ready: readonly ChannelNumberRow[]): Problem => {
  const choices = ready.map(({ id, name, identifier }) => {
    const labels = [name, toDigits(identifier)].filter((label) => label !== null)
    return `${id} (${labels.join(', ')})`
  })
  return invalidField(
    'channel_id',
    'required',
    `is required, because several numbers are connected: ${choices.join('; ')}`,
    {
      reason: 'channel_ambiguous',
      fix: 'Send channel_id or phone.',
      allowed: ready.map((number) => number.id),
    },
  )
}
