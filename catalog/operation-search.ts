import MiniSearch from 'minisearch'
import type { OperationName } from './index.ts'

/**
 * What people call each operation or what they want when they need it, beside its name, summary and description:
 * `find_tools` searches these words too. Whoever adds an operation adds its words (a type error until then).
 */
const operationWords: { readonly [name in OperationName]: string } = {
  workspace_whoami:
    'who am I, current user, identity, permissions, scopes, rights, policy, access, time zone, account, ' +
    'company',
  workspace_list_staff:
    'staff, employees, colleagues, users, agents, operators, team members, people on the team, who can be ' +
    'assigned, online, ids by name, need the id of a colleague',
  workspace_list_teams: 'teams, departments, sales, support, squads',
  workspace_channels:
    'channels, WhatsApp numbers, connected phone numbers, our numbers, sender, lines, inboxes, ' +
    'connection, health',
  crm_search_contacts:
    'find customers, list contacts, look up a customer by phone number, email or name, search leads, ' +
    'people, clients, inactive customers, customers in a city, with a tag, with a value, not active for ' +
    'days, members of a group, who is in a group, customers of a tag',
  crm_get_contact:
    'view a customer, contact details, profile, card, one contact, information about a customer',
  crm_upsert_contact:
    'create a contact, add a new customer, new lead, save a contact, register a client, person',
  crm_update_contact:
    'edit a contact, change name or email of a customer, set a custom field or attribute value, remove ' +
    'clear set dnd do not disturb, star, block, mute, favorite, blacklist, birthday, address, correct a ' +
    'wrong name, fix a typo, surname',
  crm_change_phone: 'change the phone number, replace, new number of a customer, moved to another number',
  crm_delete_contact: 'delete a customer, remove a contact, lead',
  crm_merge_contacts:
    'merge duplicates, duplicate contacts, combine, deduplicate, dedupe, join two customers, same person ' +
    'twice',
  crm_undo_contact_merge: 'unmerge contacts, split a merged contact, revert a merge, wrong merge, separate',
  crm_erase_contact:
    'erase, GDPR deletion, right to be forgotten, forget a customer, delete all personal data, privacy, ' +
    'anonymize, purge, wipe',
  crm_list_erasures: 'GDPR erasures, deletion log, erased people, forgotten',
  crm_get_erasure: 'proof of erasure, receipt, evidence that data was erased, GDPR deletion certificate',
  crm_export_person:
    'GDPR export, data subject access request, DSAR, personal data of a customer, portability, copy of ' +
    'all data',
  crm_export_contacts:
    'download contacts as CSV, Excel, spreadsheet, export customers, dump, list to a file, backup',
  crm_list_exports: 'exports, downloads, finished files',
  crm_get_export: 'download an export file, export status, ready, link to the file',
  crm_record_consent:
    'opt in, opt out, customer opted out, consent granted or withdrawn, subscribe, unsubscribe, no more ' +
    'marketing, stop messages, permission to write',
  crm_list_consents:
    'consent history, opt-in status, did the customer agree to marketing, permission, subscribed, ' +
    'unsubscribed',
  crm_update_contacts:
    'bulk update, set a field for many customers, mass edit, change all contacts with a filter',
  crm_delete_contacts: 'bulk delete, remove many customers, mass delete, clean up contacts',
  crm_tag_contacts:
    'add tag to contact, label a customer, tag customers, bulk tag, tag everyone of a filter, mark as',
  crm_untag_contacts: 'remove tag from contact, unlabel, untag customers, take a label away',
  crm_import_contacts:
    'import customers from a spreadsheet, upload CSV, bulk create contacts, load a list, batch upsert, ' +
    'migrate, Excel, sync from a shop or another CRM, hundreds at once',
  crm_count_contacts:
    'how many contacts, customers or leads, number with tag, count, total, size of a segment, audience ' +
    'size, how many people',
  crm_check_filter:
    'validate a filter, explain a filter, filter syntax, test a segment, is my filter right, conditions, ' +
    'query language',
  crm_list_tags: 'available tags, all labels, which tags are there',
  crm_rename_tag: 'rename a tag, change the name of a label, edit tag',
  crm_delete_tag: 'delete a tag, remove a label everywhere',
  crm_merge_tags: 'merge two tags, combine duplicate labels, join tags',
  crm_list_groups: 'groups, segments, static lists, all groups',
  crm_create_group: 'new group, create segment, static list',
  crm_update_group: 'rename a group, change the name or emoji of a group, edit segment',
  crm_delete_group: 'delete a group, remove a segment or list',
  crm_add_contacts_to_group: 'put a customer in a group, add members to a segment or list',
  crm_remove_contacts_from_group: 'take a customer out of a group, remove members from a segment or list',
  crm_list_custom_fields:
    'contact attributes, properties, what fields do contacts have, schema of contacts, custom field keys ' +
    'and options',
  crm_create_custom_field: 'add a new attribute, property, column or field to contacts, dropdown',
  crm_update_custom_field:
    'edit a custom field, add an option to a dropdown, hide a field from staff, rename attribute, manager ' +
    'only',
  crm_delete_custom_field: 'remove a custom field, attribute, property or column',
  crm_list_saved_filters: 'saved filters, saved segments, smart lists, dynamic lists, views, audiences',
  crm_get_saved_filter: 'conditions of a saved filter, segment, smart list',
  crm_create_saved_filter:
    'save a filter, save a segment, smart list, dynamic list, audience, view, share a segment with ' +
    'colleagues',
  crm_update_saved_filter: 'edit a saved filter, segment, smart list, audience',
  crm_track_saved_filter: 'track a segment, record members of a filter each day, monitor audience changes',
  crm_delete_saved_filter: 'remove a saved filter, segment, smart list, audience',
  jobs_list: 'background jobs, running tasks, bulk operations, scheduled broadcasts',
  jobs_get: 'job status, progress of a bulk change, is it done, finished, percentage, task',
  jobs_list_failures: 'which contacts failed in a job, errors of a bulk change, failed rows, skipped',
  jobs_pause: 'pause a job, stop a running broadcast, bulk send, campaign, hold, suspend',
  jobs_resume: 'continue a paused job, retry a failed job, resume a broadcast, go on, restart',
  jobs_cancel:
    'cancel a scheduled broadcast, abort a campaign, stop a running broadcast, bulk send, kill a job, ' +
    'call off',
  jobs_undo: 'undo a bulk change, revert, roll back tagging, take back, restore',
  inbox_queue:
    'unanswered conversations, who is waiting for a reply, what to answer next, overdue, backlog, pending ' +
    'tickets, work list, SLA, unanswered tickets, urgent',
  inbox_search_conversations:
    'open tickets, chats, my conversations, conversations assigned to me, unread, threads of a customer, ' +
    'list conversations, inbox',
  inbox_get_conversation:
    'one conversation, reply window, 24 hour window, can I still answer, chat details, ticket, thread',
  inbox_list_messages:
    'read the chat history, messages of a conversation, message history with a customer, transcript, what ' +
    'was said, thread, read messages, last messages, what did the customer write last, latest message',
  inbox_search_messages:
    'search messages, full text, find a word in chats, who mentioned, who wrote about, keyword',
  inbox_assign_conversation:
    'assign a ticket, hand over to a human, escalate, transfer to a colleague, agent or team, take over, ' +
    'forward, route, handoff, pass on, give to, delegate',
  inbox_unassign_conversation: 'unassign, put back in the queue, release a ticket, remove the assignee',
  inbox_close_conversation:
    'close a ticket, resolve, done, finish, complete, mark as solved, archive a conversation, end chat',
  inbox_reopen_conversation: 'reopen a ticket, closed chat, open again',
  inbox_tag_conversation:
    'label a conversation, tag a ticket, categorize a chat, remove a label from a conversation',
  inbox_add_note:
    'internal note, private comment, internal comment, remark for colleagues, annotate, memo, write down',
  inbox_set_reminder:
    'remind me, snooze, follow up later, reminder, come back tomorrow, callback, due date, task, ' +
    'postpone, later, wake me, next week, tomorrow, Monday',
  inbox_mark_read: 'mark as read, clear unread, seen, unread badge',
  inbox_assign_conversations:
    'bulk assign, reassign all conversations of a colleague, transfer many tickets, on vacation, on ' +
    'holiday, move all chats to somebody else',
  inbox_close_conversations:
    'bulk close, close all old conversations, resolve many tickets, clean up the inbox',
  messaging_send_template:
    'send a template message, start a conversation, message a customer first, outside the 24h window, ' +
    'window closed, order confirmation, notification, schedule a message, HSM, write to a customer, ' +
    'remind a customer, appointment, reminder, send later, in the future',
  messaging_send_bulk:
    'broadcast, create, start or schedule a broadcast, campaign, newsletter, mass message, blast, ' +
    'marketing to everyone of a segment, send to all customers with a tag',
  messaging_send_reply:
    'reply, answer a customer, send a message, WhatsApp text, send an image, photo, PDF, document, file, ' +
    'video, respond, write back, chat',
  messaging_get_message:
    'message status, was it delivered, read receipt, did the message arrive, why did a message fail, ' +
    'error',
  messaging_get_media:
    'attachment, download a file, photo, picture, image, voice message, audio, video, document that the ' +
    'customer sent, see or open the photo that a client has sent',
  messaging_list_templates:
    'approved templates, message templates, HSM, which templates can I send, pending, rejected',
  messaging_get_template:
    'template details, variables, placeholders, why was my template rejected, review status, rejection ' +
    'reason, preview',
  messaging_lint_template:
    'validate a template, check before submitting, will it be approved, template rules, review, draft, ' +
    'proofread',
  messaging_create_template: 'new template, submit a template for approval, write a template, register',
  messaging_update_template: 'edit a template, change its text, resubmit, fix a rejected template',
  messaging_archive_templates: 'delete a template, remove, retire, deactivate templates',
  messaging_upload_template_sample:
    'upload a header image, video or document for a template, sample media, example file',
  messaging_list_short_links: 'click-to-chat links, wa.me links, QR codes, all links, URLs, clicks',
  messaging_create_short_link:
    'create a QR code, wa.me link, click-to-chat link, short URL, invite link, link for a website or ' +
    'poster, invite customers to write to us',
  messaging_get_short_link: 'clicks of a link, link statistics, QR image, how often was it opened',
  messaging_delete_short_link:
    'deactivate a link, remove a QR code, disable URL, a link must not work any more, stop',
  messaging_list_quick_messages:
    'canned answers, canned responses, saved replies, snippets, shortcuts, macros, text blocks, ' +
    'predefined, prepared answers, FAQ',
  messaging_create_quick_message:
    'create a canned answer, canned response, saved reply, snippet, shortcut, macro',
  messaging_update_quick_message:
    'edit a canned answer, canned response, saved reply, snippet, shortcut, macro',
  messaging_delete_quick_message:
    'remove a canned answer, canned response, saved reply, snippet, shortcut, macro',
  messaging_list_broadcasts: 'campaigns, newsletters, past and scheduled broadcasts, mass messages',
  messaging_get_broadcast:
    'broadcast statistics, campaign results, how many recipients read, delivery rate, performance, open ' +
    'rate',
  messaging_list_broadcast_recipients:
    'who got, read, failed or did not respond to a campaign, why did the campaign fail, failed messages, ' +
    'undelivered recipients, bounced, received the newsletter',
  webhooks_list_endpoints: 'webhooks, callbacks, integrations, endpoints, URLs',
  webhooks_get_endpoint: 'webhook details, health, is my endpoint enabled, why was it disabled',
  webhooks_create_endpoint:
    'create a webhook, add a callback, send events to my server, get notified when a message arrives, ' +
    'integration, notify a URL, push, subscribe',
  webhooks_update_endpoint: 'edit a webhook, change the URL, headers',
  webhooks_delete_endpoint: 'remove a webhook, callback, integration',
  webhooks_rotate_secret: 'rotate a webhook secret, signing key leaked, new secret, signature',
  webhooks_disable_endpoint: 'pause a webhook, stop deliveries, turn off, deactivate',
  webhooks_enable_endpoint: 'resume a webhook, turn on, activate, reactivate',
  webhooks_set_subscriptions:
    'subscribe a webhook to events, choose event types, which events it receives, unsubscribe, only some ' +
    'events, not everything',
  webhooks_send_test: 'test a webhook, ping, send a sample event, is the receiver working',
  webhooks_list_event_types:
    'which events are there, event types, payload schema, sample payload, catalog of events',
  webhooks_list_deliveries:
    'failed webhook deliveries, delivery log, attempts, errors of a callback, delivery history, why did ' +
    'my server not get the callback, response code',
  webhooks_get_delivery: 'one webhook delivery, attempts, response of the receiver, payload that was sent',
  webhooks_replay_delivery: 'retry a webhook delivery, resend, redeliver, repeat a failed event',
  webhooks_recover_endpoint:
    'missed webhooks, resend events after downtime, outage, recover, backfill, redeliver a time range, we ' +
    'were down, get what we lost',
  events_list:
    'event log, what happened recently, changes since yesterday, activity feed, stream, poll for new ' +
    'messages, sync, updates',
  events_ack: 'acknowledge events, commit a cursor, offset, consumer position, mark as processed',
  events_list_consumers: 'consumers, readers of the event log, lag, positions',
  events_delete_consumer: 'remove a consumer, forget its position',
  reports_workspace_summary:
    'report, statistics, KPIs, dashboard, figures, metrics, analytics, weekly or monthly summary, how ' +
    'many messages were sent, volume, new customers, delivery rate',
  reports_staff:
    'agent performance, workload, response time, who answered most, productivity, statistics of each ' +
    'colleague, first reply time, leaderboard',
  reports_filter_membership:
    'who entered or left a segment, new members of a saved filter, churn, changes of an audience, ' +
    'churned, growth over time',
  audit_list:
    'audit log, who changed, deleted or did something, activity of a user, history of changes, trail, ' +
    'accountability, security log, who closed, sent or edited, when and by whom, who deleted this ' +
    'yesterday',
  approvals_list:
    'pending approvals, requests of AI agents, what waits for my decision, calls that a person approves, what ' +
    'bots or agents ask permission for, what became of them',
  approvals_get:
    'status of my request, has it been approved, wait for an approval, decision, has my manager said yes',
  approvals_approve:
    'approve a request, allow, say yes, accept, authorize, confirm, let the agent or bot go ahead',
  approvals_decline: 'reject a request of an agent, refuse, deny, say no',
  approvals_cancel: 'withdraw my own request, take back an approval request',
}

/** What of an operation is searched, beside what people call it (operation-words.ts). */
export type SearchedTexts = {
  readonly operation: string
  readonly command: string
  readonly summary: string
  readonly description: string
  readonly fields: string
  readonly fieldDescriptions: string
}

/** How much a word counts in each field of a document. */
const boost = {
  words: 5,
  summary: 2,
  operation: 1,
  command: 1,
  description: 0.5,
  fields: 0.3,
  fieldDescriptions: 0.2,
}

/** Words that people use for what the catalog calls otherwise, wherever they would fit many operations. */
const synonyms: Readonly<Record<string, readonly string[]>> = {
  answer: ['reply'],
  campaign: ['broadcast'],
  chat: ['conversation'],
  client: ['contact'],
  colleague: ['staff'],
  customer: ['contact'],
  employee: ['staff'],
  label: ['tag'],
  lead: ['contact'],
  people: ['contact'],
  person: ['contact'],
  remove: ['delete'],
  thread: ['conversation'],
  ticket: ['conversation'],
}

/** Words that say nothing about an operation. */
const stopWords = new Set(
  (
    'a all an and any are as at be by can could do does for from get has have how i in is it me my of on one or our ' +
    'please should show that the their them there this to us want was we what when where which will with you your'
  ).split(' '),
)

/** The same for singular and plural, and for the forms of a verb, which is all that short texts need. */
const stem = (word: string): string => {
  if (word.length < 4) return word
  const bare = word.replace(/ies$/, 'y').replace(/(?:ing|ed|es|s)$/, '')
  return bare.replace(/e$/, '').replace(/(.)\1$/, '$1')
}

const synonymsOf = new Map(Object.entries(synonyms).map(([word, others]) => [stem(word), others.map(stem)]))

const splitWords = (text: string): string[] => text.match(/[\p{L}\p{N}]+/gu) ?? []

const toTerm = (word: string): string | undefined => {
  const lower = word.toLowerCase()
  return stopWords.has(lower) ? undefined : stem(lower)
}

/** Operations that fit so much less than the best one are left out. */
const MIN_SCORE = 0.3

/** Finds operations for what somebody wants to do: returns their names, best first. */
export type OperationSearch = (query: string) => string[]

/** Returns a search in operations; its index takes a few milliseconds for each hundred of them. */
export const createOperationSearch = (operations: readonly SearchedTexts[]): OperationSearch => {
  const index = new MiniSearch({
    idField: 'operation',
    fields: Object.keys(boost),
    tokenize: splitWords,
    processTerm: toTerm,
    searchOptions: {
      boost,
      processTerm: (word) => {
        const term = toTerm(word)
        return term === undefined ? undefined : [term, ...(synonymsOf.get(term) ?? [])]
      },
      prefix: (term) => term.length > 3,
      fuzzy: (term) => (term.length > 4 ? 0.2 : 0),
      weights: { prefix: 0.5, fuzzy: 0.3 },
      // Texts of some ten words: how often one has a word, and how long it is, says little.
      bm25: { k: 0.6, b: 0.3, d: 0.5 },
    },
  })
  index.addAll(
    operations.map((texts) => ({ ...texts, words: operationWords[texts.operation as OperationName] })),
  )
  return (query) => {
    const hits = index.search(query)
    const least = (hits[0]?.score ?? 0) * MIN_SCORE
    return hits.filter(({ score }) => score >= least).map(({ id }) => id as string)
  }
}
