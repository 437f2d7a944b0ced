import { getHandler } from '../kernel/write-call.ts'
import type { Actor, PendingWrites } from '../kernel/context.ts'
import type { OutputOf } from '../handler.ts'
import { pino } from 'pino'
import { findOperation, type OperationName, scopes } from '../../catalog/index.ts'
import type { EventTypeId } from '../../catalog/events.ts'
import { runDeferredWrite } from '../../storage/client/deferred-write.ts'
import type { Db } from '../../storage/database.ts'
import type { EventRow } from '../../storage/events/events.ts'
import { newLinkCode } from '../../packages/sandbox/emulator/ids.ts'
import type { ChangeContext } from '../change-context.ts'
import { createContext } from '../kernel/create-context.ts'
import { createEmit } from '../kernel/emit.ts'
import { validate } from '../kernel/validate.ts'
import { createApp } from '../create-app.ts'
import { createRequestId } from '../ids.ts'
import { createMetrics } from '../metrics.ts'
import { unconfiguredProvider, type Provider } from '../provider/port.ts'
import { createUnlimitedActor } from '../domains/reports/filter-membership.ts'
import { createSecret, createSecretRing } from '../secret.ts'
import { toIso } from './time.ts'

/** Accepts everything, without a network: what is sent in the past reaches nobody. */
const createProvider = (publicUrl: string): Provider & { lastId: () => string } => {
  let made = 0
  let lastId = ''
  return {
    ...unconfiguredProvider,
    lastId: () => lastId,
    send: async () => ({ id: (lastId = `wamid.${Buffer.from(`demo.${++made}`).toString('base64')}`) }),
    createTemplate: async () => ({
      id: (lastId = String(100_200_900 + ++made)),
      status: 'PENDING',
      category: null,
    }),
    createLink: async (_from, { message }) => {
      const code = newLinkCode()
      return { code, message, url: `${publicUrl}/message/${code}`, qrImageUrl: null }
    },
  }
}

type Workspace = { id: string; name: string; timezone: string }

/** Who calls an operation, and when. */
type CallBy = { staff?: Actor['staff']; keyId?: string; atMs: number }

/** Runs operations of a workspace in a transaction, as if at an earlier time. */
export type Caller = {
  readonly tx: Db
  readonly workspace: Workspace
  readonly call: <N extends OperationName>(
    name: N,
    input: Record<string, unknown>,
    by: CallBy,
  ) => Promise<OutputOf<N>>
  /** The provider's id of the message or template that was sent last. */
  readonly lastProviderId: () => string
  /** For what the provider reports; `events` gets the events of that. */
  readonly contextAt: (atMs: number, events?: EventRow[]) => ChangeContext<EventTypeId>
}

/**
 * Returns what makes callers. The handlers of the operations run in the transaction that they are given: the demo is
 * created as a whole or not at all. There is no log of the events, and no audit trail, of a past that nobody saw.
 * `publicUrl`: of the server, to which short links lead.
 */
export const createCallers = (publicUrl = '') => {
  let now = ''
  const provider = createProvider(publicUrl)
  const none = {} as Db
  const app = createApp({
    storage: {
      db: none,
      heavy: none,
      heavyReads: 1,
      embedded: true,
      poolStats: () => ({}),
      isDiskFull: () => false,
    },
    secrets: createSecretRing([createSecret()]),
    log: pino({ level: 'silent' }),
    metrics: createMetrics(false),
    config: { publicUrl, limitRead: 1, limitWrite: 1 },
    createProvider: () => provider,
    now: () => now,
  })
  return (tx: Db, workspace: Workspace): Caller => {
    const limits = { features: [], contactLimit: null, templateLimit: null }
    const actor = createUnlimitedActor({ ...workspace, ...limits })
    return {
      tx,
      workspace,
      call: async (name, given, { staff = actor.staff, keyId = '0', atMs }) => {
        now = toIso(atMs)
        const op = findOperation(name)!
        const { input } = validate(op, given)
        const pending: PendingWrites = { events: [] }
        const ctx = createContext(app, {
          tx,
          actor: { ...actor, staff, key: { ...actor.key, id: keyId, scopes } },
          op,
          input,
          pending,
          trace: { door: 'rest', client: null, requestId: createRequestId(), confirmed: true },
        })
        const handler = getHandler(app, op)
        type Output = OutputOf<typeof name>
        if (typeof handler === 'function') {
          const output = await handler(ctx, input)
          if (pending.deferred) await runDeferredWrite(tx, pending.deferred)
          return output as Output
        }
        const intent = await handler.prepare(ctx, input)
        const signal = AbortSignal.timeout(60_000)
        const options = { again: false, storedOnly: false, signal, services: app, db: tx, now }
        const result = await handler.call(intent, options, input)
        return (await handler.complete(ctx, intent, result)) as Output
      },
      lastProviderId: provider.lastId,
      contextAt: (atMs, events = []) => {
        now = toIso(atMs)
        return { tx, workspaceId: workspace.id, now, emit: createEmit(events, now) }
      },
    }
  }
}
