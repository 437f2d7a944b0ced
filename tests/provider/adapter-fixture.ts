import { isOutcomeUnknown } from '../../server/kernel/open-outcomes.ts'
import assert from 'node:assert/strict'
import { after, before, beforeEach } from 'node:test'
import { Problem } from '../../server/kernel/problem.ts'
import { createAdapter } from '../../server/provider/adapter.ts'
import { type OutgoingMessage, type Provider } from '../../server/provider/port.ts'
import { type Answer, type Peer, startPeer } from '../peer.ts'
import { recordedIds } from './recorded-exchanges.ts'

export const TOKEN = 'EAAGtoken0123456789secret'
export const sender = { phoneNumberId: recordedIds.phone }
export const signal = new AbortController().signal
export const textMessage: OutgoingMessage = {
  to: '16315551234',
  reference: 'msg_01J...',
  body: { type: 'text', text: { body: 'Hi' } },
}
export const smallFile = { bytes: Buffer.from('0123456789'), contentType: 'image/png', fileName: 'small.png' }

/** An adapter and the HTTP peer that it calls. Set before the tests of a file run. */
export const fixture = {} as { peer: Peer; provider: Provider }

export const createTestAdapter = (options: Partial<Parameters<typeof createAdapter>[0]> = {}): Provider =>
  createAdapter({
    baseUrl: `${fixture.peer.url}/base`,
    version: recordedIds.version,
    token: TOKEN,
    appId: '77',
    ...options,
  })

/** Sets up `fixture`. Call it once at the top of a test file. */
export const useAdapterFixture = (): void => {
  before(async () => {
    fixture.peer = await startPeer()
    fixture.provider = createTestAdapter()
  })
  after(async () => await fixture.peer.close())
  beforeEach(() => {
    fixture.peer.asked.length = 0
    fixture.peer.answers.length = 0
  })
}

/** Sets the peer's responses to the next requests, one each. */
export const queueAnswers = (...answers: Answer[]): void => {
  fixture.peer.answers.push(...answers)
}
export const okAnswer = (body: unknown): Answer => ({ body })
/** Returns an error in the format of the provider. */
export const errorAnswer = (
  code: unknown,
  fields: Record<string, unknown> = {},
  status = 400,
  headers: Record<string, string> = {},
): Answer => ({
  status,
  headers,
  body: { error: { message: `(#${String(code)}) No`, type: 'OAuthException', code, ...fields } },
})

/** Awaits a call that must throw a problem. Returns the problem. */
export const captureProblem = async (call: Promise<unknown>): Promise<Problem> => {
  const problem = await call.then(
    (value) => assert.fail(`no problem, but ${JSON.stringify(value)}`),
    (error: unknown) => error,
  )
  assert.ok(problem instanceof Problem, `not a problem: ${String(problem)}`)
  return problem
}
/** Returns the code, the reason, and whether the outcome of the call is unknown. */
export const summarizeProblem = (problem: Problem) => [
  problem.code,
  problem.extras.reason,
  isOutcomeUnknown(problem),
]
export const sendText = (): Promise<unknown> => fixture.provider.send(sender, textMessage, signal)
