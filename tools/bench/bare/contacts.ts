import { type Database, type Row, toIso } from './database.ts'
import { type Field, type Names, type NamesCache, toRefs, versionColumn } from './names.ts'

const contactColumns = `
  c.id, c.name, c.phone, c.chatapp_user_id, c.username, c.external_id, c.dnd, c.starred, c.email, c.web_visitor_id,
  c.created_at, c.updated_at, c.last_activity_at, c.version, coalesce(f.attrs, '{}') as attrs,
  (select json_agg(json_build_object('id', v.id::text, 'channel_id', v.channel_id::text, 'state', v.state,
      'assigned_staff_id', v.assigned_staff_id::text, 'assigned_team_id', v.assigned_team_id::text,
      'created_at', v.created_at, 'last_activity_at', v.last_activity_at))
    from (select * from conversations v
      where v.workspace_id = c.workspace_id and v.contact_id = c.id
      order by v.created_at desc, v.id desc limit 10) as v) as conversations, ${versionColumn}`
const labelColumns = `
  array(select l.tag_id from contact_tags l
    where l.workspace_id = c.workspace_id and l.contact_id = c.id) as tag_ids,
  array(select l.group_id from contact_groups l
    where l.workspace_id = c.workspace_id and l.contact_id = c.id) as group_ids`
const joinFacts = 'left join contact_facts f on f.workspace_id = c.workspace_id and f.contact_id = c.id'

const readSql = `
  select ${contactColumns}, ${labelColumns}, f.metadata from contacts c ${joinFacts}
  where c.workspace_id = $1 and c.id = $2`
// The limit is no parameter, so that plans are made for it.
const listSql = (limit: number) => `
  select ${contactColumns},
    (select sum(n) from counters where workspace_id = $1 and subject = 'contacts') as total
  from (select * from contacts c where c.workspace_id = $1
    order by c.created_at desc, c.id desc limit ${limit}) as c
  ${joinFacts} order by c.created_at desc, c.id desc`
const searchSql = (limit: number) => `
  with found as materialized (
    select * from contacts c where c.workspace_id = $1 and c.search like $2 limit 1001
  ), page as materialized (
    select * from found order by created_at desc, id desc limit ${limit}
  )
  select ${contactColumns}, (select count(*) from found) as total
  from page as c ${joinFacts} order by c.created_at desc, c.id desc`

type ContactRow = Row & {
  id: string
  created_at: string
  attrs: Record<string, unknown>
  conversations: Row[] | null
  tag_ids: string[]
  group_ids: string[]
}

const showValue = ({ type, options }: Field, value: unknown) => {
  if (type === 'checkbox')
    return { value: value === true ? 'Yes' : 'No', display: value === true ? 'Yes' : 'No' }
  return { value, display: options?.find((o) => o.value === value)?.label ?? String(value) }
}

const toAttributes = (attrs: Record<string, unknown>, fields: readonly Field[]) => {
  const shown = []
  for (const field of fields) {
    const value = attrs[field.id]
    if (value === undefined) continue
    const { key, label, type } = field
    shown.push({ key, label, type, ...showValue(field, value), typed_value: value })
  }
  return shown
}

const toContact = (row: ContactRow, { fields, tags, groups }: Names, full: boolean) => ({
  id: row.id,
  name: row['name'],
  phone: row['phone'],
  phone_masked: false,
  chatapp_user_id: row['chatapp_user_id'],
  username: row['username'],
  external_id: row['external_id'],
  dnd: row['dnd'],
  starred: row['starred'],
  created_at: row.created_at,
  updated_at: row['updated_at'],
  ...(full ? { email: row['email'] } : {}),
  web_visitor_id: row['web_visitor_id'],
  ...(full ? { tags: toRefs(tags, row.tag_ids), groups: toRefs(groups, row.group_ids) } : {}),
  ...(full ? { metadata: row['metadata'] ?? {} } : {}),
  attributes: toAttributes(row.attrs, fields),
  conversations: (row.conversations ?? []).map((v) => ({
    id: v['id'],
    channel_id: v['channel_id'],
    state: v['state'],
    assigned: v['assigned_staff_id'] !== null || v['assigned_team_id'] !== null,
    assigned_staff_id: v['assigned_staff_id'],
    created_at: toIso(v['created_at'] as string),
    last_activity_at: toIso(v['last_activity_at'] as string),
  })),
  last_activity_at: row['last_activity_at'],
  version: String(row['version']),
})

/** A minimal cursor: the position in base64. */
export const toCursor = (position: unknown): string =>
  Buffer.from(JSON.stringify(position)).toString('base64url')

const toPage = (rows: ContactRow[], names: Names, limit: number) => {
  const data = rows.slice(0, limit).map((row) => toContact(row, names, false))
  const last = rows.length > limit ? data.at(-1)! : undefined
  return {
    data,
    total: Number(rows[0]?.['total'] ?? 0),
    approximate: false,
    resolved_dates: [],
    warnings: [],
    next_cursor: last ? toCursor([last.created_at, last.id, new Date().toISOString()]) : null,
  }
}

const escapeLike = (text: string): string => text.replace(/[\\%_]/g, '\\$&')

export const createContactReads = ({ quick, search, workspaceId }: Database, namesOf: NamesCache) => ({
  read: async (id: string) => {
    const [row] = (await quick(readSql, [workspaceId, id])) as ContactRow[]
    return toContact(row!, await namesOf(row!['names_version']), true)
  },
  list: async (limit: number) => {
    const rows = (await quick(listSql(limit + 1), [workspaceId])) as ContactRow[]
    return toPage(rows, await namesOf(rows[0]!['names_version']), limit)
  },
  search: async (query: string, limit: number) => {
    const rows = (await search(searchSql(limit + 1), [
      workspaceId,
      `%${escapeLike(query.toLowerCase())}%`,
    ])) as ContactRow[]
    return toPage(rows, await namesOf(rows[0]?.['names_version']), limit)
  },
})
