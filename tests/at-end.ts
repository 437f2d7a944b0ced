import { after } from 'node:test'

/** What closes the things that files of one process share, or leave open for one another. */
const closers: (() => Promise<unknown>)[] = []

/** Has `close` run at the end of the process: `scripts/test-worker.ts` runs many files in one. */
export const atEnd = (close: () => Promise<unknown>): void => void closers.push(close)

/** Closes everything, what was opened last first. */
export const closeAll = async (): Promise<void> => {
  for (let close = closers.pop(); close; close = closers.pop()) await close()
}

if (!process.env.WCRM_TEST_WORKER) after(closeAll)
