import fc from 'fast-check'
import { sql } from 'kysely'
import { type CustomFieldType, customFieldTypes } from '../../catalog/custom-fields.ts'
import { searchText, reserveContactIds } from '../../storage/contacts.ts'
import { addToCounters } from '../../storage/counters.ts'
import { listFields } from '../../storage/custom-fields.ts'
import type { Db } from '../../storage/database.ts'
import { fold } from '../../storage/text.ts'
import { toAttributeRows, type Attrs } from '../../storage/contact-values.ts'
import { doAs } from '../calls.ts'
import { type Fact, instantOf, type JsonObject, type Setting } from './oracle.ts'
import { makeWorkspace, type TestServer, type TestWorkspace } from '../servers.ts'

/**
 * A workspace in which everything that goes wrong with filters occurs: absent values, ties, all of Unicode,
 * signs that mean something to `like`, edges of time.
 */
export type Planted = {
  workspace: TestWorkspace
  facts: Fact[]
  setting: Setting
  /** What conversations and the others refer to. */
  ids: { channels: string[]; staff: string[]; teams: string[]; broadcasts: string[] }
  /** Ids of another workspace. */
  foreign: { tags: string[]; groups: string[]; contacts: string[]; broadcasts: string[] }
}

/** A week that contains the night in which clocks are set forward there. */
export const plantedNow = '2026-03-10T12:34:56.789Z'
const timeZone = 'America/New_York'
const clock = { now: plantedNow, timeZone, saved: new Map<string, JsonObject>() }

export const relativeDates = [
  'now',
  'today',
  'yesterday',
  '-7d',
  '-30d',
  '+3d',
  '-48h',
  '-90m',
  '-2w',
  '-1mo',
  '-13mo',
  '-1y',
  '+1y',
  ...['day', 'week', 'month', 'quarter', 'year'].flatMap((unit) => [`start_of_${unit}`, `end_of_${unit}`]),
]

export const keyOf = (type: CustomFieldType): string => `f_${type}`
export const options = ['red', 'Red', 'gr%en', 'with space', 'ß', 'SS'].map((value) => ({
  value,
  label: `The ${value}`,
}))

const names = [
  'Ada',
  'ada',
  'ADA',
  'Ada Lovelace',
  'Straße',
  'STRASSE',
  'STRAẞE',
  'Ilgaz',
  'ılgaz',
  'İlgaz',
  'Σίσυφος',
  'ΣΊΣΥΦΟΣ',
  'Jos\u00e9',
  'Jose\u0301',
  'JOSE\u0301',
  'Jose',
  '😀 Smile',
  '👨‍👩‍👧 family',
  'שלום עולם',
  'مرحبا Ada',
  '100%',
  '100 percent',
  '50_50',
  '50x50',
  'C:\\temp',
  'C:/temp',
  'a\nb',
  'a\tb',
  'ab',
  "O'Brien",
  '"quoted"',
  '漢字',
  'o\ufb03ce',
  'office',
  '\u212aelvin',
  'kelvin',
  'null',
  'true',
  '[x](a|b)*$^',
  '$1',
  '{}',
  'x'.repeat(255),
  `${'x'.repeat(254)}y`,
  'Ω'.repeat(200),
  '.',
  ' lead',
  'trail ',
]
const long = ['ab'.repeat(110), 'ß'.repeat(150), 'x'.repeat(9_990)].flatMap((text) =>
  ['', '1', '2', ' Pro'].map((end) => text + end),
)
const texts = [
  'Pro',
  'pro',
  'PRO',
  'Enterprise',
  '100%',
  '1_0',
  'back\\slash',
  'two\nlines',
  '',
  ' ',
  ...names.slice(0, 24),
  ...long,
].filter((text) => text !== '')
const emails = [
  'ada@example.com',
  'ADA@example.com',
  'a_b@example.com',
  'a%b@example.com',
  'axb@example.org',
  'bob@example.org',
  'x+y@sub.example.net',
]
const urls = ['https://example.com/', 'https://example.com/a?b=100%25', 'http://EXAMPLE.com/A_B']
const phones = ['15550100001', '15550100002', '49301234567', '442079460958']
const integers = [0, 1, 2, 7, 8, 10, 100, -1, -12, 9007199254740991, -9007199254740991]
const floats = [...integers, 0.1, 0.2, 0.30000000000000004, 0.3, -2.5, 1e21, 1e-7, 1e308, 5e-324]
const decimals = [
  '0.00000000',
  '0.00000001',
  '-0.00000001',
  '12.50000000',
  '12345678901234567890.12345678',
  '12345678901234567890.12345679',
  '-99999999999999999999.99999999',
  '7.00000000',
]

/** Instants about every date that a filter can name, where an error of one would show. */
const instants = [
  ...relativeDates.flatMap((date) => [-1, 0, 1].map((ms) => instantOf(clock, date).epochMilliseconds + ms)),
  ...[
    '2026-03-08T06:59:59.999Z',
    '2026-03-08T07:00:00Z',
    '2025-11-02T05:30:00Z',
    '2025-11-02T06:30:00Z',
    '2024-02-29T12:00:00Z',
    '2026-01-01T00:00:00Z',
  ].map((iso) => Date.parse(iso)),
]
const days = [
  '0001-01-01',
  '2024-02-29',
  '2025-12-31',
  '2026-01-01',
  '2026-02-28',
  '2026-03-01',
  '2026-03-03',
  '2026-03-08',
  '2026-03-09',
  '2026-03-10',
  '2026-03-11',
  '2026-12-31',
  '9999-12-31',
]
const farTimes = ['0001-01-01T00:00:00.000Z', '9999-12-31T23:59:59.999Z']

const iso = (ms: number): string => new Date(ms).toISOString()
const oneOf = <T>(values: readonly T[]) => fc.constantFrom(...values)
/** Absent in so many of ten. */
const maybe = <T>(value: fc.Arbitrary<T>, absent: number) =>
  fc.oneof({ weight: 10 - absent, arbitrary: value }, { weight: absent, arbitrary: fc.constant(null) })
const some = <T>(values: readonly T[], most: number) => fc.uniqueArray(oneOf(values), { maxLength: most })
const instant = oneOf(instants)

const valueOf: Record<CustomFieldType, fc.Arbitrary<Attrs[string]>> = {
  text: oneOf(texts),
  textarea: oneOf(texts),
  select: oneOf(options).map((o) => o.value),
  radio: oneOf(options).map((o) => o.value),
  multiselect: fc.uniqueArray(
    oneOf(options).map((o) => o.value),
    { minLength: 1, maxLength: 4 },
  ),
  checkbox: fc.boolean(),
  boolean: fc.boolean(),
  date: oneOf(days),
  datetime: oneOf([...instants.map(iso), ...farTimes]),
  number: oneOf(floats),
  int: oneOf(integers),
  float: oneOf(floats),
  decimal: oneOf(decimals),
  email: oneOf(emails),
  url: oneOf(urls),
  phone: oneOf(phones),
}

const tagNames = ['VIP', 'vips', 'Straße', '100%', '1000', 'a_b', 'axb', '😀', 'Jos\u00e9', 'empty']
const groupNames = ['North', 'South', 'northern', 'Σίσυφος', 'nobody']
const ids = { channels: ['901', '902', '903'], staff: ['801', '802'], teams: ['701', '702'] }

const talk = fc.record({
  state: oneOf(['open', 'closed']),
  channel_id: maybe(oneOf(ids.channels), 1),
  assigned_staff_id: maybe(oneOf(ids.staff), 4),
  assigned_team_id: maybe(oneOf(ids.teams), 5),
  created_at: instant,
  last_activity_at: maybe(instant, 2),
  unread_count: oneOf([0, 0, 1, 2, 3, 40]),
})
const recipient = fc.record({
  status: oneOf(['pending', 'sent', 'delivered', 'read', 'failed']),
  responded: fc.boolean(),
  sent_at: maybe(instant, 3),
})

const contact = fc.record({
  name: maybe(oneOf(names), 1),
  noPhone: fc.nat(9).map((n) => n === 0),
  chatapp_user_id: maybe(oneOf(['15550100042@c.example', 'BSUID.x_1', 'bsuid.X%2']), 5),
  web_visitor_id: maybe(oneOf(['v-1', 'V-1', 'v_1', 'v%1']), 6),
  dnd: fc.boolean(),
  starred: fc.nat(3).map((n) => n === 0),
  created_at: instant,
  updated_at: instant,
  last_activity_at: maybe(instant, 4),
  tags: some(tagNames.slice(0, -1), 4),
  groups: some(groupNames.slice(0, -1), 2),
  values: fc.record(Object.fromEntries(customFieldTypes.map((type) => [type, maybe(valueOf[type], 4)]))),
  email: maybe(oneOf(emails), 5),
  gone: fc.boolean(),
  conversations: fc.array(talk, { maxLength: 3 }),
  broadcasts: fc.tuple(maybe(recipient, 3), maybe(recipient, 6), maybe(recipient, 9)),
})

/** Writes rows; `columns` are names with types. Answers the ids of what has them. */
const insertRows = async (
  db: Db,
  table: string,
  columns: string,
  rows: readonly object[],
  returning = '',
): Promise<string[]> => {
  const written = columns
    .split(',')
    .map((column) => column.trim().split(' ')[0])
    .join(', ')
  const { rows: answered } = await sql<{ id: string }>`
    insert into ${sql.table(table)} (${sql.raw(written)}) select ${sql.raw(written)} from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as r (${sql.raw(columns)})
    ${sql.raw(returning)}`.execute(db)
  return answered.map((row) => row.id)
}

type LabelledContact = Partial<Record<'email' | 'chatapp_user_id' | 'web_visitor_id', string | null>> & {
  name: string | null
  phone: string | null
  dnd: boolean
  starred: boolean
  created_at: number
  updated_at: number
  last_activity_at: number | null
  attrs: Attrs
  tagIds: readonly string[]
  groupIds: readonly string[]
  conversations: readonly { state: string; created_at: number; last_activity_at: number | null }[]
  recipients: readonly { broadcast_id: string; sent_at: number | null }[]
}

/** Writes contacts with all that hangs on them. Times are milliseconds since 1970. */
const insertContacts = async (
  db: Db,
  workspaceId: string,
  types: ReadonlyMap<string, CustomFieldType>,
  contacts: readonly LabelledContact[],
): Promise<void> => {
  const contactIds = await reserveContactIds(db, contacts.length)
  const at = (time: number | null): string | null => (time === null ? null : iso(time))
  const owned = contacts.map((c, n) => ({
    ...c,
    workspace_id: workspaceId,
    id: contactIds[n]!,
    contact_id: contactIds[n]!,
  }))
  const each = (rows: (c: (typeof owned)[number]) => readonly object[]): object[] =>
    owned.flatMap((c) =>
      rows(c).map((row) => ({ ...row, workspace_id: workspaceId, contact_id: c.contact_id })),
    )
  await insertRows(
    db,
    'contacts',
    `workspace_id bigint, id bigint, name text, phone text, chatapp_user_id text, dnd boolean, starred boolean, email text, web_visitor_id text,
    name_key text, search text, created_at timestamptz, updated_at timestamptz, last_activity_at timestamptz`,
    owned.map((c) => ({
      ...c,
      name_key: fold(c.name ?? ''),
      search: searchText(c.name, c.phone),
      created_at: at(c.created_at),
      updated_at: at(c.updated_at),
      last_activity_at: at(c.last_activity_at),
    })),
  )
  await insertRows(
    db,
    'contact_facts',
    'workspace_id bigint, contact_id bigint, attrs jsonb',
    owned.filter((c) => Object.keys(c.attrs).length > 0),
  )
  await insertRows(
    db,
    'contact_attributes',
    `workspace_id bigint, contact_id bigint, field_id bigint, n smallint, text_key text, free boolean, number_value numeric, bool_value boolean,
    time_value timestamptz`,
    each((c) => toAttributeRows(types, c.attrs)),
  )
  await insertRows(
    db,
    'contact_tags',
    'workspace_id bigint, contact_id bigint, tag_id bigint',
    each((c) => c.tagIds.map((tag_id) => ({ tag_id }))),
  )
  await insertRows(
    db,
    'contact_groups',
    'workspace_id bigint, contact_id bigint, group_id bigint',
    each((c) => c.groupIds.map((group_id) => ({ group_id }))),
  )
  await insertRows(
    db,
    'conversations',
    `workspace_id bigint, contact_id bigint, state text, channel_id bigint, assigned_staff_id bigint, assigned_team_id bigint, created_at timestamptz,
    updated_at timestamptz, last_activity_at timestamptz, unread_count integer`,
    each((c) =>
      c.conversations.map((v) => ({
        unread_count: 0,
        ...v,
        created_at: at(v.created_at),
        updated_at: at(v.created_at),
        last_activity_at: at(v.last_activity_at),
      })),
    ),
  )
  await insertRows(
    db,
    'broadcast_recipients',
    'workspace_id bigint, broadcast_id bigint, contact_id bigint, status text, responded boolean, sent_at timestamptz',
    each((c) => c.recipients.map((r) => ({ ...r, sent_at: at(r.sent_at) }))),
  )
  const subjects = contacts.flatMap((c) => [
    'contacts',
    ...c.tagIds.map((id) => `tag:${id}`),
    ...c.groupIds.map((id) => `group:${id}`),
  ])
  await addToCounters(
    db,
    workspaceId,
    new Map([...Map.groupBy(subjects, (subject) => subject)].map(([subject, all]) => [subject, all.length])),
  )
}

const fieldsOf = async (db: Db, workspaceId: string) => {
  const fields = await listFields(db, workspaceId)
  return {
    types: new Map(fields.map((field) => [field.id, field.type])),
    idOf: (key: string): string => fields.find((field) => field.key === key)!.id,
  }
}

const plantOne = async (server: TestServer, count: number): Promise<Planted> => {
  const { db } = server
  const workspace = await makeWorkspace(server, { timezone: timeZone })
  const run = doAs(server, workspace.owner.key)
  for (const type of customFieldTypes)
    await run('crm_create_custom_field', {
      key: keyOf(type),
      type,
      ...(['select', 'multiselect', 'radio'].includes(type) ? { options } : {}),
    })
  await run('crm_create_custom_field', { key: 'gone', type: 'text' })
  const { types, idOf } = await fieldsOf(db, workspace.id)
  const named = async (table: string, more: string, given: readonly object[]): Promise<string[]> =>
    insertRows(
      db,
      table,
      `workspace_id bigint, name text, name_key text, created_at timestamptz${more}`,
      given.map((row) => ({ ...row, workspace_id: workspace.id, created_at: plantedNow })),
      'returning id',
    )
  const labels = async (table: string, names: readonly string[]): Promise<(name: string) => string> => {
    const made = await named(
      table,
      '',
      names.map((name) => ({ name, name_key: fold(name) })),
    )
    return (name) => made[names.indexOf(name)]!
  }
  const [tagId, groupId] = [await labels('tags', tagNames), await labels('groups', groupNames)]
  const broadcasts = await named(
    'broadcasts',
    ', status text',
    [1, 2, 3].map((n) => ({ name: `Broadcast ${n}`, name_key: `broadcast ${n}`, status: 'completed' })),
  )
  await insertContacts(
    db,
    workspace.id,
    types,
    fc.sample(contact, { seed: 7, numRuns: count }).map((c, n) => ({
      ...c,
      phone: c.noPhone ? null : `1555${String((n * 7919) % 1_000_000).padStart(7, '0')}`,
      tagIds: c.tags.map(tagId),
      groupIds: c.groups.map(groupId),
      attrs: Object.fromEntries([
        ...Object.entries(c.values).flatMap(([type, value]) =>
          value === null ? [] : [[idOf(keyOf(type as CustomFieldType)), value]],
        ),
        ...(c.email === null ? [] : [[idOf('email'), c.email]]),
        ...(c.gone ? [[idOf('gone'), 'Pro']] : []),
      ]) as Attrs,
      recipients: c.broadcasts.flatMap((r, i) =>
        r === null ? [] : [{ ...r, broadcast_id: broadcasts[i]! }],
      ),
    })),
  )
  // A conversation and a recipient whose contacts were deleted stay behind.
  await insertRows(
    db,
    'conversations',
    'workspace_id bigint, state text, created_at timestamptz, updated_at timestamptz',
    [{ workspace_id: workspace.id, state: 'open', created_at: plantedNow, updated_at: plantedNow }],
  )
  await insertRows(
    db,
    'broadcast_recipients',
    'workspace_id bigint, broadcast_id bigint, contact_id bigint, status text',
    [
      {
        workspace_id: workspace.id,
        broadcast_id: broadcasts[0],
        contact_id: '4611686018427387904',
        status: 'read',
      },
    ],
  )
  await run('crm_delete_custom_field', { custom_field_id: idOf('gone') })
  const facts = await readFacts(db, workspace.id)
  return {
    workspace,
    facts,
    setting: { ...clock, saved: new Map() },
    ids: { ...ids, broadcasts },
    foreign: { tags: [], groups: [], contacts: [], broadcasts: [] },
  }
}

/** The nasty workspace, beside one with the same people that must never show. */
export const plantNasty = async (server: TestServer, count = 400): Promise<Planted> => {
  const other = await plantOne(server, count)
  const planted = await plantOne(server, count)
  const foreign = {
    tags: [...new Set(other.facts.flatMap((fact) => fact.tags.map((tag) => tag.id)))],
    groups: [...new Set(other.facts.flatMap((fact) => fact.groups.map((group) => group.id)))],
    contacts: other.facts.slice(0, 5).map((fact) => fact.id),
    broadcasts: other.ids.broadcasts,
  }
  await sql`analyze`.execute(server.db)
  return { ...planted, foreign }
}

/** Many plain contacts: conditions that most of them meet, and some that few do. */
export const plantMany = async (
  server: TestServer,
  count: number,
): Promise<Pick<Planted, 'workspace' | 'facts' | 'setting'>> => {
  const { db } = server
  const workspace = await makeWorkspace(server)
  const run = doAs(server, workspace.owner.key)
  await run('crm_create_custom_field', {
    key: 'plan',
    type: 'select',
    options: ['free', 'pro', 'team'].map((value) => ({ value, label: value })),
  })
  await run('crm_create_custom_field', { key: 'score', type: 'int' })
  await run('crm_upsert_contact', { phone: '+15550109999', name: 'Somebody else', tags: ['Most', 'Few'] })
  const tagId = async (name: string): Promise<string> =>
    (await run('crm_list_tags', { search: name })).data[0].id
  const [most, few, north] = [
    await tagId('Most'),
    await tagId('Few'),
    (await run('crm_create_group', { name: 'North' })).group.id,
  ]
  const { types, idOf } = await fieldsOf(db, workspace.id)
  await insertContacts(
    db,
    workspace.id,
    types,
    Array.from({ length: count }, (_, n) => {
      const at = Date.UTC(2025, 9) + ((n * 37) % 4000) * 3_600_000
      return {
        name: `Person ${(n * 31) % 977}`,
        phone: `1555${String((n * 7919) % 10_000_000).padStart(7, '0')}`,
        starred: n % 5 === 0,
        dnd: n % 11 === 0,
        created_at: at,
        updated_at: at,
        last_activity_at: null,
        attrs: {
          ...(n % 6 === 0 ? {} : { [idOf('plan')]: ['free', 'pro', 'team'][n % 3]! }),
          [idOf('score')]: (n * 13) % 101,
        },
        tagIds: [...(n % 7 === 0 ? [] : [most]), ...(n % 400 === 0 ? [few] : [])],
        groupIds: n % 3 === 0 ? [north] : [],
        conversations:
          n % 4 === 0
            ? []
            : [{ state: n % 16 === 1 ? 'closed' : 'open', created_at: at, last_activity_at: at }],
        recipients: [],
      }
    }),
  )
  await sql`analyze`.execute(db)
  return {
    workspace,
    facts: await readFacts(db, workspace.id),
    setting: { now: server.app.now(), timeZone: 'UTC', saved: new Map() },
  }
}

/** Saves a filter and makes it known to the oracle; answers its id. */
export const plantSavedFilter = async (
  server: TestServer,
  planted: Planted,
  filter: JsonObject,
  ownerStaffId: string | null = null,
): Promise<string> => {
  const [id] = await insertRows(
    server.db,
    'saved_filters',
    'workspace_id bigint, name text, name_key text, owner_staff_id bigint, filter jsonb, created_at timestamptz, updated_at timestamptz',
    [
      {
        workspace_id: planted.workspace.id,
        name: 'Saved',
        name_key: 'saved',
        owner_staff_id: ownerStaffId,
        filter,
        created_at: plantedNow,
        updated_at: plantedNow,
      },
    ],
    'returning id',
  )
  ;(planted.setting.saved as Map<string, JsonObject>).set(id!, filter)
  return id!
}

type Stored = Omit<Fact, 'attributes'> & { attrs: Attrs }

/** Every contact of a workspace, from the tables themselves. */
export const readFacts = async (db: Db, workspaceId: string): Promise<Fact[]> => {
  const { rows: fields } = await sql<{ id: string; key: string; type: string }>`
    select id::text as id, key, type from custom_fields where workspace_id = ${workspaceId} and deleted_at is null`.execute(
    db,
  )
  const ms = (column: string) => `(extract(epoch from ${column}) * 1000)::bigint`
  const listed = (parts: string, from: string) =>
    sql.raw(`coalesce((select json_agg(json_build_object(${parts})) from ${from}), '[]')`)
  const ofContact = 'workspace_id = c.workspace_id and r.contact_id = c.id'
  const labels = (table: string, column: string) =>
    listed(
      "'id', t.id::text, 'name', t.name",
      `contact_${table} r join ${table} t on t.workspace_id = r.workspace_id and t.id = r.${column} where r.${ofContact}`,
    )
  const { rows } = await sql<{ fact: string }>`
    select json_build_object(
      'id', c.id::text, 'name', c.name, 'phoneNumber', c.phone, 'email', c.email, 'chatappUserId', c.chatapp_user_id, 'webVisitorId', c.web_visitor_id,
      'createdAt', ${sql.raw(ms('c.created_at'))}, 'updatedAt', ${sql.raw(ms('c.updated_at'))}, 'lastActivityAt', ${sql.raw(ms('c.last_activity_at'))}, 'dnd', c.dnd, 'starred', c.starred,
      'attrs', coalesce((select attrs from contact_facts r where r.${sql.raw(ofContact)}), '{}'),
      'tags', ${labels('tags', 'tag_id')}, 'groups', ${labels('groups', 'group_id')},
      'conversations', ${listed(
        `'state', r.state, 'channelId', r.channel_id::text, 'assignedStaffId', r.assigned_staff_id::text, 'assignedTeamId', r.assigned_team_id::text,
        'createdAt', ${ms('r.created_at')}, 'lastActivityAt', ${ms('r.last_activity_at')}, 'unreadCount', r.unread_count`,
        `conversations r where r.${ofContact}`,
      )},
      'broadcasts', ${listed(`'id', r.broadcast_id::text, 'status', r.status, 'responded', r.responded, 'sentAt', ${ms('r.sent_at')}`, `broadcast_recipients r where r.${ofContact}`)}
    )::text as fact
    from contacts c where c.workspace_id = ${workspaceId} order by c.id`.execute(db)
  return rows.map((row) => {
    const { attrs, ...rest } = JSON.parse(row.fact) as Stored
    const attributes = fields.flatMap(({ id, key, type }) => {
      const stored = attrs[id]
      return stored === undefined
        ? []
        : (Array.isArray(stored) ? stored : [stored]).map((value) => ({ key, type, value }))
    })
    return { ...rest, attributes }
  })
}
