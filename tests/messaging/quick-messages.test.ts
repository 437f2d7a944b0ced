import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { createTeam, type StaffFields } from '../../storage/admin.ts'
import { callAs, doAs, everyPage } from '../calls.ts'
import { everyDatabase, everyDoor } from '../doors.ts'
import { refusal } from './sends.ts'
import { makeWorkspace, type TestKey, type TestServer, type TestWorkspace } from '../servers.ts'

const now = '2026-10-01T09:30:00.000Z'
const clock = { now: () => now }
const file = 'https://files.example.com/menu.pdf'

type Row = {
  id: string
  code: string
  visibility: string
  can_edit: boolean
  favorite: boolean
  text: string | null
}
const codes = (rows: readonly Row[]): string[] => rows.map((row) => row.code)

/** A team, and staff members who are in it. */
const team = async (
  { db }: TestServer,
  workspace: TestWorkspace,
  name: string,
  ...members: readonly TestKey[]
): Promise<string> => {
  const { id } = await createTeam(db, workspace.id, name, now)
  for (const { staffId } of members)
    await db
      .insertInto('team_members')
      .values({ workspace_id: workspace.id, team_id: id, staff_id: staffId })
      .execute()
  return id
}

/** A row as no door makes it. */
const plantRow = async (
  { db }: TestServer,
  workspace: TestWorkspace,
  code: string,
  fields: object,
): Promise<string> =>
  (
    await db
      .insertInto('quick_messages')
      .values({
        workspace_id: workspace.id,
        code,
        code_key: code.toLowerCase(),
        title: null,
        type: 'TEXT',
        description: null,
        text: 'Hi',
        media_url: null,
        file_name: null,
        template_name: null,
        visibility: 'company',
        team_id: null,
        owner_staff_id: null,
        created_at: now,
        updated_at: now,
        ...fields,
      })
      .returning('id')
      .executeTakeFirstOrThrow()
  ).id

const rowsOf = async ({ db }: TestServer, workspace: TestWorkspace): Promise<object[]> => [
  ...(await db
    .selectFrom('quick_messages')
    .selectAll()
    .where('workspace_id', '=', workspace.id)
    .orderBy('id')
    .execute()),
]

everyDoor(
  'Quick messages',
  (test) => {
    test('create, list, update and delete', async ({ call, server, workspace, door }) => {
      const made = await call('messaging_create_quick_message', {
        code: ' Hours ',
        title: 'Opening hours',
        description: 'Asked daily',
        text: 'Hello {{contact.name}}, from 9 to 18.',
        visibility: 'company',
      })
      assert.equal(made.status, 201, made.text)
      const row = {
        id: made.body.id,
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
        updated_at: now,
      }
      assert.deepEqual(made.body, row)
      const menu = await call('messaging_create_quick_message', {
        code: 'menu',
        type: 'DOCUMENT',
        media_url: file,
        file_name: 'menu.pdf',
      })
      assert.deepEqual(menu.body, {
        ...row,
        id: menu.body.id,
        code: 'menu',
        title: null,
        type: 'DOCUMENT',
        text: null,
        media_url: file,
        visibility: 'private',
      })
      assert.deepEqual((await call('messaging_list_quick_messages')).body, {
        data: [row, menu.body],
        total: 2,
        next_cursor: null,
      })
      const changed = await call('messaging_update_quick_message', {
        quick_message_id: row.id,
        code: 'open',
        text: 'From 8 to 18.',
      })
      assert.deepEqual([changed.status, changed.body], [200, { ...row, code: 'open', text: 'From 8 to 18.' }])
      assert.deepEqual((await call('messaging_list_quick_messages', { query: 'FROM 8' })).body.data, [
        changed.body,
      ])
      assert.deepEqual((await call('messaging_list_quick_messages', { query: 'hours' })).body.data, [
        changed.body,
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
      assert.equal((await rowsOf(server, workspace)).length, 1)
    })

    test('a dry run changes nothing', async ({ call, server, workspace }) => {
      const { body: there } = await call('messaging_create_quick_message', { code: 'there', text: 'Hi' })
      const before = await rowsOf(server, workspace)
      const made = await call('messaging_create_quick_message', { code: 'new', text: 'Hi', dry_run: true })
      assert.deepEqual(
        [made.status, made.body],
        [201, { ...there, id: null, code: 'new', updated_at: null, dry_run: true }],
      )
      const changed = await call('messaging_update_quick_message', {
        quick_message_id: there.id,
        title: 'T',
        dry_run: true,
      })
      assert.deepEqual(changed.body, { ...there, title: 'T', updated_at: null, dry_run: true })
      assert.deepEqual(
        (await call('messaging_delete_quick_message', { quick_message_id: there.id, dry_run: true })).body,
        { id: there.id, deleted: true, dry_run: true },
      )
      assert.deepEqual(
        refusal(await call('messaging_create_quick_message', { code: 'THERE', text: 'Hi', dry_run: true })),
        [409, 'conflict', 'duplicate'],
      )
      assert.deepEqual(await rowsOf(server, workspace), before)
    })

    test('codes are unique in the workspace, ignoring case and visibility', async ({
      call,
      as,
      workspace,
    }) => {
      const agent = as((await workspace.staff({})).key)
      const { id } = (await agent('messaging_create_quick_message', { code: 'Straße', text: 'Secret words' }))
        .body
      const refused = await call('messaging_create_quick_message', { code: 'STRASSE', text: 'Hi' })
      assert.deepEqual(refusal(refused), [409, 'conflict', 'duplicate'])
      assert.ok(
        !refused.text.includes('Secret') &&
          !('existing_id' in refused.body) &&
          !refused.text.includes(`"${id}"`),
        refused.text,
      )
      const own = await agent('messaging_create_quick_message', { code: 'straße', text: 'Hi' })
      assert.deepEqual([...refusal(own), own.body.existing_id], [409, 'conflict', 'duplicate', id])
      // A change of its own code's case is none of another.
      assert.equal(
        (await agent('messaging_update_quick_message', { quick_message_id: id, code: 'STRASSE' })).body.code,
        'STRASSE',
      )
      const other = (await call('messaging_create_quick_message', { code: 'other', text: 'Hi' })).body
      assert.deepEqual(
        refusal(
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
    const scene = async () => {
      const workspace = await makeWorkspace(server())
      const run = doAs(server(), workspace.owner.key)
      const call = callAs(server(), workspace.owner.key)
      const member = async (fields: Partial<StaffFields> = {}) => {
        const key = await workspace.staff(fields)
        return { ...key, call: callAs(server(), key.key), run: doAs(server(), key.key) }
      }
      return { workspace, run, call, member }
    }

    it('a missing or contradicting field is refused', async () => {
      const { workspace, call } = await scene()
      const ours = await team(server(), workspace, 'Ours')
      for (const [input, expected] of [
        [{}, '#/text required'],
        [{ text: ' \n ' }, '#/text blank'],
        [{ type: 'IMAGE' }, '#/media_url required'],
        [{ type: 'DOCUMENT', text: 'a' }, '#/media_url required'],
        [{ text: 'a', media_url: file }, '#/media_url not_allowed'],
        [{ text: 'a', file_name: 'a.pdf' }, '#/file_name not_allowed'],
        [{ type: 'VIDEO', media_url: file, file_name: 'a.mp4' }, '#/file_name not_allowed'],
        ...[
          'https://localhost/a',
          'https://10.0.0.7/a',
          'https://[::1]/a',
          'https://files.internal/a',
          'https://intranet/a',
          'https://me:secret@files.example.com/a',
        ].map((url) => [{ type: 'IMAGE', media_url: url }, '#/media_url not_public'] as const),
        [{ text: 'a', visibility: 'team' }, '#/team_id required'],
        [{ text: 'a', visibility: 'company', team_id: ours }, '#/team_id not_allowed'],
        [{ text: 'a', team_id: ours }, '#/team_id not_allowed'],
        [{ text: 'Hi {{contact.nmae}}' }, '#/text unknown_placeholder'],
        [{ text: 'Hi {{Contact.Name}}' }, '#/text unknown_placeholder'],
        [{ text: 'Hi {{1}}' }, '#/text unknown_placeholder'],
        [{ text: 'Hi {{contact.name}' }, '#/text placeholder_form'],
        [{ text: 'Hi {{}}' }, '#/text placeholder_form'],
        [{ text: 'Hi contact.name}}' }, '#/text placeholder_form'],
        [{ type: 'IMAGE', media_url: file, text: '{{me}}' }, '#/text unknown_placeholder'],
      ] as const)
        assert.deepEqual(
          refusal(await call('messaging_create_quick_message', { code: 'a', ...input })),
          [400, 'invalid_input', expected],
          JSON.stringify(input),
        )
      assert.deepEqual(
        refusal(
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
      assert.deepEqual(await rowsOf(server(), workspace), [])
    })

    it('an unknown placeholder error lists the placeholders, without manager-only fields for agents', async () => {
      const { run, call, member } = await scene()
      await run('crm_create_custom_field', { key: 'plan', type: 'text' })
      await run('crm_create_custom_field', { key: 'margin', type: 'text', visibility: 'manager_only' })
      const text = { text: 'A {{ contact.plan }} and {{contact.margin}}' }
      const { body: saved } = await call('messaging_create_quick_message', {
        code: 'a',
        ...text,
        visibility: 'company',
      })
      assert.equal(saved.text, text.text)
      const agent = await member()
      const refused = await agent.call('messaging_create_quick_message', { code: 'b', ...text })
      assert.deepEqual(refusal(refused), [400, 'invalid_input', '#/text unknown_placeholder'])
      const { allowed } = refused.body.errors[0]
      assert.ok(
        ['{{contact.plan}}', '{{contact.name}}', '{{contact.phone}}', '{{staff.name}}'].every((name) =>
          allowed.includes(name),
        ),
        allowed,
      )
      assert.ok(!allowed.includes('{{contact.margin}}'), allowed)
      const { body: near } = await call('messaging_create_quick_message', {
        code: 'b',
        text: '{{contact.nmae}}',
      })
      assert.match(near.errors[0].fix, /\{\{contact\.name\}\}/)
      // What nobody may fill any more does not stand in the way of another change.
      const margin = (await run('crm_list_custom_fields')).data.find(
        (f: { key: string }) => f.key === 'margin',
      )
      await run('crm_delete_custom_field', { custom_field_id: margin.id })
      assert.equal(
        (await run('messaging_update_quick_message', { quick_message_id: saved.id, title: 'T' })).text,
        text.text,
      )
    })

    it('a text is accepted exactly when its placeholders can be filled', async () => {
      const { call } = await scene()
      const known = ['contact.name', 'contact.phone', 'staff.name']
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
        fc.constantFrom(...known).map((name) => `{{${name}}}`),
        fc.constantFrom(...known).map((name) => `{{ ${name}\n}}`),
        fc.string({ maxLength: 5 }),
      )
      const text = fc
        .array(part, { minLength: 1, maxLength: 6 })
        .map((parts) => parts.join(''))
        .filter((t) => t.trim() !== '' && !t.includes('\0') && t.length <= 4096)
      let [saved, refused] = [0, 0]
      await fc.assert(
        fc.asyncProperty(text, async (given) => {
          const { status, body } = await call('messaging_create_quick_message', {
            code: 'a',
            text: given,
            dry_run: true,
          })
          const rest = given.replaceAll(/\{\{\s*([^{}]+?)\s*\}\}/g, (all, name: string) =>
            [...known, 'contact.email'].includes(name) ? '' : all,
          )
          assert.equal(status, /\{\{|\}\}/.test(rest) ? 400 : 201, JSON.stringify([given, body]))
          if (status === 201) saved++
          else refused++
        }),
        { numRuns: 150 },
      )
      assert.ok(saved > 10 && refused > 10, `${saved} ${refused}`)
    })

    it('visibility and ownership decide who may see and change them', async () => {
      const { workspace, run, call, member } = await scene()
      const [ann, bob, manager] = [await member(), await member(), await member({ role: 'manager' })]
      const [sales, support] = [
        await team(server(), workspace, 'Sales', ann, bob),
        await team(server(), workspace, 'Support', bob),
      ]
      const save = async (
        who: Awaited<ReturnType<typeof member>>,
        code: string,
        fields: object,
      ): Promise<string> =>
        (await who.run('messaging_create_quick_message', { code, text: code, ...fields })).id
      const ids = {
        mine: await save(ann, 'ann-private', {}),
        sales: await save(ann, 'ann-sales', { visibility: 'team', team_id: sales }),
        all: await save(ann, 'ann-company', { visibility: 'company' }),
        bob: await save(bob, 'bob-private', { visibility: 'private' }),
        support: await save(bob, 'bob-support', { visibility: 'team', team_id: support }),
      }
      const seen = async (of: ReturnType<typeof doAs>) =>
        ((await of('messaging_list_quick_messages')).data as Row[]).map(
          ({ code, can_edit: edit }) => `${code}${edit ? ' edit' : ''}`,
        )
      assert.deepEqual(await seen(ann.run), ['ann-company edit', 'ann-private edit', 'ann-sales edit'])
      assert.deepEqual(await seen(bob.run), [
        'ann-company',
        'ann-sales',
        'bob-private edit',
        'bob-support edit',
      ])
      for (const lead of [manager.run, run])
        assert.deepEqual(await seen(lead), ['ann-company edit', 'ann-sales edit', 'bob-support edit'])
      const stranger = await member()
      assert.deepEqual(await seen(stranger.run), ['ann-company'])

      const before = await rowsOf(server(), workspace)
      const tries = (who: typeof call, id: string) =>
        Promise.all([
          who('messaging_update_quick_message', { quick_message_id: id, title: 'x' }),
          who('messaging_delete_quick_message', { quick_message_id: id }, { confirm: 'delete' }),
        ])
      for (const [who, id, expected] of [
        [bob.call, ids.mine, [404, 'not_found']],
        [bob.call, ids.sales, [403, 'forbidden', 'not_owner']],
        [bob.call, ids.all, [403, 'forbidden', 'not_owner']],
        [stranger.call, ids.sales, [404, 'not_found']],
        [ann.call, ids.support, [404, 'not_found']],
        [manager.call, ids.mine, [404, 'not_found']],
        [call, ids.bob, [404, 'not_found']],
      ] as const)
        for (const reply of await tries(who, id)) assert.deepEqual(refusal(reply), expected, reply.text)
      assert.deepEqual(await rowsOf(server(), workspace), before)
      assert.equal(
        (
          await manager.run('messaging_update_quick_message', {
            quick_message_id: ids.sales,
            title: 'By the manager',
          })
        ).title,
        'By the manager',
      )
      assert.equal(
        (await manager.run('messaging_delete_quick_message', { quick_message_id: ids.all })).deleted,
        true,
      )
      // Whoever lost the team still has their own.
      await server()
        .db.deleteFrom('team_members')
        .where('workspace_id', '=', workspace.id)
        .where('staff_id', '=', ann.staffId)
        .execute()
      assert.deepEqual(await seen(ann.run), ['ann-private edit', 'ann-sales edit'])
      assert.equal(
        (await ann.run('messaging_update_quick_message', { quick_message_id: ids.sales, text: 'Still mine' }))
          .team_id,
        sales,
      )
    })

    it('agents share with their own teams only, and can make them private again', async () => {
      const { workspace, run, member } = await scene()
      const ann = await member()
      const [sales, support] = [
        await team(server(), workspace, 'Sales', ann),
        await team(server(), workspace, 'Support'),
      ]
      const forTeam = { code: 'b', text: 'b', visibility: 'team', team_id: support }
      assert.deepEqual(refusal(await ann.call('messaging_create_quick_message', forTeam)), [
        403,
        'forbidden',
        'not_a_member',
      ])
      assert.equal((await run('messaging_create_quick_message', forTeam)).team_id, support)
      const { id } = await ann.run('messaging_create_quick_message', { code: 'a', text: 'a' })
      const change = (input: object) =>
        ann.call('messaging_update_quick_message', { quick_message_id: id, ...input })
      assert.deepEqual(refusal(await change({ visibility: 'team' })), [
        400,
        'invalid_input',
        '#/team_id required',
      ])
      assert.deepEqual(refusal(await change({ team_id: sales })), [
        400,
        'invalid_input',
        '#/team_id not_allowed',
      ])
      assert.deepEqual(refusal(await change({ visibility: 'team', team_id: support })), [
        403,
        'forbidden',
        'not_a_member',
      ])
      assert.deepEqual(refusal(await change({ visibility: 'team', team_id: '999999999' })), [
        404,
        'not_found',
      ])
      const shown = async (input: object) => {
        const { body } = await change(input)
        return [body.visibility, body.team_id]
      }
      assert.deepEqual(await shown({ visibility: 'team', team_id: sales }), ['team', sales])
      assert.deepEqual(await shown({ visibility: 'team' }), ['team', sales])
      assert.deepEqual(await shown({ visibility: 'company' }), ['company', null])
      // Nobody but the owner makes it private: to others it would be gone.
      assert.deepEqual(
        refusal(
          await callAs(server(), workspace.owner.key)('messaging_update_quick_message', {
            quick_message_id: id,
            visibility: 'private',
          }),
        ),
        [403, 'forbidden', 'not_owner'],
      )
      assert.deepEqual(await shown({ visibility: 'private' }), ['private', null])
    })

    it('an update changes only the fields sent, never the type', async () => {
      const { workspace, run, call } = await scene()
      const { id } = await run('messaging_create_quick_message', {
        code: 'menu',
        title: 'Menu',
        description: 'D',
        type: 'DOCUMENT',
        text: 'Caption',
        media_url: file,
        file_name: 'a.pdf',
      })
      const [before] = await rowsOf(server(), workspace)
      assert.equal((await run('messaging_update_quick_message', { quick_message_id: id })).updated_at, now)
      assert.deepEqual(await rowsOf(server(), workspace), [before])
      await run('messaging_update_quick_message', {
        quick_message_id: id,
        text: '',
        description: '',
        file_name: 'b.pdf',
      })
      assert.deepEqual(await rowsOf(server(), workspace), [
        { ...before, text: null, description: null, file_name: 'b.pdf', search: 'menu\u001Fmenu\u001F' },
      ])
      assert.equal(
        (await call('messaging_update_quick_message', { quick_message_id: id, type: 'TEXT' })).status,
        400,
      )
      const text = await run('messaging_create_quick_message', { code: 'text', text: 'Hi' })
      for (const [input, expected] of [
        [{ text: '' }, '#/text blank'],
        [{ media_url: file }, '#/media_url not_allowed'],
        [{ file_name: 'a' }, '#/file_name not_allowed'],
        [{ text: '{{x}}' }, '#/text unknown_placeholder'],
      ] as const) {
        assert.deepEqual(
          refusal(await call('messaging_update_quick_message', { quick_message_id: text.id, ...input })),
          [400, 'invalid_input', expected],
        )
      }
      for (const type of ['TEMPLATE', 'INTERACTIVE', 'AUDIO']) {
        const other = await plantRow(server(), workspace, type, {
          type,
          template_name: 'offer',
          owner_staff_id: workspace.owner.staffId,
        })
        assert.deepEqual(
          refusal(await call('messaging_update_quick_message', { quick_message_id: other, title: 'x' })),
          [409, 'conflict', 'not_editable'],
        )
        const {
          data: [row],
        } = await run('messaging_list_quick_messages', { type: type.toLowerCase() })
        assert.deepEqual([row.id, row.can_edit, row.template_name], [other, false, 'offer'])
        assert.equal((await run('messaging_delete_quick_message', { quick_message_id: other })).deleted, true)
      }
    })

    it('search by code, title and text, filter by type and visibility, pages by code', async () => {
      const { run, member } = await scene()
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
        media_url: file,
        text: 'ΣΊΣΥΦΟΣ',
      })
      const found = async (input: Record<string, unknown>) => {
        const { data, total } = await run('messaging_list_quick_messages', input)
        assert.equal(total, data.length)
        return codes(data)
      }
      assert.deepEqual(await found({}), ['A0', 'A2', 'A4', 'A6', 'b1', 'b3', 'b5', 'é'])
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
        assert.deepEqual(await found({ query }), expected, query)
      }
      assert.deepEqual(await found({ type: 'IMAGE' }), ['é'])
      assert.deepEqual(await found({ visibility: 'company' }), ['A0', 'A2', 'b1'])
      const pages = await everyPage(run, 'messaging_list_quick_messages', {}, [3, 2], async (page) => {
        // Neither a row that comes before nor one that goes shifts the next page.
        if (page === 1) await run('messaging_create_quick_message', { code: 'A1', text: 'Late' })
      })
      assert.deepEqual(
        pages.map((page) => [codes(page.data as unknown as Row[]).join(' '), page.total]),
        [
          ['A0 A2 A4', 8],
          ['A6 b1', null],
          ['b3 b5 é', null],
        ],
      )
      const agent = await member()
      assert.deepEqual(codes((await agent.run('messaging_list_quick_messages', { limit: 2 })).data), [
        'A0',
        'A2',
      ])
      assert.equal((await agent.run('messaging_list_quick_messages', { limit: 2 })).total, 3)
    })

    it('favorites are per staff member and end with deletion', async () => {
      const { workspace, run, member } = await scene()
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
      const favorite = async (of: typeof run) => (await of('messaging_list_quick_messages')).data[0].favorite
      assert.deepEqual([await favorite(run), await favorite(ann.run)], [false, true])
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

    it('concurrent creation with one code creates one', async () => {
      const { workspace, call, member } = await scene()
      const ann = await member()
      const replies = await Promise.all(
        Array.from({ length: 12 }, (_, n) =>
          (n % 2 === 0 ? call : ann.call)('messaging_create_quick_message', {
            code: n % 3 === 0 ? 'One' : 'oNE',
            text: String(n),
          }),
        ),
      )
      assert.deepEqual(replies.map(({ status }) => status).sort(), [
        201,
        ...Array.from({ length: 11 }, () => 409),
      ])
      for (const reply of replies.filter(({ status }) => status === 409))
        assert.deepEqual(refusal(reply), [409, 'conflict', 'duplicate'])
      assert.equal((await rowsOf(server(), workspace)).length, 1)
    })

    it('are sent with the saved content', async () => {
      const { workspace, run } = await scene()
      const { contact } = await run('crm_upsert_contact', { phone: '+15550100042', name: 'Ada $&' })
      const { id } = await server()
        .db.insertInto('conversations')
        .values({
          workspace_id: workspace.id,
          contact_id: contact.id,
          channel_id: (await run('workspace_channels')).data[0].id,
          state: 'open',
          last_inbound_at: now,
          created_at: now,
          updated_at: now,
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
          last_activity_at: now,
        })
        .returning('id')
        .executeTakeFirstOrThrow()
      const quick = await run('messaging_create_quick_message', {
        code: 'hi',
        text: 'Hello {{contact.name}}, {{ staff.name }} here.',
      })
      assert.equal(
        (
          await run('messaging_send_reply', {
            conversation_id: id,
            quick_message_id: quick.id,
            dry_run: true,
          })
        ).message.text,
        'Hello Ada $&, Owner here.',
      )
    })
  },
  clock,
)
