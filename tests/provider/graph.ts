import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A request as the provider saw it. `token`: of its Authorization header. */
type GraphCall = { method: string; path: string; token: string | undefined; body: string }

type Refusal = { code: number; status: number }

export const DEFAULT_TOKEN = 'EAAGdefault'
export const DEFAULT_APP_SECRET = 'the secret of our app'
const PNG = Buffer.from('89504e470d0a1a0a', 'hex')

const readAll = async (request: IncomingMessage): Promise<string> => {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  return Buffer.concat(parts).toString()
}

const PAGE_SIZE = 2

/**
 * Starts a provider that is no sandbox: it does what is asked for with any token that was not revoked, and
 * records who asked. `numbers`: what it shows of each number; `templates`: what it lists of each account, in pages;
 * `sentAs`: what it says of a message beside its id.
 */
export const startGraph = async () => {
  const calls: GraphCall[] = []
  const revoked = new Set<string>()
  const refusals = new Map<string, Refusal>()
  const numbers = new Map<string, Record<string, unknown>>()
  const templates = new Map<string, Record<string, unknown>[]>()
  const sentAs: { message_status?: string } = {}
  let serial = 0
  const listTemplates = (account: string, query: URLSearchParams): unknown => {
    const [name, from] = [query.get('name') ?? '', Number(query.get('after') ?? 0)]
    const rows = (templates.get(account) ?? []).filter((row) => String(row['name']).includes(name))
    const after = from + PAGE_SIZE
    return {
      data: rows.slice(from, after),
      paging: {
        cursors: { before: String(from), after: String(after) },
        ...(after < rows.length ? { next: `${url()}/next?access_token=secret` } : {}),
      },
    }
  }
  const answer = (method: string, path: string, query: URLSearchParams): unknown => {
    const parts = path.split('/')
    const edge = parts.at(-1)!
    if (edge === 'messages')
      return {
        contacts: [{ input: '1', wa_id: '1' }],
        messages: [{ id: `wamid.graph.${++serial}`, ...sentAs }],
      }
    if (edge === 'message_templates')
      return method === 'POST'
        ? { id: String(7_000_000 + ++serial), status: 'PENDING', category: 'UTILITY' }
        : listTemplates(parts.at(-2)!, query)
    if (edge === 'message_qrdls')
      return {
        code: `CODE${String(++serial).padStart(10, 'A').replaceAll(/\d/g, 'Z')}`,
        prefilled_message: 'Hi',
        deep_link_url: 'https://wa.me/message/X',
      }
    if (edge === 'uploads') return { id: 'upload:MTphdHRh' }
    if (edge.startsWith('upload:')) return { h: '4::aW1hZ2UvcG5n:ARa' }
    if (edge === 'phone_numbers')
      return {
        data: [...numbers]
          .filter(([, row]) => row['account'] === parts.at(-2))
          .map(([id, row]) => ({ id, ...row })),
      }
    if (numbers.has(edge)) return { id: edge, ...numbers.get(edge) }
    if (edge.startsWith('media')) return { url: `${url()}/files/${edge}`, mime_type: 'image/png' }
    return { success: true }
  }
  const server: Server = createServer((request, response) => {
    void readAll(request).then((sent) => {
      const { pathname, searchParams } = new URL(request.url!, 'http://graph')
      const path = pathname.replace(/^\/v\d+\.\d\//, '').replace(/^\//, '')
      const token = /^(?:Bearer|OAuth) (.+)$/.exec(request.headers.authorization ?? '')?.[1]
      calls.push({ method: request.method!, path, token, body: sent })
      if (path.startsWith('files/')) return response.writeHead(200, { 'Content-Type': 'image/png' }).end(PNG)
      const refusal =
        token === undefined || revoked.has(token)
          ? { code: 190, status: 401 }
          : refusals.get(path.split('/').at(-1)!)
      const body = refusal
        ? { error: { message: 'No', type: 'OAuthException', code: refusal.code, fbtrace_id: 'A1' } }
        : answer(request.method!, path, searchParams)
      return response
        .writeHead(refusal?.status ?? 200, { 'Content-Type': 'application/json' })
        .end(JSON.stringify(body))
    })
  })
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
  const url = () => `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    calls,
    revoked,
    /** Refusals by the last part of the path. */
    sentAs,
    refusals,
    numbers,
    templates,
    config: {
      providerUrl: url(),
      providerToken: DEFAULT_TOKEN,
      providerAppSecret: DEFAULT_APP_SECRET,
      providerVerifyToken: 'our verify token',
      providerAppId: '4711',
    },
    /** The tokens of the calls to a path, in order. */
    tokensOf: (pattern: RegExp) => calls.filter(({ path }) => pattern.test(path)).map(({ token }) => token),
    close: async () => {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }
}
export type Graph = Awaited<ReturnType<typeof startGraph>>
