import type { App } from '../app.ts'
import { businessTime } from '../clock.ts'
import type { Guard } from '../kernel/guard.ts'

/** Terminals show times as the workspace has them, whose clock a sandbox may have moved. */
export const workspaceClock: Guard<App> = {
  admit: (app, { request, actor: { workspace }, headers }) => {
    if (request.transport !== 'cli') return
    headers['Workspace-Time-Zone'] = workspace.timezone
    headers['Workspace-Time'] = businessTime(app, workspace.id)
  },
}
