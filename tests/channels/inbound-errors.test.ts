import assert from 'node:assert/strict'
import { it } from 'node:test'
import { updateChannel } from '../../storage/workspace/admin.ts'
import { everyDatabase } from '../doors.ts'
import { makeWorkspace } from '../servers.ts'
import { createBridgeScene, createOwnChannel, postAs } from './bridge.ts'

/** The pointers and codes of a problem's errors. */
const faults = (body: any): string[] =>
  body.errors.map(({ pointer, code }: { pointer: string; code: string }) => `${pointer} ${code}`)

const message = { id: '1', from: { id: 'v' }, text: 'Hello' }

everyDatabase(
  'What a bridge posts wrongly',
  (server) => {
    const createChannel = async () => {
      const workspace = await makeWorkspace(server())
      return { workspace, channel: await createOwnChannel(server(), workspace.id, null) }
    }

    it('errors name each wrong field and how to fix it', async () => {
      const { channel } = await createChannel()
      const media = { url: 'https://example.com/a.png' }
      for (const [body, expected] of [
        [{}, ['#/id required', '#/from required']],
        [{ ...message, from: {} }, ['#/from/id required']],
        [{ ...message, form: 1 }, ['#/form unknown_field']],
        [{ ...message, from: { id: 'v', nam: 'x' } }, ['#/from/nam unknown_field']],
        [{ ...message, text: undefined }, ['#/text required']],
        [{ ...message, text: '' }, ['#/text required']],
        [{ ...message, type: 'IMAGE' }, ['#/media required']],
        [{ ...message, media }, ['#/media not_allowed']],
        [{ ...message, type: 'HOLOGRAM' }, ['#/type invalid_value']],
        [{ ...message, at: 'yesterday' }, ['#/at invalid_format']],
        [{ ...message, at: '0000-01-01T00:00:00Z' }, ['#/at invalid_date']],
        [{ ...message, at: '9999-12-31T23:59:59-23:59' }, ['#/at invalid_date']],
        [{ ...message, id: 'x'.repeat(201) }, ['#/id too_long']],
        [[], ['# invalid_type']],
      ] as const) {
        const answer = await postAs(server(), channel, 'inbound', body)
        assert.deepEqual(
          [answer.status, answer.body.code],
          [400, 'invalid_input'],
          JSON.stringify(answer.body),
        )
        assert.deepEqual(faults(answer.body), expected)
        assert.ok(answer.body.errors.every(({ fix }: { fix?: string }) => fix !== undefined))
        assert.match(answer.headers.get('content-type')!, /problem\+json/)
      }
      const status = await postAs(server(), channel, 'statuses', { message_id: 'x', status: 'seen' })
      assert.deepEqual(faults(status.body), ['#/message_id invalid_format', '#/status invalid_value'])
      assert.equal((await postAs(server(), channel, 'inbound', '{"id":')).status, 400)
      const large = { ...message, text: 'x'.repeat(600_000) }
      assert.equal((await postAs(server(), channel, 'inbound', large)).status, 413)
    })

    it('ids that cannot be stored are refused, so that no two become one', async () => {
      const { channel } = await createChannel()
      for (const odd of ['a\u0000', '\ud800', '\udc00x']) {
        const asId = await postAs(server(), channel, 'inbound', { ...message, id: odd })
        assert.deepEqual([asId.status, faults(asId.body)], [400, ['#/id invalid_text']])
        const asSender = await postAs(server(), channel, 'inbound', { ...message, from: { id: odd } })
        assert.deepEqual([asSender.status, faults(asSender.body)], [400, ['#/from/id invalid_text']])
      }
    })

    it('a body that is nested deeply is refused', async () => {
      const { channel } = await createChannel()
      for (const levels of [50, 5000, 20_000]) {
        const nested = '['.repeat(levels) + ']'.repeat(levels)
        const text = `{"id":"1","from":{"id":"v"},"text":${nested}}`
        assert.equal((await postAs(server(), channel, 'inbound', text)).status, 400)
        const status = `{"message_id":"1","status":${nested}}`
        assert.equal((await postAs(server(), channel, 'statuses', status)).status, 400)
      }
    })

    it('a query is refused: there is no dry run', async () => {
      const { channel } = await createChannel()
      const tried = await postAs(server(), channel, 'inbound?dry_run=true', message)
      assert.deepEqual([tried.status, tried.body.errors[0].parameter], [400, 'dry_run'])
      const stored = await postAs(server(), channel, 'inbound', message)
      assert.deepEqual([stored.status, stored.body.duplicate], [201, false])
    })

    it('only the token of the channel opens it', async () => {
      const { workspace, channel } = await createChannel()
      const other = await createOwnChannel(server(), workspace.id, null)
      const { channel: foreign } = await createChannel()
      for (const token of [other.token, foreign.token, workspace.owner.key, 'wc_chan_nothing', 'x']) {
        const answer = await postAs(server(), { id: channel.id, token }, 'inbound', message)
        assert.deepEqual([answer.status, answer.body.code], [401, 'unauthenticated'])
        assert.ok(!JSON.stringify(answer.body).includes(token.slice(8)) || token.length < 9)
        assert.match(answer.headers.get('www-authenticate')!, /Bearer/)
      }
      const bare = await fetch(`${server().url}/channels/${channel.id}/inbound`, { method: 'POST' })
      assert.equal(bare.status, 401)
      const asKey = await fetch(`${server().url}/v1/contacts`, {
        headers: { Authorization: `Bearer ${channel.token}` },
      })
      assert.equal(asKey.status, 401)
    })

    it('other addresses, methods and types of body are refused', async () => {
      const { channel } = await createChannel()
      const ask = async (path: string, init: RequestInit) => {
        const response = await fetch(`${server().url}/channels/${path}`, {
          ...init,
          headers: { Authorization: `Bearer ${channel.token}`, ...(init.headers as object) },
        })
        return [response.status, ((await response.json()) as { code: string }).code]
      }
      assert.deepEqual(await ask(`${channel.id}/inbound`, { method: 'GET' }), [405, 'method_not_allowed'])
      assert.deepEqual(await ask(`${channel.id}/outbound`, { method: 'POST' }), [404, 'not_found'])
      assert.deepEqual(await ask(`${channel.id}`, { method: 'POST' }), [404, 'not_found'])
      const text = { method: 'POST', body: 'a=b', headers: { 'Content-Type': 'text/plain' } }
      assert.deepEqual(await ask(`${channel.id}/inbound`, text), [415, 'unsupported_media_type'])
    })

    it('a channel that is not connected takes nothing', async () => {
      const { workspace, channel } = await createChannel()
      await updateChannel(server().db, workspace.id, channel.id, { status: 'inactive' })
      const answer = await postAs(server(), channel, 'inbound', message)
      assert.deepEqual([answer.status, answer.body.reason], [409, 'channel_not_connected'])
      await updateChannel(server().db, workspace.id, channel.id, { status: 'connected' })
      assert.equal((await postAs(server(), channel, 'inbound', message)).status, 201)
    })

    it('a status of an unknown message is not found, and neither is one of another channel', async () => {
      const scene = await createBridgeScene(server())
      const { conversation, message: received } = await scene.hello()
      const reply = await scene.reply(conversation)
      const other = await createOwnChannel(server(), scene.workspace.id, null)
      for (const [channel, id] of [
        [scene.channel, '999999999'],
        [scene.channel, received],
        [other, reply.body.message.id],
      ] as const) {
        const answer = await postAs(server(), channel, 'statuses', { message_id: id, status: 'read' })
        assert.deepEqual([answer.status, answer.body.code], [404, 'not_found'])
      }
      await scene.bridge.close()
    })
  },
  { ownJobs: true },
)

everyDatabase(
  'Limits of a bridge',
  (server) => {
    it('a channel has requests per minute of its own', async () => {
      const workspace = await makeWorkspace(server())
      const channel = await createOwnChannel(server(), workspace.id, null)
      const other = await createOwnChannel(server(), workspace.id, null)
      const statuses = []
      for (let n = 0; n < 5; n++) {
        const answer = await postAs(server(), channel, 'inbound', { ...message, id: String(n) })
        statuses.push(answer.status)
        if (answer.status === 429) {
          assert.deepEqual(answer.body.violated_policies, ['channel'])
          assert.ok(Number(answer.headers.get('retry-after')) > 0)
        } else assert.match(answer.headers.get('ratelimit-policy')!, /^"channel";q=3;w=60$/)
      }
      assert.deepEqual(statuses, [201, 201, 201, 429, 429])
      assert.equal((await postAs(server(), other, 'inbound', message)).status, 201)
    })

    it('wrong tokens are throttled by address, and a good one still works', async () => {
      const workspace = await makeWorkspace(server())
      const channel = await createOwnChannel(server(), workspace.id, null)
      assert.equal((await postAs(server(), channel, 'inbound', message)).status, 201)
      const wrong = { id: channel.id, token: 'wc_chan_wrong' }
      const statuses = []
      for (let n = 0; n < 4; n++) statuses.push((await postAs(server(), wrong, 'inbound', message)).status)
      assert.deepEqual(statuses, [401, 401, 401, 429])
      assert.equal((await postAs(server(), channel, 'inbound', message)).status, 200)
    })
  },
  { limitChannel: 3, limitAuthFailures: 3 },
)
