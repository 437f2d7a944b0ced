import assert from 'node:assert/strict'
import { it } from 'node:test'
import { updateChannel } from '../../storage/workspace/admin.ts'
import { createAgentScene } from '../approvals/scene.ts'
import { everyDatabase } from '../doors.ts'
import { createToolRequest } from '../mcp-request.ts'

everyDatabase('MCP: the fix of an error', (server) => {
  const createScene = async () => {
    const scene = await createAgentScene(server())
    const call = async (name: string, input: Record<string, unknown>): Promise<any> => {
      const request = createToolRequest(name, input, { key: scene.agent.key })
      const response = await fetch(`${server().url}/mcp?toolsets=all`, request)
      const { result } = (await response.json()) as any
      assert.equal(result.isError, true)
      return JSON.parse(result.content[0].text)
    }
    return { ...scene, call, send: async () => await call(...scene.reply('Hello.')) }
  }

  it('of what a key may not do is a person, not another key', async () => {
    const scene = await createScene()
    await scene.setPolicy({ verbs: { send: 'deny' } })
    const denied = await scene.send()
    assert.equal(denied.reason, 'denied_by_policy')
    const approved = await scene.call('approvals_approve', { approval_id: '1' })
    for (const { code, fix } of [denied, approved]) {
      assert.equal(code, 'forbidden')
      assert.match(fix, /ask a person/)
      assert.doesNotMatch(fix, /use a key/i)
    }
  })

  it('of a channel that takes no replies is no template, and not the customer', async () => {
    const scene = await createScene()
    await updateChannel(server().db, scene.workspace.id, scene.channelId, { type: 'web' })
    const { code, reason, fix } = await scene.send()
    assert.deepEqual([code, reason], ['conflict', 'channel_not_supported'])
    assert.doesNotMatch(fix, /template|customer/)
    assert.match(fix, /tell a person/)
  })
})
