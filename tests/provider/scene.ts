import assert from 'node:assert/strict'
import { after, before, beforeEach } from 'node:test'
import { Problem } from '../../server/core/problem.ts'
import { createAdapter } from '../../server/provider/adapter.ts'
import { isOutcomeUnknown, type OutgoingMessage, type Provider } from '../../server/provider/port.ts'
import { type Answer, type Peer, startPeer } from '../peer.ts'
import { recorded } from './recorded.ts'

export const TOKEN = 'EAAGtoken0123456789secret'
export const from = { phoneNumberId: recorded.phone }
export const signal = new AbortController().signal
export const text: OutgoingMessage = {
  to: '16315551234',
  reference: 'msg_01J...',
  body: { type: 'text', text: { body: 'Hi' } },
}
export const small = { bytes: Buffer.from('0123456789'), contentType: 'image/png', fileName: 'small.png' }

/** The adapter, and a peer that answers it as a test says. Filled before the tests of a file begin. */
export const scene = {} as { peer: Peer; provider: Provider }

export const adapter = (more: Partial<Parameters<typeof createAdapter>[0]> = {}): Provider =>
  createAdapter({
    baseUrl: `${scene.peer.url}/base`,
    version: recorded.version,
    token: TOKEN,
    appId: '77',
    ...more,
  })

/** Once in each file that plays the adapter. */
export const setScene = (): void => {
  before(async () => {
    scene.peer = await startPeer()
    scene.provider = adapter()
  })
  after(async () => await scene.peer.close())
  beforeEach(() => {
    scene.peer.asked.length = 0
    scene.peer.answers.length = 0
  })
}

/** The peer's answers to the next requests. */
export const say = (...answers: Answer[]): void => {
  scene.peer.answers.push(...answers)
}
export const ok = (body: unknown): Answer => ({ body })
export const refusal = (
  code: unknown,
  more: Record<string, unknown> = {},
  status = 400,
  headers: Record<string, string> = {},
): Answer => ({
  status,
  headers,
  body: { error: { message: `(#${String(code)}) No`, type: 'OAuthException', code, ...more } },
})

export const problemOf = async (call: Promise<unknown>): Promise<Problem> => {
  const problem = await call.then(
    (value) => assert.fail(`no problem, but ${JSON.stringify(value)}`),
    (error: unknown) => error,
  )
  assert.ok(problem instanceof Problem, `not a problem: ${String(problem)}`)
  return problem
}
/** What it is to programs: code, reason, and whether the work may have been done. */
export const shown = (problem: Problem) => [problem.code, problem.extras.reason, isOutcomeUnknown(problem)]
export const send = (): Promise<unknown> => scene.provider.send(from, text, signal)
