import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { sql } from 'kysely'
import { pino } from 'pino'
import { downloadDueMedia } from '../deliver-due.ts'
import { removeErasedFiles } from '../../server/domains/media/erase.ts'
import { parseMediaLocation } from '../../server/domains/media/location.ts'
import { openMediaStore } from '../../server/domains/media/open-store.ts'
import { createOwnChannel, post } from '../channels/bridge.ts'
import { doAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { startPeer } from '../peer.ts'
import { makeWorkspace, startWithOptions, type TestServer } from '../servers.ts'
import { type S3Fault, startS3, type TestS3 } from './s3.ts'

const JPEG = Buffer.from('0123456789 a picture')

let s3: TestS3
before(async () => {
  s3 = await startS3()
})
after(() => s3.close())

describe('S3: what it answers', () => {
  /** Silence is to last `timeoutMs`; the first answer of a busy machine takes a while. */
  const open = (location: string, timeoutMs = 5_000) =>
    openMediaStore(parseMediaLocation(location), { timeoutMs })

  it('a misspelt bucket is said to be one, and cannot work later', async () => {
    const store = await open(s3.location('a').replace('//media', '//medai'))
    assert.deepEqual(await store.check(), {
      ok: false,
      isDefinite: true,
      detail: `There is no bucket medai at ${s3.endpoint}.`,
      fix: 'Create it, or correct the bucket or the endpoint in WCRM_MEDIA.',
    })
  })

  it('refused credentials, a refusal, a failure and silence are told apart, in bounded time', async () => {
    const details = async (fault: S3Fault | undefined, location = s3.location('a')) => {
      s3.fault = fault
      try {
        const checked = await (await open(location, fault === 'hang' ? 300 : undefined)).check()
        return checked.ok ? 'ok' : `${checked.isDefinite ? 'never' : 'perhaps'}: ${checked.detail}`
      } finally {
        s3.fault = undefined
      }
    }
    process.env.AWS_SECRET_ACCESS_KEY = 'wrong'
    const refused = await details(undefined)
    process.env.AWS_SECRET_ACCESS_KEY = 'S3RVER'
    assert.equal(refused, `perhaps: ${s3.endpoint} refuses the credentials (SignatureDoesNotMatch).`)
    assert.equal(await details(403), `perhaps: ${s3.endpoint} does not allow it (AccessDenied).`)
    assert.equal(await details(500), `perhaps: ${s3.endpoint} cannot be reached (500).`)
    const started = performance.now()
    assert.equal(await details('hang'), `perhaps: ${s3.endpoint} cannot be reached (ETIMEDOUT).`)
    assert.ok(performance.now() - started < 5_000)
    assert.match(
      await details(undefined, 's3://media?endpoint=http://127.0.0.1:1'),
      /^perhaps: .*ECONNREFUSED/,
    )
  })

  it('it is reached through a proxy of the environment where Node is told to use it', async () => {
    const seen: string[] = []
    const proxy = createServer((incoming, outgoing) => {
      const url = new URL(incoming.url!)
      seen.push(`${incoming.method} ${url.host}`)
      const { method, headers } = incoming
      const forwarded = request(
        `${s3.endpoint}${url.pathname}${url.search}`,
        { method: method!, headers },
        (answer) => {
          outgoing.writeHead(answer.statusCode!, answer.headers)
          answer.pipe(outgoing)
        },
      )
      incoming.pipe(forwarded)
    }).listen(0, '127.0.0.1')
    await once(proxy, 'listening')
    const { port } = proxy.address() as AddressInfo
    const settings = { NODE_USE_ENV_PROXY: '1', HTTP_PROXY: `http://127.0.0.1:${port}` }
    const location = s3.location('proxied').replace(s3.endpoint, 'http://storage.invalid')
    try {
      Object.assign(process.env, settings)
      assert.deepEqual(await (await open(location)).check(), { ok: true })
      assert.deepEqual([...new Set(seen)].toSorted(), [
        'DELETE storage.invalid',
        'GET storage.invalid',
        'PUT storage.invalid',
      ])
    } finally {
      for (const name of Object.keys(settings)) delete process.env[name]
      proxy.closeAllConnections()
      proxy.close()
    }
  })

  it('a body that ends early or pauses is an error, never a shorter file', async () => {
    const store = await open(s3.location('bodies'), 300)
    await store.write('1/1', [Buffer.alloc(300_000, 'x')])
    for (const fault of ['cut', 'stall'] as const) {
      s3.fault = fault
      const file = await store.read('1/1')
      await assert.rejects(new Response(file!.content).arrayBuffer(), fault)
      s3.fault = undefined
    }
    assert.equal((await new Response((await store.read('1/1'))!.content).arrayBuffer()).byteLength, 300_000)
  })
})

everyDatabase('Files of messages in S3', (server) => {
  /** A server of this database whose files are in S3, and what it logs. */
  const withS3 = async (work: (running: TestServer, log: () => string) => Promise<void>): Promise<void> => {
    let logged = ''
    const log = pino({ level: 'info' }, { write: (line: string) => void (logged += line) })
    const running = await startWithOptions(server().database, { media: s3.location('files'), log })
    try {
      await work(running, () => logged)
    } finally {
      s3.fault = undefined
      await running.close()
    }
  }
  const receive = async (running: TestServer) => {
    const peer = await startPeer()
    peer.answers.push(...[1, 2, 3].map(() => ({ body: JPEG, headers: { 'Content-Type': 'image/jpeg' } })))
    const workspace = await makeWorkspace(running)
    const channel = await createOwnChannel(running, workspace.id, null)
    await running.app.jobs.job('media-downloads').stop()
    const media = { url: `${peer.url}/cat.jpg`, file_name: 'cat.jpg' }
    const message = { id: '1', from: { id: 'v' }, type: 'IMAGE', media }
    const { message_id: id } = await post(running, channel, 'inbound', message)
    const download = async (): Promise<string> => {
      await sql`update runs set run_after = now() where kind = 'media' and subject = ${id}`.execute(
        running.db,
      )
      await downloadDueMedia(running.app, running.app.media!)
      const row = await running.db
        .selectFrom('media')
        .select('state')
        .where('message_id', '=', id)
        .executeTakeFirstOrThrow()
      return row.state
    }
    const run = doAs(running, workspace.owner.key)
    const url = async (): Promise<string> => (await run('messaging_get_media', { message_id: id })).url
    return { workspace, id, download, url, close: peer.close }
  }

  it('are kept, and served by signed URLs, ranges too, under the keys of their workspace', () =>
    withS3(async (running) => {
      const scene = await receive(running)
      s3.requests.length = 0
      assert.equal(await scene.download(), 'kept')
      assert.deepEqual(s3.requests, [`PUT /media/files/${scene.workspace.id}/${scene.id}?x-id=PutObject`])
      const url = await scene.url()
      const whole = await fetch(url)
      assert.deepEqual(
        ['content-type', 'content-length', 'content-disposition', 'accept-ranges'].map((name) =>
          whole.headers.get(name),
        ),
        ['image/jpeg', '20', 'attachment; filename="cat.jpg"', 'bytes'],
      )
      assert.deepEqual(Buffer.from(await whole.arrayBuffer()), JPEG)
      const ask = async (range: string, more: Record<string, string> = {}) => {
        const answer = await fetch(url, { headers: { Range: range, ...more } })
        return [answer.status, answer.headers.get('content-range'), await answer.text()]
      }
      assert.deepEqual(await ask('bytes=2-4'), [206, 'bytes 2-4/20', '234'])
      assert.deepEqual(await ask('bytes=13-'), [206, 'bytes 13-19/20', 'picture'])
      assert.deepEqual(await ask('bytes=-7'), [206, 'bytes 13-19/20', 'picture'])
      assert.deepEqual(await ask('bytes=20-'), [416, 'bytes */20', ''])
      for (const ignored of ['bytes=4-2', 'bytes=0-1,4-5', 'lines=1-2', 'bytes=-'])
        assert.deepEqual(await ask(ignored), [200, null, JPEG.toString()])
      assert.deepEqual(await ask('bytes=2-4', { 'If-Range': '"x"' }), [200, null, JPEG.toString()])
      for (const headers of [{}, { Range: 'bytes=2-4' }]) {
        const head = await fetch(url, { method: 'HEAD', headers })
        assert.deepEqual([head.status, head.headers.get('content-length')], [200, '20'])
      }
      await scene.close()
    }))

  it('no other workspace and no one without the channel reads them', () =>
    withS3(async (running) => {
      const scene = await receive(running)
      await scene.download()
      const other = await makeWorkspace(running)
      const blind = await scene.workspace.staff({ channel_ids: [] })
      for (const key of [other.owner.key, blind.key]) {
        const answer = await fetch(`${running.url}/v1/messages/${scene.id}/media`, {
          headers: { Authorization: `Bearer ${key}` },
        })
        assert.equal(answer.status, 404)
      }
      await scene.close()
    }))

  it('while S3 is down, new files wait, reads answer 503, and everything else goes on', () =>
    withS3(async (running, log) => {
      const kept = await receive(running)
      assert.equal(await kept.download(), 'kept')
      const scene = await receive(running)
      const url = await kept.url()
      s3.fault = 'reset'
      assert.equal(await scene.download(), 'waiting')
      const read = await fetch(url)
      const problem = (await read.json()) as { reason: string }
      assert.deepEqual(
        [read.status, read.headers.get('retry-after'), problem.reason],
        [503, '10', 'media_store_unavailable'],
      )
      const byKey = await fetch(`${running.url}/v1/messages/${kept.id}/media`, {
        headers: { Authorization: `Bearer ${kept.workspace.owner.key}` },
      })
      assert.equal(byKey.status, 503)
      assert.equal((await fetch(`${running.url}/readyz`)).status, 200)
      assert.match(log(), /The media store fails/)
      assert.match(
        await running.app.metrics.registry.metrics(),
        /wcrm_media_store_call_duration_seconds_count\{call="read",outcome="unavailable"\} 2/,
      )
      s3.fault = undefined
      assert.equal(await scene.download(), 'kept')
      assert.equal((await fetch(url)).status, 200)
      assert.match(log(), /The media store works again/)
      await scene.close()
      await kept.close()
    }))

  it('a body that S3 cuts ends the response, and the client sees that it is not whole', () =>
    withS3(async (running) => {
      const scene = await receive(running)
      await scene.download()
      s3.fault = 'cut'
      const answer = await fetch(await scene.url())
      assert.equal(answer.status, 200)
      await assert.rejects(answer.arrayBuffer())
      await scene.close()
    }))

  it('of deleted messages are removed once S3 can be reached', () =>
    withS3(async (running) => {
      const scene = await receive(running)
      await scene.download()
      const key = `${scene.workspace.id}/${scene.id}`
      await sql`update media set state = 'lost' where message_id = ${scene.id}`.execute(running.db)
      s3.fault = 500
      await removeErasedFiles(running.app, running.app.media!)
      s3.fault = undefined
      assert.ok(await running.app.media!.find(key))
      await removeErasedFiles(running.app, running.app.media!)
      assert.equal(await running.app.media!.find(key), undefined)
      await scene.close()
    }))

  it('of deleted messages are removed however many others cannot be', () =>
    withS3(async (running) => {
      const scene = await receive(running)
      await scene.download()
      const key = `${scene.workspace.id}/${scene.id}`
      await sql`update media set state = 'lost' where message_id = ${scene.id}`.execute(running.db)
      await sql`
        insert into media (workspace_id, message_id, state, key)
        select 0, n, 'lost', '../no key' from generate_series(1, 250) as n`.execute(running.db)
      await removeErasedFiles(running.app, running.app.media!)
      assert.equal(await running.app.media!.find(key), undefined)
      await sql`delete from media where workspace_id = 0`.execute(running.db)
      await scene.close()
    }))
})
