import type { EventTypeId } from '../catalog/events.ts'
import type { Db } from '../storage/database.ts'
import type { ActiveSlaPolicy } from '../storage/conversations/sla.ts'
import type { Context } from './handler.ts'
import type { Emit } from './kernel/emit.ts'

/**
 * What code needs that changes records on behalf of a request or of a background job: the part of `Context` that both
 * have, without an actor and a door. It emits only events of the types `Emits`.
 */
export type ChangeContext<Emits extends EventTypeId = never> = {
  tx: Db
  workspaceId: string
  now: string
  emit: Emit<Emits>
  /** Loaded on first use and kept for the context: one batch from the provider opens many conversations. */
  slaPolicies?: Promise<ActiveSlaPolicy[]>
}

/** Returns the context of the changes of a call. */
export const toChangeContext = <Emits extends EventTypeId>({
  tx,
  actor,
  now,
  emit,
}: Context<Emits>): ChangeContext<Emits> => ({
  tx,
  workspaceId: actor.workspace.id,
  now,
  emit,
})
