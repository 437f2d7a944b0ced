import type { Context } from '../core/context.ts'
import type { Sealer } from '../secret.ts'

const LINK_MS = 5 * 60_000
const BINDING = 'media'
/** A sealed address is shorter; nobody makes us open a long one. */
const LONGEST = 500

/** Addresses of files that need no key, for five minutes of real time. */
export const mediaUrls =
  (sealer: Sealer, publicUrl: string, workspaceId: string): Context['mediaUrl'] =>
  (messageId) => {
    const expires = Date.now() + LINK_MS
    return {
      url: `${publicUrl}/media/${sealer.seal(`${workspaceId} ${messageId} ${expires}`, BINDING)}`,
      expires_at: new Date(expires).toISOString(),
    }
  }

/** The message that such an address is of; undefined when it is none of ours, or over. */
export const openMediaUrl = (
  sealer: Sealer,
  token: string,
): { workspaceId: string; messageId: string } | undefined => {
  const [workspaceId, messageId, expires] =
    (token.length <= LONGEST ? sealer.open(token, BINDING) : undefined)?.split(' ') ?? []
  return workspaceId !== undefined && messageId !== undefined && Number(expires) >= Date.now()
    ? { workspaceId, messageId }
    : undefined
}
