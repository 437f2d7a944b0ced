import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { after, before, beforeEach } from 'node:test'
import { errors } from '../../catalog/errors.ts'
import { runCommandLine } from '../../cli/main.ts'
import { collectOutput } from './output-streams.ts'

/** A request that the command line sent. */
type RecordedRequest = { path: string; headers: IncomingHttpHeaders; input: Record<string, unknown> }

/** A response of the fake server. `disconnect`: close the connection without a response. */
export type FakeResponse = {
  status?: number
  body: unknown
  headers?: Record<string, string>
  disconnect?: boolean
}

/** A server with prepared responses, and the command line as its client. */
export type FakeServer = {
  /** Set once tests run. */
  url: string
  /** The requests of the test so far. */
  requests: RecordedRequest[]
  /** Responses to the next requests; the last one is repeated. */
  responses: FakeResponse[]
  /** A folder for files of the tests, which also holds the configuration of the command line. */
  home: string
  /** Runs the command line with these arguments against the server; its streams are a terminal if one is given. */
  wcrm: (
    argv: string[],
    options?: {
      stdin?: string
      env?: Record<string, string>
      terminal?: { columns: number; rows: number }
    },
  ) => Promise<{ exit: number; stdout: string; stderr: string }>
}

export const listen = (server: Server): Promise<void> =>
  new Promise((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })

/** Returns a problem of the catalog as a response body. */
export const problemBody = (code: keyof typeof errors, extras: object = {}) => ({
  type: `https://example.com/errors/${code}`,
  title: errors[code].title,
  status: errors[code].status,
  detail: 'What happened.',
  code,
  request_id: 'req_1',
  ...extras,
})

const createFakeServer = (fake: FakeServer): Server =>
  createServer((request, response) => {
    let text = ''
    request.on('data', (chunk: Buffer) => {
      text += chunk.toString()
    })
    request.on('end', () => {
      fake.requests.push({
        path: request.url!,
        headers: request.headers,
        input: (text === '' ? {} : JSON.parse(text)) as Record<string, unknown>,
      })
      const {
        status = 200,
        body,
        headers = {},
        disconnect,
      } = fake.responses.length > 1 ? fake.responses.shift()! : fake.responses[0]!
      if (disconnect) return request.socket.destroy()
      response
        .writeHead(status, { 'Content-Type': 'application/json', ...headers })
        .end(typeof body === 'string' ? body : JSON.stringify(body))
    })
  })

/** Starts a fake server for the tests of a file. Each test begins without requests and with the response `{}`. */
export const useFakeServer = (): FakeServer => {
  const home = mkdtempSync(join(tmpdir(), 'wcrm-cli-'))
  const fake: FakeServer = {
    url: '',
    requests: [],
    responses: [],
    home,
    wcrm: async (argv, { stdin = '', env = {}, terminal } = {}) => {
      const [stdout, stderr] = [collectOutput(), collectOutput()]
      const input = new PassThrough()
      for (const stream of terminal ? [input, stdout.stream, stderr.stream] : [])
        Object.assign(stream, { isTTY: true, ...terminal })
      input.end(stdin)
      const exit = await runCommandLine(argv, {
        stdin: input,
        stdout: stdout.stream,
        stderr: stderr.stream,
        env: {
          WCRM_URL: fake.url,
          WCRM_API_KEY: 'wc_test_key',
          WCRM_KEYCHAIN: 'off',
          XDG_CONFIG_HOME: home,
          ...env,
        },
      })
      return { exit, stdout: stdout.text(), stderr: stderr.text() }
    },
  }
  const server = createFakeServer(fake)
  before(async () => {
    await listen(server)
    fake.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  after(() => {
    server.closeAllConnections()
    server.close()
    rmSync(home, { recursive: true })
  })
  beforeEach(() => {
    fake.requests.length = 0
    fake.responses = [{ body: {} }]
  })
  return fake
}
