import assert from 'node:assert/strict'
import { it } from 'node:test'
import { currentVersion } from '../../catalog/index.ts'
import { createChannel, createStaff, createTeam, updateStaff } from '../../storage/workspace/admin.ts'
import { callAs, doAs } from '../calls.ts'
import { everyDatabase, everyDoor } from '../doors.ts'
import { makeWorkspace } from '../servers.ts'

type Named = { id: string; name: string }
const namesOf = (body: { data: Named[] }): string[] => body.data.map((row) => row.name)

everyDoor('workspace_whoami', (test) => {
  test('returns workspace, staff member, key and remaining rate limits', async ({
    call,
    as,
    server,
    workspace,
  }) => {
    const { body } = await call('workspace_whoami')
    const { limits, ...who } = body
    assert.deepEqual(who, {
      workspace: {
        id: workspace.id,
        name: 'Test',
        timezone: 'UTC',
        plan: { features: ['api_access'], contact_limit: null, template_limit: null },
      },
      staff: {
        id: workspace.owner.staffId,
        name: 'Owner',
        role: 'owner',
        hide_phone_numbers: false,
        reports: false,
      },
      key: {
        id: workspace.owner.keyId,
        name: null,
        scopes: [
          'mcp:read',
          'crm:write',
          'messaging:write',
          'webhooks:write',
          'inbox:write',
          'approvals:write',
        ],
        test: false,
        api_version: currentVersion,
        expires_at: null,
        agent: false,
        phones: true,
        policy: null,
      },
    })
    for (const { limit, remaining, window_seconds: seconds } of [limits.read, limits.write]) {
      assert.ok(remaining <= limit && remaining > limit / 2)
      assert.equal(seconds, 60)
    }
    const other = await makeWorkspace(server, {
      name: 'Läden',
      timezone: 'Asia/Kathmandu',
      contact_limit: 5,
      features: ['api_access', 'sla'],
    })
    const agent = await other.staff(
      { name: 'Ali', role: 'agent', hide_phone_numbers: true, reports: true },
      { scopes: ['mcp:read'], test: true, expires_at: '2999-01-01T00:00:00.000Z' },
    )
    const seen = (await as(agent.key)('workspace_whoami')).body
    assert.deepEqual(
      [seen.workspace.name, seen.workspace.timezone, seen.workspace.plan],
      [
        'Läden',
        'Asia/Kathmandu',
        { features: ['api_access', 'sla'], contact_limit: 5, template_limit: null },
      ],
    )
    assert.deepEqual(
      [seen.staff.hide_phone_numbers, seen.staff.reports, seen.staff.role],
      [true, true, 'agent'],
    )
    assert.deepEqual(
      [seen.key.scopes, seen.key.test, seen.key.expires_at],
      [['mcp:read'], true, '2999-01-01T00:00:00.000Z'],
    )
  })
})

everyDatabase('Staff, teams and channels', (server) => {
  it('the clock of the workspace is told to terminals, whatever becomes of the call', async () => {
    const { owner } = await makeWorkspace(server())
    const ask = (headers: Record<string, string>) =>
      fetch(`${server().url}/v1/ops/crm_get_contact`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${owner.key}`, 'Content-Type': 'application/json', ...headers },
        body: JSON.stringify({ contact_id: '999999999' }),
      })
    const [terminal, other] = [await ask({ 'Wcrm-Door': 'cli' }), await ask({})]
    assert.deepEqual([terminal.status, terminal.headers.get('workspace-time-zone')], [404, 'UTC'])
    assert.ok(
      Math.abs(Date.parse(terminal.headers.get('workspace-time')!) - Date.parse(server().app.now())) < 60_000,
    )
    assert.equal(other.headers.get('workspace-time'), null)
  })

  it('staff and teams are listed in creation order, and searched case-insensitively in Unicode', async () => {
    const workspace = await makeWorkspace(server())
    const run = doAs(server(), workspace.owner.key)
    const { db } = server()
    const now = server().app.now()
    const teams = []
    for (const name of ['Verkauf Süd', 'ΟΔΟΣ', '50%_'])
      teams.push((await createTeam(db, workspace.id, name, now)).id)
    const ids: string[] = [workspace.owner.staffId]
    for (const [name, role, team_ids, enabled] of [
      ['Éva Weiß', 'agent', [teams[1]!, teams[0]!], true],
      ['WEISS, Otto', 'manager', [], false],
      ['a\\b', 'admin', [teams[0]!], true],
    ] as const) {
      ids.push((await createStaff(db, workspace.id, { name, role, enabled }, team_ids, now)).id)
    }
    const staff = await run('workspace_list_staff')
    assert.deepEqual(staff.data[1], {
      id: ids[1],
      name: 'Éva Weiß',
      role: 'agent',
      enabled: true,
      team_ids: [teams[0], teams[1]],
      channel_ids: null,
    })
    assert.deepEqual(
      staff.data.map((s: Named) => s.id),
      ids,
    )
    assert.deepEqual([staff.data[2].enabled, staff.data[2].role], [false, 'manager'])
    const listed = await run('workspace_list_teams')
    assert.deepEqual(listed.data, [
      { id: teams[0], name: 'Verkauf Süd', staff_ids: [ids[1], ids[3]] },
      { id: teams[1], name: 'ΟΔΟΣ', staff_ids: [ids[1]] },
      { id: teams[2], name: '50%_', staff_ids: [] },
    ])
    for (const [op, search, found] of [
      ['workspace_list_staff', 'weiß', ['Éva Weiß', 'WEISS, Otto']],
      ['workspace_list_staff', 'éVA', ['Éva Weiß']],
      ['workspace_list_staff', '\\', ['a\\b']],
      ['workspace_list_staff', '%', []],
      ['workspace_list_teams', 'süd', ['Verkauf Süd']],
      ['workspace_list_teams', 'οδοσ', ['ΟΔΟΣ']],
      ['workspace_list_teams', '%_', ['50%_']],
      ['workspace_list_teams', '_', ['50%_']],
    ] as const) {
      const body = await run(op, { search })
      assert.deepEqual(namesOf(body), found, `${op} ${search}`)
      assert.equal(body.total, found.length)
    }
    for (const search of ['', ' ', 'x'.repeat(101)])
      assert.equal(
        (await callAs(server(), workspace.owner.key)('workspace_list_staff', { search })).status,
        400,
      )
  })

  it('channels are filtered by type and search; a default that cannot send is a warning', async () => {
    const workspace = await makeWorkspace(server())
    const run = doAs(server(), workspace.owner.key)
    const { db } = server()
    const now = server().app.now()
    await createChannel(
      db,
      workspace.id,
      { type: 'web', name: 'Ladentür', identifier: 'shop.example', status: 'connected', web_surface: 'ios' },
      now,
    )
    await createChannel(
      db,
      workspace.id,
      {
        type: 'chatapp',
        name: null,
        identifier: '15550100002',
        status: 'inactive',
        provider_channel_id: 'p2',
        provider_phone_number_id: 'n2',
        quality_rating: 'GREEN',
      },
      now,
    )
    const all = await run('workspace_channels')
    assert.deepEqual([all.total, all.warnings], [3, []])
    const { id: _, ...second } = all.data[2]
    assert.deepEqual(second, {
      provider_channel_id: 'p2',
      name: null,
      type: 'chatapp',
      identifier: '15550100002',
      is_default: false,
      status: 'inactive',
      web_surface: null,
      provider_phone_number_id: 'n2',
      payment_configuration: null,
      quality_rating: 'GREEN',
      health: {
        status: 'ok',
        reason: null,
        provider_code: null,
        messaging_limit: null,
        since: null,
        until: null,
      },
    })
    const found = async (input: Record<string, unknown>) =>
      (await run('workspace_channels', input)).data.map((c: { identifier: string }) => c.identifier)
    assert.deepEqual(await found({ type: 'chatapp' }), ['15550100001', '15550100002'])
    assert.deepEqual(await found({ type: 'sms' }), [])
    assert.deepEqual(await found({ search: 'LADENTÜR' }), ['shop.example'])
    assert.deepEqual(await found({ search: '0100002' }), ['15550100002'])
    assert.deepEqual(await found({ type: 'web', search: '1555' }), [])
    assert.equal(
      (await callAs(server(), workspace.owner.key)('workspace_channels', { type: 'fax' })).status,
      400,
    )

    await createChannel(
      db,
      workspace.id,
      {
        type: 'chatapp',
        name: 'New default',
        identifier: '15550100003',
        status: 'disconnected',
        is_default: true,
      },
      now,
    )
    const after = await run('workspace_channels')
    assert.deepEqual(
      after.data.map((c: { is_default: boolean }) => c.is_default),
      [false, false, false, true],
    )
    assert.equal(after.warnings.length, 1)
    assert.match(after.warnings[0], /New default.*disconnected/)
  })

  it('staff see only the channels they may use', async () => {
    const workspace = await makeWorkspace(server())
    const { db } = server()
    const now = server().app.now()
    const web = await createChannel(db, workspace.id, { type: 'web', name: 'Web', status: 'connected' }, now)
    await createChannel(db, workspace.id, { type: 'sms', name: 'Text', status: 'connected' }, now)
    const [some, none, all] = [
      await workspace.staff({ channel_ids: [web.id] }),
      await workspace.staff({ channel_ids: [] }),
      await workspace.staff({ channel_ids: null }),
    ]
    const seen = async (key: string, input = {}) => {
      const body = await doAs(server(), key)('workspace_channels', input)
      return [namesOf(body), body.total]
    }
    assert.deepEqual(await seen(some.key), [['Web'], 1])
    assert.deepEqual(await seen(some.key, { search: 'text' }), [[], 0])
    assert.deepEqual(await seen(none.key), [[], 0])
    assert.deepEqual(await seen(all.key), [['Main line', 'Web', 'Text'], 3])
    const listed = (await doAs(server(), workspace.owner.key)('workspace_list_staff')).data as {
      id: string
      channel_ids: string[] | null
    }[]
    const channelsOf = (staffId: string) => listed.find((s) => s.id === staffId)!.channel_ids
    assert.deepEqual(
      [channelsOf(some.staffId), channelsOf(none.staffId), channelsOf(all.staffId)],
      [[web.id], [], null],
    )
    // A new key, because the access of the other one is cached.
    await updateStaff(db, workspace.id, some.staffId, { channel_ids: null }, undefined)
    assert.deepEqual(await seen((await workspace.key(some.staffId)).key), [['Main line', 'Web', 'Text'], 3])
  })
})
