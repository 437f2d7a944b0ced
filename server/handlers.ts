import type { Handlers, Settler } from './handler.ts'
import { listConsents, recordConsent } from './domains/consent/consents.ts'
import {
  approveApproval,
  cancelApproval,
  declineApproval,
  getApproval,
  listApprovals,
} from './guards/agents/approvals/approvals.ts'
import { listAudit } from './guards/audit/list.ts'
import {
  cancelJob,
  getJob,
  listJobFailures,
  listJobs,
  pauseJob,
  resumeJob,
  undoJob,
} from './domains/bulk-jobs/operations.ts'
import { sendBulk } from './domains/bulk-messages/operation.ts'
import { rescheduleBroadcast } from './domains/bulk-messages/schedule.ts'
import { getBroadcast, listBroadcastRecipients, listBroadcasts } from './domains/broadcasts/broadcasts.ts'
import { deleteContact, getContact, updateContact } from './domains/contacts/contacts.ts'
import { changePhone } from './domains/contacts/change-phone.ts'
import { deleteContacts } from './domains/contacts/delete-many.ts'
import { updateContacts } from './domains/contacts/update-many.ts'
import { eraseContact, getErasure, listErasures } from './domains/erasures/operations.ts'
import { exportContacts, exportPerson, getExport, listExports } from './domains/exports/operations.ts'
import { findDuplicates } from './domains/contacts/duplicates.ts'
import { mergeContacts, undoContactMerge } from './domains/contacts/merge-operations.ts'
import { importContacts } from './domains/contacts/import.ts'
import { searchContacts } from './domains/contacts/search.ts'
import { upsertContact } from './domains/contacts/upsert.ts'
import { countContacts } from './domains/contacts/count.ts'
import { acknowledgeEvents, deleteConsumer, listConsumers } from './domains/events/consumers.ts'
import { listEvents } from './domains/events/list.ts'
import { checkFilter } from './domains/filters/check.ts'
import {
  createCustomField,
  deleteCustomField,
  listCustomFields,
  updateCustomField,
} from './domains/custom-fields/custom-fields.ts'
import {
  addContactsToGroup,
  createGroup,
  deleteGroup,
  listGroups,
  removeContactsFromGroup,
  updateGroup,
} from './domains/groups/groups.ts'
import { assignConversations } from './domains/inbox/assign-many.ts'
import { closeConversations } from './domains/inbox/close-many.ts'
import { assignConversation, unassignConversation } from './domains/inbox/assign.ts'
import {
  addNote,
  closeConversation,
  markRead,
  reopenConversation,
  setReminder,
} from './domains/inbox/changes.ts'
import { inboxQueue } from './domains/inbox/queue.ts'
import { searchMessages } from './domains/inbox/message-search.ts'
import { getConversation, searchConversations } from './domains/inbox/search.ts'
import { tagConversation } from './domains/inbox/tags.ts'
import { getMessage, listMessages } from './domains/messaging/messages.ts'
import { sendReply } from './domains/messaging/send-reply.ts'
import { sendTemplate } from './domains/messaging/send-template.ts'
import { getMedia } from './domains/media/media.ts'
import type { OperationName } from '../catalog/index.ts'
import {
  createQuickMessage,
  deleteQuickMessage,
  listQuickMessages,
  updateQuickMessage,
} from './domains/quick-messages/quick-messages.ts'
import { reportFilterMembership, trackSavedFilter } from './domains/reports/filter-membership.ts'
import { staffReport } from './domains/reports/staff.ts'
import { summarizeWorkspace } from './domains/reports/summary.ts'
import {
  createSavedFilter,
  deleteSavedFilter,
  getSavedFilter,
  listSavedFilters,
  updateSavedFilter,
} from './domains/saved-filters/saved-filters.ts'
import { createShortLink } from './domains/short-links/create.ts'
import { deleteShortLink } from './domains/short-links/delete.ts'
import { getShortLink, listShortLinks } from './domains/short-links/read.ts'
import { mergeTags } from './domains/tags/merge-tags.ts'
import { deleteTag, listTags, renameTag, tagContacts, untagContacts } from './domains/tags/tags.ts'
import { archiveTemplates } from './domains/templates/archive.ts'
import { lintTemplate } from './domains/templates/lint.ts'
import { getTemplate, listTemplates } from './domains/templates/lists.ts'
import { uploadSample } from './domains/templates/samples.ts'
import { createTemplate } from './domains/templates/create.ts'
import { syncTemplates } from './domains/templates/sync.ts'
import { updateTemplate } from './domains/templates/update.ts'
import { getDelivery, listDeliveries } from './domains/webhooks/deliveries.ts'
import {
  createEndpoint,
  deleteEndpoint,
  disableEndpoint,
  enableEndpoint,
  getEndpoint,
  listEndpoints,
} from './domains/webhooks/endpoints.ts'
import { listEventTypes } from './domains/webhooks/event-types.ts'
import { recoverEndpoint } from './domains/webhooks/recover.ts'
import { replayDelivery } from './domains/webhooks/replay.ts'
import { rotateSecret } from './domains/webhooks/rotate.ts'
import { setSubscriptions } from './domains/webhooks/subscriptions.ts'
import { sendTestEvent, settleTestEvent } from './domains/webhooks/test-event.ts'
import { updateEndpoint } from './domains/webhooks/update.ts'
import { listChannels, listStaff, listTeams, whoami } from './domains/workspace/workspace.ts'

/** Every operation with its handler. */
export const handlers = {
  workspace_whoami: whoami,
  workspace_list_staff: listStaff,
  workspace_list_teams: listTeams,
  workspace_channels: listChannels,
  crm_search_contacts: searchContacts,
  crm_get_contact: getContact,
  crm_upsert_contact: upsertContact,
  crm_update_contact: updateContact,
  crm_delete_contact: deleteContact,
  crm_delete_contacts: deleteContacts,
  crm_change_phone: changePhone,
  crm_find_duplicates: findDuplicates,
  crm_merge_contacts: mergeContacts,
  crm_undo_contact_merge: undoContactMerge,
  crm_erase_contact: eraseContact,
  crm_list_erasures: listErasures,
  crm_get_erasure: getErasure,
  crm_export_person: exportPerson,
  crm_export_contacts: exportContacts,
  crm_list_exports: listExports,
  crm_get_export: getExport,
  crm_record_consent: recordConsent,
  crm_list_consents: listConsents,
  crm_update_contacts: updateContacts,
  crm_tag_contacts: tagContacts,
  crm_untag_contacts: untagContacts,
  crm_import_contacts: importContacts,
  crm_count_contacts: countContacts,
  crm_check_filter: checkFilter,
  crm_list_tags: listTags,
  crm_rename_tag: renameTag,
  crm_delete_tag: deleteTag,
  crm_merge_tags: mergeTags,
  crm_list_groups: listGroups,
  crm_create_group: createGroup,
  crm_update_group: updateGroup,
  crm_delete_group: deleteGroup,
  crm_add_contacts_to_group: addContactsToGroup,
  crm_remove_contacts_from_group: removeContactsFromGroup,
  crm_list_custom_fields: listCustomFields,
  crm_create_custom_field: createCustomField,
  crm_update_custom_field: updateCustomField,
  crm_delete_custom_field: deleteCustomField,
  crm_list_saved_filters: listSavedFilters,
  crm_get_saved_filter: getSavedFilter,
  crm_create_saved_filter: createSavedFilter,
  crm_update_saved_filter: updateSavedFilter,
  crm_track_saved_filter: trackSavedFilter,
  crm_delete_saved_filter: deleteSavedFilter,
  jobs_list: listJobs,
  jobs_get: getJob,
  jobs_list_failures: listJobFailures,
  jobs_pause: pauseJob,
  jobs_resume: resumeJob,
  jobs_cancel: cancelJob,
  jobs_undo: undoJob,
  inbox_queue: inboxQueue,
  inbox_search_conversations: searchConversations,
  inbox_get_conversation: getConversation,
  inbox_list_messages: listMessages,
  inbox_search_messages: searchMessages,
  inbox_assign_conversation: assignConversation,
  inbox_unassign_conversation: unassignConversation,
  inbox_close_conversation: closeConversation,
  inbox_assign_conversations: assignConversations,
  inbox_close_conversations: closeConversations,
  inbox_reopen_conversation: reopenConversation,
  inbox_tag_conversation: tagConversation,
  inbox_add_note: addNote,
  inbox_set_reminder: setReminder,
  inbox_mark_read: markRead,
  messaging_send_template: sendTemplate,
  messaging_send_bulk: sendBulk,
  messaging_send_reply: sendReply,
  messaging_get_message: getMessage,
  messaging_get_media: getMedia,
  messaging_list_templates: listTemplates,
  messaging_get_template: getTemplate,
  messaging_lint_template: lintTemplate,
  messaging_create_template: createTemplate,
  messaging_update_template: updateTemplate,
  messaging_archive_templates: archiveTemplates,
  messaging_sync_templates: syncTemplates,
  messaging_upload_template_sample: uploadSample,
  messaging_list_short_links: listShortLinks,
  messaging_create_short_link: createShortLink,
  messaging_get_short_link: getShortLink,
  messaging_delete_short_link: deleteShortLink,
  messaging_list_quick_messages: listQuickMessages,
  messaging_create_quick_message: createQuickMessage,
  messaging_update_quick_message: updateQuickMessage,
  messaging_delete_quick_message: deleteQuickMessage,
  messaging_list_broadcasts: listBroadcasts,
  messaging_get_broadcast: getBroadcast,
  messaging_list_broadcast_recipients: listBroadcastRecipients,
  messaging_reschedule_broadcast: rescheduleBroadcast,
  webhooks_list_endpoints: listEndpoints,
  webhooks_get_endpoint: getEndpoint,
  webhooks_create_endpoint: createEndpoint,
  webhooks_update_endpoint: updateEndpoint,
  webhooks_delete_endpoint: deleteEndpoint,
  webhooks_rotate_secret: rotateSecret,
  webhooks_disable_endpoint: disableEndpoint,
  webhooks_enable_endpoint: enableEndpoint,
  webhooks_set_subscriptions: setSubscriptions,
  webhooks_send_test: sendTestEvent,
  webhooks_list_event_types: listEventTypes,
  webhooks_list_deliveries: listDeliveries,
  webhooks_get_delivery: getDelivery,
  webhooks_replay_delivery: replayDelivery,
  webhooks_recover_endpoint: recoverEndpoint,
  events_list: listEvents,
  events_ack: acknowledgeEvents,
  events_list_consumers: listConsumers,
  events_delete_consumer: deleteConsumer,
  reports_workspace_summary: summarizeWorkspace,
  reports_staff: staffReport,
  reports_filter_membership: reportFilterMembership,
  audit_list: listAudit,
  approvals_list: listApprovals,
  approvals_get: getApproval,
  approvals_approve: approveApproval,
  approvals_decline: declineApproval,
  approvals_cancel: cancelApproval,
} satisfies Handlers

/** What completes the answers of some changes after their commit. */
export const settlers: { readonly [N in OperationName]?: Settler<N> } = {
  webhooks_send_test: settleTestEvent,
}
