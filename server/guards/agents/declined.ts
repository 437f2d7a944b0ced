import { insertRefusal } from '../../../storage/agents/refusals.ts'
import type { App } from '../../app.ts'
import type { Guard } from '../../kernel/guard.ts'
import { storeFailure } from '../../kernel/execute.ts'
import { computeFingerprint, RECORD_TTL_MS } from '../../kernel/idempotency.ts'
import { Problem } from '../../kernel/problem.ts'
import { validate } from '../../kernel/validate.ts'

export const clientDeclinedProblem = (): Problem =>
  new Problem('declined', 'The person who was asked declined this call.')

/**
 * A call that the person behind the client declined never runs under its key; the same call of an agent not under
 * another key either, for a day. Where it has run already, its answer is given again.
 */
export const declined: Guard<App> = {
  only: { changes: true },
  before: async (app, call) => {
    const { actor, op, input, dryRun, request } = call
    if (dryRun || request.person?.said !== 'no') return
    const result = await storeFailure(app, { ...call, key: call.key!, fresh: false }, clientDeclinedProblem())
    const { key, staff, workspace } = actor
    if (key.agent && result.status >= 400) {
      const asked = request.person.asked ? validate(op, request.person.asked).input : input
      const now = app.now()
      const expiresAt = new Date(Date.parse(now) + RECORD_TTL_MS).toISOString()
      const asker = { workspaceId: workspace.id, staffId: staff.id, familyId: key.familyId }
      await insertRefusal(app.db, asker, computeFingerprint(op, asked), { now, expiresAt })
    }
    return result
  },
}
