import { readFileSync } from 'node:fs'
import { currentVersion, scopes } from '../../catalog/index.ts'
import { createApiKey, hashApiKey } from '../../server/api-keys.ts'
import { createKey } from '../../storage/admin-keys.ts'
import { createStaff, createWorkspace } from '../../storage/admin.ts'
import { migrate } from '../../storage/migrate.ts'
import type { Location } from '../../storage/open.ts'
import { withStorage } from '../databases.ts'

/** Creates a workspace in a database that no server has open. Returns the key of its owner. */
export const createOwnerKey = (location: Location): Promise<string> =>
  withStorage(location, async ({ db }) => {
    await migrate(db)
    const now = new Date().toISOString()
    const { id } = await createWorkspace(db, { name: 'Sockets' }, now)
    const { id: staffId } = await createStaff(db, id, { name: 'Owner', role: 'owner' }, [], now)
    const key = createApiKey(false)
    const fields = { staff_id: staffId, scopes: [...scopes], api_version: currentVersion }
    await createKey(db, id, hashApiKey(key), fields, now)
    return key
  })

/** Bytes of memory that a process has. */
export const readMemory = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024
