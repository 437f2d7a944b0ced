import { sql } from 'kysely'
import {
  buildCustomerMessage,
  createWamid,
  type CustomerFixture,
  toUnixSeconds,
  type WebhookPart,
} from '../provider/webhook-fixture.ts'
import { loadWorkspaceRows } from '../world.ts'

/** Messages of the provider that change other messages. */

export const ADA = '15550100042'
const START = Date.parse('2026-10-01T09:00:00.000Z')
/** Seconds after the start, as the provider writes times. */
export const at = (second: number): string => toUnixSeconds(new Date(START + second * 1000).toISOString())
export const isoAt = (second: number): string => new Date(START + second * 1000).toISOString()

export const reaction = (
  target: string,
  emoji: string | undefined,
  second: number,
  from = ADA,
): WebhookPart =>
  buildCustomerMessage(from, {
    type: 'reaction',
    reaction: { message_id: target, ...(emoji === undefined ? {} : { emoji }) },
    timestamp: at(second),
  })
export const edit = (target: string, message: WebhookPart, second: number, from = ADA): WebhookPart =>
  buildCustomerMessage(from, {
    type: 'edit',
    edit: { original_message_id: target, message: { context: { id: target }, ...message } },
    timestamp: at(second),
  })
export const textEdit = (target: string, body: string, second: number): WebhookPart =>
  edit(target, { type: 'text', text: { body } }, second)
export const deletion = (target: string, second: number, from = ADA): WebhookPart =>
  buildCustomerMessage(from, {
    type: 'revoke',
    revoke: { original_message_id: target },
    timestamp: at(second),
  })

/** Delivers messages of the customer, each in a webhook of its own. */
export const deliver = async (scene: CustomerFixture, ...messages: WebhookPart[]): Promise<void> => {
  for (const message of messages) await scene.deliver(scene.value({ messages: [message] }))
}

/** A customer whose message, at second 0, is in an open conversation. */
export const createConversation = async (
  scene: CustomerFixture,
  fields: WebhookPart = {},
): Promise<{ wamid: string; messageId: string; conversationId: string }> => {
  const wamid = createWamid()
  await deliver(scene, buildCustomerMessage(ADA, { timestamp: at(0), ...fields, id: wamid }))
  const message = (await scene.messages()).find((row) => row.provider_id === wamid)!
  return { wamid, messageId: message.id, conversationId: message.conversation_id }
}

/** What must not change: everything but the messages themselves, their reactions and files, and events. */
export const readRest = async ({ server: { db }, workspace }: CustomerFixture) => {
  const {
    messages: _m,
    message_reactions: _r,
    message_search: _s,
    media: _d,
    events: _e,
    ...rest
  } = await loadWorkspaceRows(db, workspace.id)
  return rest
}

export const makeDue = async ({ server: { db, app }, number }: CustomerFixture): Promise<void> => {
  await sql`
    update provider_updates set next_attempt_at = now()
    where state = 'waiting' and subject = ${number}`.execute(db)
  await app.jobs.job('provider-updates').runOnce()
}

export const newEvents = async (scene: CustomerFixture, before: number) =>
  (await scene.events()).slice(before)
