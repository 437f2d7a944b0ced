import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { z } from 'zod'
import { defineOperation } from '../../catalog/index.ts'
import type { ExternalHandler } from '../../server/core/handler.ts'
import { Problem } from '../../server/core/problem.ts'

/** A third party that makes things by name, takes no idempotency key, and misbehaves as it is told. */
type Fate = 'make' | 'make and drop' | 'drop' | 'refuse' | 'throttle' | 'make and wait'
export type ProviderScript = {
  url: string
  /** What becomes of the next calls, one each; 'make' when none is said. */
  fates: Fate[]
  /** Names asked to be made, in order, and names looked up. */
  made: string[]
  looked: string[]
  /** Resolves when a call waits; `release` lets it go on. */
  waiting: () => Promise<void>
  release: () => void
  close: () => Promise<void>
}

export const startProvider = async (): Promise<ProviderScript> => {
  const things = new Map<string, number>()
  const fates: Fate[] = []
  const made: string[] = []
  const looked: string[] = []
  let arrived = Promise.withResolvers<void>()
  let released = Promise.withResolvers<void>()
  const server: Server = createServer((request, response) => {
    const name = decodeURIComponent(request.url!.slice(1))
    const answer = (status: number, body: unknown) =>
      response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
    if (request.method === 'GET') {
      looked.push(name)
      return answer(200, { id: things.get(name) ?? null })
    }
    made.push(name)
    const fate = fates.shift() ?? 'make'
    if (fate === 'refuse') return answer(422, { message: 'no' })
    if (fate === 'throttle') return answer(429, { message: 'later' })
    if (fate !== 'drop') things.set(name, things.size + 1)
    if (fate === 'drop' || fate === 'make and drop') return request.socket.destroy()
    if (fate === 'make') return answer(201, { id: things.get(name) })
    arrived.resolve()
    return void released.promise.then(() => answer(201, { id: things.get(name) }))
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    fates,
    made,
    looked,
    waiting: () => arrived.promise,
    release: () => {
      released.resolve()
      arrived = Promise.withResolvers<void>()
      released = Promise.withResolvers<void>()
    },
    close: async () => {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
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
  scope: 'messaging:write',
  dryRun: true,
  idempotency: 'optional',
  repeatable: false,
  emits: ['group.created/1'],
  input: z.object({ name: z.string() }),
  output: z.object({ id: z.string().nullable(), name: z.string() }),
  errors: ['conflict', 'upstream_error'],
  examples: [],
})

type Intent = { name: string }
type Result = { id: number | null }

/** An operation in three parts that makes things at this provider, as those of the product do. */
export const thingMaker = (provider: ProviderScript) => {
  const ask = async (method: string, name: string, signal: AbortSignal): Promise<Result> => {
    const response = await fetch(`${provider.url}/${encodeURIComponent(name)}`, { method, signal })
    if (response.status === 429) throw new Problem('upstream_unavailable', 'Later.', { reason: 'throttled' })
    if (!response.ok) throw new Problem('upstream_error', 'The provider refused.')
    return (await response.json()) as Result
  }
  const handler: ExternalHandler<{ name: string }, unknown, Intent, Result> = {
    prepare: async (_, { name }) => {
      if (name === 'taken') throw new Problem('conflict', 'Taken.', { reason: 'duplicate' })
      return { name }
    },
    call: async ({ name }, { again, signal }) => {
      const there = again ? await ask('GET', name, signal) : { id: null }
      return there.id === null ? await ask('POST', name, signal) : there
    },
    complete: async (ctx, { name }, { id }) => {
      ctx.emit('group.created/1', { group: { id: String(id ?? 1), name, emoji: null } })
      return { id: id === null ? null : String(id), name }
    },
    dryRunResult: () => ({ id: null }),
  }
  return [{ operation: makeThing, handler: handler as never }]
}
