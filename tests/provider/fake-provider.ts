import type { ExternalHandler } from '../../server/handler.ts'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { z } from 'zod'
import { defineOperation } from '../../catalog/index.ts'
import { Problem } from '../../server/kernel/problem.ts'

/** What the fake provider does with a POST: `make` creates the thing, `drop` cuts the connection. */
type CallFate = 'make' | 'make and drop' | 'drop' | 'refuse' | 'throttle' | 'make and wait'
/** A third party that creates things by name, without idempotency keys, and fails on request. */
export type FakeProvider = {
  url: string
  /** The fate of the next calls, one each; `make` when the list is empty. */
  outcomes: CallFate[]
  /** Names of POST requests, in order, and names of GET requests. */
  createCalls: string[]
  lookupCalls: string[]
  /** Resolves when a call with the fate `make and wait` has arrived; `release` lets it continue. */
  waitForCall: () => Promise<void>
  release: () => void
  close: () => Promise<void>
}

export const startFakeProvider = async (): Promise<FakeProvider> => {
  const things = new Map<string, number>()
  const outcomes: CallFate[] = []
  const createCalls: string[] = []
  const lookupCalls: string[] = []
  let callArrived = Promise.withResolvers<void>()
  let callReleased = Promise.withResolvers<void>()
  const server: Server = createServer((request, response) => {
    const name = decodeURIComponent(request.url!.slice(1))
    const respond = (status: number, body: unknown) =>
      response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
    if (request.method === 'GET') {
      lookupCalls.push(name)
      return respond(200, { id: things.get(name) ?? null })
    }
    createCalls.push(name)
    const fate = outcomes.shift() ?? 'make'
    if (fate === 'refuse') return respond(422, { message: 'no' })
    if (fate === 'throttle') return respond(429, { message: 'later' })
    if (fate !== 'drop') things.set(name, things.size + 1)
    if (fate === 'drop' || fate === 'make and drop') return request.socket.destroy()
    if (fate === 'make') return respond(201, { id: things.get(name) })
    callArrived.resolve()
    return void callReleased.promise.then(() => respond(201, { id: things.get(name) }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    outcomes,
    createCalls,
    lookupCalls,
    waitForCall: () => callArrived.promise,
    release: () => {
      callReleased.resolve()
      callArrived = Promise.withResolvers<void>()
      callReleased = Promise.withResolvers<void>()
    },
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const makeThing = defineOperation({
  name: 'test_make_thing',
  cli: 'test make',
  routes: [{ route: 'POST /v1/test-things', status: 201 }],
  since: '2026-10-01',
  stability: 'stable',
  summary: 'Make a thing at the provider',
  words: 'test',
  scope: 'messaging:write',
  dryRun: true,
  idempotency: 'optional',
  effect: 'replaces',
  repeatable: false,
  emits: ['group.created/1'],
  input: z.object({ name: z.string() }),
  output: z.object({ id: z.string().nullable(), name: z.string() }),
  errors: ['conflict', 'upstream_error'],
  examples: [],
})

type Prepared = { name: string }
type CreatedThing = { id: number | null }

/** Returns an operation with an external handler that creates things at this provider. */
export const createThingOperations = (provider: FakeProvider) => {
  const request = async (method: string, name: string, signal: AbortSignal): Promise<CreatedThing> => {
    const response = await fetch(`${provider.url}/${encodeURIComponent(name)}`, { method, signal })
    if (response.status === 429) throw new Problem('upstream_unavailable', 'Later.', { reason: 'throttled' })
    if (!response.ok) throw new Problem('upstream_error', 'The provider refused.')
    return (await response.json()) as CreatedThing
  }
  const handler: ExternalHandler<{ name: string }, unknown, Prepared, CreatedThing> = {
    requireAvailable: () => {},
    prepare: async (_, { name }) => {
      if (name === 'taken') throw new Problem('conflict', 'Taken.', { reason: 'duplicate' })
      return { name }
    },
    call: async ({ name }, { signal }) => await request('POST', name, signal),
    findOutcome: async ({ name }, { signal }) => {
      const existing = await request('GET', name, signal)
      return existing.id === null ? undefined : existing
    },
    mayRepeat: true,
    complete: async (ctx, { name }, { id }) => {
      ctx.emit('group.created/1', { group: { id: String(id ?? 1), name, emoji: null } })
      return { id: id === null ? null : String(id), name }
    },
    dryRunResult: () => ({ id: null }),
  }
  return [{ operation: makeThing, handler: handler as never }]
}
