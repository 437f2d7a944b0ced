import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { catalog, type Operation } from '../../catalog/index.ts'
import { defaultPolicy } from '../../catalog/policy.ts'
import { changeKey } from '../../storage/access/admin-keys.ts'
import { createChannel } from '../../storage/workspace/admin.ts'
import { importContacts, MANY, runJobs } from '../bulk-jobs/many.ts'
import { callAs, doAs } from '../calls.ts'
import { checked, doorsOf, everyDatabase, everyDoor } from '../doors.ts'
import { makeWorkspace, type TestServer, type TestWorkspace } from '../servers.ts'
import { loadWorkspaceRows } from '../world.ts'

type Input = Record<string, unknown>
type Scene = { server: TestServer; workspace: TestWorkspace }

/** It changes one contact, and names the groups that this joins. */
const CHANGES_ONE = ['crm_upsert_contact']

/** Operations that take several records, and that an agent makes by itself of one. */
const writes = catalog.filter(
  ({ name, scope, confirm, asks, jobs, itemwise, input }) =>
    scope !== 'mcp:read' &&
    confirm === undefined &&
    asks !== true &&
    !CHANGES_ONE.includes(name) &&
    (jobs || itemwise !== undefined || Object.keys(input.shape).some((field) => /(^|_)ids$/.test(field))),
)

/** Makes many contacts, each with an open conversation. Returns a change of them by each operation. */
const seed = async ({ server, workspace }: Scene) => {
  const { db, app } = server
  const run = doAs(server, workspace.owner.key)
  const { id: channel } = await createChannel(
    db,
    workspace.id,
    { type: 'web', name: 'Shop', status: 'connected' },
    app.now(),
  )
  const [full, empty] = await Promise.all(
    ['Full', 'Empty'].map(async (name) => (await run('crm_create_group', { name })).group.id as string),
  )
  await importContacts(callAs(server, workspace.owner.key), MANY, (n) => ({
    name: `Ada ${n}`,
    external_id: `A-${n}`,
    tags: ['All'],
    group_ids: [full],
  }))
  await sql`
    with v as (
      insert into conversations (workspace_id, contact_id, channel_id, state, created_at, updated_at)
      select workspace_id, id, ${channel}::bigint, 'open', created_at, created_at
      from contacts where workspace_id = ${workspace.id} returning workspace_id, id, created_at
    )
    insert into conversation_episodes (workspace_id, conversation_id, n, opened_at)
    select workspace_id, id, 1, created_at from v`.execute(db)
  const listIds = async (table: 'contacts' | 'conversations'): Promise<string[]> =>
    (
      await db
        .selectFrom(table)
        .select('id')
        .where('workspace_id', '=', workspace.id)
        .orderBy('id')
        .limit(2)
        .execute()
    ).map(({ id }) => id)
  const [contacts, conversations] = [await listIds('contacts'), await listIds('conversations')]
  const row = (n: number) => ({ external_id: `A-${n}`, name: 'Ada B.' })
  const changes: Readonly<Record<string, Input>> = {
    crm_update_contacts: { starred: true },
    crm_tag_contacts: { tags: ['New'] },
    crm_untag_contacts: { tags: ['All'] },
    crm_add_contacts_to_group: { group_id: empty },
    crm_remove_contacts_from_group: { group_id: full },
    crm_import_contacts: { rows: [row(0), row(1)] },
    inbox_assign_conversations: { staff_id: workspace.owner.staffId },
    inbox_close_conversations: {},
  }
  /** Returns a change of two records in each way that the operation takes, and of one of them. */
  const toInputs = (op: Operation): { two: Input[]; one: Input } => {
    const change = changes[op.name]
    assert.ok(change, `${op.name} takes several records: add what it changes of them`)
    if (!op.jobs)
      return { two: [change], one: { rows: [row(1), { external_id: 'B-1', phone: '+15559990001' }] } }
    const [field, ids, filter] =
      'conversation_ids' in op.input.shape
        ? (['conversation_ids', conversations, { contact: { id: { in: contacts } } }] as const)
        : (['contact_ids', contacts, { id: { in: contacts } }] as const)
    return {
      two: [
        { ...change, [field]: ids },
        { ...change, filter },
      ],
      one: { ...change, [field]: [ids[1], '999999999'] },
    }
  }
  return { run, changes, toInputs }
}

/** The records, and what they have. */
const loadRecords = async ({ server, workspace }: Scene) => {
  const rows = await loadWorkspaceRows(server.db, workspace.id)
  const tables = ['contacts', 'conversations', 'contact_tags', 'contact_groups', 'tags', 'bulk_jobs']
  return tables.map((table) => (rows[table] ?? []).filter((row) => !row.includes('"planned"')))
}

everyDatabase("An agent's changes of several records", (server) => {
  it('are asked, of one record are made, and as a job are made and can be undone', async () => {
    const scene = { server: server(), workspace: await makeWorkspace(server()) }
    const { run, changes, toInputs } = await seed(scene)
    const { key } = await scene.workspace.key(scene.workspace.owner.staffId, { agent: true })
    const agent = checked(doorsOf(scene.server.url, key)[2]!).call
    assert.ok(writes.length >= 8)
    for (const op of writes) {
      const { two, one } = toInputs(op)
      const before = await loadRecords(scene)
      for (const input of two) {
        const { status, body, text } = await agent(op.name, input)
        assert.deepEqual([status, body.approval?.asked_for], [202, ['many']], `${op.name}: ${text}`)
      }
      assert.deepEqual(await loadRecords(scene), before, op.name)
      const single = await agent(op.name, one)
      assert.deepEqual([single.status, single.body.approval], [200, undefined], `${op.name}: ${single.text}`)
      if (!op.jobs) continue
      const { body, text } = await agent(op.name, { ...changes[op.name], filter: {}, all: true })
      assert.equal(body.job?.state, 'running', `${op.name}: ${text}`)
      await runJobs(scene.server)
      await run('jobs_undo', { job_id: body.job.id })
      await runJobs(scene.server)
      const undone = await run('jobs_get', { job_id: body.job.id })
      assert.ok(undone.changed >= MANY - 1, `${op.name} changed ${undone.changed}`)
    }
  })
})

everyDoor("An agent's change of several records", (test) => {
  test('is announced by its dry run, made once approved, and not asked where it changes nothing', async (scene) => {
    const { as, call, door, server, workspace } = scene
    const run = doAs(server, workspace.owner.key)
    const rows = ['A-1', 'A-2'].map((id, n) => ({ external_id: id, phone: `+1555000000${n}` }))
    const { results } = await run('crm_import_contacts', { rows })
    const tag = { contact_ids: results.map(({ id }: { id: string }) => id), tags: ['VIP'] }
    const { key, keyId } = await workspace.key(workspace.owner.staffId, { agent: true })
    const agent = as(key)
    const count = async () => (await run('crm_list_tags')).data.map((one: any) => one.contacts_count)
    const dryRun = await agent('crm_tag_contacts', { ...tag, dry_run: true })
    if (door.name === 'rest' || door.name === 'ops') assert.equal(dryRun.headers['approval'], 'required')
    const options = { idempotencyKey: 'several-0001' }
    const { approval } = (await agent('crm_tag_contacts', tag, options)).body
    const again = await agent('crm_tag_contacts', tag, options)
    assert.equal(again.body.approval.id, approval.id)
    assert.deepEqual(await count(), [])
    assert.equal((await call('approvals_approve', { approval_id: approval.id })).status, 200)
    await server.app.jobs.job('approvals').runOnce()
    assert.deepEqual(await count(), [2])
    const made = await agent('crm_tag_contacts', tag, options)
    assert.deepEqual([made.status, made.body.succeeded], [200, 2], made.text)
    // They have it already.
    const unchanged = await agent('crm_tag_contacts', { ...tag, tags: ['vip'] })
    assert.deepEqual([unchanged.status, unchanged.body.succeeded], [200, 2], unchanged.text)
    // What the policy names is no question.
    const policy = { ...defaultPolicy, operations: { crm_untag_contacts: 'allow' as const } }
    await changeKey(server.db, workspace.id, keyId, { policy })
    server.app.keyCache.keys.clear()
    const untagged = await agent('crm_untag_contacts', tag)
    assert.deepEqual([untagged.status, untagged.body.succeeded], [200, 2], untagged.text)
  })
})

everyDoor('What saved filters name', (test) => {
  test('is changed by an agent once a person approves', async (scene) => {
    const { as, call, server, workspace } = scene
    const run = doAs(server, workspace.owner.key)
    await run('crm_import_contacts', {
      rows: [{ external_id: 'A-1', phone: '+15550000001', tags: ['VIP', 'Old', 'Plain'] }],
    })
    const tags = new Map<string, string>(
      (await run('crm_list_tags')).data.map(({ id, name }: { id: string; name: string }) => [name, id]),
    )
    const toGroup = async (name: string) => (await run('crm_create_group', { name })).group.id as string
    const [club, other] = [await toGroup('Club'), await toGroup('Other')]
    const toOptions = (...values: string[]) => values.map((value) => ({ label: value, value }))
    const field = await run('crm_create_custom_field', {
      key: 'plan',
      type: 'select',
      options: toOptions('basic', 'pro', 'max'),
    })
    const save = async (name: string, filter: Input) =>
      (await run('crm_create_saved_filter', { name, filter })).saved_filter.id as string
    const vips = await save('VIPs', {
      or: [{ dnd: { eq: true } }, { not: { tags: { some: { name: { in: ['VIP'] } } } } }],
    })
    await save('Silvers', { tags: { some: { name: { eq: 'Silver' } } } })
    await save('Olds', { tags: { none: { id: { eq: tags.get('Old')! } } } })
    await save('Members', { groups: { every: { name: { eq: 'Club' } } } })
    await save('Pros', {
      attributes: { some: { attributeName: { eq: 'plan' }, stringValue: { eq: 'pro' } } },
    })
    await save('All VIPs', { savedFilter: { eq: vips } })
    const agent = as((await workspace.key(workspace.owner.staffId, { agent: true })).key)
    const options = { custom_field_id: field.id }
    const asked = [
      // The filter would find it from then on.
      ['crm_rename_tag', { tag_id: tags.get('Plain')!, name: 'Silver' }, 'Silvers'],
      ['crm_update_custom_field', { ...options, options: toOptions('basic', 'max') }, 'Pros'],
      ['crm_delete_tag', { tag_id: tags.get('VIP')! }, 'VIPs'],
      ['crm_delete_group', { group_id: club }, 'Members'],
      ['crm_delete_custom_field', options, 'Pros'],
      ['crm_delete_saved_filter', { saved_filter_id: vips }, 'All VIPs'],
    ] as const
    for (const [op, input, filter] of asked) {
      const { status, body, text } = await agent(op, input)
      const why = op.includes('delete') ? 'verb' : 'saved_filters'
      assert.deepEqual([status, body.approval?.asked_for], [202, [why]], `${op}: ${text}`)
      const { summary } = (await call('approvals_get', { approval_id: body.approval.id })).body
      const named = summary.filter((line: string) => line.startsWith('Named in the saved filter: '))
      assert.deepEqual([named.length, named[0]?.includes(`: ${filter}, id `)], [1, true], summary.join('\n'))
    }
    const unasked = [
      ['crm_rename_tag', { tag_id: tags.get('Plain')!, name: 'Simple' }],
      // What names it follows it.
      ['crm_rename_tag', { tag_id: tags.get('Old')!, name: 'Past' }],
      ['crm_update_group', { group_id: club, name: 'Circle' }],
      ['crm_update_group', { group_id: club, emoji: '⭐' }],
      ['crm_update_group', { group_id: other, name: 'Others' }],
      ['crm_update_custom_field', { ...options, label: 'Tariff', options: toOptions('pro', 'max') }],
      ['crm_add_contacts_to_group', { group_id: club, saved_filter_id: vips }],
    ] as const
    for (const [op, input] of unasked) {
      const { status, text } = await agent(op, input)
      assert.equal(status, 200, `${op}: ${text}`)
    }
    // A person is not asked.
    assert.equal((await call('crm_rename_tag', { tag_id: tags.get('VIP')!, name: 'Gold' })).status, 200)
  })
})
