import { setTimeout as pause } from 'node:timers/promises'

export const MAX_RETRIES = 4
const FIRST_PAUSE_MS = 500

/** Repeats what a store refused: one that is away for some seconds does not end a command of hours. */
export const withRetries = async <T>(work: () => Promise<T>): Promise<T> => {
  for (let attempt = 0; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      if (attempt >= MAX_RETRIES) throw error
      await pause(FIRST_PAUSE_MS * 2 ** attempt)
    }
  }
}
