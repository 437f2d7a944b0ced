import type { ServerContext } from '@modelcontextprotocol/server'
import type { Operation } from '../catalog/operation.ts'
import type { CallWatch } from '../server/core/context.ts'
import type { CallResponse } from '../server/core/respond.ts'

/** What has been done of a call with many items, in quarters. */
const steps = [
  'received',
  'read and checked',
  'checked, with their tags and groups',
  'saved, not yet committed',
]

/**
 * Runs a call, unless the client has cancelled it meanwhile. Of a call with many items the client is told how far it
 * is, if it asks to be. All items are one transaction: its steps are told, and a cancellation between two of them
 * rolls all of it back.
 */
export const runWatched = async (
  { mcpReq: { signal, _meta, notify } }: ServerContext,
  { itemwise }: Operation,
  input: Record<string, unknown>,
  run: (watch: CallWatch) => Promise<CallResponse>,
): Promise<CallResponse> => {
  signal.throwIfAborted()
  const items = itemwise && input[itemwise]
  const progressToken = _meta?.progressToken
  if (progressToken === undefined || !Array.isArray(items)) return await run({ signal })
  const total = items.length
  let told = -1
  let sent = Promise.resolve()
  const tell = (progress: number, message: string): void => {
    // A retry of the transaction begins again; progress never goes back.
    if (progress <= told) return
    told = progress
    const params = { progressToken, progress, total, message }
    sent = sent.then(() => notify({ method: 'notifications/progress', params }))
  }
  const reached = (share: number): void =>
    tell(Math.floor(share * total), `${total} rows ${steps[Math.floor(share * steps.length)]}`)
  const response = await run({ signal, reached })
  if (!response.problem) tell(total, 'All rows are done')
  await sent
  return response
}
