import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { it } from 'node:test'
import { sql } from 'kysely'
import { eraseMessage } from '../../storage/messages/changes.ts'
import { getIdleMs } from '../../server/work/runner.ts'
import { downloadDueMedia } from '../deliver-due.ts'
import { createFolderStore } from '../../server/domains/media/folder-store.ts'
import { fileRemovalJob } from '../../server/domains/media/removal-job.ts'
import { createAdapter } from '../../server/provider/adapter.ts'
import { resolveSandboxSettings } from '../../server/provider/settings.ts'
import { callAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import {
  createCustomerFixture,
  type CustomerFixture,
  buildCustomerMessage,
  type WebhookPart,
  insertSentMessage,
} from '../provider/webhook-fixture.ts'
import { makeWorkspace, type TestServer } from '../servers.ts'
import { withProvider } from './media-provider.ts'

type Media = {
  state: string
  content_type: string | null
  size: string | null
  sha256: string | null
  key: string | null
  error: string | null
}

const defineTests = (server: () => TestServer): void => {
  /** Downloads as a server with this provider would; all files are due at once. */
  const downloadFrom = async (base: string, store = server().app.media!) => {
    await sql`update runs set run_after = now() where kind = 'media'`.execute(server().db)
    return await downloadDueMedia(
      { ...server().app, provider: createAdapter({ baseUrl: base, version: 'v23.0', token: 'token' }) },
      store,
    )
  }
  const loadMedia = async (messageId: string): Promise<Media> =>
    (
      await sql<Media>`
        select state, content_type, size, sha256, key, error from media
        where message_id = ${messageId}`.execute(server().db)
    ).rows[0]!
  const deliverFile = async (scene: CustomerFixture, type: string, file: WebhookPart): Promise<string> => {
    const message = buildCustomerMessage('15550100042', {
      type,
      [type]: { mime_type: 'image/jpeg', ...file },
    })
    await server().app.jobs.job('media-downloads').stop()
    await scene.deliver(scene.value({ messages: [message] }))
    return (await scene.messages()).find((m) => m.provider_id === message.id)!.id
  }
  const read = (key: string, id: string, headers: Record<string, string> = {}) =>
    fetch(`${server().url}/v1/messages/${id}/media`, {
      headers: { Authorization: `Bearer ${key}`, ...headers },
      redirect: 'manual',
    })

  it('a file whose server died after it was written is removed when its message is deleted', async () => {
    await withProvider(async (base, files) => {
      const scene = await createCustomerFixture(server())
      const { db, app } = server()
      const media = app.media!
      files.set('70', { bytes: Buffer.from([1, 2, 3]) })
      const id = await deliverFile(scene, 'image', { id: '70' })
      await downloadFrom(base, {
        ...media,
        write: async (...file) => {
          await media.write(...file)
          await eraseMessage(db, scene.workspace.id, id, app.now())
          throw new Error('the server died')
        },
      })
      const { state, key } = await loadMedia(id)
      assert.equal(state, 'lost')
      const remove = () => app.jobs.job('file-removal').runOnce()
      // Another server may be writing it still.
      await remove()
      assert.ok(await media.read(key!))
      // What nobody announced does not wait for that file.
      const { nextInMs } = await fileRemovalJob(app, media).run(new AbortController().signal)
      assert.ok(nextInMs! > 0 && nextInMs! <= getIdleMs(app), String(nextInMs))
      await sql`update media set removable_at = now() where message_id = ${id}`.execute(db)
      await remove()
      assert.equal(await media.read(key!), undefined)
      assert.equal((await loadMedia(id)).key, null)
    })
  })

  it('a file whose message is deleted while it is written is removed at once', async () => {
    await withProvider(async (base, files) => {
      const scene = await createCustomerFixture(server())
      const { db, app } = server()
      const media = app.media!
      files.set('69', { bytes: Buffer.from([1, 2, 3]) })
      const id = await deliverFile(scene, 'image', { id: '69' })
      await downloadFrom(base, {
        ...media,
        write: async (...file) => {
          await eraseMessage(db, scene.workspace.id, id, app.now())
          return await media.write(...file)
        },
      })
      await app.jobs.job('file-removal').runOnce()
      assert.equal(await media.read(`${scene.workspace.id}/${id}`), undefined)
      assert.equal((await loadMedia(id)).key, null)
    })
  })

  it('a file is stored, and read with a key or by a signed URL', async () => {
    await withProvider(async (base, files) => {
      const scene = await createCustomerFixture(server())
      const bytes = Buffer.from([0xff, 0xd8, 0xff, 1, 2, 3, 0])
      files.set('71', { bytes })
      const id = await deliverFile(scene, 'document', {
        id: '71',
        sha256: createHash('sha256').update(bytes).digest('base64'),
        filename: 'Rechnung "Mai" 中.pdf',
        mime_type: 'application/pdf',
        caption: 'Here',
      })
      await downloadFrom(base)
      const stored = await loadMedia(id)
      assert.deepEqual(
        [stored.state, stored.size, stored.sha256, stored.key],
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
      const lifetimeMs = Date.parse(described.expires_at) - Date.now()
      assert.ok(lifetimeMs > 240_000 && lifetimeMs <= 300_000, String(lifetimeMs))
      const open = await fetch(described.url)
      assert.deepEqual([open.status, Buffer.from(await open.arrayBuffer())], [200, bytes])
      const asJson = (await (
        await read(scene.workspace.owner.key, id, { Accept: 'application/json' })
      ).json()) as WebhookPart
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

  it('media_pending before the download; an invalid content type is replaced', async () => {
    await withProvider(async (base, files) => {
      const scene = await createCustomerFixture(server())
      files.set('72', { bytes: Buffer.from('RIFF') })
      const id = await deliverFile(scene, 'sticker', { id: '72', mime_type: 'text/html\r\nX: y' })
      const call = callAs(server(), scene.workspace.owner.key)
      const early = await read(scene.workspace.owner.key, id)
      assert.deepEqual(
        [early.status, early.headers.get('retry-after'), ((await early.json()) as WebhookPart)['reason']],
        [409, '5', 'media_pending'],
      )
      assert.equal((await call('messaging_get_media', { message_id: id })).body.reason, 'media_pending')
      await downloadFrom(base)
      // The declared type of a customer never becomes a response header.
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

  it('only staff of the channel may read a file', async () => {
    await withProvider(async (base, files) => {
      const scene = await createCustomerFixture(server())
      files.set('73', { bytes: Buffer.from('x') })
      const id = await deliverFile(scene, 'image', { id: '73' })
      await downloadFrom(base)
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
      const text = buildCustomerMessage('15550100042')
      await scene.deliver(scene.value({ messages: [text] }))
      const withoutMedia = await read(
        scene.workspace.owner.key,
        (await scene.messages()).find((m) => m.provider_id === text.id)!.id,
      )
      assert.deepEqual(
        [withoutMedia.status, ((await withoutMedia.json()) as WebhookPart)['reason']],
        [404, 'no_media'],
      )
    })
  })

  it('too_large: by the declared size, the actual size and the limit of the store', async () => {
    await withProvider(async (base, files, requests) => {
      const scene = await createCustomerFixture(server())
      files.set('74', { bytes: Buffer.alloc(500 * 1024 + 1) })
      files.set('75', { bytes: Buffer.alloc(500 * 1024 + 1), info: { file_size: 5 } })
      files.set('76', { bytes: Buffer.alloc(500 * 1024) })
      const [declared, undeclared, largest] = [
        await deliverFile(scene, 'sticker', { id: '74' }),
        await deliverFile(scene, 'sticker', { id: '75' }),
        await deliverFile(scene, 'sticker', { id: '76' }),
      ]
      await downloadFrom(base)
      assert.deepEqual(
        await Promise.all([declared, undeclared, largest].map(async (id) => (await loadMedia(id)).state)),
        ['too_large', 'too_large', 'kept'],
      )
      assert.ok(!requests.includes('bytes 74'))
      const answer = await read(scene.workspace.owner.key, declared)
      assert.deepEqual(
        [answer.status, ((await answer.json()) as WebhookPart)['reason']],
        [404, 'media_too_large'],
      )
      const small = await deliverFile(scene, 'image', { id: '76' })
      const folder = mkdtempSync(join(tmpdir(), 'wcrm-media-'))
      await downloadFrom(base, createFolderStore(folder, { maxBytes: 1000 }))
      assert.equal((await loadMedia(small)).state, 'too_large')
      rmSync(folder, { recursive: true })
    })
  })

  it('downloads are retried, and lost when the provider does not have the file', async () => {
    await withProvider(async (base, files) => {
      const scene = await createCustomerFixture(server())
      files.set('77', { bytes: Buffer.from('late'), status: 500 })
      files.set('78', { bytes: Buffer.from('other') })
      const [late, forged, gone] = [
        await deliverFile(scene, 'image', { id: '77' }),
        await deliverFile(scene, 'image', {
          id: '78',
          sha256: createHash('sha256').update('this').digest('base64'),
        }),
        await deliverFile(scene, 'image', { id: '79' }),
      ]
      const withoutId = await deliverFile(scene, 'image', {})
      await downloadFrom(base)
      assert.deepEqual(
        await Promise.all([late, forged, gone, withoutId].map(async (id) => (await loadMedia(id)).state)),
        ['waiting', 'waiting', 'waiting', 'lost'],
      )
      const {
        rows: [due],
      } = await sql<{
        n: string
      }>`
        select count(*) as n from runs where workspace_id = ${scene.workspace.id}
          and kind = 'media' and run_after <= now()`.execute(server().db)
      assert.equal(due!.n, '0')
      files.set('77', { bytes: Buffer.from('late') })
      for (let n = 0; n < 4; n++) await downloadFrom(base)
      assert.deepEqual(
        await Promise.all([late, forged, gone].map(async (id) => (await loadMedia(id)).state)),
        ['kept', 'waiting', 'lost'],
      )
      const answer = await read(scene.workspace.owner.key, gone)
      const problem = (await answer.json()) as WebhookPart
      assert.deepEqual(
        [answer.status, problem['reason'], problem['detail']],
        [404, 'media_lost', 'The provider no longer has the file.'],
      )
      for (let n = 0; n < 10; n++) await downloadFrom(base)
      assert.equal((await loadMedia(forged)).state, 'lost')
    })
  })

  it('linked media redirects to its URL', async () => {
    const scene = await createCustomerFixture(server())
    const sent = await insertSentMessage(scene, '+15550100042')
    await sql`
      insert into media (workspace_id, message_id, state, url, content_type)
      values (${scene.workspace.id}, ${sent.id}, 'linked', 'https://files.example.com/a.jpg',
        'image/jpeg')`.execute(server().db)
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

  it('media_lost when the file is missing from the folder', async () => {
    await withProvider(async (base, files) => {
      const scene = await createCustomerFixture(server())
      files.set('80', { bytes: Buffer.from('x') })
      const id = await deliverFile(scene, 'image', { id: '80' })
      await downloadFrom(base)
      await server().app.media!.remove((await loadMedia(id)).key!)
      const answer = await read(scene.workspace.owner.key, id)
      assert.deepEqual([answer.status, ((await answer.json()) as WebhookPart)['reason']], [404, 'media_lost'])
    })
  })

  it('the sandbox serves media like the provider', async () => {
    const scene = await createCustomerFixture(server())
    await server().sync(scene.workspace.id)
    const { token } = resolveSandboxSettings('a secret of at least sixteen', server().url)
    const response = await fetch(`${server().url}/sandbox/provider/control/say`, {
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
    assert.equal(response.status, 200, await response.text())
    await server().settle()
    const [message] = await scene.messages()
    await sql`update runs set run_after = now() where kind = 'media'`.execute(server().db)
    await downloadDueMedia(server().app, server().app.media!)
    const answer = await read(scene.workspace.owner.key, message!.id)
    assert.deepEqual([answer.status, await answer.text()], [200, 'a picture'])
  })
}

// No job of this server downloads: it would ask the sandbox for files that it does not know.
everyDatabase('Media of inbound messages', defineTests, { ownJobs: true })
