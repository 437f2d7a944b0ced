import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, it } from 'node:test'
import { signatureHeaders } from '../../catalog/webhooks/sign.ts'
import { doAs } from '../calls.ts'
import { everyDatabase, runCli } from '../doors.ts'
import { processEnvironment } from '../process.ts'
import { runs } from '../level.ts'
import { makeWorkspace } from '../servers.ts'
import { startTcpProxy } from '../tcp-proxy.ts'

const home = mkdtempSync(join(tmpdir(), 'wcrm-listen-'))
const children: ChildProcess[] = []
const receivers: Server[] = []
after(() => {
  for (const child of children) child.kill('SIGKILL')
  for (const receiver of receivers) {
    receiver.closeAllConnections()
    receiver.close()
  }
  rmSync(home, { recursive: true })
})

type Received = { id: string; type: string; company_id: string; data: { contact: { phone: string } } }

/** A receiver of events that refuses the first ones with these statuses. */
const startReceiver = async (secret: () => string, refusals: number[] = []) => {
  const received: Received[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      const seconds = Number(request.headers['webhook-timestamp'])
      const signed = signatureHeaders([secret()], String(request.headers['webhook-id']), seconds, body)
      const isSigned = signed['webhook-signature'] === request.headers['webhook-signature']
      const status = isSigned ? (refusals.shift() ?? 204) : 401
      if (status === 204) received.push(JSON.parse(body) as Received)
      // A redirect that were followed would bring the event here a second time.
      response.writeHead(status, status === 307 ? { location: '/elsewhere' } : {}).end()
    })
  })
  receivers.push(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    received,
  }
}

/** Runs `wcrm listen` in a process. `saw` waits for a text on stderr, `printed` for so many lines. */
const startListening = (url: string, key: string, ...flags: string[]) => {
  const child = spawn(process.execPath, ['bin/wcrm.js', 'listen', ...flags], {
    env: { ...processEnvironment, WCRM_URL: url, WCRM_API_KEY: key, XDG_STATE_HOME: home, HOME: home },
  })
  let errors = ''
  let lines = ''
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()))
  child.stdout.on('data', (chunk: Buffer) => (lines += chunk.toString()))
  const exited = once(child, 'exit')
  children.push(child)
  const until = async (stream: NodeJS.ReadableStream, isThere: () => boolean): Promise<void> => {
    while (!isThere()) {
      if (child.exitCode !== null) throw new Error(`listen ended: ${errors}`)
      await Promise.race([once(stream, 'data'), exited])
    }
  }
  return {
    saw: (pattern: RegExp) => until(child.stderr, () => pattern.test(errors)),
    printed: (count: number) => until(child.stdout, () => lines.split('\n').length > count),
    /** Looks whenever a line was printed. */
    until: (isThere: () => boolean) => until(child.stdout, isThere),
    errors: () => errors,
    lines: () => lines.trim().split('\n'),
    stop: async (signal: NodeJS.Signals) => {
      child.kill(signal)
      return ((await exited) as [number | null])[0]
    },
  }
}

const secretOf = (errors: string): string => /whsec_[\w+/=]+/.exec(errors)?.[0] ?? ''

everyDatabase('wcrm listen', (server) => {
  it('however often the connection is cut, each event arrives once, in order, and it says so', async (t) => {
    const workspace = await makeWorkspace(server())
    const run = doAs(server(), workspace.owner.key)
    const proxy = await startTcpProxy(server().url)
    t.after(proxy.close)
    const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
    const receiver = await startReceiver(() => secret)
    const [total, cuts] = [runs(60, 2000), runs(3, 20)]
    const flags = ['--forward-to', receiver.url, '--since', 'now', '--events', 'contact.created']
    const listening = startListening(
      proxy.route(server().url),
      workspace.owner.key,
      ...flags,
      '--secret',
      secret,
    )
    await listening.saw(/Ctrl-C ends it/)
    const phones: string[] = []
    for (let n = 0; n < total; n++) {
      const phone = `1555${String(2_000_000 + n)}`
      await run('crm_upsert_contact', { phone })
      phones.push(phone)
      if (n % Math.floor(total / cuts) === 1) {
        // One that is being forwarded, or is on its way, when the connection goes.
        await listening.printed(Math.max(1, receiver.received.length))
        proxy.cutAll()
      }
    }
    await listening.printed(total)
    await listening.saw(/Caught up \d+, missed 0/)
    assert.equal(await listening.stop('SIGINT'), 0)
    assert.deepEqual(
      receiver.received.map(({ data }) => data.contact.phone),
      phones,
    )
    assert.match(listening.errors(), /Connection lost/)
    assert.doesNotMatch(listening.errors(), /missed (?!0)/)
    assert.match(listening.errors(), new RegExp(`Forwarded ${total}, refused 0`))
  })

  it('continues after a kill where it ended; waits for a target that refuses', async () => {
    const workspace = await makeWorkspace(server())
    const run = doAs(server(), workspace.owner.key)
    const create = (phone: string) => run('crm_upsert_contact', { phone })
    let secret = ''
    const receiver = await startReceiver(() => secret, [307, 500])
    const flags = ['--forward-to', receiver.url, '--events', 'contact.created/1']
    const first = startListening(server().url, workspace.owner.key, ...flags)
    await first.saw(/Ctrl-C ends it/)
    secret = secretOf(first.errors())
    await create('15553000001')
    await first.printed(1)
    assert.match(first.errors(), /307, again in 0\.5 s[^]*500, again in 1 s/)
    assert.match(first.lines()[0]!, /\tcontact\.created\/1\tevt_\w+\t204 \d+ ms$/)
    await first.stop('SIGKILL')
    await create('15553000002')
    const second = startListening(server().url, workspace.owner.key, ...flags)
    await second.saw(/Ctrl-C ends it/)
    assert.equal(secretOf(second.errors()), secret)
    await create('15553000003')
    // The kill may have come between the answer and the note of it.
    await second.until(() => receiver.received.at(-1)?.data.contact.phone === '15553000003')
    await second.stop('SIGTERM')
    assert.deepEqual(
      [...new Set(receiver.received.map(({ data }) => data.contact.phone))],
      ['15553000001', '15553000002', '15553000003'],
    )
    assert.ok(receiver.received.every(({ company_id: id }) => id === workspace.id))
    const again = startListening(server().url, workspace.owner.key, '--since', '1h', '--json')
    await again.printed(3)
    assert.equal((JSON.parse(again.lines()[0]!) as { type: string }).type, 'contact.created/1')
    assert.equal(await again.stop('SIGINT'), 0)
  })

  it('wrong input: exit 2, and what is right', async () => {
    const workspace = await makeWorkspace(server())
    const env = { WCRM_URL: server().url, WCRM_API_KEY: workspace.owner.key, XDG_STATE_HOME: home }
    for (const [flags, text] of [
      [['--forward-to', 'ftp://x'], /must be an http\(s\) URL/],
      [['--forward-to', 'http://u:p@x'], /without a user/],
      [['--since', 'yesterday'], /for example --since 1h/i],
      [['--secret', 'hunter2'], /no signing secret/],
      [['--attempts', '0'], /1 to 99/],
    ] as const) {
      const { exit, stdout, stderr } = await runCli(['listen', ...flags], env)
      assert.deepEqual([exit, stdout], [2, ''], stderr)
      assert.match(stderr, text)
      assert.doesNotMatch(stderr, /hunter2/)
      // It is said before the first call: without a server it is the same.
      const away = await runCli(['listen', ...flags], { ...env, WCRM_URL: 'http://127.0.0.1:9' })
      assert.deepEqual([away.exit, away.stderr], [2, stderr])
    }
  })
})
