import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { PassThrough } from 'node:stream'
import { it } from 'node:test'
import { build } from 'esbuild'
import { Webhook } from 'standardwebhooks'
import { catalog } from '../../catalog/index.ts'
import { runCommandLine } from '../../cli/main.ts'
import {
  createClient,
  type Fetch,
  isWcrmError,
  verifyWebhook,
  WebhookVerificationError,
} from '../../client/index.ts'
import { table } from '../../client/operations.ts'
import { bridgeStdio } from '../../mcp/stdio.ts'
import { libraryOptions } from '../../scripts/build.ts'
import { renderOperations, renderPassingReasons, renderTypes } from '../../scripts/client-types.ts'
import { everyDatabase } from '../doors.ts'
import { runs } from '../level.ts'
import { createAgentScene } from '../approvals/scene.ts'
import { createReplyScene } from '../messaging/replies.ts'
import { makeWorkspace } from '../servers.ts'
import { startFaultyProxy } from './faulty-proxy.ts'

it('@wcrm/client has a method for each operation', () => {
  const named = Object.values(table).flatMap((entry) =>
    Array.isArray(entry) ? [entry[0] as string] : Object.values(entry).map(([name]) => name as string),
  )
  assert.deepEqual(named.toSorted(), catalog.map(({ name }) => name).toSorted())
})

it('@wcrm/client: a stream waits for the longest time of a timer where the server asks for more', async (t) => {
  const stop = new AbortController()
  const { mock } = t.mock.method(globalThis, 'setTimeout')
  const client = createClient({
    url: 'http://127.0.0.1:1',
    apiKey: 'wc_live_of_nobody',
    fetch: async () => new Response('busy', { status: 503, headers: { 'retry-after': '3000000' } }),
  })
  const reading = client.stream({ signal: stop.signal }).next()
  const longWaits = () =>
    mock.calls.map(({ arguments: [, ms] }) => ms ?? 0).filter((ms) => ms > 1_000_000_000)
  while (longWaits().length === 0) await new Promise(setImmediate)
  stop.abort()
  await reading
  assert.deepEqual(longWaits(), [2 ** 31 - 1])
})

it('@wcrm/client: its generated parts follow from the catalog (npm run generate)', async () => {
  const format = (text: string): string =>
    execFileSync('npx', ['oxfmt', '--stdin-filepath', 'a.ts'], { input: text, encoding: 'utf8' })
  const read = (name: string): string =>
    readFileSync(new URL(`../../client/${name}`, import.meta.url), 'utf8')
  assert.ok(format(await renderTypes()) === read('types.ts'), 'client/types.ts')
  assert.ok(format(renderOperations()) === read('operations.ts'), 'client/operations.ts')
  assert.ok(format(renderPassingReasons()) === read('passing-reasons.ts'), 'client/passing-reasons.ts')
})

it('@wcrm/client: minified it has less than 60 KB, no dependency, and nothing of Node alone', async () => {
  const { outputFiles, metafile } = await build({ ...libraryOptions, write: false, metafile: true })
  assert.ok(outputFiles[0]!.contents.length < 60_000)
  const [output] = Object.values(metafile.outputs)
  assert.deepEqual(
    [output!.imports, Object.keys(metafile.inputs).filter((name) => name.startsWith('node:'))],
    [[], []],
  )
})

it('@wcrm/client refuses an address that no request can be sent to, before anything is tried', async () => {
  const create = (url: unknown) => createClient({ url: url as string, apiKey: 'wc_live_x' })
  for (const [url, fault] of [
    [undefined, /is not the address of a server, such as https:.* \(undefined\)/],
    ['', /is not the address/],
    ['crm.example.com', /is not the address.*\(crm\.example\.com\)/],
    ['localhost:8787', /is not the address/],
    ['ftp://crm.example.com', /is not the address/],
    ['https://mara:word@crm.example.com', /has a user name or password/],
    ['https://crm.example.com/?team=1', /has a query or fragment/],
    ['https://crm.example.com/#a', /has a query or fragment/],
  ] as const)
    assert.throws(
      () => create(url),
      (error: Error) =>
        error instanceof TypeError && fault.test(error.message) && !/word@/.test(error.message),
      String(url),
    )
  for (const url of [
    'https://crm.example.com/',
    'http://127.0.0.1:8787',
    'https://example.com/crm/',
    ' https://a.b ',
  ])
    assert.ok(create(url).contacts, url)
})

it('@wcrm/client says why no answer came', async () => {
  // Each fails in its own way: by a code alone, by a message, and by both in the error itself.
  const refused = Object.assign(new AggregateError([], ''), { code: 'ECONNREFUSED' })
  const untrusted = Object.assign(new Error('self-signed certificate'), {
    code: 'DEPTH_ZERO_SELF_SIGNED_CERT',
  })
  for (const [error, message] of [
    [new TypeError('fetch failed', { cause: refused }), 'No response: fetch failed: ECONNREFUSED'],
    [
      new TypeError('fetch failed', { cause: untrusted }),
      'No response: fetch failed: self-signed certificate',
    ],
    [new Error('ECONNRESET', { cause: { code: 'ECONNRESET' } }), 'No response: ECONNRESET'],
    [new Error('Enough.'), 'No response: Enough.'],
    [new Error('Enough.', { cause: 'a string' }), 'No response: Enough.'],
  ] as const) {
    const fetch: Fetch = () => Promise.reject(error)
    const wcrm = createClient({ url: 'https://crm.example.com', apiKey: 'k', fetch, retries: 0 })
    await assert.rejects(wcrm.whoami(), {
      name: 'WcrmError',
      code: 'connection_failed',
      message,
      cause: error,
    })
  }
})

everyDatabase('@wcrm/client', (server) => {
  it('reads, changes, rehearses, and lists page by page', async () => {
    const workspace = await makeWorkspace(server())
    const wcrm = createClient({ url: `${server().url}/`, apiKey: workspace.owner.key })
    const { contact } = await wcrm.contacts.upsert({ phone: '+1 555 010 0042', name: 'Ada', tags: ['VIP'] })
    const dry = await wcrm.contacts.update({ contact_id: contact.id!, name: 'Eve' }, { dryRun: true })
    assert.equal(dry.dry_run, true)
    assert.equal((await wcrm.contacts.get({ contact_id: contact.id! })).name, 'Ada')
    for (const name of ['A', 'B', 'C']) await wcrm.groups.create({ name })
    const names: string[] = []
    for await (const { name } of wcrm.groups.list({ limit: 2 })) names.push(name)
    assert.deepEqual(names, ['A', 'B', 'C'])
    const page = await wcrm.groups.list({ limit: 2 })
    assert.deepEqual([page.data.length, typeof page.next_cursor], [2, 'string'])
    const filter = { or: [{ tags: { some: { name: { eq: 'VIP' } } } }, { not: { name: { isNull: true } } }] }
    assert.equal((await wcrm.contacts.count({ filter })).count, 1)
    await wcrm.contacts.delete({ contact_id: contact.id! }, { confirm: 'delete' })
  })

  it('throws errors by code, with the fields, the request and the key', async () => {
    const workspace = await makeWorkspace(server())
    const attempts: number[] = []
    const wcrm = createClient({
      url: server().url,
      apiKey: workspace.owner.key,
      onAttempt: ({ status }) => attempts.push(status),
    })
    const refused = wcrm.contacts.upsert({ phone: 'none' }, { idempotencyKey: 'client-test-0001' })
    await assert.rejects(refused, (error) => {
      assert.ok(isWcrmError(error, 'invalid_input'))
      assert.deepEqual(
        [error.status, error.errors[0]?.pointer, error.idempotencyKey, error.mayHaveHappened],
        [400, '#/phone', 'client-test-0001', false],
      )
      assert.match(error.requestId!, /^req_/)
      return true
    })
    assert.deepEqual(attempts, [400])
    const gone = createClient({ url: 'http://127.0.0.1:1', apiKey: 'k', retries: 1 })
    await assert.rejects(gone.groups.create({ name: 'A' }), (error) => {
      assert.ok(isWcrmError(error, 'connection_failed') && error.mayHaveHappened && error.idempotencyKey)
      return true
    })
    await assert.rejects(
      async () => wcrm.whoami({}, { signal: AbortSignal.abort(new Error('Enough.')) }),
      (error) => isWcrmError(error, 'connection_failed'),
    )
  })

  it('what no header can hold is refused by the server, as other wrong keys are', async () => {
    const { owner } = await makeWorkspace(server())
    const create = (apiKey: string) => createClient({ url: server().url, apiKey, retries: 0 })
    for (const idempotencyKey of ['заказ-номер-1', 'order-1\nB', 'order-1-\ud83d'])
      await assert.rejects(create(owner.key).groups.create({ name: 'A' }, { idempotencyKey }), (error) => {
        assert.ok(isWcrmError(error, 'invalid_input'), String(error))
        assert.deepEqual([error.reason, error.mayHaveHappened], ['idempotency_key_invalid', false])
        return true
      })
    await assert.rejects(create('ключ').whoami(), (error) => isWcrmError(error) && error.status === 401)
    const reason = 'Cut in the middle of an emoji: \ud83d'
    assert.ok(await create(`${owner.key}\n`).groups.create({ name: 'A' }, { reason }))
  })

  it('waits for the date of a proxy as for its seconds', async () => {
    const { owner } = await makeWorkspace(server())
    const waits: (number | undefined)[] = []
    const busy: Fetch = async () =>
      new Response('busy', {
        status: 503,
        headers: { 'retry-after': new Date(Date.now() + 3_600_000).toUTCString() },
      })
    const wcrm = createClient({
      url: server().url,
      apiKey: owner.key,
      fetch: busy,
      onAttempt: ({ retryInMs }) => waits.push(retryInMs),
    })
    await assert.rejects(
      async () => await wcrm.whoami(),
      (error) => isWcrmError(error) && error.retryAfterSeconds! > 3500 && error.retryAfterSeconds! <= 3600,
    )
    assert.deepEqual(waits, [undefined])
  })

  it('a call of an agent that waits for a person is an error with its request', async () => {
    const scene = await createAgentScene(server())
    const wcrm = createClient({ url: server().url, apiKey: scene.agent.key })
    const input = { conversation_id: scene.id, text: 'On its way.' }
    await assert.rejects(
      wcrm.conversations.reply(input, { confirm: 'send', reason: 'The customer asks – häufig.' }),
      (error) => {
        assert.ok(isWcrmError(error, 'approval_required'))
        assert.deepEqual([error.status, error.approval?.reason], [202, 'The customer asks – häufig.'])
        return true
      },
    )
  })

  const number = (prefix: string, count: number): string[] =>
    Array.from({ length: count }, (_, i) => `${prefix} ${String(i).padStart(4, '0')}`)

  /** A conversation. Notes in it are calls of which a second one, or one under another key, shows. */
  const createNotes = async () => {
    const { id, workspace } = await createReplyScene(server())
    const { key } = workspace.owner
    const read = async (): Promise<(string | null)[]> => {
      const texts: (string | null)[] = []
      const wcrm = createClient({ url: server().url, apiKey: key })
      for await (const message of wcrm.conversations.messages({ conversation_id: id, limit: 100 }))
        if (message.note) texts.push(message.text)
      return texts.toSorted()
    }
    return { id, key, read }
  }

  it('calls through lost connections, 429, 502 and 503 have one effect each', async () => {
    const { id, key, read } = await createNotes()
    const proxy = await startFaultyProxy(server().url, 1)
    const wcrm = createClient({ url: proxy.url, apiKey: key, retries: 40 })
    const texts = number('Note', runs(48, 1000))
    const left = [...texts]
    const write = async (): Promise<void> => {
      for (let text = left.shift(); text !== undefined; text = left.shift())
        await wcrm.conversations.note({ conversation_id: id, text })
    }
    await Promise.all(Array.from({ length: 24 }, write))
    await proxy.close()
    assert.deepEqual(await read(), texts)
    const { 'stream cut': _, ...faults } = proxy.faults
    assert.ok(
      Object.values(faults).every((count) => count > 0),
      JSON.stringify(faults),
    )
  })

  it('so do those of the command line', async () => {
    const { id, key, read } = await createNotes()
    const proxy = await startFaultyProxy(server().url, 2)
    const texts = number('Note', runs(16, 100))
    const env = { WCRM_URL: proxy.url, WCRM_API_KEY: key, XDG_CONFIG_HOME: '/nonexistent' }
    for (const text of texts) {
      const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()]
      const words = ['conversations', 'note', id, '--text', text, '--retry=40']
      assert.equal(await runCommandLine(words, { stdin, stdout, stderr, env }), 0)
    }
    await proxy.close()
    assert.deepEqual(await read(), texts)
    assert.ok(proxy.faults['answer lost'] + proxy.faults[502] > 0, JSON.stringify(proxy.faults))
  })

  it('so do those of the MCP bridge, which tries again by itself', async () => {
    const { id, key, read } = await createNotes()
    const proxy = await startFaultyProxy(server().url, 6)
    const [input, output, notes] = [new PassThrough(), new PassThrough(), new PassThrough()]
    const done = bridgeStdio({ url: `${proxy.url}/mcp?toolsets=all`, apiKey: key, input, output, notes })
    const answers = createInterface({ input: output })[Symbol.asyncIterator]()
    const texts = number('Note', runs(16, 100))
    const answered: string[] = []
    for (const text of texts) {
      const params = { name: 'inbox_add_note', arguments: { conversation_id: id, text } }
      input.write(`${JSON.stringify({ jsonrpc: '2.0', id: text, method: 'tools/call', params })}\n`)
      // It gives up soon: then nobody knows whether there is a note.
      const answer = JSON.parse((await answers.next()).value as string) as object
      if ('result' in answer) answered.push(text)
    }
    input.end()
    await done
    await proxy.close()
    const found = await read()
    assert.deepEqual(found, [...new Set(found)])
    assert.deepEqual(
      answered.filter((text) => !found.includes(text)),
      [],
    )
    assert.ok(answered.length > texts.length / 2, `${answered.length} answers`)
    assert.ok(proxy.faults['answer lost'] + proxy.faults[502] > 0, JSON.stringify(proxy.faults))
  })

  it('the stream yields each event once, over connections that break', async () => {
    const { owner } = await makeWorkspace(server())
    const proxy = await startFaultyProxy(server().url, 3)
    const wcrm = createClient({ url: proxy.url, apiKey: owner.key, retries: 40 })
    const names = number('Group', 12)
    const seen: string[] = []
    const stop = new AbortController()
    // What happened before is not of `now`, and what happens while there is no connection is.
    await wcrm.groups.create({ name: 'Before' })
    const after = (await wcrm.events.list({ after: 'now' })).next_cursor!
    const writing = (async () => {
      for (const name of names) await wcrm.groups.create({ name })
    })()
    for await (const event of wcrm.stream({ after, types: ['group.created'], signal: stop.signal })) {
      if (event.type === 'group.created/1') seen.push(event.data.group.name)
      if (seen.length === names.length) stop.abort()
    }
    await writing
    await proxy.close()
    assert.deepEqual(seen, names)
    assert.ok(proxy.faults['stream cut'] >= 2)
    const wrong = createClient({ url: server().url, apiKey: 'wc_live_wrong' }).stream()
    await assert.rejects(wrong.next(), (error) => isWcrmError(error, 'unauthenticated'))
  })

  it('a stream from now on has what happens while its first connection is lost', async () => {
    const { owner } = await makeWorkspace(server())
    const wcrm = createClient({ url: server().url, apiKey: owner.key })
    let opened = 0
    const losing: Fetch = async (url, options) => {
      if (!/\/v1\/events(?:\?|$)/.test(url) || ++opened > 1) return await fetch(url, options)
      await wcrm.groups.create({ name: 'Meanwhile' })
      throw new TypeError('fetch failed')
    }
    const stream = createClient({ url: server().url, apiKey: owner.key, fetch: losing }).stream({
      after: 'now',
    })
    const { value } = await stream.next()
    assert.equal(value?.type === 'group.created/1' && value.data.group.name, 'Meanwhile')
    await stream.return()
  })

  it('a reply and a file are sent once, and an unknown outcome is not sent anew by itself', async () => {
    const scene = await createReplyScene(server())
    let calls = 0
    const wcrm = createClient({
      url: server().url,
      apiKey: scene.workspace.owner.key,
      onAttempt: () => void calls++,
    })
    await scene.sandbox.fault({ to: scene.phone, drop_answer: true })
    const options = { confirm: 'send', idempotencyKey: 'client-reply-001' } as const
    const input = { conversation_id: scene.id, text: 'Hello' }
    await assert.rejects(wcrm.conversations.reply(input, options), (error) => {
      assert.ok(isWcrmError(error) && error.reason === 'outcome_unknown' && error.mayHaveHappened)
      return true
    })
    assert.equal(calls, 1)
    assert.equal((await scene.sandbox.sent(scene.phone)).length, 1)
  })
})

it('@wcrm/client verifies webhooks as the libraries of Standard Webhooks sign them', async () => {
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
  const body = JSON.stringify({ id: 'evt_1', type: 'group.created', version: '1', data: { note: 'ä漢👍' } })
  const now = Date.parse('2026-10-01T09:30:00Z')
  const sign = (text: string, by = secret): Record<string, string> => ({
    'Webhook-Id': 'evt_1',
    'Webhook-Timestamp': String(now / 1000),
    'Webhook-Signature': `v1,AAAA v2,x ${new Webhook(by).sign('evt_1', new Date(now), text)}`,
  })
  const bytes = new TextEncoder().encode(body)
  const event = await verifyWebhook({
    secret: ['whsec_b2xkb2xkb2xk', secret],
    headers: sign(body),
    body: bytes,
    now,
  })
  assert.equal(event.type, 'group.created')
  for (const given of [
    { headers: sign(body), body: `${body} `, now },
    { headers: sign(body, 'whsec_b3RoZXJvdGhlcm90aGVy'), body, now },
    { headers: sign(body), body, now: now + 301_000 },
    { headers: new Headers({ ...sign(body), 'webhook-signature': 'v1,%%%' }), body, now },
    { headers: {}, body, now },
  ])
    await assert.rejects(verifyWebhook({ secret, ...given }), WebhookVerificationError)
})
