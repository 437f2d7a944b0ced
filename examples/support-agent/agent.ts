// An agent that answers customers over MCP, each reply with a person's approval; see README.md.

import { setTimeout as sleep } from 'node:timers/promises'
import { answerMessage, type Desk } from './answer.ts'
import { connect } from './crm.ts'
import { read, readList, readText } from './json.ts'
import { createHttpModel, type Model } from './model.ts'
import { scripted } from './scripted.ts'
import { openStore } from './store.ts'

const readSetting = (name: string): string => {
  const value = process.env[name]
  if (!value) throw new Error(`set ${name}: README.md says where it comes from`)
  return value
}

const {
  AGENT_FILE = 'agent.sqlite',
  POLL_SECONDS = '2',
  RETRY_SECONDS = '10',
  WAIT_SECONDS = '15',
  APPROVAL_SECONDS = '3600',
  HANDOVER_STAFF_ID,
  MODEL_URL,
  MODEL_KEY,
} = process.env

const model: Model = MODEL_URL
  ? createHttpModel({ url: MODEL_URL, key: MODEL_KEY, name: readSetting('MODEL_NAME') })
  : scripted

const print = (line: Record<string, unknown>): void => console.log(JSON.stringify(line))
const report = (error: unknown): void => console.error(error instanceof Error ? error.message : error)

/** What the model may do. Whatever it is told by a customer, nothing else is within its reach. */
const TOOLS = [
  'inbox_list_messages',
  'messaging_list_quick_messages',
  'inbox_add_note',
  'inbox_tag_conversation',
  'messaging_send_reply',
]

const crm = await connect({ url: readSetting('WCRM_URL'), apiKey: readSetting('WCRM_API_KEY') })
const store = openStore(AGENT_FILE)
const me = await crm.must('workspace_whoami', {})
if (read(me, 'key', 'agent') !== true) throw new Error('the key must be an agent’s: make it with --agent')

const desk: Desk = {
  crm,
  model,
  store,
  ...(await crm.listTools(TOOLS)),
  staffId: readText(me, 'staff', 'id') ?? '',
  handoverStaffId: HANDOVER_STAFF_ID,
  approvalSeconds: Number(APPROVAL_SECONDS),
  waitSeconds: Number(WAIT_SECONDS),
  print,
}

/** Saves what customers wrote since the last time; at the first start, what they write from now on. */
const readMessages = async (): Promise<void> => {
  const after = store.readPlace()
  if (after === undefined) {
    const log = await crm.must('events_list', { after: 'now' })
    return store.addMessages(readText(log, 'next_cursor') ?? '')
  }
  const page = await crm.must('events_list', {
    ...(after === '' ? {} : { after }),
    types: ['message.received'],
    limit: 100,
  })
  const events = readList(page, 'data')
  const place = readText(page, 'next_cursor') ?? readText(events.at(-1), 'id')
  if (place === undefined) return
  store.addMessages(
    place,
    events.map((event) => ({
      messageId: readText(event, 'data', 'message', 'id') ?? '',
      conversationId: readText(event, 'data', 'message', 'conversation_id') ?? '',
    })),
  )
}

/** Settles the messages of a conversation one after the other; what fails is tried again from where it was. */
const serveConversation = async (id: string): Promise<void> => {
  try {
    for (const work of store.listOpen(id)) await answerMessage(desk, work)
  } catch (error) {
    report(error)
    await sleep(Number(RETRY_SECONDS) * 1000)
  }
}

await readMessages()
print({
  agent: readText(me, 'staff', 'name'),
  model: MODEL_URL ? process.env['MODEL_NAME'] : 'scripted stand-in',
})

// Conversations wait for their approvals side by side.
const running = new Map<string, Promise<void>>()
for (;;) {
  await readMessages().catch(report)
  for (const id of store.listOpenConversations())
    if (!running.has(id))
      running.set(
        id,
        serveConversation(id).finally(() => running.delete(id)),
      )
  await sleep(Number(POLL_SECONDS) * 1000)
}
