import type { Context } from '../handler.ts'
import { Problem } from '../kernel/problem.ts'
import { hasHiddenPhones } from './policy.ts'

/**
 * Whether a dry run must not look whether a contact has the phone that it was given: it costs nothing and
 * leaves nothing behind, so it would tell the number of every customer by trying. It answers as for a number
 * that no contact has, and warns of it.
 */
export const isBlindRehearsal = ({ actor, dryRun }: Pick<Context, 'actor' | 'dryRun'>): boolean =>
  dryRun && hasHiddenPhones(actor)

/**
 * Throws 409 `plan_changed` for a change that finds a contact by its phone, though the dry run that planned it looked
 * for none. It tells what the change would have told, and is counted as that is.
 */
export const requireBlindPlan = ({
  actor,
  dryRun,
  call,
}: Pick<Context, 'actor' | 'dryRun' | 'call'>): void => {
  if (!dryRun && call.plan !== undefined && hasHiddenPhones(actor))
    throw new Problem(
      'conflict',
      'A contact has this number, which the plan could not show, because phone numbers are hidden from ' +
        'you. Nothing was done. Send the call without a plan to change that contact.',
      { reason: 'plan_changed' },
    )
}

export const BLIND_WARNING =
  'Phone numbers are hidden from you, so this dry run shows the result for an unknown number. The ' +
  'real call finds the contact with this number, if there is one.'

export const BLIND_MATCH_WARNING =
  'Phone numbers are hidden from you, so this dry run does not show whether the contact with this ' +
  'external_id has this number. The real call is refused (409 identity_conflict) when it has another.'

export const BLIND_CHANGE_WARNING =
  'Phone numbers are hidden from you, so this dry run does not show whether this contact or another ' +
  'one has this number. The real call changes nothing in the first case, and is refused (409 ' +
  'phone_taken) in the second.'
