import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { everyDatabase, everyDoor } from '../doors.ts'
import {
  createBulkScene,
  endWaits,
  insertAutumnBlend,
  phoneOf,
  runSends,
  sendToAll,
  TEMPLATE,
} from './scene.ts'

everyDoor('A template to many', (test) => {
  test('is rehearsed, sent with its plan once, and shown as a broadcast', async ({
    call,
    door,
    server,
    workspace,
  }) => {
    await insertAutumnBlend(server, workspace)
    const phones = [0, 1, 2, 3].map((n) => phoneOf(workspace.id, n))
    for (const [n, phone] of phones.entries())
      await call('crm_upsert_contact', { phone: `+${phone}`, ...(n < 2 ? { name: `Ada ${n}` } : {}) })
    const input = { filter: { phoneNumber: { startsWith: '1555' } }, template: TEMPLATE }
    const rehearsed = (await call('messaging_send_bulk', { ...input, dry_run: true }, { plan: 'show' })).body
    assert.deepEqual(
      [rehearsed.matched, rehearsed.recipients, rehearsed.left_out, rehearsed.countries],
      [4, 4, [], [{ country: 'US', count: 4 }]],
    )
    assert.deepEqual(rehearsed.values, [{ variable: 'body[0]', missing: 2, fallback: 'there' }])
    assert.equal(rehearsed.text, 'Hello [name, or "there"], the autumn blend arrives on Friday.')
    assert.deepEqual(rehearsed.parts, [{ part: 'Footer', text: 'Reply STOP to stop' }])
    assert.deepEqual(
      rehearsed.previews.map(({ text }: { text: string }) => text.split(',')[0]),
      ['Hello Ada 0', 'Hello Ada 1', 'Hello there', 'Hello there'],
    )
    assert.equal((await call('jobs_list')).body.data.length, 0)
    const planned = { confirm: 'send', plan: rehearsed.plan.token }
    const sent = await call('messaging_send_bulk', input, planned)
    if (!door.confirms) return assert.equal(sent.status, 428, sent.text)
    const { job, broadcast, recipients } = sent.body
    assert.deepEqual(
      [recipients, job.state, job.total, broadcast.status, broadcast.totals.recipients, broadcast.job_id],
      [4, 'running', 4, 'running', 4, job.id],
      sent.text,
    )
    const again = await call('messaging_send_bulk', input, planned)
    assert.deepEqual([again.status, again.body.reason], [409, 'plan_unknown'])
    await runSends(server)
    await server.settle()
    const done = (await call('jobs_get', { job_id: job.id })).body
    assert.deepEqual([done.state, done.done, done.changed, done.failed], ['done', 4, 4, 0])
    const after = (await call('messaging_get_broadcast', { broadcast_id: broadcast.id })).body
    assert.deepEqual([after.status, after.totals.sent, after.totals.failed], ['completed', 4, 0])
    const { data } = (await call('messaging_list_broadcast_recipients', { broadcast_id: broadcast.id })).body
    assert.deepEqual(
      data.map((one: any) => [
        one.contact.phone,
        ['sent', 'delivered'].includes(one.message_status),
        one.error,
      ]),
      phones.map((phone) => [phone, true, null]),
    )
    const undo = await call('jobs_undo', { job_id: job.id })
    assert.deepEqual([undo.status, undo.body.reason], [409, 'not_undoable'])
  })

  test('is never for everybody by mistake, and fits the template', async ({ call, server, workspace }) => {
    await insertAutumnBlend(server, workspace)
    const refuse = async (input: Record<string, unknown>) => {
      const target = 'contact_ids' in input || 'filter' in input ? {} : { contact_ids: ['1'] }
      const { status, body } = await call('messaging_send_bulk', {
        template: TEMPLATE,
        ...target,
        ...input,
        dry_run: true,
      })
      return [status, body.errors?.[0].pointer ?? body.reason ?? body.code]
    }
    assert.deepEqual(await refuse({ filter: {} }), [400, '#/filter'])
    assert.deepEqual(await refuse({ filter: { name: { contains: 'A' } }, all: true }), [400, '#/all'])
    assert.deepEqual(await refuse({ template: { ...TEMPLATE, body: [{ field: 'name' }] } }), [
      400,
      '#/template/body/1',
    ])
    assert.deepEqual(
      await refuse({ template: { ...TEMPLATE, body: [{ attribute: 'citty' }, { text: 'x' }] } }),
      [400, '#/template/body/0/attribute'],
    )
    const both = { ...TEMPLATE, body: [{ field: 'name', text: 'x' }, { text: 'x' }] }
    assert.deepEqual(await refuse({ template: both }), [400, '#/template/body/0'])
    assert.deepEqual(await refuse({ template: { ...TEMPLATE, name: 'none' } }), [404, 'not_found'])
    assert.deepEqual(await refuse({ hours: { from: '20:00', to: '09:00' } }), [400, '#/hours/to'])
    const hours = { from: '9:00', to: '20:00' }
    const { text } = await call('messaging_send_bulk', { contact_ids: ['1'], template: TEMPLATE, hours })
    assert.match(text, /must be HH:MM, such as 09:00/)
  })
})

everyDatabase('A template to many contacts', (server) => {
  it('leaves out who declined, who cannot be reached, doubles and who lacks a value', async () => {
    const { workspace, add, rehearse, send, call, sendAll, sandbox } = await createBulkScene(server())
    const of = (n: number) => `+${phoneOf(workspace.id, n)}`
    const keep = await add({ phone: of(1), name: 'Keep' })
    await add({ phone: of(2), name: 'Dnd', dnd: true })
    // What such a contact lacks is nobody's loss.
    await add({ phone: of(6), dnd: true })
    const withdrawn = await add({ phone: of(3), name: 'Withdrawn' })
    await call('crm_record_consent', { contact_id: withdrawn, state: 'withdrawn', source: 'staff' })
    await add({ phone: of(4) })
    const { db } = server()
    const insert = (fields: object) =>
      db
        .insertInto('contacts')
        .values({
          workspace_id: workspace.id,
          created_at: '2026-10-01',
          updated_at: '2026-10-01',
          ...fields,
        } as never)
        .execute()
    await insert({ name: 'No phone' })
    // Three contacts of one person, through the second; and one whose double declined.
    await insert({ name: 'One', chatapp_user_id: 'US.1' })
    await insert({ name: 'One too', chatapp_user_id: 'US.1', phone: phoneOf(workspace.id, 5) })
    await insert({ name: 'Other', chatapp_user_id: 'US.2' })
    await insert({ name: 'Other too', chatapp_user_id: 'US.2', dnd: true })
    // An id that is a number is that of the line, in any spelling.
    await insert({ name: 'Keep too', chatapp_user_id: phoneOf(workspace.id, 1) })
    const template = { ...TEMPLATE, body: [{ field: 'name' }, { text: 'Friday' }] }
    const rehearsed = await rehearse({ template })
    const counts = Object.fromEntries(rehearsed.left_out.map((one: any) => [one.reason, one.count]))
    assert.deepEqual([rehearsed.matched, rehearsed.recipients], [11, 2])
    assert.deepEqual(counts, {
      do_not_disturb: 4,
      consent_withdrawn: 1,
      unreachable: 1,
      missing_value: 1,
      double: 2,
    })
    assert.deepEqual(rehearsed.values, [{ variable: 'body[0]', missing: 1, fallback: null }])
    const { broadcastId } = await sendAll({ template })
    const { data } = (await call('messaging_list_broadcast_recipients', { broadcast_id: broadcastId })).body
    assert.deepEqual([data[0].contact.id, data.length], [keep, 2])
    assert.equal((await sandbox.sent()).length, 2)
    const nobody = await send({ contact_ids: [withdrawn], filter: undefined, all: undefined })
    assert.deepEqual([nobody.status, nobody.body.reason], [409, 'no_recipients'], nobody.text)
    const fewer = await send({ max_recipients: 1 })
    assert.deepEqual([fewer.status, fewer.body.reason], [409, 'too_many_recipients'])
  })

  it('has values of custom fields as they are shown, on one line, by name too', async () => {
    const { workspace, add, rehearse, run, sendAll, sandbox } = await createBulkScene(server(), [
      {
        name: 'city_news',
        components: [
          { type: 'HEADER', format: 'TEXT', text: 'For {{1}}' },
          { type: 'BODY', text: 'News from {{1}} on {{2}}.' },
          { type: 'BUTTONS', buttons: [{ type: 'URL', text: 'Read', url: 'https://example.com/{{1}}' }] },
        ],
      },
    ])
    await run('crm_create_custom_field', { key: 'city', label: 'City', type: 'text' })
    const options = [{ value: 'a', label: 'Monday' }]
    await run('crm_create_custom_field', { key: 'day', label: 'Day', type: 'select', options })
    await add({ phone: `+${phoneOf(workspace.id, 1)}`, attributes: { city: 'New\n York', day: 'a' } })
    await add({ phone: `+${phoneOf(workspace.id, 2)}`, name: 'Ada', attributes: { day: 'a' } })
    const template = {
      name: 'city_news',
      language: 'en_US',
      header: { text: { field: 'name', fallback: 'you' } },
      variables: { 1: { attribute: 'city', fallback: 'your city' }, 2: { attribute: 'day' } },
      buttons: [{ index: 0, text: { text: 'news' } }],
    }
    const rehearsed = await rehearse({ template })
    assert.deepEqual(
      rehearsed.previews.map(({ text }: { text: string }) => text),
      ['News from New York on Monday.', 'News from your city on Monday.'],
    )
    assert.deepEqual(
      rehearsed.values.map((one: any) => [one.variable, one.missing, one.fallback]),
      [
        ['header.text', 1, 'you'],
        ['variables.1', 1, 'your city'],
        ['variables.2', 0, null],
      ],
    )
    assert.ok(rehearsed.parts.some(({ text }: { text: string }) => text === 'For [name, or "you"]'))
    const { jobId } = await sendAll({ template })
    assert.equal((await run('jobs_get', { job_id: jobId })).problem, null)
    const sent = (await sandbox.sent()) as any[]
    assert.deepEqual(
      sent
        .map((one) => one.template.components.find((c: any) => c.type === 'header').parameters[0].text)
        .toSorted(),
      ['Ada', 'you'],
    )
  })

  it('leaves out whose values are too long, also when they became so, as no error of the provider', async () => {
    const { workspace, add, rehearse, send, run, sandbox } = await createBulkScene(server())
    await run('crm_create_custom_field', { key: 'notes', label: 'Notes', type: 'text' })
    const ids: string[] = []
    for (let n = 0; n < 26; n++)
      ids.push(await add({ phone: `+${phoneOf(workspace.id, n)}`, attributes: { notes: 'short' } }))
    const change = (which: string[]) =>
      run('crm_update_contacts', { contact_ids: which, attributes: { notes: 'L'.repeat(1020) } })
    await change(ids.slice(0, 2))
    const template = { ...TEMPLATE, body: [{ attribute: 'notes' }, { text: 'Friday' }] }
    const rehearsed = await rehearse({ template })
    assert.deepEqual(
      [rehearsed.recipients, rehearsed.left_out],
      [24, [{ reason: 'values_do_not_fit', count: 2 }]],
    )
    // The provider puts it off, so that values change before anybody gets a message.
    await sandbox.fault({ code: 130429, times: 24 })
    const { body } = await send({ template })
    assert.deepEqual([body.recipients, body.left_out], [24, rehearsed.left_out])
    await runSends(server())
    await run('jobs_pause', { job_id: body.job.id })
    await change(ids.slice(2, 25))
    await run('jobs_resume', { job_id: body.job.id })
    const job = await sendToAll(server(), 24, async () => {
      await endWaits(server(), workspace.id)
      return await run('jobs_get', { job_id: body.job.id })
    })
    assert.deepEqual([job.state, job.changed, job.failed, job.problem], ['done', 1, 23, null])
    const { data } = await run('messaging_list_broadcast_recipients', {
      broadcast_id: body.broadcast.id,
      message_status: 'failed',
    })
    assert.match(data[0].error, /the provider accepts 1024/)
    const read = { job_id: body.job.id, limit: 20 }
    const first = await run('jobs_list_failures', read)
    const rest = await run('jobs_list_failures', { ...read, cursor: first.next_cursor })
    const failures = [...first.data, ...rest.data]
    assert.deepEqual(
      failures.map(({ id, code }: any) => [id, code]),
      ids.slice(2, 25).map((id) => [id, 'values_do_not_fit']),
    )
    assert.match(failures[0].message, /the provider accepts 1024/)
  })

  it('sends no broadcast of any category to who is set to do not disturb, before or since', async () => {
    const utility = {
      name: 'order_update',
      category: 'UTILITY',
      components: [{ type: 'BODY', text: 'Hello {{1}}, your order is on its way.' }],
    }
    const { workspace, add, rehearse, send, call, run, sandbox } = await createBulkScene(server(), [utility])
    const template = { name: 'order_update', language: 'en_US', body: [{ field: 'name' }] }
    const [dnd, since, ada] = [
      await add({ phone: `+${phoneOf(workspace.id, 0)}`, name: 'Dnd', dnd: true }),
      await add({ phone: `+${phoneOf(workspace.id, 1)}`, name: 'Since' }),
      await add({ phone: `+${phoneOf(workspace.id, 2)}`, name: 'Ada' }),
    ]
    // That is about marketing alone.
    await run('crm_record_consent', { contact_id: ada, state: 'withdrawn', source: 'staff' })
    const { recipients, left_out: leftOut } = await rehearse({ template })
    assert.deepEqual([recipients, leftOut], [2, [{ reason: 'do_not_disturb', count: 1 }]])
    const { body } = await send({ template })
    await call('jobs_pause', { job_id: body.job.id })
    await call('crm_update_contact', { contact_id: since, dnd: true })
    await call('jobs_resume', { job_id: body.job.id })
    await runSends(server())
    await server().settle()
    assert.deepEqual(
      (await sandbox.sent()).map(({ to }) => to),
      [phoneOf(workspace.id, 2)],
    )
    const { data } = await run('jobs_list_failures', { job_id: body.job.id })
    assert.deepEqual(
      data.map(({ id, code }: any) => [id, code]),
      [[since, 'do_not_disturb']],
    )
    // One message about something of one's own is no broadcast.
    const values = { ...template, body: ['Dnd'] }
    const own = await call(
      'messaging_send_template',
      { contact_id: dnd, template: values },
      { confirm: 'send' },
    )
    assert.equal(own.status, 201, own.text)
  })

  it('writes once to a person whose contacts are merged while it runs', async () => {
    const { workspace, add, send, call, run, sandbox } = await createBulkScene(server())
    const { db } = server()
    const insert = async (userId: string): Promise<string> =>
      (
        await db
          .insertInto('contacts')
          .values({
            workspace_id: workspace.id,
            name: 'By id',
            chatapp_user_id: userId,
            created_at: '2026-10-01',
            updated_at: '2026-10-01',
          } as never)
          .returning('id')
          .executeTakeFirstOrThrow()
      ).id
    const written = await add({ phone: `+${phoneOf(workspace.id, 1)}`, name: 'Ada' })
    // A recipient, and a contact through which the one written to comes to it.
    const [kept, between] = [await insert('US.11'), await insert('US.12')]
    // The provider puts both off; then one of them longer.
    await sandbox.fault({ code: 130429, times: 2 })
    const { body } = await send({ filter: undefined, all: undefined, contact_ids: [kept, written] })
    await runSends(server())
    const putOff = (until: string | null) =>
      sql`update broadcast_recipients set retry_at = ${until} where contact_id = ${kept}`.execute(db)
    await putOff(new Date(Date.now() + 30 * 60_000).toISOString())
    for (let n = 0; n < 3 && (await sandbox.sent()).length === 0; n++) {
      await endWaits(server(), workspace.id)
      await runSends(server())
    }
    await call('jobs_pause', { job_id: body.job.id })
    const merge = (into: string, from: string) =>
      call('crm_merge_contacts', { contact_id: into, other_contact_id: from }, { confirm: 'delete' })
    assert.equal((await merge(between, written)).status, 200)
    assert.equal((await merge(kept, between)).status, 200)
    await putOff(null)
    await call('jobs_resume', { job_id: body.job.id })
    await endWaits(server(), workspace.id)
    await runSends(server())
    await server().settle()
    assert.equal((await sandbox.sent()).length, 1)
    const { state, changed, failed } = await run('jobs_get', { job_id: body.job.id })
    assert.deepEqual([state, changed, failed], ['done', 1, 1])
    const failures = await run('messaging_list_broadcast_recipients', {
      broadcast_id: body.broadcast.id,
      message_status: 'failed',
    })
    assert.match(failures.data[0].error, /as another contact/)
  })

  it('tells who answered it, and who opted out of it', async () => {
    const { workspace, add, call, run, sendAll, sandbox } = await createBulkScene(server())
    for (let n = 0; n < 3; n++) await add({ phone: `+${phoneOf(workspace.id, n)}`, name: `Ada ${n}` })
    const earlier = await sendAll()
    const { broadcastId } = await sendAll()
    await sandbox.say({ from: `+${phoneOf(workspace.id, 0)}`, text: 'Thank you' })
    await sandbox.say({ from: `+${phoneOf(workspace.id, 1)}`, text: 'STOP' })
    const { totals } = await run('messaging_get_broadcast', { broadcast_id: broadcastId })
    assert.deepEqual([totals.responded, totals.opted_out], [2, 1])
    const { body } = await call('messaging_list_broadcast_recipients', {
      broadcast_id: broadcastId,
      message_status: 'not_responded',
    })
    assert.deepEqual(
      body.data.map((one: any) => one.contact.phone),
      [phoneOf(workspace.id, 2)],
    )
    const before = await run('messaging_get_broadcast', { broadcast_id: earlier.broadcastId })
    assert.deepEqual([before.totals.responded, before.totals.opted_out], [0, 0])
  })

  it('can be cancelled, and is not an error of the provider when it waits for it', async () => {
    const { workspace, add, send, call, sandbox } = await createBulkScene(server())
    for (let n = 0; n < 3; n++) await add({ phone: `+${phoneOf(workspace.id, n)}`, name: `Ada ${n}` })
    const first = (await send()).body
    await call('jobs_cancel', { job_id: first.job.id })
    await runSends(server())
    assert.equal((await sandbox.sent()).length, 0)
    const cancelled = (await call('messaging_get_broadcast', { broadcast_id: first.broadcast.id })).body
    assert.deepEqual([cancelled.status, cancelled.totals.recipients], ['cancelled', 3])
  })
})
