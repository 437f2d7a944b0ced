import type { ActorView } from '../../catalog/actor.ts'
import type { Actor } from './context.ts'

/** Returns who makes a call, as events and answers name them. */
export const showActor = ({ staff, key, approvedBy }: Actor): ActorView => ({
  staff: { id: staff.id, name: staff.name },
  key: { id: key.id, name: key.name },
  agent: key.agent,
  approved_by: approvedBy ? { id: approvedBy.staffId, name: approvedBy.name } : null,
})
