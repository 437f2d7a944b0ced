import assert from 'node:assert/strict'
import { it } from 'node:test'
import { everyPage } from '../calls.ts'
import { everyDatabase, everyDoor } from '../doors.ts'
import { summarizeReply } from './fixtures.ts'
import {
  createQuickMessageScene,
  FILE_URL,
  selectQuickMessageRows,
  QUICK_MESSAGES_NOW,
} from './quick-messages.ts'

const clock = { now: () => QUICK_MESSAGES_NOW }

const toCodes = (rows: readonly { code: string }[]): string[] => rows.map((row) => row.code)

everyDoor(
  'Quick messages',
  (test) => {
    test('create, list, update and delete', async ({ call, server, workspace, door }) => {
      const created = await call('messaging_create_quick_message', {
        code: ' Hours ',
        title: 'Opening hours',
        description: 'A daily question',
        text: 'Hello {{contact.name}}, from 9 to 18.',
        visibility: 'company',
      })
      assert.equal(created.status, 201, created.text)
      const row = {
        id: created.body.id,
        code: 'Hours',
        title: 'Opening hours',
        type: 'TEXT',
        text: 'Hello {{contact.name}}, from 9 to 18.',
        media_url: null,
        template_name: null,
        visibility: 'company',
        team_id: null,
        favorite: false,
        can_edit: true,
        updated_at: QUICK_MESSAGES_NOW,
        version: created.body.version,
      }
      assert.deepEqual(created.body, row)
      const menu = await call('messaging_create_quick_message', {
        code: 'menu',
        type: 'DOCUMENT',
        media_url: FILE_URL,
        file_name: 'menu.pdf',
      })
      assert.deepEqual(menu.body, {
        ...row,
        id: menu.body.id,
        code: 'menu',
        title: null,
        type: 'DOCUMENT',
        text: null,
        media_url: FILE_URL,
        visibility: 'private',
        version: menu.body.version,
      })
      assert.deepEqual((await call('messaging_list_quick_messages')).body, {
        data: [row, menu.body],
        total: 2,
        next_cursor: null,
      })
      const updated = await call('messaging_update_quick_message', {
        quick_message_id: row.id,
        code: 'open',
        text: 'From 8 to 18.',
      })
      const { version } = updated.body
      assert.match(version, /^2\./)
      assert.deepEqual(
        [updated.status, updated.body],
        [200, { ...row, code: 'open', text: 'From 8 to 18.', version }],
      )
      assert.deepEqual((await call('messaging_list_quick_messages', { query: 'FROM 8' })).body.data, [
        updated.body,
      ])
      assert.deepEqual((await call('messaging_list_quick_messages', { query: 'hours' })).body.data, [
        updated.body,
      ])
      if (!door.confirms) return
      assert.equal((await call('messaging_delete_quick_message', { quick_message_id: row.id })).status, 428)
      assert.deepEqual(
        (await call('messaging_delete_quick_message', { quick_message_id: row.id }, { confirm: 'delete' }))
          .body,
        { id: row.id, deleted: true },
      )
      assert.equal(
        (await call('messaging_delete_quick_message', { quick_message_id: row.id }, { confirm: 'delete' }))
          .status,
        404,
      )
      assert.equal((await selectQuickMessageRows(server, workspace)).length, 1)
    })

    test('a dry run changes nothing', async ({ call, server, workspace }) => {
      const { body: existing } = await call('messaging_create_quick_message', {
        code: 'existing',
        text: 'Hi',
      })
      const before = await selectQuickMessageRows(server, workspace)
      const created = await call('messaging_create_quick_message', { code: 'new', text: 'Hi', dry_run: true })
      assert.deepEqual(
        [created.status, created.body],
        [201, { ...existing, id: null, code: 'new', updated_at: null, version: null, dry_run: true }],
      )
      const updated = await call('messaging_update_quick_message', {
        quick_message_id: existing.id,
        title: 'T',
        dry_run: true,
      })
      assert.deepEqual(updated.body, {
        ...existing,
        title: 'T',
        updated_at: null,
        version: null,
        dry_run: true,
      })
      assert.deepEqual(
        (await call('messaging_delete_quick_message', { quick_message_id: existing.id, dry_run: true })).body,
        { id: existing.id, deleted: true, dry_run: true },
      )
      assert.deepEqual(
        summarizeReply(
          await call('messaging_create_quick_message', { code: 'EXISTING', text: 'Hi', dry_run: true }),
        ),
        [409, 'conflict', 'duplicate'],
      )
      assert.deepEqual(await selectQuickMessageRows(server, workspace), before)
    })

    test('codes are unique among those that one may see, ignoring case', async ({ call, as, workspace }) => {
      const agent = as((await workspace.staff({})).key)
      const { id } = (await agent('messaging_create_quick_message', { code: 'Straße', text: 'Secret words' }))
        .body
      // A quick message is no duplicate of itself.
      assert.equal(
        (await agent('messaging_update_quick_message', { quick_message_id: id, code: 'STRASSE' })).body.code,
        'STRASSE',
      )
      // The agent's is private: its code is free for the owner, whose message for all takes it from then on.
      const free = await call('messaging_create_quick_message', { code: 'STRASSE', text: 'Hi' })
      assert.equal(free.status, 201, free.text)
      const shared = { quick_message_id: free.body.id, visibility: 'company' }
      assert.equal((await call('messaging_update_quick_message', shared)).status, 200)
      const rejected = await agent('messaging_update_quick_message', {
        quick_message_id: id,
        visibility: 'company',
      })
      assert.deepEqual(
        [...summarizeReply(rejected), rejected.body.existing_id],
        [409, 'conflict', 'duplicate', free.body.id],
      )
      const duplicate = await agent('messaging_create_quick_message', { code: 'straße', text: 'Hi' })
      assert.deepEqual(
        [...summarizeReply(duplicate), duplicate.body.existing_id],
        [409, 'conflict', 'duplicate', id],
      )
      const other = (await call('messaging_create_quick_message', { code: 'other', text: 'Hi' })).body
      assert.deepEqual(
        summarizeReply(
          await call('messaging_update_quick_message', { quick_message_id: other.id, code: 'strasse' }),
        ),
        [409, 'conflict', 'duplicate'],
      )
    })
  },
  clock,
)

everyDatabase(
  'Quick messages',
  (server) => {
    const createScene = () => createQuickMessageScene(server())

    it('search by code, title and text, filter by type and visibility, pages by code', async () => {
      const { run, member } = await createScene()
      for (let n = 0; n < 7; n++)
        await run('messaging_create_quick_message', {
          code: `${n % 2 === 0 ? 'A' : 'b'}${n}`,
          title: `T${n}`,
          text: n === 3 ? 'Über 100% \\ sure_' : 'Hi',
          visibility: n < 3 ? 'company' : 'private',
        })
      await run('messaging_create_quick_message', {
        code: 'é',
        type: 'IMAGE',
        media_url: FILE_URL,
        text: 'ΣΊΣΥΦΟΣ',
      })
      const searchCodes = async (input: Record<string, unknown>) => {
        const { data, total } = await run('messaging_list_quick_messages', input)
        assert.equal(total, data.length)
        return toCodes(data)
      }
      assert.deepEqual(await searchCodes({}), ['A0', 'A2', 'A4', 'A6', 'b1', 'b3', 'b5', 'é'])
      for (const [query, expected] of [
        ['B', ['b1', 'b3', 'b5']],
        ['t6', ['A6']],
        ['über', ['b3']],
        ['0% \\', ['b3']],
        ['_', ['b3']],
        ['%', ['b3']],
        ['σίσυφοσ', ['é']],
        ['\u00C9', ['é']],
        ['b3T', []],
      ] as const) {
        assert.deepEqual(await searchCodes({ query }), expected, query)
      }
      assert.deepEqual(await searchCodes({ type: 'IMAGE' }), ['é'])
      assert.deepEqual(await searchCodes({ visibility: 'company' }), ['A0', 'A2', 'b1'])
      const pages = await everyPage(run, 'messaging_list_quick_messages', {}, [3, 2], async (page) => {
        // A new row before the cursor does not shift the next page.
        if (page === 1) await run('messaging_create_quick_message', { code: 'A1', text: 'Late' })
      })
      assert.deepEqual(
        pages.map((page) => [toCodes(page.data as unknown as { code: string }[]).join(' '), page.total]),
        [
          ['A0 A2 A4', 8],
          ['A6 b1', null],
          ['b3 b5 é', null],
        ],
      )
      const agent = await member()
      assert.deepEqual(toCodes((await agent.run('messaging_list_quick_messages', { limit: 2 })).data), [
        'A0',
        'A2',
      ])
      assert.equal((await agent.run('messaging_list_quick_messages', { limit: 2 })).total, 3)
    })

    it('concurrent creation with one code creates one', async () => {
      const { call, member, listRows } = await createScene()
      const ann = await member()
      const replies = await Promise.all(
        Array.from({ length: 12 }, (_, n) =>
          (n % 2 === 0 ? call : ann.call)('messaging_create_quick_message', {
            code: n % 3 === 0 ? 'One' : 'oNE',
            text: String(n),
            visibility: 'company',
          }),
        ),
      )
      assert.deepEqual(replies.map(({ status }) => status).sort(), [
        201,
        ...Array.from({ length: 11 }, () => 409),
      ])
      for (const reply of replies.filter(({ status }) => status === 409))
        assert.deepEqual(summarizeReply(reply), [409, 'conflict', 'duplicate'])
      assert.equal((await listRows()).length, 1)
    })

    it('a quick message is sent with its text, the placeholders filled', async () => {
      const { workspace, run } = await createScene()
      const { contact } = await run('crm_upsert_contact', { phone: '+15550100042', name: 'Ada $&' })
      const { id } = await server()
        .db.insertInto('conversations')
        .values({
          workspace_id: workspace.id,
          contact_id: contact.id,
          channel_id: (await run('workspace_channels')).data[0].id,
          state: 'open',
          last_inbound_at: QUICK_MESSAGES_NOW,
          created_at: QUICK_MESSAGES_NOW,
          updated_at: QUICK_MESSAGES_NOW,
          title: null,
          assigned_staff_id: null,
          assigned_team_id: null,
          reply_status: null,
          last_message_id: null,
          assigned_at: null,
          free_entry_at: null,
          window_corrected_at: null,
          window_expires_at: '2026-10-02T09:30:00.000Z',
          reminder_at: null,
          sla_policy_id: null,
          first_response_due_at: null,
          next_response_due_at: null,
          resolution_due_at: null,
          last_activity_at: QUICK_MESSAGES_NOW,
        })
        .returning('id')
        .executeTakeFirstOrThrow()
      const quickMessage = await run('messaging_create_quick_message', {
        code: 'hi',
        text: 'Hello {{contact.name}}, {{ staff.name }} here.',
      })
      assert.equal(
        (
          await run('messaging_send_reply', {
            conversation_id: id,
            quick_message_id: quickMessage.id,
            dry_run: true,
          })
        ).message.text,
        'Hello Ada $&, Owner here.',
      )
    })
  },
  clock,
)
