import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { Key } from 'ink'
import fc from 'fast-check'
import type { Api } from '../../cli/inbox/api.ts'
import { loadApprovals } from '../../cli/inbox/approvals.ts'
import { loadList } from '../../cli/inbox/data.ts'
import { createAgentScene } from '../approvals/scene.ts'
import { callAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { createSandboxDriver, generatePhone } from '../messaging/fixtures.ts'
import { makeWorkspace, type TestServer, type TestWorkspace } from '../servers.ts'
import { runs } from '../level.ts'
import { makeConversation, named, noKey, openInbox } from './inbox-fixture.ts'

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
    assert.match(inbox.state.notice!, /: approved, it runs now$/)
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

const NAMES = ['Ada', 'Bea', 'Cleo', 'Dora', 'Emil']

/** An inbox whose server is five conversations in memory. `hit`: who was changed or written to since it was emptied. */
const openInMemory = async () => {
  const rows = NAMES.map((name, i) => ({
    ...makeConversation(name, 'Hello'),
    id: `${i}`,
    contact: { id: `${i}`, name, phone: null },
    assignee: null as { staff_id: string; name: string } | null,
    state: 'open' as 'open' | 'closed',
    window: { closes_at: null },
  }))
  const hit: string[] = []
  const reads: Record<string, (input: any) => Record<string, unknown>> = {
    inbox_search_conversations: ({ state, assigned, assigned_staff_id: mine }) => ({
      data: rows.filter(
        (row) =>
          row.state === state &&
          (assigned === undefined || row.assignee === null) &&
          (mine === undefined || row.assignee?.staff_id === '1'),
      ),
      next_cursor: null,
    }),
    inbox_get_conversation: ({ conversation_id: id }) => rows[id]!,
    inbox_list_messages: () => ({ data: [] }),
    workspace_list_staff: () => ({ data: [{ id: '2', name: 'Lena' }] }),
    workspace_list_teams: () => ({ data: [] }),
    messaging_list_quick_messages: () => ({ data: [{ code: 'v', title: 'v', text: 'Hello' }] }),
    crm_get_contact: () => ({ name: '', phone: null, attributes: [] }),
    messaging_list_templates: () => ({ data: [{ id: '1', name: 'v', language: 'en' }] }),
    messaging_get_template: () => ({ name: 'v', body: {}, send_schema: {}, send_example: { body: ['v'] } }),
  }
  const api = async (operation: string, input: any) => {
    const read = reads[operation]
    if (read) return { value: { ...read(input) } }
    const row = rows[input.conversation_id ?? input.contact_id]!
    if (!input.dry_run) hit.push(row.contact.name)
    if (operation === 'inbox_assign_conversation') row.assignee = { staff_id: input.staff_id, name: '' }
    if (operation === 'inbox_unassign_conversation') row.assignee = null
    if (operation === 'inbox_close_conversation') row.state = 'closed'
    if (operation === 'inbox_reopen_conversation') row.state = 'open'
    return { value: { preview: 'v' } }
  }
  const owner = { key: '', staffId: '1' }
  const opened = await openInbox({ url: '' } as TestServer, { owner } as TestWorkspace, {
    wrap: () => api as unknown as Api,
  })
  return { ...opened, rows, hit }
}

/** What a person reads on the screen: where they are, and whom the next action hits. */
const readScreen = (screen: string) => {
  const lines = screen.split('\n').map((line) => line.trimEnd())
  const [keys, body] = [lines.at(-1)!, lines.slice(1)]
  const over = /^(Enter (takes|next|or)|j k scroll {2}Space)/.exec(keys)?.[0]
  const isList =
    body.some((line) => /^[▌ ][* ]\S/.test(line) && line.includes('\u001b')) || body[0] === 'Nothing here.'
  const selected = body.find((line) => /^\d selected/.test(line))?.split(': ')[1]
  const open = isList ? undefined : body[0]!.split(' · ')[0]!
  const highlighted = body.find((line) => line.startsWith('▌'))?.match(/^▌[* ](\S+)/)?.[1]
  const focused = open ?? highlighted
  const targets = NAMES.filter((name) => (selected?.split(', ') ?? [focused]).includes(name))
  const label = lines.find((line) => /^(Close|Assign|Remind of|Tags of) /.test(line))
  return { over, label, open, targets, place: [isList, focused, targets] }
}

const [enter, escape] = [named('return'), named('escape')]
const control = (letter: string): [string, Key] => [letter, named('ctrl')]
const KEYS: [string, Key][] = [
  ...Array.from('jj    xcauotrmcuomRn???:/v155', (letter): [string, Key] => [letter, noKey]),
  ...[enter, enter, enter, escape, escape, escape].map((key): [string, Key] => ['', key]),
  ...['s', 's', 't', 'o'].map(control),
]

it('wcrm inbox: whatever is pressed hits whom the screen showed, and overlays leave it as it was', async () => {
  const met = { one: 0, several: 0, open: 0, asked: 0, left: 0 }
  const step = fc.record({
    key: fc.constantFrom(...KEYS),
    elsewhere: fc.constantFrom(0, 1, 2, 3, 4, ...Array(40).fill(-1)),
  })
  await fc.assert(
    fc.asyncProperty(fc.nat(3), fc.array(step, { minLength: 20, maxLength: 50 }), async (selected, steps) => {
      const { inbox, press, screen, rows, hit } = await openInMemory()
      const look = () => readScreen(screen(80))
      for (const key of `5${' '.repeat(selected)}`) await press(key)
      let [asked, below]: [string[], unknown] = [[], undefined]
      for (const { key, elsewhere } of steps) {
        const row = rows[elsewhere]
        if (row) {
          row.assignee = row.assignee ? null : { staff_id: '2', name: 'Lena' }
          await loadList(inbox)
          below = undefined
        }
        const before = look()
        await press(...key)
        const after = look()
        const shown = before.label ? asked : before.over ? [before.open] : before.targets
        if (hit.length > 0) {
          assert.deepEqual(hit.splice(0).toSorted(), shown)
          met[shown.length > 1 ? 'several' : before.label ? 'asked' : before.open ? 'open' : 'one']++
        }
        if (after.label && !before.label) {
          asked = before.targets
          assert.ok(after.label.includes(asked.length === 1 ? asked[0]! : `${asked.length} conversations`))
        }
        if (after.over && !before.over) below = before.place
        if (before.over && !after.over && key[1] === escape && below) {
          assert.deepEqual(after.place, below)
          met.left++
        }
      }
    }),
    { numRuns: runs(100, 1000) },
  )
  for (const [kind, count] of Object.entries(met)) assert.ok(count > 4, `${kind}: ${count}`)
})
