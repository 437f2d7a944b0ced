import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'

/** A process may take long to start on a busy machine, and the jobs of a server have intervals of seconds. */
const LIMIT_MS = 120_000
const PAUSE_MS = 5

/** Waits until a condition holds that something asynchronous brings about. */
export const waitUntil = async (what: string, holds: () => boolean | Promise<boolean>): Promise<void> => {
  for (const end = performance.now() + LIMIT_MS; !(await holds());) {
    assert.ok(performance.now() < end, `it never happened: ${what}`)
    await pause(PAUSE_MS)
  }
}
