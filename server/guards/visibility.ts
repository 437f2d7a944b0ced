import type { App } from '../app.ts'
import type { Guard } from '../kernel/guard.ts'
import { requireSameView } from '../visibility/replays.ts'
import { showStoredAnswer } from '../visibility/stored-answers.ts'

/** A stored answer shows no more than its caller may see now. */
export const visibility: Guard<App> = {
  only: { changes: true },
  onReplay: (_app, { actor }, { body, view }) => {
    requireSameView(actor, view)
    return body === null ? undefined : showStoredAnswer(actor, body)
  },
}
