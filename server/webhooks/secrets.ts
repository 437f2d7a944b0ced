import { randomBytes } from 'node:crypto'
import type { EndpointRow } from '../../storage/webhooks.ts'
import type { Sealer } from '../secret.ts'

/** Whoever can open what is sealed: the server, or one call. */
type Opener = { readonly webhookSealer: Sealer }

/** `whsec_` and base64 of 32 random bytes, which are the key of the HMAC (Standard Webhooks). */
export const newSecret = (): string => `whsec_${randomBytes(32).toString('base64')}`

type Place = { workspace_id: string; id: string }
// What is sealed for one endpoint opens for no other, nor as something else.
const bindingOf = ({ workspace_id, id }: Place, what: 'secret' | 'headers'): string =>
  `${workspace_id} ${id} ${what}`

export const sealSecret = ({ webhookSealer }: Opener, place: Place, secret: string): string =>
  webhookSealer.seal(secret, bindingOf(place, 'secret'))

export const sealHeaders = (
  { webhookSealer }: Opener,
  place: Place,
  headers: Record<string, string>,
): string => webhookSealer.seal(JSON.stringify(headers), bindingOf(place, 'headers'))

const opened = (
  { webhookSealer }: Opener,
  place: Place,
  what: 'secret' | 'headers',
  sealed: string,
): string => {
  const text = webhookSealer.open(sealed, bindingOf(place, what))
  if (text === undefined)
    throw new Error(`the ${what} of endpoint ${place.id} were sealed with another WCRM_SECRET`)
  return text
}

/** Secrets that sign now: the endpoint's, then the one before while it is valid. */
export const unsealSecrets = (
  opener: Opener,
  row: Pick<EndpointRow, 'workspace_id' | 'id' | 'signing_secret' | 'old_secret' | 'old_secret_until'>,
): string[] => {
  const secrets = [opened(opener, row, 'secret', row.signing_secret)]
  if (
    row.old_secret !== null &&
    row.old_secret_until !== null &&
    Date.parse(row.old_secret_until) > Date.now()
  )
    secrets.push(opened(opener, row, 'secret', row.old_secret))
  return secrets
}

export const unsealHeaders = (
  opener: Opener,
  row: Pick<EndpointRow, 'workspace_id' | 'id' | 'custom_headers'>,
): Record<string, string> =>
  JSON.parse(opened(opener, row, 'headers', row.custom_headers)) as Record<string, string>
