import { after } from 'node:test'

/** Cleanup of resources that test files of one process share. */
const closers: (() => Promise<unknown>)[] = []

/** Registers `close` to run at the end of the process: `scripts/test-worker.ts` runs many files in one. */
export const atEnd = (close: () => Promise<unknown>): void => void closers.push(close)

/** Closes everything, in reverse order of registration. */
export const closeAll = async (): Promise<void> => {
  for (let close = closers.pop(); close; close = closers.pop()) await close()
}

if (!process.env.WCRM_TEST_WORKER) after(closeAll)
