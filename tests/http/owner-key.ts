import { readFileSync } from 'node:fs'
import { currentVersion, scopes } from '../../catalog/index.ts'
import { createApiKey, hashApiKey } from '../../server/api-keys.ts'
import { createKey, type KeyFields } from '../../storage/access/admin-keys.ts'
import { createStaff, createWorkspace, type StaffFields } from '../../storage/workspace/admin.ts'
import type { Db } from '../../storage/database.ts'
import { migrate } from '../../storage/migrations/migrate.ts'
import type { Location } from '../../storage/open.ts'
import { withStorage } from '../databases.ts'

/** Creates a staff member with a key, which has all scopes unless told otherwise. Returns the key. */
export const createStaffKey = async (
  db: Db,
  workspaceId: string,
  staff: StaffFields,
  fields: Partial<KeyFields> = {},
): Promise<string> => {
  const now = new Date().toISOString()
  const { id } = await createStaff(db, workspaceId, staff, [], now)
  const key = createApiKey(false)
  const all = { staff_id: id, scopes: [...scopes], api_version: currentVersion, ...fields }
  await createKey(db, workspaceId, hashApiKey(key), all, now)
  return key
}

/** Creates a workspace and the key of its owner, in a database that may have no tables yet. */
export const createOwner = async (db: Db): Promise<{ workspaceId: string; key: string }> => {
  await migrate(db)
  const { id } = await createWorkspace(db, { name: 'Test' }, new Date().toISOString())
  return { workspaceId: id, key: await createStaffKey(db, id, { name: 'Owner', role: 'owner' }) }
}

/** The same in a database that no server has open. Returns the key. */
export const createOwnerKey = (location: Location): Promise<string> =>
  withStorage(location, async ({ db }) => (await createOwner(db)).key)

/** Bytes of memory that a process has. */
export const readMemory = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024
