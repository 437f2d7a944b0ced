/** Waits for `work`, but no longer than `ms`. Returns whether it ended in time; rejects when it does. */
export const waitAtMost = async (ms: number, work: Promise<unknown>): Promise<boolean> => {
  let timer: NodeJS.Timeout | undefined
  const expired = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), ms)
  })
  return await Promise.race([work.then(() => true), expired]).finally(() => clearTimeout(timer))
}
