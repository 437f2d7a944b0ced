import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { it } from 'node:test'
import { build } from 'esbuild'
import { Webhook } from 'standardwebhooks'
import { catalog } from '../../catalog/index.ts'
import {
  createClient,
  type Fetch,
  isWcrmError,
  verifyWebhook,
  WebhookVerificationError,
} from '../../client/index.ts'
import { table } from '../../client/operations.ts'
import { libraryOptions } from '../../scripts/build.ts'
import { renderOperations, renderTypes } from '../../scripts/client-types.ts'
import { everyDatabase } from '../doors.ts'
import { runs } from '../level.ts'
import { createAgentScene } from '../approvals/scene.ts'
import { createReplyScene } from '../messaging/replies.ts'
import { makeWorkspace } from '../servers.ts'

it('@wcrm/client has a method for each operation', () => {
  const named = Object.values(table).flatMap((entry) =>
    Array.isArray(entry) ? [entry[0] as string] : Object.values(entry).map(([name]) => name as string),
  )
  assert.deepEqual(named.toSorted(), catalog.map(({ name }) => name).toSorted())
})

it('@wcrm/client: its generated parts follow from the catalog (npm run generate)', async () => {
  const format = (text: string): string =>
    execFileSync('npx', ['oxfmt', '--stdin-filepath', 'a.ts'], { input: text, encoding: 'utf8' })
  const read = (name: string): string =>
    readFileSync(new URL(`../../client/${name}`, import.meta.url), 'utf8')
  assert.ok(format(await renderTypes()) === read('types.ts'), 'client/types.ts')
  assert.ok(format(renderOperations()) === read('operations.ts'), 'client/operations.ts')
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

/** A repeatable series of random numbers below 1. */
const createRandom = (seed: number) => (): number => {
  seed = (seed * 1103515245 + 12345) % 2 ** 31
  return seed / 2 ** 31
}

/** A network that loses requests and answers, and proxies that answer for the server. */
const createBadFetch = (seed: number): Fetch => {
  const random = createRandom(seed)
  return async (url, init) => {
    const fate = random()
    if (fate < 0.04) throw new TypeError('fetch failed')
    if (fate < 0.2) return new Response('Too many', { status: 429, headers: { 'Retry-After': '0' } })
    if (fate < 0.3) return new Response('<html>', { status: 503, headers: { 'Retry-After': '0' } })
    const response = await fetch(url, init)
    if (fate < 0.34) {
      await response.arrayBuffer()
      throw new TypeError('terminated')
    }
    if (fate < 0.42) {
      await response.arrayBuffer()
      return new Response('Bad gateway', { status: 502, headers: { 'Retry-After': '0' } })
    }
    return response
  }
}

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

  it('calls through lost answers, 429, 502 and 503 have one effect each', async () => {
    const workspace = await makeWorkspace(server())
    const wcrm = createClient({
      url: server().url,
      apiKey: workspace.owner.key,
      fetch: createBadFetch(1),
      retries: 40,
    })
    const names = Array.from({ length: runs(48, 1000) }, (_, i) => `Group ${String(i).padStart(4, '0')}`)
    for (let at = 0; at < names.length; at += 24)
      await Promise.all(names.slice(at, at + 24).map((name) => wcrm.groups.create({ name })))
    const found: string[] = []
    for await (const { name } of wcrm.groups.list({ limit: 25 })) found.push(name)
    assert.deepEqual(found.toSorted(), names)
  })

  it('the stream yields each event once, over connections that break', async () => {
    const workspace = await makeWorkspace(server())
    let opened = 0
    const breaking: Fetch = async (url, init) => {
      if (!url.includes('/v1/events')) return await fetch(url, init)
      if (++opened === 2) throw new TypeError('fetch failed')
      const ends = new AbortController()
      const response = await fetch(url, { ...init, signal: AbortSignal.any([init.signal!, ends.signal]) })
      let count = 0
      const cut = new TransformStream<Uint8Array, Uint8Array>({
        transform: (chunk, controller) => {
          controller.enqueue(chunk)
          if (new TextDecoder().decode(chunk).includes('data:') && ++count === 2 && opened < 4) ends.abort()
        },
      })
      return new Response(response.body!.pipeThrough(cut), response)
    }
    const wcrm = createClient({ url: server().url, apiKey: workspace.owner.key, fetch: breaking })
    const names = Array.from({ length: 12 }, (_, i) => `G${i}`)
    const writing = (async () => {
      for (const name of names) await wcrm.groups.create({ name })
    })()
    const stop = new AbortController()
    const seen: string[] = []
    for await (const event of wcrm.stream({ types: ['group.created'], signal: stop.signal })) {
      if (event.type === 'group.created/1') seen.push(event.data.group.name)
      if (seen.length === names.length) stop.abort()
    }
    await writing
    assert.deepEqual(seen, names)
    assert.ok(opened >= 3, `${opened} connections`)
    const wrong = createClient({ url: server().url, apiKey: 'wc_live_wrong' }).stream()
    await assert.rejects(wrong.next(), (error) => isWcrmError(error, 'unauthenticated'))
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
