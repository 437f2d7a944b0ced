import type { OperationName } from '../../catalog/index.ts'
import { listConversationTargets, listFilters, NO_ID } from './visibility-filters.ts'
import { HIDDEN_ID, HIDDEN_KEYS, type TwinWorld } from './visibility-world.ts'

type Inputs = readonly Record<string, unknown>[]

/**
 * The phone of the first contact of each twin. A change that names one tells whether a contact has it, which a
 * daily budget bounds (server/guards/phone-budget.ts).
 */
export const GUESSES = ['+15557391101', '+15552861101'] as const
const ALL_TIME = { from: '2026-09-01', to: '2026-10-05' }

/** Inputs with an id that both twins have, one that is hidden, and one that is absent. */
const withEachId = (field: string, id: string, rest: Record<string, unknown> = {}): Inputs =>
  [id, HIDDEN_ID, NO_ID].map((each) => ({ [field]: each, ...rest }))

const ofConversation = (world: TwinWorld, rest: Record<string, unknown> = {}): Inputs =>
  withEachId('conversation_id', world.ids['conversations']![0]!, rest)

const none = (): Inputs => []
const searched = (): Inputs => [{}, { search: 'e' }, { search: 'secret' }, { limit: 1 }]

/**
 * Inputs for each operation beside those of its examples, most of all about what is hidden. A new operation
 * needs an entry: what could a viewer send to learn of what is hidden from them?
 */
export const probes: Readonly<Record<OperationName, (world: TwinWorld) => Inputs>> = {
  workspace_channels: () => [...searched(), { type: 'chatapp' }, { search: '15550100009' }],
  workspace_whoami: () => [{}],
  workspace_list_staff: searched,
  workspace_list_teams: searched,
  crm_search_contacts: (world) => [
    { detail: 'compact' },
    { detail: 'ids', tag_ids: ['secret'] },
    {},
    { detail: 'full' },
    { query: 'zebra' },
    { query: 'secret' },
    { query: '1555' },
    { query: '٧٣٩' },
    ...['createdAt', 'updatedAt', 'name', 'phoneNumber', 'id'].map((field) => ({
      sort: { field, direction: 'asc' },
      limit: 2,
    })),
    ...listFilters(world).map((filter) => ({ filter })),
    ...world.ids['saved_filters']!.map((id) => ({ saved_filter_id: id })),
  ],
  crm_count_contacts: (world) => [{}, ...listFilters(world).map((filter) => ({ filter }))],
  crm_check_filter: (world) => listFilters(world).map((filter) => ({ filter })),
  crm_upsert_contact: () => [
    { phone: GUESSES[0], name: 'Guess' },
    { phone: GUESSES[1] },
    { phone: '+15550199999', attributes: { [HIDDEN_KEYS[1]]: 'x' } },
    { phone: '+15550199999', attributes: { secret_level: 'top' } },
    { phone: '+15550199998', tags: ['secret'] },
  ],
  crm_get_contact: ({ ids, lonerId }) => [
    ...ids['contacts']!.map((id) => ({ contact_id: id })),
    { contact_id: lonerId },
    { contact_id: NO_ID },
  ],
  crm_update_contact: ({ lonerId }) => [
    { contact_id: lonerId, attributes: { secret_level: 'top' } },
    { contact_id: lonerId, attributes: { [HIDDEN_KEYS[1]]: 'x', [HIDDEN_KEYS[0]]: 'x' } },
    { contact_id: lonerId, name: 'Loner' },
  ],
  crm_delete_contact: ({ lonerId }) => [{ contact_id: lonerId }, { contact_id: NO_ID }],
  crm_change_phone: ({ lonerId }) => [
    ...GUESSES.map((phone) => ({ contact_id: lonerId, phone, dry_run: true })),
    { contact_id: NO_ID, phone: '+15550199996' },
    { contact_id: lonerId, phone: '+15550199996' },
  ],
  crm_find_duplicates: () => [{}, { limit: 1 }],
  crm_merge_contacts: ({ ids, lonerId }) => [
    ...ids['contacts']!.flatMap((id) => [
      { contact_id: lonerId, other_contact_id: id },
      { contact_id: id, other_contact_id: lonerId, prefer_other: ['phone', 'name'] },
    ]),
    { contact_id: lonerId, other_contact_id: NO_ID },
    ...HIDDEN_KEYS.map((key) => ({
      contact_id: lonerId,
      other_contact_id: ids['contacts']![0]!,
      prefer_other: [`attributes.${key}`],
    })),
    { contact_id: lonerId, other_contact_id: ids['contacts']![0]!, prefer_other: ['metadata'] },
  ],
  crm_undo_contact_merge: ({ lonerId }) => [{ merged_contact_id: lonerId }, { merged_contact_id: NO_ID }],
  crm_erase_contact: ({ lonerId }) => [
    { contact_id: lonerId, dry_run: true },
    { contact_id: NO_ID },
    { contact_id: lonerId },
  ],
  crm_list_erasures: () => [{}, { state: 'done' }],
  crm_get_erasure: ({ ids }) => [
    ...ids['erasures']!.map((id) => ({ erasure_id: id })),
    { erasure_id: NO_ID },
  ],
  crm_export_person: ({ lonerId }) => [
    { contact_id: lonerId, dry_run: true },
    { contact_id: NO_ID },
    { contact_id: lonerId },
  ],
  crm_export_contacts: (world) =>
    [...listFilters(world), { id: { eq: world.lonerId } }].map((filter) => ({ filter, dry_run: true })),
  crm_list_exports: () => [{}, { state: 'done' }],
  crm_get_export: ({ ids }) => [...ids['exports']!.map((id) => ({ export_id: id })), { export_id: NO_ID }],
  crm_record_consent: ({ lonerId }) => [
    { contact_id: lonerId, state: 'withdrawn', proof: 'Said so' },
    { contact_id: NO_ID, state: 'granted' },
  ],
  crm_list_consents: ({ lonerId }) => [{ contact_id: lonerId }, { contact_id: NO_ID }],
  crm_update_contacts: (world) => [
    { contact_ids: [world.lonerId, NO_ID], attributes: { mobile: GUESSES[0] } },
    { contact_ids: [world.lonerId], attributes: { [HIDDEN_KEYS[0]]: '7' } },
    ...listFilters(world).map((filter) => ({ filter, starred: true })),
  ],
  crm_delete_contacts: (world) => [
    ...listFilters(world).map((filter) => ({ filter, dry_run: true })),
    { contact_ids: [world.lonerId, NO_ID] },
  ],
  crm_tag_contacts: (world) => [
    { contact_ids: [world.lonerId, NO_ID], tags: ['secret'] },
    ...listFilters(world).map((filter) => ({ filter, tags: ['secret'] })),
  ],
  crm_untag_contacts: (world) => [
    { contact_ids: [world.lonerId], tags: ['secret'] },
    ...world.ids['saved_filters']!.map((id) => ({ saved_filter_id: id, tags: ['secret'] })),
  ],
  jobs_list: () => [{}],
  jobs_get: ({ ids }) => [...ids['bulk_jobs']!.map((id) => ({ job_id: id })), { job_id: NO_ID }],
  jobs_list_failures: ({ ids }) => [...ids['bulk_jobs']!.map((id) => ({ job_id: id })), { job_id: NO_ID }],
  jobs_pause: ({ ids }) => ids['bulk_jobs']!.map((id) => ({ job_id: id })),
  jobs_resume: ({ ids }) => ids['bulk_jobs']!.map((id) => ({ job_id: id })),
  jobs_cancel: ({ ids }) => ids['bulk_jobs']!.map((id) => ({ job_id: id })),
  jobs_undo: ({ ids }) => ids['bulk_jobs']!.map((id) => ({ job_id: id })),
  crm_import_contacts: () => [
    {
      rows: [
        { phone: GUESSES[0], name: 'Guess' },
        { phone: GUESSES[1] },
        { phone: '+15550199997', attributes: { secret_level: 'top' } },
      ],
    },
  ],
  crm_list_tags: searched,
  crm_list_groups: searched,
  crm_create_group: () => [{ name: 'secret' }],
  crm_delete_group: none,
  crm_add_contacts_to_group: none,
  crm_remove_contacts_from_group: none,
  crm_list_custom_fields: () => [...searched(), { type: 'select' }],
  crm_create_custom_field: () => [{ key: 'secret_level', type: 'text' }],
  crm_update_custom_field: ({ ids }) => [
    ...withEachId('custom_field_id', ids['custom_fields']![0]!, { label: 'New' }),
  ],
  crm_delete_custom_field: ({ ids }) => withEachId('custom_field_id', ids['custom_fields']![0]!),
  crm_list_saved_filters: searched,
  crm_get_saved_filter: ({ allFilters }) => allFilters.map((id) => ({ saved_filter_id: id })),
  crm_create_saved_filter: (world) =>
    listFilters(world).map((filter) => ({ name: 'Probe', filter, count: true, dry_run: true })),
  crm_update_saved_filter: ({ allFilters, ids }) => [
    ...allFilters.map((id) => ({ saved_filter_id: id, name: 'Mine', count: true, dry_run: true })),
    {
      saved_filter_id: ids['saved_filters']![0],
      filter: { conversations: { some: { channelId: { eq: HIDDEN_ID } } } },
    },
  ],
  crm_track_saved_filter: ({ allFilters }) =>
    allFilters.map((id) => ({ saved_filter_id: id, tracked: true })),
  crm_delete_saved_filter: none,
  crm_rename_tag: none,
  crm_merge_tags: none,
  crm_delete_tag: none,
  crm_update_group: none,
  messaging_send_template: ({ lonerId, mainChannel }) => {
    const template = { name: 'order_update', language: 'en_US', body: ['4711'] }
    return [
      { contact_id: lonerId, template },
      { contact_id: lonerId, template, channel_id: mainChannel },
      { contact_id: lonerId, template, channel_id: HIDDEN_ID },
      { contact_id: lonerId, template, channel_id: NO_ID },
      { phone: GUESSES[0], template },
      { phone: GUESSES[1], template },
    ]
  },
  messaging_send_bulk: (world) => {
    const template = { name: 'order_update', language: 'en_US', body: [{ field: 'name', fallback: 'you' }] }
    const of = (value: object) => ({ ...template, body: [value] })
    return [
      { contact_ids: [world.lonerId, NO_ID], template },
      { contact_ids: [world.lonerId], template, channel_id: HIDDEN_ID },
      { contact_ids: [world.lonerId], template, channel_id: NO_ID },
      { contact_ids: [world.lonerId], template: of({ field: 'phone', fallback: 'you' }) },
      { contact_ids: [world.lonerId], template: of({ attribute: 'mobile', fallback: 'you' }) },
      { contact_ids: [world.lonerId], template: of({ attribute: HIDDEN_KEYS[0], fallback: 'you' }) },
      { contact_ids: [world.lonerId], template, hours: { from: '00:00', to: '24:00' } },
      ...listFilters(world).map((filter) => ({ filter, template })),
    ]
  },
  messaging_send_reply: (world) => [
    ...ofConversation(world, { text: 'Hi' }),
    ...ofConversation(world, { quick_message_id: HIDDEN_ID }),
    { conversation_id: world.ids['conversations']![0], text: 'Hi', reply_to_id: HIDDEN_ID },
  ],
  messaging_get_message: ({ ids }) => [
    ...ids['messages']!.map((id) => ({ message_id: id })),
    { message_id: HIDDEN_ID },
    { message_id: NO_ID },
  ],
  messaging_get_media: ({ ids }) => withEachId('message_id', ids['messages']![0]!),
  inbox_list_messages: (world) => ofConversation(world),
  inbox_search_messages: ({ ids, mainChannel }) => [
    { query: 'hello' },
    { query: 'hello', limit: 1 },
    { query: 'order', direction: 'note' },
    { query: '1555' },
    { query: 'hello', channel_id: mainChannel },
    { query: 'hello', channel_id: HIDDEN_ID },
    ...ids['contacts']!.map((id) => ({ query: 'hello', contact_id: id })),
    ...(ids['conversations'] ?? []).map((id) => ({ query: 'hello', conversation_id: id })),
  ],
  messaging_list_templates: searched,
  messaging_create_template: () => [],
  messaging_update_template: none,
  messaging_lint_template: none,
  messaging_get_template: ({ ids }) => withEachId('template_id', ids['templates']![0]!),
  messaging_sync_templates: none,
  messaging_archive_templates: ({ ids }) => [{ ids: [ids['templates']![1], HIDDEN_ID, NO_ID] }],
  messaging_upload_template_sample: none,
  messaging_list_quick_messages: () => [
    {},
    { query: 'secret' },
    { visibility: 'team' },
    { visibility: 'private' },
  ],
  messaging_create_quick_message: () => [
    { code: 'secret-private', text: 'Mine' },
    { code: 'SECRET-TEAM', text: 'Mine', visibility: 'company' },
  ],
  messaging_update_quick_message: ({ ids }) => [
    ...withEachId('quick_message_id', ids['quick_messages']![0]!, { title: 'New' }),
    { quick_message_id: ids['quick_messages']![0], code: 'secret-team' },
    { quick_message_id: ids['quick_messages']![0], code: 'secret-private' },
  ],
  messaging_delete_quick_message: ({ ids }) => withEachId('quick_message_id', ids['quick_messages']![0]!),
  messaging_list_short_links: ({ mainChannel }) => [
    ...searched(),
    { channel_id: HIDDEN_ID },
    { channel_id: NO_ID },
    { channel_id: mainChannel },
  ],
  messaging_create_short_link: ({ mainChannel }) => [
    { message: 'Secret hello', channel_id: mainChannel },
    { message: 'Secret hello', channel_id: HIDDEN_ID },
    { message: 'Secret hello', channel_id: NO_ID },
    { message: 'Secret hello', phone: '15550100009' },
    { message: 'Secret hello', phone: '15550100008' },
    { message: 'Ambiguous' },
  ],
  messaging_get_short_link: ({ ids }) => withEachId('short_link_id', ids['short_links']![0]!),
  messaging_delete_short_link: ({ ids }) => withEachId('short_link_id', ids['short_links']![0]!),
  messaging_list_broadcasts: () => [...searched(), { status: 'completed' }],
  messaging_get_broadcast: ({ ids }) => withEachId('broadcast_id', ids['broadcasts']![0]!),
  messaging_reschedule_broadcast: ({ ids }) =>
    withEachId('broadcast_id', ids['broadcasts']![0]!, { scheduled_at: '2030-01-01T09:00' }),
  messaging_list_broadcast_recipients: ({ ids }) => [
    ...withEachId('broadcast_id', ids['broadcasts']![0]!),
    ...withEachId('broadcast_id', ids['broadcasts']![0]!, { message_status: 'sent' }),
  ],
  inbox_queue: ({ mainChannel }) => [
    {},
    { limit: 1 },
    { channel_id: mainChannel },
    { channel_id: HIDDEN_ID },
    { assigned_staff_id: 'none' },
    { sla_status: 'breached' },
    { waiting_longer_than: '-1m' },
  ],
  inbox_search_conversations: ({ mainChannel }) => [
    {},
    { limit: 1, count: true },
    { sla_status: 'met' },
    { limit: 1 },
    { state: 'open' },
    { assigned: true },
    { assigned: false },
    { query: 'loner' },
    { query: '1555' },
    { reply_status: 'incoming_no_reply' },
    { channel_id: mainChannel },
    { channel_id: HIDDEN_ID },
    { channel_id: NO_ID },
  ],
  inbox_get_conversation: (world) => ofConversation(world),
  inbox_assign_conversation: (world) => [
    ...ofConversation(world, { staff_id: world.workspace.owner.staffId }),
    ...ofConversation(world, { team_id: world.ids['teams']![0], only_if_unassigned: true }),
    ...ofConversation(world, { staff_id: world.clerkId }),
  ],
  inbox_unassign_conversation: (world) => ofConversation(world),
  inbox_close_conversation: (world) => ofConversation(world, { reason: 'Done' }),
  inbox_assign_conversations: (world) => [
    ...listConversationTargets(world).map((target) => ({
      ...target,
      staff_id: world.clerkId,
      dry_run: true,
    })),
    { filter: {}, all: true, team_id: world.ids['teams']![0], only_if_unassigned: true, dry_run: true },
    ...listConversationTargets(world).map((target) => ({
      ...target,
      staff_id: world.workspace.owner.staffId,
    })),
  ],
  inbox_close_conversations: (world) => [
    ...listConversationTargets(world).map((target) => ({ ...target, dry_run: true })),
    ...listConversationTargets(world),
  ],
  inbox_reopen_conversation: (world) => ofConversation(world),
  inbox_tag_conversation: (world) => ofConversation(world, { add: ['secret'] }),
  inbox_add_note: (world) => ofConversation(world, { text: 'Note' }),
  inbox_set_reminder: (world) => ofConversation(world, { at: '2030-01-01T00:00:00Z' }),
  inbox_mark_read: (world) => ofConversation(world),
  webhooks_list_endpoints: () => [{}, { limit: 1 }],
  webhooks_get_endpoint: none,
  webhooks_create_endpoint: none,
  webhooks_update_endpoint: none,
  webhooks_delete_endpoint: none,
  webhooks_rotate_secret: none,
  webhooks_disable_endpoint: none,
  webhooks_enable_endpoint: none,
  webhooks_send_test: none,
  webhooks_set_subscriptions: none,
  webhooks_list_event_types: none,
  webhooks_list_deliveries: ({ ids }) =>
    ids['webhook_endpoints']!.flatMap((id) => [
      { endpoint_id: id },
      { endpoint_id: id, limit: 1 },
      { endpoint_id: id, event_type_id: 'message.received/1' },
    ]),
  webhooks_get_delivery: ({ ids }) => ids['webhook_deliveries']!.map((id) => ({ delivery_id: id })),
  webhooks_replay_delivery: ({ ids }) => ids['webhook_deliveries']!.map((id) => ({ delivery_id: id })),
  webhooks_recover_endpoint: ({ ids }) => [
    { endpoint_id: ids['webhook_endpoints']![0], from: '2026-10-01T00:00:00Z', to: '2026-10-06T00:00:00Z' },
  ],
  events_list: () => [
    {},
    { limit: 1 },
    { types: ['message.received', 'short_link.created', 'contact.updated'] },
  ],
  events_ack: none,
  events_list_consumers: () => [{}, { limit: 1 }],
  events_delete_consumer: none,
  reports_workspace_summary: () => [{ preset: 'today' }, ALL_TIME],
  reports_filter_membership: ({ allFilters }) =>
    allFilters.map((id) => ({ saved_filter_id: id, since: '-1d' })),
  reports_staff: () => [
    { preset: 'today' },
    { ...ALL_TIME, limit: 1 },
    { from: '2026-01-01', to: '2026-01-31' },
  ],
  approvals_list: () => [{}, { status: 'pending' }],
  approvals_get: ({ ids }) => withEachId('approval_id', ids['approvals']![0]!),
  approvals_approve: ({ ids }) => withEachId('approval_id', ids['approvals']![0]!, { text: 'x' }),
  approvals_decline: ({ ids }) => withEachId('approval_id', ids['approvals']![0]!),
  approvals_cancel: ({ ids }) => withEachId('approval_id', ids['approvals']![0]!),
  audit_list: () => [{}, { target_id: HIDDEN_ID }, { limit: 1 }],
}
