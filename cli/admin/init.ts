import { currentVersion, scopes } from '../../catalog/index.ts'
import { createApiKey, hashApiKey } from '../../server/api-keys.ts'
import { createKey } from '../../storage/access/admin-keys.ts'
import {
  createStaff,
  createWorkspace,
  hasNoWorkspace,
  lockWorkspaces,
} from '../../storage/workspace/admin.ts'
import { conflictError, nameFlag, omitUndefined, timezoneFlag } from './flags.ts'
import type { AdminVerb } from './verb.ts'

const alreadyExistsError = () =>
  conflictError(
    'A workspace exists',
    'The database has a workspace already. Nothing was changed. Create further ones with: wcrm admin ' +
      'workspaces create, staff create and keys create.',
  )

/** `wcrm admin init`: what an empty database needs before the first call, at once or not at all. */
export const initVerb: AdminVerb = {
  name: 'init',
  access: 'create',
  summary: 'Create the first workspace with its owner and a key of every scope, which is shown only once',
  about:
    'For an empty database, in place of the demo workspace: start the server with --no-demo, before or after ' +
    'this. Refused when a workspace exists.',
  scoped: false,
  required: [
    ['--workspace <name>', 'display name of the workspace'],
    ['--owner <name>', 'display name of the staff member who owns it'],
  ],
  options: [['--timezone <zone>', 'IANA time zone of reports and relative dates (default: UTC)']],
  run: async (session, flags) => {
    const name = nameFlag(flags, 'workspace')!
    const ownerName = nameFlag(flags, 'owner')!
    const timezone = timezoneFlag(flags)
    const { now } = session
    const key = createApiKey(false)
    const db = await session.db()
    const { workspace, owner, keyId } = await db.transaction().execute(async (tx) => {
      await lockWorkspaces(tx)
      if (!(await hasNoWorkspace(tx))) throw alreadyExistsError()
      const workspace = await createWorkspace(tx, omitUndefined({ timezone, name }) as { name: string }, now)
      const owner = await createStaff(tx, workspace.id, { name: ownerName, role: 'owner' }, [], now)
      const fields = { staff_id: owner.id, scopes: [...scopes], name: null, api_version: currentVersion }
      const { id: keyId } = await createKey(tx, workspace.id, hashApiKey(key), fields, now)
      return { workspace, owner, keyId }
    })
    return {
      workspace_id: workspace.id,
      workspace: workspace.name,
      timezone: workspace.timezone,
      staff_id: owner.id,
      owner: owner.name,
      key_id: keyId,
      key,
    }
  },
}
