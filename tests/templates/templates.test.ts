import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { Template } from '../../catalog/templates/read.ts'
import type { Actor } from '../../server/core/context.ts'
import { showTemplate } from '../../server/templates/view.ts'
import { createChannel } from '../../storage/admin.ts'
import { insertTemplate, type NewTemplate, type TemplateDetails } from '../../storage/templates.ts'
import { callAs, doAs } from '../calls.ts'
import { everyDatabase, everyDoor } from '../doors.ts'
import { refusal } from '../messaging/sends.ts'
import { makeWorkspace, type TestServer, type TestWorkspace } from '../servers.ts'
import { atProvider, drafts, held, order, plain } from './drafts.ts'

const submit = { confirm: 'submit' }
const archive = { confirm: 'archive' }

everyDoor('A template', (test) => {
  test('is submitted as it was rehearsed, reviewed, changed and archived', async ({
    server,
    workspace,
    call,
    door,
  }) => {
    const sandbox = atProvider(server, workspace)
    const rehearsed = await call('messaging_create_template', { template: order, dry_run: true })
    assert.deepEqual(
      [
        rehearsed.status,
        rehearsed.body.submitted,
        rehearsed.body.id,
        rehearsed.body.status,
        rehearsed.body.dry_run,
      ],
      [201, false, null, null, true],
      rehearsed.text,
    )
    assert.equal(rehearsed.body.lint.preview, 'Hello Ada, your order 17 of today is on its way.')
    assert.deepEqual(
      [(await call('messaging_list_templates')).body.total, await sandbox.templates()],
      [0, []],
    )
    const made = await call(
      'messaging_create_template',
      { template: order },
      { ...submit, idempotencyKey: `submit-order-${workspace.id}` },
    )
    if (!door.confirms) return void assert.equal(made.status, 428)
    assert.deepEqual(
      [
        made.status,
        made.body.submitted,
        made.body.status,
        made.body.category,
        made.body.business_account_id,
        made.body.business_account_name,
      ],
      [201, true, 'PENDING', 'UTILITY', `77${workspace.id}`, 'Test account'],
      made.text,
    )
    const [there, ...more] = await sandbox.templates()
    assert.deepEqual(
      [JSON.stringify(there!.components), there!.name, more],
      [JSON.stringify(made.body.payload_preview), order.name, []],
    )
    assert.equal(JSON.stringify(made.body.payload_preview), JSON.stringify(rehearsed.body.payload_preview))
    const template_id = made.body.id as string

    assert.deepEqual(
      refusal(await call('messaging_update_template', { template_id, template: order }, submit)),
      [409, 'conflict', 'in_review'],
    )
    await sandbox.review(template_id, 'reject', 'Say which shop writes.')
    const rejected = (await call('messaging_get_template', { template_id })).body
    assert.deepEqual(
      [rejected.status, rejected.rejection_reason, rejected.variable_count, rejected.body_preview],
      ['REJECTED', 'Say which shop writes.', 2, 'Hello Ada, your order 17 of today is on its way.'],
    )
    assert.equal(rejected.meta_errors.rejection_info.reason, 'Say which shop writes.')

    const changed = {
      ...order,
      body: { ...order.body, text: 'Hello {{1}}, your coffee {{2}} of today is on its way.' },
    }
    const again = await call('messaging_update_template', { template_id, template: changed }, submit)
    assert.deepEqual(
      [again.status, again.body.id, again.body.status, again.body.submitted],
      [200, template_id, 'PENDING', true],
      again.text,
    )
    assert.equal(
      JSON.stringify((await sandbox.templates())[0]!.components),
      JSON.stringify(again.body.payload_preview),
    )
    await sandbox.review(template_id, 'approve')
    const approved = (await call('messaging_get_template', { template_id })).body
    assert.deepEqual(
      [approved.status, approved.rejection_reason, approved.meta_errors, approved.body.text],
      ['APPROVED', null, null, changed.body.text],
    )

    assert.deepEqual(
      (await call('messaging_archive_templates', { ids: [template_id], dry_run: true })).body,
      { archived: [template_id], failed: [], dry_run: true },
    )
    assert.equal((await call('messaging_archive_templates', { ids: [template_id] })).status, 428)
    assert.deepEqual(
      (await call('messaging_archive_templates', { ids: [Number(template_id), template_id] }, archive)).body,
      { archived: [template_id], failed: [] },
    )
    assert.deepEqual(
      [
        (await call('messaging_get_template', { template_id })).body.status,
        (await sandbox.templates())[0]!.status,
      ],
      ['ARCHIVED', 'ARCHIVED'],
    )
    const send = await call('messaging_send_template', {
      phone: '+15550100042',
      template: { name: order.name, language: 'en_US', body: ['Ada', '17'] },
      dry_run: true,
    })
    assert.deepEqual(refusal(send), [409, 'conflict', 'template_not_approved'])
  })

  test('sample is uploaded', async ({ call }) => {
    const sample = {
      file_name: 'sale & more.png',
      content_type: 'image/png',
      data: Buffer.from('89504e470d0a1a0a0000', 'hex').toString('base64'),
    }
    assert.deepEqual((await call('messaging_upload_template_sample', { ...sample, dry_run: true })).body, {
      media_handle: null,
      dry_run: true,
    })
    const uploaded = await call('messaging_upload_template_sample', sample)
    assert.equal(uploaded.status, 201, uploaded.text)
    assert.match(uploaded.body.media_handle, /^4::/)
    assert.deepEqual(
      refusal(await call('messaging_upload_template_sample', { ...sample, content_type: 'application/pdf' })),
      [400, 'invalid_input', '#/data content_mismatch'],
    )
  })
})

everyDatabase('Templates', (server) => {
  const scene = async (fields: Parameters<typeof makeWorkspace>[1] = {}) => {
    const workspace = await makeWorkspace(server(), fields)
    const call = callAs(server(), workspace.owner.key)
    let n = 0
    return {
      workspace,
      call,
      run: doAs(server(), workspace.owner.key),
      sandbox: atProvider(server(), workspace),
      create: (template: object, more: object = {}, options: object = {}) =>
        call(
          'messaging_create_template',
          { template, ...more },
          { ...submit, idempotencyKey: `create-${workspace.id}-${n++}`, ...options },
        ),
      plant: (template: Partial<NewTemplate>) => plant(server(), workspace, template),
      events: async () =>
        (
          await server()
            .db.selectFrom('events')
            .select(['type', 'data'])
            .where('workspace_id', '=', workspace.id)
            .orderBy('id')
            .execute()
        ).map(({ type, data }) => ({
          type,
          ...(data as { template: { id: string; status: string } }).template,
        })),
    }
  }

  it('of every kind are given to the provider as the preview shows, byte for byte', async () => {
    const { create, sandbox } = await scene()
    for (const draft of drafts) {
      const reply = await create(draft)
      assert.equal(reply.status, 201, `${draft.name}: ${reply.text}`)
      const there = (await sandbox.templates()).find(({ name }) => name === draft.name)!
      assert.equal(JSON.stringify(there.components), JSON.stringify(reply.body.payload_preview), draft.name)
      assert.deepEqual(reply.body.payload_preview, held[draft.name], draft.name)
    }
  })

  it('are announced when the provider has them', async () => {
    const { create, run, events, sandbox } = await scene()
    const {
      body: { id },
    } = await create(order)
    assert.deepEqual(await events(), [
      {
        type: 'template.submitted/1',
        id,
        name: order.name,
        language: 'en_US',
        category: 'UTILITY',
        status: 'PENDING',
      },
    ])
    await sandbox.review(id, 'reject')
    await run('messaging_update_template', {
      template_id: id,
      template: { ...order, footer: { text: 'Thanks' } },
    })
    await sandbox.review(id, 'approve')
    await run('messaging_archive_templates', { ids: [id] })
    assert.deepEqual(
      (await events()).map(({ type, status }) => `${type} ${status}`),
      [
        'template.submitted/1 PENDING',
        'template.status_changed/1 REJECTED',
        'template.submitted/1 PENDING',
        'template.status_changed/1 APPROVED',
        'template.archived/1 ARCHIVED',
      ],
    )
    assert.deepEqual((await run('messaging_archive_templates', { ids: [id] })).archived, [id])
    assert.equal((await events()).length, 5)
  })

  it('that break rules are refused, each rule on its place', async () => {
    const { create, call, run } = await scene()
    const bad = {
      ...order,
      body: { text: 'Hello {{1}}{{2}}, we have good news about your order', examples: ['Ada'] },
      buttons: [{ type: 'URL', text: 'See it', url: 'http://shop.example' }],
    }
    const reply = await create(bad)
    assert.deepEqual(
      [reply.status, reply.body.code, reply.body.reason],
      [400, 'invalid_input', 'template_rules'],
    )
    const rules = new Map(reply.body.errors.map((error: { rule: string }) => [error.rule, error]))
    for (const [rule, pointer] of [
      ['body.variables_adjacent', '#/template/body/text'],
      ['body.samples_count', '#/template/body/examples'],
      ['buttons.url_form', '#/template/buttons/0/url'],
    ] as const) {
      const found = rules.get(rule) as { pointer: string; code: string; detail: string; fix: string }
      assert.deepEqual([found.pointer, found.code], [pointer, 'template_rules'])
      assert.ok(found.detail !== '' && found.fix !== '')
    }
    assert.equal((await create(bad, { dry_run: true })).body.reason, 'template_rules')
    const {
      body: { id },
    } = await create(order)
    assert.equal(
      (await call('messaging_update_template', { template_id: id, template: { ...bad } }, submit)).body
        .reason,
      'template_rules',
    )
    assert.equal((await run('messaging_list_templates')).total, 1)
  })

  it('are one for each name and language of an account', async () => {
    const { create, sandbox, events } = await scene()
    assert.equal((await create(order)).status, 201)
    for (const more of [{}, { dry_run: true }])
      assert.deepEqual(refusal(await create(order, more)), [409, 'conflict', 'duplicate'])
    assert.equal((await create({ ...order, language: 'de' })).status, 201)
    assert.deepEqual([(await sandbox.templates()).length, (await events()).length], [2, 2])
  })

  it('that only the provider has are duplicates too, and leave nothing behind', async () => {
    const { workspace, create, run, sandbox, plant: put } = await scene()
    const id = await put({ name: order.name })
    await server().sync(workspace.id)
    await server()
      .db.deleteFrom('templates')
      .where('workspace_id', '=', workspace.id)
      .where('id', '=', id)
      .execute()
    assert.deepEqual(refusal(await create(order)), [409, 'conflict', 'duplicate'])
    assert.deepEqual(
      [(await run('messaging_list_templates')).total, (await sandbox.templates()).length],
      [0, 1],
    )
  })

  it('submitted at the same time under two keys are one', async () => {
    const { create, sandbox } = await scene()
    const replies = await Promise.all([create(order), create(order), create(order)])
    assert.deepEqual(replies.map(({ status }) => status).toSorted(), [201, 409, 409])
    assert.equal((await sandbox.templates()).length, 1)
  })

  it('count against the plan until they are archived', async () => {
    const { create, run, sandbox, workspace } = await scene({ template_limit: 2 })
    const first = await create(order)
    await sandbox.review(first.body.id, 'approve')
    const others = await Promise.all(['b', 'c', 'd'].map((name) => create({ ...plain, name })))
    assert.deepEqual(others.map(({ status }) => status).toSorted(), [201, 403, 403])
    const refused = others.find(({ status }) => status === 403)!
    assert.deepEqual(
      [refused.body.code, refused.body.reason, refused.body.limit],
      ['forbidden', 'template_limit', 2],
    )
    assert.equal((await sandbox.templates()).length, 2, workspace.id)
    await run('messaging_archive_templates', { ids: [first.body.id] })
    assert.equal((await create({ ...plain, name: 'e' })).status, 201)
  })

  it('go to the account that is meant', async () => {
    const { workspace, create, sandbox } = await scene()
    const second = await createChannel(
      server().db,
      workspace.id,
      {
        type: 'chatapp',
        name: 'Branch',
        identifier: '15550100003',
        status: 'connected',
        account_id: `66${workspace.id}`,
        account_name: 'Branch account',
        provider_phone_number_id: `6688${workspace.id}`,
      },
      server().app.now(),
    )
    const web = await createChannel(
      server().db,
      workspace.id,
      { type: 'web', name: 'Web', identifier: 'a.example', status: 'connected' },
      server().app.now(),
    )
    const away = await createChannel(
      server().db,
      workspace.id,
      {
        type: 'chatapp',
        name: 'Away',
        identifier: '15550100004',
        status: 'disconnected',
        account_id: `55${workspace.id}`,
      },
      server().app.now(),
    )
    await server().sync(workspace.id)
    const ambiguous = await create(order)
    assert.deepEqual(refusal(ambiguous), [
      400,
      'invalid_input',
      'account_ambiguous',
      '#/business_account_id ambiguous',
    ])
    assert.deepEqual(ambiguous.body.errors[0].allowed, [`77${workspace.id}`, `66${workspace.id}`])
    for (const [more, status, reason] of [
      [{ business_account_id: '1' }, 404, undefined],
      [{ business_account_id: "x'; --" }, 404, undefined],
      [{ channel_id: '999999999' }, 404, undefined],
      [{ channel_id: 'x' }, 404, undefined],
      [{ channel_id: web.id }, 409, 'channel_not_supported'],
      [{ channel_id: away.id }, 409, 'channel_not_connected'],
      [{ business_account_id: `55${workspace.id}` }, 409, 'channel_not_connected'],
      [{ channel_id: second.id, business_account_id: `77${workspace.id}` }, 400, undefined],
    ] as const) {
      const reply = await create(order, more)
      assert.deepEqual([reply.status, reply.body.reason], [status, reason], reply.text)
    }
    assert.equal(
      (await create(order, { channel_id: '', business_account_id: '', dry_run: true })).body.reason,
      'account_ambiguous',
    )
    assert.equal(
      (await create(order, { channel_id: second.id })).body.business_account_name,
      'Branch account',
    )
    assert.equal((await create(order, { business_account_id: `77${workspace.id}` })).status, 201)
    assert.deepEqual((await sandbox.templates()).map((t) => t.account_id).toSorted(), [
      `66${workspace.id}`,
      `77${workspace.id}`,
    ])
    const { key } = await workspace.staff({ role: 'agent', channel_ids: [second.id] })
    const mine = await callAs(server(), key)('messaging_create_template', {
      template: { ...order, name: 'branch' },
      dry_run: true,
    })
    assert.deepEqual([mine.status, mine.body.business_account_id], [201, `66${workspace.id}`])
    assert.equal(
      (
        await callAs(server(), key)('messaging_create_template', {
          template: order,
          business_account_id: `77${workspace.id}`,
          dry_run: true,
        })
      ).status,
      404,
    )
  })

  it('want a connected account', async () => {
    const { workspace, create, call, run, plant: put } = await scene()
    const id = await put({ provider_id: `9${workspace.id}` })
    await server()
      .db.updateTable('channels')
      .set({ status: 'disconnected' })
      .where('workspace_id', '=', workspace.id)
      .execute()
    assert.deepEqual(refusal(await create(plain)), [409, 'conflict', 'channel_not_connected'])
    assert.deepEqual(
      refusal(await call('messaging_update_template', { template_id: id, template: order }, submit)),
      [409, 'conflict', 'channel_not_connected'],
    )
    assert.deepEqual(
      (await run('messaging_archive_templates', { ids: [id] })).failed.map((f: { code: string }) => f.code),
      ['account_not_connected'],
    )
  })

  it('refused by the provider leave nothing, and what is paused or moved to another category says so', async () => {
    const { create, run, sandbox, events } = await scene()
    await sandbox.fault({ code: 131031 })
    const refused = await create(order)
    assert.deepEqual(
      [refused.status, refused.body.code, refused.body.reason],
      [502, 'upstream_error', 'account_restricted'],
      refused.text,
    )
    assert.deepEqual([(await run('messaging_list_templates')).data, await events()], [[], []])
    const {
      body: { id },
    } = await create(order)
    await sandbox.review(id, 'category', undefined, 'MARKETING')
    assert.equal((await run('messaging_get_template', { template_id: id })).category, 'MARKETING')
    await sandbox.review(id, 'pause')
    assert.equal((await run('messaging_get_template', { template_id: id })).status, 'PAUSED')
  })

  it('whose change the provider refuses are as they were, and keep its words', async () => {
    const { create, call, run, sandbox } = await scene()
    const {
      body: { id },
    } = await create(order)
    await sandbox.review(id, 'approve')
    const before = await run('messaging_get_template', { template_id: id })
    await sandbox.fault({ code: 80008 })
    const later = await call(
      'messaging_update_template',
      { template_id: id, template: { ...order, footer: { text: 'Later' } } },
      submit,
    )
    assert.deepEqual(
      [
        later.status,
        later.body.reason,
        (await run('messaging_get_template', { template_id: id })).meta_errors,
      ],
      [503, 'throttled', null],
    )
    await sandbox.fault({ code: 131031 })
    const refused = await call(
      'messaging_update_template',
      { template_id: id, template: { ...order, footer: { text: 'Thanks' } } },
      submit,
    )
    assert.equal(refused.status, 502, refused.text)
    const {
      meta_errors: errors,
      updated_at: _,
      ...after
    } = await run('messaging_get_template', { template_id: id })
    const { meta_errors: none, updated_at: __, ...was } = before
    assert.deepEqual([after, none, errors.code], [was, null, 131031])
    await run('messaging_update_template', {
      template_id: id,
      template: { ...order, footer: { text: 'Thanks' } },
    })
    assert.deepEqual(
      [
        (await run('messaging_get_template', { template_id: id })).footer,
        (await run('messaging_get_template', { template_id: id })).meta_errors,
      ],
      ['Thanks', null],
    )
  })

  it('keep name and language when changed, and an approved one its category', async () => {
    const { create, call, sandbox } = await scene()
    const {
      body: { id },
    } = await create(order)
    await sandbox.review(id, 'approve')
    const update = (template: object) =>
      call('messaging_update_template', { template_id: id, template }, submit)
    assert.deepEqual(refusal(await update({ ...order, name: 'other' })), [
      400,
      'invalid_input',
      '#/template/name fixed',
    ])
    assert.deepEqual(refusal(await update({ ...order, language: 'en_GB' })), [
      400,
      'invalid_input',
      '#/template/language fixed',
    ])
    assert.deepEqual(refusal(await update({ ...order, category: 'MARKETING' })), [
      409,
      'conflict',
      'category_fixed',
    ])
    await sandbox.review(id, 'reject')
    assert.equal((await update({ ...order, category: 'MARKETING' })).body.category, 'MARKETING')
    assert.equal((await sandbox.templates())[0]!.category, 'MARKETING')
    assert.equal(
      (await call('messaging_update_template', { template_id: '999999999', template: order }, submit)).status,
      404,
    )
  })

  it('are archived one by one, each failure with its code', async () => {
    const { workspace, create, run, call, sandbox, plant: put } = await scene()
    const [approved, pending] = [(await create(order)).body.id, (await create(plain)).body.id] as [
      string,
      string,
    ]
    await sandbox.review(approved, 'approve')
    const elsewhere = await put({
      name: 'elsewhere',
      account_id: `1${workspace.id}`,
      provider_id: `11${workspace.id}`,
    })
    const unsent = await put({ name: 'unsent', status: 'SUBMITTING' })
    const gone = await put({ name: 'gone', status: 'ARCHIVED' })
    const ids = [pending, '999999999', approved, elsewhere, unsent, gone]
    const outcome = {
      archived: [approved, gone],
      failed: [
        {
          id: pending,
          name: plain.name,
          code: 'refused_by_whatsapp',
          reason:
            'The provider refused to archive the template; it archives approved and rejected ones only.',
        },
        { id: '999999999', code: 'not_found', reason: 'The template does not exist in this workspace.' },
        {
          id: elsewhere,
          name: 'elsewhere',
          code: 'account_not_connected',
          reason: "No channel of the template's business account is connected.",
        },
        {
          id: unsent,
          name: 'unsent',
          code: 'not_submitted',
          reason: 'The template was never submitted to the provider.',
        },
      ],
    }
    assert.deepEqual(await run('messaging_archive_templates', { ids, dry_run: true }), {
      ...outcome,
      dry_run: true,
    })
    assert.equal((await run('messaging_get_template', { template_id: approved })).status, 'APPROVED')
    assert.deepEqual(await run('messaging_archive_templates', { ids }), outcome)
    assert.equal((await run('messaging_get_template', { template_id: approved })).status, 'ARCHIVED')
    assert.deepEqual(
      refusal(await call('messaging_update_template', { template_id: approved, template: order }, submit)),
      [409, 'conflict', 'archived'],
    )
  })

  it('archived whose answer was lost, or by another call, count as archived', async () => {
    const { workspace, create, call, sandbox, events } = await scene()
    const {
      body: { id },
    } = await create(order)
    await sandbox.review(id, 'approve')
    await sandbox.fault({ drop_answer: true })
    const lost = () =>
      call(
        'messaging_archive_templates',
        { ids: [id] },
        { ...archive, idempotencyKey: `archive-${workspace.id}` },
      )
    assert.equal((await lost()).status, 504)
    assert.deepEqual((await lost()).body, { archived: [id], failed: [] })
    assert.equal((await events()).filter(({ type }) => type === 'template.archived/1').length, 1)
    await server()
      .db.updateTable('templates')
      .set({ status: 'APPROVED' })
      .where('workspace_id', '=', workspace.id)
      .where('id', '=', id)
      .execute()
    assert.deepEqual((await call('messaging_archive_templates', { ids: [id] }, archive)).body, {
      archived: [id],
      failed: [],
    })
  })

  it('come back from the archive as they went', async () => {
    const { workspace, create, run, sandbox } = await scene()
    const [approved, rejected] = [(await create(order)).body.id, (await create(plain)).body.id] as [
      string,
      string,
    ]
    await sandbox.review(approved, 'approve')
    await sandbox.review(rejected, 'reject', 'Too plain.')
    await run('messaging_archive_templates', { ids: [approved, rejected] })
    await server().settle()
    const shown = async (id: string) => {
      const { status, rejection_reason: reason } = await run('messaging_get_template', { template_id: id })
      return [status, reason]
    }
    assert.deepEqual(
      [await shown(approved), await shown(rejected)],
      [
        ['ARCHIVED', null],
        ['ARCHIVED', null],
      ],
    )
    const held = (await sandbox.templates()).map(({ id }) => id as string)
    // Changes within one second count as they arrive.
    await server().app.provider.unarchiveTemplates(`77${workspace.id}`, held, new AbortController().signal)
    await server().settle()
    assert.deepEqual(
      [await shown(approved), await shown(rejected)],
      [
        ['APPROVED', null],
        ['REJECTED', 'Too plain.'],
      ],
    )
  })

  it('are listed by name, searched in name and text, and filtered', async () => {
    const { run, plant: put } = await scene()
    const body = (text: string) => ({
      components: [
        { type: 'HEADER', format: 'TEXT', text: 'wichtig' },
        { type: 'BODY', text },
      ],
    })
    await put({
      name: 'c_order',
      ...body('Straße 50% off'),
      language: 'de',
      category: 'MARKETING',
      status: 'REJECTED',
    })
    await put({ name: 'a_order', ...body('ΣΊΣΥΦΟΣ'), language: 'el' })
    await put({ name: 'b_order', ...body('Hello'), language: 'en_US' })
    await put({ name: 'b_order', ...body('Hallo'), language: 'de' })
    const names = async (input: object) =>
      (await run('messaging_list_templates', { ...input })).data.map(
        (t: { name: string; language: string }) => `${t.name} ${t.language}`,
      )
    assert.deepEqual(await names({}), ['a_order el', 'b_order en_US', 'b_order de', 'c_order de'])
    for (const [input, count] of [
      [{ search: 'ORDER' }, 4],
      [{ search: 'STRASSE' }, 1],
      [{ search: 'σίσυφος' }, 1],
      [{ search: '%' }, 1],
      [{ search: '_' }, 4],
      [{ search: 'wichtig' }, 0],
      [{ status: 'rejected' }, 1],
      [{ category: 'Marketing' }, 1],
      [{ language: 'DE' }, 2],
      [{ language: 'en-us' }, 1],
      [{ language: 'en' }, 0],
      [{ language: 'de', search: 'hallo', status: 'APPROVED' }, 1],
      [{ status: "x'; --", search: '\\' }, 0],
    ] as const)
      assert.equal((await run('messaging_list_templates', input)).total, count, JSON.stringify(input))
    const first = await run('messaging_list_templates', { search: 'order', limit: 3 })
    const second = await run('messaging_list_templates', {
      search: 'order',
      limit: 3,
      cursor: first.next_cursor,
    })
    assert.deepEqual(
      [first.total, first.data.length, second.total, second.data[0].name, second.next_cursor],
      [4, 3, null, 'c_order', null],
    )
    assert.deepEqual(await run('messaging_get_template', { template_id: second.data[0].id }), second.data[0])
  })

  it('show all their parts', async () => {
    const { run, create } = await scene()
    for (const draft of drafts) assert.equal((await create(draft)).status, 201)
    const { data } = await run('messaging_list_templates')
    const shown = (name: string) => data.find((t: { name: string }) => t.name === name)
    const offer = shown('spring_offer')
    assert.deepEqual(offer.limited_time_offer, { text: 'Ends soon', has_expiration: true })
    assert.deepEqual(
      offer.buttons.map(
        (b: {
          type: string
          coupon_code: string | null
          dynamic_url: boolean
          url_example: string | null
        }) => [b.type, b.coupon_code, b.dynamic_url, b.url_example],
      ),
      [
        ['COPY_CODE', 'SPRING25', false, null],
        ['URL', null, true, 'https://shop.example.com/sale'],
      ],
    )
    assert.deepEqual(offer.header, {
      format: 'IMAGE',
      text: null,
      variables: [{ index: 1, sample: null, media_sample: '4::aW1hZ2U' }],
    })
    assert.deepEqual(shown('titled').header, {
      format: 'TEXT',
      text: 'For {{1}}',
      variables: [{ index: 1, sample: 'Ada', media_sample: null }],
    })
    assert.deepEqual(
      [shown('titled').footer, shown('titled').buttons.map((b: { type: string }) => b.type)],
      ['Thanks', ['QUICK_REPLY', 'PHONE_NUMBER', 'VOICE_CALL', 'FLOW']],
    )
    assert.deepEqual(
      [
        shown('login_code').variable_count,
        shown('login_code').body.text,
        shown('login_code').buttons[0].type,
      ],
      [1, null, 'OTP'],
    )
    assert.deepEqual(
      [shown('cards').carousel_cards, shown('cards').buttons, shown('cards').header],
      [2, [], null],
    )
  })

  it('want samples of a bearable size', async () => {
    const { call } = await scene()
    const upload = (content_type: string, bytes: number, start: string) => {
      const data = Buffer.alloc(bytes)
      data.write(start, 0, 'latin1')
      return call('messaging_upload_template_sample', {
        file_name: 'a',
        content_type,
        data: data.toString('base64'),
      })
    }
    const MiB = 1024 * 1024
    assert.deepEqual(refusal(await upload('image/jpeg', 5 * MiB + 1, '\xff\xd8\xff')), [
      400,
      'invalid_input',
      '#/data too_large',
    ])
    assert.equal((await upload('image/jpeg', 5 * MiB, '\xff\xd8\xff')).status, 201)
    assert.deepEqual(refusal(await upload('application/pdf', 16 * MiB + 1, '%PDF-1.7')), [
      400,
      'invalid_input',
      '#/data too_large',
    ])
    assert.equal((await upload('video/mp4', 5 * MiB + 1, '\0\0\0\x18ftypmp42')).status, 201)
    assert.equal((await upload('video/mp4', 9, '\xff\xd8\xff')).status, 400)
  })
})

const plant = async (
  server: TestServer,
  workspace: TestWorkspace,
  template: Partial<NewTemplate>,
): Promise<string> =>
  await insertTemplate(
    server.db,
    workspace.id,
    {
      account_id: `77${workspace.id}`,
      name: order.name,
      language: 'en_US',
      category: 'UTILITY',
      status: 'APPROVED',
      components: [{ type: 'BODY', text: 'Hello' }],
      ...template,
    },
    server.app.now(),
  )

describe('Whatever components the provider holds', () => {
  const types = fc.constantFrom<unknown>(
    'HEADER',
    'body',
    'BODY',
    'FOOTER',
    'BUTTONS',
    'CAROUSEL',
    'LIMITED_TIME_OFFER',
    'NEW_THING',
    null,
    7,
  )
  const anything = fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.jsonValue({ maxDepth: 3 }),
    fc.constantFrom<unknown>('{{1}} and {{name}}', [['Ada']], ['x'], 'https://a.example/{{1}}'),
  )
  const members = [
    'format',
    'text',
    'example',
    'buttons',
    'cards',
    'limited_time_offer',
    'url',
    'phone_number',
    'flow_id',
    'header_text',
    'header_handle',
    'body_text',
    'body_text_named_params',
    'components',
  ]
  const part = fc
    .tuple(
      types,
      fc.dictionary(
        fc.constantFrom(...members),
        fc.oneof(
          anything,
          fc.array(
            fc
              .tuple(types, fc.dictionary(fc.constantFrom(...members), anything))
              .map(([type, rest]) => ({ ...rest, type })),
            { maxLength: 3 },
          ),
        ),
        { maxKeys: 6 },
      ),
    )
    .map(([type, rest]) => ({ ...rest, type }))

  it('is shown in the shape of a template', () => {
    const row: TemplateDetails = {
      id: '1',
      account_id: null,
      account_name: null,
      provider_id: null,
      name: 'x',
      language: 'en',
      category: null,
      sub_category: null,
      status: 'NEW',
      rejection_reason: null,
      meta_errors: null,
      archived_at: null,
      created_at: '2026-10-01T00:00:00.000Z',
      updated_at: '2026-10-01T00:00:00.000Z',
      components: null,
    }
    for (const hidePhoneNumbers of [true, false]) {
      const actor = { staff: { role: 'agent', hidePhoneNumbers } } as Actor
      fc.assert(
        fc.property(
          fc.oneof(fc.array(part, { maxLength: 6 }), fc.jsonValue()),
          fc.constantFrom(null, 'AUTHENTICATION', 'NEW'),
          fc.jsonValue(),
          (components, category, meta_errors) => {
            Template.strict().parse(showTemplate(actor, { ...row, components, category, meta_errors }))
          },
        ),
        { numRuns: 1000 },
      )
    }
  })
})
