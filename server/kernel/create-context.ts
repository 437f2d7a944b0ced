import { openHeavyDb } from './heavy.ts'
import type { EventTypeId } from '../../catalog/events.ts'
import type { Operation } from '../../catalog/index.ts'
import type { Db } from '../../storage/database.ts'
import { toBusinessTime } from '../clock.ts'
import { showActor } from './actor-view.ts'
import type { Actor, CallContext, CallOrigin, PendingWrites, RecordChange } from './context.ts'
import { createCursors } from './cursors.ts'
import { createEmit } from './emit.ts'
import type { Kernel } from './kernel.ts'

type ContextOptions = CallOrigin & {
  readonly tx: Db
  readonly actor: Actor
  readonly op: Operation
  readonly input: Record<string, unknown>
  readonly dryRun?: boolean
  readonly pending?: PendingWrites
  readonly attempt?: number
}

/** Returns the context of one run of a handler. */
export const createContext = <App extends Kernel>(
  app: App,
  {
    tx,
    actor,
    op,
    input,
    dryRun = false,
    pending = { events: [] },
    attempt = 1,
    trace,
    plan,
    found,
    watch,
    presence,
    lookedUp,
  }: ContextOptions,
): CallContext<EventTypeId, App> => {
  const realNow = app.now()
  const now = toBusinessTime(app, actor.workspace.id, realNow)
  return {
    tx,
    // A transaction of the embedded database holds the only session.
    heavy: op.heavy && tx.isTransaction && !app.embedded ? openHeavyDb(app) : tx,
    actor,
    now,
    realNow,
    dryRun,
    attempt,
    call: { trace, plan, found, lookedUp, watch, presence },
    cursors: createCursors(app.cursorSealer, actor, op.name, input, realNow),
    emit: createEmit(pending.events, now, showActor(actor)),
    pending,
    auditChange: (before, after) => {
      pending.change = { before, after } as RecordChange
    },
    services: app,
  }
}
