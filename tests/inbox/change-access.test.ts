import assert from 'node:assert/strict'
import { it } from 'node:test'
import { updateStaff } from '../../storage/workspace/admin.ts'
import { callAs, doAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { makeWorkspace } from '../servers.ts'
import { stateOf, insertWebChannel, changes } from './conversation-state.ts'
import { plantConversation } from './conversations.ts'

everyDatabase('Access to conversation changes', (server) => {
  it('staff without the channel get 404', async () => {
    const workspace = await makeWorkspace(server())
    const web = await insertWebChannel(server(), workspace)
    const main = await plantConversation(server(), workspace.id)
    const seen = await plantConversation(server(), workspace.id, { channelId: web })
    const agent = await workspace.staff({ channel_ids: [web] })
    const run = callAs(server(), agent.key)
    for (const [op, input] of changes) {
      const fields = 'staff_id' in input ? { staff_id: agent.staffId } : input
      const refused = await run(op, { conversation_id: main.id, ...fields })
      assert.deepEqual([refused.status, refused.body.code], [404, 'not_found'], op)
      const { status, text } = await run(op, { conversation_id: seen.id, ...fields })
      assert.ok(status < 300, `${op}: ${text}`)
    }
    assert.equal((await stateOf(server(), workspace.id, main.id))['state'], 'open')
  })

  it('nobody gets a conversation on a channel that they may not have, or on none', async () => {
    const workspace = await makeWorkspace(server())
    const web = await insertWebChannel(server(), workspace)
    const { staffId } = await workspace.staff({ channel_ids: [web] })
    const ids = [
      await plantConversation(server(), workspace.id),
      await plantConversation(server(), workspace.id),
    ]
    await server()
      .db.updateTable('conversations')
      .set({ channel_id: null })
      .where('workspace_id', '=', workspace.id)
      .where('id', '=', ids[1]!.id)
      .execute()
    const run = callAs(server(), workspace.owner.key)
    for (const { id } of ids) {
      const one = await run('inbox_assign_conversation', { conversation_id: id, staff_id: staffId })
      assert.deepEqual([one.status, one.body.reason], [403, 'no_channel_access'])
      const many = await run('inbox_assign_conversations', { conversation_ids: [id], staff_id: staffId })
      assert.deepEqual([many.status, many.body.failed], [200, 1], many.text)
      assert.equal((await stateOf(server(), workspace.id, id))['assigned_staff_id'], null)
    }
  })

  it('insufficient_scope without inbox:write', async () => {
    const workspace = await makeWorkspace(server())
    const { id } = await plantConversation(server(), workspace.id)
    const key = await workspace.key(workspace.owner.staffId, {
      scopes: ['mcp:read', 'crm:write', 'messaging:write'],
    })
    for (const [op, input] of changes)
      assert.equal(
        (await callAs(server(), key.key)(op, { conversation_id: id, ...input })).body.code,
        'insufficient_scope',
        op,
      )
  })

  it('an assignee who loses access to the channel stays assigned', async () => {
    const workspace = await makeWorkspace(server())
    const web = await insertWebChannel(server(), workspace)
    const { id, channelId } = await plantConversation(server(), workspace.id)
    const { staffId } = await workspace.staff({ name: 'Grace', channel_ids: [channelId] })
    const run = doAs(server(), workspace.owner.key)
    await run('inbox_assign_conversation', { conversation_id: id, staff_id: staffId })
    await updateStaff(server().db, workspace.id, staffId, { channel_ids: [web] }, undefined)
    assert.equal(
      (await run('inbox_mark_read', { conversation_id: id })).conversation.assignee_staff_id,
      staffId,
    )
    assert.equal(
      (
        await callAs(server(), workspace.owner.key)('inbox_assign_conversation', {
          conversation_id: id,
          staff_id: staffId,
        })
      ).body.reason,
      'no_channel_access',
    )
  })
})
