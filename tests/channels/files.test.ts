import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { downloadDueMedia } from '../deliver-due.ts'
import { everyDatabase } from '../doors.ts'
import { makeWorkspace, type TestServer } from '../servers.ts'
import { type Answer, startPeer } from '../peer.ts'
import { doAs } from '../calls.ts'
import { createOwnChannel, post } from './bridge.ts'

const JPEG = Buffer.from('a picture')
const picture: Answer = { body: JPEG, headers: { 'Content-Type': 'image/jpeg' } }

everyDatabase('Files on a channel of one’s own', (server) => {
  /** A customer sends a file that is at `url`. Returns the message's id after its download was tried. */
  const sendFile = async (url: string, more: object = {}) => {
    const workspace = await makeWorkspace(server())
    const channel = await createOwnChannel(server(), workspace.id, null)
    const message = { id: '1', from: { id: 'v' }, type: 'IMAGE', text: 'Look', media: { url, ...more } }
    const { message_id: id } = await post(server(), channel, 'inbound', message)
    await downloadAll(server())
    return { id, run: doAs(server(), workspace.owner.key) }
  }
  /** Downloads what is due, also where the job began to. */
  const downloadAll = async ({ app }: TestServer): Promise<void> => {
    await app.jobs.job('media-downloads').runOnce()
    await downloadDueMedia(app, app.media!)
  }
  const stateOf = async (id: string) =>
    await server()
      .db.selectFrom('media')
      .select(['state', 'error', 'url', 'content_type'])
      .where('message_id', '=', id)
      .executeTakeFirstOrThrow()

  const withPeer = async (answers: Answer[], work: (url: string) => Promise<void>): Promise<void> => {
    const peer = await startPeer()
    peer.answers.push(...answers)
    try {
      await work(`${peer.url}/file.jpg`)
    } finally {
      await peer.close()
    }
  }
  it('a file is downloaded and kept, over redirects too', () =>
    withPeer([{ status: 302, headers: { location: '/other.jpg' } }, picture], async (url) => {
      const { id, run } = await sendFile(url, { file_name: 'cat.jpg' })
      const media = await run('messaging_get_media', { message_id: id })
      assert.deepEqual(
        [media.content_type, media.file_name, media.size],
        ['image/jpeg', 'cat.jpg', JPEG.length],
      )
      assert.deepEqual(Buffer.from(await (await fetch(media.url)).arrayBuffer()), JPEG)
      const shown = await run('messaging_get_message', { message_id: id })
      assert.ok(!JSON.stringify(shown).includes(url), 'the bridge’s own URL is shown to nobody')
      assert.deepEqual([shown.type, shown.text], ['IMAGE', 'Look'])
      assert.equal((await stateOf(id)).url, null)
    }))

  it('a failure is tried again, a refusal a few times', () =>
    withPeer([{ status: 503 }, picture], async (url) => {
      const { id } = await sendFile(url)
      const { rows } = await sql`
        update runs set run_after = now() where kind = 'media' and subject = ${id} returning attempts`.execute(
        server().db,
      )
      assert.deepEqual([(await stateOf(id)).state, rows], ['waiting', [{ attempts: 1 }]])
      await downloadAll(server())
      assert.equal((await stateOf(id)).state, 'kept')
      const { id: lost } = await sendFile('http://10.1.2.3/secret')
      for (let n = 0; n < 6; n++) {
        await sql`update runs set run_after = now()
          where kind = 'media' and subject = ${lost}`.execute(server().db)
        await downloadAll(server())
      }
      const { state, error } = await stateOf(lost)
      assert.deepEqual([state, error], ['lost', 'The URL of the file is not allowed.'])
    }))

  it('a redirect leads to no private address, and a large file is not kept', () =>
    withPeer(
      [{ status: 302, headers: { location: 'http://10.1.2.3/' } }, { body: Buffer.alloc(6 * 1024 * 1024) }],
      async (url) => {
        const { id } = await sendFile(url)
        assert.equal((await stateOf(id)).state, 'waiting')
        const { id: large, run } = await sendFile(url)
        assert.equal((await stateOf(large)).state, 'too_large')
        await assert.rejects(run('messaging_get_media', { message_id: large }), /media_too_large/)
      },
    ))
})

everyDatabase(
  'Files without a messaging provider',
  (server) => {
    it('of channels of one’s own are downloaded', async () => {
      const peer = await startPeer()
      peer.answers.push(picture)
      const workspace = await makeWorkspace(server())
      const channel = await createOwnChannel(server(), workspace.id, null)
      const media = { url: `${peer.url}/a.jpg` }
      const message = { id: '1', from: { id: 'v' }, type: 'IMAGE', media }
      const { message_id: id } = await post(server(), channel, 'inbound', message)
      const { app } = server()
      await app.jobs.job('media-downloads').runOnce()
      await downloadDueMedia(app, app.media!)
      const run = doAs(server(), workspace.owner.key)
      assert.equal((await run('messaging_get_media', { message_id: id })).size, JPEG.length)
      await peer.close()
    })
  },
  { provider: { provider: 'none' } },
)
