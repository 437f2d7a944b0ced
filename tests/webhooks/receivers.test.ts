import assert from 'node:assert/strict'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { buffer } from 'node:stream/consumers'
import { after, before, it } from 'node:test'
import { signatureHeaders } from '../../catalog/webhooks/sign.ts'
import { deliverDue } from '../deliver-due.ts'
import { doAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { makeWorkspace, type TestServer } from '../servers.ts'

/** Runs the example receivers of docs/webhooks.md and delivers to them. */
const guide = readFileSync('docs/webhooks.md', 'utf8')
const blocks = new Map(
  [...guide.matchAll(/```\w+ file=(\S+)\n(.*?)```/gs)].map(([, name, text]) => [name!, text!]),
)

const has = (command: string, ...args: string[]): boolean => spawnSync(command, args).status === 0
const skipUnless = (installed: boolean, what: string) => (installed ? false : `${what} is not installed`)

type ExampleReceiver = {
  port: number
  line: () => Promise<Record<string, unknown>>
  stop: () => Promise<void>
}

/** Starts a receiver. Its first line of output is its port, the others are the events it accepted. */
const startExample = async (
  command: string,
  args: string[],
  cwd: string,
  secret: string,
): Promise<ExampleReceiver> => {
  const child: ChildProcess = spawn(command, args, {
    cwd,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, PORT: '0', WEBHOOK_SECRET: secret },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const exited = once(child, 'exit')
  const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]()
  const line = async () => JSON.parse(String((await lines.next()).value)) as Record<string, unknown>
  return {
    port: (await line())['port'] as number,
    line,
    stop: async () => {
      child.kill()
      await exited
    },
  }
}

const createEndpointAt = async (server: TestServer, port: number) => {
  const workspace = await makeWorkspace(server)
  const run = doAs(server, workspace.owner.key)
  const { endpoint, signing_secret: secret } = await run('webhooks_create_endpoint', {
    url: `http://127.0.0.1:${port}/hooks`,
    event_types: ['group.created/1'],
  })
  return { run, id: endpoint.id as string, secret: secret as string }
}

/** Rotates the secret of an endpoint and returns the new one. */
const rotateSecret = async (run: ReturnType<typeof doAs>, id: string): Promise<string> =>
  (await run('webhooks_rotate_secret', { endpoint_id: id, idempotency_key: `rotate-${id}` }))
    .signing_secret as string

everyDatabase('Example receivers of docs/webhooks.md', (server) => {
  let folder: string
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'wcrm-receivers-'))
    symlinkSync(join(process.cwd(), 'node_modules'), join(folder, 'node_modules'))
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
    for (const [name, text] of blocks) writeFileSync(join(folder, name), text)
  })
  after(() => {
    rmSync(folder, { recursive: true, force: true })
  })

  for (const { name, command, args, skip } of [
    { name: 'TypeScript', command: process.execPath, args: ['receiver.ts'], skip: false },
    {
      name: 'Python',
      command: 'python3',
      args: ['receiver.py'],
      skip: skipUnless(has('python3', '--version'), 'python3'),
    },
  ] as const) {
    it(
      `accepts each event once, also after a rotation, and rejects forged requests (${name})`,
      { skip },
      async () => {
        // The endpoint gets its URL later: the receiver cannot start before there is a secret.
        const { run, id, secret } = await createEndpointAt(server(), 9)
        const receiver = await startExample(command, [...args], folder, secret)
        try {
          await run('webhooks_update_endpoint', {
            endpoint_id: id,
            url: `http://127.0.0.1:${receiver.port}/hooks`,
          })
          const deliverAndList = async () => {
            await deliverDue(server().app)
            return (await run('webhooks_list_deliveries', { endpoint_id: id })).data.map(
              (d: { status: string; last_response_status: number }) =>
                `${d.status} ${d.last_response_status}`,
            )
          }
          await run('crm_create_group', { name: 'Grüße 😀' })
          assert.deepEqual(await deliverAndList(), ['delivered 204'])
          const event = await receiver.line()
          assert.deepEqual(
            [event['type'], event['version'], (event['data'] as { group: { name: string } }).group.name],
            ['group.created', '1', 'Grüße 😀'],
          )
          const [{ id: delivery }] = (await run('webhooks_list_deliveries', { endpoint_id: id })).data
          await run('webhooks_replay_delivery', { delivery_id: delivery })
          assert.deepEqual(await deliverAndList(), ['delivered 204'])
          await rotateSecret(run, id)
          await run('crm_create_group', { name: 'Second' })
          assert.deepEqual(await deliverAndList(), ['delivered 204', 'delivered 204'])
          // The replay was accepted and not printed again.
          assert.equal(((await receiver.line())['data'] as { group: { name: string } }).group.name, 'Second')
          const post = async (headers: Record<string, string>, body: string) =>
            (await fetch(`http://127.0.0.1:${receiver.port}/`, { method: 'POST', headers, body })).status
          const now = Math.floor(Date.now() / 1000)
          const valid = signatureHeaders([secret], 'evt_x', now, '{}')
          assert.equal(await post(valid, '{} '), 401)
          assert.equal(await post({ ...valid, 'webhook-id': 'evt_y' }, '{}'), 401)
          assert.equal(await post({ ...valid, 'webhook-signature': 'v1,AAAA' }, '{}'), 401)
          assert.equal(await post(signatureHeaders([secret], 'evt_x', now - 400, '{}'), '{}'), 401)
          assert.equal(await post({}, '{}'), 401)
          assert.equal(await post(valid, '{}'), 204)
        } finally {
          await receiver.stop()
        }
      },
    )
  }

  it(
    'verify.sh verifies a signature',
    { skip: skipUnless(has('openssl', 'version') && has('sh', '-c', 'od -An /dev/null'), 'openssl') },
    async () => {
      const requests: { headers: Record<string, string>; body: Buffer }[] = []
      const listener = createServer((request, response) => {
        void buffer(request).then((body) => {
          requests.push({ headers: request.headers as Record<string, string>, body })
          response.end()
        })
      })
      await new Promise<void>((listening) => listener.listen(0, '127.0.0.1', listening))
      try {
        const { run, id, secret } = await createEndpointAt(server(), (listener.address() as AddressInfo).port)
        const second = await rotateSecret(run, id)
        await run('crm_create_group', { name: 'Grüße 😀' })
        await deliverDue(server().app)
        const [{ headers, body }] = requests as [(typeof requests)[0]]
        assert.equal(headers['webhook-signature']!.split(' ').length, 2)
        writeFileSync(join(folder, 'body.json'), body)
        const verify = (webhookSecret: string, webhookId = headers['webhook-id']!) =>
          spawnSync('sh', ['verify.sh'], {
            cwd: folder,
            encoding: 'utf8',
            env: {
              PATH: process.env.PATH,
              WEBHOOK_SECRET: webhookSecret,
              WEBHOOK_ID: webhookId,
              WEBHOOK_TIMESTAMP: headers['webhook-timestamp'],
              WEBHOOK_SIGNATURE: headers['webhook-signature'],
            },
          }).stdout.trim()
        assert.deepEqual(
          [secret, second].map((s) => verify(s)),
          ['valid', 'valid'],
        )
        assert.deepEqual(
          [verify(secret, 'evt_other'), verify(`whsec_${Buffer.alloc(32).toString('base64')}`)],
          ['invalid', 'invalid'],
        )
      } finally {
        listener.closeAllConnections()
        await new Promise((closed) => listener.close(closed))
      }
    },
  )
})
