import { listNumbers, type NumberRow } from '../../storage/short-links.ts'
import { parsePhone } from '../contacts/phone.ts'
import type { Context } from '../core/context.ts'
import { mayUse } from '../inbox/access.ts'
import { usable } from '../messaging/channels.ts'
import { invalidField, Problem } from '../core/problem.ts'

/** A business number as it is shown: digits, where it is a number. */
export const digitsOf = (identifier: string | null): string | null => {
  const parsed = identifier === null ? undefined : parsePhone(identifier)
  return parsed && 'digits' in parsed ? parsed.digits : identifier
}

const missing = (what: string): Problem =>
  new Problem(
    'not_found',
    `${what} is not a number of this workspace. workspace_channels lists those that you may use.`,
  )

const isReady = (number: NumberRow): boolean =>
  number.status === 'connected' && number.provider_phone_number_id !== null

/**
 * The number that a link leads to: the one asked for, by channel or by phone, else the only one that is
 * connected.
 */
export const chooseNumber = async (
  ctx: Context,
  input: { channel_id?: string | undefined; phone?: string | undefined },
): Promise<NumberRow> => {
  const numbers = (await listNumbers(ctx.tx, ctx.actor.workspace.id)).filter((number) =>
    mayUse(ctx.actor, number.id),
  )
  // The bounds of both begin at no characters (spec).
  const asked = input.channel_id?.trim() || undefined
  const phone = input.phone?.trim() || undefined
  const wanted = phone === undefined ? undefined : askedDigits(phone)
  const called = numbers.filter(
    (number) =>
      (asked === undefined || number.id === asked) &&
      (wanted === undefined || digitsOf(number.identifier) === wanted),
  )
  if (asked !== undefined && !numbers.some((number) => number.id === asked)) throw missing(`Channel ${asked}`)
  if (wanted !== undefined && called.length === 0) {
    if (asked === undefined) throw missing(`+${wanted}`)
    throw invalidField('phone', 'mismatch', `is not the number of channel ${asked}`, {
      fix: 'Send channel_id or phone, not both.',
    })
  }
  const ready = called.filter(isReady)
  if (asked === undefined && wanted === undefined && ready.length > 1) throw ambiguous(ready)
  const number = ready[0] ?? called[0]
  if (number === undefined || (ready.length === 0 && asked === undefined && wanted === undefined)) {
    throw new Problem('conflict', 'No number that you may use is connected. Connect one first.', {
      reason: 'channel_not_connected',
    })
  }
  usable(number)
  return number
}

const askedDigits = (phone: string): string => {
  const parsed = parsePhone(phone)
  if ('fault' in parsed) throw invalidField('phone', 'invalid_phone', parsed.fault, { fix: parsed.fix })
  return parsed.digits
}

const ambiguous = (ready: readonly NumberRow[]): Problem => {
  const choices = ready.map(
    (number) =>
      `${number.id} (${[number.name, digitsOf(number.identifier)].filter((part) => part !== null).join(', ')})`,
  )
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
