import type { z } from 'zod'
import type { replyRefusals, Window } from '../../../catalog/conversations/read.ts'
import { type ChannelFacts, findReplyFault } from '../messaging/channels.ts'

/** What the reply window of a conversation is computed from. Times are ISO 8601 UTC. */
export type WindowFacts = {
  channel_id: string | null
  channel_type: string | null
  /** The customer's latest message. */
  last_inbound_at: string | null
  /** The latest message that came from an ad. */
  free_entry_at: string | null
  /** When the provider reported that the window is closed, although it was expected to be open. */
  window_corrected_at: string | null
}

const HOUR_MS = 3_600_000

/** Channel types with a reply window, and how long a customer's message keeps it open. */
const windowTypes: Readonly<Record<string, { kind: string; ms: number }>> = {
  chatapp: { kind: 'service', ms: 24 * HOUR_MS },
  photoapp: { kind: 'standard', ms: 24 * HOUR_MS },
  socialchat: { kind: 'standard', ms: 24 * HOUR_MS },
  videoapp: { kind: 'videoapp', ms: 48 * HOUR_MS },
}
const FREE_ENTRY_MS = 72 * HOUR_MS

/** The same as a table, for counts of many windows; `adMs`: for a message from an ad, null where the same. */
export const windowRules = Object.entries(windowTypes).map(([type, { ms }]) => ({
  type,
  ms,
  adMs: type === 'chatapp' ? FREE_ENTRY_MS : null,
}))

const addMs = (time: string, ms: number): number => Date.parse(time) + ms
const toIso = (ms: number): string => new Date(ms).toISOString()

/** Computes when the window that these messages opened closes, and its kind; undefined where none opened. */
export const computeWindowExpiry = ({
  channel_type,
  last_inbound_at,
  free_entry_at,
}: WindowFacts): { kind: string; at: number } | undefined => {
  const rule = channel_type === null ? undefined : windowTypes[channel_type]
  if (!rule || last_inbound_at === null) return undefined
  const service = addMs(last_inbound_at, rule.ms)
  const free =
    channel_type === 'chatapp' && free_entry_at !== null ? addMs(free_entry_at, FREE_ENTRY_MS) : -Infinity
  return free > service ? { kind: 'free_entry', at: free } : { kind: rule.kind, at: service }
}

/** Returns the reply window at this time. Reads and sends share it, so that they never disagree. */
export const toWindow = (facts: WindowFacts, now: string): z.input<typeof Window> => {
  const rule = facts.channel_type === null ? undefined : windowTypes[facts.channel_type]
  if (facts.channel_id === null || facts.channel_type === null)
    return { applies: true, open: false, kind: null, closes_at: null, closed_at: null, reason: 'no_window' }
  if (!rule)
    return {
      applies: false,
      open: true,
      kind: facts.channel_type === 'web' ? 'web' : null,
      closes_at: null,
      closed_at: null,
      reason: null,
    }
  const expiry = computeWindowExpiry(facts)
  if (!expiry)
    return {
      applies: true,
      open: false,
      kind: rule.kind,
      closes_at: null,
      closed_at: null,
      reason: 'never_opened',
    }
  const corrected =
    facts.window_corrected_at !== null && facts.window_corrected_at >= facts.last_inbound_at!
      ? Date.parse(facts.window_corrected_at)
      : Infinity
  const closes = Math.min(expiry.at, corrected)
  return closes > Date.parse(now)
    ? {
        applies: true,
        open: true,
        kind: expiry.kind,
        closes_at: toIso(closes),
        closed_at: null,
        reason: null,
      }
    : {
        applies: true,
        open: false,
        kind: expiry.kind,
        closes_at: null,
        closed_at: toIso(closes),
        reason: 'expired',
      }
}

/** What says whether a reply is taken. `contact_reachable`: by the provider or the bridge. */
export type ReplyFacts = {
  group_id: string | null
  contact_id: string | null
  contact_reachable: boolean
} & { [K in keyof ChannelFacts]?: ChannelFacts[K] | null }

/** Returns why no free-form reply can be sent now; null where one can. Reads and sends share it. */
export const findReplyRefusal = (
  facts: ReplyFacts,
  window: { open: boolean },
): (typeof replyRefusals)[number] | null => {
  if (facts.group_id !== null) return 'group'
  if (facts.contact_id === null) return 'contact_deleted'
  if (!facts.channel_type) return 'channel_not_connected'
  const fault = findReplyFault(facts as ChannelFacts)
  if (fault) return fault
  if (!window.open) return 'window_closed'
  return facts.contact_reachable ? null : 'contact_unreachable'
}
