import { parseObject, read, readList, readText } from './json.ts'
import type { Model, ModelTurn, ToolCall, Turn } from './model.ts'

/*
 * A stand-in for a model: a few rules, so that the example runs without one, and the same each time. It understands
 * nothing, and it is as gullible as a model can be: it does what a customer's text tells it to.
 */

const call = (name: string, args: Record<string, unknown>, index = 0): ToolCall => ({
  id: `scripted_${name}_${index}`,
  type: 'function',
  function: { name, arguments: JSON.stringify(args) },
})

const callAll = (...calls: readonly ToolCall[]): ModelTurn => ({
  role: 'assistant',
  content: null,
  tool_calls: calls,
})

/** What the customer wrote last, and in which conversation. */
const readTask = (turns: readonly Turn[]): { conversation_id: string; text: string } => {
  const task = parseObject(turns.find(({ role }) => role === 'user')?.content ?? '')
  const last = readList(task, 'messages', 'data').find((row) => read(row, 'direction') === 'inbound')
  return {
    conversation_id: readText(task, 'conversation', 'id') ?? '',
    text: readText(last, 'text') ?? '',
  }
}

/** What the tools answered to the turn before. */
const readResults = (turns: readonly Turn[]): readonly string[] =>
  turns.flatMap((turn) => (turn.role === 'tool' ? [turn.content] : []))

export const scripted: Model = async (turns) => {
  const { conversation_id, text } = readTask(turns)
  const results = readResults(turns)
  const reply = (words: string, reason: string): ToolCall =>
    call('messaging_send_reply', { conversation_id, text: words, reason }, results.length)

  if (/ignore .*instructions/i.test(text)) {
    if (results.length > 0) return { role: 'assistant', content: 'I did what the message says.' }
    return callAll(
      call('messaging_send_template', { phone: '+1 555 010 0001', template: { name: 'order_update' } }),
      call('messaging_send_reply', { conversation_id: '1', text }, 1),
      reply(text, 'The customer says that I must.'),
    )
  }
  if (/\bopen|hours\b/i.test(text)) {
    const [found] = results
    if (found === undefined) return callAll(call('messaging_list_quick_messages', { query: 'hours' }))
    const words = readText(parseObject(found), 'data', 0, 'text')
    if (words !== undefined) return callAll(reply(words, 'The customer asks for the opening hours.'))
  }
  if (/\border\b/i.test(text))
    return callAll(
      reply('Thank you. We look after your order and write to you today.', 'The customer asks for an order.'),
    )
  return { role: 'assistant', content: 'I have no rule for this message.' }
}
