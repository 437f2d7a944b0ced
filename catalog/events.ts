import { z } from 'zod'
import { contentFields } from './message-content.ts'
import { untrusted } from './text.ts'
import { mark } from './marks.ts'
import { ChannelHealth, HealthQuality } from './channel-health.ts'
import { consentEvents } from './consent-events.ts'
import { defineEventType } from './event-type.ts'
import { ContactPhone, Id, idOf, Timestamp } from './fields.ts'

const EventGroup = z.object({
  group: z
    .object({
      id: idOf('group').describe('Group id.'),
      name: z.string().describe('Name.'),
      emoji: z.string().nullable().describe('Emoji.'),
    })
    .describe('The group.'),
})

const group = { group: { id: '3', name: 'VIP', emoji: '⭐' } }

/** Events of groups and tags themselves. */
const labelEvents = {
  'group.created/1': defineEventType('A group was created.', EventGroup, group),
  'group.updated/1': defineEventType(
    'The name or the emoji of a group was changed.',
    EventGroup.extend({
      previous: z
        .object({
          name: z.string().describe('Name before.'),
          emoji: z.string().nullable().describe('Emoji before.'),
        })
        .describe('What it was before.'),
    }),
    { ...group, previous: { name: 'Friends', emoji: null } },
  ),
  'group.deleted/1': defineEventType('A group was deleted.', EventGroup, group),
  'tag.renamed/1': defineEventType(
    'A tag was renamed.',
    z.object({
      tag: z
        .object({
          id: Id.describe('Tag id.'),
          name: z.string().describe('Name.'),
          previous_name: z.string().describe('Name before.'),
        })
        .describe('The tag.'),
    }),
    { tag: { id: '7', name: 'Gold', previous_name: 'VIP' } },
  ),
  'tag.deleted/1': defineEventType(
    'A tag was deleted, and removed from all contacts and conversations, or merged into another one.',
    z.object({
      tag: z
        .object({
          id: Id.describe('Tag id.'),
          name: z.string().describe('Name.'),
          merged_into: Id.optional().describe('The tag that its contacts and conversations now have.'),
        })
        .describe('The tag.'),
    }),
    { tag: { id: '7', name: 'VIP' } },
  ),
} as const

const jobEvents = {
  'job.finished/1': defineEventType(
    'A job, which changes many contacts or conversations, ended: it came to all of them, failed or was cancelled.',
    z.object({
      job: z
        .object({
          id: idOf('job').describe('Job id.'),
          state: z.string().describe('`done`, `failed` or `cancelled`.'),
          operation: z.string().describe('The operation that it made.'),
          total: z.int().describe('Records that it was for.'),
          done: z.int().describe('Records that it came to.'),
          changed: z.int().describe('Records that changed.'),
          failed: z.int().describe('Records that failed.'),
          undo_of_job_id: Id.nullable().describe('The job that it undid.'),
        })
        .describe('The job.'),
    }),
    {
      job: {
        id: '1',
        state: 'done',
        operation: 'crm_tag_contacts',
        total: 2000,
        done: 2000,
        changed: 1990,
        failed: 1,
        undo_of_job_id: null,
      },
    },
  ),
} as const

const EventContact = z
  .object({
    id: idOf('contact').describe('Contact id.'),
    name: mark(z.string().nullable().describe('Name.'), { phone: 'name' }),
    phone: ContactPhone.describe('E.164 digits.'),
    external_id: z
      .string()
      .nullable()
      .optional()
      .describe('Your id of the contact; absent from events from before external ids existed.'),
    dnd: z.boolean().describe('Do-not-disturb.'),
    starred: z.boolean().describe('Starred.'),
    created_at: Timestamp.describe('When it was created.'),
    updated_at: Timestamp.describe('When it was last changed.'),
  })
  .describe('The contact.')
const contact = {
  id: '42',
  name: 'Ada Lovelace',
  phone: '15550100042',
  external_id: 'C-1042',
  dnd: false,
  starred: false,
  created_at: '2026-10-01T09:30:00.000Z',
  updated_at: '2026-10-01T09:30:00.000Z',
}

const Tags = z.object({
  contact_ids: z.array(idOf('contact')).describe('Contacts that changed, at most 500.'),
  tags: z
    .array(z.object({ id: Id.describe('Tag id.'), name: z.string().describe('Tag name.') }))
    .describe('The tags.'),
})
const tags = { contact_ids: ['42'], tags: [{ id: '7', name: 'VIP' }] }

const Groups = z.object({
  contact_ids: z.array(idOf('contact')).describe('Contacts that changed, at most 500.'),
  groups: z
    .array(z.object({ id: idOf('group').describe('Group id.'), name: z.string().describe('Group name.') }))
    .describe('The groups.'),
})
const groups = { contact_ids: ['42'], groups: [{ id: '3', name: 'VIP' }] }

/** Events of contacts, and of what was put on them. */
const contactEvents = {
  'contact.created/1': defineEventType(
    'A contact was created, or came back from a merge that was undone.',
    z.object({ contact: EventContact }),
    {
      contact,
    },
  ),
  'contact.updated/1': defineEventType(
    'Fields of a contact changed.',
    z.object({
      contact: EventContact,
      changes: z
        .array(z.string())
        .describe('Names of the fields that changed; `attributes.<key>` for custom fields.'),
    }),
    { contact, changes: ['name', 'attributes.plan'] },
  ),
  'contact.deleted/1': defineEventType(
    'A contact was deleted, or merged into another one.',
    z.object({
      contact: z
        .object({
          id: idOf('contact').describe('Contact id.'),
          merged_into: idOf('contact')
            .optional()
            .describe('The contact that now has its conversations, tags and values.'),
          reason: z
            .enum(['same_customer', 'request'])
            .optional()
            .describe(
              'Why it was merged: the provider reported both as one customer, or by request ' +
                '(`crm_merge_contacts`).',
            ),
        })
        .describe('The deleted contact.'),
    }),
    { contact: { id: '42' } },
  ),
  'contact.erased/1': defineEventType(
    'A person was erased: erase your copies too. `contact.deleted/1` comes with it.',
    z.object({ contact: z.object({ id: idOf('contact').describe('Contact id.') }).describe('The contact.') }),
    { contact: { id: '42' } },
  ),
  'contact.tags_added/1': defineEventType('Tags were added to contacts.', Tags, tags),
  'contact.tags_removed/1': defineEventType('Tags were removed from contacts.', Tags, tags),
  'contact.groups_added/1': defineEventType('Contacts were added to groups.', Groups, groups),
  'contact.groups_removed/1': defineEventType('Contacts were removed from groups.', Groups, groups),
}

/** What events tell of a call that a person decides: nothing of the call itself. */
const EventApproval = z.object({
  approval: z
    .object({
      id: idOf('approval').describe('Approval id.'),
      status: z.string().describe('`pending`, `approved`, `declined`, `expired` or `cancelled`.'),
      operation: z.string().describe('The operation.'),
      staff_id: Id.describe('Staff member of the key that asks.'),
      key_id: Id.describe('The key that asks.'),
      channel_ids: z.array(Id).describe('Channels that the call is about.'),
      expires_at: Timestamp.describe('Until when it can be decided.'),
    })
    .describe('The request.'),
})
const approvalSample = {
  approval: {
    id: '12',
    status: 'pending',
    operation: 'messaging_send_reply',
    staff_id: '5',
    key_id: '9',
    channel_ids: ['1'],
    expires_at: '2026-10-02T09:30:00.000Z',
  },
}

/** What a person needs to decide, as the key that asks may see it. */
const EventRequest = z.object({
  approval: EventApproval.shape.approval
    .extend({
      reason: untrusted(z.string().nullable().describe('Why, in the words of the agent.')),
      asked_for: z.array(z.string()).describe('Why approval is needed, as `approvals_get` says it.'),
      contact_id: idOf('contact').nullable().describe('The customer; null if there is none or several.'),
      summary: untrusted(
        z
          .array(z.string())
          .optional()
          .describe(
            'What is to be approved, a line each, as `approvals_get` shows it to the key that asks; at most 16,000 ' +
              'characters. Absent in the event log for staff who do not see all channels.',
          ),
        { phone: 'text' },
      ),
      url: z.string().nullable().describe('The page on which a person decides; null as `approval_url`.'),
    })
    .describe('The request.'),
})
const requestSample = {
  approval: {
    ...approvalSample.approval,
    reason: 'She asked twice.',
    asked_for: ['verb'],
    contact_id: '42',
    summary: [
      'Send a free-form reply while the reply window is open',
      'Text: It arrives today.',
      'Recipients: 1',
    ],
    url: 'https://crm.example.com/approvals/12',
  },
}

const EventDecision = EventApproval.extend({
  decided_by: z
    .object({ staff_id: Id.describe('Staff id.'), name: z.string().describe('Name.') })
    .nullable()
    .describe('Who decided; null when nobody did.'),
})
const decisionSample = {
  approval: { ...approvalSample.approval, status: 'approved' },
  decided_by: { staff_id: '1', name: 'Olivia Owner' },
}

/*
 * Every event type the service writes: what it means, the shape of its `data`, and a sample (docs/events.md).
 * An event is written in the transaction of the change that caused it. Phones are unmasked here; they are
 * masked for each reader when the event is shown.
 */

const EventConversation = z
  .object({
    id: idOf('conversation').describe('Conversation id.'),
    state: z.string().describe('`open` or `closed`.'),
    contact_id: idOf('contact').nullable().describe('Contact; null when it was deleted.'),
    channel_id: Id.nullable().describe('Channel.'),
    assignee_staff_id: Id.nullable().describe('Staff member it is assigned to.'),
    team_id: Id.nullable().describe('Team it is assigned to.'),
    episode: z
      .int()
      .describe(
        '1, plus one for each time it was reopened. 0: not opened yet, it has only notices of the provider.',
      ),
  })
  .describe('The conversation.')
const Conversation = z.object({ conversation: EventConversation })
const conversation = {
  conversation: {
    id: '381',
    state: 'open',
    contact_id: '42',
    channel_id: '1',
    assignee_staff_id: '5',
    team_id: null,
    episode: 1,
  },
}

const EventMessage = z
  .object({
    id: idOf('message').describe('Message id.'),
    conversation_id: idOf('conversation').describe('Conversation.'),
    contact_id: idOf('contact').nullable().describe('Contact; null when it was deleted.'),
    channel_id: Id.nullable().describe('Channel.'),
    type: z.string().describe('Message type, such as `TEXT`.'),
    direction: z.string().describe('`inbound` or `outbound`.'),
    status: z.string().describe('Delivery status.'),
    text: mark(z.string().nullable().describe('Text or caption.'), { phone: 'message' }),
    ...contentFields,
    has_media: z.boolean().describe('True: it has a file.'),
    reply_to_id: Id.nullable().describe('The message it replies to.'),
    external_id: z
      .string()
      .nullable()
      .optional()
      .describe('Your id of a message that you sent; absent from events from before external ids existed.'),
    error: mark(z.string().nullable().describe('Why it failed.'), { phone: 'text' }),
    created_at: Timestamp.describe('When it was written.'),
  })
  .describe('The message.')
const Message = z.object({ message: EventMessage })
const received = {
  id: '1657',
  conversation_id: '381',
  contact_id: '42',
  channel_id: '1',
  type: 'TEXT',
  direction: 'inbound',
  status: 'received',
  text: 'Is my order on its way?',
  content: null,
  has_media: false,
  reply_to_id: null,
  external_id: null,
  error: null,
  created_at: '2026-10-01T09:30:00.000Z',
}
const outbound = { ...received, id: '1660', direction: 'outbound', text: 'It is, it arrives today.' }

const EventTemplate = z.object({
  template: z
    .object({
      id: idOf('template').describe('Template id.'),
      name: z.string().describe('Name.'),
      language: z.string().describe('Language.'),
      category: z.string().nullable().describe('Category.'),
      status: z.string().describe('Review status.'),
    })
    .describe('The template.'),
})
const template = { id: '11', name: 'order_update', language: 'en_US', category: 'UTILITY', status: 'PENDING' }

const EventShortLink = z.object({
  short_link: z
    .object({
      id: idOf('short_link').describe('Short link id.'),
      code: z.string().describe('Code.'),
      url: z.string().describe('Address.'),
      message: z.string().describe('Text that the link prefills for the customer.'),
      channel_id: Id.describe('Channel.'),
    })
    .describe('The link.'),
})
const shortLink = {
  short_link: {
    id: '31',
    code: 'ANED2T5QRU7HG1',
    url: 'https://wcrm.example.com/message/ANED2T5QRU7HG1',
    message: 'Hello, I would like to order.',
    channel_id: '1',
  },
}

const EventEndpoint = z.object({
  endpoint: z
    .object({
      id: mark(z.string(), { idOf: 'endpoint' }).describe('Endpoint id.'),
      url: z.string().describe('Its address.'),
      consecutive_failures: z.int().describe('Attempts that failed in a row.'),
    })
    .describe('The endpoint.'),
})
const endpoint = {
  endpoint: {
    id: 'ep_01JABCDEFGHJKMNPQRSTVWXYZ0',
    url: 'https://example.com/hooks',
    consecutive_failures: 14,
  },
}

export const eventTypes = {
  ...contactEvents,
  ...consentEvents,
  ...labelEvents,
  ...jobEvents,
  'conversation.created/1': defineEventType('A conversation was created.', Conversation, conversation),
  'conversation.assigned/1': defineEventType(
    'A conversation was assigned to a staff member or a team.',
    Conversation,
    conversation,
  ),
  'conversation.unassigned/1': defineEventType('A conversation was returned to the queue.', Conversation, {
    conversation: { ...conversation.conversation, assignee_staff_id: null },
  }),
  'conversation.closed/1': defineEventType(
    'A conversation was closed.',
    Conversation.extend({ reason: z.string().nullable().describe('Why.') }),
    { conversation: { ...conversation.conversation, state: 'closed' }, reason: 'Delivered' },
  ),
  'conversation.reopened/1': defineEventType(
    'A closed conversation was reopened, by staff, by a message of the customer, or by a reply that failed.',
    Conversation,
    { conversation: { ...conversation.conversation, episode: 2 } },
  ),
  'conversation.reply_failed/1': defineEventType(
    'A reply failed after it had counted as one, so the customer waits again.',
    Conversation.extend({
      message_id: idOf('message').describe('The message that failed.'),
      waiting_since: Timestamp.describe(
        'Since when the customer waits: their first message without a reply.',
      ),
    }),
    { ...conversation, message_id: '1660', waiting_since: '2026-10-01T09:30:00.000Z' },
  ),
  'message.received/1': defineEventType('A customer sent a message.', Message, { message: received }),
  'message.sent/1': defineEventType('The provider accepted a message.', Message, {
    message: { ...outbound, status: 'sent' },
    actor: {
      staff: { id: '5', name: 'Grace' },
      key: { id: '9', name: 'Mara' },
      agent: true,
      approved_by: { id: '6', name: 'Ben' },
    },
  }),
  'message.delivered/1': defineEventType('A message reached the customer.', Message, {
    message: { ...outbound, status: 'delivered' },
  }),
  'message.read/1': defineEventType('The customer read a message.', Message, {
    message: { ...outbound, status: 'read' },
  }),
  'message.failed/1': defineEventType('A message could not be delivered.', Message, {
    message: { ...outbound, status: 'failed', error: 'The customer cannot be reached.' },
  }),
  'message.reaction_changed/1': defineEventType(
    'A customer reacted to a message with an emoji, or removed the reaction.',
    Message.extend({
      reaction: z
        .object({
          emoji: z.string().nullable().describe('The emoji; null: the reaction was removed.'),
          previous_emoji: z.string().nullable().describe('The emoji before.'),
          from: z.enum(['customer', 'staff']).describe('Who reacts.'),
          at: Timestamp.describe('When.'),
        })
        .describe('The reaction.'),
    }),
    {
      message: { ...outbound, status: 'read' },
      reaction: { emoji: '👍', previous_emoji: null, from: 'customer', at: '2026-10-01T09:31:00.000Z' },
    },
  ),
  'message.edited/1': defineEventType(
    'A customer edited a message; `message.text` is the new text.',
    Message.extend({
      previous_text: z.string().nullable().describe('Text or caption before.'),
      edited_at: Timestamp.describe('When.'),
    }),
    {
      message: { ...received, text: 'Is my order 4711 on its way?' },
      previous_text: received.text,
      edited_at: '2026-10-01T09:31:00.000Z',
    },
  ),
  'message.deleted/1': defineEventType(
    'A customer deleted a message; its text and file are gone.',
    Message.extend({ deleted_at: Timestamp.describe('When.') }),
    { message: { ...received, text: null }, deleted_at: '2026-10-01T09:31:00.000Z' },
  ),
  'template.status_changed/1': defineEventType(
    'The review status of a template changed.',
    z.object({
      template: z
        .object({
          id: idOf('template').describe('Template id.'),
          name: z.string().describe('Name.'),
          language: z.string().describe('Language.'),
          status: z.string().describe('Review status.'),
          previous_status: z.string().describe('Status before.'),
          category: z.string().nullable().describe('Category.'),
          rejection_reason: z.string().nullable().describe("The reviewer's reason, verbatim."),
        })
        .describe('The template.'),
    }),
    {
      template: {
        id: '11',
        name: 'order_update',
        language: 'en_US',
        status: 'APPROVED',
        previous_status: 'PENDING',
        category: 'UTILITY',
        rejection_reason: null,
      },
    },
  ),
  'template.submitted/1': defineEventType(
    'A template, new or changed, was submitted for review.',
    EventTemplate,
    {
      template,
    },
  ),
  'template.archived/1': defineEventType(
    'A template was archived and can no longer be sent.',
    EventTemplate,
    {
      template: { ...template, status: 'ARCHIVED' },
    },
  ),
  'short_link.created/1': defineEventType('A click-to-chat link was created.', EventShortLink, shortLink),
  'short_link.deleted/1': defineEventType('A click-to-chat link was deleted.', EventShortLink, shortLink),
  'channel.status_changed/1': defineEventType(
    'A channel was connected, disconnected, limited or restricted, or got a new rating or limit.',
    z.object({
      channel: z
        .object({
          id: Id.describe('Channel id.'),
          name: z.string().nullable().describe('Name.'),
          status: z.string().describe('Connection state.'),
          previous_status: z.string().describe('State before.'),
          quality_rating: z.string().nullable().describe('Rating by the provider.'),
          health: ChannelHealth.extend({ quality: HealthQuality })
            .optional()
            .describe('What is wrong with it at the provider.'),
        })
        .describe('The channel.'),
    }),
    {
      channel: {
        id: '1',
        name: 'Shop',
        status: 'disconnected',
        previous_status: 'connected',
        quality_rating: 'RED',
        health: {
          status: 'disconnected',
          reason: 'token_revoked',
          provider_code: 190,
          quality: 'RED',
          messaging_limit: 'TIER_1K',
          since: '2026-10-01T09:30:00.000Z',
          until: null,
        },
      },
    },
  ),
  'webhook.endpoint_warning/1': defineEventType(
    'A webhook endpoint has been failing for a long time and will be disabled.',
    EventEndpoint.extend({
      percent: z
        .int()
        .describe('How much of the time until it is disabled has passed: 50, 70 or 90 percent.'),
      disabled_after: Timestamp.describe('When it will be disabled if it keeps failing.'),
    }),
    { ...endpoint, percent: 50, disabled_after: '2026-10-06T09:30:00.000Z' },
  ),
  'webhook.endpoint_disabled/1': defineEventType(
    'A webhook endpoint was disabled.',
    EventEndpoint.extend({ reason: z.string().describe('`manual`, `gone` or `failing`.') }),
    { ...endpoint, reason: 'failing' },
  ),
  'approval.requested/1': defineEventType(
    'An AI agent asks a person for a call.',
    EventRequest,
    requestSample,
  ),
  'approval.decided/1': defineEventType(
    'A call of an AI agent was approved, declined or withdrawn, or nobody decided in time.',
    EventDecision,
    decisionSample,
  ),
} as const

export type EventTypeId = keyof typeof eventTypes
export type EventData<T extends EventTypeId> = z.input<(typeof eventTypes)[T]['data']>
