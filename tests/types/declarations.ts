/*
 * What must not compile. `npm run check` compiles the tests with everything else (tsconfig.json): each line
 * below an `@ts-expect-error` must be an error, and an error that is gone fails the check. No test runs this
 * file.
 */
import type { Context, Handler, Handlers, ProviderHandler } from '../../server/handler.ts'
import { z } from 'zod'
import type { EventTypeId } from '../../catalog/events.ts'
import type { OperationName } from '../../catalog/index.ts'
import { defineOperation } from '../../catalog/operation.ts'
import { handlers } from '../../server/handlers.ts'
import type { ChangeContext } from '../../server/change-context.ts'

const common = {
  cli: 'things change',
  since: '2026-10-01',
  stability: 'stable',
  summary: 'Change a thing',
  words: '',
  output: z.object({ thing_id: z.string() }),
  errors: [],
  examples: [],
} as const
const input = z.object({ thing_id: z.string(), names: z.array(z.string()) })
const read = { ...common, input, scope: 'mcp:read' } as const
const write = {
  ...common,
  input,
  scope: 'crm:write',
  dryRun: true,
  idempotency: 'optional',
  effect: 'replaces',
  repeatable: true,
  emits: [],
} as const

// Well-formed declarations compile.
defineOperation({ ...read, name: 'things_get', routes: ['GET /v1/things/{thing_id}'] })
defineOperation({
  ...write,
  name: 'things_change',
  confirm: 'delete',
  emits: ['group.created/1'],
  itemwise: 'names',
  routes: [{ route: 'POST /v1/things/{thing_id}', fields: ['names'], query: ['names'], status: 201 }],
})

// The names of fields.
// @ts-expect-error a path parameter that is not in the input
defineOperation({ ...read, name: 'things_get', routes: ['GET /v1/things/{thing}'] })
// @ts-expect-error a path parameter of a route with options that is not in the input
defineOperation({ ...write, name: 'things_change', routes: [{ route: 'POST /v1/things/{thing}' }] })
// @ts-expect-error a second path parameter that is not in the input
defineOperation({ ...read, name: 'things_get', routes: ['GET /v1/things/{thing_id}/parts/{part_id}'] })
defineOperation({
  ...write,
  name: 'things_change',
  // @ts-expect-error a field that is not in the input
  routes: [{ route: 'POST /v1/things/{thing_id}', fields: ['name'] }],
})
defineOperation({
  ...write,
  name: 'things_change',
  // @ts-expect-error a query field that is not in the input
  routes: [{ route: 'POST /v1/things/{thing_id}', query: ['name'] }],
})
// @ts-expect-error an `itemwise` list that is not in the input
defineOperation({ ...write, name: 'things_change', itemwise: 'name', routes: ['POST /v1/things'] })

// Reads and writes.
// @ts-expect-error a read with a confirm verb
defineOperation({ ...read, name: 'things_get', confirm: 'delete', routes: ['GET /v1/things'] })
// @ts-expect-error a read with events
defineOperation({ ...read, name: 'things_get', emits: ['group.created/1'], routes: ['GET /v1/things'] })
const { idempotency: _idempotency, ...withoutIdempotency } = write
// @ts-expect-error a write without an idempotency rule
defineOperation({ ...withoutIdempotency, name: 'things_change', routes: ['POST /v1/things'] })
const { effect: _effect, ...withoutEffect } = write
// @ts-expect-error a write that says neither by a confirm verb nor by itself what it does
defineOperation({ ...withoutEffect, name: 'things_change', routes: ['POST /v1/things'] })
const { emits: _emits, ...withoutEmits } = write
// @ts-expect-error a write that does not declare its events
defineOperation({ ...withoutEmits, name: 'things_change', routes: ['POST /v1/things'] })
// @ts-expect-error an event type that does not exist
defineOperation({ ...write, name: 'things_change', emits: ['group.renamed/1'], routes: ['POST /v1/things'] })
// @ts-expect-error a confirm verb that does not exist
defineOperation({ ...write, name: 'things_change', confirm: 'unknown-verb', routes: ['POST /v1/things'] })

// Each operation has a handler.
declare const checkHandlers: (all: Handlers) => void
checkHandlers(handlers)
const { crm_create_group: _createGroup, ...withoutHandler } = handlers
// @ts-expect-error an operation without a handler
checkHandlers(withoutHandler)
// @ts-expect-error the handler of another operation
checkHandlers({ ...handlers, crm_create_group: handlers.crm_delete_group })

declare const checkHandler: <N extends OperationName>(name: N, handler: Handler<N>) => void
declare const checkParts: (parts: Pick<ReplyHandler, 'prepare' | 'complete' | 'compensate'>) => void
type ReplyHandler = ProviderHandler<'messaging_send_reply'>

// Handlers emit only what their operation declares.
const group = { group: { id: '3', name: 'VIP', emoji: null } }
const output = { ...group.group, contact_count: 0, created_at: '2026-10-01T09:30:00.000Z' }
checkHandler('crm_create_group', async (ctx) => {
  ctx.emit('group.created/1', group)
  return { created: true, group: output }
})
checkHandler('crm_create_group', async (ctx) => {
  // @ts-expect-error an event that the operation does not declare
  ctx.emit('group.deleted/1', group)
  return { created: true, group: output }
})
checkHandler('crm_create_group', async (ctx) => {
  // @ts-expect-error the data of another event type
  ctx.emit('group.created/1', { contact_ids: ['1'] })
  return { created: true, group: output }
})
checkHandler('crm_list_groups', async (ctx) => {
  // @ts-expect-error a read emits no events
  ctx.emit('group.created/1', group)
  return { data: [], total: 0, next_cursor: null }
})

// The same through helpers.
declare const emitCreated: (ctx: Context<'group.created/1'>) => void
declare const emitDeleted: (ctx: Context<'group.deleted/1'>) => void
declare const emitNothing: (ctx: Context) => void
declare const emitAnything: (ctx: Context<EventTypeId>) => void
declare const closeConversation: (context: ChangeContext<'conversation.closed/1'>) => void
declare const reopening: ChangeContext<'conversation.reopened/1'>
checkHandler('crm_create_group', async (ctx) => {
  emitNothing(ctx)
  emitCreated(ctx)
  // @ts-expect-error a helper that emits an event the operation does not declare
  emitDeleted(ctx)
  // @ts-expect-error a helper that may emit any event
  emitAnything(ctx)
  return { created: true, group: output }
})
// @ts-expect-error a change of a conversation that emits another event
closeConversation(reopening)

checkParts({
  prepare: async (ctx) => {
    // @ts-expect-error `prepare` emits no events, declared or not
    ctx.emit('contact.updated/1', {} as never)
  },
  complete: async (ctx) => {
    // @ts-expect-error an event that the operation does not declare
    ctx.emit('group.created/1', group)
    return {} as never
  },
  compensate: async (ctx) => {
    ctx.emit('contact.updated/1', {} as never)
    // @ts-expect-error an event that the operation does not declare
    ctx.emit('conversation.created/1', {} as never)
  },
})
