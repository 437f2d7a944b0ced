import { FORMER_PHONE_DAYS } from '../../catalog/contacts/change-phone.ts'
import { UNDO_DAYS } from '../../catalog/contacts/merge.ts'
import type { RetainedKind } from '../../storage/work/retention.ts'
import { RECORD_TTL_MS } from '../kernel/idempotency.ts'
import type { RetentionSettings } from './partitions.ts'
import { FIXED_HOURS } from './retention-periods.ts'

/** Rows of one kind: how long they are kept, and how they go. */
type DataKind = {
  /** The first one holds a row for each; the others what belongs to it. */
  tables: readonly string[]
  /** What they are counted from. */
  since: string
  /** Hours, or the setting that says it in days. */
  keeps: number | keyof RetentionSettings
  /** Partitions go as a whole, and rows of those that are not over yet in batches. */
  goes: 'partitions' | 'partitions and batches' | 'batches'
  /** Its rows hold the time when they are due, in place of that since which they are kept. */
  holdsEnd?: true
  /** Its rows are in the tables of another kind, which shows how many and how large they are. */
  within?: string
}

/** Every kind of data that goes by itself, of the tables in which rows stay for an hour or longer. */
export const retainedKinds: Readonly<Record<RetainedKind, DataKind>> = {
  events: {
    tables: ['events'],
    since: 'written',
    keeps: 'eventRetentionDays',
    goes: 'partitions and batches',
  },
  webhook_deliveries: {
    tables: ['webhook_deliveries'],
    since: 'created; only those that ended',
    keeps: 'webhookRetentionDays',
    goes: 'batches',
  },
  webhook_attempts: {
    tables: ['webhook_attempts'],
    since: 'its delivery was created',
    keeps: 'webhookRetentionDays',
    goes: 'partitions',
  },
  audit_log: {
    tables: ['audit_log'],
    since: 'written',
    keeps: 'auditRetentionDays',
    goes: 'partitions and batches',
  },
  idempotency: {
    tables: ['idempotency'],
    since: 'answered',
    keeps: RECORD_TTL_MS / 3_600_000,
    goes: 'batches',
    holdsEnd: true,
  },
  provider_updates: {
    tables: ['provider_updates'],
    since: 'received',
    keeps: FIXED_HOURS.provider_updates,
    goes: 'batches',
  },
  jobs: {
    tables: ['bulk_jobs', 'bulk_job_batches'],
    since: 'ended',
    keeps: FIXED_HOURS.jobs,
    goes: 'batches',
  },
  plans: {
    tables: ['bulk_jobs', 'bulk_job_batches'],
    since: 'expired',
    keeps: FIXED_HOURS.plans,
    goes: 'batches',
    within: 'jobs',
  },
  approvals: { tables: ['approvals'], since: 'ended', keeps: FIXED_HOURS.approvals, goes: 'batches' },
  merges: { tables: ['contact_merges'], since: 'merged', keeps: UNDO_DAYS * 24, goes: 'batches' },
  former_phones: {
    tables: ['contact_former_ids'],
    since: 'changed',
    keeps: FORMER_PHONE_DAYS * 24,
    goes: 'batches',
  },
  filter_memberships: {
    tables: ['filter_memberships', 'filter_members'],
    since: 'recorded',
    keeps: FIXED_HOURS.filter_memberships,
    goes: 'batches',
  },
  exports: { tables: ['exports'], since: 'created', keeps: FIXED_HOURS.exports, goes: 'batches' },
  export_files: {
    tables: ['export_parts'],
    since: 'finished',
    keeps: FIXED_HOURS.export_files,
    goes: 'batches',
    holdsEnd: true,
  },
  phone_budgets: {
    tables: ['phone_budgets'],
    since: 'its day began',
    keeps: FIXED_HOURS.phone_budgets,
    goes: 'batches',
  },
  contact_views: {
    tables: ['contact_budgets', 'contact_views'],
    since: 'its day began',
    keeps: FIXED_HOURS.contact_views,
    goes: 'batches',
  },
  contact_reads: {
    tables: ['contact_reads'],
    since: 'its hour began',
    keeps: FIXED_HOURS.contact_reads,
    goes: 'batches',
  },
}

/** What stays until somebody deletes or erases it. */
export const lastingKinds: Readonly<Record<string, readonly string[]>> = {
  contacts: ['contacts', 'contact_attributes', 'contact_facts', 'contact_tags', 'contact_groups'],
  conversations: ['conversations', 'conversation_episodes'],
  messages: ['messages', 'media'],
}
