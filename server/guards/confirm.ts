import type { App } from '../app.ts'
import { isConfirmed } from '../kernel/confirm.ts'
import type { Guard } from '../kernel/guard.ts'
import { Problem } from '../kernel/problem.ts'

/**
 * A change that cannot be undone, or that customers see, needs the operation's verb, else 428. The policy of an agent's
 * key decides in its place (`agents`). From here on a change counts as tried.
 */
export const confirmation: Guard<App> = {
  only: { changes: true },
  before: (_app, { actor, op, dryRun, request: { confirm: given }, progress }) => {
    if (dryRun) return
    if (op.confirm !== undefined && !actor.key.agent && !isConfirmed(op, given)) {
      const detail =
        given === undefined
          ? `Send Api-Confirm: ${op.confirm}.`
          : `Api-Confirm must be "${op.confirm}", not "${given.slice(0, 40)}".`
      throw new Problem('confirm_required', detail, { confirm: op.confirm })
    }
    progress!.begun = true
  },
}
