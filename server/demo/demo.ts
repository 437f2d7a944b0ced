import { currentVersion, scopes } from '../../catalog/index.ts'
import { createKey, createStaff, createWorkspace } from '../../storage/admin.ts'
import type { Db } from '../../storage/database.ts'
import { hashApiKey, newApiKey } from '../keys.ts'

export type Demo = { workspaceId: string; apiKey: string; testKey: string }

/** Creates the demo workspace. Both keys belong to the owner and hold all scopes. */
export const createDemo = async (db: Db, now: string): Promise<Demo> => {
  const workspace = await createWorkspace(db, { name: 'Demo', timezone: 'Europe/Berlin' }, now)
  const owner = await createStaff(db, workspace.id, { name: 'Olivia Owner', role: 'owner', reports: true }, [], now)
  const key = async (test: boolean) => {
    const text = newApiKey(test)
    await createKey(db, workspace.id, hashApiKey(text), { staff_id: owner.id, scopes: [...scopes], name: test ? 'demo test' : 'demo', test, api_version: currentVersion }, now)
    return text
  }
  return { workspaceId: workspace.id, apiKey: await key(false), testKey: await key(true) }
}
