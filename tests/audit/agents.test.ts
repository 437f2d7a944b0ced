import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import { type AuditFilter, listAuditRows } from '../../storage/access/audit.ts'
import type { Db } from '../../storage/database.ts'
import { databases, onMigratedDatabase } from '../databases.ts'

const KEYS = 600
const STAFF = 3
const ROWS = 8000
const LIMIT = 7

/** Every second key is of an agent. Odd rows are of agents: of the older half only, where `agentsEnd`. */
const insertRows = async (db: Db, agentsEnd: boolean): Promise<void> => {
  await sql`
    insert into api_keys (workspace_id, id, hash, staff_id, scopes, agent, api_version, created_at)
    overriding system value
    select 1, n, n::text::bytea, 1 + n % ${STAFF}::int, '{}', n % 2 = 1, 'x', now()
    from generate_series(0, ${KEYS - 1}::int) as n`.execute(db)
  await sql`
    insert into audit_log (workspace_id, id, staff_id, key_id, door, operation, outcome, dry_run, confirmed, request_id)
    select 1, (((extract(epoch from now()) * 1000)::bigint - ${ROWS}::int + n) << 18) + n, 1 + key % ${STAFF}::int, key,
      case when n % 500 < 2 then 'mcp' else 'rest' end, 'crm_create_group', 'done', false, false, 'r' || n
    from (
      select n, (n * 7 % ${KEYS}::int) / 2 * 2 + case when n > ${agentsEnd ? ROWS / 4 : ROWS}::int then 0 else n % 2 end
        as key
      from generate_series(1, ${ROWS}::int) as n) as u`.execute(db)
  await sql.raw('analyze audit_log, api_keys').execute(db)
}

const countScans = async (tx: Db): Promise<number> => {
  const { rows } = await sql<{ n: number }>`
    select sum(idx_scan)::int as n from pg_stat_xact_user_tables where relname like 'audit_log%'`.execute(tx)
  return rows[0]!.n
}

/** Compares the first pages with what the rows and keys say. */
const checkPages = async (db: Db, filter: AuditFilter): Promise<void> => {
  const { rows } = await sql<{ id: string }>`
    select a.id::text as id from audit_log a join api_keys k on k.workspace_id = 1 and k.id = a.key_id
    where a.workspace_id = 1 and (${filter.agent ?? null}::boolean is null or k.agent = ${filter.agent ?? null})
      and (${filter.staff_id ?? null}::bigint is null or k.staff_id = ${filter.staff_id ?? null})
      and (${filter.door ?? null}::text is null or a.door = ${filter.door ?? null})
    order by a.id desc limit ${3 * LIMIT}`.execute(db)
  const expected = rows.map(({ id }) => id)
  const listed: string[] = []
  for (let page = 1; page <= 3; page++)
    listed.push(...(await listAuditRows(db, '1', filter, listed.at(-1), LIMIT)).map(({ id }) => id))
  assert.deepEqual(listed, expected)
}

for (const database of databases) {
  describe(`Rows of AI agents in the audit trail (${database})`, () => {
    for (const [name, agentsEnd] of [
      ['that call', false],
      ['that called', true],
    ] as const)
      it(`${name} are listed without a look-up for each key, where there are recent ones`, async () => {
        await onMigratedDatabase(database, async (db) => {
          await insertRows(db, agentsEnd)
          for (const agent of [true, false])
            for (const more of [{}, { door: 'mcp' }, { staff_id: '2' }] as const)
              await checkPages(db, { agent, ...more })
          await checkPages(db, { staff_id: '2' })
          await db.transaction().execute(async (tx) => {
            const before = await countScans(tx)
            const rows = await listAuditRows(tx, '1', { agent: agentsEnd ? false : true }, undefined, LIMIT)
            assert.equal(rows.length, LIMIT)
            const scans = (await countScans(tx)) - before
            assert.ok(scans < KEYS / 4, `${scans} scans`)
          })
        })
      })
  })
}
