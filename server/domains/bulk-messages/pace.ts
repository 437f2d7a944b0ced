import { setTimeout as sleep } from 'node:timers/promises'

/** Spaces sends evenly: `wait` returns when the next one may begin. */
export const createPace = (perSecond: number): { wait: () => Promise<void> } => {
  const stepMs = 1000 / perSecond
  let next = performance.now()
  return {
    wait: async () => {
      const now = performance.now()
      // What was not used is lost, but for a moment that a timer was late.
      next = Math.max(next + stepMs, now - 5 * stepMs)
      if (next > now) await sleep(next - now)
    },
  }
}
