import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { it } from 'node:test'
import { sql } from 'kysely'
import { downloadDueMedia } from '../deliver-due.ts'
import { createOwnChannel, post } from '../channels/bridge.ts'
import { everyDatabase } from '../doors.ts'
import { type Answer, type Peer, startPeer } from '../peer.ts'
import { makeWorkspace, startWithOptions, type TestServer } from '../servers.ts'

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
  /** The files that are kept, and those that wait, with their failed attempts. */
  const listStates = async () =>
    (
      await sql<{ shown: string }>`
        select concat_ws(' ', d.state, r.attempts) as shown from media d
        left join runs r on r.workspace_id = d.workspace_id and r.kind = 'media' and r.subject = d.message_id::text
        where d.workspace_id = ${workspace.id} order by d.message_id`.execute(server.db)
    ).rows.map(({ shown }) => shown)
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
          assert.deepEqual(await good.listStates(), ['kept'])
          const states = await slow.listStates()
          assert.deepEqual(states.sort(), ['kept', 'kept', ...Array(4).fill('waiting 1')])
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
          assert.equal(await downloadDueMedia(app, app.media!, 300), 5)
          assert.deepEqual(await listStates(), Array(5).fill('waiting 1'))
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
          assert.deepEqual(await listStates(), ['kept', 'kept'])
        }),
      ),
    )
  },
  { dedicated: true },
)
