import type { Operation } from '../../catalog/index.ts'
import { findMarked } from '../../catalog/marked.ts'
import { takePhone } from '../../storage/contacts/phone-budgets.ts'
import { parsePhoneLine } from '../domains/contacts/phone.ts'
import type { App } from '../app.ts'
import type { Actor } from '../kernel/context.ts'
import type { Guard } from '../kernel/guard.ts'
import { Problem } from '../kernel/problem.ts'
import { hasHiddenPhones } from '../visibility/policy.ts'

/**
 * Counts the phone line that a change names, once for all its spellings. The result tells whether a contact has
 * it, so staff from whom phones are hidden may name only so many a day. Every phone counts, known or not, and
 * also when the change fails: otherwise the budget would tell. Throws 429 `phone_budget`.
 */
export const takePhoneBudget = async (
  { db, config: { phoneBudget } }: App,
  actor: Actor,
  op: Operation,
  input: Record<string, unknown>,
): Promise<void> => {
  if (!hasHiddenPhones(actor)) return
  const members = findMarked('phone', 'input', op.name)?.members ?? []
  const [field] = [...members].find(([, { mark }]) => mark === 'number') ?? []
  const text = field && input[field]
  const line = typeof text === 'string' ? parsePhoneLine(text) : undefined
  // The operation refuses what is no phone.
  if (!line || 'error' in line) return
  const { workspace, staff } = actor
  const taken = await takePhone(db, workspace.id, staff.id, line.key, phoneBudget)
  if (taken.granted) return
  throw new Problem(
    'rate_limited',
    `Phone numbers are hidden from you, so you may name ${phoneBudget} different ones a day; ` +
      `more from ${taken.resetsAt}. Use the contact's id, or ask somebody who may see phone numbers.`,
    { reason: 'phone_budget', limit: phoneBudget, resets_at: taken.resetsAt },
    { 'Retry-After': String(taken.resetSeconds) },
  )
}

export const phoneBudget: Guard<App> = {
  only: { changes: true },
  before: async (app, { actor, op, input, dryRun }) => {
    if (!dryRun) await takePhoneBudget(app, actor, op, input)
  },
}
