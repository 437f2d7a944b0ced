import { randomBytes } from 'node:crypto'
import type { SealedEndpoint } from '../../../storage/access/secrets.ts'
import type { OldSecret } from '../../../storage/tables/events.ts'
import type { EndpointRow } from '../../../storage/webhooks/webhooks.ts'
import type { Sealer } from '../../sealer.ts'

/** The server, or the context of a call. */
type SealerOwner = { readonly webhookSealer: Sealer }

/** `whsec_` and base64 of 32 random bytes, which are the key of the HMAC (Standard Webhooks). */
export const createSigningSecret = (): string => `whsec_${randomBytes(32).toString('base64')}`

type EndpointId = { workspace_id: string; id: string }
/** Binds a sealed value to its endpoint and its purpose: it opens for no other. */
const toBinding = ({ workspace_id, id }: EndpointId, what: 'secret' | 'headers'): string =>
  `${workspace_id} ${id} ${what}`

export const sealSecret = ({ webhookSealer }: SealerOwner, endpoint: EndpointId, secret: string): string =>
  webhookSealer.seal(secret, toBinding(endpoint, 'secret'))

/**
 * Secrets that may sign at a time, those of an endpoint and those of a bridged channel: each adds a
 * signature to the header of every delivery.
 */
export const MAX_SIGNING_SECRETS = 5

/** The replaced secrets that still sign, newest first. `now`: real time, ISO 8601 UTC. */
export const listValidSecrets = (secrets: readonly OldSecret[], now: string): OldSecret[] =>
  secrets.filter(({ until }) => Date.parse(until) > Date.parse(now))

const isDefined = <T>(value: T | undefined): value is T => value !== undefined

/**
 * Returns the row with its values sealed again by the current secret; undefined when none of our secrets
 * opens one of them. `now`: real time, ISO 8601 UTC.
 */
export const resealEndpoint = (
  { webhookSealer }: SealerOwner,
  row: SealedEndpoint,
  now: string,
): SealedEndpoint | undefined => {
  const reseal = (sealed: string, what: 'secret' | 'headers'): string | undefined => {
    const text = webhookSealer.open(sealed, toBinding(row, what))
    return text === undefined ? undefined : webhookSealer.seal(text, toBinding(row, what))
  }
  const signing_secret = reseal(row.signing_secret, 'secret')
  // One that no longer signs is left out: nobody needs it, and nothing may open it any more.
  const old_secrets = listValidSecrets(row.old_secrets, now).map(({ secret, until }) => {
    const resealed = reseal(secret, 'secret')
    return resealed === undefined ? undefined : { secret: resealed, until }
  })
  const custom_headers = reseal(row.custom_headers, 'headers')
  if (signing_secret === undefined || custom_headers === undefined || !old_secrets.every(isDefined))
    return undefined
  return { ...row, signing_secret, old_secrets, custom_headers }
}

export const sealHeaders = (
  { webhookSealer }: SealerOwner,
  endpoint: EndpointId,
  headers: Record<string, string>,
): string => webhookSealer.seal(JSON.stringify(headers), toBinding(endpoint, 'headers'))

const unseal = (
  { webhookSealer }: SealerOwner,
  endpoint: EndpointId,
  what: 'secret' | 'headers',
  sealed: string,
): string => {
  const text = webhookSealer.open(sealed, toBinding(endpoint, what))
  if (text === undefined)
    throw new Error(`the ${what} of endpoint ${endpoint.id} were encrypted with another WCRM_SECRET`)
  return text
}

/** The secrets that sign at `now`, real time: the current one, then the replaced ones that are valid, newest first. */
export const unsealSecrets = (
  owner: SealerOwner,
  row: Pick<EndpointRow, 'workspace_id' | 'id' | 'signing_secret' | 'old_secrets'>,
  now: string,
): string[] =>
  [row.signing_secret, ...listValidSecrets(row.old_secrets, now).map(({ secret }) => secret)].map((sealed) =>
    unseal(owner, row, 'secret', sealed),
  )

export const unsealHeaders = (
  owner: SealerOwner,
  row: Pick<EndpointRow, 'workspace_id' | 'id' | 'custom_headers'>,
): Record<string, string> =>
  JSON.parse(unseal(owner, row, 'headers', row.custom_headers)) as Record<string, string>
