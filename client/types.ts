// Generated from the catalog by scripts/client-types.ts (npm run generate).

export type Approval = {
  /** Approval id. */
  id: string
  /** `pending`: not decided. `approved`: about to run, or running. `done`: it ran. `failed`: approved, but refused or failed when it ran; `outcome` has the reason. `declined`, `expired`, `cancelled`: it never runs. */
  status: ApprovalStatus
  /** The operation that the agent called. */
  operation: string
  /** Who asks. */
  asked_by: ApprovalAskedBy
  /** Why, in the words of the agent. */
  reason: string | null
  /** Why approval is needed: the policy of the key, or the bound that is not met. `many`: it changes several records at once, and there is no undo. `saved_filters`: they have the name it gives, or an option it removes. */
  asked_for: ApprovalAskedFor[]
  /** The customer; null if there is none or several. */
  contact: ApprovalContact | null
  /** When the agent called. */
  requested_at: string
  /** Until when it can be decided. */
  expires_at: string
  /** Who decided. */
  decided_by: ApprovalStaff | null
  /** When. */
  decided_at: string | null
  /** What the person tells the agent. */
  note: string | null
  /** How it ended when it ran. */
  outcome: ApprovalOutcome | null
  /** When it ended. */
  ended_at: string | null
}
export type KeyPolicy = {
  /** Decisions for operations with these confirm verbs; `ask` for those not named. */
  verbs: KeyPolicyVerbs
  /** Decisions for single operations; they override those for verbs. */
  operations: KeyPolicyVerbs
  /** Conditions of `allow`; outside them a person is asked. */
  bounds: {
    /** Only inside an open reply window. */
    window_open?: true
    /** Only conversations assigned to its staff member. */
    assigned?: true
    /** Only templates with these names. */
    templates?: string[]
    /** Most messages in any hour. */
    sends_per_hour?: number
    /** Only at these times, in the workspace's time zone. */
    hours?: {
      /** Days of the week. */
      days: KeyPolicyDay[]
      /** First minute, `HH:MM`. */
      from: string
      /** End, `HH:MM`, exclusive. */
      to: string
    }
  }
  /** `person`: approval with a person's key. `client`: confirmation in the MCP client suffices. */
  approval: 'person' | 'client'
  /** Seconds until the request expires; 24 hours when absent. */
  expires_after?: number
  /** Most requests that wait for a decision; 20 when absent. */
  open_approvals?: number
}
export type WorkspaceWhoamiInput = {}
export type WorkspaceWhoamiOutput = {
  /** The workspace. */
  workspace: {
    /** Workspace id. */
    id: string
    /** Display name. */
    name: string
    /** IANA time zone. */
    timezone: string
    /** The plan. */
    plan: {
      /** Features of the plan. */
      features: string[]
      /** Most contacts; null: no limit. */
      contact_limit: number | null
      /** Most templates; null: no limit. */
      template_limit: number | null
    }
  }
  /** The staff member who owns the key. */
  staff: {
    /** Staff id. */
    id: string
    /** Display name. */
    name: string
    /** Role. */
    role: WorkspaceWhoamiRole
    /** True: phone numbers are masked for this key, of a staff member with hidden phone numbers or of an AI agent. */
    hide_phone_numbers: boolean
    /** May read the staff report. */
    reports: boolean
  }
  /** The key. */
  key: {
    /** Key id. */
    id: string
    /** Name given when it was created. */
    name: string | null
    /** What the key may do. */
    scopes: (
      | 'mcp:read'
      | 'crm:write'
      | 'messaging:write'
      | 'webhooks:write'
      | 'inbox:write'
      | 'approvals:write'
    )[]
    /** True: every change runs as a dry run. */
    test: boolean
    /** The API version the key is pinned to. */
    api_version: string
    /** When it expires; null: never. */
    expires_at: string | null
    /** True: an AI agent's. */
    agent: boolean
    /** False: phone numbers are masked for calls with it. */
    phones: boolean
    /** What the agent may do without approval; null for keys of people. By default, operations with a confirm verb, and those that set the targets of webhooks, are `ask`, and all others `allow`. */
    policy: KeyPolicy | null
  }
  /** Rate limits of the key. */
  limits: {
    /** Reads. */
    read: WorkspaceWhoamiLimits
    /** Changes. */
    write: WorkspaceWhoamiLimits
  }
}
export type Staff = {
  /** Staff id. */
  id: string
  /** Display name. */
  name: string
  /** Owners, admins and managers see everything; agents may have hidden phone numbers, and never see manager-only fields. */
  role: WorkspaceWhoamiRole
  /** False: the keys of this staff member are refused. */
  enabled: boolean
  /** Teams this staff member belongs to. */
  team_ids: string[]
  /** Channels this staff member may use; null: all. */
  channel_ids: string[] | null
}
export type WorkspaceListStaffInput = ListInput
export type WorkspaceListStaffOutput = {
  /** The rows of this page. */
  data: Staff[]
  /** Count of matching rows, on the first page; null on later pages. */
  total: number | null
  /** Pass as `cursor` for the next page; null on the last. */
  next_cursor: string | null
}
export type Team = {
  /** Team id. */
  id: string
  /** Display name. */
  name: string
  /** Members. */
  staff_ids: string[]
}
export type WorkspaceListTeamsInput = ListInput
export type WorkspaceListTeamsOutput = {
  /** The rows of this page. */
  data: Team[]
  /** Count of matching rows, on the first page; null on later pages. */
  total: number | null
  /** Pass as `cursor` for the next page; null on the last. */
  next_cursor: string | null
}
export type Channel = {
  /** Workspace channel id; `channel_id` when sending. */
  id: string
  /** The same channel at the messaging provider; null when not linked. */
  provider_channel_id: string | null
  /** Display name. */
  name: string | null
  /** Channel type, such as `chatapp` or `web`. */
  type: string | null
  /** Business phone number, username or page. */
  identifier: string | null
  /** Used when a send names no channel. */
  is_default: boolean
  /** Connection state. */
  status: 'connected' | 'disconnected' | 'inactive' | 'unknown'
  /** `web`, `ios` or `android` for web chat channels. */
  web_surface: string | null
  /** The number's id at the provider; not a secret. */
  provider_phone_number_id: string | null
  /** Name of the payment configuration. */
  payment_configuration: string | null
  /** Quality rating by the provider; null when not available. */
  quality_rating: string | null
  /** Health at the provider; null for channels without a number. */
  health: ChannelHealth | null
}
export type ChannelHealth = {
  /** `limited`: throttled for a time; `restricted`: some sends are refused; `disconnected`: all are, until an administrator acts. */
  status: ChannelHealthStatus
  /** Why, such as `token_revoked` or `throughput`; null when ok. */
  reason: string | null
  /** The provider's error code, if any. */
  provider_code: number | null
  /** Customers it may write to in a day, such as `TIER_1K`. */
  messaging_limit: string | null
  /** Since when it has this status. */
  since: string | null
  /** When a temporary limit ends. */
  until: string | null
}
export type WorkspaceChannelsInput = PageFields & {
  /** Only channels of this type. */
  type?:
    | 'chatapp'
    | 'photoapp'
    | 'socialchat'
    | 'web'
    | 'videoapp'
    | 'messengerapp'
    | 'email'
    | 'sms'
    | 'custom'
  /** Name or number contains this, ignoring case; `%` and `_` are literal. */
  search?: string
}
export type WorkspaceChannelsOutput = {
  /** The rows of this page. */
  data: Channel[]
  /** Count of matching rows, on the first page; null on later pages. */
  total: number | null
  /** Pass as `cursor` for the next page; null on the last. */
  next_cursor: string | null
  /** Problems, such as a default channel that is not connected. */
  warnings: string[]
}
/** Contact filter: all keys must match; `and` and `or` take lists, `not` one filter. At most 8 deep, 60 conditions and 16384 bytes. */
export type ContactFilter = {
  name?: TextTest
  phoneNumber?: TextTest
  email?: TextTest
  chatappUserId?: TextTest
  webVisitorId?: TextTest
  externalId?: CodeTest
  id?: IdTest
  createdAt?: TimeTest
  updatedAt?: TimeTest
  lastActivityAt?: TimeTest
  lastInboundAt?: TimeTest
  lastOutboundAt?: TimeTest
  dnd?: FlagTest
  starred?: FlagTest
  awaitingReply?: FlagTest
  neverAnswered?: FlagTest
  country?: {
    eq?: ContactFilterCountry
    ne?: ContactFilterCountry
    in?: ContactFilterCountry[]
    notIn?: ContactFilterCountry[]
    isNull?: boolean
  }
  tags?: ContactFilterTags
  groups?: ContactFilterTags
  attributes?: {
    some?: ContactFilterAttributes
    none?: ContactFilterAttributes
  }
  conversations?: {
    some?: ContactFilterConversations
    none?: ContactFilterConversations
  }
  consents?: {
    some?: ContactFilterConsents
    none?: ContactFilterConsents
  }
  broadcasts?: {
    some?: ContactFilterBroadcasts
    none?: ContactFilterBroadcasts
  }
  savedFilter?: {
    eq: string | number
  }
  and?: ContactFilter[]
  or?: ContactFilter[]
  not?: ContactFilter
}
/** All fields of a contact but `attributes_map`, unless `detail` is `ids` or `compact`. */
export type ContactView = {
  /** Contact id. */
  id: string
  /** Name. */
  name?: string | null
  /** E.164 digits without `+`; masked if numbers are hidden from the key's owner. */
  phone?: string | null
  /** True: `phone` is masked. */
  phone_masked?: boolean
  /** Id at the messaging app; numbers in it are masked for staff with hidden phone numbers. */
  chatapp_user_id?: string | null
  /** Username at the messaging app, without `@`; numbers in it are masked as in `chatapp_user_id`. */
  username?: string | null
  /** Id of the contact in another system, unique in the workspace. */
  external_id?: string | null
  /** Do-not-disturb: receives no broadcasts or marketing. */
  dnd?: boolean
  /** Starred; null only when it could not be read. */
  starred?: boolean | null
  /** When it was created. */
  created_at?: string | null
  /** When it was last changed. */
  updated_at?: string | null
  /** Value of the `email` custom field; absent from summary rows. */
  email?: string | null
  /** Id of the web chat visitor. */
  web_visitor_id?: string | null
  /** Tags by name; absent from summary rows. */
  tags?: TagRef[]
  /** Groups by name; absent from summary rows. */
  groups?: GroupRef[]
  /** Data of integrations about the contact. Absent from summary rows, and for agents and staff with hidden phone numbers. */
  metadata?: { [key: string]: string }
  /** Custom field values that the staff member may see, at most 100; text is truncated after 2000 characters. */
  attributes?: Attribute[]
  /** Newest first, at most 10. */
  conversations?: ContactViewConversation[]
  /** Latest conversation activity. */
  last_activity_at?: string | null
  /** Changes with each change of the record; send it as `if_version`. Null in a dry run. */
  version?: string | null
  /** Parts that could not be read now; retry later. */
  unavailable?: ('profile_extras' | 'conversations')[]
  /** Values of custom fields by key, as `typed_value` or else as text; in the format of upserts. Only with `compact`, instead of `attributes`. */
  attributes_map?: { [key: string]: string | number | boolean | string[] | null }
}
export type CrmSearchContactsInput = PageFields & {
  /** Name, phone or username contains this, ignoring case; `%` and `_` are literal. */
  query?: string
  /** Id of the contact in another system; case matters. */
  external_id?: string
  /** In any of these groups, at most 50 ids or names; digits are an id. */
  group_ids?: (string | number)[]
  /** With any of these tags, at most 50 ids or names; digits are an id. */
  tag_ids?: (string | number)[]
  /** True: only starred contacts; false: only others. */
  starred?: boolean
  /** True: only do-not-disturb contacts; false: only others. */
  dnd?: boolean
  /** True: only contacts in no group; false: only contacts in at least one. */
  not_in_any_group?: boolean
  filter?: ContactFilter
  /** A saved filter; when `filter` is sent too, both must match. */
  saved_filter_id?: string | number
  /** Order; `createdAt` descending when absent. Contacts without a name or phone sort as empty text. */
  sort?: {
    /** What to sort by. */
    field: 'createdAt' | 'updatedAt' | 'name' | 'phoneNumber' | 'id'
    /** Direction; `desc` when absent. */
    direction?: 'asc' | 'desc'
  }
  /** `ids`: the id alone. `compact`: name, phone, flags, external id, email, tags, groups, latest activity, and custom fields by their key in `attributes_map`. `summary`: all but email, tags, groups and metadata, which `full` adds. */
  detail?: 'ids' | 'compact' | 'summary' | 'full'
}
export type CrmSearchContactsOutput = {
  /** The rows of this page. */
  data: ContactView[]
  /** Count of matching rows, on the first page; null on later pages. */
  total: number | null
  /** True: `total` is an estimate; null where `total` is. */
  approximate: boolean | null
  /** Relative dates, and dates without a zone, with their instants. */
  resolved_dates: CrmSearchContactsResolvedDate[]
  /** Conditions that look like a mistake. */
  warnings: CrmSearchContactsWarning[]
  /** Pass as `cursor` for the next page; null on the last. */
  next_cursor: string | null
}
export type CrmGetContactInput = (
  | {
      /** Contact id. */
      contact_id: string
    }
  | {
      /** Id of the contact in another system; case matters. */
      external_id: string
    }
) & {
  /** `ids`: the id alone. `compact`: name, phone, flags, external id, email, tags, groups, latest activity, and custom fields by their key in `attributes_map`. `full` when absent. */
  detail?: 'ids' | 'compact' | 'full'
}
export type CrmGetContactOutput = ContactView
export type CrmUpsertContactInput = {
  /** International format with country code, such as `+1 555 010 0042`; local numbers starting with 0 are refused. All spellings of a number are one contact. Required for a new contact. */
  phone?: string
  /** Id of the contact in another system, 1 to 255 characters, unique in the workspace. Finds the contact, alone or beside `phone`; null clears it. */
  external_id?: string | null
  /** Name, 1 to 255 characters. */
  name?: string
  /** Email address, at most 255 characters; empty clears it. */
  email?: '' | string
  /** Custom field key to value; null or an empty string clears a value. Unknown keys are refused with the list of valid ones. */
  attributes?: { [key: string]: unknown }
  /** Data of integrations about the contact: at most 50 keys of 1 to 40 characters, values text of at most 500, 16 KB in all. Unnamed keys stay; null or empty text deletes a key. Not searchable. Only for owners, admins and managers who see phone numbers. */
  metadata?: { [key: string]: string | null }
  /** True: do-not-disturb. `false` does not undo an opt-out; crm_update_contact does. */
  dnd?: boolean
  /** Starred. */
  starred?: boolean
  /** Groups to add, at most 50. */
  group_ids?: (string | number)[]
  /** Tags to add, at most 20 names or ids. */
  tags?: (string | number)[]
}
export type CrmUpsertContactOutput = {
  /** Contact id; null when a dry run would create it. */
  id: string | null
  /** What was done. */
  action: 'created' | 'updated' | 'unchanged'
  /** The contact in full. */
  contact: Omit<Contact, 'id' | 'tags'> & {
    /** Contact id; null when a dry run would create it. */
    id: string | null
    /** Tags by name. */
    tags: {
      /** Tag id; null when a dry run would create it. */
      id: string | null
      /** Tag name. */
      name: string | null
    }[]
  }
  /** What was not done as sent, such as `dnd: false` for a contact that opted out; in a dry run with hidden phone numbers also what it cannot show. */
  warnings?: string[]
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type CrmUpdateContactInput = {
  /** Contact id. */
  contact_id: string
  /** Name, 1 to 255 characters; null clears it. */
  name?: string | null
  /** Email address, at most 255 characters; null or empty clears it. */
  email?: '' | string | null
  /** Id of the contact in another system, 1 to 255 characters, unique in the workspace; null clears it. */
  external_id?: string | null
  /** Custom field key to value; null or an empty string clears a value. Unknown keys are refused with the list of valid ones. */
  attributes?: { [key: string]: unknown }
  /** Data of integrations about the contact: at most 50 keys of 1 to 40 characters, values text of at most 500, 16 KB in all. Unnamed keys stay; null or empty text deletes a key. Not searchable. Only for owners, admins and managers who see phone numbers. */
  metadata?: { [key: string]: string | null }
  /** Do-not-disturb. `false` undoes an opt-out: an AI agent's key asks a person. */
  dnd?: boolean
  /** Starred. */
  starred?: boolean
}
export type CrmUpdateContactOutput = Contact & {
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type Contact = {
  /** Contact id. */
  id: string
  /** Name. */
  name: string | null
  /** E.164 digits without `+`; masked if numbers are hidden from the key's owner. */
  phone: string | null
  /** True: `phone` is masked. */
  phone_masked: boolean
  /** Id at the messaging app; numbers in it are masked for staff with hidden phone numbers. */
  chatapp_user_id: string | null
  /** Username at the messaging app, without `@`; numbers in it are masked as in `chatapp_user_id`. */
  username: string | null
  /** Id of the contact in another system, unique in the workspace. */
  external_id: string | null
  /** Do-not-disturb: receives no broadcasts or marketing. */
  dnd: boolean
  /** Starred; null only when it could not be read. */
  starred: boolean | null
  /** When it was created. */
  created_at: string | null
  /** When it was last changed. */
  updated_at: string | null
  /** Value of the `email` custom field; absent from summary rows. */
  email?: string | null
  /** Id of the web chat visitor. */
  web_visitor_id: string | null
  /** Tags by name; absent from summary rows. */
  tags?: TagRef[]
  /** Groups by name; absent from summary rows. */
  groups?: GroupRef[]
  /** Data of integrations about the contact. Absent from summary rows, and for agents and staff with hidden phone numbers. */
  metadata?: { [key: string]: string }
  /** Custom field values that the staff member may see, at most 100; text is truncated after 2000 characters. */
  attributes: Attribute[]
  /** Newest first, at most 10. */
  conversations: ContactViewConversation[]
  /** Latest conversation activity. */
  last_activity_at: string | null
  /** Changes with each change of the record; send it as `if_version`. Null in a dry run. */
  version: string | null
  /** Parts that could not be read now; retry later. */
  unavailable?: ('profile_extras' | 'conversations')[]
}
export type CrmChangePhoneInput = {
  /** Contact id. */
  contact_id: string
  /** The new number in international format with country code, such as `+1 555 010 0042`; local numbers starting with 0 are refused. */
  phone: string
}
export type CrmChangePhoneOutput = {
  /** The contact. */
  contact: Contact
  /** False: it had this number. */
  changed: boolean
  /** Only in a dry run with hidden phone numbers: what it cannot show. */
  warnings?: string[]
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type CrmDeleteContactInput = {
  /** Contact id. */
  contact_id: string
}
export type CrmDeleteContactOutput = DeleteOutput
export type CrmFindDuplicatesInput = PageFields
export type CrmFindDuplicatesOutput = {
  /** The rows of this page. */
  data: {
    /** The older one, which stays in a merge with these ids. */
    contact_id: string
    /** The other one. */
    other_contact_id: string
    /** The older one. */
    contact: CrmFindDuplicatesData
    /** The other one. */
    other_contact: CrmFindDuplicatesData
    /** The strongest first. */
    reasons: {
      /** What both share. */
      kind: 'user_id' | 'phone' | 'email' | 'name'
      /** The value that both have. */
      value: string
      /** With `name`: the channels on which both have conversations. */
      channel_ids?: string[]
    }[]
  }[]
  /** Pass as `cursor` for the next page; null on the last. */
  next_cursor: string | null
}
export type CrmMergeContactsInput = {
  /** The contact that stays. */
  contact_id: string
  /** The contact that is merged into it. */
  other_contact_id: string
  /** Fields for which the value of the other contact wins, if it has one: `name`, `phone`, `email`, `external_id`, `chatapp_user_id`, `username`, `web_visitor_id`, `metadata`, `attributes.<key>`. */
  prefer_other?: string[]
}
export type CrmMergeContactsOutput = {
  /** The contact that stays. */
  contact: Contact
  /** The contact that was merged into it. */
  other_contact_id: string
  /** Fields for which the other contact has a value. */
  fields: {
    /** Field, as `prefer_other` names it. */
    name: string
    /** Whose value the contact has now. */
    winner: 'kept' | 'other'
  }[]
  /** When the merge can no longer be undone. */
  undo_until: string
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type CrmUndoContactMergeInput = {
  /** The contact that was merged into another one. */
  merged_contact_id: string
}
export type CrmUndoContactMergeOutput = {
  /** The contact that is back. */
  contact: Contact
  /** The contact into which it had been merged. */
  kept_contact: Contact
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type CrmEraseContactInput = {
  /** Contact id. */
  contact_id: string
}
export type CrmEraseContactOutput = {
  /** The receipt so far. In a dry run: what would be erased, as far as it is quick to count. */
  erasure: Omit<Erasure, 'id'> & {
    /** Erasure id; null in a dry run. */
    id: string | null
  }
  /** Only in a dry run: the contact. */
  sample?: CrmEraseContactSample
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type Erasure = {
  /** Erasure id. */
  id: string
  /** The contact that was erased. */
  contact_id: string
  /** `running`: the contact is deleted, copies are still being erased; `done`: everything is erased. */
  state: 'running' | 'done'
  /** The receipt so far: the outcome for rows, by table. Empty for staff with hidden phone numbers or channels. */
  tables: CrmEraseContactTable[]
  /** Who asked for it. */
  created_by: ApprovalStaff
  /** When it began. */
  created_at: string
  /** When the last copy was erased. */
  finished_at: string | null
}
export type CrmListErasuresInput = PageFields & {
  /** Only of this contact. */
  contact_id?: string
  /** Only in this state. */
  state?: 'running' | 'done'
}
export type CrmListErasuresOutput = {
  /** The rows of this page. */
  data: Erasure[]
  /** Pass as `cursor` for the next page; null on the last. */
  next_cursor: string | null
}
export type CrmGetErasureInput = {
  /** Erasure id. */
  erasure_id: string
}
export type CrmGetErasureOutput = Erasure
export type CrmExportPersonInput = {
  /** Contact id. */
  contact_id: string
}
export type CrmExportPersonOutput = {
  /** The export as it begins. In a dry run: what it would have, as far as it is counted quickly. */
  export: CrmExportPersonExport
  /** Only in a dry run: bytes of the files of messages that would be in it. */
  file_bytes?: number
  /** Only in a dry run: the contact. */
  sample?: CrmEraseContactSample
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type CrmExportContactsInput = TargetAlternatives & {
  /** `csv`, for spreadsheets, or `jsonl`: one JSON object on a line. */
  format?: 'csv' | 'jsonl'
}
export type CrmExportContactsOutput = {
  /** The export as it begins. In a dry run: what it would be. */
  export: CrmExportPersonExport
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type Export = {
  /** Export id. */
  id: string
  /** `person`: all personal data of one contact; `contacts`: many contacts, one on each line. */
  kind: 'person' | 'contacts'
  /** The contact; null for `contacts`. */
  contact_id: string | null
  /** Details of a file of contacts; null for `person`. */
  contacts: CrmExportPersonContacts | null
  /** `running`: it is being made; `done`: the file can be downloaded; `failed`: see `problem`; `erased`: a person in it was erased, and the file with them; `expired`: the file was deleted. */
  state: CrmExportPersonState
  /** Progress, from 0 to 1. */
  progress: number
  /** What is in the file so far. */
  tables: CrmExportPersonTable[]
  /** Name of the file: a zip archive, or CSV or JSON Lines. */
  file_name: string
  /** Bytes so far; null if there is no file. */
  size: number | null
  /** SHA-256 of the file in hex; null unless it is done. */
  sha256: string | null
  /** Why it failed. */
  problem: string | null
  /** Who asked for it. */
  created_by: ApprovalStaff
  /** When it began. */
  created_at: string
  /** When the file was complete. */
  finished_at: string | null
  /** When the file is deleted; null unless it is done. */
  file_until: string | null
}
export type CrmListExportsInput = PageFields & {
  /** Only of this contact. */
  contact_id?: string
  /** Only in this state. */
  state?: CrmExportPersonState
}
export type CrmListExportsOutput = {
  /** The rows of this page. */
  data: Export[]
  /** Pass as `cursor` for the next page; null on the last. */
  next_cursor: string | null
}
export type CrmGetExportInput = {
  /** Export id. */
  export_id: string
}
export type CrmGetExportOutput = Export & {
  /** URL of the file, readable without a key until `url_expires_at`. */
  url: string | null
  /** When the URL expires. */
  url_expires_at: string | null
}
export type Consent = {
  /** Id of the record; null in a dry run. */
  id: string | null
  /** Contact. */
  contact_id: string
  /** What the consent is for, such as `marketing`. */
  purpose: string
  /** Type of channel, such as `chatapp`, or `all`. */
  channel: string
  /** `granted` or `withdrawn`. */
  state: 'granted' | 'withdrawn'
  /** Source: `form`, `import`, `staff`, `reply` (the customer wrote a word such as STOP), or `provider`. */
  source: ConsentSource
  /** Proof. Null without one, and for staff with hidden phone numbers or limited to some channels. */
  proof: string | null
  /** Staff member who recorded it. */
  staff_id: string | null
  /** When the customer said so. */
  at: string
  /** When it was recorded. */
  recorded_at: string
  /** True: this record is in effect for its purpose and channel. */
  holds: boolean
}
export type CrmRecordConsentInput = {
  /** Contact id. */
  contact_id: string
  /** What the consent is for; `marketing` when absent. */
  purpose?: string
  /** Type of channel, such as `chatapp`; `all` when absent. */
  channel?: string
  /** `granted` or `withdrawn`. */
  state: 'granted' | 'withdrawn'
  /** How it came; `staff` when absent. */
  source?: 'form' | 'import' | 'staff'
  /** What proves it, 1 to 2000 characters. */
  proof?: string
  /** When the customer granted or withdrew it, not in the future; now when absent. */
  at?: string
}
export type CrmRecordConsentOutput = {
  /** The record. */
  consent: Consent
  /** False: the state was the same before, or a later record exists. */
  changed: boolean
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type CrmListConsentsInput = PageFields & {
  /** Contact id. */
  contact_id: string
  /** Only for this purpose. */
  purpose?: string
}
export type CrmListConsentsOutput = {
  /** The rows of this page. */
  data: Consent[]
  /** Count of matching rows, on the first page; null on later pages. */
  total: number | null
  /** Pass as `cursor` for the next page; null on the last. */
  next_cursor: string | null
}
export type Job = {
  /** Job id. */
  id: string
  /** `running`, `paused`; `done`: every record was tried; `failed`: it stopped, with the reason in `problem`; `cancelled`: it changes nothing more. */
  state: JobState
  /** The operation that it runs on its contacts or conversations. */
  operation: string
  /** The input of its calls, without ids of records. Values of fields are shown to managers who see phones. */
  input: { [key: string]: unknown }
  /** Records that it is for. */
  total: number
  /** Records that it has come to. */
  done: number
  /** Records that changed; the others already had the requested state. */
  changed: number
  /** Records that failed. */
  failed: number
  /** Records a second while it runs; null before the first. */
  per_second: number | null
  /** Estimated seconds left; null if it is not running. */
  seconds_left: number | null
  /** Why it stopped. */
  problem: JobProblem | null
  /** Who began it. */
  created_by: ApprovalStaff
  /** When it began. */
  created_at: string
  /** When it ended. */
  finished_at: string | null
  /** The job that it undoes. */
  undo_of_job_id: string | null
  /** The job that undoes it. */
  undone_by_job_id: string | null
}
export type CrmUpdateContactsInput = TargetAlternatives & {
  /** Values of custom fields by key; null clears one. */
  attributes?: { [key: string]: unknown }
  /** Do-not-disturb. `false` undoes opt-outs: an AI agent's key asks a person. */
  dnd?: boolean
  /** Starred. */
  starred?: boolean
}
export type CrmUpdateContactsOutput = CrmContactsOutput
export type CrmDeleteContactsInput = TargetAlternatives
export type CrmDeleteContactsOutput = RecordsResultFields & {
  /** Only in a dry run by filter: up to 20 of the contacts. */
  samples?: CrmEraseContactSample[]
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type CrmTagContactsInput = CrmContactsInput
export type CrmTagContactsOutput = CrmContactsOutput
export type CrmUntagContactsInput = CrmContactsInput
export type CrmUntagContactsOutput = CrmContactsOutput
export type CrmImportContactsInput = {
  /** True: groups in `group_names` that do not exist are created. */
  create_missing_groups?: boolean
  /** 1 to 500 rows with the fields of an upsert: `phone`, `external_id`, `name`, `email`, `attributes`, `metadata`, `dnd`, `starred`, `group_ids`, `group_names`, `tags`. */
  rows: {
    /** International format with country code, such as `+1 555 010 0042`; local numbers starting with 0 are refused. All spellings of a number are one contact. Required for a new contact. */
    phone?: string
    /** Id of the contact in another system, 1 to 255 characters, unique in the workspace. Finds the contact, alone or beside `phone`; null clears it. */
    external_id?: string | null
    /** Name, 1 to 255 characters. */
    name?: string
    /** Email address, at most 255 characters; empty clears it. */
    email?: '' | string
    /** Custom field key to value; null or an empty string clears a value. Unknown keys are refused with the list of valid ones. */
    attributes?: { [key: string]: unknown }
    /** Data of integrations about the contact: at most 50 keys of 1 to 40 characters, values text of at most 500, 16 KB in all. Unnamed keys stay; null or empty text deletes a key. Not searchable. Only for owners, admins and managers who see phone numbers. */
    metadata?: { [key: string]: string | null }
    /** True: do-not-disturb. `false` does not undo an opt-out; crm_update_contact does. */
    dnd?: boolean
    /** Starred. */
    starred?: boolean
    /** Groups to add, at most 50. */
    group_ids?: (string | number)[]
    /** Tags to add, at most 20 names or ids. */
    tags?: (string | number)[]
    /** Groups to add by name, at most 50. */
    group_names?: string[]
  }[]
}
export type CrmImportContactsOutput = {
  /** Rows sent. */
  requested: number
  /** Rows done. */
  succeeded: number
  /** Rows that failed. */
  failed: number
  /** Contacts created. */
  created: number
  /** Rows that changed a contact. */
  updated: number
  /** Rows that changed nothing. */
  unchanged: number
  /** A result for each row, in their order. */
  results: {
    /** Which row, from 0. */
    row: number
    /** What was done. */
    action: 'created' | 'updated' | 'unchanged' | 'failed'
    /** Contact id; null for a row that failed, and for one that a dry run would create. */
    id: string | null
  }[]
  /** The rows that failed. */
  failures: {
    /** Which row, from 0. */
    row: number
    /** Error code, such as `invalid_input`. */
    code: string
    /** What is wrong. */
    message: string
    /** The first 5 invalid fields. */
    errors: {
      /** Which field, as a JSON Pointer into the request. */
      pointer: string
      /** Kind of error; stable. */
      code: string
      /** What is wrong. */
      detail: string
      /** How to fix it. */
      fix?: string
      /** The allowed values. */
      allowed?: unknown[]
    }[]
  }[]
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type CrmCountContactsInput = {
  filter?: ContactFilter
  /** A saved filter; when `filter` is sent too, both must match. */
  saved_filter_id?: string | number
}
export type CrmCountContactsOutput = {
  /** Count of matching contacts. */
  count: number
  /** True: `count` is an estimate. */
  approximate: boolean
  /** Relative dates, and dates without a zone, with their instants. */
  resolved_dates: CrmSearchContactsResolvedDate[]
  /** Conditions that look like a mistake. */
  warnings: CrmSearchContactsWarning[]
}
export type CrmCheckFilterInput = {
  filter: ContactFilter
}
export type CrmCheckFilterOutput = {
  /** Always true; an invalid filter is refused. */
  valid: boolean
  /** The filter with absolute dates, as it would be saved. */
  filter: ContactFilter
  /** Relative dates, and dates without a zone, with their instants. */
  resolved_dates: CrmSearchContactsResolvedDate[]
  /** Conditions that look like a mistake. */
  warnings: CrmSearchContactsWarning[]
  /** Count of conditions; at most 60. */
  conditions: number
  /** Nesting depth; at most 8. */
  depth: number
  /** What it means, in one sentence. */
  explanation: string
}
export type Tag = {
  /** Tag id. */
  id: string
  /** Tag name; unique, ignoring case. */
  name: string
  /** Count of contacts with this tag. */
  contacts_count: number
  /** When it was created. */
  created_at: string
}
export type CrmListTagsInput = ListInput
export type CrmListTagsOutput = {
  /** The rows of this page. */
  data: Tag[]
  /** Count of matching rows, on the first page; null on later pages. */
  total: number | null
  /** Pass as `cursor` for the next page; null on the last. */
  next_cursor: string | null
}
export type CrmRenameTagInput = {
  /** Tag id. */
  tag_id: string
  /** Tag name, 1 to 100 characters. */
  name: string
}
export type CrmRenameTagOutput = {
  /** The tag. */
  tag: CrmRenameTagTag
  /** False: it had this name. */
  changed: boolean
  /** Saved filters that follow it; absent if none. */
  saved_filters?: CrmRenameTagSavedFilter[]
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type CrmDeleteTagInput = {
  /** Tag id. */
  tag_id: string
}
export type CrmDeleteTagOutput = CrmDeleteOutput
export type CrmMergeTagsInput = {
  /** The tag that stays. */
  tag_id: string
  /** The tag that is merged into it, and deleted. */
  other_tag_id: string
}
export type CrmMergeTagsOutput = {
  /** The tag that stays. */
  tag: CrmRenameTagTag
  /** The tag that was merged into it. */
  other_tag_id: string
  /** Contacts that got the tag. */
  contacts: number
  /** Conversations that got the tag. */
  conversations: number
  /** Saved filters that named the other tag, and name this one now. */
  saved_filters: CrmRenameTagSavedFilter[]
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type Group = {
  /** Group id. */
  id: string
  /** Group name; unique, ignoring case. */
  name: string
  /** One emoji. */
  emoji: string | null
  /** Contacts in it. */
  contacts_count: number
  /** When it was created. */
  created_at: string
}
export type CrmListGroupsInput = ListInput
export type CrmListGroupsOutput = {
  /** The rows of this page. */
  data: Group[]
  /** Count of matching rows, on the first page; null on later pages. */
  total: number | null
  /** Pass as `cursor` for the next page; null on the last. */
  next_cursor: string | null
}
export type CrmCreateGroupInput = {
  /** Group name, 1 to 100 characters. */
  name: string
  /** One emoji. */
  emoji?: string
}
export type CrmCreateGroupOutput = {
  /** The group. */
  group: {
    /** Group id; null when a dry run would create it. */
    id: string | null
    /** Group name. */
    name: string | null
    /** One emoji. */
    emoji: string | null
  }
  /** False: a group with this name already existed. */
  created: boolean
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type CrmUpdateGroupInput = {
  /** Group id. */
  group_id: string
  /** Group name, 1 to 100 characters. */
  name?: string
  /** One emoji; null removes it. */
  emoji?: string | null
}
export type CrmUpdateGroupOutput = {
  /** The group. */
  group: {
    /** Group id. */
    id: string
    /** Group name. */
    name: string
    /** One emoji. */
    emoji: string | null
  }
  /** Fields whose value differs; empty when nothing changes. */
  changes: string[]
  /** Saved filters that follow its name; absent if none. */
  saved_filters?: CrmRenameTagSavedFilter[]
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type CrmDeleteGroupInput = {
  /** Group id. */
  group_id: string
}
export type CrmDeleteGroupOutput = CrmDeleteOutput
export type CrmAddContactsToGroupInput = CrmContactsGroupInput
export type CrmAddContactsToGroupOutput = CrmContactsOutput
export type CrmRemoveContactsFromGroupInput = CrmContactsGroupInput
export type CrmRemoveContactsFromGroupOutput = CrmContactsOutput
export type CustomField = {
  /** Custom field id. */
  id: string
  /** The key in `attributes`. */
  key: string
  /** Label shown to people. */
  label: string | null
  /** Value type. */
  type: CustomFieldType | null
  /** Choices of a select, multiselect or radio field; null for other types. */
  options: CustomFieldOption[] | null
  /** True: values come from the system and cannot be set. */
  read_only: boolean
  /** `manager_only` fields are never shown to agents. */
  visibility: 'visible_to_all' | 'manager_only' | null
  /** True: at least one contact has a value. */
  in_use: boolean | null
  /** When it was created. */
  created_at: string | null
}
export type CrmListCustomFieldsInput = PageFields & {
  /** Key or label contains this, ignoring case; `%` and `_` are literal. */
  search?: string
  /** Only fields of this type. */
  type?: CustomFieldType
}
export type CrmListCustomFieldsOutput = {
  /** The rows of this page. */
  data: CustomField[]
  /** Count of matching rows, on the first page; null on later pages. */
  total: number | null
  /** Pass as `cursor` for the next page; null on the last. */
  next_cursor: string | null
}
export type CrmCreateCustomFieldInput = {
  /** The key in `attributes`: lowercase letters, digits and underscores, starting with a letter. */
  key: string
  /** Label shown to people; the key when absent. */
  label?: string
  /** Value type; cannot change later. */
  type: CustomFieldType
  /** Choices, 1 to 200; required for select, multiselect and radio, refused for other types. */
  options?: CrmCreateCustomFieldOption[]
  /** `manager_only` hides the field from agents. */
  visibility?: 'visible_to_all' | 'manager_only'
}
export type CrmCreateCustomFieldOutput = Omit<CustomField, 'id'> & {
  /** Custom field id; null in a dry run. */
  id: string | null
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type CrmUpdateCustomFieldInput = {
  /** Custom field id. */
  custom_field_id: string
  /** Label shown to people. */
  label?: string
  /** The new choices, replacing the old ones. */
  options?: CrmCreateCustomFieldOption[]
  /** `manager_only` hides the field from agents. `visible_to_all`: the key of an AI agent asks a person. */
  visibility?: 'visible_to_all' | 'manager_only'
}
export type CrmUpdateCustomFieldOutput = CustomField & {
  /** Saved filters that name an option it has lost; absent if none. */
  saved_filters?: CrmRenameTagSavedFilter[]
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type CrmDeleteCustomFieldInput = {
  /** Custom field id. */
  custom_field_id: string
}
export type CrmDeleteCustomFieldOutput = CrmDeleteOutput
export type SavedFilter = {
  /** Saved filter id; null when a dry run would create it. */
  id: string | null
  /** What it filters; contact operations take only `contact`. */
  kind: 'contact' | 'conversation'
  /** Name. */
  name: string
  /** Purpose of the filter. */
  description: string | null
  /** Staff member who saved it; only they may change it. */
  owner_staff_id: string | null
  /** The filter, with absolute dates. */
  filter: ContactFilter
  /** When it was last changed; null in a dry run. */
  updated_at: string | null
  /** Changes with each change of the record; send it as `if_version`. Null in a dry run. */
  version: string | null
}
export type CrmListSavedFiltersInput = ListInput
export type CrmListSavedFiltersOutput = {
  /** The rows of this page. */
  data: SavedFilter[]
  /** Count of matching rows, on the first page; null on later pages. */
  total: number | null
  /** Pass as `cursor` for the next page; null on the last. */
  next_cursor: string | null
}
export type CrmGetSavedFilterInput = {
  /** Saved filter id. */
  saved_filter_id: string
}
export type CrmGetSavedFilterOutput = SavedFilter
export type CrmCreateSavedFilterInput = {
  /** Name, 1 to 255 characters. */
  name: string
  /** Purpose, at most 1000 characters. */
  description?: string
  filter: ContactFilter
  /** With `dry_run` only: also count the contacts that match. */
  count?: boolean
}
export type CrmCreateSavedFilterOutput = {
  /** The saved filter. */
  saved_filter: SavedFilter
  /** Relative dates, and dates without a zone, with their instants. */
  resolved_dates: CrmSearchContactsResolvedDate[]
  /** Conditions that look like a mistake. */
  warnings: CrmSearchContactsWarning[]
  /** Count of matching contacts; present when requested, null when counting failed. */
  count?: number | null
  /** True: `count` is an estimate. */
  approximate?: boolean
  /** Why there is no count. */
  count_error?: CrmCreateSavedFilterCountError
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type CrmUpdateSavedFilterInput = {
  /** Saved filter id. */
  saved_filter_id: string
  /** Name, 1 to 255 characters. */
  name?: string
  /** Purpose, at most 1000 characters; null clears it. */
  description?: string | null
  filter?: ContactFilter
  /** With `dry_run` only: also count the contacts that match. */
  count?: boolean
}
export type CrmUpdateSavedFilterOutput = {
  /** The saved filter. */
  saved_filter: SavedFilter
  /** Fields whose value differs; empty when nothing changes. */
  changes: string[]
  /** Relative dates, and dates without a zone, with their instants. */
  resolved_dates: CrmSearchContactsResolvedDate[]
  /** Conditions that look like a mistake. */
  warnings: CrmSearchContactsWarning[]
  /** Count of matching contacts; present when requested, null when counting failed. */
  count?: number | null
  /** True: `count` is an estimate. */
  approximate?: boolean
  /** Why there is no count. */
  count_error?: CrmCreateSavedFilterCountError
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type CrmTrackSavedFilterInput = {
  /** Saved filter id. */
  saved_filter_id: string
  /** False: recording has stopped; existing records are kept for 35 days. */
  tracked: boolean
}
export type CrmTrackSavedFilterOutput = {
  /** Saved filter id. */
  saved_filter_id: string
  /** Whether it is tracked. */
  tracked: boolean
  /** Since when; null when it is not tracked. */
  tracked_since: string | null
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type CrmDeleteSavedFilterInput = {
  /** Saved filter id. */
  saved_filter_id: string
}
export type CrmDeleteSavedFilterOutput = CrmDeleteOutput
export type JobsListInput = PageFields & {
  /** Only in this state. */
  state?: JobState
}
export type JobsListOutput = {
  /** The rows of this page. */
  data: Job[]
  /** Pass as `cursor` for the next page; null on the last. */
  next_cursor: string | null
}
export type JobsGetInput = {
  /** Job id. */
  job_id: string
}
export type JobsGetOutput = Job
export type JobsListFailuresInput = PageFields & {
  /** Job id. */
  job_id: string
}
export type JobsListFailuresOutput = {
  /** The rows of this page. */
  data: {
    /** Id of the contact or conversation. */
    id: string
    /** Error code, such as `not_found`. */
    code: string
    /** What is wrong. */
    message: string
  }[]
  /** Pass as `cursor` for the next page; null on the last. */
  next_cursor: string | null
}
export type JobsPauseInput = {
  /** Job id. */
  job_id: string
}
export type JobsPauseOutput = JobsOutput
export type JobsResumeInput = {
  /** Job id. */
  job_id: string
}
export type JobsResumeOutput = JobsOutput
export type JobsCancelInput = {
  /** Job id. */
  job_id: string
}
export type JobsCancelOutput = JobsOutput
export type JobsUndoInput = {
  /** Job id. */
  job_id: string
}
export type JobsUndoOutput = {
  /** The new job. */
  job: Omit<Job, 'id'> & {
    /** Job id; null in a dry run. */
    id: string | null
  }
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type QueuedConversation = {
  /** Conversation id. */
  id: string
  /** The customer; null when the contact was deleted, and for a group. */
  contact: ApprovalContact | null
  /** A group, which has no `contact`: each message has its `author`. Absent elsewhere. */
  group?: {
    /** Id of the group at the provider. */
    id: string
  }
  /** Its channel; null when the channel was deleted. */
  channel_id: string | null
  /** Since when the customer waits for an answer. */
  waiting_since: string
  /** Unread messages of the customer. */
  unread_count: number
  /** Staff member it is assigned to. */
  assignee: QueuedConversationAssignee | null
  /** Team it is assigned to; absent without one. */
  team_id?: string
  /** Names of its tags. */
  tags: string[]
  /** State of its service level; null if no policy applies. */
  sla: QueuedConversationSla | null
  /** True: `messaging_send_reply` takes a reply now. */
  can_reply: boolean
  /** Why it takes none: `window_closed`, so that only an approved template can be sent; `group`, which is read only; `contact_deleted`; `contact_unreachable`, without a number; `channel_not_connected`: off or deleted; `channel_not_supported`: without a bridge. Absent where it takes one. */
  reason?: QueuedConversationReason
  /** When the open reply window closes; absent if it is closed or never closes. */
  window_closes_at?: string
  /** Approved templates that fit, best first; only when no free-form reply can be sent. */
  template_ids?: string[]
  /** The last three messages, oldest first. */
  messages: {
    /** Who wrote it. */
    from: 'customer' | 'staff'
    /** At most 60 characters of the newest, 36 of the others; for a message without text its type, such as `[IMAGE]`. */
    text: string
    /** Present when it did not reach the customer. */
    failed?: true
  }[]
}
export type InboxQueueInput = ConversationFiltersFields &
  PageFields & {
    /** Only customers with this tag, by name or id; `tag` is a tag of conversations. */
    contact_tag?: string
  }
export type InboxQueueOutput = {
  /** The rows of this page, longest wait first. */
  data: QueuedConversation[]
  /** The templates that the rows name. */
  templates: {
    /** Template id. */
    id: string
    /** `UTILITY` or `MARKETING`. */
    category: string | null
    /** Its text, with variables. */
    text: string | null
    /** `template` for `messaging_send_template`, with samples: replace them with values for the customer. */
    example: { [key: string]: unknown }
  }[]
  /** Count of matching rows, on the first page; null on later pages. */
  total: number | null
  /** True: counting stopped at 1000; null if `total` is. */
  total_is_lower_bound: boolean | null
  /** Pass as `cursor` for the next page; null on the last. */
  next_cursor: string | null
}
export type Conversation = {
  /** Conversation id. */
  id: string
  /** `open` or `closed`. */
  state: 'open' | 'closed'
  /** The customer; null when the contact was deleted, and for a group. */
  contact: {
    /** Contact id. */
    id: string
    /** Name. */
    name: string | null
    /** E.164 digits, or masked. */
    phone: string | null
    /** Do-not-disturb. */
    dnd_enabled: boolean
    /** Names of the contact's groups. */
    groups: string[]
  } | null
  /** Its channel; null when the channel was deleted. */
  channel: {
    /** Channel id. */
    id: string
    /** Channel name. */
    name: string | null
    /** Channel type. */
    type: string | null
  } | null
  /** Staff member it is assigned to. */
  assignee: QueuedConversationAssignee | null
  /** Team it is assigned to. */
  team_id: string | null
  /** When it was assigned. */
  assigned_at: string | null
  /** Tags by name. */
  tags: TagRef[]
  /** The contact is starred. */
  starred: boolean
  /** Unread messages of the customer. */
  unread_count: number
  /** `incoming_no_reply`: the customer waits; `outgoing_no_response`: the team waits for the customer. */
  reply_status: 'incoming_no_reply' | 'outgoing_no_response' | null
  /** Since when the customer waits for a reply; null if closed or answered. */
  waiting_since: string | null
  /** Service level; null where no policy applies. */
  sla: {
    /** `running`: a clock runs within its target; `breached`: a target was missed; `met`: nothing is due. */
    status: QueuedConversationSla
    /** When the next target is due. */
    next_due_at: string | null
    /** `first_response`, `next_response` or `resolution`. */
    next_due_metric: 'first_response' | 'next_response' | 'resolution' | null
    /** Name of the policy. */
    policy: string | null
  } | null
  /** Reminder. */
  reminder_at: string | null
  /** Raw stored value, kept for compatibility; use `window` instead. */
  chatapp_window_expires_at: string | null
  /** The reply window. */
  window: Window
  /** True: `messaging_send_reply` takes a reply now. */
  can_reply: boolean
  /** Why it takes none: `window_closed`, so that only an approved template can be sent; `group`, which is read only; `contact_deleted`; `contact_unreachable`, without a number; `channel_not_connected`: off or deleted; `channel_not_supported`: without a bridge. Absent where it takes one. */
  reason?: QueuedConversationReason
  /** A chatbot answers. */
  bot_active: boolean
  /** A group, which has no `contact`: each message has its `author`. Absent elsewhere. */
  group?: {
    /** Id of the group at the provider. */
    id: string
  }
  /** The last ad or post that brought the customer here; absent without one. */
  ad?: Ad
  /** The newest message that is not a note. */
  last_message: LastMessage | null
  /** When it started. */
  created_at: string
  /** When it was last changed. */
  updated_at: string
}
export type Window = {
  /** True on channels with a reply window: `chatapp`, `photoapp`, `socialchat`, `videoapp`. False on web chat and other channels. */
  applies: boolean
  /** True: it is open, or none applies. False: only an approved template can be sent. `can_reply` says whether a free-form reply is taken. */
  open: boolean
  /** `service` (24 h), `free_entry` (72 h after an ad), `standard` (24 h), `videoapp` (48 h) or `web`. */
  kind: string | null
  /** When an open window closes; null when unknown or not applicable. */
  closes_at: string | null
  /** When a closed window closed. */
  closed_at: string | null
  /** Why it is closed: `no_window`, `expired` or `never_opened`. */
  reason: 'no_window' | 'expired' | 'never_opened' | null
}
export type Ad = {
  /** Id of the ad or post. */
  ad_id: string | null
  /** `ad` or `post`. */
  type: string | null
  /** URL. */
  url: string | null
  /** Headline. */
  headline: string | null
  /** Text. */
  text: string | null
  /** Image or video. */
  media_url: string | null
  /** Click id, for conversions. */
  click_id: string | null
}
export type LastMessage = {
  /** Message id. */
  id: string
  /** Conversation. */
  conversation_id: string | null
  /** Type of the message. */
  type: LastMessageType
  /** From the customer, to the customer, or neither (notes, changes). */
  direction: LastMessageDirection
  /** Delivery status. */
  status: LastMessageStatus
  /** Text or caption; at most 500 characters as a last message. */
  text: string | null
  /** True: the text was cut. */
  text_truncated: boolean
  /** True: it has an image, video, audio file or document. */
  has_media: boolean
  /** Sender of an outbound message or note; null for inbound. */
  from: LastMessageFrom | null
  /** Who wrote an outbound message or note, with which key; `agent` marks an AI agent, `approved_by` its approver. Null for customers, and if unknown. */
  actor: Actor | null
  /** The message it replies to. */
  reply_to_id: string | null
  /** Why it failed. */
  error: string | null
  /** When it was written. */
  created_at: string | null
  /** When the customer deleted it, with its text and file. */
  deleted_at: string | null
}
export type Actor = {
  /** Staff member who owns the key. */
  staff: ActorStaff
  /** The API key; null when it is not known. */
  key: ActorKey | null
  /** True: done by an AI agent with its own key. */
  agent: boolean
  /** The person who approved the AI agent's call; null: no approval was needed. */
  approved_by: ActorApprovedBy | null
}
export type InboxSearchConversationsInput = SearchFiltersFields &
  PageFields & {
    /** `newest_activity` when absent. `longest_wait`: by `waiting_since`; then those who do not wait, newest activity first. */
    sort?: 'newest_activity' | 'longest_wait'
    /** True: the first page has `total`, also if there are more pages. */
    count?: boolean
  }
export type InboxSearchConversationsOutput = {
  /** The rows of this page. */
  data: Conversation[]
  /** Count of matching rows if the first page has all of them, or with `count`; otherwise null, also with `query` if there are more pages. */
  total: number | null
  /** True: counting stopped at 1000; null if `total` is. */
  total_is_lower_bound: boolean | null
  /** Pass as `cursor` for the next page; null on the last. */
  next_cursor: string | null
}
export type InboxGetConversationInput = {
  /** Conversation id. */
  conversation_id: string
}
export type InboxGetConversationOutput = Conversation
export type Message = ContentFieldsFields &
  Omit<LastMessage, 'text'> & {
    /** Text or caption in full. */
    text: string | null
    /** The image, video, audio file or document. */
    media: MessageMedia | null
    /** The template it was created from. */
    template: MessageTemplate | null
    /** Id of the message in the system that sent it, unique in the workspace. */
    external_id: string | null
    /** True: a note among staff; customers never see it. */
    note: boolean
    /** When it reached the customer. */
    delivered_at: string | null
    /** When the customer read it. */
    read_at: string | null
    /** When it failed. */
    failed_at: string | null
    /** When the customer last edited it; `text` is the new one. */
    edited_at: string | null
    /** Reactions to it. */
    reactions: MessageReaction[]
  }
export type MessageContent =
  | {
      /** What it is. */
      kind: 'contacts'
      /** The cards; `crm_upsert_contact` adds one as a contact. */
      contacts: {
        /** Name. */
        name: string | null
        /** Company. */
        company: string | null
        /** Position in the company. */
        title: string | null
        /** Phone numbers. */
        phones: {
          /** Number, as it was sent. */
          phone: string
          /** Such as `HOME` or `WORK`. */
          kind: string | null
          /** Digits of its international number in the messaging app, if it has one. */
          chatapp_number: string | null
        }[]
        /** E-mail addresses. */
        emails: {
          /** Address. */
          email: string
          /** Such as `HOME` or `WORK`. */
          kind: string | null
        }[]
        /** Postal addresses. */
        addresses: {
          /** Address in one line. */
          address: string
          /** Such as `HOME` or `WORK`. */
          kind: string | null
        }[]
        /** Web pages. */
        urls: {
          /** URL. */
          url: string
          /** Such as `HOME` or `WORK`. */
          kind: string | null
        }[]
        /** Birthday, as it was sent. */
        birthday: string | null
        /** True: the customer's own card, sent on request; its number is now theirs. */
        own: boolean
      }[]
    }
  | {
      /** What it is. */
      kind: 'form'
      /** Name of the form. */
      name: string | null
      /** The answers in order. */
      values: {
        /** Name of the field in the form. */
        field: string
        /** The name in words. */
        label: string
        /** What the customer entered or chose. */
        value: string
      }[]
    }
  | {
      /** What it is. */
      kind: 'button'
      /** What the button stands for: its id, or the payload of the template. */
      payload: string | null
      /** Its text. */
      title: string | null
    }
  | {
      /** What it is. */
      kind: 'list'
      /** Id of the row. */
      row_id: string | null
      /** Its title. */
      title: string | null
      /** Its description. */
      description: string | null
    }
  | {
      /** What it is. */
      kind: 'order'
      /** Catalog. */
      catalog_id: string | null
      /** What the customer wrote with it. */
      note: string | null
      /** The products. */
      items: {
        /** Id of the product in the catalog of the business. */
        product_id: string | null
        /** How many. */
        quantity: number | null
        /** Price of one. */
        price: number | null
        /** ISO 4217 code. */
        currency: string | null
      }[]
      /** One for each currency. */
      totals: {
        /** ISO 4217 code. */
        currency: string
        /** Sum of the items that have a price. */
        amount: number
      }[]
    }
  | {
      /** What it is. */
      kind: 'location'
      /** Degrees north. */
      latitude: number | null
      /** Degrees east. */
      longitude: number | null
      /** Name of the place. */
      name: string | null
      /** Its address. */
      address: string | null
      /** Its page. */
      url: string | null
    }
  | {
      /** What it is. */
      kind: 'call_permission'
      /** True: the business may call. */
      accepted: boolean
      /** Until when. */
      expires_at: string | null
      /** True: the app answered, because the business had called before. */
      automatic: boolean
    }
  | {
      /** What it is. */
      kind: 'audio'
      /** True: a voice message. */
      voice: boolean
    }
  | {
      /** What it is. */
      kind: 'sticker'
      /** True: it moves. */
      animated: boolean
    }
  | {
      /** What it is. */
      kind: 'notice'
      /** What the provider tells of the customer. */
      notice: string | null
    }
  | {
      /** What it is. */
      kind: 'unsupported'
      /** What it is, if the provider says so. */
      type: string | null
      /** Code of the provider's error. */
      code: number | null
      /** Why it cannot be shown, in words of the provider. */
      reason: string | null
    }
  | Interactive
export type Interactive = OfferedButtons | OfferedRows | OfferedLink | OfferedLocationRequest
export type OfferedButtons = {
  /** Reply buttons. */
  kind: 'buttons'
  /** 1 to 3 buttons. */
  buttons: {
    /** Its text, at most 20 characters. */
    title: string
    /** What the tap answers, at most 256 characters; its title if absent. */
    id?: string
  }[]
  /** Line above the text, at most 60 characters. */
  header?: string
  /** Line below the text, at most 60 characters. */
  footer?: string
}
export type OfferedRows = {
  /** A list to choose from. */
  kind: 'rows'
  /** Text of the button that opens the list, at most 20 characters. */
  button: string
  /** 1 to 10 rows, in order. */
  rows: {
    /** Its title, at most 24 characters. */
    title: string
    /** What the tap answers, at most 200 characters; its title if absent. */
    id?: string
    /** Its description, at most 72 characters. */
    description?: string
    /** The section it is in; all rows or none, at most 24 characters. */
    section?: string
  }[]
  /** Line above the text, at most 60 characters. */
  header?: string
  /** Line below the text, at most 60 characters. */
  footer?: string
}
export type OfferedLink = {
  /** A button that opens a page. */
  kind: 'link'
  /** Its text, at most 20 characters. */
  title: string
  /** The page. */
  url: string
  /** Line above the text, at most 60 characters. */
  header?: string
  /** Line below the text, at most 60 characters. */
  footer?: string
}
export type OfferedLocationRequest = {
  /** A button to share a location. */
  kind: 'location_request'
}
export type InboxListMessagesInput = PageFields & {
  /** Conversation id. */
  conversation_id: string
}
export type InboxListMessagesOutput = {
  /** The rows of this page. */
  data: Message[]
  /** Pass as `cursor` for the next page; null on the last. */
  next_cursor: string | null
}
export type MessageHit = {
  /** Message id. */
  id: string
  /** Conversation. */
  conversation_id: string
  /** The customer; null when the contact was deleted. */
  contact: ApprovalContact | null
  /** Channel; null when it was deleted. */
  channel_id: string | null
  /** From the customer, to the customer, or neither (notes, changes). */
  direction: LastMessageDirection
  /** Type of the message. */
  type: LastMessageType
  /** True: a note among staff; customers never see it. */
  note: boolean
  /** Sender of an outbound message or note; null for inbound. */
  from: LastMessageFrom | null
  /** About 200 characters around the first match, with `**` around each matched word. */
  excerpt: string
  /** When it was written. */
  created_at: string
}
export type InboxSearchMessagesInput = PageFields & {
  /** Words, and phrases in double quotes. */
  query: string
  /** Only on this channel. */
  channel_id?: string
  /** Only by this staff member. */
  staff_id?: string
  /** Only in this conversation. */
  conversation_id?: string
  /** Only with this contact. */
  contact_id?: string
  /** Only from customers, to customers, or notes among staff. */
  direction?: 'inbound' | 'outbound' | 'note'
  /** At this time or later. */
  from?: string
  /** Before this time. */
  to?: string
}
export type InboxSearchMessagesOutput = {
  /** The rows of this page. */
  data: MessageHit[]
  /** Pass as `cursor` for the next page; null on the last. */
  next_cursor: string | null
  /** This page searched only messages from this time on: older ones may match too; continue with `next_cursor`. Null: it is full, or the last. */
  searched_to: string | null
}
export type InboxAssignConversationInput = (
  | {
      /** Staff member to assign it to. */
      staff_id: string
    }
  | {
      /** Team to assign it to. */
      team_id: string
    }
) & {
  /** Conversation id. */
  conversation_id: string
  /** Refuse if it is already assigned, instead of reassigning it. */
  only_if_unassigned?: boolean
}
export type InboxAssignConversationOutput = {
  /** The conversation as it is now. */
  conversation: ConversationRef
  /** Name of the assignee. */
  assigned_to: string
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type InboxUnassignConversationInput = {
  /** Conversation id. */
  conversation_id: string
}
export type InboxUnassignConversationOutput = InboxConversationOutput
export type InboxCloseConversationInput = {
  /** Conversation id. */
  conversation_id: string
  /** Why it is closed, at most 200 characters. */
  reason?: string
}
export type InboxCloseConversationOutput = InboxConversationOutput
export type InboxReopenConversationInput = {
  /** Conversation id. */
  conversation_id: string
  /** Title of the new episode, 1 to 120 characters. */
  title?: string
}
export type InboxReopenConversationOutput = InboxConversationOutput
export type InboxTagConversationInput = {
  /** Conversation id. */
  conversation_id: string
  /** Tag names or ids to add, at most 20. */
  add?: (string | number)[]
  /** Tag names or ids to remove, at most 20. */
  remove?: (string | number)[]
}
export type InboxTagConversationOutput = {
  /** The conversation as it is now. */
  conversation: {
    /** Conversation id. */
    id: string
    /** `open` or `closed`. */
    state: string | null
    /** Staff member it is assigned to. */
    assignee_staff_id: string | null
    /** Team it is assigned to. */
    team_id: string | null
    /** Tags by name. */
    tags: {
      /** Tag id; null for one that a dry run would create. */
      id: string | null
      /** Tag name. */
      name: string | null
    }[]
  }
  /** False: nothing changed. */
  changed: boolean
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type InboxAddNoteInput = {
  /** Conversation id. */
  conversation_id: string
  /** The note, 1 to 4096 characters. */
  text: string
}
export type InboxAddNoteOutput = {
  /** The note. */
  message: InboxAddNoteMessage
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type InboxSetReminderInput = {
  /** Conversation id. */
  conversation_id: string
  /** When, ISO 8601 with a zone, in the future; null clears it. */
  at: string | null
}
export type InboxSetReminderOutput = {
  /** The conversation as it is now. */
  conversation: ConversationRef & {
    /** Reminder. */
    reminder_at: string | null
  }
  /** False: nothing changed. */
  changed: boolean
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type InboxMarkReadInput = {
  /** Conversation id. */
  conversation_id: string
}
export type InboxMarkReadOutput = {
  /** The conversation as it is now. */
  conversation: ConversationRef & {
    /** Unread messages. */
    unread_count: number
  }
  /** False: nothing changed. */
  changed: boolean
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type ConversationFilter = SearchFiltersFields & {
  /** Only of contacts that match this filter, as `crm_search_contacts` takes it. */
  contact?: { [key: string]: unknown }
}
export type InboxAssignConversationsInput = InboxConversationsInput & {
  /** Staff member to assign them to. */
  staff_id?: string
  /** Team to assign them to. */
  team_id?: string
  /** Conversations that are already assigned are failures, instead of being reassigned. */
  only_if_unassigned?: boolean
}
export type InboxAssignConversationsOutput = InboxConversationsOutput
export type InboxCloseConversationsInput = InboxConversationsInput & {
  /** Why they are closed, at most 200 characters. */
  reason?: string
}
export type InboxCloseConversationsOutput = InboxConversationsOutput
export type MessagingSendTemplateInput = (
  | {
      /** The contact; alternative to `phone`. */
      contact_id: string
    }
  | {
      /** International phone number; alternative to `contact_id`. */
      phone: string
    }
) & {
  /** Channel; when absent, that of the contact's latest conversation, else the default channel. */
  channel_id?: string
  /** Id of the message in your system, 1 to 255 characters. A second message with it is refused (409 `external_id_taken`); a message that the provider refused frees it. */
  external_id?: string
  /** The template and the values of its variables. */
  template: {
    /** Template name. */
    name: string
    /** Language code, such as `en_US`. */
    language: string
    /** Values of the header. */
    header?: MessagingSendTemplateHeader
    /** Values of the body's variables, in order. */
    body?: string[]
    /** The same by name, in place of `body`: `{"first_name": "Ada"}`, or `{"1": "Ada"}` for `{{1}}`. */
    variables?: { [key: string]: string }
    /** Values of buttons that have a variable. */
    buttons?: MessagingSendTemplateButton[]
    /** When a limited-time offer ends. */
    offer_expires_at?: string
    /** Values of each carousel card, in order. */
    cards?: {
      /** Image or video of the card. */
      header?: MessagingSendTemplateHeader
      /** Values of the card's variables. */
      body?: string[]
      /** Values of the card's buttons. */
      buttons?: MessagingSendTemplateButton[]
    }[]
  }
}
export type MessagingSendTemplateOutput = {
  /** The message; its status follows the provider's reports. */
  message: InboxAddNoteMessage
  /** The conversation it is in; null when a dry run would create it. */
  conversation_id: string | null
  /** The body with its variables filled in. */
  preview: string
  /** In a dry run: what the customer gets in addition to the body. */
  parts?: {
    /** Such as `Footer`, or `Card 1, button 2 (URL)`. */
    part: string
    /** Its text and target, with the values filled in. */
    text: string
  }[]
  /** Only in a dry run with hidden phone numbers: what it cannot show. */
  warnings?: string[]
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type Broadcast = {
  /** Broadcast id. */
  id: string
  /** Name. */
  name: string
  /** `scheduled`, `running`, `completed` or `cancelled`. */
  status: BroadcastStatus
  /** Template. */
  template_name: string | null
  /** Channel. */
  channel_id: string | null
  /** When it is scheduled to start. */
  scheduled_at: string | null
  /** When it started. */
  started_at: string | null
  /** Recipients by delivery status. */
  totals: {
    /** Contacts chosen. */
    recipients: number
    /** Sent, including those delivered or read. */
    sent: number
    /** Delivered, including those read. */
    delivered: number
    /** Read. */
    read: number
    /** Failed. */
    failed: number
    /** Answered. */
    responded: number
    /** Opted out. */
    opted_out: number
  }
  /** The job that sends it; null if there is none, or it ended long ago. */
  job_id: string | null
  /** What its job waits for, or null. */
  waiting: {
    /** `hours`: no recipient is within the given hours. `messaging_limit`: the daily limit of customers for the number is reached. `provider`: the provider throttles. `stopped`: its job is paused or failed, until it is resumed. */
    reason: 'hours' | 'messaging_limit' | 'provider' | 'stopped'
    /** When it continues, at the latest; null if stopped, and with hidden phone numbers, because hours reveal their countries. */
    until: string | null
  } | null
}
export type MessagingSendBulkInput = TargetAlternatives & {
  /** The template and the values of its variables. */
  template: {
    /** Template name. */
    name: string
    /** Language code, such as `en_US`. */
    language: string
    /** Values of the body's variables, in order. */
    body?: MessagingSendBulkTemplate[]
    /** The same by name, in place of `body`. */
    variables?: { [key: string]: MessagingSendBulkTemplate }
    /** When a limited-time offer ends. */
    offer_expires_at?: string
    /** Values of the header. */
    header?: {
      /** Value of a text header. */
      text?: MessagingSendBulkTemplate
      /** Public https URL of the image, video or document. */
      media_url?: string
      /** Media id at the provider instead. */
      media_handle?: string
      /** Name of a document. */
      file_name?: string
      /** Latitude of a location header. */
      latitude?: number
      /** Longitude of a location header. */
      longitude?: number
      /** Name of the place. */
      name?: string
      /** Address of the place. */
      address?: string
    }
    /** Values of buttons that have a variable. */
    buttons?: {
      /** Position of the button, from 0. */
      index: number
      /** Value of the variable at the end of a URL. */
      text?: MessagingSendBulkTemplate
      /** Payload that a quick reply returns. */
      payload?: string
      /** Code of a copy-code button. */
      coupon_code?: string
    }[]
  }
  /** Channel; the default channel when absent. */
  channel_id?: string
  /** Name of the broadcast; by default that of the template. */
  name?: string
  /** When it starts, at most 90 days ahead: ISO 8601; without an offset, in the workspace's time zone. */
  scheduled_at?: string
  /** Only at these times in the recipient's country, by the phone; if unknown, in the workspace's time zone. In a country with several zones: only within the hours in all of them. 403 `phone_hidden` with hidden phone numbers, because hours reveal their countries. */
  hours?: {
    /** First minute, `HH:MM`. */
    from: string
    /** End, `HH:MM`, exclusive; after `from`. */
    to: string
    /** Days of the week; all when absent. */
    days?: KeyPolicyDay[]
  }
  /** Most messages a second; the provider's default for a number is 80. */
  per_second?: number
  /** Stops when more than this percentage of the last messages failed, of at least 20. */
  stop_at_error_percent?: number
  /** 409 where there would be more. */
  max_recipients?: number
}
export type MessagingSendBulkOutput = {
  /** Contacts that were named or matched. */
  matched: number
  /** Contacts that get a message. */
  recipients: number
  /** Contacts that get none. */
  left_out: {
    /** `do_not_disturb`: whatever the category of the template. `consent_withdrawn`: for marketing. `unreachable`: neither a phone nor an id at the messaging app. `double`: another contact with the same line or id gets it. `missing_value`: for a variable without a fallback. `values_do_not_fit`: too long for the template, such as more than 1024 characters of text. `values_changed`: different from the approved ones. `no_common_hour`: the hours never overlap across the time zones of the country. */
    reason:
      | 'not_found'
      | 'do_not_disturb'
      | 'consent_withdrawn'
      | 'unreachable'
      | 'double'
      | 'missing_value'
      | 'values_do_not_fit'
      | 'values_changed'
      | 'no_common_hour'
    /** Contacts. */
    count: number
  }[]
  /** What is sent; absent in a dry run. */
  broadcast?: Broadcast
  /** The job that sends it; absent in a dry run. */
  job?: Job
  /** Only in a dry run with `scheduled_at`: when it starts, in the workspace's time zone. */
  starts_at?: string
  /** Only in a dry run: recipients by country; not with hidden phone numbers. */
  countries?: {
    /** ISO 3166 code; null when unknown. */
    country: string | null
    /** Recipients. */
    count: number
  }[]
  /** Only in a dry run: values that come from contacts. */
  values?: {
    /** Such as `body[0]`. */
    variable: string
    /** Contacts without a value of their own. */
    missing: number
    /** What they get; null: they are left out. */
    fallback: string | null
  }[]
  /** Only in a dry run: the body, with placeholders for values. */
  text?: string
  /** Only in a dry run: the same beside the body. */
  parts?: {
    /** Such as `Footer`, or `Button 1 (URL)`. */
    part: string
    /** Its text, and where it leads. */
    text: string
  }[]
  /** Only in a dry run: up to ten messages. */
  previews?: {
    /** Contact id. */
    contact_id: string
    /** Name. */
    name: string | null
    /** The body as this contact gets it. */
    text: string
  }[]
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type MessagingSendReplyInput = (
  | {
      /** Text, 1 to 4096 characters. */
      text: string
      /** What the customer can tap below `text`; the tap arrives as a message whose `content` has its id. */
      interactive?: Interactive
    }
  | {
      /** Public https URL of a file to send. */
      media_url: string
      /** Type of the file; required with `media_url`. */
      type: 'IMAGE' | 'VIDEO' | 'AUDIO' | 'DOCUMENT' | 'STICKER'
      /** Caption of an image, video or document. */
      caption?: string
      /** Name of a document. */
      file_name?: string
    }
  | {
      /** A saved reply; its placeholders are filled in. */
      quick_message_id: string
    }
) & {
  /** Conversation id. */
  conversation_id: string
  /** The message of this conversation to reply to. */
  reply_to_id?: string
  /** Id of the message in your system, 1 to 255 characters. A second message with it is refused (409 `external_id_taken`); a message that the provider refused frees it. */
  external_id?: string
}
export type MessagingSendReplyOutput = {
  /** The message; its status follows the provider's reports. */
  message: InboxAddNoteMessage
  /** The conversation it is in; null when a dry run would create it. */
  conversation_id: string | null
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type MessagingGetMessageInput =
  | {
      /** Message id. */
      message_id: string
    }
  | {
      /** Id of the message in the system that sent it; case matters. */
      external_id: string
    }
export type MessagingGetMessageOutput = Message
export type MessagingGetMediaInput = {
  /** Message id. */
  message_id: string
}
export type MessagingGetMediaOutput = {
  /** MIME type. */
  content_type: string
  /** File name. */
  file_name: string | null
  /** Bytes; null if this server does not store it. */
  size: number | null
  /** URL of the bytes, readable without a key until `expires_at`. */
  url: string
  /** When the URL expires; null when it is on another server. */
  expires_at: string | null
}
export type Template = {
  /** Template id. */
  id: string
  /** Name. */
  name: string
  /** Language code. */
  language: string | null
  /** `MARKETING`, `UTILITY` or `AUTHENTICATION`. */
  category: string | null
  /** Finer category. */
  sub_category: string | null
  /** Review status, such as `PENDING`, `APPROVED`, `REJECTED`, `PAUSED`, `DISABLED`, `IN_APPEAL`, `ARCHIVED` or `DELETED`; `SUBMITTING` until the provider has accepted it. */
  status: string | null
  /** The reviewer's reason, verbatim, when rejected or paused. */
  rejection_reason: string | null
  /** Quality by the provider: `GREEN`, `YELLOW` or `RED`. */
  quality_rating: string | null
  /** The body with its samples filled in. */
  body_preview: string | null
  /** Body variables to supply when sending. */
  variable_count: number
  /** `TEXT`, `IMAGE`, `VIDEO`, `DOCUMENT` or `LOCATION`. */
  header_format: string | null
  /** Header. */
  header: TemplateHeader | null
  /** Body. */
  body: TemplateBody | null
  /** Footer. */
  footer: string | null
  /** Minutes until a code expires; null: not stated in the footer. */
  code_expiration_minutes: number | null
  /** Buttons in display order. */
  buttons: TemplateButton[]
  /** Cards of a carousel; 0: none. */
  carousel_cards: number
  /** The cards, in order. */
  cards: TemplateCard[]
  /** Whether its variables are numbers or names. */
  parameter_format: 'POSITIONAL' | 'NAMED'
  /** Limited-time offer. */
  limited_time_offer: TemplateLimitedTimeOffer | null
  /** The last error that the provider reported for it. */
  meta_errors: unknown
  /** When it was created. */
  created_at: string | null
  /** When it was last changed. */
  updated_at: string | null
  /** Changes with each change of the record; send it as `if_version`. Null in a dry run. */
  version: string | null
}
export type MessagingListTemplatesInput = PageFields & {
  /** Name or body contains this, ignoring case; `%` and `_` are literal. */
  search?: string
  /** Only with this review status, ignoring case: `PENDING`, `APPROVED`, `REJECTED`, `PAUSED`, `DISABLED`, `IN_APPEAL`, `ARCHIVED`, `SUBMITTING`, or another of the provider's. */
  status?: string
  /** Only in this category, ignoring case: `MARKETING`, `UTILITY` or `AUTHENTICATION`. */
  category?: string
  /** Only in this language, such as `en_US`; `en` is a different language. */
  language?: string
}
export type MessagingListTemplatesOutput = {
  /** The rows of this page. */
  data: Template[]
  /** Count of matching rows, on the first page; null on later pages. */
  total: number | null
  /** Pass as `cursor` for the next page; null on the last. */
  next_cursor: string | null
}
export type TemplateDetails = Template & {
  /** The template as `messaging_create_template` and `messaging_update_template` take it; null when a draft cannot express it. */
  draft: { [key: string]: unknown } | null
  /** JSON Schema of `template` in `messaging_send_template` for this template; null when it has a button that cannot be sent. */
  send_schema: { [key: string]: unknown } | null
  /** A `template` with the samples as values. */
  send_example: { [key: string]: unknown } | null
}
export type MessagingGetTemplateInput = {
  /** Template id. */
  template_id: string
}
export type MessagingGetTemplateOutput = TemplateDetails
export type LintResult = {
  /** True: no errors; warnings may remain. */
  valid: boolean
  /** Count of errors. */
  errors: number
  /** Count of warnings. */
  warnings: number
  /** The issues, errors first. */
  issues: {
    /** Id of the rule. */
    rule: string
    /** `error`: the draft is refused, or certain to be rejected in review. */
    severity: 'error' | 'warning' | 'info'
    /** Position, such as `body.text` or `buttons[0].url`. */
    path: string
    /** What is wrong. */
    message: string
    /** How to fix it. */
    fix: string
  }[]
  /** Variables found. */
  variables: {
    /** Header variables. */
    header: number
    /** Body variables. */
    body: number
  }
  /** The body with its samples filled in. */
  preview: string | null
}
export type MessagingLintTemplateInput = {
  /** The draft. */
  template: TemplateDraft
}
export type MessagingLintTemplateOutput = LintResult
export type MessagingCreateTemplateInput = {
  /** Draft. */
  template: TemplateDraft
  /** Account, if several. */
  business_account_id?: string
  /** Or a channel of the account. */
  channel_id?: string
  /** The provider may change the category. */
  allow_category_change?: boolean
}
export type MessagingCreateTemplateOutput = MessagingTemplateOutput
export type MessagingUpdateTemplateInput = {
  /** Template id. */
  template_id: string
  /** The edited draft. */
  template: TemplateDraft
}
export type MessagingUpdateTemplateOutput = MessagingTemplateOutput
export type MessagingArchiveTemplatesInput = {
  /** 1 to 20 template ids. */
  ids: (string | number)[]
}
export type MessagingArchiveTemplatesOutput = {
  /** Archived now, or before. */
  archived: string[]
  /** The templates that could not be archived. */
  failed: {
    /** Template id. */
    id: string
    /** Its name, when known. */
    name?: string
    /** Why. */
    code: 'not_found' | 'account_not_connected' | 'not_submitted' | 'refused_by_whatsapp'
    /** The reason in words. */
    reason: string
  }[]
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type MessagingSyncTemplatesInput = {}
export type MessagingSyncTemplatesOutput = {
  /** Templates that the provider has. */
  read: number
  /** Of these, new here. */
  created: number
  /** Of these, changed here. */
  updated: number
  /** Of these, as they were. */
  unchanged: number
  /** Templates that the provider no longer has: `DELETED` from now on. */
  gone: number
  /** The first 100 changes. */
  changes: {
    /** Template id; null in a dry run that creates it. */
    id: string | null
    /** Name. */
    name: string
    /** Language. */
    language: string
    /** What is done. */
    change: 'created' | 'updated' | 'gone'
    /** Review status. */
    status: string
    /** Status before; null for a new one. */
    previous_status: string | null
  }[]
  /** Accounts that could not be read. */
  problems: {
    /** Business account. */
    business_account_id: string
    /** Its name. */
    business_account_name: string | null
    /** Error code. */
    code: string
    /** Its reason. */
    reason: string | null
    /** The problem in words. */
    detail: string
  }[]
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type MessagingUploadTemplateSampleInput = {
  /** File name. */
  file_name: string
  /** Media type of the file. */
  content_type: 'image/jpeg' | 'image/png' | 'video/mp4' | 'application/pdf'
  /** The bytes in base64. */
  data: string
  /** The account whose templates use it; only needed if several have their own credentials. */
  business_account_id?: string
}
export type MessagingUploadTemplateSampleOutput = {
  /** Handle; null in a dry run. */
  media_handle: string | null
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type ShortLink = {
  /** Short link id; null in a dry run. */
  id: string | null
  /** The code at the end of the link; null in a dry run. */
  code: string | null
  /** The click-to-chat link; null in a dry run. */
  url: string | null
  /** Text that the link prefills for the customer. */
  message: string | null
  /** URL of the QR image of `url`, readable without a key; null if there is none, and in a dry run. */
  qr_image_url: string | null
  /** Format of the image; null when there is none. */
  qr_image_format: 'PNG' | 'SVG' | null
  /** The phone number it opens a chat with. */
  channel: ShortLinkChannel | null
  /** When it was created; null in a dry run. */
  created_at: string | null
  /** When it was last changed; null in a dry run. */
  updated_at: string | null
}
export type MessagingListShortLinksInput = PageFields & {
  /** Only on this channel. */
  channel_id?: string
  /** Message or code contains this, ignoring case; `%` and `_` are literal. */
  search?: string
}
export type MessagingListShortLinksOutput = {
  /** The rows of this page. */
  data: ShortLink[]
  /** Count of matching rows, on the first page; null on later pages. */
  total: number | null
  /** Pass as `cursor` for the next page; null on the last. */
  next_cursor: string | null
}
export type MessagingCreateShortLinkInput = {
  /** 1 to 140 characters of plain text; an emoji counts as 2. Line breaks are kept; leading and trailing white space is removed. Do not URL-encode it. */
  message: string
  /** Channel of the number; required only when several numbers are connected. */
  channel_id?: string
  /** The phone number, in any notation; alternative to `channel_id`. */
  phone?: string
  /** Format of the QR image; `NONE` for no image. */
  qr_format?: 'PNG' | 'SVG' | 'NONE'
  /** Create a second link with the same message. */
  allow_duplicate?: boolean
}
export type MessagingCreateShortLinkOutput = ShortLink & {
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type MessagingGetShortLinkInput = {
  /** Short link id. */
  short_link_id: string
}
export type MessagingGetShortLinkOutput = ShortLink
export type MessagingDeleteShortLinkInput = {
  /** Short link id. */
  short_link_id: string
}
export type MessagingDeleteShortLinkOutput = DeleteOutput
export type QuickMessage = {
  /** Quick message id. */
  id: string
  /** Shortcut typed after a slash in the inbox. */
  code: string | null
  /** Title. */
  title: string | null
  /** `TEXT`, `IMAGE`, `VIDEO`, `DOCUMENT`, `TEMPLATE`, `INTERACTIVE` and more. */
  type: string | null
  /** Body, or caption of the media. */
  text: string | null
  /** URL of the media. */
  media_url: string | null
  /** Template, of type TEMPLATE. */
  template_name: string | null
  /** What can be tapped, of type INTERACTIVE; absent otherwise. */
  interactive?: Interactive
  /** `private`, `team` or `company`. */
  visibility: string | null
  /** The team that sees it. */
  team_id: string | null
  /** True: a favourite of the key's owner. */
  favorite: boolean
  /** True: the key's owner may change it. Its type must be editable, and it must be their own, or not private and they are not an agent. */
  can_edit: boolean
  /** When it was last changed. */
  updated_at: string | null
  /** Changes with each change of the record; send it as `if_version`. Null in a dry run. */
  version: string | null
}
export type MessagingListQuickMessagesInput = PageFields & {
  /** Code, title or text contains this, ignoring case. */
  query?: string
  /** Only of this type. */
  type?: string
  /** Only with this visibility. */
  visibility?: MessagingListQuickMessagesVisibility
}
export type MessagingListQuickMessagesOutput = {
  /** The rows of this page. */
  data: QuickMessage[]
  /** Count of matching rows, on the first page; null on later pages. */
  total: number | null
  /** Pass as `cursor` for the next page; null on the last. */
  next_cursor: string | null
}
export type MessagingCreateQuickMessageInput = {
  /** Shortcut, 1 to 60 characters, no spaces; unique, ignoring case, among those that you may see. */
  code: string
  /** Type; cannot change later. */
  type?: 'TEXT' | 'IMAGE' | 'VIDEO' | 'DOCUMENT' | 'INTERACTIVE'
  /** Title, 1 to 120 characters. */
  title?: string
  /** Description, at most 500 characters. */
  description?: string
  /** Message, or caption of the media; may contain placeholders such as `{{contact.name}}`. */
  text?: string
  /** What can be tapped below `text`; without placeholders. */
  interactive?: Interactive
  /** Public https URL of the media; empty is as if left out. */
  media_url?: '' | string
  /** File name, of type DOCUMENT; empty is none. */
  file_name?: '' | string
  /** Who sees it: `private`, `team` or `company`. */
  visibility?: MessagingListQuickMessagesVisibility
  /** The team that sees it; required with visibility `team`, refused otherwise; empty is as if left out. Agents must name a team of their own. */
  team_id?: '' | string
}
export type MessagingCreateQuickMessageOutput = Omit<QuickMessage, 'id'> & {
  /** Quick message id; null when a dry run would create it. */
  id: string | null
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type MessagingUpdateQuickMessageInput = {
  /** Quick message id. */
  quick_message_id: string
  /** Shortcut, 1 to 60 characters, no spaces; unique, ignoring case, among those that you may see. */
  code?: string
  /** Title, 1 to 120 characters. */
  title?: string
  /** Description, at most 500 characters. */
  description?: string
  /** Message, or caption of the media; may contain placeholders such as `{{contact.name}}`. */
  text?: string
  /** Public https URL of the media; empty is as if left out. */
  media_url?: '' | string
  /** File name, of type DOCUMENT; empty is none. */
  file_name?: '' | string
  /** Who sees it: `private`, `team` or `company`. */
  visibility?: MessagingListQuickMessagesVisibility
  /** The team that sees it; required with visibility `team`, refused otherwise; empty is as if left out. Agents must name a team of their own. */
  team_id?: '' | string
}
export type MessagingUpdateQuickMessageOutput = QuickMessage & {
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type MessagingDeleteQuickMessageInput = {
  /** Quick message id. */
  quick_message_id: string
}
export type MessagingDeleteQuickMessageOutput = DeleteOutput
export type MessagingListBroadcastsInput = PageFields & {
  /** Only in this status. */
  status?: BroadcastStatus
  /** Name contains this, ignoring case; `%` and `_` are literal. */
  search?: string
}
export type MessagingListBroadcastsOutput = {
  /** The rows of this page. */
  data: Broadcast[]
  /** Count of matching rows, on the first page; null on later pages. */
  total: number | null
  /** Pass as `cursor` for the next page; null on the last. */
  next_cursor: string | null
}
export type MessagingGetBroadcastInput = {
  /** Broadcast id. */
  broadcast_id: string
}
export type MessagingGetBroadcastOutput = Broadcast
export type MessagingListBroadcastRecipientsInput = PageFields & {
  /** Broadcast id. */
  broadcast_id: string
  /** Only recipients with this status, as in contact filters. `sent`: sent but not yet delivered; `not_responded`: all who did not respond. */
  message_status?: ContactFilterMessageStatus
}
export type MessagingListBroadcastRecipientsOutput = {
  /** The rows of this page. */
  data: {
    /** The contact; null when it was deleted. */
    contact: {
      /** Contact id. */
      id: string
      /** Name. */
      name: string | null
      /** E.164 digits, or masked. */
      phone: string | null
    } | null
    /** Delivery status of the message. */
    message_status: 'pending' | 'sent' | 'delivered' | 'read' | 'failed'
    /** The contact answered. */
    responded: boolean
    /** The contact opted out. */
    opted_out: boolean
    /** When it was sent. */
    sent_at: string | null
    /** When it was delivered. */
    delivered_at: string | null
    /** When it was read. */
    read_at: string | null
    /** When it failed. */
    failed_at: string | null
    /** When the contact answered. */
    responded_at: string | null
    /** Why it failed; null if it did not, or if unknown. */
    error: string | null
  }[]
  /** Count of matching rows, on the first page; null on later pages. */
  total: number | null
  /** Pass as `cursor` for the next page; null on the last. */
  next_cursor: string | null
}
export type MessagingRescheduleBroadcastInput = {
  /** Broadcast id. */
  broadcast_id: string
  /** When it starts, at most 90 days ahead: ISO 8601; without an offset, in the workspace's time zone. */
  scheduled_at: string
}
export type MessagingRescheduleBroadcastOutput = {
  /** The broadcast. */
  broadcast: Broadcast
  /** When it starts, in the workspace's time zone. */
  starts_at: string
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type WebhookEndpoint = {
  /** Endpoint id. */
  id: string
  /** Public https URL that events are sent to. */
  url: string
  /** Description. */
  description: string | null
  /** `paused`: it failed several times; events queue while it is probed. */
  status: WebhookEndpointStatus
  /** Headers sent along; values masked to the last 4 characters. */
  custom_headers: { [key: string]: string }
  /** Attempts that failed in a row. */
  consecutive_failures: number
  /** When it was disabled. */
  disabled_at: string | null
  /** `manual`, `gone` or `failing`. */
  disabled_reason: string | null
  /** Masked; the secret itself is shown once, when it is created. */
  signing_secret: string
  /** `envelope`: id, type, version and data; `data`: the data alone. */
  payload_format: 'envelope' | 'data'
  /** When it was created. */
  created_at: string
  /** When it was last changed. */
  updated_at: string
  /** Changes with each change of the record; send it as `if_version`. Null in a dry run. */
  version: string | null
  /** Subscriptions. */
  subscriptions: WebhookEndpointSubscriptions | null
}
export type WebhooksListEndpointsInput = PageFields & {
  /** Only in this status. */
  status?: WebhookEndpointStatus
  /** URL contains this, ignoring case. */
  url_contains?: string
}
export type WebhooksListEndpointsOutput = {
  /** The rows of this page. */
  data: WebhookEndpoint[]
  /** Pass as `cursor` for the next page; null on the last. */
  next_cursor: string | null
}
export type WebhooksGetEndpointInput = {
  /** Endpoint id. */
  endpoint_id: string
}
export type WebhooksGetEndpointOutput = WebhookEndpoint
export type WebhooksCreateEndpointInput = {
  /** Public https URL, 1 to 2048 characters. */
  url: string
  /** Description, at most 500 characters; null clears it. */
  description?: string | null
  /** Headers to send with each event; replaces the whole set, `{}` removes all. Reserved: `Webhook-*`, `Wc-*`, `Content-*`, `Host`, `User-Agent`, `Idempotency-Key`, `Proxy-*`. */
  custom_headers?: { [key: string]: string }
  /** Format of the body. */
  payload_format?: 'envelope' | 'data'
  /** Event type ids, or `["*"]` for all, including future types. */
  event_types?: string[]
}
export type WebhooksCreateEndpointOutput = {
  /** The endpoint. */
  endpoint: Omit<WebhookEndpoint, 'id'> & {
    /** Endpoint id; null when a dry run would create it. */
    id: string | null
  }
  /** The secret, shown only here; null in a dry run. */
  signing_secret: string | null
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type WebhooksUpdateEndpointInput = {
  /** Endpoint id. */
  endpoint_id: string
  /** Public https URL, 1 to 2048 characters. */
  url?: string
  /** Description, at most 500 characters; null clears it. */
  description?: string | null
  /** Headers to send with each event; replaces the whole set, `{}` removes all. Reserved: `Webhook-*`, `Wc-*`, `Content-*`, `Host`, `User-Agent`, `Idempotency-Key`, `Proxy-*`. */
  custom_headers?: { [key: string]: string }
  /** Format of the body. */
  payload_format?: 'envelope' | 'data'
}
export type WebhooksUpdateEndpointOutput = {
  /** The endpoint. */
  endpoint: WebhookEndpoint
  /** Names of the fields that changed. */
  changed: string[]
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type WebhooksDeleteEndpointInput = {
  /** Endpoint id. */
  endpoint_id: string
}
export type WebhooksDeleteEndpointOutput = {
  /** Endpoint id. */
  id: string
  /** True: it was deleted. */
  deleted: boolean
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type WebhooksRotateSecretInput = {
  /** Endpoint id. */
  endpoint_id: string
}
export type WebhooksRotateSecretOutput = {
  /** The endpoint. */
  endpoint: WebhookEndpoint
  /** The new secret, shown only here; null in a dry run. */
  signing_secret: string | null
  /** When the secret before this one expires. */
  old_secret_valid_until: string
  /** When each replaced secret that is still valid expires, newest first. */
  old_secrets_valid_until: string[]
  /** What to do now. */
  warning: string
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type WebhooksDisableEndpointInput = {
  /** Endpoint id. */
  endpoint_id: string
}
export type WebhooksDisableEndpointOutput = WebhooksOutput
export type WebhooksEnableEndpointInput = {
  /** Endpoint id. */
  endpoint_id: string
}
export type WebhooksEnableEndpointOutput = WebhooksOutput
export type WebhooksSetSubscriptionsInput = {
  /** Endpoint id. */
  endpoint_id: string
  /** Event type ids, or `["*"]` for all, including future types. */
  event_types: string[]
}
export type WebhooksSetSubscriptionsOutput = WebhooksOutput
export type WebhooksSendTestInput = {
  /** Endpoint id. */
  endpoint_id: string
  /** Event type and its version, such as `contact.created/1`. */
  event_type_id: string
  /** Data of the event; when absent, the sample of its type. With data, the key of an AI agent asks a person. */
  payload?: { [key: string]: unknown }
  /** Seconds to wait for the receiver's response, 10 when absent. */
  wait_seconds?: number
}
export type WebhooksSendTestOutput = {
  /** The event; null in a dry run. */
  event_id: string | null
  /** Endpoint id. */
  endpoint_id: string
  /** The event type that was sent. */
  event_type_id: string
  /** The delivery; null in a dry run. */
  delivery_id: string | null
  /** Result of the first attempt; null in a dry run. */
  outcome: {
    /** `delivered`: the receiver responded with 2xx. `failed`: it did not, and is retried later. `pending`: not known yet; read the delivery. */
    status: 'delivered' | 'failed' | 'pending'
    /** HTTP status of the receiver. */
    response_status?: number
    /** Milliseconds until the response or the failure. */
    duration_ms?: number
    /** Beginning of the response, at most 1 KB; not shown to agents. */
    response_excerpt?: string
    /** Why there was no response. */
    error?: string
  } | null
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type WebhooksListEventTypesInput = PageFields & {
  /** Event type id contains this. */
  search?: string
}
export type WebhooksListEventTypesOutput = {
  /** The rows of this page. */
  data: {
    /** Event type id. */
    id: string
    /** What happened. */
    description: string
    /** Operations that emit it; empty when customers or the provider cause it. */
    operations: string[]
    /** JSON Schema of `data`. */
    schema: { [key: string]: unknown }
    /** A sample of `data`. */
    sample: { [key: string]: unknown }
  }[]
  /** Pass as `cursor` for the next page; null on the last. */
  next_cursor: string | null
}
export type WebhookDelivery = {
  /** Delivery id. */
  id: string
  /** Endpoint id. */
  endpoint_id: string
  /** Event; `webhook-id` of every attempt. */
  event_id: string
  /** Event type. */
  event_type_id: string
  /** `failed`: it will be retried; `dead`: it will not; `skipped`: its endpoint was deleted before it was delivered, or disabled for longer than deliveries are kept. */
  status: WebhookDeliveryStatus
  /** Attempts made. */
  attempts: number
  /** When it is retried. */
  next_attempt_at: string | null
  /** HTTP status of the last response. */
  last_response_status: number | null
  /** When it was created. */
  created_at: string
  /** When the endpoint accepted it. */
  delivered_at: string | null
}
export type WebhooksListDeliveriesInput = PageFields & {
  /** Endpoint id. */
  endpoint_id: string
  /** Only in this status. */
  status?: WebhookDeliveryStatus
  /** Only of this type; without a version, of all its versions. */
  event_type_id?: string
  /** Created at this time or later. */
  from?: string
  /** Created before this time. */
  to?: string
}
export type WebhooksListDeliveriesOutput = {
  /** The rows of this page. */
  data: WebhookDelivery[]
  /** Pass as `cursor` for the next page; null on the last. */
  next_cursor: string | null
}
export type WebhooksGetDeliveryInput = {
  /** Delivery id. */
  delivery_id: string
}
export type WebhooksGetDeliveryOutput = WebhookDelivery & {
  /** Every attempt, oldest first. */
  attempt_history: {
    /** Number of the attempt, from 1. */
    number: number
    /** When it started. */
    started_at: string
    /** Milliseconds until the response or the failure. */
    duration_ms: number
    /** HTTP status. */
    response_status?: number
    /** Beginning of the response, at most 1 KB, ending in … if truncated; not shown to agents. */
    response_excerpt?: string
    /** Why there was no response. */
    error?: string
    /** What caused the attempt. */
    trigger: 'scheduled' | 'replay' | 'recover' | 'test'
  }[]
}
export type WebhooksReplayDeliveryInput = {
  /** Delivery id. */
  delivery_id: string
}
export type WebhooksReplayDeliveryOutput = {
  /** The delivery, pending again. */
  delivery: WebhookDelivery
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type WebhooksRecoverEndpointInput = {
  /** Endpoint id. */
  endpoint_id: string
  /** Start; at most 14 days before `to`. */
  from: string
  /** End, exclusive. */
  to: string
}
export type WebhooksRecoverEndpointOutput = {
  /** Endpoint id. */
  endpoint_id: string
  /** Deliveries that are now pending. */
  recovered: number
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
/** An event of the log; `type` says which. Clients should ignore types that they do not know. */
export type Event =
  | ContactCreatedEvent
  | ContactUpdatedEvent
  | ContactDeletedEvent
  | ContactErasedEvent
  | ContactTagsAddedEvent
  | ContactTagsRemovedEvent
  | ContactGroupsAddedEvent
  | ContactGroupsRemovedEvent
  | ConsentChangedEvent
  | GroupCreatedEvent
  | GroupUpdatedEvent
  | GroupDeletedEvent
  | TagRenamedEvent
  | TagDeletedEvent
  | JobFinishedEvent
  | ConversationCreatedEvent
  | ConversationAssignedEvent
  | ConversationUnassignedEvent
  | ConversationClosedEvent
  | ConversationReopenedEvent
  | ConversationReplyFailedEvent
  | MessageReceivedEvent
  | MessageSentEvent
  | MessageDeliveredEvent
  | MessageReadEvent
  | MessageFailedEvent
  | MessageReactionChangedEvent
  | MessageEditedEvent
  | MessageDeletedEvent
  | TemplateStatusChangedEvent
  | TemplateSubmittedEvent
  | TemplateArchivedEvent
  | ShortLinkCreatedEvent
  | ShortLinkDeletedEvent
  | ChannelStatusChangedEvent
  | WebhookEndpointWarningEvent
  | WebhookEndpointDisabledEvent
  | ApprovalRequestedEvent
  | ApprovalDecidedEvent
export type EventsListInput = {
  /** Return events after this one; from the oldest kept when absent. `now`: none of those in the log; `next_cursor` is then the newest event, to continue after it. */
  after?: string
  /** `next_cursor` of the previous page; the same as `after`. */
  cursor?: string
  /** Begin with the first event, in the order of the log, that happened at this time or later; a few that happened shortly before may follow it. Continue with `next_cursor` alone. */
  from?: string
  /** Begin after the event that this consumer acknowledged last (`events_ack`). Where there is no such consumer yet, with `after`, `from` or the oldest event. Send `next_cursor` as `cursor` beside it for the pages that follow. */
  consumer?: string
  /** Only these types; a type without a version means all its versions. */
  types?: string[]
  /** Rows per page: 1 to 100, 25 when absent. */
  limit?: number
}
export type EventsListOutput = {
  /** The rows of this page. */
  data: Event[]
  /** Pass as `cursor` for the next page; null on the last. */
  next_cursor: string | null
}
export type EventConsumer = {
  /** Name of the consumer. */
  name: string
  /** The event that it acknowledged last. */
  event_id: string
  /** When. */
  acknowledged_at: string
  /** False: events after that one were, or will soon be, deleted without being acknowledged. It reads on when it has acknowledged an event that is in the log. */
  complete: boolean
  /** When it acknowledged its first event. */
  created_at: string
}
export type EventsAckInput = {
  /** Name of the consumer. */
  consumer: string
  /** The last event that was handled, or `next_cursor` of the page. */
  event_id: string
  /** Go back to an earlier event too. */
  rewind?: boolean
}
export type EventsAckOutput = {
  /** The consumer. */
  consumer: EventConsumer
  /** False: it had acknowledged this event, or a later one. */
  changed: boolean
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type EventsListConsumersInput = PageFields
export type EventsListConsumersOutput = {
  /** The rows of this page. */
  data: EventConsumer[]
  /** Count of matching rows, on the first page; null on later pages. */
  total: number | null
  /** Pass as `cursor` for the next page; null on the last. */
  next_cursor: string | null
}
export type EventsDeleteConsumerInput = {
  /** Name of the consumer. */
  consumer: string
}
export type EventsDeleteConsumerOutput = {
  /** Name of the consumer. */
  name: string
  /** True: it was deleted. */
  deleted: boolean
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type ReportsWorkspaceSummaryInput = {
  /** Up to today; `last_7_days` when absent. Weeks begin on Monday. */
  preset?: ReportsWorkspaceSummaryPreset
  /** First day, YYYY-MM-DD; with `to`. Both override `preset`. */
  from?: string
  /** Last day, inclusive, today at the latest; at most 186 days. */
  to?: string
  /** IANA name; the workspace's when absent. */
  timezone?: string
  /** True: `previous` has the same metrics for as many days before; the report takes twice as long. */
  compare?: boolean
  /** True: medians in addition to averages, of first responses and of closes. */
  medians?: boolean
}
export type ReportsWorkspaceSummaryOutput = {
  /** The range of the report. */
  range: ReportsWorkspaceSummaryRange
  /** The workspace. */
  workspace: {
    /** Workspace. */
    company_id: string | null
    /** Name. */
    name: string | null
    /** Time zone. */
    timezone: string | null
    /** All contacts. */
    contacts_total: number | null
  }
  /** Messages to customers created in the range, with their current status; without broadcasts. */
  messages: ReportsWorkspaceSummaryMessages
  /** Conversations. */
  conversations: {
    /** Closes; a conversation can count several times. */
    closes: number | null
    /** Distinct conversations closed. */
    distinct_conversations: number | null
    /** Reopens; a conversation can count several times. */
    reopened: number | null
    /** Median from opening to closing. */
    median_close_seconds: number | null
    /** Median wait for the first response. Only with `medians`; null without one. */
    median_first_response_seconds?: number | null
    /** Customers who wait for a reply, now. */
    waiting_now: number | null
    /** Open conversations without a staff member or team, now. */
    unassigned_now: number | null
    /** Waiting conversations by waiting time: `under_1h`, `1h_to_4h`, `4h_to_24h`, `over_24h`. */
    oldest_wait_buckets_now: { [key: string]: number } | null
  }
  /** Contacts. */
  contacts: ReportsWorkspaceSummaryContacts
  /** Broadcasts started in the range, with their current status. */
  broadcasts: ReportsWorkspaceSummaryBroadcasts
  /** Service levels. */
  sla: {
    /** True: a policy is active. */
    running: boolean | null
    /** Clocks that ran out in the range. */
    breaches: number | null
    /** Active policies without a target, an existing channel or hours. */
    config_problems: number | null
  }
  /** AI agents: a session is an episode of a conversation in which a key marked as theirs acted. */
  agents: {
    /** Sessions of AI agents begun in the range. */
    sessions: number | null
    /** Of these, handed over to people. */
    handoffs: number | null
    /** Of these, the share closed without people, 0 to 1. */
    resolution_rate: number | null
  }
  /** The same for as many days before; only with `compare`. */
  previous?: {
    /** As many days, just before. */
    range: ReportsWorkspaceSummaryRange
    /** Messages to customers created in the range, with their current status; without broadcasts. */
    messages: ReportsWorkspaceSummaryMessages
    /** Conversations, without the figures of now. */
    conversations: {
      /** Closes; a conversation can count several times. */
      closes: number | null
      /** Distinct conversations closed. */
      distinct_conversations: number | null
      /** Reopens; a conversation can count several times. */
      reopened: number | null
      /** Median from opening to closing. */
      median_close_seconds: number | null
      /** Median wait for the first response. Only with `medians`; null without one. */
      median_first_response_seconds?: number | null
    }
    /** Contacts. */
    contacts: ReportsWorkspaceSummaryContacts
    /** Broadcasts started in the range, with their current status. */
    broadcasts: ReportsWorkspaceSummaryBroadcasts
    /** Service levels. */
    sla: {
      /** Clocks that ran out in the range. */
      breaches: number | null
    }
  }
  /** Chatbots. */
  chatbots: {
    /** Always null: not recorded. */
    sessions: null
  }
  /** Notes on how the figures were counted. */
  notes: string[]
  /** Null figures; null is never zero. */
  unavailable: ReportsWorkspaceSummaryUnavailable[]
}
export type ReportsStaffInput = PageFields & {
  /** Up to today; `last_7_days` when absent. Weeks begin on Monday. */
  preset?: ReportsWorkspaceSummaryPreset
  /** First day, YYYY-MM-DD; with `to`. Both override `preset`. */
  from?: string
  /** Last day, inclusive, today at the latest; at most 186 days. */
  to?: string
  /** IANA name; the workspace's when absent. */
  timezone?: string
  /** True: `previous` has the same metrics for as many days before; the report takes twice as long. */
  compare?: boolean
  /** True: medians in addition to averages, of first responses and of closes. */
  medians?: boolean
}
export type ReportsStaffOutput = {
  /** The requested range. */
  range: ReportsWorkspaceSummaryRange
  /** Source of the rows. */
  source: 'generated_report' | 'live_closes'
  /** The stored report. */
  report: {
    /** Report id. */
    id: string
    /** Name. */
    name: string | null
    /** First day. */
    from: string
    /** Last day. */
    to: string
    /** When it was created. */
    generated_at: string | null
    /** Time zone. */
    timezone: string | null
    /** Always false: it covers exactly the days requested. */
    covers_more_than_asked: boolean
  } | null
  /** The rows of this page, most conversations first. */
  data: ReportsStaffData[]
  /** The same for as many days before; only with `compare`. */
  previous?: {
    /** As many days, just before. */
    range: ReportsWorkspaceSummaryRange
    /** The rows of the same members, if they were active. */
    data: ReportsStaffData[]
  }
  /** The staff members in the report. */
  population: {
    /** Count of all rows. */
    total: number | null
    /** True: there are more than were counted. */
    capped: boolean
    /** What the rows cover. */
    note: string | null
  }
  /** Current load of all staff members. */
  workload_now: {
    /** Staff member; null: nobody. */
    staff_id: string | null
    /** Name. */
    name: string | null
    /** Customers waiting. */
    waiting: number | null
    /** Open conversations. */
    assigned_open: number | null
    /** Of these, those whose reply window has expired. */
    window_expired: number | null
    /** Longest wait. */
    oldest_wait_seconds: number | null
  }[]
  /** Notes on how the figures were counted. */
  notes: string[]
  /** Pass as `cursor` for the next page; null on the last. */
  next_cursor: string | null
  /** Null figures; null is never zero. */
  unavailable: ReportsWorkspaceSummaryUnavailable[]
}
export type ReportsFilterMembershipInput = PageFields & {
  /** A saved filter that is tracked. */
  saved_filter_id: string | number
  /** An instant, a day, or a relative date such as `-7d` or `start_of_month`, in the time zone of the workspace. */
  since: string
}
export type ReportsFilterMembershipOutput = {
  /** Saved filter id. */
  saved_filter_id: string
  /** The instant that `since` means. */
  since: string
  /** False: there is no record from before `since`; `from` is the first after it. */
  complete: boolean
  /** The earlier record. */
  from: ReportsFilterMembership
  /** The newest record. */
  to: ReportsFilterMembership
  /** How many entered. */
  entered: number
  /** How many left. */
  left: number
  /** Those of this page, by id. */
  data: {
    /** Contact id. */
    contact_id: string
    /** What happened. */
    change: 'entered' | 'left'
    /** Whether the contact exists, or was merged or deleted. */
    contact: 'exists' | 'merged' | 'deleted'
    /** The contact that it was merged into. */
    merged_into_id: string | null
  }[]
  /** Pass as `cursor` for the next page; null on the last. */
  next_cursor: string | null
}
export type AuditRow = {
  /** Row id; newer rows have higher ids. */
  id: string
  /** When the call ended. */
  at: string
  /** Who made the call: the staff member who owns the key, the key, and who approved it. */
  actor: Actor & {
    /** Staff member. */
    staff_id: string | null
    /** Name, as it is now. */
    name: string | null
  }
  /** The API key of the call. */
  key_id: string | null
  /** Interface of the call: REST, `/v1/ops`, MCP or the command line. */
  door: AuditRowDoor
  /** Name and version that the client reports. */
  client: string | null
  /** Operation; `sandbox.say` and the like for sandbox controls; `mcp` if the MCP endpoint refused the request before an operation was named. */
  operation: string
  /** The record that was changed or created; null when there is none or more than one. */
  target: {
    /** Type of the record. */
    type: string
    /** Its id. */
    id: string
  } | null
  /** `done`; `refused`: permission or confirmation was missing; `failed`: it failed during execution. */
  outcome: AuditRowOutcome
  /** Error code of a refusal or failure. */
  code: string | null
  /** A dry run: nothing was changed. */
  dry_run: boolean
  /** The confirm verb was given. */
  confirmed: boolean
  /** `input` as sent, `before` and `after` of updated fields, and `result`. Secrets, header values and message texts are left out; phones are masked; long texts and lists are truncated. Null for other reads, and if the input was not read. */
  changes: { [key: string]: unknown } | null
  /** `Request-Id` of the answer. */
  request_id: string
}
export type AuditListInput = PageFields & {
  /** Only by this staff member. */
  staff_id?: string
  /** Only with this key. */
  key_id?: string
  /** True: only by AI agents; false: only by others. */
  agent?: boolean
  /** Only this operation. */
  operation?: string
  /** Only through this door. */
  door?: AuditRowDoor
  /** Only with this outcome. */
  outcome?: AuditRowOutcome
  /** Only about the record with this id. */
  target_id?: string
  /** At this time or later. */
  from?: string
  /** Before this time. */
  to?: string
}
export type AuditListOutput = {
  /** The rows of this page. */
  data: AuditRow[]
  /** Pass as `cursor` for the next page; null on the last. */
  next_cursor: string | null
}
export type ApprovalsListInput = PageFields & {
  /** Only with this status. */
  status?: ApprovalStatus
}
export type ApprovalsListOutput = {
  /** The rows of this page. */
  data: Approval[]
  /** Pass as `cursor` for the next page; null on the last. */
  next_cursor: string | null
}
export type ApprovalDetail = Approval & {
  /** Page on which a person signs in with a login code and decides; null if the server has none. */
  approval_url: string | null
  /** What is to be approved, a line each: customer, channel, window, and the full text or template as it would be sent. Invisible and bidirectional characters are shown as `\u{…}`. */
  summary: string[]
  /** Version of what the summary says the call acts on, for `approvals_approve`. Null once it is decided, for agents, and where the call was asked for before versions were kept. */
  summary_version: string | null
  /** The call as the agent made it; null if it contains data hidden from the reader. */
  input: { [key: string]: unknown } | null
  /** The text in place of the one in the call. */
  edited_text: string | null
  /** Result of the dry run, for people; null for the asking agent, if it is long, or if it contains data hidden from the reader. */
  preview: { [key: string]: unknown } | null
}
export type ApprovalsGetInput = {
  /** Approval id. */
  approval_id: string
  /** Seconds to wait for the outcome: 0 to 30, 0 when absent. */
  wait_seconds?: number
}
export type ApprovalsGetOutput = ApprovalDetail
export type ApprovalsApproveInput = {
  /** Approval id. */
  approval_id: string
  /** The text to send instead of the requested one. */
  text?: string
  /** `summary_version` of `approvals_get`: approves only what the approver was shown. */
  summary_version?: string
  /** What to tell the agent. */
  note?: string
}
export type ApprovalsApproveOutput = ApprovalsOutput
export type ApprovalsDeclineInput = {
  /** Approval id. */
  approval_id: string
  /** What to tell the agent. */
  note?: string
}
export type ApprovalsDeclineOutput = ApprovalsOutput
export type ApprovalsCancelInput = {
  /** Approval id. */
  approval_id: string
}
export type ApprovalsCancelOutput = ApprovalsOutput
export type TextTest = CodeTest & {
  contains?: string
  notContains?: string
  startsWith?: string
  endsWith?: string
  regex?: string
}
export type CodeTest = {
  eq?: string
  ne?: string
  in?: string[]
  notIn?: string[]
  isNull?: boolean
}
export type IdTest = KeyTest & {
  ne?: string | number
  in?: (string | number)[]
  notIn?: (string | number)[]
}
export type TimeTest = {
  /** An instant, a day, or a relative date such as `-7d`, `today` or `start_of_month`. */
  eq?: string
  /** An instant, a day, or a relative date such as `-7d`, `today` or `start_of_month`. */
  ne?: string
  /** An instant, a day, or a relative date such as `-7d`, `today` or `start_of_month`. */
  gt?: string
  /** An instant, a day, or a relative date such as `-7d`, `today` or `start_of_month`. */
  gte?: string
  /** An instant, a day, or a relative date such as `-7d`, `today` or `start_of_month`. */
  lt?: string
  /** An instant, a day, or a relative date such as `-7d`, `today` or `start_of_month`. */
  lte?: string
  between?: string[]
  isNull?: boolean
}
export type FlagTest = {
  eq?: boolean
  ne?: boolean
  isNull?: boolean
}
export type CountryTest = IdTest & {
  isNull?: boolean
}
export type RefTest = CountryTest
export type NumberTest = {
  eq?: number | string
  ne?: number | string
  gt?: number | string
  gte?: number | string
  lt?: number | string
  lte?: number | string
  between?: (number | string)[]
  in?: (number | string)[]
  notIn?: (number | string)[]
  isNull?: boolean
}
export type KeyTest = {
  eq?: string | number
}
/** A contact was created, or came back from a merge that was undone. */
export type ContactCreatedData = {
  /** The contact. */
  contact: ContactCreatedContact
  /** Who caused it, or wrote the message that it is about. Absent: a customer, the provider, or the service. */
  actor?: Actor
}
/** A contact was created, or came back from a merge that was undone. */
export type ContactCreatedEvent = EventFields & {
  /** Event type id. */
  type: 'contact.created/1'
  data: ContactCreatedData
}
/** A contact was created, or came back from a merge that was undone. */
export type ContactCreatedWebhook = WebhookEventFields & {
  /** Event type, without its version. */
  type: 'contact.created'
  data: ContactCreatedData
}
/** Fields of a contact changed. */
export type ContactUpdatedData = {
  /** The contact. */
  contact: ContactCreatedContact
  /** Names of the fields that changed; `attributes.<key>` for custom fields. */
  changes: string[]
  /** Who caused it, or wrote the message that it is about. Absent: a customer, the provider, or the service. */
  actor?: Actor
}
/** Fields of a contact changed. */
export type ContactUpdatedEvent = EventFields & {
  /** Event type id. */
  type: 'contact.updated/1'
  data: ContactUpdatedData
}
/** Fields of a contact changed. */
export type ContactUpdatedWebhook = WebhookEventFields & {
  /** Event type, without its version. */
  type: 'contact.updated'
  data: ContactUpdatedData
}
/** A contact was deleted, or merged into another one. */
export type ContactDeletedData = {
  /** The deleted contact. */
  contact: {
    /** Contact id. */
    id: string
    /** The contact that now has its conversations, tags and values. */
    merged_into?: string
    /** Why it was merged: the provider reported both as one customer, or by request (`crm_merge_contacts`). */
    reason?: 'same_customer' | 'request'
  }
  /** Who caused it, or wrote the message that it is about. Absent: a customer, the provider, or the service. */
  actor?: Actor
}
/** A contact was deleted, or merged into another one. */
export type ContactDeletedEvent = EventFields & {
  /** Event type id. */
  type: 'contact.deleted/1'
  data: ContactDeletedData
}
/** A contact was deleted, or merged into another one. */
export type ContactDeletedWebhook = WebhookEventFields & {
  /** Event type, without its version. */
  type: 'contact.deleted'
  data: ContactDeletedData
}
/** A person was erased: erase your copies too. `contact.deleted/1` comes with it. */
export type ContactErasedData = {
  /** The contact. */
  contact: {
    /** Contact id. */
    id: string
  }
  /** Who caused it, or wrote the message that it is about. Absent: a customer, the provider, or the service. */
  actor?: Actor
}
/** A person was erased: erase your copies too. `contact.deleted/1` comes with it. */
export type ContactErasedEvent = EventFields & {
  /** Event type id. */
  type: 'contact.erased/1'
  data: ContactErasedData
}
/** A person was erased: erase your copies too. `contact.deleted/1` comes with it. */
export type ContactErasedWebhook = WebhookEventFields & {
  /** Event type, without its version. */
  type: 'contact.erased'
  data: ContactErasedData
}
/** Tags were added to contacts. */
export type ContactTagsAddedData = ContactTagsData
/** Tags were added to contacts. */
export type ContactTagsAddedEvent = EventFields & {
  /** Event type id. */
  type: 'contact.tags_added/1'
  data: ContactTagsAddedData
}
/** Tags were added to contacts. */
export type ContactTagsAddedWebhook = WebhookEventFields & {
  /** Event type, without its version. */
  type: 'contact.tags_added'
  data: ContactTagsAddedData
}
/** Tags were removed from contacts. */
export type ContactTagsRemovedData = ContactTagsData
/** Tags were removed from contacts. */
export type ContactTagsRemovedEvent = EventFields & {
  /** Event type id. */
  type: 'contact.tags_removed/1'
  data: ContactTagsRemovedData
}
/** Tags were removed from contacts. */
export type ContactTagsRemovedWebhook = WebhookEventFields & {
  /** Event type, without its version. */
  type: 'contact.tags_removed'
  data: ContactTagsRemovedData
}
/** Contacts were added to groups. */
export type ContactGroupsAddedData = ContactGroupsData
/** Contacts were added to groups. */
export type ContactGroupsAddedEvent = EventFields & {
  /** Event type id. */
  type: 'contact.groups_added/1'
  data: ContactGroupsAddedData
}
/** Contacts were added to groups. */
export type ContactGroupsAddedWebhook = WebhookEventFields & {
  /** Event type, without its version. */
  type: 'contact.groups_added'
  data: ContactGroupsAddedData
}
/** Contacts were removed from groups. */
export type ContactGroupsRemovedData = ContactGroupsData
/** Contacts were removed from groups. */
export type ContactGroupsRemovedEvent = EventFields & {
  /** Event type id. */
  type: 'contact.groups_removed/1'
  data: ContactGroupsRemovedData
}
/** Contacts were removed from groups. */
export type ContactGroupsRemovedWebhook = WebhookEventFields & {
  /** Event type, without its version. */
  type: 'contact.groups_removed'
  data: ContactGroupsRemovedData
}
/** A contact granted or withdrew consent to a purpose, on one type of channel or all. */
export type ConsentChangedData = {
  /** The consent. */
  consent: {
    /** Id of the record. */
    id: string
    /** Contact. */
    contact_id: string
    /** What it is for, such as `marketing`. */
    purpose: string
    /** Type of channel, or `all`. */
    channel: string
    /** `granted` or `withdrawn`. */
    state: 'granted' | 'withdrawn'
    /** How it came. */
    source: ConsentSource
    /** When the customer said so. */
    at: string
  }
  /** Who caused it, or wrote the message that it is about. Absent: a customer, the provider, or the service. */
  actor?: Actor
}
/** A contact granted or withdrew consent to a purpose, on one type of channel or all. */
export type ConsentChangedEvent = EventFields & {
  /** Event type id. */
  type: 'consent.changed/1'
  data: ConsentChangedData
}
/** A contact granted or withdrew consent to a purpose, on one type of channel or all. */
export type ConsentChangedWebhook = WebhookEventFields & {
  /** Event type, without its version. */
  type: 'consent.changed'
  data: ConsentChangedData
}
/** A group was created. */
export type GroupCreatedData = GroupData
/** A group was created. */
export type GroupCreatedEvent = EventFields & {
  /** Event type id. */
  type: 'group.created/1'
  data: GroupCreatedData
}
/** A group was created. */
export type GroupCreatedWebhook = WebhookEventFields & {
  /** Event type, without its version. */
  type: 'group.created'
  data: GroupCreatedData
}
/** The name or the emoji of a group was changed. */
export type GroupUpdatedData = {
  /** The group. */
  group: GroupCreatedGroup
  /** What it was before. */
  previous: {
    /** Name before. */
    name: string
    /** Emoji before. */
    emoji: string | null
  }
  /** Who caused it, or wrote the message that it is about. Absent: a customer, the provider, or the service. */
  actor?: Actor
}
/** The name or the emoji of a group was changed. */
export type GroupUpdatedEvent = EventFields & {
  /** Event type id. */
  type: 'group.updated/1'
  data: GroupUpdatedData
}
/** The name or the emoji of a group was changed. */
export type GroupUpdatedWebhook = WebhookEventFields & {
  /** Event type, without its version. */
  type: 'group.updated'
  data: GroupUpdatedData
}
/** A group was deleted. */
export type GroupDeletedData = GroupData
/** A group was deleted. */
export type GroupDeletedEvent = EventFields & {
  /** Event type id. */
  type: 'group.deleted/1'
  data: GroupDeletedData
}
/** A group was deleted. */
export type GroupDeletedWebhook = WebhookEventFields & {
  /** Event type, without its version. */
  type: 'group.deleted'
  data: GroupDeletedData
}
/** A tag was renamed. */
export type TagRenamedData = {
  /** The tag. */
  tag: {
    /** Tag id. */
    id: string
    /** Name. */
    name: string
    /** Name before. */
    previous_name: string
  }
  /** Who caused it, or wrote the message that it is about. Absent: a customer, the provider, or the service. */
  actor?: Actor
}
/** A tag was renamed. */
export type TagRenamedEvent = EventFields & {
  /** Event type id. */
  type: 'tag.renamed/1'
  data: TagRenamedData
}
/** A tag was renamed. */
export type TagRenamedWebhook = WebhookEventFields & {
  /** Event type, without its version. */
  type: 'tag.renamed'
  data: TagRenamedData
}
/** A tag was deleted, and removed from all contacts and conversations, or merged into another one. */
export type TagDeletedData = {
  /** The tag. */
  tag: {
    /** Tag id. */
    id: string
    /** Name. */
    name: string
    /** The tag that its contacts and conversations now have. */
    merged_into?: string
  }
  /** Who caused it, or wrote the message that it is about. Absent: a customer, the provider, or the service. */
  actor?: Actor
}
/** A tag was deleted, and removed from all contacts and conversations, or merged into another one. */
export type TagDeletedEvent = EventFields & {
  /** Event type id. */
  type: 'tag.deleted/1'
  data: TagDeletedData
}
/** A tag was deleted, and removed from all contacts and conversations, or merged into another one. */
export type TagDeletedWebhook = WebhookEventFields & {
  /** Event type, without its version. */
  type: 'tag.deleted'
  data: TagDeletedData
}
/** A job, which changes many contacts or conversations, ended: it came to all of them, failed or was cancelled. */
export type JobFinishedData = {
  /** The job. */
  job: {
    /** Job id. */
    id: string
    /** `done`, `failed` or `cancelled`. */
    state: string
    /** The operation that it made. */
    operation: string
    /** Records that it was for. */
    total: number
    /** Records that it came to. */
    done: number
    /** Records that changed. */
    changed: number
    /** Records that failed. */
    failed: number
    /** The job that it undid. */
    undo_of_job_id: string | null
  }
  /** Who caused it, or wrote the message that it is about. Absent: a customer, the provider, or the service. */
  actor?: Actor
}
/** A job, which changes many contacts or conversations, ended: it came to all of them, failed or was cancelled. */
export type JobFinishedEvent = EventFields & {
  /** Event type id. */
  type: 'job.finished/1'
  data: JobFinishedData
}
/** A job, which changes many contacts or conversations, ended: it came to all of them, failed or was cancelled. */
export type JobFinishedWebhook = WebhookEventFields & {
  /** Event type, without its version. */
  type: 'job.finished'
  data: JobFinishedData
}
/** A conversation was created. */
export type ConversationCreatedData = ConversationData
/** A conversation was created. */
export type ConversationCreatedEvent = EventFields & {
  /** Event type id. */
  type: 'conversation.created/1'
  data: ConversationCreatedData
}
/** A conversation was created. */
export type ConversationCreatedWebhook = WebhookEventFields & {
  /** Event type, without its version. */
  type: 'conversation.created'
  data: ConversationCreatedData
}
/** A conversation was assigned to a staff member or a team. */
export type ConversationAssignedData = ConversationData
/** A conversation was assigned to a staff member or a team. */
export type ConversationAssignedEvent = EventFields & {
  /** Event type id. */
  type: 'conversation.assigned/1'
  data: ConversationAssignedData
}
/** A conversation was assigned to a staff member or a team. */
export type ConversationAssignedWebhook = WebhookEventFields & {
  /** Event type, without its version. */
  type: 'conversation.assigned'
  data: ConversationAssignedData
}
/** A conversation was returned to the queue. */
export type ConversationUnassignedData = ConversationData
/** A conversation was returned to the queue. */
export type ConversationUnassignedEvent = EventFields & {
  /** Event type id. */
  type: 'conversation.unassigned/1'
  data: ConversationUnassignedData
}
/** A conversation was returned to the queue. */
export type ConversationUnassignedWebhook = WebhookEventFields & {
  /** Event type, without its version. */
  type: 'conversation.unassigned'
  data: ConversationUnassignedData
}
/** A conversation was closed. */
export type ConversationClosedData = {
  /** The conversation. */
  conversation: ConversationCreatedConversation
  /** Why. */
  reason: string | null
  /** Who caused it, or wrote the message that it is about. Absent: a customer, the provider, or the service. */
  actor?: Actor
}
/** A conversation was closed. */
export type ConversationClosedEvent = EventFields & {
  /** Event type id. */
  type: 'conversation.closed/1'
  data: ConversationClosedData
}
/** A conversation was closed. */
export type ConversationClosedWebhook = WebhookEventFields & {
  /** Event type, without its version. */
  type: 'conversation.closed'
  data: ConversationClosedData
}
/** A closed conversation was reopened, by staff, by a message of the customer, or by a reply that failed. */
export type ConversationReopenedData = ConversationData
/** A closed conversation was reopened, by staff, by a message of the customer, or by a reply that failed. */
export type ConversationReopenedEvent = EventFields & {
  /** Event type id. */
  type: 'conversation.reopened/1'
  data: ConversationReopenedData
}
/** A closed conversation was reopened, by staff, by a message of the customer, or by a reply that failed. */
export type ConversationReopenedWebhook = WebhookEventFields & {
  /** Event type, without its version. */
  type: 'conversation.reopened'
  data: ConversationReopenedData
}
/** A reply failed after it had counted as one, so the customer waits again. */
export type ConversationReplyFailedData = {
  /** The conversation. */
  conversation: ConversationCreatedConversation
  /** The message that failed. */
  message_id: string
  /** Since when the customer waits: their first message without a reply. */
  waiting_since: string
  /** Who caused it, or wrote the message that it is about. Absent: a customer, the provider, or the service. */
  actor?: Actor
}
/** A reply failed after it had counted as one, so the customer waits again. */
export type ConversationReplyFailedEvent = EventFields & {
  /** Event type id. */
  type: 'conversation.reply_failed/1'
  data: ConversationReplyFailedData
}
/** A reply failed after it had counted as one, so the customer waits again. */
export type ConversationReplyFailedWebhook = WebhookEventFields & {
  /** Event type, without its version. */
  type: 'conversation.reply_failed'
  data: ConversationReplyFailedData
}
/** A customer sent a message. */
export type MessageReceivedData = MessageData
/** A customer sent a message. */
export type MessageReceivedEvent = EventFields & {
  /** Event type id. */
  type: 'message.received/1'
  data: MessageReceivedData
}
/** A customer sent a message. */
export type MessageReceivedWebhook = WebhookEventFields & {
  /** Event type, without its version. */
  type: 'message.received'
  data: MessageReceivedData
}
/** The provider accepted a message. */
export type MessageSentData = MessageData
/** The provider accepted a message. */
export type MessageSentEvent = EventFields & {
  /** Event type id. */
  type: 'message.sent/1'
  data: MessageSentData
}
/** The provider accepted a message. */
export type MessageSentWebhook = WebhookEventFields & {
  /** Event type, without its version. */
  type: 'message.sent'
  data: MessageSentData
}
/** A message reached the customer. */
export type MessageDeliveredData = MessageData
/** A message reached the customer. */
export type MessageDeliveredEvent = EventFields & {
  /** Event type id. */
  type: 'message.delivered/1'
  data: MessageDeliveredData
}
/** A message reached the customer. */
export type MessageDeliveredWebhook = WebhookEventFields & {
  /** Event type, without its version. */
  type: 'message.delivered'
  data: MessageDeliveredData
}
/** The customer read a message. */
export type MessageReadData = MessageData
/** The customer read a message. */
export type MessageReadEvent = EventFields & {
  /** Event type id. */
  type: 'message.read/1'
  data: MessageReadData
}
/** The customer read a message. */
export type MessageReadWebhook = WebhookEventFields & {
  /** Event type, without its version. */
  type: 'message.read'
  data: MessageReadData
}
/** A message could not be delivered. */
export type MessageFailedData = MessageData
/** A message could not be delivered. */
export type MessageFailedEvent = EventFields & {
  /** Event type id. */
  type: 'message.failed/1'
  data: MessageFailedData
}
/** A message could not be delivered. */
export type MessageFailedWebhook = WebhookEventFields & {
  /** Event type, without its version. */
  type: 'message.failed'
  data: MessageFailedData
}
/** A customer reacted to a message with an emoji, or removed the reaction. */
export type MessageReactionChangedData = {
  /** The message. */
  message: MessageReceivedMessage
  /** The reaction. */
  reaction: {
    /** The emoji; null: the reaction was removed. */
    emoji: string | null
    /** The emoji before. */
    previous_emoji: string | null
    /** Who reacts. */
    from: 'customer' | 'staff'
    /** When. */
    at: string
  }
  /** Who caused it, or wrote the message that it is about. Absent: a customer, the provider, or the service. */
  actor?: Actor
}
/** A customer reacted to a message with an emoji, or removed the reaction. */
export type MessageReactionChangedEvent = EventFields & {
  /** Event type id. */
  type: 'message.reaction_changed/1'
  data: MessageReactionChangedData
}
/** A customer reacted to a message with an emoji, or removed the reaction. */
export type MessageReactionChangedWebhook = WebhookEventFields & {
  /** Event type, without its version. */
  type: 'message.reaction_changed'
  data: MessageReactionChangedData
}
/** A customer edited a message; `message.text` is the new text. */
export type MessageEditedData = {
  /** The message. */
  message: MessageReceivedMessage
  /** Text or caption before. */
  previous_text: string | null
  /** When. */
  edited_at: string
  /** Who caused it, or wrote the message that it is about. Absent: a customer, the provider, or the service. */
  actor?: Actor
}
/** A customer edited a message; `message.text` is the new text. */
export type MessageEditedEvent = EventFields & {
  /** Event type id. */
  type: 'message.edited/1'
  data: MessageEditedData
}
/** A customer edited a message; `message.text` is the new text. */
export type MessageEditedWebhook = WebhookEventFields & {
  /** Event type, without its version. */
  type: 'message.edited'
  data: MessageEditedData
}
/** A customer deleted a message; its text and file are gone. */
export type MessageDeletedData = {
  /** The message. */
  message: MessageReceivedMessage
  /** When. */
  deleted_at: string
  /** Who caused it, or wrote the message that it is about. Absent: a customer, the provider, or the service. */
  actor?: Actor
}
/** A customer deleted a message; its text and file are gone. */
export type MessageDeletedEvent = EventFields & {
  /** Event type id. */
  type: 'message.deleted/1'
  data: MessageDeletedData
}
/** A customer deleted a message; its text and file are gone. */
export type MessageDeletedWebhook = WebhookEventFields & {
  /** Event type, without its version. */
  type: 'message.deleted'
  data: MessageDeletedData
}
/** The review status of a template changed. */
export type TemplateStatusChangedData = {
  /** The template. */
  template: {
    /** Template id. */
    id: string
    /** Name. */
    name: string
    /** Language. */
    language: string
    /** Review status. */
    status: string
    /** Status before. */
    previous_status: string
    /** Category. */
    category: string | null
    /** The reviewer's reason, verbatim. */
    rejection_reason: string | null
  }
  /** Who caused it, or wrote the message that it is about. Absent: a customer, the provider, or the service. */
  actor?: Actor
}
/** The review status of a template changed. */
export type TemplateStatusChangedEvent = EventFields & {
  /** Event type id. */
  type: 'template.status_changed/1'
  data: TemplateStatusChangedData
}
/** The review status of a template changed. */
export type TemplateStatusChangedWebhook = WebhookEventFields & {
  /** Event type, without its version. */
  type: 'template.status_changed'
  data: TemplateStatusChangedData
}
/** A template, new or changed, was submitted for review. */
export type TemplateSubmittedData = TemplateData
/** A template, new or changed, was submitted for review. */
export type TemplateSubmittedEvent = EventFields & {
  /** Event type id. */
  type: 'template.submitted/1'
  data: TemplateSubmittedData
}
/** A template, new or changed, was submitted for review. */
export type TemplateSubmittedWebhook = WebhookEventFields & {
  /** Event type, without its version. */
  type: 'template.submitted'
  data: TemplateSubmittedData
}
/** A template was archived and can no longer be sent. */
export type TemplateArchivedData = TemplateData
/** A template was archived and can no longer be sent. */
export type TemplateArchivedEvent = EventFields & {
  /** Event type id. */
  type: 'template.archived/1'
  data: TemplateArchivedData
}
/** A template was archived and can no longer be sent. */
export type TemplateArchivedWebhook = WebhookEventFields & {
  /** Event type, without its version. */
  type: 'template.archived'
  data: TemplateArchivedData
}
/** A click-to-chat link was created. */
export type ShortLinkCreatedData = ShortLinkData
/** A click-to-chat link was created. */
export type ShortLinkCreatedEvent = EventFields & {
  /** Event type id. */
  type: 'short_link.created/1'
  data: ShortLinkCreatedData
}
/** A click-to-chat link was created. */
export type ShortLinkCreatedWebhook = WebhookEventFields & {
  /** Event type, without its version. */
  type: 'short_link.created'
  data: ShortLinkCreatedData
}
/** A click-to-chat link was deleted. */
export type ShortLinkDeletedData = ShortLinkData
/** A click-to-chat link was deleted. */
export type ShortLinkDeletedEvent = EventFields & {
  /** Event type id. */
  type: 'short_link.deleted/1'
  data: ShortLinkDeletedData
}
/** A click-to-chat link was deleted. */
export type ShortLinkDeletedWebhook = WebhookEventFields & {
  /** Event type, without its version. */
  type: 'short_link.deleted'
  data: ShortLinkDeletedData
}
/** A channel was connected, disconnected, limited or restricted, or got a new rating or limit. */
export type ChannelStatusChangedData = {
  /** The channel. */
  channel: {
    /** Channel id. */
    id: string
    /** Name. */
    name: string | null
    /** Connection state. */
    status: string
    /** State before. */
    previous_status: string
    /** Rating by the provider. */
    quality_rating: string | null
    /** What is wrong with it at the provider. */
    health?: ChannelHealth & {
      /** Quality rating by the provider. */
      quality: string | null
    }
  }
  /** Who caused it, or wrote the message that it is about. Absent: a customer, the provider, or the service. */
  actor?: Actor
}
/** A channel was connected, disconnected, limited or restricted, or got a new rating or limit. */
export type ChannelStatusChangedEvent = EventFields & {
  /** Event type id. */
  type: 'channel.status_changed/1'
  data: ChannelStatusChangedData
}
/** A channel was connected, disconnected, limited or restricted, or got a new rating or limit. */
export type ChannelStatusChangedWebhook = WebhookEventFields & {
  /** Event type, without its version. */
  type: 'channel.status_changed'
  data: ChannelStatusChangedData
}
/** A webhook endpoint has been failing for a long time and will be disabled. */
export type WebhookEndpointWarningData = {
  /** The endpoint. */
  endpoint: WebhookEndpointWarningEndpoint
  /** How much of the time until it is disabled has passed: 50, 70 or 90 percent. */
  percent: number
  /** When it will be disabled if it keeps failing. */
  disabled_after: string
  /** Who caused it, or wrote the message that it is about. Absent: a customer, the provider, or the service. */
  actor?: Actor
}
/** A webhook endpoint has been failing for a long time and will be disabled. */
export type WebhookEndpointWarningEvent = EventFields & {
  /** Event type id. */
  type: 'webhook.endpoint_warning/1'
  data: WebhookEndpointWarningData
}
/** A webhook endpoint has been failing for a long time and will be disabled. */
export type WebhookEndpointWarningWebhook = WebhookEventFields & {
  /** Event type, without its version. */
  type: 'webhook.endpoint_warning'
  data: WebhookEndpointWarningData
}
/** A webhook endpoint was disabled. */
export type WebhookEndpointDisabledData = {
  /** The endpoint. */
  endpoint: WebhookEndpointWarningEndpoint
  /** `manual`, `gone` or `failing`. */
  reason: string
  /** Who caused it, or wrote the message that it is about. Absent: a customer, the provider, or the service. */
  actor?: Actor
}
/** A webhook endpoint was disabled. */
export type WebhookEndpointDisabledEvent = EventFields & {
  /** Event type id. */
  type: 'webhook.endpoint_disabled/1'
  data: WebhookEndpointDisabledData
}
/** A webhook endpoint was disabled. */
export type WebhookEndpointDisabledWebhook = WebhookEventFields & {
  /** Event type, without its version. */
  type: 'webhook.endpoint_disabled'
  data: WebhookEndpointDisabledData
}
/** An AI agent asks a person for a call. */
export type ApprovalRequestedData = {
  /** The request. */
  approval: {
    /** Approval id. */
    id: string
    /** `pending`, `approved`, `declined`, `expired` or `cancelled`. */
    status: string
    /** The operation. */
    operation: string
    /** Staff member of the key that asks. */
    staff_id: string
    /** The key that asks. */
    key_id: string
    /** Channels that the call is about. */
    channel_ids: string[]
    /** Until when it can be decided. */
    expires_at: string
    /** Why, in the words of the agent. */
    reason: string | null
    /** Why approval is needed, as `approvals_get` says it. */
    asked_for: string[]
    /** The customer; null if there is none or several. */
    contact_id: string | null
    /** What is to be approved, a line each, as `approvals_get` shows it to the key that asks; at most 16,000 characters. Absent in the event log for staff who do not see all channels. */
    summary?: string[]
    /** The page on which a person decides; null as `approval_url`. */
    url: string | null
  }
  /** Who caused it, or wrote the message that it is about. Absent: a customer, the provider, or the service. */
  actor?: Actor
}
/** An AI agent asks a person for a call. */
export type ApprovalRequestedEvent = EventFields & {
  /** Event type id. */
  type: 'approval.requested/1'
  data: ApprovalRequestedData
}
/** An AI agent asks a person for a call. */
export type ApprovalRequestedWebhook = WebhookEventFields & {
  /** Event type, without its version. */
  type: 'approval.requested'
  data: ApprovalRequestedData
}
/** A call of an AI agent was approved, declined or withdrawn, or nobody decided in time. */
export type ApprovalDecidedData = {
  /** The request. */
  approval: {
    /** Approval id. */
    id: string
    /** `pending`, `approved`, `declined`, `expired` or `cancelled`. */
    status: string
    /** The operation. */
    operation: string
    /** Staff member of the key that asks. */
    staff_id: string
    /** The key that asks. */
    key_id: string
    /** Channels that the call is about. */
    channel_ids: string[]
    /** Until when it can be decided. */
    expires_at: string
  }
  /** Who decided; null when nobody did. */
  decided_by: {
    /** Staff id. */
    staff_id: string
    /** Name. */
    name: string
  } | null
  /** Who caused it, or wrote the message that it is about. Absent: a customer, the provider, or the service. */
  actor?: Actor
}
/** A call of an AI agent was approved, declined or withdrawn, or nobody decided in time. */
export type ApprovalDecidedEvent = EventFields & {
  /** Event type id. */
  type: 'approval.decided/1'
  data: ApprovalDecidedData
}
/** A call of an AI agent was approved, declined or withdrawn, or nobody decided in time. */
export type ApprovalDecidedWebhook = WebhookEventFields & {
  /** Event type, without its version. */
  type: 'approval.decided'
  data: ApprovalDecidedData
}
/** The body of a webhook in the format `envelope`; `type` and `version` say which. */
export type WebhookEvent =
  | ContactCreatedWebhook
  | ContactUpdatedWebhook
  | ContactDeletedWebhook
  | ContactErasedWebhook
  | ContactTagsAddedWebhook
  | ContactTagsRemovedWebhook
  | ContactGroupsAddedWebhook
  | ContactGroupsRemovedWebhook
  | ConsentChangedWebhook
  | GroupCreatedWebhook
  | GroupUpdatedWebhook
  | GroupDeletedWebhook
  | TagRenamedWebhook
  | TagDeletedWebhook
  | JobFinishedWebhook
  | ConversationCreatedWebhook
  | ConversationAssignedWebhook
  | ConversationUnassignedWebhook
  | ConversationClosedWebhook
  | ConversationReopenedWebhook
  | ConversationReplyFailedWebhook
  | MessageReceivedWebhook
  | MessageSentWebhook
  | MessageDeliveredWebhook
  | MessageReadWebhook
  | MessageFailedWebhook
  | MessageReactionChangedWebhook
  | MessageEditedWebhook
  | MessageDeletedWebhook
  | TemplateStatusChangedWebhook
  | TemplateSubmittedWebhook
  | TemplateArchivedWebhook
  | ShortLinkCreatedWebhook
  | ShortLinkDeletedWebhook
  | ChannelStatusChangedWebhook
  | WebhookEndpointWarningWebhook
  | WebhookEndpointDisabledWebhook
  | ApprovalRequestedWebhook
  | ApprovalDecidedWebhook
/** Codes of errors of the service. */
export type ErrorCode =
  | 'invalid_input'
  | 'unauthenticated'
  | 'entitlement_required'
  | 'forbidden'
  | 'insufficient_scope'
  | 'declined'
  | 'not_found'
  | 'method_not_allowed'
  | 'conflict'
  | 'window_closed'
  | 'precondition_failed'
  | 'payload_too_large'
  | 'unsupported_media_type'
  | 'confirm_required'
  | 'rate_limited'
  | 'internal_error'
  | 'upstream_error'
  | 'service_unconfigured'
  | 'upstream_unavailable'
  | 'timeout'
/** What a code means in a case. */
export type Reason =
  | 'account_ambiguous'
  | 'account_incomplete'
  | 'account_restricted'
  | 'address_not_allowed'
  | 'advanced_filter_disabled'
  | 'already_assigned'
  | 'already_decided'
  | 'already_started'
  | 'already_undone'
  | 'archived'
  | 'assignee_disabled'
  | 'audit_not_allowed'
  | 'bodies_in_flight'
  | 'built_in'
  | 'call_cancelled'
  | 'cancelled'
  | 'category_fixed'
  | 'channel_ambiguous'
  | 'channel_not_connected'
  | 'channel_not_supported'
  | 'channel_required'
  | 'channels_limited'
  | 'consent_withdrawn'
  | 'contact_deleted'
  | 'contact_limit'
  | 'contact_unreachable'
  | 'content_encoding'
  | 'contradiction'
  | 'cursor_expired'
  | 'cursor_invalid'
  | 'deleted_meanwhile'
  | 'denied_by_policy'
  | 'disk_full'
  | 'do_not_disturb'
  | 'double'
  | 'duplicate'
  | 'endpoint_deleted'
  | 'endpoint_disabled'
  | 'error_rate'
  | 'event_gone'
  | 'event_not_listed'
  | 'events_deleted'
  | 'expired'
  | 'external_id_taken'
  | 'export_gone'
  | 'export_url_expired'
  | 'field_hidden'
  | 'filter_list_too_long'
  | 'filter_not_tracked'
  | 'filter_regex_invalid'
  | 'filter_regex_too_long'
  | 'filter_string_too_long'
  | 'filter_too_deep'
  | 'filter_too_large'
  | 'filter_too_many_conditions'
  | 'group'
  | 'headers_too_large'
  | 'host_not_allowed'
  | 'identity_conflict'
  | 'not_undoable'
  | 'merge_expired'
  | 'merged_again'
  | 'idempotency_key_invalid'
  | 'idempotency_key_required'
  | 'idempotency_key_reused'
  | 'in_review'
  | 'invalid_input'
  | 'job_state'
  | 'key_ended'
  | 'key_paused'
  | 'malformed_request'
  | 'manager_only'
  | 'marketing_stopped'
  | 'media_lost'
  | 'media_pending'
  | 'media_refused'
  | 'media_store_unavailable'
  | 'media_too_large'
  | 'media_url_expired'
  | 'message_refused'
  | 'name_taken'
  | 'no_channel'
  | 'no_channel_access'
  | 'no_media'
  | 'no_provider_number'
  | 'no_sandbox'
  | 'not_a_member'
  | 'not_admin'
  | 'not_approver'
  | 'not_at_provider'
  | 'not_confirmed'
  | 'not_editable'
  | 'not_inbound'
  | 'not_outbound'
  | 'not_owner'
  | 'not_sent'
  | 'not_submitted'
  | 'no_recipients'
  | 'nothing_to_undo'
  | 'outcome_unknown'
  | 'contact_budget'
  | 'phone_budget'
  | 'plan_changed'
  | 'plan_unknown'
  | 'phone_hidden'
  | 'phone_taken'
  | 'phone_required'
  | 'placeholder_empty'
  | 'provider_access'
  | 'provider_not_found'
  | 'provider_refused'
  | 'provider_unconfigured'
  | 'query_timeout'
  | 'quick_message_incomplete'
  | 'quick_message_is_template'
  | 'quick_message_not_supported'
  | 'recipient_not_listed'
  | 'recipient_refused'
  | 'regex_too_complex'
  | 'report_not_allowed'
  | 'request_timeout'
  | 'same_customer'
  | 'saved_filter_cycle'
  | 'saved_filter_not_found'
  | 'secret_outdated'
  | 'still_running'
  | 'subject_changed'
  | 'template_limit'
  | 'template_mismatch'
  | 'template_changed'
  | 'template_not_approved'
  | 'template_not_supported'
  | 'template_policy'
  | 'template_rules'
  | 'template_unavailable'
  | 'template_values'
  | 'test_key'
  | 'throttled'
  | 'too_many_approvals'
  | 'too_many_connections'
  | 'too_many_consumers'
  | 'too_many_events'
  | 'too_many_failures'
  | 'too_many_fields'
  | 'too_many_tracked_filters'
  | 'too_many_pipelined'
  | 'too_many_recipients'
  | 'too_many_secrets'
  | 'undeliverable'
  | 'undo_expired'
  | 'unknown_version'
  | 'unreachable'
  | 'visibility_changed'
export type RecordsResultFields = BulkResultFields & {
  /** Present with 202: the change continues in this job. */
  job?: Job
  /** Only in a dry run by filter: how many would change. */
  would_change?: number
  /** Only in a dry run by filter: how many would not change. */
  unchanged?: number
}
export type TargetAlternatives =
  | {
      /** 1 to 500 contact ids; duplicates count once. */
      contact_ids: (string | number)[]
    }
  | {
      /** All contacts that match this filter, as `crm_search_contacts` takes it. `{}` needs `all`. */
      filter: { [key: string]: unknown }
      /** Required with an empty filter, which matches every contact. */
      all?: true
    }
  | {
      /** All contacts that match this saved filter. */
      saved_filter_id: string | number
    }
export type TargetResultFields = RecordsResultFields & {
  /** Only in a dry run by filter: up to 20 of the contacts. */
  samples?: CrmEraseContactSample[]
  /** Only in a dry run by filter: tags that do not exist yet. */
  would_create?: {
    /** Name. */
    name: string
    /** The most similar one that exists. */
    nearest: string | null
  }[]
}
export type ConsentSource = 'form' | 'import' | 'reply' | 'provider' | 'staff'
export type Attribute = {
  /** Custom field key. */
  key: string
  /** Label shown to people. */
  label: string | null
  /** Custom field type. */
  type: string | null
  /** Display value: checkbox and boolean as Yes or No, date as YYYY-MM-DD, datetime as YYYY-MM-DD HH:MM:SS in UTC, multiselect as comma-joined text, int, float and number as numbers, decimal as a string with 8 decimals. */
  value: string | number | null
  /** The value as text; option labels for select, radio and multiselect. */
  display: string | null
  /** Number, true or false, YYYY-MM-DD, ISO 8601 UTC, array of option values, or string, by type; null when empty or unreadable. */
  typed_value: string | number | boolean | string[] | null
  /** Present if the text was truncated, after 2000 characters. */
  truncated?: true
}
export type ConversationFiltersFields = {
  /** Only assigned to this staff member; `me`: the key's owner; `none`: to nobody, and with `team_id` those of the team that nobody has taken. */
  assigned_staff_id?: string
  /** Only assigned to this team. */
  team_id?: string
  /** Only on this channel. */
  channel_id?: string
  /** Only with this tag, by name or id; digits are an id. */
  tag?: string
  /** Only with this state of their service level, as in `sla`. */
  sla_status?: QueuedConversationSla
  /** Only without a message since this instant, day, or relative date such as `-3d`. */
  last_message_before?: string
  /** Only if the customer wrote last before this date. */
  last_customer_message_before?: string
  /** Only who waits since this date or longer, such as `-1h`. */
  waiting_longer_than?: string
}
export type SearchFiltersFields = ConversationFiltersFields & {
  /** Contact name, phone or username contains this, ignoring case. */
  query?: string
  /** Only in this state. */
  state?: 'open' | 'closed'
  /** False: the unassigned queue. */
  assigned?: boolean
  /** Who waits for whom. */
  reply_status?: 'incoming_no_reply' | 'outgoing_no_response'
  /** Only of this contact. */
  contact_id?: string
  /** Only from this ad, by its `ad_id`. */
  ad?: string
  /** `failed`: the latest message to the customer failed. `unknown`: the provider has not confirmed a message, which is still `pending`. */
  delivery?: 'failed' | 'unknown'
}
export type ConversationRef = {
  /** Conversation id. */
  id: string
  /** `open` or `closed`. */
  state: string | null
  /** Staff member it is assigned to. */
  assignee_staff_id: string | null
  /** Team it is assigned to. */
  team_id: string | null
  /** Tags by name. */
  tags: TagRef[]
}
export type BulkResultFields = {
  /** Distinct ids requested. */
  requested: number
  /** Ids that are now as requested, changed or not. */
  succeeded: number
  /** Ids that failed. */
  failed: number
  /** The first 50 failures. */
  failures: CrmUpdateContactsFailure[]
  /** True: a fatal error stopped the rest; retry the missing ids. */
  stopped_early: boolean
  /** How many were found. */
  matched?: number
}
export type DeletedFields = {
  /** The requested id. */
  id: string
  /** True: it was deleted. */
  deleted: boolean
}
export type DeletedNamedFields = DeletedFields & {
  /** Saved filters that name it. They stay as they are, and nothing has it any more: what includes it matches nobody, what excludes it everybody. */
  saved_filters: CrmRenameTagSavedFilter[]
}
export type PageFields = {
  /** Rows per page: 1 to 100, 25 when absent. */
  limit?: number
  /** `next_cursor` of the previous page; send the same filters. Cursors expire after 24 hours. */
  cursor?: string
}
export type GroupRef = {
  /** Group id. */
  id: string
  /** Group name. */
  name: string | null
}
export type ContentFieldsFields = {
  /** What the message has beyond text, by its `kind` (schema `MessageContent`): what the customer sent, or what staff offered to tap; null for texts, files and templates. */
  content: MessageContent | null
  /** The ad or post that brought the customer with this message; absent without one. */
  ad?: Ad
  /** The product that the message asks about; absent without one. */
  product?: MessageProduct
  /** A colleague wrote it in the phone app of the number; absent if not. */
  phone_app?: true
  /** In a group: which member wrote it; absent elsewhere. */
  author?: MessageAuthor
  /** Why the provider has not delivered a template yet: it checks the quality of a new one first, or paused it. Wait, and send no repeat; after a pause, send another template. Absent once it is delivered. */
  held?: 'held_for_quality_assessment' | 'paused'
  /** The customer forwarded it from another chat; absent if not. */
  forwarded?: 'once' | 'often'
}
export type TagRef = {
  /** Tag id. */
  id: string
  /** Tag name. */
  name: string | null
}
export type TemplateDraft = {
  /** Lowercase letters, digits, underscores. */
  name: string
  /** Such as `en_US`. */
  language: string
  /** `MARKETING`, `UTILITY` or `AUTHENTICATION`. */
  category: string
  /** Header. */
  header?: {
    /** Format of the header. */
    format: 'TEXT' | 'IMAGE' | 'VIDEO' | 'DOCUMENT' | 'LOCATION'
    /** Of TEXT: at most 60 characters and one `{{1}}`. */
    text?: string
    /** Sample for its `{{1}}`. */
    example?: string
    /** Of IMAGE, VIDEO, DOCUMENT: sample handle. */
    media_handle?: string
  }
  /** Body. */
  body?: {
    /** At most 1024 characters with `{{1}}`, `{{2}}` …; none for AUTHENTICATION. */
    text?: string
    /** Sample of each variable. */
    examples?: string[]
    /** AUTHENTICATION only. */
    add_security_recommendation?: boolean
  }
  /** Footer. */
  footer?: {
    /** At most 60 characters, no variables. */
    text?: string
    /** AUTHENTICATION only, 1 to 90. */
    code_expiration_minutes?: number
  }
  /** At most 10. */
  buttons?: MessagingLintTemplateButton[]
  /** MARKETING; buttons: COPY_CODE first, then URL. */
  limited_time_offer?: {
    /** At most 16 characters. */
    text: string
    /** Countdown. */
    has_expiration?: boolean
  }
  /** MARKETING only; without header, footer, buttons. */
  carousel?: {
    /** 2 to 10 cards. */
    cards: {
      /** Same on every card. */
      header_format: 'IMAGE' | 'VIDEO'
      /** Sample handle. */
      media_handle: string
      /** Card text. */
      body?: {
        /** Card text. */
        text?: string
        /** Samples. */
        examples?: string[]
      }
      /** 1 or 2 QUICK_REPLY, URL, PHONE_NUMBER; same on every card. */
      buttons: MessagingLintTemplateButton[]
    }[]
  }
}
export type InteractiveFields = {}
export type EventFields = {
  /** Event id. */
  id: string
  /** When it happened. */
  occurred_at: string
}
export type WebhookEventFields = EventFields & {
  /** Version of the event type. */
  version: '1'
  /** API version of the data. */
  api_version: string
  /** Workspace id. */
  company_id: string
}
/** `pending`: not decided. `approved`: about to run, or running. `done`: it ran. `failed`: approved, but refused or failed when it ran; `outcome` has the reason. `declined`, `expired`, `cancelled`: it never runs. */
export type ApprovalStatus = 'pending' | 'approved' | 'done' | 'failed' | 'declined' | 'expired' | 'cancelled'
/** Who asks. */
export type ApprovalAskedBy = {
  /** Staff member of the key. */
  staff: ApprovalStaff
  /** Key of the agent. */
  key: {
    /** Key id. */
    id: string
    /** Name of the key. */
    name: string | null
  }
}
/** Staff member of the key. */
export type ApprovalStaff = {
  /** Staff id. */
  id: string
  /** Name; null if the staff member was deleted. */
  name: string | null
}
export type ApprovalAskedFor =
  | 'verb'
  | 'operation'
  | 'window_open'
  | 'assigned'
  | 'templates'
  | 'sends_per_hour'
  | 'hours'
  | 'saved_filters'
  | 'many'
export type ApprovalContact = {
  /** Contact id. */
  id: string
  /** Name. */
  name: string | null
}
export type ApprovalOutcome = {
  /** HTTP status of its answer. */
  status: number
  /** Error code; null when it succeeded. */
  code: string | null
  /** Reason of the error. */
  reason: string | null
  /** What went wrong. */
  detail: string | null
  /** The broadcast that an approved `messaging_send_bulk` began. */
  broadcast_id?: string
}
/** Decisions for operations with these confirm verbs; `ask` for those not named. */
export type KeyPolicyVerbs = { [key: string]: 'allow' | 'ask' | 'deny' }
export type KeyPolicyDay = 'mon' | 'tue' | 'wed' | 'thu' | 'fri' | 'sat' | 'sun'
/** Role. */
export type WorkspaceWhoamiRole = 'owner' | 'admin' | 'manager' | 'agent'
/** Reads. */
export type WorkspaceWhoamiLimits = {
  /** Requests per window. */
  limit: number
  /** Requests left now. */
  remaining: number
  /** Length of the window in seconds. */
  window_seconds: number
}
export type ListInput = PageFields & {
  /** Name contains this, ignoring case; `%` and `_` are literal. */
  search?: string
}
/** `limited`: throttled for a time; `restricted`: some sends are refused; `disconnected`: all are, until an administrator acts. */
export type ChannelHealthStatus = 'ok' | 'limited' | 'restricted' | 'disconnected'
export type ContactFilterCountry =
  | 'AC'
  | 'AD'
  | 'AE'
  | 'AF'
  | 'AG'
  | 'AI'
  | 'AL'
  | 'AM'
  | 'AO'
  | 'AR'
  | 'AS'
  | 'AT'
  | 'AU'
  | 'AW'
  | 'AX'
  | 'AZ'
  | 'BA'
  | 'BB'
  | 'BD'
  | 'BE'
  | 'BF'
  | 'BG'
  | 'BH'
  | 'BI'
  | 'BJ'
  | 'BM'
  | 'BN'
  | 'BO'
  | 'BQ'
  | 'BR'
  | 'BS'
  | 'BT'
  | 'BW'
  | 'BY'
  | 'BZ'
  | 'CA'
  | 'CC'
  | 'CD'
  | 'CF'
  | 'CG'
  | 'CH'
  | 'CI'
  | 'CK'
  | 'CL'
  | 'CM'
  | 'CN'
  | 'CO'
  | 'CR'
  | 'CU'
  | 'CV'
  | 'CW'
  | 'CX'
  | 'CY'
  | 'CZ'
  | 'DE'
  | 'DJ'
  | 'DK'
  | 'DM'
  | 'DO'
  | 'DZ'
  | 'EC'
  | 'EE'
  | 'EG'
  | 'EH'
  | 'ER'
  | 'ES'
  | 'ET'
  | 'FI'
  | 'FJ'
  | 'FK'
  | 'FM'
  | 'FO'
  | 'FR'
  | 'GA'
  | 'GB'
  | 'GD'
  | 'GE'
  | 'GF'
  | 'GG'
  | 'GH'
  | 'GI'
  | 'GL'
  | 'GM'
  | 'GN'
  | 'GP'
  | 'GQ'
  | 'GR'
  | 'GT'
  | 'GU'
  | 'GW'
  | 'GY'
  | 'HK'
  | 'HN'
  | 'HR'
  | 'HT'
  | 'HU'
  | 'ID'
  | 'IE'
  | 'IL'
  | 'IM'
  | 'IN'
  | 'IO'
  | 'IQ'
  | 'IR'
  | 'IS'
  | 'IT'
  | 'JE'
  | 'JM'
  | 'JO'
  | 'JP'
  | 'KE'
  | 'KG'
  | 'KH'
  | 'KI'
  | 'KM'
  | 'KN'
  | 'KP'
  | 'KR'
  | 'KW'
  | 'KY'
  | 'KZ'
  | 'LA'
  | 'LB'
  | 'LC'
  | 'LI'
  | 'LK'
  | 'LR'
  | 'LS'
  | 'LT'
  | 'LU'
  | 'LV'
  | 'LY'
  | 'MA'
  | 'MC'
  | 'MD'
  | 'ME'
  | 'MG'
  | 'MH'
  | 'MK'
  | 'ML'
  | 'MM'
  | 'MN'
  | 'MO'
  | 'MP'
  | 'MQ'
  | 'MR'
  | 'MS'
  | 'MT'
  | 'MU'
  | 'MV'
  | 'MW'
  | 'MX'
  | 'MY'
  | 'MZ'
  | 'NA'
  | 'NC'
  | 'NE'
  | 'NF'
  | 'NG'
  | 'NI'
  | 'NL'
  | 'NO'
  | 'NP'
  | 'NR'
  | 'NU'
  | 'NZ'
  | 'OM'
  | 'PA'
  | 'PE'
  | 'PF'
  | 'PG'
  | 'PH'
  | 'PK'
  | 'PL'
  | 'PM'
  | 'PR'
  | 'PS'
  | 'PT'
  | 'PW'
  | 'PY'
  | 'QA'
  | 'RE'
  | 'RO'
  | 'RS'
  | 'RU'
  | 'RW'
  | 'SA'
  | 'SB'
  | 'SC'
  | 'SD'
  | 'SE'
  | 'SG'
  | 'SH'
  | 'SI'
  | 'SJ'
  | 'SK'
  | 'SL'
  | 'SM'
  | 'SN'
  | 'SO'
  | 'SR'
  | 'SS'
  | 'ST'
  | 'SV'
  | 'SX'
  | 'SY'
  | 'SZ'
  | 'TA'
  | 'TC'
  | 'TD'
  | 'TG'
  | 'TH'
  | 'TJ'
  | 'TK'
  | 'TL'
  | 'TM'
  | 'TN'
  | 'TO'
  | 'TR'
  | 'TT'
  | 'TV'
  | 'TW'
  | 'TZ'
  | 'UA'
  | 'UG'
  | 'US'
  | 'UY'
  | 'UZ'
  | 'VA'
  | 'VC'
  | 'VE'
  | 'VG'
  | 'VI'
  | 'VN'
  | 'VU'
  | 'WF'
  | 'WS'
  | 'XK'
  | 'YE'
  | 'YT'
  | 'ZA'
  | 'ZM'
  | 'ZW'
export type ContactFilterTags = {
  some?: ContactFilterSome
  none?: ContactFilterSome
  every?: ContactFilterSome
}
export type ContactFilterSome = {
  id?: RefTest
  name?: TextTest
}
export type ContactFilterAttributes = {
  attributeName: {
    eq: string
  }
  stringValue?: TextTest
  numberValue?: NumberTest
  booleanValue?: FlagTest
  dateValue?: TimeTest
}
export type ContactFilterConversations = {
  state?: {
    eq?: 'open' | 'closed'
    ne?: 'open' | 'closed'
    in?: ('open' | 'closed')[]
    notIn?: ('open' | 'closed')[]
  }
  channelId?: RefTest
  assignedStaffId?: RefTest
  assignedTeamId?: RefTest
  createdAt?: TimeTest
  lastActivityAt?: TimeTest
  unreadCount?: NumberTest
}
export type ContactFilterConsents = {
  purpose?: KeyTest
  channel?: KeyTest
  state?: {
    eq?: 'granted' | 'withdrawn'
    ne?: 'granted' | 'withdrawn'
    in?: ('granted' | 'withdrawn')[]
    notIn?: ('granted' | 'withdrawn')[]
  }
}
export type ContactFilterBroadcasts = {
  id?: RefTest
  sentAt?: TimeTest
  message_status?: {
    eq?: ContactFilterMessageStatus
    ne?: ContactFilterMessageStatus
    in?: ContactFilterMessageStatus[]
    notIn?: ContactFilterMessageStatus[]
  }
}
export type ContactFilterMessageStatus =
  | 'pending'
  | 'sent'
  | 'delivered'
  | 'read'
  | 'failed'
  | 'responded'
  | 'not_responded'
export type ContactViewConversation = {
  /** Conversation id. */
  id: string
  /** Channel. */
  channel_id: string | null
  /** `open` or `closed`. */
  state: string | null
  /** True: it is assigned to a staff member or a team. */
  assigned: boolean
  /** Staff member it is assigned to. */
  assigned_staff_id: string | null
  /** When it started. */
  created_at: string | null
  /** Latest activity. */
  last_activity_at: string | null
}
export type CrmSearchContactsResolvedDate = {
  /** Position in the request, as a JSON Pointer. */
  path: string
  /** The value as sent. */
  input: string
  /** The instant it means. */
  value: string
}
export type CrmSearchContactsWarning = {
  /** Position in the request, as a JSON Pointer. */
  path: string
  /** Why it may not mean what it looks like. */
  message: string
}
export type DeleteOutput = DeletedFields & {
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
/** The older one. */
export type CrmFindDuplicatesData = {
  /** Name. */
  name: string | null
  /** E.164 digits without `+`; masked if phone numbers are hidden from you. */
  phone: string | null
  /** When it was created. */
  created_at: string
}
export type CrmEraseContactTable = {
  /** Name of the table, as listed in docs/privacy.md. */
  table: string
  /** Rows that were deleted. */
  deleted: number
  /** Rows that stay, without personal data. */
  cleared: number
  /** Rows that stay for statistics, with only the id of the contact. */
  pseudonymised: number
}
/** Only in a dry run: the contact. */
export type CrmEraseContactSample = {
  /** Contact id. */
  contact_id: string
  /** Name. */
  name: string | null
}
/** The export as it begins. In a dry run: what it would have, as far as it is counted quickly. */
export type CrmExportPersonExport = Omit<Export, 'id'> & {
  /** Export id; null in a dry run. */
  id: string | null
}
export type CrmExportPersonContacts = {
  /** `csv`, or `jsonl`: one JSON object on a line. */
  format: 'csv' | 'jsonl'
  /** Contacts in the export, fixed at its start. */
  total: number
  /** Contacts processed. */
  done: number
  /** Contacts in the file, without those deleted meanwhile. */
  written: number
  /** Contacts with a truncated long text: importing the file would truncate the stored text. */
  truncated: number
}
/** `running`: it is being made; `done`: the file can be downloaded; `failed`: see `problem`; `erased`: a person in it was erased, and the file with them; `expired`: the file was deleted. */
export type CrmExportPersonState = 'running' | 'done' | 'failed' | 'erased' | 'expired'
export type CrmExportPersonTable = {
  /** Name of the table, as listed in docs/privacy.md. */
  table: string
  /** Its rows that are in the file. */
  rows: number
}
/** `running`, `paused`; `done`: every record was tried; `failed`: it stopped, with the reason in `problem`; `cancelled`: it changes nothing more. */
export type JobState = 'running' | 'paused' | 'done' | 'failed' | 'cancelled'
export type JobProblem = {
  /** Error code. */
  code: string
  /** What is wrong. */
  detail: string
}
export type CrmContactsOutput = TargetResultFields & {
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type CrmUpdateContactsFailure = {
  /** The id that failed. */
  id: string
  /** Error code, such as `not_found`. */
  code: string
  /** What is wrong. */
  message: string
}
export type CrmContactsInput = TargetAlternatives & {
  /** 1 to 20 tag names or ids. */
  tags: (string | number)[]
}
/** The tag. */
export type CrmRenameTagTag = {
  /** Tag id. */
  id: string
  /** Tag name. */
  name: string
}
export type CrmRenameTagSavedFilter = {
  /** Saved filter id. */
  id: string
  /** Its name. */
  name: string
}
export type CrmDeleteOutput = DeletedNamedFields & {
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type CrmContactsGroupInput = TargetAlternatives & {
  /** Group id. */
  group_id: string
}
export type CustomFieldType =
  | 'text'
  | 'textarea'
  | 'select'
  | 'multiselect'
  | 'checkbox'
  | 'radio'
  | 'date'
  | 'datetime'
  | 'number'
  | 'email'
  | 'url'
  | 'phone'
  | 'int'
  | 'float'
  | 'boolean'
  | 'decimal'
export type CustomFieldOption = {
  /** Label shown to people. */
  label: string
  /** Value that is stored. */
  value: string
}
export type CrmCreateCustomFieldOption = {
  /** Label shown to people. */
  label: string
  /** Value that is stored; no comma. */
  value: string
}
/** Why there is no count. */
export type CrmCreateSavedFilterCountError = {
  /** Error code. */
  code: string
  /** What is wrong. */
  message: string
}
export type JobsOutput = {
  /** The job. */
  job: Job
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type QueuedConversationAssignee = {
  /** Staff member. */
  staff_id: string
  /** Name. */
  name: string | null
}
export type QueuedConversationSla = 'running' | 'breached' | 'met'
/** Why it takes none: `window_closed`, so that only an approved template can be sent; `group`, which is read only; `contact_deleted`; `contact_unreachable`, without a number; `channel_not_connected`: off or deleted; `channel_not_supported`: without a bridge. Absent where it takes one. */
export type QueuedConversationReason =
  | 'window_closed'
  | 'group'
  | 'contact_deleted'
  | 'contact_unreachable'
  | 'channel_not_connected'
  | 'channel_not_supported'
/** Type of the message. */
export type LastMessageType =
  | 'TEXT'
  | 'IMAGE'
  | 'VIDEO'
  | 'AUDIO'
  | 'DOCUMENT'
  | 'STICKER'
  | 'LOCATION'
  | 'TEMPLATE'
  | 'INTERACTIVE'
  | 'ORDER'
  | 'CONTACTS'
  | 'SYSTEM'
/** From the customer, to the customer, or neither (notes, changes). */
export type LastMessageDirection = 'inbound' | 'outbound' | 'system'
/** Delivery status. */
export type LastMessageStatus = 'received' | 'pending' | 'sent' | 'delivered' | 'read' | 'failed' | 'system'
export type LastMessageFrom = {
  /** Staff member. */
  staff_id: string | null
  /** Name. */
  name: string | null
}
/** Staff member who owns the key. */
export type ActorStaff = {
  /** Staff member. */
  id: string | null
  /** Name. */
  name: string | null
}
export type ActorKey = {
  /** Key id. */
  id: string
  /** Name of the key, or of the AI agent. */
  name: string | null
}
export type ActorApprovedBy = {
  /** Staff member. */
  id: string
  /** Name. */
  name: string | null
}
/** The product that the message asks about; absent without one. */
export type MessageProduct = {
  /** Catalog. */
  catalog_id: string | null
  /** Id of the product in the catalog of the business. */
  product_id: string | null
}
/** In a group: which member wrote it; absent elsewhere. */
export type MessageAuthor = {
  /** Their contact. */
  contact_id: string
  /** Their name then. */
  name: string | null
}
export type MessageMedia = {
  /** MIME type. */
  content_type: string | null
  /** File name. */
  file_name: string | null
  /** Bytes. */
  size: number | null
  /** URL to read it with an API key, or the URL it was sent from; null if deleted. */
  url: string | null
}
export type MessageTemplate = {
  /** Template name. */
  name: string
  /** Language. */
  language: string
}
export type MessageReaction = {
  /** The emoji. */
  emoji: string
  /** Who reacted. */
  from: 'customer' | 'staff'
  /** When. */
  at: string
}
export type InboxConversationOutput = {
  /** The conversation as it is now. */
  conversation: ConversationRef
  /** False: nothing changed. */
  changed: boolean
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
/** The note. */
export type InboxAddNoteMessage = ContentFieldsFields &
  Omit<Message, 'id' | 'content' | 'ad' | 'product' | 'phone_app' | 'author' | 'held' | 'forwarded'> & {
    /** Message id; null in a dry run. */
    id: string | null
  }
export type InboxConversationsInput =
  | {
      /** 1 to 500 conversation ids; duplicates count once. */
      conversation_ids: (string | number)[]
    }
  | {
      /** All conversations that match: the fields of `inbox_search_conversations`, and `contact`. `{}` needs `all`. */
      filter: ConversationFilter
      /** Required with an empty filter, which matches every conversation. */
      all?: true
    }
  | {
      /** All conversations of contacts that match this saved filter. With other conditions: `filter`, whose `contact` may be `{"savedFilter": {"eq": "7"}}`. */
      saved_filter_id: string | number
    }
export type InboxConversationsOutput = RecordsResultFields & {
  /** Only in a dry run by filter: up to 20 of the conversations. */
  samples?: {
    /** Conversation id. */
    conversation_id: string
    /** Name of the customer. */
    contact_name: string | null
    /** Name of the channel. */
    channel: string | null
  }[]
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
/** Values of the header. */
export type MessagingSendTemplateHeader = {
  /** Value of the variable of a text header. */
  text?: string
  /** Public https URL of the image, video or document. */
  media_url?: string
  /** Media id at the provider instead. */
  media_handle?: string
  /** Name of a document. */
  file_name?: string
  /** Latitude of a location header. */
  latitude?: number
  /** Longitude of a location header. */
  longitude?: number
  /** Name of the place. */
  name?: string
  /** Address of the place. */
  address?: string
}
export type MessagingSendTemplateButton = {
  /** Position of the button, from 0. */
  index: number
  /** Value of the variable at the end of a URL. */
  text?: string
  /** Payload that a quick reply returns. */
  payload?: string
  /** Code of a copy-code button. */
  coupon_code?: string
}
/** `scheduled`, `running`, `completed` or `cancelled`. */
export type BroadcastStatus = 'scheduled' | 'running' | 'completed' | 'cancelled'
export type MessagingSendBulkTemplate = {
  /** The same text for all; or one of the others: */
  text?: string
  /** A field of the contact. */
  field?: 'name' | 'phone' | 'external_id'
  /** Key of a custom field of the contact, such as `email`. */
  attribute?: string
  /** For contacts without a value; without a fallback they are skipped. */
  fallback?: string
}
export type TemplateHeader = {
  /** As `header_format`. */
  format: string | null
  /** Text of a text header. */
  text: string | null
  /** What the header requires when sending. */
  variables: {
    /** Position, from 1. */
    index: number
    /** Sample value. */
    sample: string | null
    /** Handle of the media sample. */
    media_sample: string | null
  }[]
}
export type TemplateBody = {
  /** Text. */
  text: string | null
  /** Variables. */
  variables: {
    /** Position, from 1. */
    index: number
    /** Sample value. */
    sample: string | null
  }[]
  /** Of `AUTHENTICATION`. */
  add_security_recommendation?: boolean
}
export type TemplateButton = {
  /** Position, from 0. */
  index: number
  /** Button type. */
  type: string
  /** Label. */
  text: string | null
  /** Address. */
  url: string | null
  /** True: the URL ends with a variable, so a suffix is required when sending. */
  dynamic_url: boolean
  /** Example of the full URL. */
  url_example: string | null
  /** Phone number to call. */
  phone_number: string | null
  /** Sample coupon code. */
  coupon_code: string | null
  /** Flow. */
  flow_id: string | null
  /** Of FLOW: `NAVIGATE` or `DATA_EXCHANGE`. */
  flow_action?: string
  /** Of FLOW: first screen. */
  navigate_screen?: string
  /** Of OTP: `COPY_CODE`, `ONE_TAP` or `ZERO_TAP`. */
  otp_type?: string
  /** Of OTP: apps that receive the code. */
  supported_apps?: TemplateSupportedApp[]
  /** Of ZERO_TAP. */
  zero_tap_terms_accepted?: boolean
}
export type TemplateSupportedApp = {
  /** Android package. */
  package_name: string
  /** Signature hash. */
  signature_hash: string
}
export type TemplateCard = {
  /** Image or video. */
  header: TemplateHeader | null
  /** Text of the card. */
  body: TemplateBody | null
  /** Buttons. */
  buttons: TemplateButton[]
}
export type TemplateLimitedTimeOffer = {
  /** Text. */
  text: string | null
  /** True: a countdown is shown. */
  has_expiration: boolean
}
export type MessagingLintTemplateButton = {
  /** Button type. */
  type: 'QUICK_REPLY' | 'URL' | 'PHONE_NUMBER' | 'COPY_CODE' | 'FLOW' | 'VOICE_CALL' | 'OTP'
  /** Label, at most 25 characters. */
  text?: string
  /** https; a dynamic one ends with `{{1}}`. */
  url?: string
  /** Whole address, variable filled. */
  url_example?: string
  /** E.164 number. */
  phone_number?: string
  /** Sample, at most 20 characters. */
  coupon_code?: string
  /** Flow. */
  flow_id?: string
  /** `NAVIGATE` when absent. */
  flow_action?: 'NAVIGATE' | 'DATA_EXCHANGE'
  /** First screen. */
  navigate_screen?: string
  /** `COPY_CODE` when absent. */
  otp_type?: 'COPY_CODE' | 'ONE_TAP' | 'ZERO_TAP'
  /** For ONE_TAP, ZERO_TAP. */
  supported_apps?: TemplateSupportedApp[]
  /** ZERO_TAP: must be true. */
  zero_tap_terms_accepted?: boolean
}
export type MessagingTemplateOutput = {
  /** False in a dry run. */
  submitted: boolean
  /** Template id; null in a dry run that creates it. */
  id: string | null
  /** Name. */
  name: string
  /** Language. */
  language: string
  /** Category, as assigned. */
  category: string | null
  /** Review status, normally `PENDING`; null in a dry run. */
  status: string | null
  /** Business account. */
  business_account_id: string | null
  /** Its name. */
  business_account_name: string | null
  /** Lint result. */
  lint: LintResult
  /** The components that are submitted. */
  payload_preview: { [key: string]: unknown }[]
  /** Changes with each change of the record; send it as `if_version`. Null in a dry run. */
  version: string | null
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
export type ShortLinkChannel = {
  /** Channel id. */
  id: string
  /** Name. */
  name: string | null
  /** Business number. */
  phone: string | null
}
/** Only with this visibility. */
export type MessagingListQuickMessagesVisibility = 'private' | 'team' | 'company'
/** `paused`: it failed several times; events queue while it is probed. */
export type WebhookEndpointStatus = 'active' | 'disabled' | 'paused'
export type WebhookEndpointSubscriptions = {
  /** Subscribed event types. */
  count: number
  /** Every item is active. */
  all_active: boolean
  /** What is subscribed. */
  event_types: {
    /** Event type id; `*`: all. */
    id: string
    /** True: events of this type are delivered. */
    active: boolean
    /** When it was subscribed. */
    created_at: string
  }[]
}
export type WebhooksOutput = {
  /** The endpoint. */
  endpoint: WebhookEndpoint
  /** False: nothing changed. */
  changed: boolean
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
/** `failed`: it will be retried; `dead`: it will not; `skipped`: its endpoint was deleted before it was delivered, or disabled for longer than deliveries are kept. */
export type WebhookDeliveryStatus = 'pending' | 'delivered' | 'failed' | 'dead' | 'skipped'
/** Up to today; `last_7_days` when absent. Weeks begin on Monday. */
export type ReportsWorkspaceSummaryPreset =
  | 'today'
  | 'yesterday'
  | 'last_7_days'
  | 'last_14_days'
  | 'last_30_days'
  | 'this_month'
  | 'last_month'
  | 'this_week'
  | 'last_week'
/** The range of the report. */
export type ReportsWorkspaceSummaryRange = {
  /** First local day. */
  from: string
  /** Last local day, inclusive. */
  to: string
  /** Days. */
  days: number
  /** IANA time zone. */
  timezone: string
  /** First instant. */
  started_at: string
  /** End, exclusive. */
  ended_at: string
  /** Requested preset. */
  preset: string | null
}
/** Messages to customers created in the range, with their current status; without broadcasts. */
export type ReportsWorkspaceSummaryMessages = {
  /** Sent, delivered or read. */
  sent: number | null
  /** Delivered or read. */
  delivered: number | null
  /** Read. */
  read: number | null
  /** Failed; not counted in `sent`. */
  failed: number | null
  /** `delivered` divided by `sent`, 0 to 1. */
  delivery_rate: number | null
}
/** Contacts. */
export type ReportsWorkspaceSummaryContacts = {
  /** Created and not deleted. */
  new: number | null
  /** True: the count stopped at 100,000. */
  new_is_lower_bound: boolean
}
/** Broadcasts started in the range, with their current status. */
export type ReportsWorkspaceSummaryBroadcasts = {
  /** Started. */
  started: number | null
  /** Recipients sent to. */
  sent: number | null
  /** Delivered or read. */
  delivered: number | null
  /** Read. */
  read: number | null
  /** Failed. */
  failed: number | null
  /** Opted out. */
  opted_out: number | null
}
export type ReportsWorkspaceSummaryUnavailable = {
  /** Path of the metric. */
  metric: string
  /** Why it is null. */
  reason: string
}
export type ReportsStaffData = {
  /** Staff member; null: nobody or the system, or the row `Phone app`. */
  staff_id: string | null
  /** Name. */
  name: string | null
  /** Conversations answered, closed or assigned; each counts once, as in `handled`, `replied`, `untouched`. */
  conversations: number | null
  /** Answered or closed. */
  handled: number | null
  /** Closes; a conversation can count several times. */
  closed: number | null
  /** Answered. */
  replied: number | null
  /** Assigned in the range, neither answered nor closed. */
  untouched: number | null
  /** Messages sent that did not fail. */
  messages_sent: number | null
  /** Reopens after this member had closed; a conversation can count several times. */
  reopened: number | null
  /** Average wait for the first response. */
  avg_first_response_seconds: number | null
  /** Average from opening to closing. */
  avg_time_to_close_seconds: number | null
  /** Clocks that ran out in the range and that this member stopped late, or that run in conversations assigned to them. */
  sla_breaches: {
    /** First responses. */
    first_response: number | null
    /** Later responses. */
    next_response: number | null
    /** Closes. */
    resolution: number | null
    /** All. */
    total: number | null
  } | null
  /** Share of clocks that this member stopped in time, of these and `sla_breaches`, 0 to 1. */
  sla_compliance_rate: number | null
  /** Share of closes with a reason, 0 to 1; for live closes only. */
  reason_coverage: number | null
  /** Median wait for the first response. Only with `medians`; null without one. */
  median_first_response_seconds?: number | null
  /** Median from opening to closing. Only with `medians`; null without one. */
  median_time_to_close_seconds?: number | null
}
/** The earlier record. */
export type ReportsFilterMembership = {
  /** When the members were recorded. */
  recorded_at: string
  /** How many there were. */
  members: number
}
/** Interface of the call: REST, `/v1/ops`, MCP or the command line. */
export type AuditRowDoor = 'rest' | 'ops' | 'mcp' | 'cli'
/** `done`; `refused`: permission or confirmation was missing; `failed`: it failed during execution. */
export type AuditRowOutcome = 'done' | 'refused' | 'failed'
export type ApprovalsOutput = {
  /** The request. */
  approval: Approval
  /** Present on a dry run: nothing was changed. */
  dry_run?: true
}
/** The contact. */
export type ContactCreatedContact = {
  /** Contact id. */
  id: string
  /** Name. */
  name: string | null
  /** E.164 digits. */
  phone: string | null
  /** Your id of the contact; absent from events from before external ids existed. */
  external_id?: string | null
  /** Do-not-disturb. */
  dnd: boolean
  /** Starred. */
  starred: boolean
  /** When it was created. */
  created_at: string
  /** When it was last changed. */
  updated_at: string
}
/** Tags were added to contacts. */
export type ContactTagsData = {
  /** Contacts that changed, at most 500. */
  contact_ids: string[]
  /** The tags. */
  tags: CrmRenameTagTag[]
  /** Who caused it, or wrote the message that it is about. Absent: a customer, the provider, or the service. */
  actor?: Actor
}
/** Contacts were added to groups. */
export type ContactGroupsData = {
  /** Contacts that changed, at most 500. */
  contact_ids: string[]
  /** The groups. */
  groups: {
    /** Group id. */
    id: string
    /** Group name. */
    name: string
  }[]
  /** Who caused it, or wrote the message that it is about. Absent: a customer, the provider, or the service. */
  actor?: Actor
}
/** A group was created. */
export type GroupData = {
  /** The group. */
  group: GroupCreatedGroup
  /** Who caused it, or wrote the message that it is about. Absent: a customer, the provider, or the service. */
  actor?: Actor
}
/** The group. */
export type GroupCreatedGroup = {
  /** Group id. */
  id: string
  /** Name. */
  name: string
  /** Emoji. */
  emoji: string | null
}
/** A conversation was created. */
export type ConversationData = {
  /** The conversation. */
  conversation: ConversationCreatedConversation
  /** Who caused it, or wrote the message that it is about. Absent: a customer, the provider, or the service. */
  actor?: Actor
}
/** The conversation. */
export type ConversationCreatedConversation = {
  /** Conversation id. */
  id: string
  /** `open` or `closed`. */
  state: string
  /** Contact; null when it was deleted. */
  contact_id: string | null
  /** Channel. */
  channel_id: string | null
  /** Staff member it is assigned to. */
  assignee_staff_id: string | null
  /** Team it is assigned to. */
  team_id: string | null
  /** 1, plus one for each time it was reopened. 0: not opened yet, it has only notices of the provider. */
  episode: number
}
/** A customer sent a message. */
export type MessageData = {
  /** The message. */
  message: MessageReceivedMessage
  /** Who caused it, or wrote the message that it is about. Absent: a customer, the provider, or the service. */
  actor?: Actor
}
/** The message. */
export type MessageReceivedMessage = ContentFieldsFields & {
  /** Message id. */
  id: string
  /** Conversation. */
  conversation_id: string
  /** Contact; null when it was deleted. */
  contact_id: string | null
  /** Channel. */
  channel_id: string | null
  /** Message type, such as `TEXT`. */
  type: string
  /** `inbound` or `outbound`. */
  direction: string
  /** Delivery status. */
  status: string
  /** Text or caption. */
  text: string | null
  /** True: it has a file. */
  has_media: boolean
  /** The message it replies to. */
  reply_to_id: string | null
  /** Your id of a message that you sent; absent from events from before external ids existed. */
  external_id?: string | null
  /** Why it failed. */
  error: string | null
  /** When it was written. */
  created_at: string
}
/** A template, new or changed, was submitted for review. */
export type TemplateData = {
  /** The template. */
  template: {
    /** Template id. */
    id: string
    /** Name. */
    name: string
    /** Language. */
    language: string
    /** Category. */
    category: string | null
    /** Review status. */
    status: string
  }
  /** Who caused it, or wrote the message that it is about. Absent: a customer, the provider, or the service. */
  actor?: Actor
}
/** A click-to-chat link was created. */
export type ShortLinkData = {
  /** The link. */
  short_link: {
    /** Short link id. */
    id: string
    /** Code. */
    code: string
    /** Address. */
    url: string
    /** Text that the link prefills for the customer. */
    message: string
    /** Channel. */
    channel_id: string
  }
  /** Who caused it, or wrote the message that it is about. Absent: a customer, the provider, or the service. */
  actor?: Actor
}
/** The endpoint. */
export type WebhookEndpointWarningEndpoint = {
  /** Endpoint id. */
  id: string
  /** Its address. */
  url: string
  /** Attempts that failed in a row. */
  consecutive_failures: number
}
