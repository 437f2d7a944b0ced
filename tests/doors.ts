import { randomUUID } from 'node:crypto'
import { channel } from 'node:diagnostics_channel'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { after, before, describe, it } from 'node:test'
import type { z } from 'zod'
import { AskedAnswer } from '../catalog/approvals.ts'
import { commonErrors } from '../catalog/errors.ts'
import { findOperation, type Operation, getPlannedSchema, listRoutes } from '../catalog/index.ts'
import { toArgv } from '../cli/argv.ts'
import { runCommandLine } from '../cli/main.ts'
import { readManifest } from '../cli/manifest.ts'
import { anyDatabase, databases } from './databases.ts'
import { runs } from './level.ts'
import { createToolRequest } from './mcp-request.ts'
import {
  makeWorkspace,
  type ServerOptions,
  sharedServer,
  startWithOptions,
  type TestServer,
  type TestWorkspace,
} from './servers.ts'

/** The answer of a door. `body` is parsed JSON: the result, or as much of the problem as the door shows. */
export type Reply = {
  status: number
  body: any
  text: string
  headers: Record<string, string>
  exit?: number
}
export type CallOptions = {
  key?: string | undefined
  idempotencyKey?: string
  confirm?: string
  version?: string
  /** `show`, or the token of a plan, which the command line has in a file. */
  plan?: string
}
export type Door = {
  name: string
  confirms: boolean
  call: (op: string, input?: Record<string, unknown>, options?: CallOptions) => Promise<Reply>
}

const auth = (key: string | undefined, options: CallOptions): Record<string, string> => ({
  ...(key === undefined ? {} : { Authorization: `Bearer ${key}` }),
  ...(options.idempotencyKey === undefined ? {} : { 'Idempotency-Key': options.idempotencyKey }),
  ...(options.confirm === undefined ? {} : { 'Api-Confirm': options.confirm }),
  ...(options.version === undefined ? {} : { 'Api-Version': options.version }),
  ...(options.plan === undefined ? {} : { 'Api-Plan': options.plan }),
})

const replyOf = async (response: Response): Promise<Reply> => {
  const text = await response.text()
  return {
    status: response.status,
    text,
    body: text === '' ? undefined : JSON.parse(text),
    headers: Object.fromEntries(response.headers),
  }
}

/** Returns the route whose fields hold all of the input, or the first route when none does. */
const routeFor = (op: Operation, input: Record<string, unknown>) => {
  const routes = listRoutes(op)
  const known = (fields: readonly string[]) =>
    Object.keys(input)
      .filter((f) => op.input.shape[f])
      .every((f) => fields.includes(f))
  return routes.find((r) => known([...r.pathFields, ...r.queryFields, ...r.bodyFields])) ?? routes[0]!
}

const restCall =
  (base: string, key: string | undefined) =>
  async (name: string, input: Record<string, unknown> = {}, options: CallOptions = {}): Promise<Reply> => {
    const op = findOperation(name)!
    const route = routeFor(op, input)
    const path = route.path.replaceAll(/\{(\w+)\}/g, (_, field: string) =>
      encodeURIComponent(String(input[field])),
    )
    const query = new URLSearchParams()
    const body: Record<string, unknown> = {}
    const { if_version: version, ...fields } = input
    for (const [field, value] of Object.entries(fields)) {
      if (route.pathFields.includes(field)) continue
      if (route.queryFields.includes(field) || route.bodyFields.length === 0)
        for (const one of Array.isArray(value) ? value : [value]) query.append(field, String(one))
      else body[field] = value
    }
    const hasBody = route.bodyFields.length > 0
    return await replyOf(
      await fetch(`${base}${path}${query.size > 0 ? `?${query}` : ''}`, {
        method: route.method,
        headers: {
          ...auth('key' in options ? options.key : key, options),
          ...(hasBody ? { 'Content-Type': 'application/json' } : {}),
          ...(op.bytes ? { Accept: 'application/json' } : {}),
          ...(version === undefined ? {} : { 'If-Match': version === '*' ? '*' : `"${String(version)}"` }),
        },
        ...(hasBody ? { body: JSON.stringify(body) } : {}),
      }),
    )
  }

const opsCall =
  (base: string, key: string | undefined) =>
  async (name: string, input: Record<string, unknown> = {}, options: CallOptions = {}): Promise<Reply> =>
    await replyOf(
      await fetch(`${base}/v1/ops/${name}`, {
        method: 'POST',
        headers: {
          ...auth('key' in options ? options.key : key, options),
          'Content-Type': 'application/json',
        },
        body: JSON.stringify(input),
      }),
    )

/** Arguments with which a tool answers like the other doors, so that tests can compare the answers. */
export const wholeAnswer = (op: Operation): { detail?: string } =>
  op.slim ? { detail: op.input.shape['detail']?.safeParse('summary').success ? 'summary' : 'full' } : {}

/** Whether an answer is an approval request: 202, a status that MCP and the command line do not show. */
const isAsked = (body: any): boolean => body?.approval !== undefined && typeof body.next === 'string'

const getSuccess = (name: string, body: unknown): number =>
  isAsked(body) ? 202 : listRoutes(findOperation(name)!)[0]!.status

const mcpCall =
  (base: string, key: string | undefined) =>
  async (name: string, input: Record<string, unknown> = {}, options: CallOptions = {}): Promise<Reply> => {
    const args = {
      ...wholeAnswer(findOperation(name)!),
      ...input,
      ...(options.idempotencyKey ? { idempotency_key: options.idempotencyKey } : {}),
      ...(options.plan ? { plan: options.plan } : {}),
    }
    const used = 'key' in options ? options.key : key
    const response = await fetch(`${base}/mcp?toolsets=all`, createToolRequest(name, args, { key: used }))
    const reply = await replyOf(response)
    if (!reply.body?.result) return reply
    const { isError, structuredContent, content } = reply.body.result as {
      isError?: boolean
      structuredContent?: unknown
      content: { text: string }[]
    }
    const text = content[0]!.text
    const { untrusted_fields: _, ...body } = (isError ? JSON.parse(text) : structuredContent) as {
      untrusted_fields?: string[]
      status?: number
    }
    return {
      status: isError ? body.status! : getSuccess(name, body),
      body,
      text,
      headers: reply.headers,
    }
  }

/** Who records answers of tests (`tools/recording/`) listens to it. */
const printed = channel('wcrm.test.command-line')

/** Runs a command line in this process, with streams of its own. `stdin` is all of its input. */
export const runCli = async (
  argv: string[],
  env: Record<string, string>,
  stdin = '',
): Promise<{ exit: number; stdout: string; stderr: string }> => {
  const collect = () => {
    const stream = new PassThrough()
    let text = ''
    stream.on('data', (chunk: Buffer) => {
      text += chunk.toString()
    })
    return { stream, text: () => text }
  }
  const [out, err] = [collect(), collect()]
  const input = new PassThrough()
  input.end(stdin)
  const exit = await runCommandLine(argv, { stdin: input, stdout: out.stream, stderr: err.stream, env })
  const result = { exit, stdout: out.text(), stderr: err.text() }
  printed.publish({ argv, ...result })
  return result
}

const manifest = readManifest()

/** The steps of plan files, by their tokens. */
const steps = new Map<string, Record<string, unknown>>()

/** Returns the arguments that write a plan, or apply one; `read`: what they print as the other doors answer it. */
const planArgv = (name: string, input: Record<string, unknown>, { plan, idempotencyKey }: CallOptions) => {
  const folder = mkdtempSync(join(tmpdir(), 'plan-'))
  const file = join(folder, 'a.plan')
  if (plan === 'show')
    return {
      folder,
      argv: [
        ...toArgv(
          manifest.commands.find((c) => c.operation === name)!,
          input,
        ),
        '--plan',
        file,
      ],
      read: ({ steps: [step] }: any) => {
        steps.set(step.plan.token, step)
        return { ...step.answer, plan: step.plan, dry_run: true }
      },
    }
  const step = { ...steps.get(plan!), input, idempotency_key: idempotencyKey ?? randomUUID() }
  writeFileSync(file, JSON.stringify(step))
  return { folder, argv: ['apply', file], read: ({ steps: [{ answer }] }: any) => answer }
}

const cliCall =
  (base: string, key: string | undefined) =>
  async (name: string, input: Record<string, unknown> = {}, options: CallOptions = {}): Promise<Reply> => {
    const spec = manifest.commands.find((c) => c.operation === name)!
    const planned = options.plan === undefined ? undefined : planArgv(name, input, options)
    const flags = [
      ...(options.idempotencyKey && options.plan === undefined
        ? ['--idempotency-key', options.idempotencyKey]
        : []),
      ...(options.confirm ? ['--confirm', options.confirm] : []),
    ]
    const used = 'key' in options ? options.key : key
    const { exit, stdout, stderr } = await runCli(
      [...(planned?.argv ?? toArgv(spec, input)), ...flags, '--json'],
      {
        WCRM_URL: base,
        ...(used ? { WCRM_API_KEY: used } : {}),
        XDG_CONFIG_HOME: '/nonexistent',
        ...(options.version ? { WCRM_API_VERSION: options.version } : {}),
      },
    )
    const text = stdout !== '' ? stdout : stderr
    const answer = JSON.parse(text)
    const body = stdout !== '' && planned ? planned.read(answer) : answer
    if (planned) rmSync(planned.folder, { recursive: true })
    return {
      status: stdout !== '' ? getSuccess(name, body) : body.status!,
      body,
      text: text.trimEnd(),
      headers: {},
      exit,
    }
  }

/** Returns the four doors to a server for one API key: REST, `/v1/ops`, MCP and the command line. */
export const doorsOf = (base: string, key: string | undefined): Door[] => [
  { name: 'rest', confirms: true, call: restCall(base, key) },
  { name: 'ops', confirms: true, call: opsCall(base, key) },
  { name: 'mcp', confirms: false, call: mcpCall(base, key) },
  { name: 'cli', confirms: true, call: cliCall(base, key) },
]

const strictOutputs = new WeakMap<Operation, z.ZodType>()

/**
 * Returns the schema that refuses fields beside those of an operation's output. Zod compiles a schema when it
 * is first used, which takes longer than a call.
 */
export const strictOutput = (op: Operation): z.ZodType => {
  if (!strictOutputs.has(op)) strictOutputs.set(op, getPlannedSchema(op).strict())
  return strictOutputs.get(op)!
}

/**
 * Wraps a door so that it throws when an answer is not what the catalog promises: a result has the shape of
 * the operation's output, a problem one of its codes.
 */
export const checked = (door: Door): Door => ({
  ...door,
  call: async (name, input, options) => {
    const reply = await door.call(name, input, options)
    const op = findOperation(name)!
    if (isAsked(reply.body)) AskedAnswer.strict().parse(reply.body)
    else if (reply.status < 300) strictOutput(op).parse(reply.body)
    else if (![...commonErrors, ...op.errors, ...(op.dryRun ? ['conflict'] : [])].includes(reply.body.code))
      throw new Error(`${name} does not list the error ${reply.body.code}`)
    return reply
  },
})

export type Scene = {
  server: TestServer
  workspace: TestWorkspace
  door: Door
  call: Door['call']
  as: (key: string) => Door['call']
}

const DOOR_NAMES = ['rest', 'ops', 'mcp', 'cli']
const ALL_DOORS = [0, 1, 2, 3]

/**
 * The doors of the nth test of a suite, by their place in `doorsOf`. What reaches a database is the same through all of
 * them: each test takes all doors to one database, and one to the other, which changes from test to test; in the soak
 * all.
 */
const doorsFor = (database: string, n: number): readonly number[] => {
  if (database === anyDatabase) return ALL_DOORS
  return Array.from({ length: runs(1, ALL_DOORS.length) }, (_, k) => (n + k) % ALL_DOORS.length)
}

/** Returns the server that all files share, or a new one for tests that name options. */
const startFor = (database: string, options: ServerOptions): Promise<TestServer> =>
  Object.keys(options).length === 0 ? sharedServer(database) : startWithOptions(database, options)

/**
 * Defines each test for every door and on every database (`doorsFor`). A test gets a workspace of its own, and `call`,
 * which goes through its door with the owner's key; `as` calls with another key. Tests without `options` share a server
 * with other files.
 *
 * @example
 * everyDoor('Groups', (test) => {
 *   test('have a name', async ({ call }) => {
 *     const { body } = await call('crm_create_group', { name: 'VIP' })
 *     assert.equal(body.group.name, 'VIP')
 *   })
 * })
 */
export const everyDoor = (
  title: string,
  define: (test: (name: string, body: (scene: Scene) => Promise<void>) => void) => void,
  options: ServerOptions = {},
): void => {
  for (const database of databases) {
    describe(`${title} (${database})`, () => {
      let server: TestServer
      before(async () => {
        server = await startFor(database, options)
      })
      after(async () => {
        await server.close()
      })
      let n = 0
      define((name, body) => {
        for (const index of doorsFor(database, n++)) {
          it(`${name} [${DOOR_NAMES[index]}]`, async () => {
            const workspace = await makeWorkspace(server)
            const door = checked(doorsOf(server.url, workspace.owner.key)[index]!)
            await body({
              server,
              workspace,
              door,
              call: door.call,
              as: (key) => checked(doorsOf(server.url, key)[index]!).call,
            })
          })
        }
      })
    })
  }
}

/**
 * Defines a suite on every database, for behaviour that does not depend on the door. `server` returns the
 * server once tests run; they make their own workspaces on it (`makeWorkspace`).
 */
export const everyDatabase = (
  title: string,
  define: (server: () => TestServer, database: string) => void,
  options: ServerOptions = {},
): void => {
  for (const database of databases) {
    describe(`${title} (${database})`, () => {
      let server: TestServer
      before(async () => {
        server = await startFor(database, options)
      })
      after(async () => {
        await server.close()
      })
      define(() => server, database)
    })
  }
}
