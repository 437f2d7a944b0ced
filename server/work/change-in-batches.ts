/** What is changed is locked, and its changes are sent to replicas at once: a fraction of a second each. */
const TARGET_MS = 250
const FIRST_BATCH = 1000
const MAX_BATCH = 20_000
/** The next run goes on. */
const BUDGET_MS = 20_000

/**
 * Deletes or changes batch after batch until one is not full, so that a run comes to all that has become due since
 * the last one, however much it is. Batches grow while they are fast. `changeBatch` returns how many rows it changed,
 * at least `limit` while there are more. Returns the count.
 */
export const changeInBatches = async (
  changeBatch: (limit: number) => Promise<number>,
  signal?: AbortSignal,
): Promise<number> => {
  const startedAt = performance.now()
  let changed = 0
  for (let limit = FIRST_BATCH; !signal?.aborted && performance.now() - startedAt < BUDGET_MS;) {
    const batchStartedAt = performance.now()
    const count = await changeBatch(limit)
    changed += count
    if (count < limit) break
    const tookMs = performance.now() - batchStartedAt
    if (tookMs > 2 * TARGET_MS) limit = Math.max(FIRST_BATCH, Math.floor(limit / 2))
    else if (tookMs < TARGET_MS) limit = Math.min(MAX_BATCH, limit * 2)
  }
  return changed
}
