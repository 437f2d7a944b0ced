import type { SealedChannel } from '../../../storage/channels/secrets.ts'
import type { Sealer } from '../../sealer.ts'
import { MAX_SIGNING_SECRETS } from '../webhooks/secrets.ts'

/** A secret that signs a channel's deliveries. `until`: ISO 8601 UTC, real time; null for the current one. */
type SigningSecret = { secret: string; until: string | null }

/** The server, or what administration made. */
type SealerOwner = { readonly webhookSealer: Sealer }

type ChannelKey = Pick<SealedChannel, 'workspace_id' | 'channel_id'>

/** Binds sealed secrets to their channel: they open for no other. */
const toBinding = ({ workspace_id, channel_id }: ChannelKey): string =>
  `${workspace_id} channel ${channel_id}`

const isValid = ({ until }: SigningSecret, now: string): boolean =>
  until === null || Date.parse(until) > Date.parse(now)

const sealSecrets = (
  { webhookSealer }: SealerOwner,
  channel: ChannelKey,
  secrets: readonly SigningSecret[],
): SealedChannel => ({
  workspace_id: channel.workspace_id,
  channel_id: channel.channel_id,
  signing_secrets: webhookSealer.seal(JSON.stringify(secrets), toBinding(channel)),
})

const openSecrets = ({ webhookSealer }: SealerOwner, row: SealedChannel): SigningSecret[] | undefined => {
  const text = webhookSealer.open(row.signing_secrets, toBinding(row))
  return text === undefined ? undefined : (JSON.parse(text) as SigningSecret[])
}

const requireOpened = (owner: SealerOwner, row: SealedChannel): SigningSecret[] => {
  const secrets = openSecrets(owner, row)
  if (!secrets)
    throw new Error(`the secrets of channel ${row.channel_id} were encrypted with another WCRM_SECRET`)
  return secrets
}

/** What a new secret replaces: secrets that sign too, each until it was promised, the last one until `until`. */
type Replaced = { row: SealedChannel; until: string; now: string }

/** Returns the row with a new current secret; undefined when too many would sign. Times are real, ISO 8601 UTC. */
export const addSigningSecret = (
  owner: SealerOwner,
  channel: ChannelKey,
  secret: string,
  replaced?: Replaced,
): SealedChannel | undefined => {
  const old = replaced
    ? requireOpened(owner, replaced.row)
        .map((one) => (one.until === null ? { ...one, until: replaced.until } : one))
        .filter((one) => isValid(one, replaced.now))
    : []
  return old.length >= MAX_SIGNING_SECRETS
    ? undefined
    : sealSecrets(owner, channel, [{ secret, until: null }, ...old])
}

/** The secrets that sign at `now`, the current one first. Throws when another WCRM_SECRET sealed them. */
export const unsealSigningSecrets = (owner: SealerOwner, row: SealedChannel, now: string): string[] =>
  requireOpened(owner, row)
    .filter((one) => isValid(one, now))
    .map(({ secret }) => secret)

/** Returns the row sealed again by the current secret; undefined when none of ours opens it. */
export const resealChannel = (owner: SealerOwner, row: SealedChannel): SealedChannel | undefined => {
  const secrets = openSecrets(owner, row)
  return secrets && sealSecrets(owner, row, secrets)
}
