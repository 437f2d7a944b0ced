import { setTimeout as pause } from 'node:timers/promises'

/** Asks `/readyz` of every server twice a second. */
export type ReadinessProbe = { slowestMs: number; statuses: () => string; stop: () => Promise<void> }

const EVERY_MS = 500
const PATIENCE_MS = 10_000

export const startReadinessProbe = (urls: readonly string[]): ReadinessProbe => {
  const counts = new Map<string, number>()
  let isOver = false
  const ask = async (url: string): Promise<void> => {
    const at = performance.now()
    const status = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(PATIENCE_MS) }).then(
      (response) => String(response.status),
      () => 'no answer',
    )
    counts.set(status, (counts.get(status) ?? 0) + 1)
    probe.slowestMs = Math.max(probe.slowestMs, performance.now() - at)
  }
  const asking = Promise.all(
    urls.map(async (url) => {
      while (!isOver) await Promise.all([ask(url), pause(EVERY_MS)])
    }),
  )
  const probe: ReadinessProbe = {
    slowestMs: 0,
    statuses: () => [...counts].map(([status, n]) => `${n} × ${status}`).join(', '),
    stop: async () => {
      isOver = true
      await asking
    },
  }
  return probe
}
