import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { it } from 'node:test'
import { downloadDueMedia } from '../../server/domains/media/downloads-job.ts'
import { createOwnChannel, post } from '../channels/bridge.ts'
import { everyDatabase } from '../doors.ts'
import { type Answer, type Peer, startPeer } from '../peer.ts'
import { makeWorkspace, startWithOptions, type TestServer } from '../servers.ts'
import { recordTexts } from '../statements.ts'

const PICTURE: Answer = { body: Buffer.from('a picture'), headers: { 'Content-Type': 'image/jpeg' } }

const withPeer = async (work: (peer: Peer) => Promise<void>): Promise<void> => {
  const peer = await startPeer()
  try {
    await work(peer)
  } finally {
    await peer.close()
  }
}

/** A bridged channel whose customers send files that are at the peer. */
const createChannelOf = async (server: TestServer, peer: Peer) => {
  const workspace = await makeWorkspace(server)
  const channel = await createOwnChannel(server, workspace.id, null)
  const sendFiles = async (count: number): Promise<void> => {
    for (let n = 1; n <= count; n++) {
      const media = { url: `${peer.url}/${n}.jpg` }
      await post(server, channel, 'inbound', { id: String(n), from: { id: 'v' }, type: 'IMAGE', media })
    }
  }
  /** The files that are kept, and those that wait, with their attempts. */
  const listStates = async () =>
    (
      await server.db
        .selectFrom('media')
        .select(['state', 'attempts'])
        .where('workspace_id', '=', workspace.id)
        .orderBy('message_id')
        .execute()
    ).map(({ state, attempts }) => `${state} ${attempts}`)
  return { sendFiles, listStates }
}

/** Answers that never come, or stop in the middle: `begun` resolves with as many. */
const holdAnswers = (count: number, begin: (response: ServerResponse) => void = () => {}) => {
  const held: ServerResponse[] = []
  const begun = Promise.withResolvers<void>()
  const answer = (response: ServerResponse): void => {
    begin(response)
    if (held.push(response) === count) begun.resolve()
  }
  const drop = () => held.forEach((response) => response.destroy())
  return { answers: Array.from({ length: count }, () => answer), begun: begun.promise, drop }
}

everyDatabase(
  'Files that do not come',
  (server) => {
    const withServer = async (work: (running: TestServer) => Promise<void>): Promise<void> => {
      const running = await startWithOptions(server().database, { dedicated: true })
      try {
        await work(running)
      } finally {
        await running.close()
      }
    }

    it('do not hold up those of another channel', { timeout: 60_000 }, () =>
      withPeer((peer) =>
        withPeer(async (other) => {
          const slow = await createChannelOf(server(), peer)
          const good = await createChannelOf(server(), other)
          const held = holdAnswers(4)
          peer.answers.push(...held.answers, PICTURE, PICTURE)
          await slow.sendFiles(6)
          await held.begun
          const asked = Promise.withResolvers<void>()
          other.answers.push((response) => {
            response.end('a picture')
            asked.resolve()
          })
          await good.sendFiles(1)
          await asked.promise
          assert.equal(peer.asked.length, 4)
          held.drop()
          await server().app.jobs.job('media-downloads').runOnce()
          assert.deepEqual(await good.listStates(), ['kept 1'])
          const states = await slow.listStates()
          assert.deepEqual(states.sort(), ['kept 1', 'kept 1', ...Array(4).fill('waiting 1')])
        }),
      ),
    )

    it('are given up when nothing arrives, until their next retry', { timeout: 60_000 }, () =>
      withServer((running) =>
        withPeer(async (peer) => {
          await running.app.jobs.job('media-downloads').stop()
          const { sendFiles, listStates } = await createChannelOf(running, peer)
          const half = holdAnswers(2, (response) => {
            response.writeHead(200, { 'Content-Type': 'image/jpeg', 'Content-Length': '9' })
            response.write('a pic')
          })
          peer.answers.push(...holdAnswers(3).answers, ...half.answers)
          await sendFiles(5)
          const { app } = running
          assert.equal(await downloadDueMedia(app, app.media!, undefined, 300), 5)
          assert.deepEqual(await listStates(), Array(5).fill('waiting 1'))
        }),
      ),
    )

    it('files of other channels are not looked for after each of a busy one', { timeout: 60_000 }, () =>
      withServer((running) =>
        withPeer(async (peer) => {
          await running.app.jobs.job('media-downloads').stop()
          const { sendFiles, listStates } = await createChannelOf(running, peer)
          peer.answers.push(...Array.from({ length: 24 }, () => PICTURE))
          await sendFiles(24)
          const startedAt = performance.now()
          const looks = await recordTexts(
            () => downloadDueMedia(running.app, running.app.media!),
            (text) => text.includes('with due as') && text.includes('unnest'),
          )
          assert.deepEqual(await listStates(), Array(24).fill('kept 1'))
          // Twice a second, and at the beginning.
          assert.ok(looks.length <= 1 + (performance.now() - startedAt) / 500, String(looks.length))
          assert.ok(looks.length >= 1)
        }),
      ),
    )

    it('are cut off when the server stops, and due again', { timeout: 60_000 }, () =>
      withServer((running) =>
        withPeer(async (peer) => {
          const { sendFiles, listStates } = await createChannelOf(running, peer)
          const [silent, half] = [
            holdAnswers(1),
            holdAnswers(1, (response) => response.writeHead(200).write('a')),
          ]
          peer.answers.push(...silent.answers, ...half.answers)
          await sendFiles(2)
          await Promise.all([silent.begun, half.begun])
          await running.app.jobs.job('media-downloads').stop()
          assert.deepEqual(await listStates(), ['waiting 0', 'waiting 0'])
          peer.answers.push(PICTURE, PICTURE)
          assert.equal(await downloadDueMedia(running.app, running.app.media!), 2)
          assert.deepEqual(await listStates(), ['kept 1', 'kept 1'])
        }),
      ),
    )
  },
  { dedicated: true },
)
