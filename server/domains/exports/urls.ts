import type { Context } from '../../handler.ts'
import type { Sealer } from '../../sealer.ts'

const URL_TTL_MS = 5 * 60_000
const BINDING = 'export'
/** Sealed tokens are shorter; a longer one is not worth opening. */
const MAX_TOKEN_LENGTH = 500

export type SignedUrl = { url: string; expires_at: string }

/** Returns the URL of a finished file, which needs no API key and expires after five minutes of real time. */
export const toExportUrl = (
  { actor, realNow, services: { mediaSealer, config } }: Pick<Context, 'actor' | 'realNow' | 'services'>,
  exportId: string,
): SignedUrl => {
  const { workspace, staff, key } = actor
  const expires = Date.parse(realNow) + URL_TTL_MS
  const token = mediaSealer.seal(`${workspace.id} ${exportId} ${staff.id} ${key.id} ${expires}`, BINDING)
  return { url: `${config.publicUrl}/exports/${token}`, expires_at: new Date(expires).toISOString() }
}

export type OpenedExportUrl = {
  workspaceId: string
  exportId: string
  /** Who was given the URL. */
  staffId: string
  keyId: string
  hasExpired: boolean
}

/** What a token is for; undefined when it is none of ours. `now`: real time, ISO 8601 UTC. */
export const openExportUrl = (sealer: Sealer, token: string, now: string): OpenedExportUrl | undefined => {
  const text = token.length <= MAX_TOKEN_LENGTH ? sealer.open(token, BINDING) : undefined
  const [workspaceId, exportId, staffId, keyId, expires] = text?.split(' ') ?? []
  return workspaceId !== undefined && exportId !== undefined && staffId !== undefined && keyId !== undefined
    ? { workspaceId, exportId, staffId, keyId, hasExpired: !(Number(expires) >= Date.parse(now)) }
    : undefined
}
