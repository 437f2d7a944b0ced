// Generated from the catalog by scripts/client-types.ts (npm run generate).
import type { CallOptions } from './transport.ts'
import type { ChangeOptions, Confirmed, Versioned } from './options.ts'
import type { Listing } from './pages.ts'
import type * as types from './types.ts'

/** A method for each operation, in groups as on the command line. */
export type Operations = {
  /** Show the workspace, staff member and key that a request acts as. Operation `workspace_whoami`. */
  readonly whoami: (
    input?: types.WorkspaceWhoamiInput,
    options?: CallOptions,
  ) => Promise<types.WorkspaceWhoamiOutput>
  readonly staff: {
    /** List the staff of the workspace. Operation `workspace_list_staff`. */
    readonly list: (
      input?: types.WorkspaceListStaffInput,
      options?: CallOptions,
    ) => Listing<types.WorkspaceListStaffOutput>
  }
  readonly teams: {
    /** List the teams of the workspace. Operation `workspace_list_teams`. */
    readonly list: (
      input?: types.WorkspaceListTeamsInput,
      options?: CallOptions,
    ) => Listing<types.WorkspaceListTeamsOutput>
  }
  readonly channels: {
    /** List the channels of the workspace. In order of creation. Staff limited to some channels see only those. Operation `workspace_channels`. */
    readonly list: (
      input?: types.WorkspaceChannelsInput,
      options?: CallOptions,
    ) => Listing<types.WorkspaceChannelsOutput>
  }
  readonly contacts: {
    /** List or search contacts. Newest first unless `sort` says otherwise. All conditions must match. The first page has `total`; `approximate` marks an estimate. With hidden phone numbers, digits in `query`, comparing or sorting by phone, and digits and patterns in comparisons of `name` are refused with the reason `phone_hidden`; numbers in names are masked. With `query`, `filter`, `saved_filter_id`, tags or groups it is an expensive read: few run at a time for each key and workspace, others wait, then get 429. Operation `crm_search_contacts`. */
    readonly search: (
      input?: types.CrmSearchContactsInput,
      options?: CallOptions,
    ) => Listing<types.CrmSearchContactsOutput>
    /** Read one contact in full. The id of a merged contact returns the contact that it was merged into. Operation `crm_get_contact`. */
    readonly get: (
      input: types.CrmGetContactInput,
      options?: CallOptions,
    ) => Promise<types.CrmGetContactOutput>
    /** Create a contact, or update the one with this phone number or external id. Repeated calls are safe. Send `phone`, `external_id` or both: a missing one is added to the contact, an existing one is never replaced. If they belong to different contacts it is a 409 `identity_conflict`; an unknown `external_id` without a phone is a 404. Groups and tags are added; existing ones are kept. Unknown tag names are created; unknown group ids are refused. A name that is only a phone number is not stored. With hidden phone numbers, a dry run returns the result for an unknown number, with `warnings`, and real calls are limited to a number of different phones a day (429, reason `phone_budget`). Operation `crm_upsert_contact`. */
    readonly upsert: (
      input?: types.CrmUpsertContactInput,
      options?: ChangeOptions,
    ) => Promise<types.CrmUpsertContactOutput>
    /** Change a contact. Omitted fields do not change. A name that is only a phone number is refused. With hidden phone numbers, writing a custom field of the type `phone` always counts as a change. Operation `crm_update_contact`. */
    readonly update: (
      input: types.CrmUpdateContactInput,
      options?: ChangeOptions & Versioned,
    ) => Promise<types.CrmUpdateContactOutput>
    /** Give a contact a new phone number. The contact keeps its conversations, tags, groups and values, and its user id at the messaging app unless that is the old number; messages go to the new number. For 7 days, while one of its conversations is open, a message from the old number still arrives in it, unless it has another user id. Otherwise such a message creates a new contact, because the number may have a new owner. Another spelling of the current number changes nothing. 409 `phone_taken` when another contact has the new number: merge them with `crm_merge_contacts`. With hidden phone numbers, a dry run does not show whether a contact has the number, with `warnings`, and real calls are limited to a number of different phones a day (429, reason `phone_budget`). Operation `crm_change_phone`. */
    readonly changePhone: (
      input: types.CrmChangePhoneInput,
      options: Confirmed<'rotate'> & Versioned,
    ) => Promise<types.CrmChangePhoneOutput>
    /** Delete a contact. Its conversations remain, without a contact. Operation `crm_delete_contact`. */
    readonly delete: (
      input: types.CrmDeleteContactInput,
      options: Confirmed<'delete'> & Versioned,
    ) => Promise<types.CrmDeleteContactOutput>
    /** List pairs of contacts that may be one person. By the strongest reason first: `user_id`, the same id at the provider; `phone`, one has the number of the other, in any spelling, in a custom field of the type phone, or both have it there; `email`, the same in a custom field of the type email, ignoring case; `name`, the same name, ignoring case, and a conversation on the same channel. Each contact is paired with the oldest one: `crm_merge_contacts` takes the ids of a row. Values that more than 20 contacts have are ignored. A page ends where it would read too much, with fewer rows or none and `next_cursor`. Only what you may see counts: with hidden phone numbers there are no pairs by phone, nor by names and ids that hold numbers. It is an expensive read: few run at a time for each key and workspace, others wait, then get 429. Operation `crm_find_duplicates`. */
    readonly duplicates: (
      input?: types.CrmFindDuplicatesInput,
      options?: CallOptions,
    ) => Listing<types.CrmFindDuplicatesOutput>
    /** Merge two contacts of one person. The contact `contact_id` stays and gets the conversations, tags, groups, broadcast recipients and bridge ids of the other one. The other one is deleted; `crm_get_contact` with its id returns the contact that stays. Its own fields win; those of the other fill gaps, and replace the fields in `prefer_other`. Do-not-disturb and the star apply if either had them. A dry run shows the result for each field. A message from a number that neither keeps creates a new contact. Until `undo_until`, `crm_undo_contact_merge` restores the other contact. Operation `crm_merge_contacts`. */
    readonly merge: (
      input: types.CrmMergeContactsInput,
      options: Confirmed<'delete'> & Versioned,
    ) => Promise<types.CrmMergeContactsOutput>
    /** Undo a merge of contacts. Restores a contact that was merged within the last 7 days, by `crm_merge_contacts` or because the provider reported both as one customer, with its id, fields, tags, groups and conversations. The contact that stayed gets its previous fields back, except those that changed since; messages that arrived since stay in their conversations. Tags, groups and custom fields that were deleted since are not restored. 409 when another contact now has its phone or external id, or when the contact that stayed was itself merged: undo that first. Operation `crm_undo_contact_merge`. */
    readonly undoMerge: (
      input: types.CrmUndoContactMergeInput,
      options?: ChangeOptions,
    ) => Promise<types.CrmUndoContactMergeOutput>
    /** Erase a person: a contact and every copy of their personal data. For owners, admins and managers. At once the contact is deleted, its phone is free, nothing is sent to it, merges into it cannot be undone, and approval requests about it are cancelled. Then a job erases messages with their files, and copies in events, deliveries, the audit trail, stored responses, saved filters and the sandbox; `crm_get_erasure` returns the receipt. Reports keep their totals. It cannot be undone. For an erased contact it returns the current receipt. A later message from the same phone creates a new contact. Operation `crm_erase_contact`. */
    readonly erase: (
      input: types.CrmEraseContactInput,
      options: Confirmed<'erase'> & Versioned,
    ) => Promise<types.CrmEraseContactOutput>
    /** List erasures of contacts with their receipts, newest first. For owners, admins and managers. Receipts contain no personal data. Operation `crm_list_erasures`. */
    readonly erasures: (
      input?: types.CrmListErasuresInput,
      options?: CallOptions,
    ) => Listing<types.CrmListErasuresOutput>
    /** Show the receipt of an erasure: the outcome for the rows of each table. For owners, admins and managers. Operation `crm_get_erasure`. */
    readonly erasure: (
      input: types.CrmGetErasureInput,
      options?: CallOptions,
    ) => Promise<types.CrmGetErasureOutput>
    /** Export all personal data of a contact as a zip archive of JSON and files. For owners, admins and managers without visibility limits, with a key that has `mcp:read`. A job creates the file: the contact, its values and consents, conversations with messages, notes and files, and copies in events, deliveries, the audit trail, approvals, jobs, stored responses and saved filters, with a manifest. Records about several people are reduced to this one. `crm_get_export` shows the progress, then a URL. The file is kept for 7 days, or until the person is erased. While an export of the contact is running, that one is returned. A dry run returns the counts that are quick to compute. Operation `crm_export_person`. */
    readonly exportPerson: (
      input: types.CrmExportPersonInput,
      options?: ChangeOptions,
    ) => Promise<types.CrmExportPersonOutput>
    /** Record that a contact granted or withdrew consent. The history is append-only. After a withdrawal of `marketing`, marketing templates are refused with 409 `consent_withdrawn` on that type of channel, until a later grant. A record whose `at` is earlier than the one in effect is stored, but changes nothing else. For a grant, an AI agent's key asks a person. Operation `crm_record_consent`. */
    readonly recordConsent: (
      input: types.CrmRecordConsentInput,
      options?: ChangeOptions,
    ) => Promise<types.CrmRecordConsentOutput>
    /** List what a contact consented to. The whole history, latest record first; `holds` marks the records in effect. Operation `crm_list_consents`. */
    readonly consents: (
      input: types.CrmListConsentsInput,
      options?: CallOptions,
    ) => Listing<types.CrmListConsentsOutput>
    /** Set fields of many contacts. Sets the same custom fields, do-not-disturb or star for all. Omitted fields do not change. Undoing the job restores each contact's previous values, unless they changed since; consents recorded by `dnd: false` stay. Instead of ids it takes a filter, for which the key needs `mcp:read`. If more than 500 records match, it returns 202 with a `job` that continues in the background (`jobs_get`). A dry run returns how many would change, and samples. With `Api-Plan: show` (MCP: `plan`) it also returns `plan.token`: the same call, sent with that as `Api-Plan` within an hour, is for exactly those records, or is a 409 `plan_changed` if more than 10 percent of them no longer match. By filter it is an expensive read: few run at a time for each key and workspace, others wait, then get 429. Operation `crm_update_contacts`. */
    readonly set: (
      input: types.CrmUpdateContactsInput,
      options?: ChangeOptions,
    ) => Promise<types.CrmUpdateContactsOutput>
    /** Delete many contacts. Each is deleted as by `crm_delete_contact`: its conversations remain, without a contact. It cannot be undone. Instead of ids it takes a filter, for which the key needs `mcp:read`. If more than 500 records match, it returns 202 with a `job` that continues in the background (`jobs_get`). A dry run returns how many would change, and samples. With `Api-Plan: show` (MCP: `plan`) it also returns `plan.token`: the same call, sent with that as `Api-Plan` within an hour, is for exactly those records, or is a 409 `plan_changed` if more than 10 percent of them no longer match. By filter it is an expensive read: few run at a time for each key and workspace, others wait, then get 429. Operation `crm_delete_contacts`. */
    readonly deleteMany: (
      input: types.CrmDeleteContactsInput,
      options: Confirmed<'delete'>,
    ) => Promise<types.CrmDeleteContactsOutput>
    /** Add tags to contacts. Unknown tag names are created. Tagging twice is harmless. Instead of ids it takes a filter, for which the key needs `mcp:read`. If more than 500 records match, it returns 202 with a `job` that continues in the background (`jobs_get`). A dry run returns how many would change, and samples. With `Api-Plan: show` (MCP: `plan`) it also returns `plan.token`: the same call, sent with that as `Api-Plan` within an hour, is for exactly those records, or is a 409 `plan_changed` if more than 10 percent of them no longer match. By filter it is an expensive read: few run at a time for each key and workspace, others wait, then get 429. Operation `crm_tag_contacts`. */
    readonly tag: (
      input: types.CrmTagContactsInput,
      options?: ChangeOptions,
    ) => Promise<types.CrmTagContactsOutput>
    /** Remove tags from contacts. Unknown tags are ignored. Instead of ids it takes a filter, for which the key needs `mcp:read`. If more than 500 records match, it returns 202 with a `job` that continues in the background (`jobs_get`). A dry run returns how many would change, and samples. With `Api-Plan: show` (MCP: `plan`) it also returns `plan.token`: the same call, sent with that as `Api-Plan` within an hour, is for exactly those records, or is a 409 `plan_changed` if more than 10 percent of them no longer match. By filter it is an expensive read: few run at a time for each key and workspace, others wait, then get 429. Operation `crm_untag_contacts`. */
    readonly untag: (
      input: types.CrmUntagContactsInput,
      options?: ChangeOptions,
    ) => Promise<types.CrmUntagContactsOutput>
    /** Create or update up to 500 contacts in one call. Each row is an upsert and is validated separately: invalid rows are listed in `failures`, the others are written. All rows run in one transaction, in order, so two rows with the same phone or external id are one contact. Unknown tag names are created; a row with an unknown group fails, unless `create_missing_groups` is set. A name that is only a phone number is not stored. With hidden phone numbers, imports and their dry runs are refused (403, reason `phone_hidden`). Operation `crm_import_contacts`. */
    readonly import: (
      input: types.CrmImportContactsInput,
      options?: ChangeOptions,
    ) => Promise<types.CrmImportContactsOutput>
    /** Count the contacts that match a filter. Counts all contacts when no filter is sent. Exact if it can be counted within a second, otherwise an estimate with `approximate: true`. With a filter it is an expensive read: few run at a time for each key and workspace, others wait, then get 429. Operation `crm_count_contacts`. */
    readonly count: (
      input?: types.CrmCountContactsInput,
      options?: CallOptions,
    ) => Promise<types.CrmCountContactsOutput>
    /** Check a contact filter and explain it in words. Runs no search. A filter that breaks a rule is refused with the reason and the position; one that only looks like a mistake returns `warnings`. Regular expressions are PostgreSQL's, advanced syntax, at most 200 characters. Each has a complexity, roughly its length with counted repetitions written out, more for repeated parts that contain `^`, `$`, `\y` or look-around: at most 700, and 2000 in one filter with its saved filters, with at most 2 back-references each. Others are refused with the reason `regex_too_complex`. It is an expensive read: few run at a time for each key and workspace, others wait, then get 429. Operation `crm_check_filter`. */
    readonly checkFilter: (
      input: types.CrmCheckFilterInput,
      options?: CallOptions,
    ) => Promise<types.CrmCheckFilterOutput>
  }
  readonly exports: {
    /** Export the contacts of a filter as CSV or JSON Lines. Takes a filter, a saved filter, or up to 500 ids, with a key that also has `mcp:read`. A job creates the same file as `wcrm contacts export` with this key, newest contacts first; `wcrm contacts import` reads it. It contains only what this key may see. The set of contacts is fixed at the start; values are those at the time of writing, and contacts deleted meanwhile are left out. The export fails if the key is revoked or its visibility changes. `crm_get_export` shows the progress, then a URL, to this key and to owners, admins and managers without visibility limits. The file is kept for 7 days, or until a person in it is erased. A dry run counts the contacts. With `Api-Plan: show` (MCP: `plan`) it also returns `plan.token`: the same call, sent with that as `Api-Plan` within an hour, is for exactly those records, or is a 409 `plan_changed` if more than 10 percent of them no longer match. By filter it is an expensive read: few run at a time for each key and workspace, others wait, then get 429. Operation `crm_export_contacts`. */
    readonly contacts: (
      input: types.CrmExportContactsInput,
      options?: ChangeOptions,
    ) => Promise<types.CrmExportContactsOutput>
    /** List exports with their state, newest first. Owners, admins and managers without visibility limits see all; others see exports of contacts by the same key. Exports are listed for 30 days. Operation `crm_list_exports`. */
    readonly list: (
      input?: types.CrmListExportsInput,
      options?: CallOptions,
    ) => Listing<types.CrmListExportsOutput>
    /** Show the progress of an export, and the URL of its file. When it is done, `url` works without a key for 5 minutes, with range requests, so that a download can be resumed. Each download is in the audit trail. On the command line `--output FILE` saves the file and verifies its SHA-256. A key whose visibility has changed since it started the export gets no URL, unless it has no visibility limits. Operation `crm_get_export`. */
    readonly get: (input: types.CrmGetExportInput, options?: CallOptions) => Promise<types.CrmGetExportOutput>
  }
  readonly tags: {
    /** List contact tags by name. Operation `crm_list_tags`. */
    readonly list: (input?: types.CrmListTagsInput, options?: CallOptions) => Listing<types.CrmListTagsOutput>
    /** Rename a tag. Its id, contacts and conversations stay. 409 `name_taken` when another tag has the name, ignoring case. Saved filters that name it in full follow it; callers that use the old name no longer find it. Operation `crm_rename_tag`. */
    readonly rename: (
      input: types.CrmRenameTagInput,
      options?: ChangeOptions,
    ) => Promise<types.CrmRenameTagOutput>
    /** Delete a tag; its contacts and conversations stay. It is removed from all contacts and conversations. Saved filters that name it are listed: they do not change, and no contact has it any more. Its name can be reused. Operation `crm_delete_tag`. */
    readonly delete: (
      input: types.CrmDeleteTagInput,
      options: Confirmed<'delete'>,
    ) => Promise<types.CrmDeleteTagOutput>
    /** Merge a tag into another one. The tag `tag_id` stays: contacts and conversations of `other_tag_id` get it, and the other tag is deleted. Saved filters that refer to the other tag by id or full name are updated; patterns such as `contains` are not. It emits one event `tag.deleted/1` with `merged_into`, and none for each contact. It cannot be undone. Operation `crm_merge_tags`. */
    readonly merge: (
      input: types.CrmMergeTagsInput,
      options: Confirmed<'delete'>,
    ) => Promise<types.CrmMergeTagsOutput>
  }
  readonly groups: {
    /** List contact groups by name. Operation `crm_list_groups`. */
    readonly list: (
      input?: types.CrmListGroupsInput,
      options?: CallOptions,
    ) => Listing<types.CrmListGroupsOutput>
    /** Create a contact group, or return the one that already has this name. Names are compared ignoring case. An existing group is returned unchanged, with `created: false`. Operation `crm_create_group`. */
    readonly create: (
      input: types.CrmCreateGroupInput,
      options?: ChangeOptions,
    ) => Promise<types.CrmCreateGroupOutput>
    /** Change the name or the emoji of a contact group. Omitted fields do not change. 409 `name_taken` when another group has the name, ignoring case. Saved filters that name it in full follow it. Operation `crm_update_group`. */
    readonly update: (
      input: types.CrmUpdateGroupInput,
      options?: ChangeOptions,
    ) => Promise<types.CrmUpdateGroupOutput>
    /** Delete a contact group; its contacts stay. Operation `crm_delete_group`. */
    readonly delete: (
      input: types.CrmDeleteGroupInput,
      options: Confirmed<'delete'>,
    ) => Promise<types.CrmDeleteGroupOutput>
    /** Add contacts to a group. A contact that is already in the group counts as a success. Instead of ids it takes a filter, for which the key needs `mcp:read`. If more than 500 records match, it returns 202 with a `job` that continues in the background (`jobs_get`). A dry run returns how many would change, and samples. With `Api-Plan: show` (MCP: `plan`) it also returns `plan.token`: the same call, sent with that as `Api-Plan` within an hour, is for exactly those records, or is a 409 `plan_changed` if more than 10 percent of them no longer match. By filter it is an expensive read: few run at a time for each key and workspace, others wait, then get 429. Operation `crm_add_contacts_to_group`. */
    readonly addContacts: (
      input: types.CrmAddContactsToGroupInput,
      options?: ChangeOptions,
    ) => Promise<types.CrmAddContactsToGroupOutput>
    /** Remove contacts from a group. A contact that is not in the group counts as a success. Instead of ids it takes a filter, for which the key needs `mcp:read`. If more than 500 records match, it returns 202 with a `job` that continues in the background (`jobs_get`). A dry run returns how many would change, and samples. With `Api-Plan: show` (MCP: `plan`) it also returns `plan.token`: the same call, sent with that as `Api-Plan` within an hour, is for exactly those records, or is a 409 `plan_changed` if more than 10 percent of them no longer match. By filter it is an expensive read: few run at a time for each key and workspace, others wait, then get 429. Operation `crm_remove_contacts_from_group`. */
    readonly removeContacts: (
      input: types.CrmRemoveContactsFromGroupInput,
      options?: ChangeOptions,
    ) => Promise<types.CrmRemoveContactsFromGroupOutput>
  }
  readonly customFields: {
    /** List the custom fields of contacts. In order of creation. Agents do not see manager-only fields. Operation `crm_list_custom_fields`. */
    readonly list: (
      input?: types.CrmListCustomFieldsInput,
      options?: CallOptions,
    ) => Listing<types.CrmListCustomFieldsOutput>
    /** Create a custom field. Managers and above. Key and type cannot change later. A workspace has at most 200 fields. Operation `crm_create_custom_field`. */
    readonly create: (
      input: types.CrmCreateCustomFieldInput,
      options?: ChangeOptions,
    ) => Promise<types.CrmCreateCustomFieldOutput>
    /** Change the label, the options or the visibility of a custom field. Managers and above. Omitted fields do not change. Values that are no longer an option remain stored and are still shown. Operation `crm_update_custom_field`. */
    readonly update: (
      input: types.CrmUpdateCustomFieldInput,
      options?: ChangeOptions,
    ) => Promise<types.CrmUpdateCustomFieldOutput>
    /** Delete a custom field and hide its values. Managers and above. The `email` field is built in and cannot be deleted. Operation `crm_delete_custom_field`. */
    readonly delete: (
      input: types.CrmDeleteCustomFieldInput,
      options: Confirmed<'delete'>,
    ) => Promise<types.CrmDeleteCustomFieldOutput>
  }
  readonly savedFilters: {
    /** List saved filters by name. Visible to the whole team. Staff from whom phone numbers are hidden see digits that may be a phone masked in the filters of others. Conditions on custom fields that agents may not see, or that no longer exist, are shown to them as `{"attributeName": {"eq": "****"}}`, and so are the ids of channels that the reader may not see. Operation `crm_list_saved_filters`. */
    readonly list: (
      input?: types.CrmListSavedFiltersInput,
      options?: CallOptions,
    ) => Listing<types.CrmListSavedFiltersOutput>
    /** Read one saved filter. Staff from whom phone numbers are hidden see digits that may be a phone masked in the filters of others. Conditions on custom fields that agents may not see, or that no longer exist, are shown to them as `{"attributeName": {"eq": "****"}}`, and so are the ids of channels that the reader may not see. Operation `crm_get_saved_filter`. */
    readonly get: (
      input: types.CrmGetSavedFilterInput,
      options?: CallOptions,
    ) => Promise<types.CrmGetSavedFilterOutput>
    /** Save a contact filter for the whole team. Checked like a contact filter. Relative dates are stored as absolute dates. It is an expensive read: few run at a time for each key and workspace, others wait, then get 429. Operation `crm_create_saved_filter`. */
    readonly create: (
      input: types.CrmCreateSavedFilterInput,
      options?: ChangeOptions,
    ) => Promise<types.CrmCreateSavedFilterOutput>
    /** Change a saved filter. Only for the staff member who saved it. Omitted fields do not change. With `filter` or `count` it is an expensive read: few run at a time for each key and workspace, others wait, then get 429. Operation `crm_update_saved_filter`. */
    readonly update: (
      input: types.CrmUpdateSavedFilterInput,
      options?: ChangeOptions & Versioned,
    ) => Promise<types.CrmUpdateSavedFilterOutput>
    /** Start or stop recording the members of a saved filter each day. Members are recorded within a minute, then each day soon after midnight in the workspace's time zone, and when the filter changes; records are kept for 35 days. `reports_filter_membership` compares them. At most 10 filters of a workspace are tracked. For the staff member who saved the filter, and for owners, admins and managers, if they may see all channels and everything that the filter tests. Operation `crm_track_saved_filter`. */
    readonly track: (
      input: types.CrmTrackSavedFilterInput,
      options?: ChangeOptions,
    ) => Promise<types.CrmTrackSavedFilterOutput>
    /** Delete a saved filter. Only for the staff member who saved it. Filters that refer to it are then refused with the reason `saved_filter_not_found`. Operation `crm_delete_saved_filter`. */
    readonly delete: (
      input: types.CrmDeleteSavedFilterInput,
      options: Confirmed<'delete'> & Versioned,
    ) => Promise<types.CrmDeleteSavedFilterOutput>
  }
  readonly jobs: {
    /** List bulk jobs, newest first. Jobs change many contacts or conversations. Owners, admins and managers see all; others their own. Ended jobs are kept for 30 days. Operation `jobs_list`. */
    readonly list: (input?: types.JobsListInput, options?: CallOptions) => Listing<types.JobsListOutput>
    /** Show a job and its progress. Operation `jobs_get`. */
    readonly get: (input: types.JobsGetInput, options?: CallOptions) => Promise<types.JobsGetOutput>
    /** List the records that a job failed to change, in the order of the job. For bulk messages: the contacts that got none. Operation `jobs_list_failures`. */
    readonly failures: (
      input: types.JobsListFailuresInput,
      options?: CallOptions,
    ) => Listing<types.JobsListFailuresOutput>
    /** Pause a job. For its creator, owners, admins and managers. It takes effect before the response. Pausing a paused job changes nothing. Operation `jobs_pause`. */
    readonly pause: (input: types.JobsPauseInput, options?: ChangeOptions) => Promise<types.JobsPauseOutput>
    /** Continue a paused or failed job where it stopped. For its creator, owners, admins and managers. Operation `jobs_resume`. */
    readonly resume: (
      input: types.JobsResumeInput,
      options?: ChangeOptions,
    ) => Promise<types.JobsResumeOutput>
    /** Cancel a job; what it has changed stays. For its creator, owners, admins and managers. `jobs_undo` reverts what it has changed, except sent messages. Operation `jobs_cancel`. */
    readonly cancel: (
      input: types.JobsCancelInput,
      options?: ChangeOptions,
    ) => Promise<types.JobsCancelOutput>
    /** Undo what a job changed, by another job. For its creator, owners, admins and managers. Within 7 days after it ended. Tags and memberships that it added are removed and those that it removed are added, only for contacts that it changed; tags that it created stay. Deletions cannot be undone (409). Conversations get their previous assignee back, or are reopened, unless they were changed since. Operation `jobs_undo`. */
    readonly undo: (input: types.JobsUndoInput, options?: ChangeOptions) => Promise<types.JobsUndoOutput>
  }
  readonly conversations: {
    /** List the customers who wait for a reply, longest wait first. Everything needed to decide whom to answer first and how: the last messages, whether a free-form reply can be sent, and otherwise which templates fit (their texts are in `templates`). Read a whole conversation with `inbox_list_messages`. With `tag`, `contact_tag` or `sla_status` it is an expensive read: few run at a time for each key and workspace, others wait, then get 429. Operation `inbox_queue`. */
    readonly queue: (input?: types.InboxQueueInput, options?: CallOptions) => Listing<types.InboxQueueOutput>
    /** Find conversations, newest activity or longest wait first. Staff limited to some channels see only conversations on those. With hidden phone numbers, digits in `query` are refused. With `query`, `tag` or `sla_status` it is an expensive read: few run at a time for each key and workspace, others wait, then get 429. Operation `inbox_search_conversations`. */
    readonly search: (
      input?: types.InboxSearchConversationsInput,
      options?: CallOptions,
    ) => Listing<types.InboxSearchConversationsOutput>
    /** Get one conversation with its reply window and last message. Operation `inbox_get_conversation`. */
    readonly get: (
      input: types.InboxGetConversationInput,
      options?: CallOptions,
    ) => Promise<types.InboxGetConversationOutput>
    /** List the messages and notes of a conversation, newest first. Operation `inbox_list_messages`. */
    readonly messages: (
      input: types.InboxListMessagesInput,
      options?: CallOptions,
    ) => Listing<types.InboxListMessagesOutput>
    /** Assign a conversation to a staff member or a team. Send exactly one of `staff_id` and `team_id`. Assigning a team removes the staff member. With `only_if_unassigned`, one of several concurrent callers wins; the others get 409. Operation `inbox_assign_conversation`. */
    readonly assign: (
      input: types.InboxAssignConversationInput,
      options?: ChangeOptions,
    ) => Promise<types.InboxAssignConversationOutput>
    /** Return a conversation to the unassigned queue. Operation `inbox_unassign_conversation`. */
    readonly unassign: (
      input: types.InboxUnassignConversationInput,
      options?: ChangeOptions,
    ) => Promise<types.InboxUnassignConversationOutput>
    /** Close a conversation. It reopens automatically when the customer writes. Operation `inbox_close_conversation`. */
    readonly close: (
      input: types.InboxCloseConversationInput,
      options?: ChangeOptions,
    ) => Promise<types.InboxCloseConversationOutput>
    /** Reopen a closed conversation as a new episode. Operation `inbox_reopen_conversation`. */
    readonly reopen: (
      input: types.InboxReopenConversationInput,
      options?: ChangeOptions,
    ) => Promise<types.InboxReopenConversationOutput>
    /** Add tags to a conversation and remove others. Unknown names to add are created; unknown names to remove are ignored. Send at least one of `add` and `remove`. Operation `inbox_tag_conversation`. */
    readonly tag: (
      input: types.InboxTagConversationInput,
      options?: ChangeOptions,
    ) => Promise<types.InboxTagConversationOutput>
    /** Add a note that only staff see. Operation `inbox_add_note`. */
    readonly note: (
      input: types.InboxAddNoteInput,
      options?: ChangeOptions,
    ) => Promise<types.InboxAddNoteOutput>
    /** Set or clear the reminder of a conversation. Operation `inbox_set_reminder`. */
    readonly remind: (
      input: types.InboxSetReminderInput,
      options?: ChangeOptions,
    ) => Promise<types.InboxSetReminderOutput>
    /** Mark the messages of a conversation as read by the team. Operation `inbox_mark_read`. */
    readonly read: (
      input: types.InboxMarkReadInput,
      options?: ChangeOptions,
    ) => Promise<types.InboxMarkReadOutput>
    /** Assign many conversations to a staff member or a team. Send exactly one of `staff_id` and `team_id`; each is assigned as by `inbox_assign_conversation`. A conversation that cannot be assigned, such as on a channel without access, is a failure. Conversations that you may not see are neither matched nor counted. Instead of ids it takes a filter, for which the key needs `mcp:read`. If more than 500 records match, it returns 202 with a `job` that continues in the background (`jobs_get`). A dry run returns how many would change, and samples. With `Api-Plan: show` (MCP: `plan`) it also returns `plan.token`: the same call, sent with that as `Api-Plan` within an hour, is for exactly those records, or is a 409 `plan_changed` if more than 10 percent of them no longer match. By filter it is an expensive read: few run at a time for each key and workspace, others wait, then get 429. Operation `inbox_assign_conversations`. */
    readonly assignMany: (
      input: types.InboxAssignConversationsInput,
      options?: ChangeOptions,
    ) => Promise<types.InboxAssignConversationsOutput>
    /** Close many conversations. Each is closed as by `inbox_close_conversation`, and reopens when the customer writes. Conversations that you may not see are neither matched nor counted. Instead of ids it takes a filter, for which the key needs `mcp:read`. If more than 500 records match, it returns 202 with a `job` that continues in the background (`jobs_get`). A dry run returns how many would change, and samples. With `Api-Plan: show` (MCP: `plan`) it also returns `plan.token`: the same call, sent with that as `Api-Plan` within an hour, is for exactly those records, or is a 409 `plan_changed` if more than 10 percent of them no longer match. By filter it is an expensive read: few run at a time for each key and workspace, others wait, then get 429. Operation `inbox_close_conversations`. */
    readonly closeMany: (
      input: types.InboxCloseConversationsInput,
      options?: ChangeOptions,
    ) => Promise<types.InboxCloseConversationsOutput>
    /** Send a free-form reply while the reply window is open. Send `text`, also with `interactive`, or `media_url` with `type`, or `quick_message_id`. Outside the window it is refused with `window_closed` and the window; send a template then. Channels of type `chatapp` and those with a URL can send. State and assignment of the conversation do not change. A saved reply is refused when the contact lacks a value for one of its placeholders. 503 or 504 `outcome_unknown`: the message stays pending and is not sent again; repeat with `idempotency_key`. Without a messaging provider it is a 503 `service_unconfigured`, dry runs too. Operation `messaging_send_reply`. */
    readonly reply: (
      input: types.MessagingSendReplyInput,
      options: Confirmed<'send'>,
    ) => Promise<types.MessagingSendReplyOutput>
  }
  readonly messages: {
    /** Search the text of messages and notes, newest first. All words must be in the text or caption, in any order, ignoring case, accents and inflection (`orders` finds `order`) in Arabic, Armenian, Dutch, English, French, German, Greek, Hindi, Italian, Portuguese, Russian, Spanish, Tamil and Turkish. Words in double quotes match literally, as a phrase. New messages are found at once. Deleted messages and system messages are not found. Where very many messages have to be read, because they are not indexed yet or because they are of one conversation, a page holds what was found among some of them, maybe nothing: `searched_to` says how far it searched, and `next_cursor` continues there. Staff limited to some channels find only messages on those. With hidden phone numbers, digits in `query` are refused. It is an expensive read: few run at a time for each key and workspace, others wait, then get 429. Operation `inbox_search_messages`. */
    readonly search: (
      input: types.InboxSearchMessagesInput,
      options?: CallOptions,
    ) => Listing<types.InboxSearchMessagesOutput>
    /** Send an approved template to one contact. Send exactly one of `contact_id` and `phone`; a contact is created for an unknown phone. Variables are checked against the template before anything is sent. Marketing templates to do-not-disturb contacts are refused. If the provider refuses, all changes are undone. A closed conversation stays closed. With hidden phone numbers, a dry run by `phone` returns the result for an unknown number, with `warnings`, and real sends by `phone` are limited to a number of different phones a day (429, reason `phone_budget`). 503 or 504 `outcome_unknown`: the message stays pending and is not sent again; repeat with `idempotency_key`. Without a messaging provider it is a 503 `service_unconfigured`, dry runs too. Operation `messaging_send_template`. */
    readonly sendTemplate: (
      input: types.MessagingSendTemplateInput,
      options: Confirmed<'send'>,
    ) => Promise<types.MessagingSendTemplateOutput>
    /** Send an approved template to many contacts. The set of contacts is fixed by the call, also with `scheduled_at`, and a job sends each of them one message, shown as a broadcast (`messaging_get_broadcast`); the response is 202 with both. Each message is checked as by `messaging_send_template` when it is sent: contacts who opted out by then get none. Do-not-disturb contacts get no broadcast, whatever the category of the template. Several contacts with one phone line or id at the messaging app get one message, or none if one of them opted out. The job respects the number's customers per day, messages per second and `hours`, pauses when the provider throttles, and stops when too many messages fail. A message whose outcome is unknown stays pending and is never sent again. Values are those at the time of sending; for a call that a person approved, or of an AI agent with a plan, those of its dry run: a contact whose values changed since gets none. The key also needs `mcp:read`, because values and previews come from contacts. With `Api-Plan: show` (MCP: `plan`) it also returns `plan.token`: the same call, sent with that as `Api-Plan` within an hour, is for exactly those records, or is a 409 `plan_changed` if more than 10 percent of them no longer match. At most 100,000 recipients. By filter it is an expensive read: few run at a time for each key and workspace, others wait, then get 429. Operation `messaging_send_bulk`. */
    readonly sendBulk: (
      input: types.MessagingSendBulkInput,
      options: Confirmed<'send'>,
    ) => Promise<types.MessagingSendBulkOutput>
    /** Get one message with its delivery status. Operation `messaging_get_message`. */
    readonly get: (
      input: types.MessagingGetMessageInput,
      options?: CallOptions,
    ) => Promise<types.MessagingGetMessageOutput>
    /** Read the image, video, audio file or document of a message. The REST route returns the bytes, or redirects to them, unless `Accept` is `application/json`. Other interfaces return the media type and a URL that is readable without a key for 5 minutes. 409 `media_pending`: the file is still being downloaded. 404 with the reason `no_media`, `media_lost` or `media_too_large`: there is no file. Operation `messaging_get_media`. */
    readonly media: (
      input: types.MessagingGetMediaInput,
      options?: CallOptions,
    ) => Promise<types.MessagingGetMediaOutput>
  }
  readonly templates: {
    /** List message templates by name. Operation `messaging_list_templates`. */
    readonly list: (
      input?: types.MessagingListTemplatesInput,
      options?: CallOptions,
    ) => Listing<types.MessagingListTemplatesOutput>
    /** Get one template with its review status, and the values that sending it needs. `send_schema` and `send_example` show what `messaging_send_template` takes; `draft` is the submitted draft, to edit or to submit under another name. Operation `messaging_get_template`. */
    readonly get: (
      input: types.MessagingGetTemplateInput,
      options?: CallOptions,
    ) => Promise<types.MessagingGetTemplateOutput>
    /** Check a template draft against every rule of the provider and its reviewers. Saves nothing. Each issue names its rule, its position and the fix. Operation `messaging_lint_template`. */
    readonly lint: (
      input: types.MessagingLintTemplateInput,
      options?: CallOptions,
    ) => Promise<types.MessagingLintTemplateOutput>
    /** Submit a message template for review. Lint errors are refused with `template_rules`. `messaging_get_template` shows the outcome. After `outcome_unknown`, repeat with the same key. Without a messaging provider it is a 503 `service_unconfigured`, dry runs too. Operation `messaging_create_template`. */
    readonly create: (
      input: types.MessagingCreateTemplateInput,
      options: Confirmed<'submit'>,
    ) => Promise<types.MessagingCreateTemplateOutput>
    /** Submit a changed template for review again. Send the whole draft; the same checks run. Name and language cannot change. A template in review, archived or disabled cannot be changed, nor can the category of an approved one. Without a messaging provider it is a 503 `service_unconfigured`, dry runs too. Operation `messaging_update_template`. */
    readonly update: (
      input: types.MessagingUpdateTemplateInput,
      options: Confirmed<'submit'> & Versioned,
    ) => Promise<types.MessagingUpdateTemplateOutput>
    /** Archive templates, so that they can no longer be sent. Sends that use them will fail. They can be restored at the provider for 28 days. Without a messaging provider it is a 503 `service_unconfigured`, dry runs too. Operation `messaging_archive_templates`. */
    readonly archive: (
      input: types.MessagingArchiveTemplatesInput,
      options: Confirmed<'archive'>,
    ) => Promise<types.MessagingArchiveTemplatesOutput>
    /** Read all templates of the business accounts from the provider. Stores those that were made elsewhere, such as before this service was connected, and what changed of the others: status, category, text, rejection reason, quality. Those that the provider no longer has are `DELETED`. A job does so once a day, and goes on with accounts that could not be read. Without a messaging provider it is a 503 `service_unconfigured`, dry runs too. Operation `messaging_sync_templates`. */
    readonly sync: (
      input?: types.MessagingSyncTemplatesInput,
      options?: ChangeOptions,
    ) => Promise<types.MessagingSyncTemplatesOutput>
    /** Upload the sample of a media header. Returns the `media_handle` that a draft needs. Images JPEG or PNG up to 5 MB, MP4 video up to 16 MB, PDF documents up to 16 MB. A repeat after `outcome_unknown` uploads it again. Without a messaging provider it is a 503 `service_unconfigured`, dry runs too. Operation `messaging_upload_template_sample`. */
    readonly uploadSample: (
      input: types.MessagingUploadTemplateSampleInput,
      options?: ChangeOptions,
    ) => Promise<types.MessagingUploadTemplateSampleOutput>
  }
  readonly shortLinks: {
    /** List click-to-chat links, newest first. Operation `messaging_list_short_links`. */
    readonly list: (
      input?: types.MessagingListShortLinksInput,
      options?: CallOptions,
    ) => Listing<types.MessagingListShortLinksOutput>
    /** Create a click-to-chat link with a QR image. Send the channel or its phone when several numbers are connected. A second link with the same message on the same number is refused unless `allow_duplicate` is true; the error names the first in `existing_id`. After `outcome_unknown`, repeat with the same key: it finds the link, or creates it again after 15 minutes at the earliest. Without a messaging provider it is a 503 `service_unconfigured`, dry runs too. Operation `messaging_create_short_link`. */
    readonly create: (
      input: types.MessagingCreateShortLinkInput,
      options?: ChangeOptions,
    ) => Promise<types.MessagingCreateShortLinkOutput>
    /** Get one click-to-chat link. Operation `messaging_get_short_link`. */
    readonly get: (
      input: types.MessagingGetShortLinkInput,
      options?: CallOptions,
    ) => Promise<types.MessagingGetShortLinkOutput>
    /** Delete a click-to-chat link, so that it no longer works. Without a messaging provider it is a 503 `service_unconfigured`, dry runs too. Operation `messaging_delete_short_link`. */
    readonly delete: (
      input: types.MessagingDeleteShortLinkInput,
      options: Confirmed<'delete'>,
    ) => Promise<types.MessagingDeleteShortLinkOutput>
  }
  readonly quickMessages: {
    /** List the quick messages that the key's owner may use, by code. Those of the company, of the owner's teams, and the owner's private ones. Staff who are not agents see those of every team. Operation `messaging_list_quick_messages`. */
    readonly list: (
      input?: types.MessagingListQuickMessagesInput,
      options?: CallOptions,
    ) => Listing<types.MessagingListQuickMessagesOutput>
    /** Save a reply for the team. TEXT requires `text`; IMAGE, VIDEO and DOCUMENT require `media_url`; INTERACTIVE requires `text` and `interactive`, and cannot be edited: delete it and create another. Unknown placeholders are refused. A code that a message visible to you has is refused with `duplicate`; messages that you cannot see, such as private ones of others, do not reserve codes. Operation `messaging_create_quick_message`. */
    readonly create: (
      input: types.MessagingCreateQuickMessageInput,
      options?: ChangeOptions,
    ) => Promise<types.MessagingCreateQuickMessageOutput>
    /** Change a quick message. Omitted fields do not change. The type cannot change; only TEXT, IMAGE, VIDEO and DOCUMENT can be edited. An empty `description`, or `text` of media, clears it. Any visibility but `team` clears the team; only the owner can make it private. Operation `messaging_update_quick_message`. */
    readonly update: (
      input: types.MessagingUpdateQuickMessageInput,
      options?: ChangeOptions & Versioned,
    ) => Promise<types.MessagingUpdateQuickMessageOutput>
    /** Delete a quick message. Operation `messaging_delete_quick_message`. */
    readonly delete: (
      input: types.MessagingDeleteQuickMessageInput,
      options: Confirmed<'delete'> & Versioned,
    ) => Promise<types.MessagingDeleteQuickMessageOutput>
  }
  readonly broadcasts: {
    /** List broadcasts with their totals, newest first. Ordered by start time, actual or scheduled. Staff limited to some channels see only broadcasts on those. Operation `messaging_list_broadcasts`. */
    readonly list: (
      input?: types.MessagingListBroadcastsInput,
      options?: CallOptions,
    ) => Listing<types.MessagingListBroadcastsOutput>
    /** Get one broadcast with totals for each status. Operation `messaging_get_broadcast`. */
    readonly get: (
      input: types.MessagingGetBroadcastInput,
      options?: CallOptions,
    ) => Promise<types.MessagingGetBroadcastOutput>
    /** List the recipients of a broadcast with the delivery status of each. With `message_status` it is an expensive read: few run at a time for each key and workspace, others wait, then get 429. Operation `messaging_list_broadcast_recipients`. */
    readonly recipients: (
      input: types.MessagingListBroadcastRecipientsInput,
      options?: CallOptions,
    ) => Listing<types.MessagingListBroadcastRecipientsOutput>
    /** Change the time of a scheduled broadcast. For its creator, owners, admins and managers, until it starts; then 409 `already_started`. One that is paused stays so. `jobs_cancel` with its `job_id` calls it off. Operation `messaging_reschedule_broadcast`. */
    readonly reschedule: (
      input: types.MessagingRescheduleBroadcastInput,
      options?: ChangeOptions,
    ) => Promise<types.MessagingRescheduleBroadcastOutput>
  }
  readonly webhooks: {
    /** List webhook endpoints, newest first. Operation `webhooks_list_endpoints`. */
    readonly list: (
      input?: types.WebhooksListEndpointsInput,
      options?: CallOptions,
    ) => Listing<types.WebhooksListEndpointsOutput>
    /** Get one webhook endpoint. Operation `webhooks_get_endpoint`. */
    readonly get: (
      input: types.WebhooksGetEndpointInput,
      options?: CallOptions,
    ) => Promise<types.WebhooksGetEndpointOutput>
    /** Create an endpoint that events are sent to. The signing secret is shown only in this response. A new endpoint receives no events until `event_types` or `webhooks_set_subscriptions` names some. An endpoint whose URL was set by an agent does not receive the names of manager-only fields. Operation `webhooks_create_endpoint`. */
    readonly create: (
      input: types.WebhooksCreateEndpointInput,
      options?: ChangeOptions,
    ) => Promise<types.WebhooksCreateEndpointOutput>
    /** Change URL, description, headers or format of an endpoint. Omitted fields do not change. Event types are changed with `webhooks_set_subscriptions`. Operation `webhooks_update_endpoint`. */
    readonly update: (
      input: types.WebhooksUpdateEndpointInput,
      options?: ChangeOptions & Versioned,
    ) => Promise<types.WebhooksUpdateEndpointOutput>
    /** Delete an endpoint with its subscriptions; its delivery log remains. Operation `webhooks_delete_endpoint`. */
    readonly delete: (
      input: types.WebhooksDeleteEndpointInput,
      options: Confirmed<'delete'> & Versioned,
    ) => Promise<types.WebhooksDeleteEndpointOutput>
    /** Give an endpoint a new signing secret. The new secret is shown only in this response. The previous one stays valid for 24 hours, even if rotated again; deliveries have a signature for each valid secret. At most 5 are valid at a time. Operation `webhooks_rotate_secret`. */
    readonly rotateSecret: (
      input: types.WebhooksRotateSecretInput,
      options: Confirmed<'rotate'> & Versioned,
    ) => Promise<types.WebhooksRotateSecretOutput>
    /** Stop sending events to an endpoint. Pending deliveries wait until it is enabled. Events that occur meanwhile are not delivered; recover them later with `webhooks_recover_endpoint`. Operation `webhooks_disable_endpoint`. */
    readonly disable: (
      input: types.WebhooksDisableEndpointInput,
      options?: ChangeOptions & Versioned,
    ) => Promise<types.WebhooksDisableEndpointOutput>
    /** Resume sending events to an endpoint. Operation `webhooks_enable_endpoint`. */
    readonly enable: (
      input: types.WebhooksEnableEndpointInput,
      options?: ChangeOptions & Versioned,
    ) => Promise<types.WebhooksEnableEndpointOutput>
    /** Set the event types that an endpoint receives. Operation `webhooks_set_subscriptions`. */
    readonly subscribe: (
      input: types.WebhooksSetSubscriptionsInput,
      options?: ChangeOptions & Versioned,
    ) => Promise<types.WebhooksSetSubscriptionsOutput>
    /** Send one signed test event to an endpoint, and return the receiver's response. Operation `webhooks_send_test`. */
    readonly test: (
      input: types.WebhooksSendTestInput,
      options?: ChangeOptions,
    ) => Promise<types.WebhooksSendTestOutput>
    /** List every event type with its schema and a sample. Operation `webhooks_list_event_types`. */
    readonly eventTypes: (
      input?: types.WebhooksListEventTypesInput,
      options?: CallOptions,
    ) => Listing<types.WebhooksListEventTypesOutput>
    /** List the deliveries of an endpoint, newest first. Works for deleted endpoints too. 403 `channels_limited` for staff limited to some channels, because deliveries cover all channels. With `status` or `event_type_id` it is an expensive read: few run at a time for each key and workspace, others wait, then get 429. Operation `webhooks_list_deliveries`. */
    readonly deliveries: (
      input: types.WebhooksListDeliveriesInput,
      options?: CallOptions,
    ) => Listing<types.WebhooksListDeliveriesOutput>
    /** Get one delivery with every attempt. Agents do not see `response_excerpt`: a receiver can echo what is hidden from them. 403 `channels_limited` for staff limited to some channels. Operation `webhooks_get_delivery`. */
    readonly delivery: (
      input: types.WebhooksGetDeliveryInput,
      options?: CallOptions,
    ) => Promise<types.WebhooksGetDeliveryOutput>
    /** Send a delivery again. At once, whatever its status; a failure is retried as for a new delivery. 403 `channels_limited` for staff limited to some channels. Operation `webhooks_replay_delivery`. */
    readonly replay: (
      input: types.WebhooksReplayDeliveryInput,
      options?: ChangeOptions,
    ) => Promise<types.WebhooksReplayDeliveryOutput>
    /** Resend the events that an endpoint missed in a time range. Events of its current subscriptions whose delivery is `dead` or `skipped`, or that have none: because it was disabled or not subscribed, or because the delivery was already deleted. 403 `channels_limited` for staff limited to some channels. Operation `webhooks_recover_endpoint`. */
    readonly recover: (
      input: types.WebhooksRecoverEndpointInput,
      options?: ChangeOptions,
    ) => Promise<types.WebhooksRecoverEndpointOutput>
  }
  readonly events: {
    /** Read the event log, oldest first. Poll with `after` set to the last id you received: no event is skipped or repeated, and events of one record are in the order of its changes. With `Accept: text/event-stream` the response stays open and streams; it resumes from `Last-Event-ID`. A page can be empty although more events follow, if none of those searched has a requested type: continue with `next_cursor` as `cursor` (or `after`). The server stores the position of a consumer: read with `consumer`, process the page, acknowledge its last event. A consumer that was away for longer than events are kept gets the reason `events_deleted`. Events of channels that the key's owner may not see are left out, and so are the names of manager-only fields in `changes` for agents. Operation `events_list`. */
    readonly list: (input?: types.EventsListInput, options?: CallOptions) => Listing<types.EventsListOutput>
    /** Acknowledge all events up to one, for a consumer. The first acknowledgement creates the consumer. Acknowledging an earlier event changes nothing, unless `rewind` is set, so late and repeated calls do no harm. Acknowledge after processing a page: after a crash, an unacknowledged page is read again. Several programs can share a consumer; a workspace has at most 100. The key of an AI agent asks a person to move a consumer that no agent of the same staff member created. Operation `events_ack`. */
    readonly ack: (input: types.EventsAckInput, options?: ChangeOptions) => Promise<types.EventsAckOutput>
    /** List the consumers of the event log by name. Operation `events_list_consumers`. */
    readonly consumers: (
      input?: types.EventsListConsumersInput,
      options?: CallOptions,
    ) => Listing<types.EventsListConsumersOutput>
    /** Delete a consumer of the event log. Its position is deleted; events stay. Operation `events_delete_consumer`. */
    readonly deleteConsumer: (
      input: types.EventsDeleteConsumerInput,
      options: Confirmed<'delete'>,
    ) => Promise<types.EventsDeleteConsumerOutput>
  }
  readonly reports: {
    /** Summarize messages, conversations and contacts over a range of days. Covers the channels that the owner of the key may see; contacts are always of the whole workspace. `notes` explain the counting and any limit, `unavailable` each null metric. It is an expensive read: few run at a time for each key and workspace, others wait, then get 429. Operation `reports_workspace_summary`. */
    readonly summary: (
      input?: types.ReportsWorkspaceSummaryInput,
      options?: CallOptions,
    ) => Promise<types.ReportsWorkspaceSummaryOutput>
    /** Report what each staff member did in a range of days, and their current load. Uses a stored report of exactly these days in the time zone, otherwise computed live. Reports are stored each night for yesterday, 7 and 30 days. Agents need the report permission. For staff limited to some channels, metrics cover those, computed live, with `notes`. It is an expensive read: few run at a time for each key and workspace, others wait, then get 429. Operation `reports_staff`. */
    readonly staff: (
      input?: types.ReportsStaffInput,
      options?: CallOptions,
    ) => Listing<types.ReportsStaffOutput>
    /** List contacts that entered or left a saved filter since a date. Compares two records of its members (`crm_track_saved_filter`): the last one up to `since` and the newest one. Contacts that entered and left in between are not listed. Without a record up to `since`, or if the filter was different then, it compares with the first one after that, and `complete` is false. Deleted and merged contacts have left; erased ones are in no record. Refused to staff who may not see what the filter tests, or who are limited to some channels if it tests activity on channels. It is an expensive read: few run at a time for each key and workspace, others wait, then get 429. Operation `reports_filter_membership`. */
    readonly membership: (
      input: types.ReportsFilterMembershipInput,
      options?: CallOptions,
    ) => Listing<types.ReportsFilterMembershipOutput>
  }
  readonly audit: {
    /** List the audit trail: who did what through which interface, newest first. Changes, dry runs, and calls that lacked permission or confirmation, kept for 400 days unless the server is configured otherwise. Reads of contacts by AI agents are one row for each key, operation and hour, with `reads: {calls, contacts, hour}` in `changes`. Other successful reads, invalid input and replayed responses are not recorded. For owners, admins and managers who may see all channels, with a key that sees phone numbers. With a filter other than times it is an expensive read: few run at a time for each key and workspace, others wait, then get 429. Operation `audit_list`. */
    readonly list: (input?: types.AuditListInput, options?: CallOptions) => Listing<types.AuditListOutput>
  }
  readonly approvals: {
    /** List approval requests of AI agents, newest first. An agent's key sees its own; owners, admins and managers see all, other staff those of their own keys. Requests on channels that the reader may not see are left out. Operation `approvals_list`. */
    readonly list: (
      input?: types.ApprovalsListInput,
      options?: CallOptions,
    ) => Listing<types.ApprovalsListOutput>
    /** Show an approval request, and wait for the decision. With `wait_seconds` it returns as soon as the call has ended, or after that time. Operation `approvals_get`. */
    readonly get: (input: types.ApprovalsGetInput, options?: CallOptions) => Promise<types.ApprovalsGetOutput>
    /** Approve a call of an AI agent, so that it runs once. Needs a person's key: of an owner, admin or manager, or of the staff member of the asking key; the approver must be able to make the call. It must still act on what the approver was shown, by `summary_version` of `approvals_get`, or, without one, on what it was requested for: after a merge, an opt-out, or a changed number, webhook endpoint or template it is refused (409 `subject_changed`, with `changed`). `text` replaces the text of a reply, note or caption. The call then runs as the agent, under the policy and reply window at that moment; `approvals_get` shows the outcome. Operation `approvals_approve`. */
    readonly approve: (
      input: types.ApprovalsApproveInput,
      options?: ChangeOptions,
    ) => Promise<types.ApprovalsApproveOutput>
    /** Decline a call of an AI agent, so that it never runs. For the same people as approving. The same call of the agent is refused for 24 hours. Operation `approvals_decline`. */
    readonly decline: (
      input: types.ApprovalsDeclineInput,
      options?: ChangeOptions,
    ) => Promise<types.ApprovalsDeclineOutput>
    /** Withdraw an approval request. An agent can withdraw its own requests, with any scopes; a person those that they may decide. Operation `approvals_cancel`. */
    readonly cancel: (
      input: types.ApprovalsCancelInput,
      options?: ChangeOptions,
    ) => Promise<types.ApprovalsCancelOutput>
  }
}

/** The version of the API that these are operations of. */
export const API_VERSION = '2026-10-01'

type Kind = 'read' | 'list' | 'change'
export type Entry = readonly [operation: string, kind: Kind]

export const table: Readonly<Record<string, Entry | Readonly<Record<string, Entry>>>> = {
  whoami: ['workspace_whoami', 'read'],
  staff: {
    list: ['workspace_list_staff', 'list'],
  },
  teams: {
    list: ['workspace_list_teams', 'list'],
  },
  channels: {
    list: ['workspace_channels', 'list'],
  },
  contacts: {
    search: ['crm_search_contacts', 'list'],
    get: ['crm_get_contact', 'read'],
    upsert: ['crm_upsert_contact', 'change'],
    update: ['crm_update_contact', 'change'],
    changePhone: ['crm_change_phone', 'change'],
    delete: ['crm_delete_contact', 'change'],
    duplicates: ['crm_find_duplicates', 'list'],
    merge: ['crm_merge_contacts', 'change'],
    undoMerge: ['crm_undo_contact_merge', 'change'],
    erase: ['crm_erase_contact', 'change'],
    erasures: ['crm_list_erasures', 'list'],
    erasure: ['crm_get_erasure', 'read'],
    exportPerson: ['crm_export_person', 'change'],
    recordConsent: ['crm_record_consent', 'change'],
    consents: ['crm_list_consents', 'list'],
    set: ['crm_update_contacts', 'change'],
    deleteMany: ['crm_delete_contacts', 'change'],
    tag: ['crm_tag_contacts', 'change'],
    untag: ['crm_untag_contacts', 'change'],
    import: ['crm_import_contacts', 'change'],
    count: ['crm_count_contacts', 'read'],
    checkFilter: ['crm_check_filter', 'read'],
  },
  exports: {
    contacts: ['crm_export_contacts', 'change'],
    list: ['crm_list_exports', 'list'],
    get: ['crm_get_export', 'read'],
  },
  tags: {
    list: ['crm_list_tags', 'list'],
    rename: ['crm_rename_tag', 'change'],
    delete: ['crm_delete_tag', 'change'],
    merge: ['crm_merge_tags', 'change'],
  },
  groups: {
    list: ['crm_list_groups', 'list'],
    create: ['crm_create_group', 'change'],
    update: ['crm_update_group', 'change'],
    delete: ['crm_delete_group', 'change'],
    addContacts: ['crm_add_contacts_to_group', 'change'],
    removeContacts: ['crm_remove_contacts_from_group', 'change'],
  },
  customFields: {
    list: ['crm_list_custom_fields', 'list'],
    create: ['crm_create_custom_field', 'change'],
    update: ['crm_update_custom_field', 'change'],
    delete: ['crm_delete_custom_field', 'change'],
  },
  savedFilters: {
    list: ['crm_list_saved_filters', 'list'],
    get: ['crm_get_saved_filter', 'read'],
    create: ['crm_create_saved_filter', 'change'],
    update: ['crm_update_saved_filter', 'change'],
    track: ['crm_track_saved_filter', 'change'],
    delete: ['crm_delete_saved_filter', 'change'],
  },
  jobs: {
    list: ['jobs_list', 'list'],
    get: ['jobs_get', 'read'],
    failures: ['jobs_list_failures', 'list'],
    pause: ['jobs_pause', 'change'],
    resume: ['jobs_resume', 'change'],
    cancel: ['jobs_cancel', 'change'],
    undo: ['jobs_undo', 'change'],
  },
  conversations: {
    queue: ['inbox_queue', 'list'],
    search: ['inbox_search_conversations', 'list'],
    get: ['inbox_get_conversation', 'read'],
    messages: ['inbox_list_messages', 'list'],
    assign: ['inbox_assign_conversation', 'change'],
    unassign: ['inbox_unassign_conversation', 'change'],
    close: ['inbox_close_conversation', 'change'],
    reopen: ['inbox_reopen_conversation', 'change'],
    tag: ['inbox_tag_conversation', 'change'],
    note: ['inbox_add_note', 'change'],
    remind: ['inbox_set_reminder', 'change'],
    read: ['inbox_mark_read', 'change'],
    assignMany: ['inbox_assign_conversations', 'change'],
    closeMany: ['inbox_close_conversations', 'change'],
    reply: ['messaging_send_reply', 'change'],
  },
  messages: {
    search: ['inbox_search_messages', 'list'],
    sendTemplate: ['messaging_send_template', 'change'],
    sendBulk: ['messaging_send_bulk', 'change'],
    get: ['messaging_get_message', 'read'],
    media: ['messaging_get_media', 'read'],
  },
  templates: {
    list: ['messaging_list_templates', 'list'],
    get: ['messaging_get_template', 'read'],
    lint: ['messaging_lint_template', 'read'],
    create: ['messaging_create_template', 'change'],
    update: ['messaging_update_template', 'change'],
    archive: ['messaging_archive_templates', 'change'],
    sync: ['messaging_sync_templates', 'change'],
    uploadSample: ['messaging_upload_template_sample', 'change'],
  },
  shortLinks: {
    list: ['messaging_list_short_links', 'list'],
    create: ['messaging_create_short_link', 'change'],
    get: ['messaging_get_short_link', 'read'],
    delete: ['messaging_delete_short_link', 'change'],
  },
  quickMessages: {
    list: ['messaging_list_quick_messages', 'list'],
    create: ['messaging_create_quick_message', 'change'],
    update: ['messaging_update_quick_message', 'change'],
    delete: ['messaging_delete_quick_message', 'change'],
  },
  broadcasts: {
    list: ['messaging_list_broadcasts', 'list'],
    get: ['messaging_get_broadcast', 'read'],
    recipients: ['messaging_list_broadcast_recipients', 'list'],
    reschedule: ['messaging_reschedule_broadcast', 'change'],
  },
  webhooks: {
    list: ['webhooks_list_endpoints', 'list'],
    get: ['webhooks_get_endpoint', 'read'],
    create: ['webhooks_create_endpoint', 'change'],
    update: ['webhooks_update_endpoint', 'change'],
    delete: ['webhooks_delete_endpoint', 'change'],
    rotateSecret: ['webhooks_rotate_secret', 'change'],
    disable: ['webhooks_disable_endpoint', 'change'],
    enable: ['webhooks_enable_endpoint', 'change'],
    subscribe: ['webhooks_set_subscriptions', 'change'],
    test: ['webhooks_send_test', 'change'],
    eventTypes: ['webhooks_list_event_types', 'list'],
    deliveries: ['webhooks_list_deliveries', 'list'],
    delivery: ['webhooks_get_delivery', 'read'],
    replay: ['webhooks_replay_delivery', 'change'],
    recover: ['webhooks_recover_endpoint', 'change'],
  },
  events: {
    list: ['events_list', 'list'],
    ack: ['events_ack', 'change'],
    consumers: ['events_list_consumers', 'list'],
    deleteConsumer: ['events_delete_consumer', 'change'],
  },
  reports: {
    summary: ['reports_workspace_summary', 'read'],
    staff: ['reports_staff', 'list'],
    membership: ['reports_filter_membership', 'list'],
  },
  audit: {
    list: ['audit_list', 'list'],
  },
  approvals: {
    list: ['approvals_list', 'list'],
    get: ['approvals_get', 'read'],
    approve: ['approvals_approve', 'change'],
    decline: ['approvals_decline', 'change'],
    cancel: ['approvals_cancel', 'change'],
  },
}
