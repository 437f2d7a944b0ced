import postgres from 'postgres'
import { currentVersion, scopes } from '../catalog/index.ts'
import { generateContacts } from '../server/demo/generate.ts'
import { hashApiKey, createApiKey } from '../server/api-keys.ts'
import { createChannel, createKey, createStaff, createWorkspace } from '../storage/admin.ts'
import { migrate, openStorage } from '../storage/open.ts'

export type Person = { id: string; name: string | null; phone: string | null }
/**
 * `people`: some contacts, spread over all, the same in every run. `broadcastId`: the one with the most
 * recipients.
 */
export type Dataset = {
  databaseUrl: string
  workspaceId: string
  key: string
  contacts: number
  people: Person[]
  broadcastId: string
}

/**
 * A database of its own with this many contacts in one workspace, 5 values, 3 tags and 2 conversations
 * each, and a key with every scope.
 */
export const fillDatabase = async (adminUrl: string, contacts: number): Promise<Dataset> => {
  const name = `wcrm_bench_${contacts}_${process.pid}`
  await administer(adminUrl, `create database ${name}`)
  const databaseUrl = Object.assign(new URL(adminUrl), { pathname: `/${name}` }).href
  const storage = await openStorage({ databaseUrl }, { connections: 2, noTimeout: true })
  const now = new Date().toISOString()
  try {
    await migrate(storage.db)
    const { id: workspaceId } = await createWorkspace(storage.db, { name: 'Bench' }, now)
    const staff = await createStaff(storage.db, workspaceId, { name: 'Owner', role: 'owner' }, [], now)
    await createChannel(
      storage.db,
      workspaceId,
      { type: 'chatapp', name: 'Main line', status: 'connected', is_default: true },
      now,
    )
    const key = createApiKey(false)
    await createKey(
      storage.db,
      workspaceId,
      hashApiKey(key),
      { staff_id: staff.id, scopes: [...scopes], api_version: currentVersion },
      now,
    )
    await generateContacts(storage.db, workspaceId, { contacts, seed: 1, now })
    return { databaseUrl, workspaceId, key, contacts, ...(await settle(databaseUrl, workspaceId)) }
  } finally {
    await storage.close()
  }
}

export const dropDatabase = (adminUrl: string, dataset: Dataset): Promise<void> =>
  administer(adminUrl, `drop database ${new URL(dataset.databaseUrl).pathname.slice(1)} with (force)`)

const administer = async (url: string, statement: string): Promise<void> => {
  const sql = postgres(url, { max: 1, onnotice: () => {} })
  await sql.unsafe(statement)
  await sql.end()
}

/** As after a night's rest: vacuumed, analysed and written out. */
const settle = async (
  databaseUrl: string,
  workspaceId: string,
): Promise<Pick<Dataset, 'people' | 'broadcastId'>> => {
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} })
  await sql.unsafe('vacuum (analyze)')
  await sql.unsafe('checkpoint')
  const people = await sql<
    Person[]
  >`select id, name, phone from contacts where workspace_id = ${workspaceId} order by hashint8(id) limit 20000`
  const [largest] = await sql<{ id: string }[]>`
    select broadcast_id as id from broadcast_recipients where workspace_id = ${workspaceId} group by broadcast_id order by count(*) desc limit 1`
  await sql.end()
  return { people: people.map(({ id, name, phone }) => ({ id, name, phone })), broadcastId: largest!.id }
}
