import type { App } from '../app.ts'
import type { Guard } from '../kernel/guard.ts'
import { access } from '../kernel/access.ts'
import { agents } from './agents/agents.ts'
import { approvers } from './agents/approvals/check-approver.ts'
import { declined } from './agents/declined.ts'
import { audit } from './audit/record.ts'
import { confirmation } from './confirm.ts'
import { contactBudget } from './contact-budget.ts'
import { heavyTurns } from '../limits/heavy-reads.ts'
import { shownLimits, rateLimits } from '../limits/rate-limit.ts'
import { phoneBudget } from './phone-budget.ts'
import { plans, planTokens } from './snapshot/plan.ts'
import { preconditions } from './snapshot/precondition.ts'
import { visibility } from './visibility.ts'
import { workspaceClock } from './workspace-clock.ts'

/**
 * What features add to every call, in this order: at each of its moments (kernel/guard.ts) the first comes first, so
 * that what costs less, or tells less, is asked before what costs or tells more.
 */
export const guards: readonly Guard<App>[] = [
  // Before the input is read.
  workspaceClock,
  shownLimits,
  access,
  rateLimits,
  // Before the work begins.
  approvers,
  planTokens,
  declined,
  confirmation,
  phoneBudget,
  heavyTurns,
  // In the transaction of the change too, and with what came of it.
  agents,
  preconditions,
  plans,
  visibility,
  contactBudget,
  audit,
]
