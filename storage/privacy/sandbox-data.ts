import type { Database } from '../database.ts'
import type { PersonalData } from './personal-data-types.ts'

const NO_LIMIT = 'no limit; sandbox only'
const NOT_REAL = { not: 'of the emulated provider, which has no real customers' }

type SandboxTable = Extract<keyof Database, `sandbox_${string}`>

/** What the tables of the emulated provider hold of customers (storage/privacy/personal-data.ts). */
export const sandboxPersonalData: {
  [Name in SandboxTable]: PersonalData<keyof Database[Name] & string> | 'none'
} = {
  sandbox_customers: {
    columns: ['user_id', 'wa_id', 'name'],
    onDelete: 'kept',
    erase: 'remove',
    exported: NOT_REAL,
    until: NO_LIMIT,
  },
  sandbox_messages: {
    columns: ['user_id', 'wa_id', 'reference', 'body'],
    onDelete: 'kept',
    erase: 'remove',
    exported: NOT_REAL,
    until: NO_LIMIT,
  },
  sandbox_media: {
    columns: ['bytes', 'sha256'],
    onDelete: 'kept',
    erase: 'remove',
    exported: NOT_REAL,
    until: 'the file expires; sandbox only',
  },
  sandbox_faults: {
    columns: ['recipient'],
    onDelete: 'kept',
    erase: 'remove',
    exported: NOT_REAL,
    until: 'the fault is used up; sandbox only',
  },
  sandbox_updates: {
    columns: ['value'],
    onDelete: 'kept',
    erase: 'remove',
    exported: NOT_REAL,
    until: 'delivered, at most 7 days; sandbox only',
  },
  sandbox_links: 'none',
  sandbox_numbers: 'none',
  sandbox_settings: 'none',
  sandbox_subscriptions: 'none',
  sandbox_templates: 'none',
  sandbox_uploads: 'none',
}
