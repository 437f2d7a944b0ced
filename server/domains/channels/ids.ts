/*
 * What a bridge and this service call the same message. Our ids are unique; those of a bridge only on its
 * channel. They are stored where the messaging provider's ids are, with a prefix that no provider uses.
 */

const prefixOf = (channelId: string, direction: 'in' | 'out'): string => `channel:${channelId}:${direction}:`

/** The stored id of a customer's message, from the bridge's own. */
export const toInboundId = (channelId: string, bridgeId: string): string =>
  prefixOf(channelId, 'in') + bridgeId

/** The stored id of a reply that the bridge took, from ours. */
export const toOutboundId = (channelId: string, messageId: string): string =>
  prefixOf(channelId, 'out') + messageId

/** The bridge's own id of a customer's message; null for a reply, which it knows by ours. */
export const toBridgeId = (channelId: string, storedId: string | null): string | null => {
  const prefix = prefixOf(channelId, 'in')
  return storedId?.startsWith(prefix) === true ? storedId.slice(prefix.length) : null
}
