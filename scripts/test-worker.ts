import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { closeSharedServers } from '../tests/servers.ts'

/**
 * Runs test files one after another in this process, so that they share what is slow to start: the modules,
 * and a server on each database. The parent sends a file at a time, and an empty name to end the process;
 * `test-reporter.ts`, which runs in this process too, sends the results.
 */
const runFile = async (file: string): Promise<void> => {
  let failed = false
  let cause: unknown
  try {
    await import(pathToFileURL(file).href)
  } catch (error) {
    failed = true
    cause = error
  }
  // Tests of the top level run in turn, so that this one ends the file; the reporter knows it by its place.
  await test(file, () => {
    if (failed) throw cause
  })
}

/** How long what is still open after the last test may take to end. */
const GRACE_MS = 10_000

/** Ends this process by having nothing left to do; what keeps it alive is a fault of a test, and is named. */
const endProcess = async (): Promise<void> => {
  await closeSharedServers()
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
