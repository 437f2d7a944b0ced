import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { it } from 'node:test'
import { sql } from 'kysely'
import { downloadDueMedia } from '../../server/media/downloads-job.ts'
import { createMediaStore } from '../../server/media/store.ts'
import { openMediaUrl } from '../../server/media/urls.ts'
import { createAdapter } from '../../server/provider/adapter.ts'
import { resolveProviderSettings } from '../../server/provider/settings.ts'
import { createSealer } from '../../server/sealer.ts'
import { callAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { customerScene, type CustomerScene, messageOf, type Part, plantSent } from '../provider/bodies.ts'
import { makeWorkspace } from '../servers.ts'

/** The provider's files, as a test wants them: `answers` by media id, `asked` in order. */
type Files = Map<string, { bytes: Buffer; info?: Part; status?: number }>

const withProvider = async (
  work: (base: string, files: Files, asked: string[]) => Promise<void>,
): Promise<void> => {
  const files: Files = new Map()
  const asked: string[] = []
  const server = createServer((request, response) => {
    const [, kind, id] = /\/(?:v23\.0|(bytes))\/(\w+)/.exec(request.url!)!
    asked.push(`${kind ?? 'info'} ${id}`)
    const file = files.get(id!)
    const answer = (status: number, body: unknown) =>
      response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
    if (request.headers.authorization !== 'Bearer token')
      return answer(401, { error: { message: 'no token', type: 'OAuthException', code: 190 } })
    if (file?.status)
      return answer(file.status, { error: { message: 'later', type: 'OAuthException', code: 2 } })
    if (!file)
      return answer(400, {
        error: {
          message: 'Unsupported get request.',
          type: 'GraphMethodException',
          code: 100,
          error_subcode: 33,
        },
      })
    if (kind === 'bytes') return response.writeHead(200, { 'Content-Type': 'image/jpeg' }).end(file.bytes)
    answer(200, {
      url: `http://${request.headers.host}/bytes/${id}`,
      mime_type: 'image/jpeg',
      sha256: createHash('sha256').update(file.bytes).digest('hex'),
      file_size: file.bytes.length,
      id,
      messaging_product: 'whatsapp',
      ...file.info,
    })
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  try {
    await work(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, files, asked)
  } finally {
    server.closeAllConnections()
    await new Promise((closed) => server.close(closed))
  }
}

type Media = {
  state: string
  content_type: string | null
  size: string | null
  sha256: string | null
  key: string | null
  attempts: number
  error: string | null
}

everyDatabase('Files of customers', (server) => {
  /** Fetches as a server with this provider would; the files are due at once. */
  const fetchFrom = async (base: string, store = server().app.media!) => {
    await sql`update media set next_attempt_at = now() where state = 'waiting'`.execute(server().db)
    return await downloadDueMedia(
      { ...server().app, provider: createAdapter({ baseUrl: base, version: 'v23.0', token: 'token' }) },
      store,
    )
  }
  const mediaOf = async (messageId: string): Promise<Media> =>
    (
      await sql<Media>`select state, content_type, size, sha256, key, attempts, error from media where message_id = ${messageId}`.execute(
        server().db,
      )
    ).rows[0]!
  const send = async (scene: CustomerScene, type: string, file: Part): Promise<string> => {
    const message = messageOf('15550100042', { type, [type]: { mime_type: 'image/jpeg', ...file } })
    // This server's own provider does not know the file and is not to be asked.
    await server().app.jobs.job('media-downloads').stop()
    await scene.deliver(scene.value({ messages: [message] }))
    return (await scene.messages()).find((m) => m.provider_id === message.id)!.id
  }
  const read = (key: string, id: string, headers: Record<string, string> = {}) =>
    fetch(`${server().url}/v1/messages/${id}/media`, {
      headers: { Authorization: `Bearer ${key}`, ...headers },
      redirect: 'manual',
    })

  it('are kept, and read with a key, or by an address without one', async () => {
    await withProvider(async (base, files) => {
      const scene = await customerScene(server())
      const bytes = Buffer.from([0xff, 0xd8, 0xff, 1, 2, 3, 0])
      files.set('71', { bytes })
      const id = await send(scene, 'document', {
        id: '71',
        sha256: createHash('sha256').update(bytes).digest('base64'),
        filename: 'Rechnung "Mai" 中.pdf',
        mime_type: 'application/pdf',
        caption: 'Here',
      })
      await fetchFrom(base)
      const kept = await mediaOf(id)
      assert.deepEqual(
        [kept.state, kept.size, kept.sha256, kept.key],
        ['kept', '7', createHash('sha256').update(bytes).digest('hex'), `${scene.workspace.id}/${id}`],
      )

      const answer = await read(scene.workspace.owner.key, id)
      assert.deepEqual(Buffer.from(await answer.arrayBuffer()), bytes)
      const header = (name: string) => answer.headers.get(name)
      assert.deepEqual(
        [
          answer.status,
          header('content-type'),
          header('content-length'),
          header('x-content-type-options'),
          header('content-security-policy'),
        ],
        [200, 'application/pdf', '7', 'nosniff', "sandbox; default-src 'none'"],
      )
      assert.equal(
        header('content-disposition'),
        'attachment; filename="Rechnung _Mai_ _.pdf"; filename*=UTF-8\'\'Rechnung%20_Mai_%20%E4%B8%AD.pdf',
      )
      assert.match(header('cache-control')!, /^private/)
      assert.ok(header('request-id') && header('ratelimit'))
      const head = await fetch(`${server().url}/v1/messages/${id}/media`, {
        method: 'HEAD',
        headers: { Authorization: `Bearer ${scene.workspace.owner.key}` },
      })
      assert.deepEqual(
        [head.status, head.headers.get('content-type'), (await head.arrayBuffer()).byteLength],
        [200, 'application/pdf', 0],
      )

      const described = await scene.run('messaging_get_media', { message_id: id })
      assert.deepEqual(
        { ...described, url: '', expires_at: '' },
        {
          content_type: 'application/pdf',
          file_name: 'Rechnung "Mai" 中.pdf',
          size: 7,
          url: '',
          expires_at: '',
        },
      )
      const lasts = Date.parse(described.expires_at) - Date.now()
      assert.ok(lasts > 240_000 && lasts <= 300_000, String(lasts))
      const open = await fetch(described.url)
      assert.deepEqual([open.status, Buffer.from(await open.arrayBuffer())], [200, bytes])
      const asJson = (await (
        await read(scene.workspace.owner.key, id, { Accept: 'application/json' })
      ).json()) as Part
      assert.deepEqual([asJson['size'], (await fetch(asJson['url'] as string)).status], [7, 200])
      for (const url of [
        `${described.url}x`,
        described.url.slice(0, -1),
        `${server().url}/media/x`,
        `${server().url}/media/${'x'.repeat(2000)}`,
      ])
        assert.equal((await fetch(url)).status, 404)
    })
  })

  it('of every door are what the catalog promises', async () => {
    await withProvider(async (base, files) => {
      const scene = await customerScene(server())
      files.set('72', { bytes: Buffer.from('RIFF') })
      const id = await send(scene, 'sticker', { id: '72', mime_type: 'text/html\r\nX: y' })
      const call = callAs(server(), scene.workspace.owner.key)
      const early = await read(scene.workspace.owner.key, id)
      assert.deepEqual(
        [early.status, early.headers.get('retry-after'), ((await early.json()) as Part)['reason']],
        [409, '5', 'media_pending'],
      )
      assert.equal((await call('messaging_get_media', { message_id: id })).body.reason, 'media_pending')
      await fetchFrom(base)
      // What a customer declares is no header of ours.
      assert.equal(
        (await call('messaging_get_media', { message_id: id })).body.content_type,
        'application/octet-stream',
      )
      const answer = await read(scene.workspace.owner.key, id)
      assert.deepEqual(
        [
          answer.headers.get('content-type'),
          answer.headers.get('content-disposition'),
          answer.headers.get('x'),
        ],
        ['application/octet-stream', `attachment; filename="message-${id}"`, null],
      )
    })
  })

  it('are for staff of their channel alone', async () => {
    await withProvider(async (base, files) => {
      const scene = await customerScene(server())
      files.set('73', { bytes: Buffer.from('x') })
      const id = await send(scene, 'image', { id: '73' })
      await fetchFrom(base)
      const strangers = [
        (await makeWorkspace(server())).owner.key,
        (await scene.workspace.staff({ channel_ids: ['999999'] })).key,
        (await scene.workspace.staff({ channel_ids: [] })).key,
      ]
      for (const key of strangers) {
        assert.equal((await read(key, id)).status, 404)
        assert.equal((await callAs(server(), key)('messaging_get_media', { message_id: id })).status, 404)
      }
      assert.equal((await fetch(`${server().url}/v1/messages/${id}/media`)).status, 401)
      const {
        rows: [channel],
      } = await sql<{
        id: string
      }>`select id from channels where workspace_id = ${scene.workspace.id}`.execute(server().db)
      assert.equal(
        (await read((await scene.workspace.staff({ channel_ids: [channel!.id] })).key, id)).status,
        200,
      )
      const text = messageOf('15550100042')
      await scene.deliver(scene.value({ messages: [text] }))
      const bare = await read(
        scene.workspace.owner.key,
        (await scene.messages()).find((m) => m.provider_id === text.id)!.id,
      )
      assert.deepEqual([bare.status, ((await bare.json()) as Part)['reason']], [404, 'no_media'])
    })
  })

  it('that are too large are not kept, whatever was said of them', async () => {
    await withProvider(async (base, files, asked) => {
      const scene = await customerScene(server())
      files.set('74', { bytes: Buffer.alloc(500 * 1024 + 1) })
      files.set('75', { bytes: Buffer.alloc(500 * 1024 + 1), info: { file_size: 5 } })
      files.set('76', { bytes: Buffer.alloc(500 * 1024) })
      const [told, untold, most] = [
        await send(scene, 'sticker', { id: '74' }),
        await send(scene, 'sticker', { id: '75' }),
        await send(scene, 'sticker', { id: '76' }),
      ]
      await fetchFrom(base)
      assert.deepEqual(await Promise.all([told, untold, most].map(async (id) => (await mediaOf(id)).state)), [
        'too_large',
        'too_large',
        'kept',
      ])
      assert.ok(!asked.includes('bytes 74'))
      const answer = await read(scene.workspace.owner.key, told)
      assert.deepEqual([answer.status, ((await answer.json()) as Part)['reason']], [404, 'media_too_large'])
      const small = await send(scene, 'image', { id: '76' })
      const folder = mkdtempSync(join(tmpdir(), 'wcrm-media-'))
      await fetchFrom(base, createMediaStore(folder, 1000))
      assert.equal((await mediaOf(small)).state, 'too_large')
      rmSync(folder, { recursive: true })
    })
  })

  it('are asked for again while the provider fails, and lost when it does not have them', async () => {
    await withProvider(async (base, files) => {
      const scene = await customerScene(server())
      files.set('77', { bytes: Buffer.from('late'), status: 500 })
      files.set('78', { bytes: Buffer.from('other') })
      const [late, forged, gone] = [
        await send(scene, 'image', { id: '77' }),
        await send(scene, 'image', {
          id: '78',
          sha256: createHash('sha256').update('this').digest('base64'),
        }),
        await send(scene, 'image', { id: '79' }),
      ]
      const nameless = await send(scene, 'image', {})
      await fetchFrom(base)
      assert.deepEqual(
        await Promise.all([late, forged, gone, nameless].map(async (id) => (await mediaOf(id)).state)),
        ['waiting', 'waiting', 'waiting', 'lost'],
      )
      const {
        rows: [due],
      } = await sql<{
        n: string
      }>`select count(*) as n from media where workspace_id = ${scene.workspace.id} and state = 'waiting' and next_attempt_at <= now()`.execute(
        server().db,
      )
      assert.equal(due!.n, '0')
      files.set('77', { bytes: Buffer.from('late') })
      for (let n = 0; n < 4; n++) await fetchFrom(base)
      assert.deepEqual(await Promise.all([late, forged, gone].map(async (id) => (await mediaOf(id)).state)), [
        'kept',
        'waiting',
        'lost',
      ])
      const answer = await read(scene.workspace.owner.key, gone)
      const problem = (await answer.json()) as Part
      assert.deepEqual(
        [answer.status, problem['reason'], problem['detail']],
        [404, 'media_lost', 'The provider no longer has the file.'],
      )
      for (let n = 0; n < 10; n++) await fetchFrom(base)
      assert.equal((await mediaOf(forged)).state, 'lost')
    })
  })

  it('that were sent by their address lead to it', async () => {
    const scene = await customerScene(server())
    const sent = await plantSent(scene, '+15550100042')
    await sql`insert into media (workspace_id, message_id, state, url, content_type) values (${scene.workspace.id}, ${sent.id}, 'linked', 'https://files.example.com/a.jpg', 'image/jpeg')`.execute(
      server().db,
    )
    assert.deepEqual(await scene.run('messaging_get_media', { message_id: sent.id }), {
      content_type: 'image/jpeg',
      file_name: null,
      size: null,
      url: 'https://files.example.com/a.jpg',
      expires_at: null,
    })
    const answer = await read(scene.workspace.owner.key, sent.id)
    assert.deepEqual(
      [answer.status, answer.headers.get('location')],
      [302, 'https://files.example.com/a.jpg'],
    )
  })

  it('that somebody took from the folder are gone, and say so', async () => {
    await withProvider(async (base, files) => {
      const scene = await customerScene(server())
      files.set('80', { bytes: Buffer.from('x') })
      const id = await send(scene, 'image', { id: '80' })
      await fetchFrom(base)
      await server().app.media!.remove((await mediaOf(id)).key!)
      const answer = await read(scene.workspace.owner.key, id)
      assert.deepEqual([answer.status, ((await answer.json()) as Part)['reason']], [404, 'media_lost'])
    })
  })

  it('come from the sandbox like from the provider', async () => {
    const scene = await customerScene(server())
    await server().sync(scene.workspace.id)
    const { token } = resolveProviderSettings({}, 'a secret of at least sixteen', server().url)
    const said = await fetch(`${server().url}/sandbox/provider/control/say`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({
        number_id: scene.number,
        from: '15550100042',
        message: {
          type: 'image',
          image: {
            mime_type: 'image/png',
            caption: 'Look',
            data: Buffer.from('a picture').toString('base64'),
          },
        },
      }),
    })
    assert.equal(said.status, 200, await said.text())
    await server().settle()
    const [message] = await scene.messages()
    await sql`update media set next_attempt_at = now() where state = 'waiting'`.execute(server().db)
    await downloadDueMedia(server().app, server().app.media!)
    const answer = await read(scene.workspace.owner.key, message!.id)
    assert.deepEqual([answer.status, await answer.text()], [200, 'a picture'])
  })
})

it('A store keeps files whole, to itself, and under its own keys', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'wcrm-media-'))
  try {
    const store = createMediaStore(folder)
    for (const text of ['first', 'second']) await store.write('7/42', Buffer.from(text))
    assert.equal(await (await store.read('7/42'))!.text(), 'second')
    assert.deepEqual(readdirSync(join(folder, '7')), ['42'])
    assert.deepEqual(
      [statSync(join(folder, '7', '42')).mode & 0o777, statSync(join(folder, '7')).mode & 0o777],
      [0o600, 0o700],
    )
    assert.equal(await store.read('7/43'), undefined)
    for (const key of ['../7/42', '7/../8', '7/42/x', '7', '', '/7/42', '7/42.part'])
      await assert.rejects(store.write(key, Buffer.from('x')), key)
    await store.remove('7/42')
    await store.remove('7/42')
    assert.equal(await store.read('7/42'), undefined)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

it('An address of a file is over after its time, and opens with its own secret alone', () => {
  const seal = createSealer('a secret of at least sixteen', 'media')
  assert.deepEqual(openMediaUrl(seal, seal.seal(`1 2 ${Date.now() + 1000}`, 'media')), {
    workspaceId: '1',
    messageId: '2',
  })
  assert.equal(openMediaUrl(seal, seal.seal(`1 2 ${Date.now() - 1}`, 'media')), undefined)
  assert.equal(openMediaUrl(seal, seal.seal(`1 2 ${Date.now() + 1000}`, 'cursor')), undefined)
  assert.equal(
    openMediaUrl(
      createSealer('another secret of sixteen', 'media'),
      seal.seal(`1 2 ${Date.now() + 1000}`, 'media'),
    ),
    undefined,
  )
})
