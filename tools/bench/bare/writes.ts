import { createHash, randomBytes, randomUUID } from 'node:crypto'
import type { Database } from './database.ts'

/** The rows that every change writes beside its own: event, audit row and idempotency record. */
const recordSql = `
  written as (
    insert into events (workspace_id, id, type, occurred_at, data)
    select $1::bigint, $2::text, $3::text, $4::timestamptz, data from changed returning id, type, occurred_at
  ), to_deliver as (
    insert into webhook_deliveries
      (workspace_id, id, endpoint_id, event_id, event_type, next_attempt_at, created_at)
    select $1::bigint, 'dlv_' || gen_random_uuid()::text, p.id, w.id, w.type, clock_timestamp(), w.occurred_at
    from webhook_endpoints p, written w
    where p.workspace_id = $1::bigint and p.status <> 'disabled' and p.deleted_at is null
      and exists (
        select from webhook_subscriptions s
        where s.workspace_id = p.workspace_id and s.endpoint_id = p.id and s.event_type in (w.type, '*')
          and s.active)
  ), audited as (
    insert into audit_log (workspace_id, id, staff_id, key_id, door, client, operation, target_type,
      target_id, outcome, dry_run, confirmed, changes, request_id)
    select $1::bigint, $5::bigint + nextval('audit_ids'), 1, 1, 'rest', 'bench', $6::text, $7::text, $8::text,
      'done', false, false, $9::text::json, $10::text from changed
  )
  insert into idempotency (workspace_id, staff_id, key, operation, fingerprint, state, status, body, view,
    created_at, expires_at)
  select $1::bigint, 1, $11::text, $6::text, $12::bytea, 'done', 200, $13::text,
    '{"fields": true, "channels": null}', $4::timestamptz, $4::timestamptz + interval '24 hours' from changed
  returning 1`

/** The parameters of `recordSql`. */
const toRecord = (
  { workspaceId }: Database,
  now: string,
  about: {
    operation: string
    eventType: string
    target: string | null
    input: unknown
    result: unknown
    body: string
  },
): unknown[] => [
  workspaceId,
  `evt_${randomBytes(13).toString('hex')}`,
  about.eventType,
  now,
  // The ids of the audit log begin with the time.
  String(BigInt(Date.parse(now)) << 18n),
  about.operation,
  about.target === null ? null : 'contact',
  about.target,
  JSON.stringify({ input: about.input, result: about.result }),
  `req_${randomBytes(13).toString('hex')}`,
  randomUUID(),
  createHash('sha256').update(JSON.stringify(about.input)).digest(),
  about.body,
]

const SHARDS = 32
const randomShard = (): number => Math.floor(Math.random() * SHARDS)

const upsertSql = `
  with c as (
    insert into contacts (workspace_id, id, phone, name, name_key, search, created_at, updated_at)
    values ($1::bigint, $8::text::bigint, $14, $15, $16, $16 || e'\\n' || $14, $4::timestamptz,
      $4::timestamptz)
    on conflict (workspace_id, (coalesce(phone_key, phone))) do nothing returning id
  ), n as (
    insert into counters (workspace_id, subject, shard, n) select $1::bigint, 'contacts', $17, 1 from c
    on conflict (workspace_id, subject, shard) do update set n = counters.n + 1
  ), changed as (select $18::jsonb as data from c), ${recordSql}`

const tagSql = `
  with t as (
    select id, name from tags where workspace_id = $1::bigint and name_key = $14
  ), u as (
    update contacts set updated_at = $4::timestamptz
    where workspace_id = $1::bigint and id = $15::bigint
      and exists (select from t where not exists (select from contact_tags l
        where l.workspace_id = $1::bigint and l.tag_id = t.id and l.contact_id = $15::bigint))
    returning id
  ), l as (
    insert into contact_tags (workspace_id, tag_id, contact_id) select $1::bigint, t.id, u.id from t, u
    on conflict do nothing returning tag_id, contact_id
  ), n as (
    insert into counters (workspace_id, subject, shard, n)
    select $1::bigint, 'tag:' || tag_id, $16, 1 from l
    on conflict (workspace_id, subject, shard) do update set n = counters.n + 1
  ), changed as (
    select jsonb_build_object('tags', jsonb_build_array(jsonb_build_object('id', t.id::text, 'name', t.name)),
      'contact_ids', jsonb_build_array(l.contact_id::text)) as data from l join t on t.id = l.tag_id
  ), ${recordSql}`

const ID_BLOCK = 100

/** Reserves the ids of new contacts in blocks, since bodies and events contain them. */
const createIds = ({ write }: Database) => {
  let ids: Promise<string[]> | undefined
  return async function reserveId(): Promise<string> {
    ids ??= write(
      `select nextval(pg_get_serial_sequence('contacts', 'id')) as id from generate_series(1, $1::int)`,
      [ID_BLOCK],
    ).then((rows) => rows.map(({ id }) => id as string))
    const block = ids
    const id = (await block).pop()
    if (id !== undefined) return id
    if (ids === block) ids = undefined
    return await reserveId()
  }
}

type NewContact = { id: string; name: string; phone: string; now: string }

const toEventContact = ({ id, name, phone, now }: NewContact) => ({
  id,
  name,
  phone,
  external_id: null,
  dnd: false,
  starred: false,
  created_at: now,
  updated_at: now,
})

const toUpsertResult = ({ id, name, phone, now }: NewContact) => ({
  id,
  action: 'created',
  contact: {
    id,
    name,
    phone,
    phone_masked: false,
    chatapp_user_id: null,
    username: null,
    external_id: null,
    dnd: false,
    starred: false,
    created_at: now,
    updated_at: now,
    email: null,
    web_visitor_id: null,
    tags: [],
    groups: [],
    metadata: {},
    attributes: [],
    conversations: [],
    last_activity_at: null,
    version: '1',
  },
})

export const createWrites = (database: Database) => {
  const reserveId = createIds(database)
  return {
    upsert: async (input: { phone: string; name: string }): Promise<string> => {
      const now = new Date().toISOString()
      const contact = { id: await reserveId(), name: input.name, phone: input.phone.slice(1), now }
      const body = JSON.stringify(toUpsertResult(contact))
      const rows = await database.write(upsertSql, [
        ...toRecord(database, now, {
          operation: 'crm_upsert_contact',
          eventType: 'contact.created/1',
          target: contact.id,
          input: { ...input, phone: input.phone.replace(/\d(?=\d{4})/g, '*') },
          result: { action: 'created' },
          body,
        }),
        contact.phone,
        contact.name,
        contact.name.toLowerCase(),
        randomShard(),
        { contact: toEventContact(contact) },
      ])
      if (rows.length === 0) throw new Error(`the phone ${input.phone} exists`)
      return body
    },
    tag: async (input: { contact_ids: [string]; tags: [string] }): Promise<string> => {
      const result = { requested: 1, succeeded: 1, failed: 0, failures: [], stopped_early: false, matched: 1 }
      const body = JSON.stringify(result)
      const rows = await database.write(tagSql, [
        ...toRecord(database, new Date().toISOString(), {
          operation: 'crm_tag_contacts',
          eventType: 'contact.tags_added/1',
          target: null,
          input,
          result,
          body,
        }),
        input.tags[0].toLowerCase(),
        input.contact_ids[0],
        randomShard(),
      ])
      if (rows.length === 0) throw new Error(`contact ${input.contact_ids[0]} has the tag ${input.tags[0]}`)
      return body
    },
  }
}
