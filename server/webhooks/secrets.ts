import { randomBytes } from 'node:crypto'
import type { SealedEndpoint } from '../../storage/secrets.ts'
import type { EndpointRow } from '../../storage/webhooks.ts'
import type { Sealer } from '../sealer.ts'

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
 * Returns the row with its values sealed again by the current secret; undefined when none of our secrets
 * opens one of them.
 */
export const resealEndpoint = (
  { webhookSealer }: SealerOwner,
  row: SealedEndpoint,
): SealedEndpoint | undefined => {
  const reseal = (sealed: string, what: 'secret' | 'headers'): string | undefined => {
    const text = webhookSealer.open(sealed, toBinding(row, what))
    return text === undefined ? undefined : webhookSealer.seal(text, toBinding(row, what))
  }
  const signing_secret = reseal(row.signing_secret, 'secret')
  const old_secret = row.old_secret === null ? null : reseal(row.old_secret, 'secret')
  const custom_headers = reseal(row.custom_headers, 'headers')
  if (signing_secret === undefined || old_secret === undefined || custom_headers === undefined)
    return undefined
  return { ...row, signing_secret, old_secret, custom_headers }
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
    throw new Error(`the ${what} of endpoint ${endpoint.id} were sealed with another WCRM_SECRET`)
  return text
}

/** The secrets that sign now: the current one, then the previous one while it is valid. */
export const unsealSecrets = (
  owner: SealerOwner,
  row: Pick<EndpointRow, 'workspace_id' | 'id' | 'signing_secret' | 'old_secret' | 'old_secret_until'>,
): string[] => {
  const secrets = [unseal(owner, row, 'secret', row.signing_secret)]
  if (
    row.old_secret !== null &&
    row.old_secret_until !== null &&
    Date.parse(row.old_secret_until) > Date.now()
  )
    secrets.push(unseal(owner, row, 'secret', row.old_secret))
  return secrets
}

export const unsealHeaders = (
  owner: SealerOwner,
  row: Pick<EndpointRow, 'workspace_id' | 'id' | 'custom_headers'>,
): Record<string, string> =>
  JSON.parse(unseal(owner, row, 'headers', row.custom_headers)) as Record<string, string>
