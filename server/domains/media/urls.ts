import type { Context } from '../../kernel/context.ts'
import type { Sealer } from '../../sealer.ts'

const URL_TTL_MS = 5 * 60_000
const BINDING = 'media'
/** Sealed tokens are shorter; a longer one is not worth opening. */
const MAX_TOKEN_LENGTH = 500

/** Creates URLs of files that need no API key and expire after five minutes of real time, which `now` is. */
export const createMediaUrls =
  (sealer: Sealer, publicUrl: string, workspaceId: string, now: string): Context['mediaUrl'] =>
  (messageId) => {
    const expires = Date.parse(now) + URL_TTL_MS
    return {
      url: `${publicUrl}/media/${sealer.seal(`${workspaceId} ${messageId} ${expires}`, BINDING)}`,
      expires_at: new Date(expires).toISOString(),
    }
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
