import type { Context } from '../core/context.ts'
import { hasHiddenPhones } from './policy.ts'

/**
 * Whether a dry run must not look whether a contact has the phone that it was given: it costs nothing and
 * leaves nothing behind, so it would tell the number of every customer by trying. It answers as for a number
 * that no contact has, and warns of it.
 */
export const isBlindRehearsal = ({ actor, dryRun }: Pick<Context, 'actor' | 'dryRun'>): boolean =>
  dryRun && hasHiddenPhones(actor)

export const BLIND_WARNING =
  'Phone numbers are hidden from you, so this dry run answers as for a number that no contact has. ' +
  'The real call finds the contact with this number, if there is one.'
