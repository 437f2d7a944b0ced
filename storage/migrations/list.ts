import type { MigrationList } from './declare.ts'
import * as spine from './0001-spine.ts'
import * as filters from './0002-filters.ts'
import * as messaging from './0003-messaging.ts'
import * as sandbox from './0004-sandbox.ts'
import * as templates from './0005-templates.ts'
import * as webhooks from './0006-webhooks.ts'
import * as audit from './0007-audit.ts'
import * as reports from './0008-reports.ts'
import * as hiddenPhones from './0011-hidden-phones.ts'
import * as visibility from './0012-visibility.ts'
import * as providerOwnership from './0013-provider-ownership.ts'
import * as secretsAndKeys from './0014-secrets-and-keys.ts'
import * as openOutcomes from './0015-open-outcomes.ts'
import * as lateFailures from './0016-late-failures.ts'
import * as reactionsAndWaits from './0017-reactions-and-waits.ts'
import * as ownChannels from './0018-own-channels.ts'
import * as phoneLines from './0019-phone-lines.ts'
import * as providerAccounts from './0020-provider-accounts.ts'
import * as templateSamples from './0021-template-samples.ts'
import * as filterIndexes from './0022-filter-indexes.ts'
import * as partitions from './0023-partitions.ts'
import * as smallerTables from './0024-smaller-tables.ts'
import * as agentKeys from './0025-agent-keys.ts'
import * as attribution from './0026-attribution.ts'
import * as oauth from './0027-oauth.ts'
import * as conversationFilters from './0028-conversation-filters.ts'
import * as unreadConversations from './0029-unread-conversations.ts'
import * as approvalPlans from './0030-approval-plans.ts'
import * as autovacuum from './0031-autovacuum.ts'
import * as serverVersions from './0032-server-versions.ts'
import * as recordVersions from './0033-record-versions.ts'
import * as eventConsumers from './0034-event-consumers.ts'
import * as externalIds from './0035-external-ids.ts'
import * as externalIdIndex from './0036-external-id-index.ts'
import * as contactMetadata from './0037-contact-metadata.ts'
import * as messageExternalIds from './0038-message-external-ids.ts'
import * as messageExternalIdIndex from './0039-message-external-id-index.ts'
import * as contactMerges from './0053-contact-merges.ts'
import * as bulkJobs from './0054-bulk-jobs.ts'
import * as messageSearch from './0056-message-search.ts'
import * as formerPhones from './0060-former-phones.ts'
import * as consent from './0061-consent.ts'
import * as erasures from './0062-erasures.ts'
import * as broadcastSends from './0063-broadcast-sends.ts'
import * as broadcastSendIndexes from './0064-broadcast-send-indexes.ts'
import * as recordsOfJobs from './0065-records-of-jobs.ts'
import * as contactExchanges from './0067-contact-exchanges.ts'
import * as filterMemberships from './0068-filter-memberships.ts'
import * as exportFiles from './0069-exports.ts'
import * as contactExports from './0070-contact-exports.ts'
import * as dueTimes from './0071-due-times.ts'
import * as eventPositions from './0072-event-positions.ts'
import * as messageWords from './0073-message-words.ts'
import * as approvedValues from './0074-approved-values.ts'
import * as webhookBacklogs from './0075-webhook-backlogs.ts'
import * as teamLists from './0076-team-lists.ts'
import * as agentConsumers from './0077-agent-consumers.ts'
import * as latestMessagePlan from './0078-latest-message-plan.ts'
import * as keyFamilies from './0082-key-families.ts'
import * as approvedSubjects from './0084-approved-subjects.ts'
import * as contactExchangesByLookUp from './0085-contact-exchanges-by-look-up.ts'

/**
 * The migrations, oldest first, each with what it locks (CONTRIBUTING.md, "Writing a migration"). Migrations that a
 * released version has are never changed in what they do.
 */
export const migrations = {
  '0001-spine': { ...spine, cost: {} },
  '0002-filters': {
    ...filters,
    cost: { closes: ['conversations'], freezes: ['contacts'], work: 'unmeasured' },
  },
  '0003-messaging': {
    ...messaging,
    cost: { closes: ['conversations'], freezes: ['channels'], work: 'unmeasured' },
  },
  '0004-sandbox': { ...sandbox, cost: {} },
  '0005-templates': {
    ...templates,
    cost: { closes: ['broadcasts', 'quick_messages'], freezes: ['broadcast_recipients'], work: 'unmeasured' },
  },
  '0006-webhooks': { ...webhooks, cost: { freezes: ['events'], work: 'unmeasured' } },
  '0007-audit': { ...audit, cost: {} },
  '0008-reports': {
    ...reports,
    cost: {
      closes: ['conversation_episodes'],
      freezes: ['conversations', 'messages', 'reply_waits'],
      work: 'unmeasured',
    },
  },
  '0011-hidden-phones': { ...hiddenPhones, cost: { work: 'unmeasured' } },
  '0012-visibility': {
    ...visibility,
    cost: { closes: ['idempotency', 'quick_messages', 'webhook_endpoints'] },
  },
  '0013-provider-ownership': {
    ...providerOwnership,
    cost: { closes: ['channels', 'sandbox_faults', 'sandbox_numbers', 'sandbox_settings', 'workspaces'] },
  },
  '0014-secrets-and-keys': { ...secretsAndKeys, cost: { closes: ['api_keys'] } },
  '0015-open-outcomes': { ...openOutcomes, cost: { closes: ['idempotency'] } },
  '0016-late-failures': {
    ...lateFailures,
    cost: { closes: ['conversation_episodes', 'messages', 'staff_reports'], work: 'unmeasured' },
  },
  '0017-reactions-and-waits': {
    ...reactionsAndWaits,
    cost: { closes: ['conversations', 'messages'], freezes: ['media'], work: 'unmeasured' },
  },
  '0018-own-channels': { ...ownChannels, cost: { closes: ['channels'] } },
  '0019-phone-lines': {
    ...phoneLines,
    cost: { closes: ['contacts'], work: { seconds: 28, of: 'contacts' } },
  },
  '0020-provider-accounts': {
    ...providerAccounts,
    cost: { closes: ['sandbox_numbers', 'webhook_endpoints'] },
  },
  '0021-template-samples': { ...templateSamples, cost: { freezes: ['sandbox_uploads'] } },
  '0022-filter-indexes': {
    ...filterIndexes,
    cost: { freezes: ['contact_facts', 'contacts'], work: { seconds: 10.2, of: 'contacts' } },
  },
  '0023-partitions': {
    ...partitions,
    cost: { closes: ['audit_log', 'events', 'webhook_attempts'], work: { seconds: 2, of: 'events' } },
  },
  '0024-smaller-tables': {
    ...smallerTables,
    cost: {
      closes: [
        'broadcast_recipients',
        'contact_attributes',
        'contact_groups',
        'contact_tags',
        'conversations',
      ],
      work: { seconds: 47, of: 'contacts' },
    },
  },
  '0025-agent-keys': { ...agentKeys, cost: { closes: ['api_keys'] } },
  '0026-attribution': { ...attribution, cost: { closes: ['api_keys', 'audit_log', 'messages'] } },
  '0027-oauth': { ...oauth, cost: {} },
  '0028-conversation-filters': {
    ...conversationFilters,
    cost: { freezes: ['conversations'], work: { seconds: 1.1, of: 'conversations' } },
  },
  '0029-unread-conversations': {
    ...unreadConversations,
    cost: { freezes: ['conversations'], work: { seconds: 0.15, of: 'conversations' } },
  },
  '0030-approval-plans': { ...approvalPlans, cost: { closes: ['approvals'] } },
  '0031-autovacuum': { ...autovacuum, cost: {}, oldest: '0030-approval-plans' },
  '0032-server-versions': { ...serverVersions, cost: { closes: ['servers'] }, oldest: '0030-approval-plans' },
  '0033-record-versions': {
    ...recordVersions,
    cost: { closes: ['contacts', 'quick_messages', 'saved_filters', 'templates', 'webhook_endpoints'] },
    oldest: '0030-approval-plans',
  },
  '0034-event-consumers': { ...eventConsumers, cost: {}, oldest: '0030-approval-plans' },
  '0035-external-ids': { ...externalIds, cost: { closes: ['contacts'] }, oldest: '0030-approval-plans' },
  '0036-external-id-index': {
    ...externalIdIndex,
    cost: { work: { seconds: 0.4, of: 'contacts' } },
    oldest: '0030-approval-plans',
    transaction: 'none',
  },
  '0037-contact-metadata': {
    ...contactMetadata,
    cost: { closes: ['contact_facts'] },
    oldest: '0030-approval-plans',
  },
  '0038-message-external-ids': {
    ...messageExternalIds,
    cost: { closes: ['messages'] },
    oldest: '0030-approval-plans',
  },
  '0039-message-external-id-index': {
    ...messageExternalIdIndex,
    cost: { work: { seconds: 0.4, of: 'messages' } },
    oldest: '0030-approval-plans',
    transaction: 'none',
  },
  '0053-contact-merges': { ...contactMerges, cost: {}, oldest: '0030-approval-plans' },
  '0054-bulk-jobs': { ...bulkJobs, cost: {}, oldest: '0030-approval-plans' },
  '0056-message-search': { ...messageSearch, cost: { freezes: ['messages'] }, oldest: '0030-approval-plans' },
  '0060-former-phones': { ...formerPhones, cost: {}, oldest: '0030-approval-plans' },
  '0061-consent': { ...consent, cost: {}, oldest: '0030-approval-plans' },
  '0062-erasures': { ...erasures, cost: {}, oldest: '0030-approval-plans' },
  '0063-broadcast-sends': {
    ...broadcastSends,
    cost: { closes: ['broadcast_recipients'] },
    oldest: '0030-approval-plans',
  },
  '0064-broadcast-send-indexes': {
    ...broadcastSendIndexes,
    cost: { work: { seconds: 0.3, of: 'broadcast_recipients' } },
    oldest: '0030-approval-plans',
    transaction: 'none',
  },
  '0065-records-of-jobs': {
    ...recordsOfJobs,
    cost: { closes: ['bulk_job_batches', 'bulk_jobs'] },
    oldest: '0030-approval-plans',
  },
  '0067-contact-exchanges': {
    ...contactExchanges,
    cost: { freezes: ['conversations', 'messages'] },
    oldest: '0030-approval-plans',
  },
  '0068-filter-memberships': { ...filterMemberships, cost: {}, oldest: '0030-approval-plans' },
  '0069-exports': { ...exportFiles, cost: {}, oldest: '0030-approval-plans' },
  '0070-contact-exports': {
    ...contactExports,
    cost: { closes: ['exports'] },
    oldest: '0030-approval-plans',
  },
  '0071-due-times': {
    ...dueTimes,
    cost: { closes: ['approvals', 'bulk_jobs', 'erasures', 'exports'] },
    oldest: '0030-approval-plans',
  },
  '0072-event-positions': { ...eventPositions, cost: { closes: ['events'] }, oldest: '0030-approval-plans' },
  '0073-message-words': { ...messageWords, cost: {}, oldest: '0030-approval-plans' },
  '0074-approved-values': {
    ...approvedValues,
    cost: { closes: ['broadcast_recipients', 'bulk_job_batches'] },
    oldest: '0030-approval-plans',
  },
  '0075-webhook-backlogs': {
    ...webhookBacklogs,
    cost: { closes: ['webhook_endpoints'], work: { seconds: 1, of: 'webhook_deliveries' } },
    oldest: '0030-approval-plans',
    transaction: 'none',
  },
  '0076-team-lists': {
    ...teamLists,
    cost: { work: { seconds: 1, of: 'conversations' } },
    oldest: '0030-approval-plans',
    transaction: 'none',
  },
  '0077-agent-consumers': {
    ...agentConsumers,
    cost: { closes: ['event_consumers'] },
    oldest: '0030-approval-plans',
  },
  '0078-latest-message-plan': { ...latestMessagePlan, cost: {}, oldest: '0030-approval-plans' },
  '0082-key-families': { ...keyFamilies, cost: { closes: ['api_keys'] }, oldest: '0030-approval-plans' },
  '0084-approved-subjects': {
    ...approvedSubjects,
    cost: { closes: ['approvals'] },
    oldest: '0030-approval-plans',
  },
  '0085-contact-exchanges-by-look-up': {
    ...contactExchangesByLookUp,
    cost: {},
    oldest: '0030-approval-plans',
  },
} satisfies MigrationList
