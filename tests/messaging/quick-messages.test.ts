import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { callAs, type doAs, everyPage } from '../calls.ts'
import { everyDatabase, everyDoor } from '../doors.ts'
import { summarizeReply } from './fixtures.ts'
import {
  createQuickMessageScene,
  createTeamWithMembers,
  FILE_URL,
  insertQuickMessageRow,
  QUICK_MESSAGES_NOW,
  selectQuickMessageRows,
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
      const rehearsed = await call('messaging_create_quick_message', {
        code: 'new',
        text: 'Hi',
        dry_run: true,
      })
      const { id, updated_at: updatedAt, version: none } = rehearsed.body
      assert.deepEqual([rehearsed.status, id, updatedAt, none], [201, null, null, null])
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
      assert.equal(version, '2')
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

    /** Two agents with quick messages of each visibility; Ann is in one team, Bob in two. */
    const createOwnedScene = async () => {
      const scene = await createScene()
      const { workspace, member } = scene
      const [ann, bob, manager] = [await member(), await member(), await member({ role: 'manager' })]
      const salesTeam = await createTeamWithMembers(server(), workspace.id, 'Sales', [ann, bob])
      const supportTeam = await createTeamWithMembers(server(), workspace.id, 'Support', [bob])
      const create = async (author: typeof ann, code: string, fields: object): Promise<string> =>
        (await author.run('messaging_create_quick_message', { code, text: code, ...fields })).id
      const ids = {
        salesTeam,
        annPrivate: await create(ann, 'ann-private', {}),
        annSales: await create(ann, 'ann-sales', { visibility: 'team', team_id: salesTeam }),
        annCompany: await create(ann, 'ann-company', { visibility: 'company' }),
        bobPrivate: await create(bob, 'bob-private', { visibility: 'private' }),
        bobSupport: await create(bob, 'bob-support', { visibility: 'team', team_id: supportTeam }),
      }
      return { ...scene, ann, bob, manager, ids }
    }

    /** Returns the codes of the visible quick messages, with a mark on those that may be edited. */
    const listVisible = async (runAs: ReturnType<typeof doAs>): Promise<string[]> =>
      ((await runAs('messaging_list_quick_messages')).data as { code: string; can_edit: boolean }[]).map(
        ({ code, can_edit: canEdit }) => `${code}${canEdit ? ' edit' : ''}`,
      )

    it('visibility decides who sees a quick message, and ownership who may edit it', async () => {
      const { workspace, run, member, manager, ann, bob, ids } = await createOwnedScene()
      assert.deepEqual(await listVisible(ann.run), ['ann-company edit', 'ann-private edit', 'ann-sales edit'])
      assert.deepEqual(await listVisible(bob.run), [
        'ann-company',
        'ann-sales',
        'bob-private edit',
        'bob-support edit',
      ])
      for (const runAsManager of [manager.run, run])
        assert.deepEqual(await listVisible(runAsManager), [
          'ann-company edit',
          'ann-sales edit',
          'bob-support edit',
        ])
      assert.deepEqual(await listVisible((await member()).run), ['ann-company'])
      // The owner keeps access to a quick message of a team that they left.
      await server()
        .db.deleteFrom('team_members')
        .where('workspace_id', '=', workspace.id)
        .where('staff_id', '=', ann.staffId)
        .execute()
      assert.deepEqual(await listVisible(ann.run), ['ann-company edit', 'ann-private edit', 'ann-sales edit'])
      const { team_id: teamId } = await ann.run('messaging_update_quick_message', {
        quick_message_id: ids.annSales,
        text: 'Still mine',
      })
      assert.equal(teamId, ids.salesTeam)
    })

    it('update and delete: the owner and managers only', async () => {
      const { call, member, listRows, manager, ann, bob, ids } = await createOwnedScene()
      const other = await member()
      const before = await listRows()
      const updateAndDelete = (callAsStaff: typeof call, id: string) =>
        Promise.all([
          callAsStaff('messaging_update_quick_message', { quick_message_id: id, title: 'x' }),
          callAsStaff('messaging_delete_quick_message', { quick_message_id: id }, { confirm: 'delete' }),
        ])
      for (const [callAsStaff, id, expected] of [
        [bob.call, ids.annPrivate, [404, 'not_found']],
        [bob.call, ids.annSales, [403, 'forbidden', 'not_owner']],
        [bob.call, ids.annCompany, [403, 'forbidden', 'not_owner']],
        [other.call, ids.annSales, [404, 'not_found']],
        [ann.call, ids.bobSupport, [404, 'not_found']],
        [manager.call, ids.annPrivate, [404, 'not_found']],
        [call, ids.bobPrivate, [404, 'not_found']],
      ] as const)
        for (const reply of await updateAndDelete(callAsStaff, id))
          assert.deepEqual(summarizeReply(reply), expected, reply.text)
      assert.deepEqual(await listRows(), before)
      const updated = await manager.run('messaging_update_quick_message', {
        quick_message_id: ids.annSales,
        title: 'By the manager',
      })
      assert.equal(updated.title, 'By the manager')
      const deleted = await manager.run('messaging_delete_quick_message', {
        quick_message_id: ids.annCompany,
      })
      assert.equal(deleted.deleted, true)
    })

    it('agents share with their own teams only, and can make quick messages private again', async () => {
      const { workspace, run, member } = await createScene()
      const ann = await member()
      const [sales, support] = [
        await createTeamWithMembers(server(), workspace.id, 'Sales', [ann]),
        await createTeamWithMembers(server(), workspace.id, 'Support'),
      ]
      const forTeam = { code: 'b', text: 'b', visibility: 'team', team_id: support }
      assert.deepEqual(summarizeReply(await ann.call('messaging_create_quick_message', forTeam)), [
        403,
        'forbidden',
        'not_a_member',
      ])
      assert.equal((await run('messaging_create_quick_message', forTeam)).team_id, support)
      const { id } = await ann.run('messaging_create_quick_message', { code: 'a', text: 'a' })
      const update = (input: object) =>
        ann.call('messaging_update_quick_message', { quick_message_id: id, ...input })
      assert.deepEqual(summarizeReply(await update({ visibility: 'team' })), [
        400,
        'invalid_input',
        '#/team_id required',
      ])
      assert.deepEqual(summarizeReply(await update({ team_id: sales })), [
        400,
        'invalid_input',
        '#/team_id not_allowed',
      ])
      assert.deepEqual(summarizeReply(await update({ visibility: 'team', team_id: support })), [
        403,
        'forbidden',
        'not_a_member',
      ])
      assert.deepEqual(summarizeReply(await update({ visibility: 'team', team_id: '999999999' })), [
        404,
        'not_found',
      ])
      const updateVisibility = async (input: object) => {
        const { body } = await update(input)
        return [body.visibility, body.team_id]
      }
      assert.deepEqual(await updateVisibility({ visibility: 'team', team_id: sales }), ['team', sales])
      assert.deepEqual(await updateVisibility({ visibility: 'team' }), ['team', sales])
      assert.deepEqual(await updateVisibility({ visibility: 'company' }), ['company', null])
      // Only the owner can make it private: others would lose it.
      assert.deepEqual(
        summarizeReply(
          await callAs(server(), workspace.owner.key)('messaging_update_quick_message', {
            quick_message_id: id,
            visibility: 'private',
          }),
        ),
        [403, 'forbidden', 'not_owner'],
      )
      assert.deepEqual(await updateVisibility({ visibility: 'private' }), ['private', null])
    })

    it('favorites are per staff member and end with deletion', async () => {
      const { workspace, run, member } = await createScene()
      const ann = await member()
      const { id } = await run('messaging_create_quick_message', {
        code: 'a',
        text: 'a',
        visibility: 'company',
      })
      await server()
        .db.insertInto('quick_message_favorites')
        .values({ workspace_id: workspace.id, staff_id: ann.staffId, quick_message_id: id })
        .execute()
      const isFavorite = async (runAs: typeof run) =>
        (await runAs('messaging_list_quick_messages')).data[0].favorite
      assert.deepEqual([await isFavorite(run), await isFavorite(ann.run)], [false, true])
      assert.equal(
        (await run('messaging_update_quick_message', { quick_message_id: id, text: 'b' })).favorite,
        false,
      )
      await run('messaging_delete_quick_message', { quick_message_id: id })
      assert.equal(
        (
          await server()
            .db.selectFrom('quick_message_favorites')
            .selectAll()
            .where('workspace_id', '=', workspace.id)
            .execute()
        ).length,
        0,
      )
    })

    it('a missing or contradicting field is rejected', async () => {
      const { workspace, call, listRows } = await createScene()
      const teamId = await createTeamWithMembers(server(), workspace.id, 'Team')
      const interactive = { kind: 'link', title: 'Our shop', url: 'https://shop.example.com' }
      for (const [input, expected] of [
        [{}, '#/text required'],
        [{ text: ' \n ' }, '#/text blank'],
        [{ type: 'IMAGE' }, '#/media_url required'],
        [{ type: 'DOCUMENT', text: 'a' }, '#/media_url required'],
        [{ text: 'a', media_url: FILE_URL }, '#/media_url not_allowed'],
        [{ text: 'a', file_name: 'a.pdf' }, '#/file_name not_allowed'],
        [{ type: 'VIDEO', media_url: FILE_URL, file_name: 'a.mp4' }, '#/file_name not_allowed'],
        ...[
          'https://localhost/a',
          'https://10.0.0.7/a',
          'https://[::1]/a',
          'https://files.internal/a',
          'https://intranet/a',
          'https://me:secret@files.example.com/a',
        ].map((url) => [{ type: 'IMAGE', media_url: url }, '#/media_url not_public'] as const),
        [{ type: 'INTERACTIVE', interactive }, '#/text required'],
        [{ type: 'INTERACTIVE', interactive, text: ' ' }, '#/text blank'],
        [{ type: 'INTERACTIVE', interactive, text: 'a'.repeat(1025) }, '#/text too_long'],
        [{ type: 'INTERACTIVE', interactive, text: 'a', media_url: FILE_URL }, '#/media_url not_allowed'],
        [{ type: 'INTERACTIVE', text: 'a' }, '#/interactive required'],
        [{ text: 'a', interactive }, '#/interactive not_allowed'],
        [
          { type: 'INTERACTIVE', text: 'a', interactive: { ...interactive, title: '{{contact.name}}' } },
          '#/interactive placeholder_form',
        ],
        [{ text: 'a', visibility: 'team' }, '#/team_id required'],
        [{ text: 'a', visibility: 'company', team_id: teamId }, '#/team_id not_allowed'],
        [{ text: 'a', team_id: teamId }, '#/team_id not_allowed'],
        [{ text: 'Hi {{contact.nmae}}' }, '#/text unknown_placeholder'],
        [{ text: 'Hi {{Contact.Name}}' }, '#/text unknown_placeholder'],
        [{ text: 'Hi {{1}}' }, '#/text unknown_placeholder'],
        [{ text: 'Hi {{contact.name}' }, '#/text placeholder_form'],
        [{ text: 'Hi {{}}' }, '#/text placeholder_form'],
        [{ text: 'Hi contact.name}}' }, '#/text placeholder_form'],
        [{ type: 'IMAGE', media_url: FILE_URL, text: '{{me}}' }, '#/text unknown_placeholder'],
      ] as const)
        assert.deepEqual(
          summarizeReply(await call('messaging_create_quick_message', { code: 'a', ...input })),
          [400, 'invalid_input', expected],
          JSON.stringify(input),
        )
      assert.deepEqual(
        summarizeReply(
          await call('messaging_create_quick_message', {
            code: 'a',
            text: 'a',
            visibility: 'team',
            team_id: '999999999',
          }),
        ),
        [404, 'not_found'],
      )
      for (const input of [
        { code: 'a b' },
        { code: 'x'.repeat(61) },
        { text: 'x'.repeat(4097) },
        { media_url: 'http://files.example.com/a' },
        { type: 'TEMPLATE' },
      ]) {
        assert.equal(
          (await call('messaging_create_quick_message', { code: 'a', text: 'a', ...input })).status,
          400,
          JSON.stringify(input),
        )
      }
      assert.deepEqual(await listRows(), [])
    })

    it('an unknown placeholder error lists known ones, for agents without manager-only fields', async () => {
      const { run, call, member } = await createScene()
      await run('crm_create_custom_field', { key: 'plan', type: 'text' })
      await run('crm_create_custom_field', { key: 'margin', type: 'text', visibility: 'manager_only' })
      const input = { text: 'A {{ contact.plan }} and {{contact.margin}}' }
      const { body: saved } = await call('messaging_create_quick_message', {
        code: 'a',
        ...input,
        visibility: 'company',
      })
      assert.equal(saved.text, input.text)
      const agent = await member()
      const rejected = await agent.call('messaging_create_quick_message', { code: 'b', ...input })
      assert.deepEqual(summarizeReply(rejected), [400, 'invalid_input', '#/text unknown_placeholder'])
      const { allowed } = rejected.body.errors[0]
      assert.ok(
        ['{{contact.plan}}', '{{contact.name}}', '{{contact.phone}}', '{{staff.name}}'].every((name) =>
          allowed.includes(name),
        ),
        allowed,
      )
      assert.ok(!allowed.includes('{{contact.margin}}'), allowed)
      const { body: misspelled } = await call('messaging_create_quick_message', {
        code: 'b',
        text: '{{contact.nmae}}',
      })
      assert.match(misspelled.errors[0].fix, /\{\{contact\.name\}\}/)
      // A text with a placeholder that was deleted does not prevent other changes.
      const margin = (await run('crm_list_custom_fields')).data.find(
        (f: { key: string }) => f.key === 'margin',
      )
      await run('crm_delete_custom_field', { custom_field_id: margin.id })
      assert.equal(
        (await run('messaging_update_quick_message', { quick_message_id: saved.id, title: 'T' })).text,
        input.text,
      )
    })

    it('a text is accepted exactly when its placeholders can be filled', async () => {
      const { call } = await createScene()
      const placeholders = ['contact.name', 'contact.phone', 'staff.name']
      const part = fc.oneof(
        fc.constantFrom(
          '{',
          '}',
          '{{',
          '}}',
          '{{}}',
          '{{ }}',
          ' ',
          'contact.name',
          '{{contact.name',
          'contact.name}}',
          '{{contact.email}}',
          '{{nobody}}',
          '$&',
          '\\',
          '😀',
        ),
        fc.constantFrom(...placeholders).map((name) => `{{${name}}}`),
        fc.constantFrom(...placeholders).map((name) => `{{ ${name}\n}}`),
        fc.string({ maxLength: 5 }),
      )
      const text = fc
        .array(part, { minLength: 1, maxLength: 6 })
        .map((parts) => parts.join(''))
        .filter((t) => t.trim() !== '' && !t.includes('\0') && t.length <= 4096)
      const counts = { accepted: 0, rejected: 0 }
      await fc.assert(
        fc.asyncProperty(text, async (input) => {
          const { status, body } = await call('messaging_create_quick_message', {
            code: 'a',
            text: input,
            dry_run: true,
          })
          const remainder = input.replaceAll(/\{\{\s*([^{}]+?)\s*\}\}/g, (match, name: string) =>
            [...placeholders, 'contact.email'].includes(name) ? '' : match,
          )
          assert.equal(status, /\{\{|\}\}/.test(remainder) ? 400 : 201, JSON.stringify([input, body]))
          if (status === 201) counts.accepted++
          else counts.rejected++
        }),
        { numRuns: 150 },
      )
      assert.ok(counts.accepted > 10 && counts.rejected > 10, JSON.stringify(counts))
    })

    it('an update changes only the fields sent, never the type', async () => {
      const { workspace, run, call, listRows } = await createScene()
      const { id } = await run('messaging_create_quick_message', {
        code: 'menu',
        title: 'Menu',
        description: 'D',
        type: 'DOCUMENT',
        text: 'Caption',
        media_url: FILE_URL,
        file_name: 'a.pdf',
      })
      const [before] = await listRows()
      assert.equal(
        (await run('messaging_update_quick_message', { quick_message_id: id })).updated_at,
        QUICK_MESSAGES_NOW,
      )
      assert.deepEqual(await listRows(), [before])
      await run('messaging_update_quick_message', {
        quick_message_id: id,
        text: '',
        description: '',
        file_name: 'b.pdf',
      })
      assert.deepEqual(await listRows(), [
        {
          ...before,
          text: null,
          description: null,
          file_name: 'b.pdf',
          search: 'menu\u001Fmenu\u001F',
          version: 2,
        },
      ])
      assert.equal(
        (await call('messaging_update_quick_message', { quick_message_id: id, type: 'TEXT' })).status,
        400,
      )
      const textMessage = await run('messaging_create_quick_message', { code: 'text', text: 'Hi' })
      for (const [input, expected] of [
        [{ text: '' }, '#/text blank'],
        [{ media_url: FILE_URL }, '#/media_url not_allowed'],
        [{ file_name: 'a' }, '#/file_name not_allowed'],
        [{ text: '{{x}}' }, '#/text unknown_placeholder'],
      ] as const) {
        assert.deepEqual(
          summarizeReply(
            await call('messaging_update_quick_message', { quick_message_id: textMessage.id, ...input }),
          ),
          [400, 'invalid_input', expected],
        )
      }
      for (const type of ['TEMPLATE', 'INTERACTIVE', 'AUDIO']) {
        const id = await insertQuickMessageRow(server(), workspace.id, {
          code: type,
          type,
          text: 'Hi',
          template_name: 'offer',
          owner_staff_id: workspace.owner.staffId,
        })
        assert.deepEqual(
          summarizeReply(await call('messaging_update_quick_message', { quick_message_id: id, title: 'x' })),
          [409, 'conflict', 'not_editable'],
        )
        const {
          data: [row],
        } = await run('messaging_list_quick_messages', { type: type.toLowerCase() })
        assert.deepEqual([row.id, row.can_edit, row.template_name], [id, false, 'offer'])
        assert.equal((await run('messaging_delete_quick_message', { quick_message_id: id })).deleted, true)
      }
    })
  },
  clock,
)
