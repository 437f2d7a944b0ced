import postgres from 'postgres'
import { createChannel, createStaff, createWorkspace } from '../../storage/workspace/admin.ts'
import { migrate } from '../../storage/migrations/migrate.ts'
import { openStorage, type Storage } from '../../storage/open.ts'
import { encodeUlidTime } from '../../storage/events/ulid-time.ts'
import { createBenchDatabase, createFullKey, runStatements } from './databases.ts'
import { fillWorkspace } from './history.ts'

export type SampleContact = { id: string; name: string | null; phone: string | null }
/**
 * A filled database. `people`: a sample of the contacts, the same in every run. `broadcastId`: the broadcast
 * with the most recipients.
 */
export type Dataset = {
  databaseUrl: string
  workspaceId: string
  key: string
  /** More of the same owner. */
  otherKeys: readonly string[]
  contacts: number
  people: SampleContact[]
  broadcastId: string
}

/**
 * Creates a database with this many contacts in one workspace, each with 5 values, 3 tags and 2
 * conversations, and a key with every scope.
 */
export const fillDatabase = async (adminUrl: string, contacts: number): Promise<Dataset> => {
  const databaseUrl = await createBenchDatabase(adminUrl, String(contacts))
  const storage = await openStorage({ databaseUrl }, { connections: 2, noTimeout: true })
  try {
    const filled = await fillStorage(storage, contacts)
    return { databaseUrl, contacts, ...filled, ...(await prepareForQueries(databaseUrl, filled.workspaceId)) }
  } finally {
    await storage.close()
  }
}

/** Tags that contacts do not have yet, named by number from 0: `bench 0`. */
const BENCH_TAGS = 200

/** Adds what the cases of `cases.ts` need beside contacts: events, and tags to give. */
export const prepareForCases = (databaseUrl: string, workspaceId: string): Promise<void> =>
  runStatements(databaseUrl, [
    `insert into tags (workspace_id, name, name_key, created_at)
      select ${workspaceId}, 'bench ' || n, 'bench ' || n, now()
      from generate_series(0, ${BENCH_TAGS - 1}) as n`,
    `insert into events (workspace_id, id, type, occurred_at, data)
      select workspace_id, 'evt_${encodeUlidTime(Date.now())}' || lpad(id::text, 16, '0'), 'contact.created/1', now(),
        jsonb_build_object('contact', jsonb_build_object('id', id::text, 'name', name, 'phone', phone,
          'dnd', dnd, 'starred', starred, 'created_at', created_at, 'updated_at', updated_at))
      from contacts where workspace_id = ${workspaceId} order by id limit 1000`,
    'analyze tags, events',
  ])

const OTHER_KEYS = 7

/** Fills an open database. `otherKeys`: of the same owner. */
export const fillStorage = async (
  { db }: Storage,
  contacts: number,
): Promise<{ workspaceId: string; key: string; otherKeys: string[] }> => {
  const now = new Date().toISOString()
  await migrate(db)
  const { id: workspaceId } = await createWorkspace(db, { name: 'Bench' }, now)
  const staff = await createStaff(db, workspaceId, { name: 'Owner', role: 'owner' }, [], now)
  await createChannel(
    db,
    workspaceId,
    { type: 'chatapp', name: 'Main line', status: 'connected', is_default: true },
    now,
  )
  const key = await createFullKey(db, workspaceId, staff.id, now)
  const otherKeys: string[] = []
  while (otherKeys.length < OTHER_KEYS) otherKeys.push(await createFullKey(db, workspaceId, staff.id, now))
  await fillWorkspace(db, workspaceId, { contacts, now })
  return { workspaceId, key, otherKeys }
}

/**
 * Vacuums, analyses and writes out the database, as after a quiet night. Returns samples of it. Its messages count as
 * indexed, though they are not: a server would index them while it is measured, for minutes, and no case searches them.
 */
const prepareForQueries = async (
  databaseUrl: string,
  workspaceId: string,
): Promise<Pick<Dataset, 'people' | 'broadcastId'>> => {
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} })
  await sql`
    update message_search_progress set indexed_to = (select last_value from messages_id_seq)`
  await sql.unsafe('vacuum (analyze)')
  await sql.unsafe('checkpoint')
  const people = await sql<
    SampleContact[]
  >`select id, name, phone from contacts where workspace_id = ${workspaceId} order by hashint8(id)
    limit 20000`
  const [largest] = await sql<{ id: string }[]>`
    select broadcast_id as id from broadcast_recipients
      where workspace_id = ${workspaceId} group by broadcast_id order by count(*) desc limit 1`
  await sql.end()
  return { people: people.map(({ id, name, phone }) => ({ id, name, phone })), broadcastId: largest!.id }
}
