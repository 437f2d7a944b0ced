import assert from 'node:assert/strict'
import { type Agent, connectAgent, type Cost, type Era, type Mode } from './agent.ts'
import { startWorld, type World } from './world.ts'

/*
 * A short day of an assistant at the inbox: it lists who waits, answers, sends templates where the window is closed,
 * hands over one customer, closes one conversation, and reads the figures of the day before and the approvals.
 */

export type DayResult = Cost & { mode: Mode; era: Era }

/** What a day may cost. */
export const dayBudget = { calls: 20, tokens: 6000 }

/** Three customers of its own for each day, so that every day finds the same work. */
const nameCustomers = (day: number) => {
  const customer = (first: string, n: number) => ({
    name: `${first} Day ${day}`,
    phone: `+155501020${day}${n}`,
  })
  return { order: customer('Olga', 0), thanks: customer('Theo', 1), invoice: customer('Irma', 2) }
}

const writeAsCustomers = async ({ sandbox }: World, day: number): Promise<void> => {
  const { order, thanks, invoice } = nameCustomers(day)
  const texts = [
    [order, 'Good morning, where is my order 20711?'],
    [thanks, 'It arrived, thank you!'],
    [invoice, 'The invoice of last month is wrong: the VAT is missing.'],
  ] as const
  for (const [{ phone, name }, text] of texts) await sandbox('POST', 'say', { from: phone, name, text })
}

/** Answers, hands over and closes. */
const workOnInbox = async (agent: Agent, day: number): Promise<void> => {
  const { order, thanks, invoice } = nameCustomers(day)
  await agent.learn(
    'inbox',
    'inbox_queue',
    'inbox_list_messages',
    'inbox_assign_conversation',
    'inbox_tag_conversation',
    'inbox_close_conversation',
    'inbox_add_note',
  )
  const queue = await agent.call('inbox_queue')
  const find = ({ name }: { name: string }) => queue.data.find(({ contact }: any) => contact.name === name)
  const late = queue.data.filter((row: any) => row.template_ids?.length > 0).slice(0, 2)
  assert.equal(late.length, 2)

  const read = await agent.call('inbox_list_messages', { conversation_id: find(order).id, limit: 5 })
  assert.match(read.data[0].text, /order 20711/)
  await agent.learn('send a reply or a template', 'messaging_send_reply', 'messaging_send_template')
  await agent.call('messaging_send_reply', {
    conversation_id: find(order).id,
    text: 'Good morning Olga, it left us on Saturday and should be with you today.',
  })
  for (const {
    contact,
    template_ids: [templateId],
  } of late) {
    const { example } = queue.templates.find(({ id }: any) => id === templateId)
    const template = { ...example, ...(example.body ? { body: [contact.name] } : {}) }
    await agent.call('messaging_send_template', { contact_id: contact.id, template })
  }

  await agent.call('inbox_close_conversation', { conversation_id: find(thanks).id, reason: 'Said thanks' })
  await agent.learn('staff and figures', 'workspace_list_staff', 'reports_workspace_summary')
  const staff = await agent.call('workspace_list_staff')
  const lena = staff.data.find(({ name }: any) => name === 'Lena Kowalska')
  const conversation_id = find(invoice).id
  await agent.call('inbox_assign_conversation', { conversation_id, staff_id: lena.id })
  await agent.call('inbox_tag_conversation', { conversation_id, add: ['invoice'] })
  await agent.call('inbox_add_note', {
    conversation_id,
    text: 'The VAT is missing on the invoice of October.',
  })
}

const checkDay = async ({ owner }: World, day: number): Promise<void> => {
  const { order, thanks, invoice } = nameCustomers(day)
  const read = async ({ name }: { name: string }) =>
    (await owner('inbox_search_conversations', { query: name })).data[0]
  assert.match((await read(order)).last_message.text, /left us on Saturday/)
  assert.equal((await read(thanks)).state, 'closed')
  const handed = await read(invoice)
  assert.deepEqual(
    [handed.assignee.name, handed.tags.map(({ name }: any) => name)],
    ['Lena Kowalska', ['invoice']],
  )
}

/** Runs the day in one mode and protocol revision; throws when anything is wrong. */
const runSupportDay = async (
  world: World,
  { mode, era, day }: { mode: Mode; era: Era; day: number },
): Promise<DayResult> => {
  await writeAsCustomers(world, day)
  const agent = await connectAgent({
    url: world.server.url,
    key: world.agentKey({ phones: false }),
    mode,
    era,
    task: 'Work through the inbox. Hand invoices to Lena Kowalska. Tell me the figures of yesterday.',
    afterCall: world.afterCall,
  })
  await workOnInbox(agent, day)
  const { conversations } = await agent.call('reports_workspace_summary', { preset: 'yesterday' })
  assert.equal(typeof conversations.closes, 'number')
  await agent.learn('what became of calls that a person approves', 'approvals_list')
  const { data } = await agent.call('approvals_list', { limit: 3 })
  assert.deepEqual(
    data.map(({ status }: any) => status),
    ['done', 'done', 'done'],
  )
  await checkDay(world, day)
  return { mode, era, ...agent.cost }
}

/** Runs the day in both modes and both revisions, one after the other in a new demo workspace. */
export const runSupportDays = async (): Promise<DayResult[]> => {
  const world = await startWorld()
  try {
    const results: DayResult[] = []
    for (const mode of ['default', 'compact'] as const)
      for (const era of ['2026-07-28', '2025-11-25'] as const)
        results.push(await runSupportDay(world, { mode, era, day: results.length }))
    return results
  } finally {
    await world.close()
  }
}

/** The table as Markdown. */
export const formatDays = (days: readonly DayResult[]): string =>
  [
    '| support day | protocol | calls | errors | tokens |',
    '|---|---|---:|---:|---:|',
    ...days.map(
      ({ mode, era, calls, errors, tokens }) => `| ${mode} | ${era} | ${calls} | ${errors} | ${tokens} |`,
    ),
  ].join('\n')
