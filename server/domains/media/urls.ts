import type { Context } from '../../handler.ts'
import type { Sealer } from '../../sealer.ts'

const URL_TTL_MS = 5 * 60_000
const BINDING = 'media'
/** Sealed tokens are shorter; a longer one is not worth opening. */
const MAX_TOKEN_LENGTH = 500

/** Returns the URL of a file, which needs no API key and expires after five minutes of real time. */
export const toMediaUrl = (
  { actor, realNow, services: { mediaSealer, config } }: Pick<Context, 'actor' | 'realNow' | 'services'>,
  messageId: string,
): { url: string; expires_at: string } => {
  const expires = Date.parse(realNow) + URL_TTL_MS
  const token = mediaSealer.seal(`${actor.workspace.id} ${messageId} ${expires}`, BINDING)
  return { url: `${config.publicUrl}/media/${token}`, expires_at: new Date(expires).toISOString() }
}

/** The message that a token belongs to; undefined when it is none of ours. `now`: real time, ISO 8601 UTC. */
export const openMediaUrl = (
  sealer: Sealer,
  token: string,
  now: string,
): { workspaceId: string; messageId: string; hasExpired: boolean } | undefined => {
  const [workspaceId, messageId, expires] =
    (token.length <= MAX_TOKEN_LENGTH ? sealer.open(token, BINDING) : undefined)?.split(' ') ?? []
  return workspaceId !== undefined && messageId !== undefined
    ? { workspaceId, messageId, hasExpired: !(Number(expires) >= Date.parse(now)) }
    : undefined
}
