import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { it } from 'node:test'
import { catalog, type Operation } from '../../catalog/index.ts'
import { callAs } from '../calls.ts'
import { finishBackgroundWork } from '../background.ts'
import { checked, doorsOf, everyDatabase, everyDoor, type Reply } from '../doors.ts'
import { insertSandboxTemplates, ORDER_UPDATE } from '../messaging/send-template.ts'
import { makeWorkspace } from '../servers.ts'
import { buildExampleInputs, loadWorkspaceRows, seedWorld } from '../world.ts'

const isLast = ({ name }: Operation): number => Number(/delete|archive|erase/.test(name))
const writes = catalog.filter((op) => op.dryRun).sort((a, b) => isLast(a) - isLast(b))

/**
 * What another run of the same call leaves as it is, so that its plan still holds: the world has it, it adds, or its
 * contacts are gone.
 */
const STILL_HOLD = new Set([
  'crm_import_contacts',
  'crm_add_contacts_to_group',
  'crm_update_contacts',
  'crm_delete_contacts',
  'crm_export_person',
  'crm_track_saved_filter',
  'crm_create_saved_filter',
  'inbox_add_note',
  'messaging_upload_template_sample',
  'messaging_archive_templates',
  'messaging_sync_templates',
  'webhooks_create_endpoint',
  'webhooks_send_test',
  'webhooks_recover_endpoint',
])

everyDatabase('Plans of all operations', (server) => {
  it('hold while nothing changes, and are refused when something did', async () => {
    const workspace = await makeWorkspace(server())
    const world = await seedWorld(server(), workspace, 'Planned', '0155')
    const door = checked(doorsOf(server().url, workspace.owner.key)[1]!)
    let refusals = 0
    for (const op of writes) {
      const [input = {}] = buildExampleInputs(world, op)
      const call = (more: { plan?: string; dry?: boolean }): Promise<Reply> =>
        door.call(op.name, more.dry ? { ...input, dry_run: true } : input, {
          idempotencyKey: randomUUID(),
          ...(op.confirm ? { confirm: op.confirm } : {}),
          ...(more.plan ? { plan: more.plan } : {}),
        })
      const planned = await call({ dry: true, plan: 'show' })
      // The world has one approval, which the first of three operations decides.
      if (planned.body.reason === 'already_decided') continue
      assert.ok(planned.status < 300, `${op.name}: ${planned.text}`)
      const { token, summary } = planned.body.plan
      assert.ok(summary.length > 1 && summary[0] === op.summary, `${op.name}: ${JSON.stringify(summary)}`)
      const held = await call({ dry: true, plan: token })
      assert.ok(held.status < 300, `${op.name}: ${JSON.stringify(planned.body.plan)} ${held.text}`)
      const done = await call({ plan: token })
      await finishBackgroundWork(server(), workspace.id)
      // The sandbox has no message of the world's customers, so that it refuses a free-form reply.
      if (done.body.provider_code !== undefined) continue
      assert.ok(done.status < 300, `${op.name}: ${done.text}`)
      const rows = await loadWorkspaceRows(server().db, workspace.id)
      const late = await call({ plan: token })
      await finishBackgroundWork(server(), workspace.id)
      assert.equal(late.status < 300, STILL_HOLD.has(op.name), `${op.name}: ${late.text}`)
      if (late.body.reason !== 'plan_changed') continue
      refusals++
      assert.ok(late.body.plan.token, op.name)
      assert.deepEqual(await loadWorkspaceRows(server().db, workspace.id), rows, op.name)
    }
    assert.ok(refusals > 20, String(refusals))
  })

  it('hold whatever text of the call equals the id of a new record', async () => {
    const { owner } = await makeWorkspace(server())
    const ops = checked(doorsOf(server().url, owner.key)[1]!)
    const made = await ops.call('crm_create_group', { name: 'First' })
    // The next ids are near: one of them is the name of the group.
    for (const name of [1, 2, 3, 4].map((n) => String(Number(made.body.group.id) + n))) {
      const dry = await ops.call('crm_create_group', { name, dry_run: true }, { plan: 'show' })
      const done = await ops.call('crm_create_group', { name }, { plan: dry.body.plan.token })
      assert.equal(done.status, 200, done.text)
    }
  })

  it('hold whatever id of another kind equals the id of a new record', async () => {
    const { owner } = await makeWorkspace(server())
    const ops = checked(doorsOf(server().url, owner.key)[1]!)
    const made = await ops.call('crm_upsert_contact', { phone: '+15550155090', name: 'First' })
    // The next ids are near: one of them is the number that another system gave.
    for (const n of [1, 2, 3, 4, 5]) {
      const external_id = String(Number(made.body.contact.id) + n)
      const input = { phone: `+1555015509${n}`, name: 'Next', external_id }
      const dry = await ops.call('crm_upsert_contact', { ...input, dry_run: true }, { plan: 'show' })
      const done = await ops.call('crm_upsert_contact', input, { plan: dry.body.plan.token })
      assert.equal(done.status, 200, done.text)
    }
  })

  it('hold whatever the keys of metadata are called', async () => {
    const { owner } = await makeWorkspace(server())
    const ops = checked(doorsOf(server().url, owner.key)[1]!)
    const input = { phone: '+15550155091', metadata: { constructor_id: '12', valueOf_ids: '13' } }
    const dry = await ops.call('crm_upsert_contact', { ...input, dry_run: true }, { plan: 'show' })
    assert.equal(dry.status, 200, dry.text)
    const done = await ops.call('crm_upsert_contact', input, { plan: dry.body.plan.token })
    assert.equal(done.status, 200, done.text)
  })

  it('hold for one of two calls that are sent at once', async () => {
    const { owner } = await makeWorkspace(server())
    const ops = checked(doorsOf(server().url, owner.key)[1]!)
    const made = await ops.call('crm_upsert_contact', { phone: '+15550155001', name: 'Ada' })
    const input = { contact_id: made.body.contact.id }
    const plans = await Promise.all(
      ['Grace', 'Edsger', 'Barbara', 'Alan'].map(async (name) => {
        const dry = await ops.call('crm_update_contact', { ...input, name, dry_run: true }, { plan: 'show' })
        return { name, plan: dry.body.plan.token as string }
      }),
    )
    const replies = await Promise.all(
      plans.map(({ name, plan }) => ops.call('crm_update_contact', { ...input, name }, { plan })),
    )
    assert.deepEqual(replies.map(({ status }) => status).sort(), [200, 409, 409, 409])
    const read = await ops.call('crm_get_contact', input)
    const winner = replies.findIndex(({ status }) => status === 200)
    assert.equal(read.body.name, plans[winner]!.name)
  })

  it('show the reader nothing that is hidden from them, and do not tell of it', async () => {
    const workspace = await makeWorkspace(server())
    const owner = doorsOf(server().url, workspace.owner.key)[0]!
    const field = { key: 'margin', label: 'Margin', type: 'text', visibility: 'manager_only' }
    const declared = await owner.call('crm_create_custom_field', field)
    assert.ok(declared.status < 300, declared.text)
    const made = await owner.call('crm_upsert_contact', {
      phone: '+15550155077',
      name: 'Ada',
      attributes: { margin: 'twelve' },
    })
    const input = { contact_id: made.body.contact.id }
    const { key } = await workspace.staff({ name: 'Junior', role: 'agent', hide_phone_numbers: true })
    const junior = doorsOf(server().url, key)[0]!
    const rename = { ...input, name: 'Augusta' }
    const planned = await junior.call('crm_update_contact', { ...rename, dry_run: true }, { plan: 'show' })
    assert.equal(planned.status, 200, planned.text)
    assert.ok(!/15550155077|twelve/.test(planned.text), planned.text)
    await owner.call('crm_update_contact', { ...input, attributes: { margin: 'thirteen' } })
    const held = await junior.call('crm_update_contact', rename, { plan: planned.body.plan.token })
    assert.equal(held.status, 200, held.text)
    const other = await owner.call('crm_update_contact', rename, { plan: planned.body.plan.token })
    assert.deepEqual([other.status, other.body.errors?.[0]?.header], [400, 'Api-Plan'])
  })
})

everyDatabase('Plans of staff from whom phones are hidden', (server) => {
  it('make a new contact, and change none that has the number', async () => {
    const workspace = await makeWorkspace(server())
    await insertSandboxTemplates(server(), workspace, {})
    const owner = callAs(server(), workspace.owner.key)
    const known = (await owner('crm_upsert_contact', { phone: '+15550155077', name: 'Ada' })).body
    const { key } = await workspace.staff({ name: 'Junior', role: 'agent', hide_phone_numbers: true })
    const junior = callAs(server(), key)
    const runPlanned = async (name: string, input: Record<string, unknown>, confirm?: string) => {
      const planned = await junior(name, { ...input, dry_run: true }, { plan: 'show' })
      assert.ok(planned.body.warnings, planned.text)
      const options = { plan: planned.body.plan.token, ...(confirm ? { confirm } : {}) }
      return (await junior(name, input, options)).body
    }
    const upsert = (phone: string) => runPlanned('crm_upsert_contact', { phone, name: 'Grace' })
    const template = { ...ORDER_UPDATE, body: ['Ada', 'A-17'] }
    const send = (phone: string) => runPlanned('messaging_send_template', { phone, template }, 'send')
    assert.equal((await upsert('+15550155078')).action, 'created')
    assert.equal((await upsert('+15550155077')).reason, 'plan_changed')
    assert.equal((await owner('crm_get_contact', { contact_id: known.id })).body.name, 'Ada')
    assert.equal((await send('+15550155077')).reason, 'plan_changed')
    const sent = await send('+15550155079')
    assert.equal(sent.message?.status, 'sent', JSON.stringify(sent))
  })
})

everyDoor('A plan', (test) => {
  test('shows each record before and after, and runs only as it was shown', async ({
    call,
    door,
    as,
    workspace,
  }) => {
    if (door.name === 'cli') return
    const made = await call('crm_upsert_contact', { phone: '+15550155001', name: 'Ada' })
    const input = { contact_id: made.body.contact.id, name: 'Ada Lovelace' }
    const dry = { ...input, dry_run: true }
    const plan = (await call('crm_update_contact', dry, { plan: 'show' })).body.plan
    assert.deepEqual(plan.records, [
      { kind: 'contact', id: input.contact_id, before: { name: 'Ada' }, after: { name: 'Ada Lovelace' } },
    ])
    if (door.name === 'mcp') {
      const { text } = await call('crm_update_contact', dry, { plan: 'show' })
      assert.match(text, /"untrusted_fields":\[[^\]]*"\/plan\/records"/)
    }
    assert.equal((await call('crm_update_contact', dry)).body.plan, undefined)
    await as(workspace.owner.key)('crm_update_contact', { ...input, name: 'Countess' })
    const refused = await call('crm_update_contact', input, { plan: plan.token })
    assert.deepEqual([refused.status, refused.body.reason], [409, 'plan_changed'])
    assert.deepEqual(refused.body.plan.records[0].before, { name: 'Countess' })
    await call('crm_update_contact', { ...input, name: 'Ada' })
    const idempotencyKey = randomUUID()
    const options = { plan: plan.token, idempotencyKey }
    const done = await call('crm_update_contact', input, options)
    assert.deepEqual([done.status, done.body.name], [200, 'Ada Lovelace'])
    const again = await call('crm_update_contact', input, options)
    assert.deepEqual([again.status, again.body.name], [200, 'Ada Lovelace'])
    const wrong = await call('crm_update_contact', input, { plan: 'show' })
    assert.deepEqual([wrong.status, wrong.body.errors[0].header], [400, 'Api-Plan'])
  })
})
