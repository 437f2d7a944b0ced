import { finishErasures } from './person.ts'
import type { TestServer } from './servers.ts'

/**
 * Runs the background jobs that calls of a workspace started: changes of many records, bulk messages, exports and
 * erasures. Reports of the sandbox on messages and templates wait for `settle` of the server.
 */
export const finishBackgroundWork = async (server: TestServer, workspaceId: string): Promise<void> => {
  for (const name of ['bulk-jobs', 'bulk-sends', 'exports'] as const)
    await server.app.jobs.job(name).runOnce()
  await finishErasures(server, workspaceId)
}
