import type { TestContext } from 'node:test'
import type { TestServer } from './servers.ts'

const HOUR_MS = 3_600_000

/** Sets the clock of this process back for the rest of the test; the database's clock is unchanged. */
export const slowClockDown = (test: TestContext): void =>
  test.mock.timers.enable({ apis: ['Date'], now: Date.now() - 2 * HOUR_MS })

/** The same, and waits until the server has noticed it. */
export const noticeSlowClock = async (test: TestContext, { app }: TestServer): Promise<void> => {
  slowClockDown(test)
  await app.jobs.job('server-clock').runOnce()
}

/** Sets the clock of this process ahead for the rest of the test; that of the database goes on. */
export const setClockAhead = (test: TestContext, minutes: number): void =>
  test.mock.timers.enable({ apis: ['Date'], now: Date.now() + minutes * 60_000 })

/** Variables of a process whose clock is so many hours ahead, or behind, from its start. */
export const createClockVariables = (hoursAhead: number) => ({
  NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(`
    const RealDate = Date
    globalThis.Date = class extends RealDate {
      constructor(...args) {
        super(...(args.length > 0 ? args : [RealDate.now() + ${hoursAhead * HOUR_MS}]))
      }
      static now() {
        return RealDate.now() + ${hoursAhead * HOUR_MS}
      }
    }`)}`,
})
