import assert from 'node:assert/strict'
import { Writable } from 'node:stream'
import { it } from 'node:test'
import { sql } from 'kysely'
import { catalog, type Operation } from '../../catalog/index.ts'
import { createApiKey } from '../../server/api-keys.ts'
import { createLogger } from '../../server/logger.ts'
import { type Door, doorsOf, everyDatabase, runCli } from '../doors.ts'
import { makeWorkspace, type TestServer } from '../servers.ts'
import { buildExampleInputs, seedWorld } from '../world.ts'

/** The paths of all texts in an input. */
const listTextPaths = (value: unknown, path: (string | number)[] = []): (string | number)[][] => {
  if (typeof value === 'string') return [path]
  if (value === null || typeof value !== 'object') return []
  return Object.entries(value).flatMap(([name, member]) =>
    listTextPaths(member, [...path, Array.isArray(value) ? Number(name) : name]),
  )
}

/** Returns a copy of an input with another value at a path. */
const replaceAt = (input: object, path: readonly (string | number)[], value: unknown): any => {
  const copy = structuredClone(input)
  const last = path.at(-1)!
  const parent = path.slice(0, -1).reduce<any>((at, name) => at[name], copy)
  parent[last] = value
  return copy
}

const logged: string[] = []
const log = createLogger('debug', {
  destination: new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      logged.push(chunk.toString())
      done()
    },
  }),
})

/** Returns the tables of the whole database in which a text stands, other than as a hash. */
const findTablesWith = async ({ db }: TestServer, text: string): Promise<string[]> => {
  const { rows } = await sql<{ name: string }>`
    select table_name as name from information_schema.tables
    where table_schema = 'public' and table_type = 'BASE TABLE'`.execute(db)
  const found = []
  for (const { name } of rows) {
    const { rows: hits } = await sql`
      select 1 from ${sql.table(name)} as t where strpos(t::text, ${text}) > 0 limit 1`.execute(db)
    if (hits.length > 0) found.push(name)
  }
  return found
}

everyDatabase(
  'An API key in the wrong place',
  (server) => {
    it('comes back in no response, no log line and no row, whatever field it was pasted into', async () => {
      const workspace = await makeWorkspace(server())
      const world = await seedWorld(server(), workspace, 'Paste', '7393')
      const pasted = createApiKey(false)
      const texts: string[] = []
      const doors = doorsOf(server().url, workspace.owner.key)
      const paste = async (door: Door, op: Operation, input: Record<string, unknown>) => {
        const reply = await door.call(op.name, input, {
          ...(op.dryRun ? { idempotencyKey: `pasted-${crypto.randomUUID()}` } : {}),
          ...(op.confirm ? { confirm: op.confirm } : {}),
        })
        // Of an import only the row is refused.
        assert.ok(
          (reply.status >= 400 && reply.status < 500) || reply.text.includes('contains_api_key'),
          `${door.name} ${op.name} ${reply.text}`,
        )
        texts.push(reply.text, JSON.stringify(reply.headers))
      }
      for (const [n, op] of catalog.entries()) {
        const [example = {}] = buildExampleInputs(world, op)
        for (const path of listTextPaths(example))
          await paste(doors[1]!, op, replaceAt(example, path, `see ${pasted}`))
        await paste(doors[n % 4]!, op, { ...example, [pasted]: 1 })
      }
      for (const text of texts) assert.ok(!text.includes(pasted), text)
      assert.deepEqual(await findTablesWith(server(), pasted), [])
      assert.ok(!logged.join('').includes(pasted))
    })

    it('nor from a header, a path or a query', async () => {
      const workspace = await makeWorkspace(server())
      const { key } = workspace.owner
      const pasted = createApiKey(true)
      const body = JSON.stringify({ name: 'One' })
      const send = (path: string, headers: Record<string, string> = {}, method = 'POST') =>
        fetch(`${server().url}${path}`, {
          method,
          headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json', ...headers },
          ...(method === 'POST' ? { body } : {}),
        })
      const responses = [
        await send('/v1/groups', { 'Idempotency-Key': pasted }),
        await send('/v1/groups', { 'Idempotency-Key': `"${pasted}"` }),
        await send('/v1/groups', { 'Api-Version': pasted }),
        await send('/v1/groups', { 'Api-Confirm': pasted }),
        await send('/v1/groups', { 'User-Agent': pasted }),
        await send('/v1/groups', { 'Content-Type': pasted }),
        await send('/v1/groups', { 'Wcrm-Door': pasted, 'X-Request-Id': pasted, Cookie: pasted }),
        await send(`/v1/groups/${pasted}`, {}, 'DELETE'),
        await send(`/v1/contacts/${pasted}`, {}, 'GET'),
        await send(`/v1/${pasted}`),
        await send(`/v1/ops/${pasted}`),
        await send(`/v1/ops/crm_create_group?${pasted}=1`),
        await send(`/v1/contacts?query=${pasted}&${pasted}=2`, {}, 'GET'),
        await send(`/v1/me?authorization=${pasted}`, {}, 'GET'),
        await send(`/${pasted}`, {}, 'GET'),
        await send(`/media/${pasted}`, {}, 'GET'),
        await send(`/qr/${pasted}`, {}, 'GET'),
        await send(`/message/${pasted}`, {}, 'GET'),
        await send(`/sandbox/${pasted}`),
        await send('/mcp', { Accept: 'application/json, text/event-stream', 'Mcp-Name': pasted }),
        await send(`/mcp?toolsets=${pasted}`, { Accept: 'application/json, text/event-stream' }),
        await send('/provider/webhook', { 'X-Hub-Signature-256': pasted }),
        await send('/v1/me', { Authorization: `Basic ${pasted}` }, 'GET'),
        await send('/v1/me', { Authorization: `Bearer ${pasted} ${pasted}` }, 'GET'),
      ]
      for (const response of responses) {
        assert.ok(response.status < 500, response.url)
        const text = (await response.text()) + JSON.stringify([...response.headers])
        assert.ok(!text.includes(pasted), `${response.url} ${text}`)
      }
      assert.deepEqual(await findTablesWith(server(), pasted), [])
      assert.ok(!logged.join('').includes(pasted))
      const metrics = await server().app.metrics.registry.metrics()
      assert.ok(!metrics.includes(pasted))
    })

    it('nor from any command line, variable or standard input', async () => {
      const pasted = createApiKey(false)
      const env = { WCRM_URL: server().url, XDG_CONFIG_HOME: '/nonexistent', WCRM_KEYCHAIN: 'off' }
      const commands: [argv: string[], env: Record<string, string>, stdin?: string][] = [
        [['whoami', pasted], env],
        [['contacts', 'search', '--query', pasted], env],
        [['contacts', 'upsert', '--phone', '1', `--name=${pasted}`, '--json'], env],
        [['contacts', 'import', pasted], env],
        [[pasted], env],
        [['--url', pasted, 'whoami'], env],
        [['serve', '--data', pasted], env],
        [['mcp', '--url', `http://${pasted}.example`], env],
        [['sandbox', 'say', '--from', pasted, 'Hello'], env],
        [['login', pasted], env],
        [['completion', pasted], env],
        [['whoami'], { ...env, WCRM_API_KEY: pasted }],
        [['whoami'], { ...env, WCRM_API_KEY: `${pasted} ${pasted}` }],
        [['whoami'], { ...env, WCRM_API_KEY: `${pasted.slice(0, 20)}\n${pasted.slice(20)}` }],
        [['whoami'], { ...env, WCRM_URL: pasted }],
        [['whoami'], { ...env, WCRM_API_KEY: pasted, WCRM_URL: `http://127.0.0.1:1/${pasted}` }],
        [['whoami'], { ...env, WCRM_API_KEY: pasted, WCRM_API_VERSION: pasted }],
        [['serve'], { ...env, WCRM_TRUST_PROXY: pasted, WCRM_LOG_LEVEL: pasted }],
        [['admin', 'keys', 'list'], { ...env, WCRM_DATABASE_URL: pasted }],
        [['login'], env, pasted],
        [['login'], env, `${pasted}…`],
      ]
      for (const [argv, variables, stdin] of commands) {
        const { exit, stdout, stderr } = await runCli(argv, variables, stdin)
        assert.notEqual(exit, 0, argv.join(' '))
        assert.ok(!(stdout + stderr).includes(pasted.slice(20)), `${argv.join(' ')}: ${stdout}${stderr}`)
      }
    })
  },
  { log },
)
