import { currentVersion, type Operation } from '../../catalog/index.ts'
import type { Scope } from '../../catalog/operation.ts'
import { isAddressAllowed } from '../client-address.ts'
import type { CallRequest } from './call.ts'
import type { Actor } from './context.ts'
import type { Guard } from './guard.ts'
import type { Kernel } from './kernel.ts'
import { Problem } from './problem.ts'

/** Throws 403 while the key is paused, for reads too. */
export const requireActive = ({ key }: Actor): void => {
  if (key.pausedAt === null) return
  throw new Problem(
    'forbidden',
    `This key was paused at ${key.pausedAt}. On the server: wcrm admin keys resume ${key.id}.`,
    { reason: 'key_paused' },
  )
}

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
/** Throws 400 for another version than the one there is. */
const requireApiVersion = (requested: string | undefined): void => {
  if (requested === undefined || requested === currentVersion) return
  throw new Problem('invalid_input', `There is no API version "${requested.slice(0, 40)}".`, {
    reason: 'unknown_version',
    errors: [
      {
        header: 'Api-Version',
        code: 'unknown_version',
        detail: 'must be a listed version',
        allowed: [currentVersion],
        fix: `Send ${currentVersion}, or leave the header out.`,
      },
    ],
  })
}

/** Throws 404 for a request that names no operation. */
export const requireOperation = (
  { config }: Pick<Kernel, 'config'>,
  { operation, unknown }: CallRequest,
): Operation => {
  if (operation) return operation
  const similar = unknown?.findSimilar()
  throw new Problem(
    'not_found',
    `There is no ${unknown?.name ?? 'such operation'}. ${similar ? `Did you mean ${similar}? ` : ''}` +
      `${config.publicUrl}/docs lists them all.`,
  )
}

/** The guard of the kernel itself: whether the key may be used here and now, for what is asked. */
export const access: Guard<Kernel> = {
  admit: (app, { request, actor }) => {
    requireApiAccess(actor, request.address)
    requireApiVersion(request.apiVersion)
    requireScope(actor, requireOperation(app, request))
  },
}
