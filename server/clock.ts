import type { Db } from '../storage/database.ts'
import { addToSetting, findSetting, upsertSetting } from '../storage/settings.ts'

/**
 * How far business time is ahead of real time, in milliseconds; kept in the database, so that it is the
 * same on every server.
 */
const KEY = 'clock_offset_ms'
/** Ten years: dates stay within what everything downstream can hold. */
const MAX_OFFSET_MS = 10 * 365 * 24 * 60 * 60 * 1000

/** Whose clock it is. */
type Owner = { readonly db: Db; readonly clock: { offsetMs: number } }

/** Takes over what another server advanced. */
export const refreshClock = async ({ db, clock }: Owner): Promise<void> => {
  clock.offsetMs = Number((await findSetting(db, KEY)) ?? 0)
}

/**
 * Advances business time on every server, on this one at once. Undefined when it would be more than ten
 * years ahead.
 */
export const advanceClock = async ({ db, clock }: Owner, ms: number): Promise<number | undefined> => {
  const offset = await addToSetting(db, KEY, ms, MAX_OFFSET_MS)
  if (offset !== undefined) clock.offsetMs = offset
  return offset
}

/** The clock as the sandbox asks for it. */
export const createSandboxClock = ({ db, clock }: Owner) => ({
  offsetMs: (): number => clock.offsetMs,
  setOffset: async (ms: number): Promise<void> => {
    await upsertSetting(db, KEY, String(ms))
    clock.offsetMs = ms
  },
})
