import type { Operation } from '../../catalog/index.ts'
import type { Scope } from '../../catalog/operation.ts'
import { isAddressAllowed } from '../client-address.ts'
import type { Actor } from './context.ts'
import { Problem } from './problem.ts'
import { requireActive } from '../guards/agents/policy.ts'

/**
 * Throws 403 when the key is paused or may not be used from the client's address, or when the plan does not include API
 * access.
 */
export const requireApiAccess = (actor: Actor, address: string | undefined): void => {
  requireActive(actor)
  const { allowFrom } = actor.key
  if (allowFrom !== null && !isAddressAllowed(allowFrom, address)) {
    throw new Problem(
      'forbidden',
      `This key may not be used from ${address ?? 'an unknown address'}. Use it from an address on its list, ` +
        `or add this one on the server: wcrm admin keys update ${actor.key.id} --allow-from LIST.`,
      { reason: 'address_not_allowed' },
    )
  }
  if (!actor.workspace.features.includes('api_access')) {
    throw new Problem('entitlement_required', 'The plan of this workspace does not include api_access.', {
      feature: 'api_access',
    })
  }
}

/** Whether a key's scopes reach an operation; an AI agent needs none to withdraw what it asked for. */
export const holdsScope = (
  { scopes, agent }: { scopes: readonly Scope[]; agent: boolean },
  op: Operation,
): boolean => scopes.includes(op.scope) || (op.ownByAgents === true && agent)

/** Throws 403 when the key does not hold the operation's scope. */
export const requireScope = (actor: Actor, op: Operation): void => {
  if (!holdsScope(actor.key, op)) {
    throw new Problem(
      'insufficient_scope',
      `${op.name} needs the scope ${op.scope}; this key holds ${actor.key.scopes.join(', ') || 'none'}.`,
      { scope: op.scope },
    )
  }
}
