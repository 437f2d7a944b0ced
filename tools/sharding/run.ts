import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import type { Db } from '../../storage/database.ts'
import { migrate } from '../../storage/migrations/migrate.ts'
import { openStorage } from '../../storage/open.ts'

/**
 * What stands in the way of dividing the tables by `workspace_id` over several PostgreSQL servers (docs/capacity.md).
 * `npx node tools/sharding/run.ts` prints it for the newest schema; a test holds the schema to the lists below.
 */

/** Tables that every server would have a copy of, or that stay on one: small, or read before a workspace is known. */
export const UNDISTRIBUTED: Readonly<Record<string, string>> = {
  migrations: "the schema's own",
  settings: "the server's own, a few rows",
  servers: "the server's own, a few rows",
  rate_buckets: "the server's own, emptied within minutes",
  workspaces: 'one row for each workspace; copied to every server',
  message_search_progress: 'one row: how far the index of all messages is',
  provider_updates:
    'the inbox of the webhook: the workspace of an update is known when it is applied; kept for 8 days',
  oauth_records: 'most of its rows exist before anybody has signed in',
  sandbox_customers: 'the side of the provider, in tests alone',
  sandbox_faults: 'the side of the provider, in tests alone',
  sandbox_links: 'the side of the provider, in tests alone',
  sandbox_media: 'the side of the provider, in tests alone',
  sandbox_messages: 'the side of the provider, in tests alone',
  sandbox_numbers: 'the side of the provider, in tests alone',
  sandbox_settings: 'the side of the provider, in tests alone',
  sandbox_subscriptions: 'the side of the provider, in tests alone',
  sandbox_templates: 'the side of the provider, in tests alone',
  sandbox_updates: 'the side of the provider, in tests alone',
  sandbox_uploads: 'the side of the provider, in tests alone',
}

/** Unique indexes of divided tables without `workspace_id`: each becomes a small table that names the workspace. */
export const GLOBAL_KEYS: Readonly<Record<string, string>> = {
  api_keys_hash_key:
    'a key is looked up before its workspace is known; 202 random bits are unique without an index',
  channel_tokens_hash: 'a token is looked up before its workspace is known; random too',
  login_codes_hash: 'a code is looked up before its workspace is known; random too',
  oauth_grants_hash: 'a grant is looked up before its workspace is known; random too',
  channels_phone_number: "the provider's number leads to its workspace",
  provider_accounts_account: "the provider's account leads to its workspace",
  short_links_qr: "the provider's id of a link leads to its workspace",
}

/** Defaults and columns that count on one server. */
export const ONE_SERVER: Readonly<Record<string, string>> = {
  'events.xid':
    'the order of the log is that of transactions of one server: good within a workspace, which is on one server; ' +
    'a workspace that moves needs its events renumbered',
}

/** Tables whose rows are found by lists and jobs in the order of `workspace_id` and need no unique key. */
const KEYLESS = ['contact_attributes']

export type Obstacle = { name: string; why: string }

type Row = { name: string; why: string }

/** Returns what contradicts the rule, known exceptions included, each by the name of a table, an index or a column. */
export const listObstacles = async (db: Db): Promise<Obstacle[]> => {
  const { rows } = await sql<Row>`
    with tables as (
      select c.oid, c.relname::text as name,
        exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'workspace_id') as divided
      from pg_class c
      where c.relkind in ('r', 'p') and not c.relispartition and c.relnamespace = 'public'::regnamespace
    )
    select name, 'has no workspace_id' as why from tables where not divided
    union all
    select name, 'has neither a primary key nor a unique index' from tables t
      where divided and not exists (select from pg_index i where i.indrelid = t.oid and i.indisunique)
    union all
    select i.indexrelid::regclass::text, 'is unique, and does not begin with workspace_id'
      from tables t join pg_index i on i.indrelid = t.oid
      left join pg_attribute a on a.attrelid = t.oid and a.attnum = i.indkey[0]
      where t.divided and i.indisunique and a.attname is distinct from 'workspace_id'
    union all
    select k.conname::text, 'is a foreign key without workspace_id on both sides'
      from pg_constraint k join tables t on t.oid = k.conrelid
      where k.contype = 'f' and not exists (
        select from unnest(k.conkey, k.confkey) as pair (own, other)
        join pg_attribute a on a.attrelid = k.conrelid and a.attnum = pair.own and a.attname = 'workspace_id'
        join pg_attribute b on b.attrelid = k.confrelid and b.attnum = pair.other and b.attname = 'workspace_id')
    union all
    select t.name || '.' || a.attname, 'counts on one server: ' || pg_get_expr(d.adbin, d.adrelid)
      from tables t join pg_attrdef d on d.adrelid = t.oid
      join pg_attribute a on a.attrelid = t.oid and a.attnum = d.adnum
      where pg_get_expr(d.adbin, d.adrelid) ~ 'xact_id|txid|event_position'
    order by 1`.execute(db)
  return rows.filter(({ name }) => !KEYLESS.includes(name))
}

const main = async (): Promise<void> => {
  const dataDir = mkdtempSync(join(tmpdir(), 'wcrm-sharding-'))
  const storage = await openStorage({ dataDir })
  try {
    await migrate(storage.db)
    const known: Readonly<Record<string, string>> = { ...UNDISTRIBUTED, ...GLOBAL_KEYS, ...ONE_SERVER }
    const obstacles = await listObstacles(storage.db)
    for (const { name, why } of obstacles)
      console.log(
        `${known[name] === undefined ? 'NEW' : 'known'}  ${name} ${why}${known[name] ? `: ${known[name]}` : ''}`,
      )
    if (obstacles.some(({ name }) => known[name] === undefined)) process.exitCode = 1
  } finally {
    await storage.close()
    rmSync(dataDir, { recursive: true, force: true })
  }
}

if (import.meta.main) await main()
