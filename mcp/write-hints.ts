import type { OperationName } from '../catalog/index.ts'
import type { ConfirmVerb, Operation } from '../catalog/operation.ts'

/** Whether an operation destroys data, and whether others see its effect. Clients decide by them what to ask about. */
export type WriteHints = { destructiveHint: boolean; openWorldHint: boolean }

/** The hints that follow from a confirm verb. A new verb does not compile without them. */
export const verbHints: Readonly<Record<ConfirmVerb, WriteHints>> = {
  submit: { destructiveHint: false, openWorldHint: true },
  rotate: { destructiveHint: true, openWorldHint: false },
  delete: { destructiveHint: true, openWorldHint: false },
  erase: { destructiveHint: true, openWorldHint: false },
  archive: { destructiveHint: true, openWorldHint: false },
  send: { destructiveHint: false, openWorldHint: true },
}

/** It adds something, or sets a state that can be set back: open or closed, paused, assigned, read. */
const adds: WriteHints = { destructiveHint: false, openWorldHint: false }
/** It replaces or removes what was stored, or ends what cannot begin again. The protocol calls only additions safe. */
const replaces: WriteHints = { destructiveHint: true, openWorldHint: false }
/** It sends something outside, or decides what is sent there. */
const sends: WriteHints = { destructiveHint: false, openWorldHint: true }
const replacesAndSends: WriteHints = { destructiveHint: true, openWorldHint: true }

/** The hints of every change without a confirm verb, and of those whose verb does not say all. */
const operationHints: { readonly [name in OperationName]?: WriteHints } = {
  crm_upsert_contact: replaces,
  crm_update_contact: replaces,
  crm_undo_contact_merge: replaces,
  crm_export_person: adds,
  crm_export_contacts: adds,
  crm_record_consent: adds,
  crm_update_contacts: replaces,
  crm_tag_contacts: adds,
  crm_untag_contacts: replaces,
  crm_import_contacts: replaces,
  crm_rename_tag: replaces,
  crm_create_group: adds,
  crm_update_group: replaces,
  crm_add_contacts_to_group: adds,
  crm_remove_contacts_from_group: replaces,
  crm_create_custom_field: adds,
  crm_update_custom_field: replaces,
  crm_create_saved_filter: adds,
  crm_update_saved_filter: replaces,
  crm_track_saved_filter: adds,
  jobs_pause: adds,
  // A broadcast goes on sending.
  jobs_resume: sends,
  jobs_cancel: replaces,
  jobs_undo: replaces,
  inbox_assign_conversation: adds,
  inbox_unassign_conversation: adds,
  inbox_close_conversation: adds,
  inbox_reopen_conversation: adds,
  inbox_tag_conversation: replaces,
  inbox_add_note: adds,
  inbox_set_reminder: replaces,
  inbox_mark_read: adds,
  inbox_assign_conversations: adds,
  inbox_close_conversations: adds,
  messaging_update_template: replacesAndSends,
  messaging_upload_template_sample: sends,
  messaging_archive_templates: replacesAndSends,
  messaging_create_short_link: sends,
  messaging_delete_short_link: replacesAndSends,
  messaging_create_quick_message: adds,
  messaging_update_quick_message: replaces,
  webhooks_create_endpoint: sends,
  webhooks_update_endpoint: replacesAndSends,
  webhooks_disable_endpoint: adds,
  webhooks_enable_endpoint: sends,
  webhooks_set_subscriptions: replacesAndSends,
  webhooks_send_test: sends,
  webhooks_replay_delivery: sends,
  webhooks_recover_endpoint: sends,
  events_ack: adds,
  // Whatever the agent asked for runs.
  approvals_approve: replacesAndSends,
  approvals_decline: replaces,
  approvals_cancel: replaces,
}

/** Returns the hints of a change; undefined where none are declared. */
export const findWriteHints = (op: Operation): WriteHints | undefined =>
  operationHints[op.name as OperationName] ?? (op.confirm && verbHints[op.confirm])

/** Returns the hints of a change; where they are not known, it may do anything. */
export const getWriteHints = (op: Operation): WriteHints => findWriteHints(op) ?? replacesAndSends
