import { mayRunUnasked } from '../../agent-policy.ts'
import type { AskReason } from '../../../catalog/approvals.ts'
import type { App } from '../../app.ts'
import type { Call } from '../../kernel/call.ts'
import type { Guard } from '../../kernel/guard.ts'
import { validate } from '../../kernel/validate.ts'
import { type AgentCall, askAbout, askPerson } from './approvals/ask.ts'
import { requireStillApproved } from './approvals/run.ts'
import { listQuestions, requireBounds, wouldAsk } from './policy.ts'
import { createSendCount } from './send-count.ts'

const toAgentCall = (call: Call): AgentCall => ({
  ...call,
  key: call.key!,
  asked: call.request?.person?.asked && validate(call.op, call.request.person.asked).input,
  reason: call.request?.reason,
})

/**
 * The policy of an AI agent's key: a call runs, or a person is asked about it, or it is refused. What a change would do
 * is known only in its transaction, which asks then, and is rolled back.
 */
export const agents: Guard<App> = {
  only: { changes: true, agents: true },
  before: async (app, call) => {
    const { actor, op, input, dryRun, headers, onEnd } = call
    if (dryRun) {
      if (await wouldAsk(app, actor, op, input)) headers['Approval'] = 'required'
      return
    }
    const count = createSendCount(app, actor, op)
    const answer = await askPerson(app, toAgentCall(call), count)
    if (answer) return answer
    onEnd(count.keepIfSent)
  },
  inTransaction: async (app, call, tx) => {
    const { actor, op, input, consent, dryRun } = call
    if (dryRun || consent?.by === 'job') return
    if (consent?.by === 'approval') await requireStillApproved(app, tx, call, consent)
    else if (!mayRunUnasked(actor, consent)) await requireBounds(app, tx, actor, op, input)
  },
  after: (app, call, { kind, pending, headers }) => {
    const { actor, op, consent } = call
    if (kind !== 'changed' && kind !== 'dry_run') return
    const askedFor: AskReason[] | undefined = listQuestions(actor, op, pending!.events)
    if (!askedFor) return
    if (kind === 'dry_run') headers!['Approval'] = 'required'
    else if (consent?.by !== 'approval' && !mayRunUnasked(actor, consent))
      return () => askAbout(app, toAgentCall(call), askedFor)
  },
}
