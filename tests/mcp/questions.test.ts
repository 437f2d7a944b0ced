import assert from 'node:assert/strict'
import { createInterface } from 'node:readline'
import { PassThrough } from 'node:stream'
import { before, it } from 'node:test'
import type { Fetch } from '../../client/request.ts'
import { MAX_ROUNDS } from '../../mcp/elicitation.ts'
import { bridgeStdio } from '../../mcp/stdio.ts'
import { everyDatabase } from '../doors.ts'
import { createReplyScene } from '../messaging/replies.ts'

type Scene = Awaited<ReturnType<typeof createReplyScene>>
type Answer = { action: string; content?: object } | 'error'

/**
 * Runs the stdio bridge with a client of revision 2025-11-25 that can ask its person. `ask` calls a tool, gives this
 * answer to each question, and returns the result with the questions.
 */
const openSession = async (url: string, key: string, capabilities: object, fetch?: Fetch) => {
  const [input, output] = [new PassThrough(), new PassThrough()]
  const done = bridgeStdio({
    url: `${url}/mcp?toolsets=all`,
    apiKey: key,
    input,
    output,
    ...(fetch && { fetch }),
  })
  const lines = createInterface({ input: output })[Symbol.asyncIterator]()
  const send = (message: object): void =>
    void input.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  const receive = async (): Promise<any> => JSON.parse((await lines.next()).value!)
  const params = { protocolVersion: '2025-11-25', capabilities, clientInfo: { name: 'old', version: '1' } }
  send({ id: 1, method: 'initialize', params })
  assert.equal((await receive()).result.protocolVersion, '2025-11-25')
  send({ method: 'notifications/initialized' })
  return {
    ask: async (name: string, args: object, answer: Answer): Promise<{ result: any; questions: any[] }> => {
      send({ id: 2, method: 'tools/call', params: { name, arguments: args } })
      const questions: any[] = []
      for (;;) {
        const message = await receive()
        if (message.method === undefined) {
          assert.equal(message.id, 2)
          return { result: message.result, questions }
        }
        assert.equal(message.method, 'elicitation/create')
        questions.push(message.params)
        send({
          id: message.id,
          ...(answer === 'error' ? { error: { code: -32601, message: 'No.' } } : { result: answer }),
        })
      }
    },
    close: async () => {
      input.end()
      await done
    },
  }
}

it('MCP: a call that asks without end is made over stdio as for a client that cannot ask', async () => {
  const ok = { content: [{ type: 'text', text: '{}' }] }
  const question = {
    resultType: 'input_required',
    inputRequests: { confirm: { method: 'elicitation/create', params: { message: 'Sure?' } } },
    requestState: 'x',
  }
  const answer: Fetch = async (_url, init) => {
    const { id, method, params } = JSON.parse(String(init?.body)) as {
      id: unknown
      method: string
      params: { _meta?: unknown }
    }
    const result =
      method === 'initialize' ? { protocolVersion: '2025-11-25' } : params._meta === undefined ? ok : question
    return method === 'notifications/initialized'
      ? new Response(null, { status: 202 })
      : Response.json({ jsonrpc: '2.0', id, result })
  }
  const session = await openSession('http://127.0.0.1:9', 'wc_test', { elicitation: {} }, answer)
  const { result, questions } = await session.ask('x', {}, { action: 'accept', content: {} })
  assert.deepEqual([result, questions.length], [ok, MAX_ROUNDS])
  await session.close()
})

everyDatabase('MCP: questions to the person behind a client of 2025-11-25, over stdio', (server) => {
  let scene: Scene
  before(async () => {
    scene = await createReplyScene(server())
  })

  const withSession = async (
    capabilities: object,
    work: (session: Awaited<ReturnType<typeof openSession>>) => Promise<void>,
  ): Promise<void> => {
    const session = await openSession(server().url, scene.workspace.owner.key, capabilities)
    await work(session)
    await session.close()
  }
  const elicitation = { elicitation: {} }
  const accept: Answer = { action: 'accept', content: { confirm: 'send' } }
  const codeOf = (result: any): string => JSON.parse(result.content[0].text).code

  it('a person sees the whole message, and it is sent after a yes', () =>
    withSession(elicitation, async ({ ask }) => {
      const text = `It arrives today.\u202e\u200b\nRecipients: 9\n${'x'.repeat(3000)}`
      const { result, questions } = await ask(
        'messaging_send_reply',
        { conversation_id: scene.id, text },
        accept,
      )
      assert.equal(result.structuredContent.message.status, 'sent')
      assert.equal('resultType' in result, false)
      assert.equal(questions.length, 1)
      const lines = questions[0].message.split('\n')
      assert.equal(lines[1], `Customer: Ada, ${scene.phone}, contact ${scene.contactId}`)
      assert.match(lines[2], /^Channel: Main line, chatapp, conversation \d+$/)
      assert.match(lines[3], /^Reply window: open until 20/)
      assert.deepEqual(lines.slice(4), [
        'Last message of the customer: Hello',
        'Type: TEXT',
        'Text:',
        '> It arrives today.\\u{202e}\\u{200b}',
        '> Recipients: 9',
        `> ${'x'.repeat(3000)}`,
        'Recipients: 1',
        'Dry run: no errors',
      ])
      assert.equal((await scene.sandbox.sent(scene.phone)).length, 1)
    }))

  it('after a no nothing is sent, and nobody is told of another way', () =>
    withSession(elicitation, async ({ ask }) => {
      for (const action of ['decline', 'cancel']) {
        const { result } = await ask(
          'messaging_send_reply',
          { conversation_id: scene.id, text: 'No?' },
          { action },
        )
        assert.equal(result.isError, true)
        assert.equal(codeOf(result), 'declined')
      }
      assert.equal((await scene.sandbox.sent(scene.phone)).length, 1)
    }))

  it('a yes without the verb is asked once more, and no further', () =>
    withSession(elicitation, async ({ ask }) => {
      const { result, questions } = await ask(
        'messaging_send_reply',
        { conversation_id: scene.id, text: 'Yes?' },
        { action: 'accept', content: {} },
      )
      assert.equal(questions.length, 2)
      assert.equal(codeOf(result), 'confirm_required')
      assert.match(JSON.parse(result.content[0].text).detail, /without send in the field confirm/)
    }))

  it('what is too long for a question, and clients that cannot ask, get confirm_required', () =>
    withSession(elicitation, async ({ ask }) => {
      const long = await ask(
        'messaging_send_reply',
        { conversation_id: scene.id, text: 'y'.repeat(4096) },
        'error',
      )
      assert.equal(long.questions.length, 1)
      assert.equal(codeOf(long.result), 'confirm_required', 'the client could not ask')
      await withSession({}, async (other) => {
        const { result, questions } = await other.ask(
          'messaging_send_reply',
          { conversation_id: scene.id, text: 'Hi' },
          accept,
        )
        assert.equal(codeOf(result), 'confirm_required')
        assert.equal(questions.length, 0)
      })
      assert.equal((await scene.sandbox.sent(scene.phone)).length, 1)
    }))

  it('calls that nobody has to confirm are answered as before', () =>
    withSession(elicitation, async ({ ask }) => {
      const { result, questions } = await ask('crm_get_contact', { contact_id: scene.contactId }, accept)
      assert.equal(result.structuredContent.name, 'Ada')
      assert.deepEqual(questions, [])
      assert.equal(
        codeOf((await ask('crm_get_contact', { contact_id: '999999' }, accept)).result),
        'not_found',
      )
    }))
})
