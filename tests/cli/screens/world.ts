import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import { findOperation } from '../../../catalog/index.ts'
import { insertDemoJobs } from '../../../storage/demo/jobs.ts'
import { insertMessages } from '../../../storage/messages/messages.ts'
import { createTeam } from '../../../storage/workspace/admin.ts'
import { findOrInsertBroadcast } from '../../../storage/demo/broadcasts.ts'
import { callAs } from '../../calls.ts'
import { databases } from '../../databases.ts'
import { createSandboxDriver } from '../../messaging/fixtures.ts'
import { insertSandboxTemplates } from '../../messaging/send-template.ts'
import { makeWorkspace, startServer, type TestServer, type TestWorkspace } from '../../servers.ts'

// A workspace with the same data in every run, for screens that are compared with files.

const NOW = '2026-10-01T12:00:00.000Z'

/** Names of customers, in the order of their ids, which begin at 1. */
const CUSTOMERS = [
  '佐藤 美咲',
  'สมหญิง ใจดี',
  'Familie 👨‍👩‍👧‍👦 Öztürk',
  'ليلى حسن الزهراني',
  'Zoe\u0308 A\u030angstro\u0308m',
  'Wolfeschlegelsteinhausenbergerdorff von und zu Hohenlohe-Langenburg und Schillingsfürst',
  'Eve \u001b[2J\u202e\u0007Malloy',
]
const phoneOf = (n: number): string => `+1555010010${n}`

/** What customers say, by the number of the customer and the minutes before now. */
const SAID: readonly (readonly [customer: number, minutesAgo: number, text: string])[] = [
  [6, 3 * 24 * 60, 'Hello, do you deliver to Łódź?'],
  [7, 26 * 60, 'Look: \u001b]0;owned\u0007\u001b[31mred\u001b[0m \u202eevil\u202c'],
  [1, 25 * 60, '注文した商品がまだ届いていません。いつ届きますか？注文番号は 11386 です。'],
  [2, 300, 'สวัสดีค่ะ สั่งกาแฟไปเมื่อวาน ยังไม่ได้รับของเลยค่ะ'],
  [4, 95, 'هل لديكم قهوة بدون كافيين؟ أريد ثلاثة أكياس من فضلك.'],
  [3, 42, 'Wir sind 👨‍👩‍👧‍👦 und brauchen 4 Plätze 🪑🪑🪑🪑\nGeht das am Samstag?'],
  [
    5,
    15,
    `Zoe\u0308 here. ${'All the details of my order follow below, line after line. '.repeat(80)}`.slice(
      0,
      4096,
    ),
  ],
  [1, 4, '追加で、もう一つ注文したいです 🙇‍♀️'],
]

const LONG_URL = `https://shop.example.com/hooks/${'orders-and-returns-'.repeat(6)}end?source=wcrm`

const TEMPLATES = [
  {
    name: 'order_update',
    components: [{ type: 'BODY', text: 'Hello {{1}}, your order {{2}} is on its way.' }],
  },
  {
    name: 'delivery_notice_for_customers_of_the_weekend_market_in_the_old_town',
    language: 'ja',
    components: [{ type: 'BODY', text: 'ご注文ありがとうございます。商品は明日お届けします。' }],
  },
  {
    name: 'autumn_offer',
    category: 'MARKETING',
    status: 'REJECTED',
    rejection_reason: 'INVALID_FORMAT',
    components: [
      { type: 'BODY', text: 'สวัสดี {{1}} 🍂 ลดราคา 20% ทุกอย่าง', example: { body_text: [['สมหญิง']] } },
      { type: 'FOOTER', text: 'Reply STOP to opt out' },
    ],
  },
] as const

export type ScreenWorld = { readonly server: TestServer; readonly workspace: TestWorkspace }

type Run = (name: string, input: Record<string, unknown>) => Promise<any>

/** Returns a caller that confirms, and throws when a call fails. */
const runAs =
  ({ url }: TestServer, key: string): Run =>
  async (name, input) => {
    const { confirm } = findOperation(name)!
    const options = { idempotencyKey: randomUUID(), ...(confirm ? { confirm } : {}) }
    const { status, body, text } = await callAs({ url }, key)(name, input, options)
    if (status >= 300) throw new Error(`${name}: ${text}`)
    return body
  }

const seedContacts = async (run: Run): Promise<void> => {
  await run('crm_create_custom_field', {
    key: 'plan',
    label: 'プラン',
    type: 'select',
    options: [
      { label: 'Basic', value: 'basic' },
      { label: 'プロ', value: 'pro' },
    ],
  })
  await run('crm_create_custom_field', { key: 'remark', label: 'Remark of the sales team', type: 'text' })
  const groups = [
    { name: 'VIP 顧客', emoji: '⭐' },
    { name: 'عملاء الجملة', emoji: '📦' },
    { name: 'Everybody who bought coffee in the spring sale of the year before last' },
  ]
  for (const group of groups) await run('crm_create_group', group)
  for (const [i, name] of CUSTOMERS.entries())
    await run('crm_upsert_contact', {
      phone: phoneOf(i + 1),
      name,
      ...(i < 5 ? { email: `customer.${i + 1}@example.com` } : {}),
      tags: ['coffee ☕', ...(i % 2 === 0 ? ['お得意様', 'wholesale'] : [])],
      group_ids: i < 3 ? ['1', '2'] : ['3'],
      attributes: {
        plan: i % 2 === 0 ? 'pro' : 'basic',
        ...(i === 0 ? { remark: 'Prefers mail. '.repeat(20) } : {}),
      },
    })
  await run('crm_update_contact', { contact_id: '1', starred: true })
  await run('crm_create_saved_filter', {
    name: '新しいお客様',
    description: 'Customers of this week, whatever the channel on which they first wrote to us',
    filter: { and: [{ createdAt: { gte: '-7d' } }, { name: { contains: 'ü' } }] },
  })
  await run('crm_create_saved_filter', { name: 'Ohne Gruppe', filter: { createdAt: { gte: '-30d' } } })
}

/** Inserts a broadcast to all contacts, each at another stage. */
const seedBroadcasts = async ({ server: { db }, workspace: { id } }: ScreenWorld): Promise<void> => {
  for (const [name, status] of [
    ['秋のセール 🍂 für alle', 'completed'],
    ['Winter', 'scheduled'],
  ] as const) {
    const { id: broadcast } = await findOrInsertBroadcast(db, id, {
      name,
      status,
      template_name: 'autumn_offer',
      channel_id: '1',
      scheduled_at: NOW,
      started_at: status === 'completed' ? NOW : null,
      created_at: '2026-09-28T08:00:00.000Z',
    })
    await sql`
      insert into broadcast_recipients (workspace_id, broadcast_id, contact_id, status, responded,
        sent_at, delivered_at, read_at, responded_at)
      select workspace_id, ${broadcast}::bigint, id, case when id % 2 = 0 then 'read' else 'sent' end, id % 4 = 0,
        ${NOW}::timestamptz, case when id % 2 = 0 then ${NOW}::timestamptz end,
        case when id % 2 = 0 then ${NOW}::timestamptz end, case when id % 4 = 0 then ${NOW}::timestamptz end
      from contacts where workspace_id = ${id} order by id`.execute(db)
  }
}

/** Gives the deliveries of an endpoint that failed an attempt each. */
const seedAttempts = async ({ server: { db }, workspace: { id } }: ScreenWorld): Promise<void> => {
  await sql`
    insert into webhook_attempts (workspace_id, delivery_id, number, started_at, duration_ms,
      response_status, response_excerpt, trigger)
    select workspace_id, id, 1, ${NOW}::timestamptz, 1204, 502, ${'<h1>Bad gateway \u001b[2J 接続できません</h1>'},
      'scheduled'
    from webhook_deliveries where workspace_id = ${id}`.execute(db)
  await sql`
    update webhook_deliveries set status = 'dead', attempts = 1, last_response_status = 502, next_attempt_at = null
    where workspace_id = ${id}`.execute(db)
}

const addPhoto = async ({ server, workspace }: ScreenWorld): Promise<void> => {
  await insertMessages(server.db, workspace.id, [
    {
      conversation_id: '3',
      channel_id: '1',
      episode: 1,
      direction: 'inbound',
      type: 'IMAGE',
      status: 'received',
      text: '破れた袋の写真です',
      provider_id: 'wamid.photo',
      created_at: '2026-10-01T11:50:00.000Z',
      media: { state: 'kept', content_type: 'image/jpeg', file_name: '袋 1.jpg', size: 20_480 },
    },
  ])
}

/** What the team and its agent did. `at` sets the time. */
const seedJobs = ({ server, workspace }: ScreenWorld): Promise<void> =>
  insertDemoJobs(
    server.db,
    { workspace_id: workspace.id, staff_id: workspace.owner.staffId, key_id: workspace.owner.keyId },
    server.app.now(),
  )

const seedWork = async (world: ScreenWorld, run: Run, at: (minutesAgo: number) => void): Promise<void> => {
  const { server, workspace } = world
  const sandbox = createSandboxDriver(server, workspace)
  const mara = await workspace.staff({ name: 'Mara Öberg-Świątek', role: 'manager' })
  const agent = await workspace.key(mara.staffId, { agent: true, name: 'Reply assistant 🤖' })
  for (const [customer, minutesAgo, text] of SAID) {
    at(minutesAgo)
    await sandbox.say({ from: phoneOf(customer), name: CUSTOMERS[customer - 1]!.slice(0, 60), text })
  }
  at(3)
  await addPhoto(world)
  await run('inbox_assign_conversation', { conversation_id: '4', staff_id: mara.staffId })
  await run('inbox_tag_conversation', { conversation_id: '3', add: ['お得意様', 'wholesale'] })
  await run('inbox_add_note', {
    conversation_id: '3',
    text: 'Third torn bag this week. 三回目です。\nRefund?',
  })
  await runAs(server, mara.key)('messaging_send_reply', {
    conversation_id: '3',
    text: 'お待たせして申し訳ございません。今日発送しました。',
  })
  await server.settle()
  const ask = callAs(server, agent.key)
  at(2)
  for (const text of ['عندنا ثلاثة أنواع من القهوة بدون كافيين. ', 'ok '])
    await ask('messaging_send_reply', { conversation_id: '5', text: text.repeat(text === 'ok ' ? 1 : 6) })
  await run('inbox_close_conversation', { conversation_id: '1', reason: 'Answered by phone' })
  await run('inbox_set_reminder', { conversation_id: '4', at: '2026-10-02T07:00:00Z' })
}

const seedSettings = async (world: ScreenWorld, run: Run): Promise<void> => {
  const { server, workspace } = world
  for (const name of ['Support サポート', 'Wholesale'])
    await createTeam(server.db, workspace.id, name, server.app.now())
  await insertSandboxTemplates(server, workspace, ...TEMPLATES.map((template) => ({ ...template })))
  await run('messaging_create_quick_message', {
    code: 'hours',
    title: 'Opening hours 営業時間',
    text: 'Hello {{contact.name}}, we are open from 9 to 18.\nเปิดทุกวัน',
    visibility: 'company',
  })
  await run('messaging_create_quick_message', {
    code: 'long',
    text: '長い文章です。'.repeat(585).slice(0, 4096),
  })
  for (const message of ['Hello, I would like to order.', 'こんにちは、注文したいのですが 👨‍👩‍👧‍👦'])
    await run('messaging_create_short_link', { message })
  await run('webhooks_create_endpoint', {
    url: 'https://hooks.example.com/in',
    description: 'Orders 注文',
    custom_headers: { 'X-Team': 'sales' },
    event_types: ['contact.created/1', 'message.received/1'],
  })
  await run('webhooks_create_endpoint', { url: LONG_URL, event_types: ['contact.created/1'] })
}

/** Starts a server with the workspace of the screens. Close `server` at the end. */
export const createScreenWorld = async (): Promise<ScreenWorld> => {
  let now = '2026-09-28T08:00:00.000Z'
  const at = (minutesAgo: number): void => {
    now = new Date(Date.parse(NOW) - minutesAgo * 60_000).toISOString()
  }
  const server = await startServer(databases[0]!, { now: () => now })
  const workspace = await makeWorkspace(server, { name: '珈琲 Rösterei', timezone: 'Asia/Tokyo' })
  const world = { server, workspace }
  // Lists by time have one order: no two calls are made at the same time.
  const runOne = runAs(server, workspace.owner.key)
  const run: Run = async (name, input) => {
    now = new Date(Date.parse(now) + 1000).toISOString()
    return await runOne(name, input)
  }
  await seedSettings(world, run)
  await seedContacts(run)
  await seedWork(world, run, at)
  at(0)
  await seedBroadcasts(world)
  await seedAttempts(world)
  await seedJobs(world)
  return world
}
