import { finishErasures } from './person.ts'
import type { TestServer } from './servers.ts'

/**
 * Does what calls of a workspace left to jobs: changes of many records, messages to many, exports and erasures. What
 * the sandbox reports of messages and templates waits for `settle` of the server.
 */
export const finishBackgroundWork = async (server: TestServer, workspaceId: string): Promise<void> => {
  for (const name of ['bulk-jobs', 'bulk-sends', 'exports'] as const)
    await server.app.jobs.job(name).runOnce()
  await finishErasures(server, workspaceId)
}
