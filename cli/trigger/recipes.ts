import { randomInt, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { EventTypeId } from '../../catalog/events.ts'
import { cliError } from '../error.ts'
import type { SandboxClient } from '../sandbox/verbs.ts'

/** What recipes work with. */
export type TriggerContext = {
  /** Makes a call of an operation, changes under a new key; gives its answer. */
  readonly call: (operation: string, input: object, confirm?: string) => Promise<Record<string, any>>
  readonly sandbox: SandboxClient
}

/** How an event is made for real on a server that plays the sandbox. */
type Recipe = { readonly how: string; readonly make: (context: TriggerContext) => Promise<void> }

const APPEAR_MS = 15_000
const POLL_MS = 200

/** Tries until there is something; what the sandbox sends arrives by a webhook, within a second. */
export const waitFor = async <T>(what: string, find: () => Promise<T | undefined>): Promise<T> => {
  const deadline = performance.now() + APPEAR_MS
  for (;;) {
    const found = await find()
    if (found !== undefined) return found
    if (performance.now() > deadline)
      throw cliError(8, {
        type: 'about:blank',
        title: 'Nothing arrived',
        status: 504,
        code: 'timeout',
        detail: `There was no ${what} within ${APPEAR_MS / 1000} seconds.`,
      })
    await sleep(POLL_MS)
  }
}

type Conversation = { id: string; contact: { id: string }; last_message: { id: string } }
type Scene = { phone: string; conversation: Conversation }

/** A number of the fictional range of each of 600 areas, which no customer has: a new contact each time. */
const inventPhone = (): string => `+1${randomInt(2, 10)}${randomInt(10, 99)}55501${randomInt(10, 99)}`

/** Has a customer write, and finds the conversation. */
const writeAsCustomer = async ({ call, sandbox }: TriggerContext): Promise<Scene> => {
  const phone = inventPhone()
  const text = `Is my order ${randomInt(1000, 10_000)} on its way?`
  await sandbox('POST', 'say', { from: phone, name: 'Wanda Trigger', text })
  const conversation = await waitFor('conversation', async () => {
    const { data } = await call('inbox_search_conversations', { query: phone, limit: 1 })
    const [found] = data as (Conversation & { last_message: { text: string } | null })[]
    return found?.last_message?.text === text ? found : undefined
  })
  return { phone, conversation }
}

const reply = async (context: TriggerContext): Promise<string> => {
  const { conversation } = await writeAsCustomer(context)
  const { message } = await context.call(
    'messaging_send_reply',
    { conversation_id: conversation.id, text: 'It is, it arrives today.' },
    'send',
  )
  return message.id as string
}

const replyThen = (status: 'delivered' | 'read' | 'failed', code?: number): Recipe => ({
  how: `a customer writes, is answered, and the message is ${status}`,
  make: async (context) => {
    await context.sandbox('POST', 'status', {
      message_id: await reply(context),
      status,
      ...(code ? { code } : {}),
    })
  },
})

/** What staff does to the conversation of a customer who has just written. */
const withConversation = (
  how: string,
  make: (context: TriggerContext, id: string, phone: string) => Promise<unknown>,
): Recipe => ({
  how: `a customer writes${how === '' ? '' : `, ${how}`}`,
  make: async (context) => {
    const { conversation, phone } = await writeAsCustomer(context)
    await make(context, conversation.id, phone)
  },
})

/** What the customer, or staff, does to the message or the contact. */
const withMessage = (how: string, path: string, input: object): Recipe => ({
  how: `a customer writes and ${how}`,
  make: async (context) => {
    const { conversation } = await writeAsCustomer(context)
    await context.sandbox('POST', path, { message_id: conversation.last_message.id, ...input })
  },
})

const withContact = (
  how: string,
  make: (context: TriggerContext, id: string, phone: string) => Promise<unknown>,
) => ({
  how: `a contact is made${how === '' ? '' : `, ${how}`}`,
  make: async (context: TriggerContext): Promise<void> => {
    const phone = inventPhone()
    const { id } = await context.call('crm_upsert_contact', { phone, name: 'Wanda Trigger' })
    await make(context, id as string, phone)
  },
})

const submitTemplate = async ({ call }: TriggerContext): Promise<string> => {
  const template = {
    name: `trigger_${randomUUID().slice(0, 8)}`,
    language: 'en_US',
    category: 'UTILITY',
    body: { text: 'Hello {{1}}, your order is on its way.', examples: ['Ada'] },
  }
  return (await call('messaging_create_template', { template }, 'submit'))['id'] as string
}

const close = ({ call }: TriggerContext, id: string) =>
  call('inbox_close_conversation', { conversation_id: id, reason: 'Delivered' })

const assignToMe = async ({ call }: TriggerContext, id: string): Promise<void> => {
  const { staff } = await call('workspace_whoami', {})
  await call('inbox_assign_conversation', { conversation_id: id, staff_id: staff.id })
}

const nothing = async (): Promise<void> => {}

/** Events that can be made for real. All others are sent to an endpoint as a test. */
export const recipes: Readonly<Partial<Record<EventTypeId, Recipe>>> = {
  'contact.created/1': withContact('', nothing),
  'contact.updated/1': withContact('and gets another name', ({ call }, _, phone) =>
    call('crm_upsert_contact', { phone, name: 'Wanda Trigger-Smith' }),
  ),
  'contact.deleted/1': withContact('and deleted', ({ call }, id) =>
    call('crm_delete_contact', { contact_id: id }, 'delete'),
  ),
  'contact.tags_added/1': withContact('and gets the tag trigger', ({ call }, id) =>
    call('crm_tag_contacts', { contact_ids: [id], tags: ['trigger'] }),
  ),
  'conversation.created/1': withConversation('', nothing),
  'conversation.assigned/1': withConversation('and you take the conversation', assignToMe),
  'conversation.unassigned/1': withConversation(
    'you take the conversation and give it back',
    async (k, id) => {
      await assignToMe(k, id)
      await k.call('inbox_unassign_conversation', { conversation_id: id })
    },
  ),
  'conversation.closed/1': withConversation('and the conversation is closed', close),
  'conversation.reopened/1': withConversation(
    'the conversation is closed, and they write again',
    async (k, id, phone) => {
      await close(k, id)
      await k.sandbox('POST', 'say', { from: phone, text: 'And when?' })
    },
  ),
  'message.received/1': withConversation('', nothing),
  'message.sent/1': {
    how: 'a customer writes and is answered',
    make: async (context) => void (await reply(context)),
  },
  'message.delivered/1': replyThen('delivered'),
  'message.read/1': replyThen('read'),
  'message.failed/1': replyThen('failed', 131026),
  'conversation.reply_failed/1': replyThen('failed', 131026),
  'message.reaction_changed/1': withMessage('reacts with an emoji', 'react', { emoji: '👍' }),
  'message.edited/1': withMessage('edits the message', 'edit', { text: 'Is my order on its way now?' }),
  'message.deleted/1': withMessage('deletes the message', 'delete', {}),
  'template.submitted/1': {
    how: 'a template is submitted for review',
    make: async (context) => void (await submitTemplate(context)),
  },
  'template.status_changed/1': {
    how: 'a template is submitted and approved',
    make: async (context) => {
      const id = await submitTemplate(context)
      await context.sandbox('POST', 'review', { template_id: id, decision: 'approve' })
    },
  },
}
