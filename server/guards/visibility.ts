import type { App } from '../app.ts'
import type { Guard } from '../kernel/guard.ts'
import { requireSameView } from '../visibility/replays.ts'
import { showStoredAnswer } from '../visibility/records.ts'

/** A stored answer shows no more than its caller may see now. */
export const visibility: Guard<App> = {
  only: { changes: true },
  onReplay: (_app, { actor, op }, { body, view }) => {
    requireSameView(actor, view)
    return body === null ? undefined : showStoredAnswer(actor, op, body)
  },
}
