import type { SandboxCustomer } from '../storage/customers.ts'
import type { SandboxMessage } from '../storage/messages.ts'
import type { SandboxNumber } from '../storage/numbers.ts'
import type { SandboxTemplate } from '../storage/templates.ts'
import type { NewSandboxUpdate } from '../storage/updates.ts'
import { addMs, toUnixSeconds } from './call.ts'
import { statusError } from './errors.ts'

type UpdateCustomer = Pick<SandboxCustomer, 'user_id' | 'wa_id' | 'name'> & { username?: string }

const HOUR_MS = 3_600_000

const formatContact = ({ user_id, wa_id, name, username }: UpdateCustomer) => ({
  profile: { ...(name === null ? {} : { name }), ...(username === undefined ? {} : { username }) },
  ...(wa_id === null ? {} : { wa_id }),
  user_id,
})

const numberFields = (number: SandboxNumber, people: readonly UpdateCustomer[]) => ({
  messaging_product: 'whatsapp',
  metadata: { display_phone_number: number.digits, phone_number_id: number.id },
  contacts: people.map(formatContact),
})

/** The update of a customer's message. `part`: the message without its envelope. */
export const inboundUpdate = (
  number: SandboxNumber,
  customer: UpdateCustomer,
  message: { id: string; at: string; part: Record<string, unknown> },
): NewSandboxUpdate => ({
  account_id: number.account_id,
  field: 'messages',
  message_id: message.id,
  value: {
    ...numberFields(number, [customer]),
    messages: [
      {
        ...(customer.wa_id === null ? {} : { from: customer.wa_id }),
        from_user_id: customer.user_id,
        id: message.id,
        timestamp: toUnixSeconds(message.at),
        ...message.part,
      },
    ],
  },
})

/** The update of a message that the business wrote in the phone app of its number. */
export const echoUpdate = (
  number: SandboxNumber,
  customer: UpdateCustomer,
  message: { id: string; at: string; part: Record<string, unknown> },
): NewSandboxUpdate => ({
  account_id: number.account_id,
  field: 'smb_message_echoes',
  message_id: message.id,
  value: {
    ...numberFields(number, [customer]),
    message_echoes: [
      {
        from: number.digits,
        ...(customer.wa_id === null ? {} : { to: customer.wa_id }),
        to_user_id: customer.user_id,
        id: message.id,
        timestamp: toUnixSeconds(message.at),
        ...message.part,
      },
    ],
  },
})

export type Billing = { kind: 'regular' | 'free_customer_service' | 'free_entry_point'; category: string }

/** The update of the delivery of a business's message. `code`: why it failed. */
export const statusUpdate = (
  number: SandboxNumber,
  customer: UpdateCustomer,
  message: Pick<SandboxMessage, 'id' | 'wa_id' | 'user_id' | 'reference'>,
  {
    status,
    at,
    code,
    details,
    billing,
    delayMs = 0,
  }: {
    status: 'sent' | 'delivered' | 'read' | 'failed'
    at: string
    code?: number
    details?: string | undefined
    billing?: Billing
    delayMs?: number
  },
): NewSandboxUpdate => ({
  account_id: number.account_id,
  field: 'messages',
  message_id: message.id,
  status,
  delayMs,
  value: {
    ...numberFields(number, [customer]),
    statuses: [
      {
        id: message.id,
        status,
        timestamp: toUnixSeconds(at),
        ...(message.wa_id === null ? {} : { recipient_id: message.wa_id }),
        recipient_user_id: message.user_id,
        ...(message.reference === null ? {} : { biz_opaque_callback_data: message.reference }),
        ...(billing && status !== 'read' ? billingFields(message.id, at, status, billing) : {}),
        ...(code === undefined ? {} : { errors: [statusError(code, details)] }),
      },
    ],
  },
})

/** Since version 24 `read` has neither; only `sent` has the end of the conversation. */
const billingFields = (id: string, at: string, status: string, { kind, category }: Billing) => ({
  conversation: {
    id: Buffer.from(id).toString('hex').slice(-32),
    ...(status === 'sent' ? { expiration_timestamp: toUnixSeconds(addMs(at, 24 * HOUR_MS)) } : {}),
    origin: { type: kind === 'free_entry_point' ? 'referral_conversion' : category },
  },
  pricing: { billable: kind === 'regular', pricing_model: 'PMP', type: kind, category },
})

/** Returns a JSON number where it is exact, as the provider formats template ids in webhooks. */
const toNumericId = (id: string): number | string =>
  /^\d{1,16}$/.test(id) && Number.isSafeInteger(Number(id)) ? Number(id) : id

const templateFields = (t: SandboxTemplate) => ({
  message_template_id: toNumericId(t.id),
  message_template_name: t.name,
  message_template_language: t.language,
})

/** Why a template has its status: the reviewer's explanation, or what is said of a pause. */
export type StatusGrounds = {
  rejection_info?: { reason: string; recommendation: string }
  other_info?: { title: string; description: string }
}

/** The update of a template's status. */
export const templateUpdate = (
  t: SandboxTemplate,
  event: string,
  grounds: StatusGrounds = {},
): NewSandboxUpdate => ({
  account_id: t.account_id,
  field: 'message_template_status_update',
  value: {
    event,
    ...templateFields(t),
    reason: event === 'REJECTED' ? t.rejected_reason : 'NONE',
    message_template_category: t.category,
    ...grounds,
  },
})

export const categoryUpdate = (t: SandboxTemplate, previous: string): NewSandboxUpdate => ({
  account_id: t.account_id,
  field: 'template_category_update',
  value: { ...templateFields(t), previous_category: previous, new_category: t.category },
})

/** The update of a customer who stops or resumes marketing messages. */
export const preferenceUpdate = (
  number: SandboxNumber,
  customer: UpdateCustomer,
  choice: 'stop' | 'resume',
  at: string,
): NewSandboxUpdate => ({
  account_id: number.account_id,
  field: 'user_preferences',
  value: {
    ...numberFields(number, [customer]),
    user_preferences: [
      {
        ...(customer.wa_id === null ? {} : { wa_id: customer.wa_id }),
        user_id: customer.user_id,
        detail: `User requested to ${choice} marketing messages`,
        category: 'marketing_messages',
        value: choice,
        timestamp: Number(toUnixSeconds(at)),
      },
    ],
  },
})

export const qualityUpdate = (number: SandboxNumber, previous: string): NewSandboxUpdate => ({
  account_id: number.account_id,
  field: 'phone_number_quality_update',
  value: {
    display_phone_number: number.digits,
    event: isBetterRating(previous, number.quality_rating) ? 'UNFLAGGED' : 'FLAGGED',
    current_limit: number.messaging_limit,
  },
})

/** The update of how many customers a number may write to. */
export const limitUpdate = (number: SandboxNumber, previous: string): NewSandboxUpdate => ({
  account_id: number.account_id,
  field: 'phone_number_quality_update',
  value: {
    display_phone_number: number.digits,
    event: limitSize(number.messaging_limit) > limitSize(previous) ? 'UPGRADE' : 'DOWNGRADE',
    old_limit: previous,
    current_limit: number.messaging_limit,
    max_daily_conversations_per_business: number.messaging_limit,
  },
})

const limitSize = (tier: string): number => {
  if (tier === 'TIER_UNLIMITED') return Infinity
  const [, count, thousands] = /^TIER_(\d+)(K?)$/.exec(tier) ?? []
  return Number(count ?? 0) * (thousands === 'K' ? 1000 : 1)
}

/** The update of what happens to an account as a whole. */
export const accountUpdate = (accountId: string, value: Record<string, unknown>): NewSandboxUpdate => ({
  account_id: accountId,
  field: 'account_update',
  value,
})

const RATINGS = ['RED', 'YELLOW', 'GREEN']
const isBetterRating = (before: string, after: string): boolean =>
  RATINGS.indexOf(after) > RATINGS.indexOf(before)
