import { createHook } from 'node:async_hooks'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import fc from 'fast-check'
import { closeAll } from '../tests/at-end.ts'
import { propertySeed } from '../tests/level.ts'
import { isPooledFile } from './pooled-files.ts'

/**
 * Runs test files one after another in this process, so that they share what is slow to start: the modules,
 * and a server on each database. The parent sends a file at a time, and an empty name to end the process;
 * `test-reporter.ts`, which runs in this process too, sends the results.
 */

type AsyncHook = ReturnType<typeof createHook>

/**
 * The hooks by which node's runner follows every promise back to its test. It needs them while a file is
 * imported, where they tell in which suite a test is; while tests run they take up to a quarter of the time.
 */
const followingHooks = new Set<AsyncHook>()

const anyHook = Object.getPrototypeOf(createHook({})) as { enable: (this: AsyncHook) => AsyncHook }
const { enable } = anyHook
anyHook.enable = function () {
  followingHooks.add(this)
  return enable.call(this)
}

/**
 * A failing property is made smaller for so long: the test then ends with what failed, before its own time is over,
 * which would hide it. A property that is merely slow fails too.
 */
const PROPERTY_TIMEOUT_MS = process.env.WCRM_TEST_LEVEL === 'soak' ? 540_000 : 240_000
fc.configureGlobal({
  interruptAfterTimeLimit: PROPERTY_TIMEOUT_MS,
  markInterruptAsFailure: true,
  ...(propertySeed === undefined ? {} : { seed: propertySeed }),
})

/** Errors that nobody caught. Without the hooks no single test has them, so that they fail the file. */
let uncaught: unknown[] = []
const collect = (error: unknown): void => void uncaught.push(error)
process.on('uncaughtException', collect)
process.on('unhandledRejection', collect)

const { WCRM_TEST_POOLER_URL: poolerUrl, WCRM_TEST_POOL_ALL: poolsAll } = process.env

const runFile = async (file: string): Promise<void> => {
  for (const hook of followingHooks) enable.call(hook)
  if (poolerUrl && isPooledFile(file, poolsAll !== undefined)) process.env.WCRM_TEST_POOLED = '1'
  else delete process.env.WCRM_TEST_POOLED
  try {
    await import(pathToFileURL(file).href)
  } catch (error) {
    uncaught.push(error)
  }
  // Tests of the top level run in turn, so that this one ends the file; the reporter knows it by its place.
  const ended = test(file, () => {
    const errors = uncaught
    uncaught = []
    if (errors.length > 0) throw errors[0]
  })
  for (const hook of followingHooks) hook.disable()
  await ended
}

/** How long what is still open after the last test may take to end. */
const GRACE_MS = 10_000

/** Ends this process by having nothing left to do; what keeps it alive is a fault of a test, and is named. */
const endProcess = async (): Promise<void> => {
  await closeAll()
  process.removeAllListeners('disconnect')
  process.disconnect?.()
  setTimeout(() => {
    console.error(`Tests left something open: ${process.getActiveResourcesInfo().join(', ')}`)
    process.exit(1)
  }, GRACE_MS).unref()
}

process.on('message', (file: string) => void (file === '' ? endProcess() : runFile(file)))
// The parent is gone, so nobody waits for a result.
process.on('disconnect', () => process.exit(1))
