import type { Db } from '../../storage/database.ts'
import { findSetting, upsertSetting } from '../../storage/workspace/settings.ts'
import type { SandboxClock } from './emulator/call.ts'

/** How far the time of a sandbox that runs alone is ahead of real time, in milliseconds. */
const KEY = 'clock_offset_ms'

/** Loads the clock of a sandbox that runs alone: its time, for all of its numbers. */
export const loadSandboxClock = async (db: Db): Promise<SandboxClock> => {
  let offset = Number((await findSetting(db, KEY)) ?? 0)
  return {
    offsetMs: () => offset,
    setOffset: async (ms) => {
      await upsertSetting(db, KEY, String(ms))
      offset = ms
    },
  }
}
