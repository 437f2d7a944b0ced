import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import postgres from 'postgres'

/**
 * The server that the product is compared with: node:http and postgres.js with nothing in between, on the
 * same database. `/row` and `/rows` return the plain columns of `contacts`; `/contact` and `/contacts` return
 * the same body as the product, built with as little code as possible.
 */
const [databaseUrl, workspaceId] = process.argv.slice(2) as [string, string]
const connect = (settings: Record<string, string>) =>
  postgres(databaseUrl, {
    max: 16,
    onnotice: () => {},
    connection: { jit: 'off', ...settings } as never,
    types: {
      date: {
        to: 1184,
        from: [1114, 1184],
        serialize: (v: string) => v,
        parse: (v: string) => new Date(v).toISOString(),
      },
    },
  })
const sql = connect({})
/** Plans `like` patterns for their value; a generic plan would read the whole index. */
const searchSql = connect({ plan_cache_mode: 'force_custom_plan' })

type Handler = (url: URL, request: IncomingMessage) => Promise<unknown>

const contactColumns = `
  c.id, c.name, c.phone, c.chatapp_user_id, c.dnd, c.starred, c.created_at, c.updated_at,
  c.email, c.web_visitor_id, c.last_activity_at, f.attrs,
  (select json_agg(json_build_object('id', v.id::text, 'channel_id', v.channel_id::text, 'state', v.state,
      'assigned_staff_id', v.assigned_staff_id::text, 'assigned_team_id', v.assigned_team_id::text,
      'created_at', v.created_at, 'last_activity_at', v.last_activity_at))
    from (
      select * from conversations v where v.workspace_id = c.workspace_id and v.contact_id = c.id
      order by v.last_activity_at desc, v.id desc limit 10
    ) as v) as conversations`
const labelColumns = `
  (select json_agg(json_build_object('id', t.id::text, 'name', t.name) order by t.name_key)
    from contact_tags l join tags t on t.workspace_id = l.workspace_id and t.id = l.tag_id
    where l.workspace_id = c.workspace_id and l.contact_id = c.id) as tags,
  (select json_agg(json_build_object('id', g.id::text, 'name', g.name) order by g.name_key)
    from contact_groups l join groups g on g.workspace_id = l.workspace_id and g.id = l.group_id
    where l.workspace_id = c.workspace_id and l.contact_id = c.id) as groups`

type ContactRow = Record<string, unknown> & {
  attrs: Record<string, unknown>
  conversations: Record<string, unknown>[] | null
}
const fields = await sql<
  {
    id: string
    key: string
    label: string
    type: string
    options: { value: string; label: string }[] | null
  }[]
>`
  select id, key, label, type, options from custom_fields
  where workspace_id = ${workspaceId} and deleted_at is null order by id`

const toAttributes = (attrs: Record<string, unknown>) =>
  fields
    .filter((f) => attrs[f.id] !== undefined)
    .map(({ id, key, label, type, options: choices }) => {
      const value = attrs[id]
      return {
        key,
        label,
        type,
        value,
        display: choices?.find((o) => o.value === value)?.label ?? String(value),
        typed_value: value,
      }
    })

const toContact = (row: ContactRow, full: boolean) => ({
  id: row.id,
  name: row.name,
  phone: row.phone,
  phone_masked: false,
  chatapp_user_id: row.chatapp_user_id,
  dnd: row.dnd,
  starred: row.starred,
  created_at: row.created_at,
  updated_at: row.updated_at,
  ...(full ? { email: row.email } : {}),
  web_visitor_id: row.web_visitor_id,
  ...(full ? { tags: row.tags ?? [], groups: row.groups ?? [] } : {}),
  attributes: toAttributes(row.attrs ?? {}),
  conversations: (row.conversations ?? []).map((v) => ({
    id: v.id,
    channel_id: v.channel_id,
    state: v.state,
    assigned: v.assigned_staff_id !== null || v.assigned_team_id !== null,
    assigned_staff_id: v.assigned_staff_id,
    created_at: new Date(v.created_at as string).toISOString(),
    last_activity_at: new Date(v.last_activity_at as string).toISOString(),
  })),
  last_activity_at: row.last_activity_at,
})

const readBody = async (request: IncomingMessage): Promise<Record<string, string>> => {
  let text = ''
  for await (const chunk of request.setEncoding('utf8')) text += chunk
  return JSON.parse(text) as Record<string, string>
}

const joinFacts = 'left join contact_facts f on f.workspace_id = c.workspace_id and f.contact_id = c.id'
const firstPage = 'order by created_at desc, id desc limit 25'

const handlers: Record<string, Handler> = {
  '/row': async (url) => {
    const [row] = await sql`
      select * from contacts where workspace_id = ${workspaceId} and id = ${url.searchParams.get('id')}`
    return row
  },
  '/contact': async (url) => {
    const [row] = await sql.unsafe(
      `select ${contactColumns}, ${labelColumns} from contacts c ${joinFacts}
        where c.workspace_id = $1 and c.id = $2`,
      [workspaceId, url.searchParams.get('id')!],
      { prepare: true },
    )
    return toContact(row as unknown as ContactRow, true)
  },
  '/rows': async () => ({
    data: await sql`
      select * from contacts where workspace_id = ${workspaceId}
      order by created_at desc, id desc limit 25`,
  }),
  '/contacts': async () => {
    const rows = await sql.unsafe(
      `select ${contactColumns} from (select * from contacts where workspace_id = $1 ${firstPage}) as c
        ${joinFacts} order by c.created_at desc, c.id desc`,
      [workspaceId],
      { prepare: true },
    )
    return { data: (rows as unknown as ContactRow[]).map((row) => toContact(row, false)) }
  },
  '/search': async (url) => {
    const pattern = `%${url.searchParams.get('query')!.toLowerCase()}%`
    return {
      data: await searchSql`
        select * from contacts where workspace_id = ${workspaceId} and search like ${pattern}
        order by created_at desc, id desc limit 25`,
    }
  },
  '/insert': async (_, request) => {
    const { phone, name } = (await readBody(request)) as { phone: string; name: string }
    const digits = phone.slice(1)
    const nameKey = name.toLowerCase()
    const now = new Date().toISOString()
    const [row] = await sql`
      insert into contacts (workspace_id, phone, name, name_key, search, created_at, updated_at)
      values (${workspaceId}, ${digits}, ${name}, ${nameKey}, ${`${nameKey}\n${digits}`}, ${now}, ${now})
      returning *`
    return row
  },
}

const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
  const url = new URL(request.url!, 'http://bare')
  try {
    const body = JSON.stringify(await handlers[url.pathname]!(url, request))
    response
      .writeHead(200, {
        'content-type': 'application/json; charset=utf-8',
        'content-length': Buffer.byteLength(body),
      })
      .end(body)
  } catch (error) {
    process.stderr.write(`${String(error)}\n`)
    response.writeHead(500).end()
  }
}

const server = createServer((request, response) => {
  void handle(request, response)
}).listen(0, '127.0.0.1', () => {
  const { port } = server.address() as { port: number }
  process.stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${port}` })}\n`)
})
process.once('SIGTERM', () => process.exit(0))
