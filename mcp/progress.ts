import type { ServerContext } from '@modelcontextprotocol/server'
import type { Operation } from '../catalog/operation.ts'
import type { CallResponse } from '../server/core/respond.ts'

/**
 * Runs a call, unless the client has cancelled it meanwhile. Of a call with many items the client is told of the
 * beginning and the end, if it asks to be: all items are one transaction.
 */
export const runWatched = async (
  { mcpReq: { signal, _meta, notify } }: ServerContext,
  { itemwise }: Operation,
  input: Record<string, unknown>,
  run: () => Promise<CallResponse>,
): Promise<CallResponse> => {
  signal.throwIfAborted()
  const items = itemwise && input[itemwise]
  const progressToken = _meta?.progressToken
  if (progressToken === undefined || !Array.isArray(items)) return await run()
  const total = items.length
  const report = (progress: number, message: string) =>
    notify({ method: 'notifications/progress', params: { progressToken, progress, total, message } })
  await report(0, `${total} rows received`)
  const response = await run()
  if (!response.problem) await report(total, 'All rows are done')
  return response
}
