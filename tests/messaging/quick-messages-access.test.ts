import assert from 'node:assert/strict'
import { it } from 'node:test'
import { callAs, type doAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { summarizeReply } from './fixtures.ts'
import { createQuickMessageScene, createTeamWithMembers, QUICK_MESSAGES_NOW } from './quick-messages.ts'

const clock = { now: () => QUICK_MESSAGES_NOW }

everyDatabase(
  'Quick messages: access',
  (server) => {
    const createScene = () => createQuickMessageScene(server())

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
  },
  clock,
)
