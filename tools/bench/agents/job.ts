import type { Agent } from './agent.ts'
import type { Decision, World } from './world.ts'

/** A request of a person to an agent, with a script of what a careful agent does, and a check of the result. */
export type Job = {
  /** Its name in the table. */
  name: string
  /** The person's words. */
  task: string | ((world: World) => string)
  /** The job needs phone numbers, so the agent has a key that sees them. */
  phones?: true
  /** What the person who is asked for approval does; approves when absent. */
  decision?: Decision
  /** What customers do, and what the workspace contains, before the agent begins. */
  prepare?: (world: World) => Promise<void>
  /** Returns the agent's answer to the person. */
  run: (agent: Agent) => Promise<unknown>
  /** Throws when the answer is wrong, or when the workspace is not as it should be. */
  check: (answer: any, world: World) => Promise<void> | void
}
