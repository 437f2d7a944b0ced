import assert from 'node:assert/strict'
import { it } from 'node:test'
import { loadApprovals } from '../../cli/inbox/approvals.ts'
import { loadList } from '../../cli/inbox/data.ts'
import { createAgentScene } from '../approvals/scene.ts'
import { callAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { createSandboxDriver, generatePhone } from '../messaging/fixtures.ts'
import { makeWorkspace } from '../servers.ts'
import { named, openInbox } from './inbox-fixture.ts'

everyDatabase('wcrm inbox: what a key acts on while the list changes', (server) => {
  const createApprovals = async (...texts: string[]) => {
    const scene = await createAgentScene(server())
    const askFor = async (text: string): Promise<string> =>
      (await scene.ask(...scene.reply(text))).body.approval.id as string
    const ids: string[] = []
    for (const text of texts) ids.push(await askFor(text))
    const opened = await openInbox(server(), scene.workspace)
    await opened.press('4')
    /** What was approved may have run by now. */
    const statusOf = async (id: string): Promise<string> => {
      const { status } = (await scene.person('approvals_get', { approval_id: id })).body
      return status === 'done' ? 'approved' : status
    }
    return { ...scene, ...opened, askFor, ids, statusOf }
  }

  it('a text or a no is for the call that it was written for, whatever has come above it', async () => {
    for (const [key, status] of [
      ['e', 'approved'],
      ['N', 'declined'],
    ] as const) {
      const { askFor, ids, inbox, press, screen, statusOf, person } = await createApprovals('It comes today.')
      await press(key)
      const other = await askFor('A discount of 90 %!')
      await loadApprovals(inbox)
      assert.match(screen(), /4 Approvals 2[^]*Text: It comes today\./)
      await press('!')
      await press('', named('return'))
      assert.deepEqual([await statusOf(ids[0]!), await statusOf(other)], [status, 'pending'])
      const { edited_text } = (await person('approvals_get', { approval_id: ids[0]! })).body
      if (key === 'e') assert.equal(edited_text, 'It comes today.!')
    }
  })

  it('a call that takes the place of one that somebody else decided is read before it is approved', async () => {
    const { ids, inbox, press, screen, person, statusOf } = await createApprovals('First.', 'Second.')
    assert.match(screen(), /Text: Second\./)
    await person('approvals_decline', { approval_id: ids[1]! })
    await loadApprovals(inbox)
    await press('y')
    assert.match(inbox.state.notice!, /decided elsewhere/)
    assert.equal(await statusOf(ids[0]!), 'pending')
    assert.match(screen(), /Text: First\./)
    await press('y')
    assert.match(inbox.state.notice!, /^Approved/)
    assert.equal(await statusOf(ids[0]!), 'approved')
  })

  it('a call whose summary is not there yet is not approved', async () => {
    const { ids, inbox, press, statusOf } = await createApprovals('First.', 'Second.')
    inbox.state.approvals = { ...inbox.state.approvals, at: 1 }
    await press('y')
    assert.match(inbox.state.notice!, /not shown yet/)
    assert.deepEqual(await Promise.all(ids.map(statusOf)), ['pending', 'pending'])
  })

  it('what is asked of a conversation is done to it, also when it has left the list meanwhile', async () => {
    const workspace = await makeWorkspace(server())
    const sandbox = createSandboxDriver(server(), workspace)
    for (const name of ['Ada', 'Grace'])
      await sandbox.say({ from: `+${generatePhone()}`, name, text: 'Hello' })
    const colleague = await workspace.staff({ name: 'Lena', role: 'manager' })
    const { inbox, press } = await openInbox(server(), workspace)
    const call = callAs(server(), colleague.key)
    for (const [key, typed, read] of [
      ['t', 'VIP', (row: any) => row.tags.length === 1],
      ['r', '+3h', (row: any) => row.reminder_at !== null],
      ['a', 'Lena', (row: any) => row.assignee?.name === 'Lena'],
      ['x', 'Done', (row: any) => row.state === 'closed'],
    ] as const) {
      const id = inbox.state.highlighted!
      await press(key)
      await call('inbox_assign_conversation', { conversation_id: id, staff_id: workspace.owner.staffId })
      await loadList(inbox)
      const other = inbox.state.highlighted!
      assert.notEqual(other, id)
      await press(typed)
      await press('', named('return'))
      const [done, untouched] = await Promise.all(
        [id, other].map(async (one) => (await call('inbox_get_conversation', { conversation_id: one })).body),
      )
      assert.deepEqual([read(done), read(untouched)], [true, false], key)
      await call('inbox_reopen_conversation', { conversation_id: id })
      await call('inbox_unassign_conversation', { conversation_id: id })
      await loadList(inbox)
    }
  })
})
