import type { Database } from './database.ts'

/**
 * What an erasure does to a column of rows that stay. `cleared`: empties it, or takes out what is about the person.
 * `pseudonym`: leaves the id of the contact, which leads nowhere. `expires`: leaves it until the row goes, soon.
 */
type Treatment = 'cleared' | 'pseudonym' | 'expires'

/** What a table holds of customers. */
export type PersonalData<Column extends string = string> = {
  /** The columns that can say something about one customer, or hold the id of the contact. No other can. */
  columns: readonly Column[]
  /** What the deletion of a contact does to its rows: removes them, takes the contact's id out, or nothing. */
  onDelete: 'removed' | 'unlinked' | 'kept'
  /** What an erasure of the person does: it removes rows, or treats each of `columns` of rows that figures need. */
  erase: 'remove' | Readonly<Partial<Record<Column, Treatment>>>
  /** How long rows stay that no deletion removes. */
  until: string
}

type Declaration<Name extends keyof Database> = PersonalData<keyof Database[Name] & string> | 'none'

const WITH_CONTACT = 'the contact is deleted'
const FOR_EVER = 'no limit'
const SANDBOX = 'no limit; sandbox only'

/**
 * What every table holds of customers: a table that is not here fails tests/storage/personal-data.test.ts, and so
 * does a column in which that test finds a customer and which is not named. `none` is for what staff configure, and
 * for figures. docs/privacy.md shows this list.
 */
export const personalData: { [Name in keyof Database]?: Declaration<Name> } = {
  contacts: {
    columns: [
      ...(['id', 'name', 'name_key', 'search', 'phone', 'phone_key', 'provider_phone', 'email'] as const),
      ...(['chatapp_user_id', 'web_visitor_id', 'external_id'] as const),
      ...(['dnd', 'starred', 'last_activity_at'] as const),
    ],
    onDelete: 'removed',
    erase: 'remove',
    until: WITH_CONTACT,
  },
  contact_facts: {
    columns: ['contact_id', 'attrs', 'metadata'],
    onDelete: 'removed',
    erase: 'remove',
    until: WITH_CONTACT,
  },
  contact_attributes: {
    columns: ['contact_id', 'text_key', 'number_value', 'bool_value', 'time_value'],
    onDelete: 'removed',
    erase: 'remove',
    until: WITH_CONTACT,
  },
  contact_tags: {
    columns: ['contact_id', 'tag_id'],
    onDelete: 'removed',
    erase: 'remove',
    until: WITH_CONTACT,
  },
  contact_groups: {
    columns: ['contact_id', 'group_id'],
    onDelete: 'removed',
    erase: 'remove',
    until: WITH_CONTACT,
  },
  consent_changes: {
    columns: ['contact_id', 'purpose', 'channel', 'state', 'source', 'proof', 'at'],
    onDelete: 'removed',
    erase: 'remove',
    until: WITH_CONTACT,
  },
  consents: {
    columns: ['contact_id', 'purpose', 'channel', 'state', 'at'],
    onDelete: 'removed',
    erase: 'remove',
    until: WITH_CONTACT,
  },
  contact_merges: {
    columns: ['contact_id', 'into_id', 'before', 'after'],
    onDelete: 'removed',
    erase: 'remove',
    until: '7 days; where a merged id leads to, until the contact is deleted',
  },
  contact_former_phones: {
    columns: ['line_key', 'contact_id'],
    onDelete: 'removed',
    erase: 'remove',
    until: '7 days',
  },
  channel_customers: {
    columns: ['contact_id', 'customer_id'],
    onDelete: 'removed',
    erase: 'remove',
    until: WITH_CONTACT,
  },
  conversations: {
    columns: ['contact_id', 'title'],
    onDelete: 'unlinked',
    erase: { contact_id: 'cleared', title: 'cleared' },
    until: FOR_EVER,
  },
  contact_exchanges: {
    columns: ['contact_id'],
    onDelete: 'unlinked',
    erase: { contact_id: 'cleared' },
    until: FOR_EVER,
  },
  contact_exchange_progress: 'none',
  conversation_episodes: {
    columns: ['title', 'close_reason'],
    onDelete: 'kept',
    erase: { title: 'cleared', close_reason: 'cleared' },
    until: FOR_EVER,
  },
  conversation_tags: { columns: ['tag_id'], onDelete: 'kept', erase: 'remove', until: FOR_EVER },
  messages: {
    columns: ['text', 'content', 'provider_id', 'reference', 'external_id', 'error'],
    onDelete: 'kept',
    erase: {
      text: 'cleared',
      content: 'cleared',
      provider_id: 'cleared',
      reference: 'cleared',
      external_id: 'cleared',
      error: 'cleared',
    },
    until: FOR_EVER,
  },
  message_search: {
    columns: ['keys'],
    onDelete: 'kept',
    erase: { keys: 'cleared' },
    until: FOR_EVER,
  },
  message_search_progress: 'none',
  message_reactions: { columns: ['emoji'], onDelete: 'kept', erase: 'remove', until: FOR_EVER },
  media: {
    columns: ['file_name', 'sha256', 'url', 'key', 'provider_media_id', 'error'],
    onDelete: 'kept',
    erase: {
      file_name: 'cleared',
      sha256: 'cleared',
      url: 'cleared',
      key: 'cleared',
      provider_media_id: 'cleared',
      error: 'cleared',
    },
    until: FOR_EVER,
  },
  channel_deliveries: {
    columns: ['body', 'error'],
    onDelete: 'kept',
    erase: 'remove',
    until: 'the delivery succeeds or expires',
  },
  broadcast_recipients: {
    columns: ['contact_id', 'country', 'error'],
    onDelete: 'kept',
    erase: { contact_id: 'pseudonym', country: 'cleared', error: 'cleared' },
    until: FOR_EVER,
  },
  saved_filters: {
    columns: ['filter', 'name', 'name_key', 'description'],
    onDelete: 'kept',
    erase: { filter: 'cleared', name: 'cleared', name_key: 'cleared', description: 'cleared' },
    until: 'the filter is deleted',
  },
  events: {
    columns: ['data'],
    onDelete: 'kept',
    erase: { data: 'cleared' },
    until: 'WCRM_EVENT_RETENTION_DAYS; no limit unless set',
  },
  webhook_deliveries: {
    columns: ['payload'],
    onDelete: 'kept',
    erase: { payload: 'cleared' },
    until: 'WCRM_WEBHOOK_RETENTION_DAYS, once it ended',
  },
  webhook_attempts: {
    columns: ['response_excerpt', 'error'],
    onDelete: 'kept',
    erase: { response_excerpt: 'cleared', error: 'cleared' },
    until: 'WCRM_WEBHOOK_RETENTION_DAYS, and up to a week',
  },
  provider_updates: {
    columns: ['dedupe', 'subject', 'payload'],
    onDelete: 'kept',
    erase: { dedupe: 'expires', subject: 'expires', payload: 'cleared' },
    until: '8 days',
  },
  idempotency: {
    columns: ['key', 'fingerprint', 'intent', 'body'],
    onDelete: 'kept',
    erase: { key: 'cleared', fingerprint: 'cleared', intent: 'cleared', body: 'cleared' },
    until: '24 hours; a call whose outcome is open, until it is known',
  },
  audit_log: {
    columns: ['target_id', 'changes'],
    onDelete: 'kept',
    erase: { target_id: 'pseudonym', changes: 'cleared' },
    until: 'WCRM_AUDIT_RETENTION_DAYS',
  },
  approvals: {
    columns: [
      ...(['contact_id', 'input', 'secrets', 'digest', 'idempotency_key'] as const),
      ...(['reason', 'preview', 'plan', 'note', 'edited', 'outcome'] as const),
    ],
    onDelete: 'kept',
    erase: {
      contact_id: 'pseudonym',
      input: 'cleared',
      secrets: 'cleared',
      digest: 'cleared',
      idempotency_key: 'cleared',
      reason: 'cleared',
      preview: 'cleared',
      plan: 'cleared',
      note: 'cleared',
      edited: 'cleared',
      outcome: 'cleared',
    },
    until: '30 days after its end',
  },
  bulk_jobs: {
    columns: ['digest'],
    onDelete: 'kept',
    erase: { digest: 'expires' },
    until: '2 hours, of plans alone',
  },
  bulk_job_batches: {
    columns: ['record_ids', 'calls', 'failures', 'undo'],
    onDelete: 'kept',
    erase: { record_ids: 'pseudonym', calls: 'cleared', failures: 'cleared', undo: 'cleared' },
    until: '30 days after its job ended',
  },
  erasures: {
    columns: ['contact_id', 'subject'],
    onDelete: 'kept',
    erase: { contact_id: 'pseudonym', subject: 'cleared' },
    until: 'what the person is found by: the erasure is done',
  },
  contact_views: { columns: ['subject'], onDelete: 'kept', erase: 'remove', until: '60 hours' },
  contact_reads: {
    columns: ['contacts'],
    onDelete: 'kept',
    erase: { contacts: 'cleared' },
    until: '2 days',
  },
  phone_budgets: { columns: ['phones'], onDelete: 'kept', erase: { phones: 'cleared' }, until: '2 days' },
  sandbox_customers: {
    columns: ['user_id', 'wa_id', 'name'],
    onDelete: 'kept',
    erase: 'remove',
    until: SANDBOX,
  },
  sandbox_messages: {
    columns: ['user_id', 'wa_id', 'reference', 'body'],
    onDelete: 'kept',
    erase: 'remove',
    until: SANDBOX,
  },
  sandbox_media: {
    columns: ['bytes', 'sha256'],
    onDelete: 'kept',
    erase: 'remove',
    until: 'the file expires; sandbox only',
  },
  sandbox_faults: {
    columns: ['recipient'],
    onDelete: 'kept',
    erase: 'remove',
    until: 'the fault is used up; sandbox only',
  },
  sandbox_updates: {
    columns: ['value'],
    onDelete: 'kept',
    erase: 'remove',
    until: 'delivered, at most 7 days; sandbox only',
  },

  agent_sends: 'none',
  agent_sessions: 'none',
  api_keys: 'none',
  broadcast_counts: 'none',
  broadcasts: 'none',
  broadcast_sends: 'none',
  channel_health: 'none',
  channel_secrets: 'none',
  channel_tokens: 'none',
  channels: 'none',
  contact_budgets: 'none',
  counters: 'none',
  custom_fields: 'none',
  event_consumers: 'none',
  groups: 'none',
  login_codes: 'none',
  oauth_grants: 'none',
  oauth_records: 'none',
  provider_account_checks: 'none',
  provider_accounts: 'none',
  quick_message_favorites: 'none',
  quick_messages: 'none',
  rate_buckets: 'none',
  reply_waits: 'none',
  sandbox_links: 'none',
  sandbox_numbers: 'none',
  sandbox_settings: 'none',
  sandbox_subscriptions: 'none',
  sandbox_templates: 'none',
  sandbox_uploads: 'none',
  servers: 'none',
  settings: 'none',
  short_links: 'none',
  sla_policies: 'none',
  staff: 'none',
  staff_reports: 'none',
  tags: 'none',
  team_members: 'none',
  teams: 'none',
  templates: 'none',
  webhook_endpoints: 'none',
  webhook_subscriptions: 'none',
  workspaces: 'none',
}
