import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createContactReads } from './contacts.ts'
import { openDatabase } from './database.ts'
import { createIdentity } from './identity.ts'
import { createInboxReads } from './inbox.ts'
import { createNamesCache } from './names.ts'
import { createWrites } from './writes.ts'

/**
 * The server that the product is compared with: node:http and postgres.js with nothing in between, on the
 * same database. It answers the requests of the cases with the product's bodies, from statements of the same
 * shape, writes the same rows, and remembers names as the product does; it does not authenticate, validate,
 * limit or measure. It shares no code with the product, so that a slow piece of it cannot slow both.
 */
const [databaseUrl, workspaceId] = process.argv.slice(2) as [string, string]
const database = openDatabase(databaseUrl, workspaceId)
const namesOf = createNamesCache(database)
const contacts = createContactReads(database, namesOf)
const inbox = createInboxReads(database, namesOf)
const writes = createWrites(database)
const identify = await createIdentity(database)

const readBody = async (request: IncomingMessage): Promise<unknown> => {
  let text = ''
  for await (const chunk of request.setEncoding('utf8')) text += chunk
  return JSON.parse(text)
}

const DEFAULT_LIMIT = 25
const CONTACT_PATH = '/v1/contacts/'

/** Returns the body of a response, as text or as what is to become JSON. */
const route = async (request: IncomingMessage): Promise<unknown> => {
  const [path, query] = request.url!.split('?') as [string, string | undefined]
  if (request.method === 'POST') {
    const body = await readBody(request)
    return await (path === '/v1/contacts/tag' ? writes.tag(body as never) : writes.upsert(body as never))
  }
  if (path === '/v1/me') return identify()
  const parameters = new URLSearchParams(query)
  const limit = Number(parameters.get('limit') ?? DEFAULT_LIMIT)
  if (path === '/v1/conversations') return await inbox.conversations(limit)
  if (path === '/v1/events') return await inbox.events(limit)
  if (path.startsWith(CONTACT_PATH)) return await contacts.read(path.slice(CONTACT_PATH.length))
  const text = parameters.get('query')
  return await (text === null ? contacts.list(limit) : contacts.search(text, limit))
}

const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
  try {
    const result = await route(request)
    const body = typeof result === 'string' ? result : JSON.stringify(result)
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
// As the product does it; connections rest while the other server is measured.
server.keepAliveTimeout = 65_000
process.once('SIGTERM', () => process.exit(0))
