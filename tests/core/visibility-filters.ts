import { HIDDEN_ID, HIDDEN_KEYS, type TwinWorld } from './visibility-world.ts'

/** An id that no twin has. */
export const NO_ID = '999999999'

/** Filters about what may be hidden: conversations, broadcasts, activity, custom fields and phones. */
export const listFilters = ({ mainChannel, ids }: TwinWorld): Record<string, unknown>[] => {
  const times = ['2026-10-05T12:00:00.000Z', '2026-10-05T12:00:30.000Z']
  const activity = [
    ...['gt', 'gte', 'lt', 'lte', 'eq', 'ne'].map((op) => ({ [op]: times[1] })),
    { between: times },
    { isNull: true },
    { isNull: false },
  ]
  return [
    ...activity.map((test) => ({ lastActivityAt: test })),
    { not: { lastActivityAt: { lt: times[1] } } },
    ...(['some', 'none'] as const).flatMap((quantifier) => [
      ...[
        {},
        { state: { eq: 'open' } },
        { unreadCount: { gte: 5 } },
        { channelId: { eq: HIDDEN_ID } },
        { channelId: { notIn: [mainChannel] } },
        { channelId: { isNull: false } },
        { lastActivityAt: { gt: times[0] } },
        { assignedStaffId: { isNull: false } },
      ].map((record) => ({ conversations: { [quantifier]: record } })),
      ...[
        {},
        { id: { eq: HIDDEN_ID } },
        { id: { notIn: [NO_ID] } },
        { message_status: { eq: 'sent' } },
        { message_status: { eq: 'not_responded' } },
        { sentAt: { isNull: false } },
      ].map((record) => ({ broadcasts: { [quantifier]: record } })),
    ]),
    ...[...HIDDEN_KEYS, 'secret_level', 'secret'].map((key) => ({
      attributes: { some: { attributeName: { eq: key }, stringValue: { eq: 'gold' } } },
    })),
    { email: { contains: 'example' } },
    { phoneNumber: { startsWith: '1555' } },
    { chatappUserId: { contains: '1555' } },
    { country: { eq: 'US' } },
    { consents: { some: { purpose: { eq: 'research' }, state: { eq: 'granted' } } } },
    { attributes: { some: { attributeName: { eq: 'mobile' }, stringValue: { contains: '1' } } } },
    { name: { contains: 'e' } },
    { updatedAt: { gte: times[0] } },
    ...times.flatMap((at) => [{ lastInboundAt: { gte: at } }, { lastOutboundAt: { lt: at } }]),
    { neverAnswered: { eq: true } },
    ...ids['saved_filters']!.map((id) => ({ savedFilter: { eq: id } })),
    { or: [{ conversations: { some: { unreadCount: { gt: 6 } } } }, { broadcasts: { none: {} } }] },
  ]
}

/** Conversations that both twins have, hidden ones, and those of filters. */
export const listConversationTargets = (world: TwinWorld): Record<string, unknown>[] => [
  { conversation_ids: [...world.ids['conversations']!, HIDDEN_ID, NO_ID] },
  { filter: {}, all: true },
  { filter: { query: 'zebra' } },
  { filter: { query: '1555' } },
  { filter: { channel_id: HIDDEN_ID } },
  { filter: { state: 'open', assigned: false } },
  ...listFilters(world).map((contact) => ({ filter: { contact } })),
]
