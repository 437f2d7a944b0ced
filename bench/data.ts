import postgres from 'postgres'
import { currentVersion, scopes } from '../catalog/index.ts'
import { hashApiKey, newApiKey } from '../server/keys.ts'
import { createKey, createStaff, createWorkspace } from '../storage/admin.ts'
import { migrate, openStorage } from '../storage/open.ts'

export type Dataset = { databaseUrl: string; workspaceId: string; key: string; contacts: number; firstId: number; names: string[] }

const FIRST = ['Ada', 'Béla', 'Chen', 'Dalia', 'Emre', 'Fatima', 'Grace', 'Hugo', 'Ines', 'Jonas', 'Katarzyna', 'Liam', 'Mara', 'Noor', 'Olga', 'Pablo', 'Quinn',
  'Rosa', 'Samir', 'Tove', 'Ugo', 'Vera', 'Wanjiru', 'Ximena', 'Yusuf', 'Zoë', 'Anders', 'Bruna', 'Carlos', 'Dmitri', 'Elif', 'Farid', 'Gita', 'Hana', 'Ivo', 'Jelena', 'Kofi', 'Lucía', 'Minh', 'Nadia']
const LAST = ['Lovelace', 'Bartók', 'Wang', 'Haddad', 'Yılmaz', 'Khan', 'Hopper', 'Meyer', 'Costa', 'Berg', 'Nowak', 'Murphy', 'Rossi', 'Hassan', 'Ivanova', 'García', 'Adams',
  'Silva', 'Nasser', 'Lindqvist', 'Ricci', 'Novák', 'Otieno', 'Torres', 'Demir', 'Jansen', 'Olsen', 'Souza', 'Ruiz', 'Petrov', 'Kaya', 'Rahimi', 'Patel', 'Sato', 'Horvat', 'Popović', 'Mensah', 'Fernández', 'Nguyen', 'Aziz']

/** A database of its own with this many contacts in one workspace, 5 values, 3 tags and 2 conversations each, and a key with every scope. */
export const fillDatabase = async (adminUrl: string, contacts: number): Promise<Dataset> => {
  const admin = postgres(adminUrl, { max: 1, onnotice: () => {} })
  const name = `wcrm_bench_${contacts}_${process.pid}`
  await admin.unsafe(`create database ${name}`)
  await admin.end()
  const databaseUrl = Object.assign(new URL(adminUrl), { pathname: `/${name}` }).href
  const storage = await openStorage({ databaseUrl }, { connections: 1, unhurried: true })
  const now = new Date().toISOString()
  try {
    await migrate(storage.db)
    const { id: workspaceId } = await createWorkspace(storage.db, { name: 'Bench' }, now)
    const staff = await createStaff(storage.db, workspaceId, { name: 'Owner', role: 'owner' }, [], now)
    const key = newApiKey(false)
    await createKey(storage.db, workspaceId, hashApiKey(key), { staff_id: staff.id, scopes: [...scopes], api_version: currentVersion }, now)
    const firstId = await fill(databaseUrl, Number(workspaceId), contacts)
    return { databaseUrl, workspaceId, key, contacts, firstId, names: FIRST.flatMap((f) => LAST.map((l) => `${f} ${l}`)) }
  } finally {
    await storage.close()
  }
}

export const dropDatabase = async (adminUrl: string, dataset: Dataset): Promise<void> => {
  const admin = postgres(adminUrl, { max: 1, onnotice: () => {} })
  await admin.unsafe(`drop database ${new URL(dataset.databaseUrl).pathname.slice(1)} with (force)`)
  await admin.end()
}

const array = (values: string[]): string => `'{${values.join(',')}}'::text[]`
/** A whole number from 0, spread over the rows by a multiplicative hash so that neighbours differ. */
const spread = (prime: number, below: number): string => `((i::bigint * ${prime}) % 1000003 % ${below})`

const fill = async (databaseUrl: string, w: number, contacts: number): Promise<number> => {
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} })
  const run = (text: string) => sql.unsafe(text)
  // The trigram index is built at the end: much faster, and compact as after a reindex.
  const [{ indexdef }] = await run(`select indexdef from pg_indexes where indexname = 'contacts_search'`) as unknown as [{ indexdef: string }]
  await run(`drop index contacts_search`)
  const fields = await run(`
    insert into custom_fields (workspace_id, key, label, type, options, used, created_at)
    values (${w}, 'plan', 'Plan', 'select', '[{"label":"Free","value":"free"},{"label":"Pro","value":"pro"},{"label":"Team","value":"team"}]', true, now()),
      (${w}, 'score', 'Score', 'int', null, true, now()), (${w}, 'city', 'City', 'text', null, true, now()), (${w}, 'renews', 'Renews on', 'date', null, true, now())
    returning id`) as unknown as { id: string }[]
  const [{ id: email }] = await run(`select id from custom_fields where key = 'email'`) as unknown as [{ id: string }]
  const [plan, score, city, renews] = fields.map((f) => f.id)
  await run(`
    insert into contacts (workspace_id, name, phone, email, chatapp_user_id, starred, dnd, name_key, search, created_at, updated_at, last_activity_at)
    select ${w}, name, phone, email, phone, i % 20 = 0, i % 33 = 0, lower(name), lower(name) || E'\\n' || phone, at, at, at + interval '1 day'
    from (select i, f || ' ' || l as name, (15550000000 + i::bigint * 7)::text as phone, 'c' || i || '@example.com' as email, date_trunc('milliseconds', now() - i * interval '31 seconds') as at
      from (select i, (${array(FIRST)})[1 + ${spread(7919, FIRST.length)}] as f, (${array(LAST)})[1 + ${spread(104729, LAST.length)}] as l from generate_series(1, ${contacts}) as i) as n) as c`)
  await run(`
    insert into contact_facts (workspace_id, contact_id, attrs)
    select ${w}, id, jsonb_build_object('${email}', email, '${plan}', (${array(['free', 'pro', 'team'])})[1 + id % 3], '${score}', id % 100, '${city}', 'City ' || id % 500, '${renews}', '2027-0' || 1 + id % 9 || '-15')
    from contacts where workspace_id = ${w}`)
  await run(`insert into tags (workspace_id, name, name_key, created_at) select ${w}, 'Tag ' || i, 'tag ' || i, now() from generate_series(1, 24) as i`)
  await run(`insert into groups (workspace_id, name, name_key, created_at) select ${w}, 'Group ' || i, 'group ' || i, now() from generate_series(1, 6) as i`)
  await run(`
    insert into contact_tags (workspace_id, tag_id, contact_id)
    select distinct ${w}, t.id, c.id from contacts c, generate_series(0, 2) as k, tags t where t.workspace_id = ${w} and c.workspace_id = ${w} and t.name = 'Tag ' || 1 + (c.id + k * 7) % 24`)
  await run(`
    insert into contact_groups (workspace_id, group_id, contact_id)
    select ${w}, g.id, c.id from contacts c, groups g where g.workspace_id = ${w} and c.workspace_id = ${w} and c.id % 2 = 0 and g.name = 'Group ' || 1 + c.id % 6`)
  await run(`
    insert into conversations (workspace_id, contact_id, channel_id, state, assigned_staff_id, created_at, last_activity_at)
    select ${w}, c.id, 1, case when k = 1 then 'open' else 'closed' end, case when c.id % 3 = 0 then 1 end, c.created_at, c.last_activity_at - k * interval '1 hour'
    from contacts c, generate_series(1, 2) as k where c.workspace_id = ${w}`)
  await run(`
    insert into counters (workspace_id, subject, shard, n) select ${w}, 'contacts', 0, count(*) from contacts
    union all select ${w}, 'tag:' || tag_id, 0, count(*) from contact_tags group by tag_id
    union all select ${w}, 'group:' || group_id, 0, count(*) from contact_groups group by group_id`)
  await run(indexdef)
  await run(`vacuum (analyze)`)
  await run(`checkpoint`)
  const [{ id }] = await run(`select min(id) as id from contacts`) as unknown as [{ id: string }]
  await sql.end()
  return Number(id)
}
