import type { ColumnType, Generated, Kysely } from 'kysely'

/**
 * Ids and other bigints travel as decimal strings, timestamps as ISO 8601 UTC with milliseconds, on both
 * databases.
 */
type Int8 = ColumnType<string, string | number, string | number>
type Int8Id = ColumnType<string, string | number | undefined, string | number>
type Time = string

type WorkspacesTable = {
  id: Int8Id
  name: string
  timezone: Generated<string>
  features: Generated<string[]>
  contact_limit: Int8 | null
  template_limit: Int8 | null
  created_at: Time
}
export type StaffTable = {
  workspace_id: Int8
  id: Int8Id
  name: string
  role: 'owner' | 'admin' | 'manager' | 'agent'
  enabled: Generated<boolean>
  hide_phone_numbers: Generated<boolean>
  reports: Generated<boolean>
  channel_ids: string[] | null
  created_at: Time
}
type TeamsTable = { workspace_id: Int8; id: Int8Id; name: string; created_at: Time }
type TeamMembersTable = { workspace_id: Int8; team_id: Int8; staff_id: Int8 }
export type ChannelsTable = {
  workspace_id: Int8
  id: Int8Id
  type: string
  name: string | null
  identifier: string | null
  status: 'connected' | 'disconnected' | 'inactive' | 'unknown'
  is_default: Generated<boolean>
  account_id: string | null
  account_name: string | null
  provider_channel_id: string | null
  provider_phone_number_id: string | null
  web_surface: string | null
  payment_configuration: string | null
  quality_rating: string | null
  created_at: Time
}
type ApiKeysTable = {
  workspace_id: Int8
  id: Int8Id
  hash: Uint8Array
  staff_id: Int8
  name: string | null
  scopes: string[]
  test: Generated<boolean>
  agent: Generated<boolean>
  api_version: string
  expires_at: Time | null
  revoked_at: Time | null
  last_used_at: Time | null
  created_at: Time
}
type ContactsTable = {
  workspace_id: Int8
  id: Int8Id
  name: string | null
  phone: string | null
  chatapp_user_id: string | null
  dnd: Generated<boolean>
  starred: Generated<boolean>
  email: string | null
  web_visitor_id: string | null
  name_key: string
  search: string
  created_at: Time
  updated_at: Time
  last_activity_at: Time | null
}
type ContactFactsTable = { workspace_id: Int8; contact_id: Int8; attrs: unknown }
type NamedTable = { workspace_id: Int8; id: Int8Id; name: string; name_key: string; created_at: Time }
type CustomFieldsTable = {
  workspace_id: Int8
  id: Int8Id
  key: string
  label: string
  type: string
  options: unknown
  read_only: Generated<boolean>
  visibility: string
  used: Generated<boolean>
  created_at: Time
  deleted_at: Time | null
}
export type ReplyStatus = 'incoming_no_reply' | 'outgoing_no_response'
type ConversationsTable = {
  workspace_id: Int8
  id: Int8Id
  contact_id: Int8 | null
  channel_id: Int8 | null
  state: string
  title: string | null
  episode: Generated<number>
  bot_active: Generated<boolean>
  unread_count: Generated<number>
  reply_status: ReplyStatus | null
  last_message_id: Int8 | null
  assigned_staff_id: Int8 | null
  assigned_team_id: Int8 | null
  assigned_at: Time | null
  last_inbound_at: Time | null
  free_entry_at: Time | null
  window_corrected_at: Time | null
  window_expires_at: Time | null
  reminder_at: Time | null
  sla_policy_id: Int8 | null
  first_response_due_at: Time | null
  next_response_due_at: Time | null
  resolution_due_at: Time | null
  sla_breached: Generated<boolean>
  created_at: Time
  updated_at: Time
  last_activity_at: Time | null
  activity_at: ColumnType<Time, never, never>
  facet: ColumnType<number, never, never>
}
type ConversationEpisodesTable = {
  workspace_id: Int8
  conversation_id: Int8
  n: number
  title: string | null
  opened_at: Time
  opened_by: Int8 | null
  closed_at: Time | null
  closed_by: Int8 | null
  close_reason: string | null
  first_response_at: Time | null
  resolution_due_at: Time | null
}
type ReplyWaitsTable = {
  workspace_id: Int8
  conversation_id: Int8
  since: Time
  kind: 'first_response' | 'next_response'
  episode: number
  due_at: Time | null
  ended_at: Time | null
  ended_by: Int8 | null
}
export type SlaPoliciesTable = {
  workspace_id: Int8
  id: Int8Id
  name: string
  enabled: Generated<boolean>
  channel_ids: string[] | null
  first_response_seconds: number | null
  next_response_seconds: number | null
  resolution_seconds: number | null
  hours: unknown
  created_at: Time
}
export type MessageDirection = 'inbound' | 'outbound' | 'system'
export type MessageStatus = 'received' | 'pending' | 'sent' | 'delivered' | 'read' | 'failed' | 'system'
type MessagesTable = {
  workspace_id: Int8
  id: Int8Id
  conversation_id: Int8
  channel_id: Int8 | null
  episode: Generated<number>
  direction: MessageDirection
  type: string
  status: MessageStatus
  text: string | null
  content: unknown
  note: Generated<boolean>
  staff_id: Int8 | null
  template_name: string | null
  template_language: string | null
  reply_to_id: Int8 | null
  provider_id: string | null
  reference: string | null
  error: string | null
  error_code: number | null
  created_at: Time
  sent_at: Time | null
  delivered_at: Time | null
  read_at: Time | null
  failed_at: Time | null
}
export type MediaState = 'waiting' | 'kept' | 'linked' | 'lost' | 'too_large'
type MediaTable = {
  workspace_id: Int8
  message_id: Int8
  state: MediaState
  content_type: string | null
  file_name: string | null
  size: Int8 | null
  sha256: string | null
  url: string | null
  key: string | null
  provider_media_id: string | null
  attempts: Generated<number>
  next_attempt_at: Time | null
  error: string | null
}
type TemplatesTable = {
  workspace_id: Int8
  id: Int8Id
  account_id: string | null
  account_name: string | null
  provider_id: string | null
  name: string
  language: string
  category: string | null
  sub_category: string | null
  status: string
  rejection_reason: string | null
  components: unknown
  meta_errors: unknown
  submitted_by: Int8 | null
  archived_at: Time | null
  created_at: Time
  updated_at: Time
}
type QuickMessagesTable = {
  workspace_id: Int8
  id: Int8Id
  code: string
  code_key: string
  title: string | null
  type: string
  description: string | null
  text: string | null
  media_url: string | null
  file_name: string | null
  template_name: string | null
  visibility: Generated<'private' | 'team' | 'company'>
  team_id: Int8 | null
  owner_staff_id: Int8 | null
  created_at: Time
  updated_at: Time
  search: Generated<string>
}
type ShortLinksTable = {
  workspace_id: Int8
  id: Int8Id
  channel_id: Int8
  code: string | null
  url: string | null
  message: string
  search: Generated<string>
  qr_format: 'PNG' | 'SVG' | null
  qr: Uint8Array | null
  qr_key: string | null
  called_at: Time | null
  created_by: Int8 | null
  created_at: Time
  updated_at: Time
}
type WebhookEndpointsTable = {
  workspace_id: Int8
  id: string
  url: string
  description: string | null
  status: Generated<'active' | 'disabled' | 'paused'>
  payload_format: Generated<'envelope' | 'data'>
  custom_headers: string
  signing_secret: string
  old_secret: string | null
  old_secret_until: Time | null
  consecutive_failures: Generated<number>
  failing_since: Time | null
  warned: Generated<number>
  next_probe_at: Time | null
  disabled_at: Time | null
  disabled_reason: string | null
  created_at: Time
  updated_at: Time
  deleted_at: Time | null
}
type WebhookSubscriptionsTable = {
  workspace_id: Int8
  endpoint_id: string
  event_type: string
  active: Generated<boolean>
  created_at: Time
}
export type DeliveryStatus = 'pending' | 'delivered' | 'failed' | 'dead' | 'skipped'
export type DeliveryTrigger = 'scheduled' | 'replay' | 'recover' | 'test'
type WebhookDeliveriesTable = {
  workspace_id: Int8
  id: string
  endpoint_id: string
  event_id: string
  event_type: string
  status: Generated<DeliveryStatus>
  trigger: Generated<DeliveryTrigger>
  attempts: Generated<number>
  failures: Generated<number>
  next_attempt_at: Time | null
  lease_until: Time | null
  last_response_status: number | null
  payload: unknown
  created_at: Time
  delivered_at: Time | null
}
type WebhookAttemptsTable = {
  workspace_id: Int8
  delivery_id: string
  number: number
  started_at: Time
  duration_ms: number
  response_status: number | null
  response_excerpt: string | null
  error: string | null
  trigger: DeliveryTrigger
}
export type ProviderUpdatesTable = {
  id: Int8Id
  dedupe: string
  kind: 'message' | 'status' | 'template' | 'preference' | 'number' | 'other'
  subject: string | null
  payload: unknown
  state: Generated<'waiting' | 'done' | 'unmatched' | 'failed'>
  attempts: Generated<number>
  next_attempt_at: Time
  received_at: Time
}
type ContactAttributesTable = {
  workspace_id: Int8
  contact_id: Int8
  field_id: Int8
  n: Generated<number>
  text_key: string | null
  free: Generated<boolean>
  number_value: string | null
  bool_value: boolean | null
  time_value: Time | null
}
type SavedFiltersTable = {
  workspace_id: Int8
  id: Int8Id
  kind: Generated<'contact' | 'conversation'>
  name: string
  name_key: string
  description: string | null
  owner_staff_id: Int8 | null
  filter: unknown
  created_at: Time
  updated_at: Time
}
export type BroadcastsTable = {
  workspace_id: Int8
  id: Int8Id
  name: string
  name_key: string
  status: 'scheduled' | 'running' | 'completed' | 'cancelled'
  template_name: string | null
  channel_id: Int8 | null
  scheduled_at: Time | null
  started_at: Time | null
  created_at: Time
  begins_at: ColumnType<Time, never, never>
}
export type BroadcastRecipientsTable = {
  workspace_id: Int8
  broadcast_id: Int8
  contact_id: Int8
  status: 'pending' | 'sent' | 'delivered' | 'read' | 'failed'
  responded: Generated<boolean>
  opted_out: Generated<boolean>
  sent_at: Time | null
  delivered_at: Time | null
  read_at: Time | null
  failed_at: Time | null
  responded_at: Time | null
}
/** Recipients by how far their message came; read as sums over shards. */
type BroadcastCountsTable = {
  workspace_id: Int8
  broadcast_id: Int8
  shard: number
  pending: Int8
  sent: Int8
  delivered: Int8
  read: Int8
  failed: Int8
  responded: Int8
  opted_out: Int8
}
type StaffReportsTable = {
  workspace_id: Int8
  id: Int8Id
  name: string | null
  from_day: string
  to_day: string
  timezone: string
  generated_at: Time
  rows: unknown
}
type EventsTable = {
  workspace_id: Int8
  id: string
  type: string
  xid: Generated<string>
  occurred_at: Time
  data: unknown
}
type IdempotencyTable = {
  workspace_id: Int8
  staff_id: Int8
  key: string
  operation: string
  fingerprint: Uint8Array
  state: 'running' | 'done'
  intent: unknown
  lease_until: Time | null
  status: number | null
  body: string | null
  created_at: Time
  expires_at: Time
}

/** Every table of the product. */
export type Database = {
  settings: { key: string; value: string }
  workspaces: WorkspacesTable
  staff: StaffTable
  teams: TeamsTable
  team_members: TeamMembersTable
  channels: ChannelsTable
  api_keys: ApiKeysTable
  contacts: ContactsTable
  contact_facts: ContactFactsTable
  tags: NamedTable
  contact_tags: { workspace_id: Int8; tag_id: Int8; contact_id: Int8 }
  groups: NamedTable & { emoji: string | null }
  contact_groups: { workspace_id: Int8; group_id: Int8; contact_id: Int8 }
  counters: { workspace_id: Int8; subject: string; shard: number; n: Int8 }
  custom_fields: CustomFieldsTable
  contact_attributes: ContactAttributesTable
  saved_filters: SavedFiltersTable
  conversations: ConversationsTable
  conversation_tags: { workspace_id: Int8; conversation_id: Int8; tag_id: Int8 }
  conversation_episodes: ConversationEpisodesTable
  reply_waits: ReplyWaitsTable
  sla_policies: SlaPoliciesTable
  messages: MessagesTable
  media: MediaTable
  templates: TemplatesTable
  quick_messages: QuickMessagesTable
  quick_message_favorites: { workspace_id: Int8; staff_id: Int8; quick_message_id: Int8 }
  short_links: ShortLinksTable
  provider_updates: ProviderUpdatesTable
  webhook_endpoints: WebhookEndpointsTable
  webhook_subscriptions: WebhookSubscriptionsTable
  webhook_deliveries: WebhookDeliveriesTable
  webhook_attempts: WebhookAttemptsTable
  broadcasts: BroadcastsTable
  broadcast_recipients: BroadcastRecipientsTable
  broadcast_counts: BroadcastCountsTable
  staff_reports: StaffReportsTable
  events: EventsTable
  idempotency: IdempotencyTable
  rate_buckets: { bucket: string; tokens: number; granted: number; at: Time }
}

/** A connection or a transaction; storage functions take either. */
export type Db = Kysely<Database>
