import { sql } from 'kysely'
import {
  allOf,
  anyOf,
  exactTest,
  idTest,
  numberTest,
  type Sql,
  timeTest,
  toTextArray,
  TRUE,
} from './comparisons.ts'
import type {
  BroadcastCondition,
  ConsentCondition,
  ConversationCondition,
  ExchangeCondition,
} from './filter.ts'

/* SQL for conditions on a related row `r`. */

export const conversationTest = (condition: ConversationCondition): Sql => {
  switch (condition.field) {
    case 'state':
      return exactTest(sql`r.state`, condition.test)
    case 'channelId':
      return idTest(sql`r.channel_id`, condition.test)
    case 'assignedStaffId':
      return idTest(sql`r.assigned_staff_id`, condition.test)
    case 'assignedTeamId':
      return idTest(sql`r.assigned_team_id`, condition.test)
    case 'createdAt':
      return timeTest(sql`r.created_at`, condition.test)
    case 'lastActivityAt':
      return timeTest(sql`r.last_activity_at`, condition.test)
    case 'unreadCount':
      return numberTest(sql`r.unread_count`, condition.test)
    // The condition of the index `conversations_waiting`.
    case 'awaitingReply':
      return sql`(r.state = 'open' and r.reply_status = 'incoming_no_reply')`
  }
}

/** `table`: that of the row. */
export const exchangeTest = (condition: ExchangeCondition): Sql => {
  switch (condition.field) {
    case 'lastInboundAt':
      return timeTest(sql`r.last_inbound_at`, condition.test)
    case 'lastOutboundAt':
      return timeTest(sql`r.last_outbound_at`, condition.test)
    case 'channelId':
      return idTest(sql`r.channel_id`, condition.test)
    // The conversation that the customer wrote in first is among those of the index `contact_exchanges_unanswered`.
    case 'neverAnswered': {
      const { channels } = condition
      return allOf([
        sql`r.first_inbound_at > coalesce(r.last_answer_at, '-infinity'::timestamptz)`,
        sql`(select min(o.first_inbound_at) > coalesce(max(o.last_answer_at), '-infinity') from contact_exchanges o
          where o.workspace_id = r.workspace_id and o.contact_id = r.contact_id
            and ${channels === null ? TRUE : idTest(sql`o.channel_id`, { op: 'in', values: channels })})`,
      ])
    }
  }
}

/** The later of what was said of a type of channel and of all holds, so that the other row is out of force. */
export const consentTest = (condition: ConsentCondition): Sql => {
  if (condition.field === 'purpose') return sql`r.purpose = ${condition.test.value}`
  if (condition.field === 'state') return exactTest(sql`r.state`, condition.test)
  const channels = toTextArray(['all', condition.test.value])
  return sql`(r.channel = any(${channels}) and not exists (
    select 1 from consents o
    where o.workspace_id = r.workspace_id and o.contact_id = r.contact_id and o.purpose = r.purpose
      and o.channel = any(${channels}) and (o.at, o.change_id) > (r.at, r.change_id)))`
}

export const broadcastTest = (condition: BroadcastCondition): Sql => {
  if (condition.field === 'id') return idTest(sql`r.broadcast_id`, condition.test)
  if (condition.field === 'channelId')
    return sql`exists (
      select 1 from broadcasts b
      where b.workspace_id = r.workspace_id and b.id = r.broadcast_id
        and ${idTest(sql`b.channel_id`, condition.test)})`
  if (condition.field === 'sentAt') return timeTest(sql`r.sent_at`, condition.test)
  const { test } = condition
  const words = 'values' in test ? test.values : [test.value]
  const states = words.filter((word) => word !== 'responded' && word !== 'not_responded')
  const holds = anyOf([
    ...(states.length > 0
      ? [states.length === 1 ? sql`r.status = ${states[0]}` : sql`r.status = any(${toTextArray(states)})`]
      : []),
    ...(words.includes('responded') ? [sql`r.responded`] : []),
    ...(words.includes('not_responded') ? [sql`not r.responded`] : []),
  ])
  return test.op === 'eq' || test.op === 'in' ? holds : sql`not ${holds}`
}
