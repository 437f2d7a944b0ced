import type { Customer } from '../../../storage/sandbox/customers.ts'
import type { SandboxMessage } from '../../../storage/sandbox/messages.ts'
import type { SandboxNumber } from '../../../storage/sandbox/numbers.ts'
import type { SandboxTemplate } from '../../../storage/sandbox/templates.ts'
import type { NewUpdate } from '../../../storage/sandbox/updates.ts'
import { later, unixOf } from './call.ts'
import { statusError } from './errors.ts'

type Person = Pick<Customer, 'user_id' | 'wa_id' | 'name'>

const HOUR_MS = 3_600_000

const contact = ({ user_id, wa_id, name }: Person) => ({
  profile: { name: name ?? wa_id ?? 'Customer' },
  ...(wa_id === null ? {} : { wa_id }),
  user_id,
})

const aboutNumber = (number: SandboxNumber, people: readonly Person[]) => ({
  messaging_product: 'whatsapp',
  metadata: { display_phone_number: number.digits, phone_number_id: number.id },
  contacts: people.map(contact),
})

/** A customer's message; `part`: its type and the object of that name, and what else it has. */
export const inboundUpdate = (
  number: SandboxNumber,
  customer: Person,
  message: { id: string; at: string; part: Record<string, unknown> },
): NewUpdate => ({
  account_id: number.account_id,
  field: 'messages',
  message_id: message.id,
  value: {
    ...aboutNumber(number, [customer]),
    messages: [
      {
        ...(customer.wa_id === null ? {} : { from: customer.wa_id }),
        from_user_id: customer.user_id,
        id: message.id,
        timestamp: unixOf(message.at),
        ...message.part,
      },
    ],
  },
})

export type Billing = { kind: 'regular' | 'free_customer_service' | 'free_entry_point'; category: string }

/** What became of a business's message. `code`: why it failed. */
export const statusUpdate = (
  number: SandboxNumber,
  customer: Person,
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
): NewUpdate => ({
  account_id: number.account_id,
  field: 'messages',
  message_id: message.id,
  status,
  delayMs,
  value: {
    ...aboutNumber(number, [customer]),
    statuses: [
      {
        id: message.id,
        status,
        timestamp: unixOf(at),
        ...(message.wa_id === null ? {} : { recipient_id: message.wa_id }),
        recipient_user_id: message.user_id,
        ...(message.reference === null ? {} : { biz_opaque_callback_data: message.reference }),
        ...(billing && status !== 'read' ? billed(message.id, at, status, billing) : {}),
        ...(code === undefined ? {} : { errors: [statusError(code, details)] }),
      },
    ],
  },
})

/** Since version 24 `read` carries neither; only `sent` says when the conversation ends. */
const billed = (id: string, at: string, status: string, { kind, category }: Billing) => ({
  conversation: {
    id: Buffer.from(id).toString('hex').slice(-32),
    ...(status === 'sent' ? { expiration_timestamp: unixOf(later(at, 24 * HOUR_MS)) } : {}),
    origin: { type: kind === 'free_entry_point' ? 'referral_conversion' : category },
  },
  pricing: { billable: kind === 'regular', pricing_model: 'PMP', type: kind, category },
})

/** A JSON number where it is exact, as the provider writes template ids in webhooks. */
const numeric = (id: string): number | string =>
  /^\d{1,16}$/.test(id) && Number.isSafeInteger(Number(id)) ? Number(id) : id

const aboutTemplate = (t: SandboxTemplate) => ({
  message_template_id: numeric(t.id),
  message_template_name: t.name,
  message_template_language: t.language,
})

/** `rejection`: the reviewer's words. */
export const templateUpdate = (
  t: SandboxTemplate,
  event: string,
  rejection?: { reason: string; recommendation: string },
): NewUpdate => ({
  account_id: t.account_id,
  field: 'message_template_status_update',
  value: {
    event,
    ...aboutTemplate(t),
    reason: event === 'REJECTED' ? t.rejected_reason : 'NONE',
    message_template_category: t.category,
    ...(rejection ? { rejection_info: rejection } : {}),
  },
})

export const categoryUpdate = (t: SandboxTemplate, previous: string): NewUpdate => ({
  account_id: t.account_id,
  field: 'template_category_update',
  value: { ...aboutTemplate(t), previous_category: previous, new_category: t.category },
})

/** A customer who stops, or resumes, marketing messages. */
export const preferenceUpdate = (
  number: SandboxNumber,
  customer: Person,
  choice: 'stop' | 'resume',
  at: string,
): NewUpdate => ({
  account_id: number.account_id,
  field: 'user_preferences',
  value: {
    ...aboutNumber(number, [customer]),
    user_preferences: [
      {
        ...(customer.wa_id === null ? {} : { wa_id: customer.wa_id }),
        user_id: customer.user_id,
        detail: `User requested to ${choice} marketing messages`,
        category: 'marketing_messages',
        value: choice,
        timestamp: Number(unixOf(at)),
      },
    ],
  },
})

export const qualityUpdate = (number: SandboxNumber, previous: string): NewUpdate => ({
  account_id: number.account_id,
  field: 'phone_number_quality_update',
  value: {
    display_phone_number: number.digits,
    event: better(previous, number.quality_rating) ? 'UNFLAGGED' : 'FLAGGED',
    current_limit: 'TIER_1K',
  },
})

const RATINGS = ['RED', 'YELLOW', 'GREEN']
const better = (before: string, after: string): boolean => RATINGS.indexOf(after) > RATINGS.indexOf(before)
