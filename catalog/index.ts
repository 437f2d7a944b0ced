import { listConsents, recordConsent } from './contacts/consent.ts'
import { approveApproval, cancelApproval, declineApproval, getApproval, listApprovals } from './approvals.ts'
import { listAudit } from './audit.ts'
import { getBroadcast, listBroadcastRecipients, listBroadcasts, rescheduleBroadcast } from './broadcasts.ts'
import { cancelJob, getJob, listJobFailures, listJobs, pauseJob, resumeJob, undoJob } from './bulk-jobs.ts'
import { listChannels } from './channels.ts'
import { deleteContact, tagContacts, untagContacts, updateContact } from './contacts/change.ts'
import { deleteContacts, updateContacts } from './contacts/change-many.ts'
import { changePhone } from './contacts/change-phone.ts'
import { eraseContact, getErasure, listErasures } from './contacts/erase.ts'
import { findDuplicates, mergeContacts, undoContactMerge } from './contacts/merge.ts'
import { getContact, searchContacts } from './contacts/read.ts'
import { importContacts, upsertContact } from './contacts/upsert.ts'
import { assignConversation, unassignConversation } from './conversations/assign.ts'
import { assignConversations, closeConversations } from './conversations/change-many.ts'
import {
  closeConversation,
  markRead,
  reopenConversation,
  setReminder,
  tagConversation,
} from './conversations/change.ts'
import { inboxQueue } from './conversations/queue.ts'
import { getConversation, searchConversations } from './conversations/read.ts'
import { createCustomField, deleteCustomField, listCustomFields, updateCustomField } from './custom-fields.ts'
import { acknowledgeEvents, deleteConsumer, listConsumers, listEvents } from './event-log.ts'
import { checkFilter, countContacts } from './filters.ts'
import {
  addContactsToGroup,
  createGroup,
  deleteGroup,
  listGroups,
  removeContactsFromGroup,
  updateGroup,
} from './groups.ts'
import { exportContacts, exportPerson, getExport, listExports } from './exports.ts'
import { getMedia } from './media.ts'
import { searchMessages } from './message-search.ts'
import { sendBulk } from './send-bulk.ts'
import { addNote, getMessage, listMessages, sendReply, sendTemplate } from './messages.ts'
import type { Operation } from './operation.ts'
import {
  createQuickMessage,
  deleteQuickMessage,
  listQuickMessages,
  updateQuickMessage,
} from './quick-messages.ts'
import { staffReport, workspaceSummary } from './reports.ts'
import {
  createSavedFilter,
  deleteSavedFilter,
  getSavedFilter,
  listSavedFilters,
  updateSavedFilter,
} from './saved-filters.ts'
import { filterMembership, trackSavedFilter } from './filter-membership.ts'
import { createShortLink, deleteShortLink, getShortLink, listShortLinks } from './short-links.ts'
import { deleteTag, listTags, mergeTags, renameTag } from './tags.ts'
import {
  archiveTemplates,
  createTemplate,
  syncTemplates,
  updateTemplate,
  uploadSample,
} from './templates/change.ts'
import { getTemplate, lintTemplate, listTemplates } from './templates/read.ts'
import {
  createEndpoint,
  deleteEndpoint,
  disableEndpoint,
  enableEndpoint,
  getEndpoint,
  listEndpoints,
  rotateSecret,
  updateEndpoint,
} from './webhooks/endpoints.ts'
import { getDelivery, listDeliveries, recoverEndpoint, replayDelivery } from './webhooks/deliveries.ts'
import { listEventTypes, sendTestEvent, setSubscriptions } from './webhooks/subscriptions.ts'
import { listStaff, listTeams, whoami } from './workspace.ts'

export * from './operation.ts'
export { currentVersion } from './versions.ts'

const operations = [
  whoami,
  listStaff,
  listTeams,
  listChannels,
  searchContacts,
  getContact,
  upsertContact,
  updateContact,
  changePhone,
  deleteContact,
  findDuplicates,
  mergeContacts,
  undoContactMerge,
  eraseContact,
  listErasures,
  getErasure,
  exportPerson,
  exportContacts,
  listExports,
  getExport,
  recordConsent,
  listConsents,
  updateContacts,
  deleteContacts,
  tagContacts,
  untagContacts,
  importContacts,
  countContacts,
  checkFilter,
  listTags,
  renameTag,
  deleteTag,
  mergeTags,
  listGroups,
  createGroup,
  updateGroup,
  deleteGroup,
  addContactsToGroup,
  removeContactsFromGroup,
  listCustomFields,
  createCustomField,
  updateCustomField,
  deleteCustomField,
  listSavedFilters,
  getSavedFilter,
  createSavedFilter,
  updateSavedFilter,
  trackSavedFilter,
  deleteSavedFilter,
  listJobs,
  getJob,
  listJobFailures,
  pauseJob,
  resumeJob,
  cancelJob,
  undoJob,
  inboxQueue,
  searchConversations,
  getConversation,
  listMessages,
  searchMessages,
  assignConversation,
  unassignConversation,
  closeConversation,
  reopenConversation,
  tagConversation,
  addNote,
  setReminder,
  markRead,
  // After what concerns one conversation, in lists and among tools of equal rank.
  assignConversations,
  closeConversations,
  sendTemplate,
  sendBulk,
  sendReply,
  getMessage,
  getMedia,
  listTemplates,
  getTemplate,
  lintTemplate,
  createTemplate,
  updateTemplate,
  archiveTemplates,
  syncTemplates,
  uploadSample,
  listShortLinks,
  createShortLink,
  getShortLink,
  deleteShortLink,
  listQuickMessages,
  createQuickMessage,
  updateQuickMessage,
  deleteQuickMessage,
  listBroadcasts,
  getBroadcast,
  listBroadcastRecipients,
  rescheduleBroadcast,
  listEndpoints,
  getEndpoint,
  createEndpoint,
  updateEndpoint,
  deleteEndpoint,
  rotateSecret,
  disableEndpoint,
  enableEndpoint,
  setSubscriptions,
  sendTestEvent,
  listEventTypes,
  listDeliveries,
  getDelivery,
  replayDelivery,
  recoverEndpoint,
  listEvents,
  acknowledgeEvents,
  listConsumers,
  deleteConsumer,
  workspaceSummary,
  staffReport,
  filterMembership,
  listAudit,
  listApprovals,
  getApproval,
  approveApproval,
  declineApproval,
  cancelApproval,
] as const

/** Every operation of the service, in the order in which documents list them. */
export const catalog: readonly Operation[] = operations

/** The declarations by name, with their types. */
export type Declarations = { readonly [O in (typeof operations)[number] as O['name']]: O }
export type OperationName = keyof Declarations

const byName = new Map<string, Operation>(catalog.map((op) => [op.name, op]))

/** What this version has: jobs and calls of others are of a later one, whose servers take them. */
export const operationNames: readonly string[] = catalog.map(({ name }) => name)

/** The operation of this name, if there is one. */
export const findOperation = (name: string): Operation | undefined => byName.get(name)
