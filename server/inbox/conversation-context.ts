import type { EventTypeId } from '../../catalog/events.ts'
import type { Db } from '../../storage/database.ts'
import type { ActiveSlaPolicy } from '../../storage/sla.ts'
import type { Context } from '../core/context.ts'
import type { Emit } from '../core/emit.ts'

/**
 * What a change needs that a request or a background job may make: of a conversation, and of what an update of the
 * provider changes beside it (contacts, channels, templates). It is the part of `Context` that a job has too: no actor,
 * no door. It emits only events of the types `Emits`.
 */
export type ConversationContext<Emits extends EventTypeId = never> = {
  tx: Db
  workspaceId: string
  now: string
  emit: Emit<Emits>
  /** Loaded on first use and kept for the context: one batch from the provider opens many conversations. */
  slaPolicies?: Promise<ActiveSlaPolicy[]>
}

/** Returns the conversation context of a call. */
export const toConversationContext = <Emits extends EventTypeId>({
  tx,
  actor,
  now,
  emit,
}: Context<Emits>): ConversationContext<Emits> => ({
  tx,
  workspaceId: actor.workspace.id,
  now,
  emit,
})
