import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { callAs, doAs } from '../calls.ts'
import { databases } from '../databases.ts'
import { everyDoor } from '../doors.ts'
import { DEFAULT_APP_SECRET, type Graph, startGraph } from '../provider/graph.ts'
import { buildWebhookBody, postWebhook, signWebhookBody } from '../provider/webhook-fixture.ts'
import { makeWorkspace, startServer, type TestServer } from '../servers.ts'
import { waitUntil } from '../wait-until.ts'
import { insertTemplate } from './insert-template.ts'
import { createTemplateDriver, orderDraft } from './drafts.ts'

type Row = Record<string, unknown>

const body = (text: string): Row => ({ type: 'BODY', text })

const row = (id: number, name: string, more: Row = {}): Row => ({
  id: String(id),
  name,
  language: 'pt_BR',
  status: 'APPROVED',
  category: 'UTILITY',
  rejected_reason: 'NONE',
  quality_score: { score: 'UNKNOWN' },
  components: [body(`Ola, ${name}`)],
  ...more,
})

const named = row(555_000_003, 'aviso_nomeado', {
  parameter_format: 'NAMED',
  quality_score: { score: 'GREEN', date: 1_700_000_000 },
  components: [
    {
      type: 'HEADER',
      format: 'TEXT',
      text: 'Pedido {{pedido}}',
      example: { header_text_named_params: [{ param_name: 'pedido', example: '42' }] },
    },
    {
      ...body('Oi {{primeiro_nome}}, chega em {{dias}} dias.'),
      example: {
        body_text_named_params: [
          { param_name: 'primeiro_nome', example: 'Ana' },
          { param_name: 'dias', example: '3' },
        ],
      },
    },
  ],
})

/** What an account has that lived before: three pages. */
const lived: Row[] = [
  row(555_000_001, 'promo_antiga'),
  row(555_000_002, 'arquivado', { status: 'ARCHIVED' }),
  named,
  row(555_000_004, 'recusado', { status: 'REJECTED', rejected_reason: 'INVALID_FORMAT' }),
  // Deleted, and made again under the same name.
  row(555_000_005, 'refeito', { status: 'DELETED' }),
  row(555_000_006, 'refeito', { components: [body('De novo')] }),
  row(555_000_007, 'codigo', {
    category: 'AUTHENTICATION',
    components: [
      { ...body('*{{1}}* e o seu codigo.'), add_security_recommendation: false },
      {
        type: 'BUTTONS',
        buttons: [
          {
            type: 'URL',
            text: 'Copiar',
            url: 'https://www.whatsapp.com/otp/code/?otp_type=COPY_CODE&code=otp{{1}}',
            example: ['https://www.whatsapp.com/otp/code/?otp_type=COPY_CODE&code=otp123456'],
          },
        ],
      },
    ],
  }),
]

for (const database of databases)
  describe(`Templates of an account that has lived before (${database})`, () => {
    let graph: Graph
    let server: TestServer
    before(async () => {
      graph = await startGraph()
      server = await startServer(database, { provider: graph.config })
    })
    after(async () => {
      await server.close()
      await graph.close()
    })
    /** Lets the time pass until templates are read; false where nothing is to be. */
    const makeDue = async (workspaceId: string): Promise<boolean> => {
      const { numUpdatedRows } = await server.db
        .updateTable('runs')
        .set({ run_after: '2020-01-01' })
        .where('workspace_id', '=', workspaceId)
        .where('kind', '=', 'template_reads')
        .executeTakeFirst()
      return numUpdatedRows > 0n
    }
    const setUp = async (templates: Row[]) => {
      const workspace = await makeWorkspace({ db: server.db, app: server.app })
      const account = `77${workspace.id}`
      const list = (rows: Row[]) => void graph.templates.set(account, rows)
      list(templates)
      const run = doAs(server, workspace.owner.key)
      const counts = (answer: Row) =>
        ['read', 'created', 'updated', 'unchanged', 'gone'].map((name) => answer[name])
      return {
        workspace,
        account,
        list,
        run,
        sync: async (input: Row = {}) => counts(await run('messaging_sync_templates', input)),
        counts,
        send: (template: Row) =>
          callAs(server, workspace.owner.key)(
            'messaging_send_template',
            { phone: '+16315551234', template: { language: 'pt_BR', ...template } },
            { confirm: 'send' },
          ),
        sent: () =>
          (JSON.parse(graph.calls.findLast(({ path }) => path.endsWith('/messages'))!.body) as Row)[
            'template'
          ],
        stored: async () => {
          const { data } = await run('messaging_list_templates', { limit: 100 })
          return Object.fromEntries(data.map((one: Row) => [one['name'], one])) as Record<string, any>
        },
        events: async () =>
          (
            await server.db
              .selectFrom('events')
              .select('data')
              .where('workspace_id', '=', workspace.id)
              .where('type', '=', 'template.status_changed/1')
              .orderBy('id')
              .execute()
          ).map(({ data }) => {
            const { name, previous_status: was, status } = (data as { template: Row }).template
            return [name, was, status]
          }),
      }
    }

    it('all pages are read, and what was read can be sent: by name, and codes', async () => {
      const { workspace, run, sync, counts, stored, send, sent, events } = await setUp(lived)
      const dry = await run('messaging_sync_templates', { dry_run: true })
      assert.deepEqual(
        dry.changes.map((one: Row) => [one['id'], one['name'], one['change'], one['status']]),
        [
          [null, 'promo_antiga', 'created', 'APPROVED'],
          [null, 'arquivado', 'created', 'ARCHIVED'],
          [null, 'aviso_nomeado', 'created', 'APPROVED'],
          [null, 'recusado', 'created', 'REJECTED'],
          [null, 'refeito', 'created', 'APPROVED'],
          [null, 'codigo', 'created', 'APPROVED'],
        ],
      )
      assert.deepEqual(await stored(), {})
      const call = callAs(server, workspace.owner.key)
      const planned = await call('messaging_sync_templates', { dry_run: true }, { plan: 'show' })
      const done = await call('messaging_sync_templates', {}, { plan: planned.body.plan.token })
      assert.deepEqual([done.status, counts(done.body)], [200, [7, 6, 0, 1, 0]], done.text)
      assert.deepEqual(await sync(), [7, 0, 0, 7, 0])
      const { arquivado, aviso_nomeado: aviso, recusado, refeito } = await stored()
      assert.deepEqual(
        [arquivado.status, recusado.status, recusado.rejection_reason, refeito.body_preview],
        ['ARCHIVED', 'REJECTED', 'INVALID_FORMAT', 'De novo'],
      )
      assert.deepEqual(
        [aviso.parameter_format, aviso.quality_rating, aviso.body_preview],
        ['NAMED', 'GREEN', 'Oi Ana, chega em 3 dias.'],
      )
      assert.deepEqual(await events(), [], 'nothing changed for those who listen')
      const byName = await send({
        name: 'aviso_nomeado',
        header: { text: '17' },
        variables: { dias: '2', primeiro_nome: 'Bia' },
      })
      assert.equal(byName.status, 201, byName.text)
      assert.deepEqual(sent(), {
        name: 'aviso_nomeado',
        language: { code: 'pt_BR' },
        components: [
          { type: 'header', parameters: [{ type: 'text', parameter_name: 'pedido', text: '17' }] },
          {
            type: 'body',
            parameters: [
              { type: 'text', parameter_name: 'primeiro_nome', text: 'Bia' },
              { type: 'text', parameter_name: 'dias', text: '2' },
            ],
          },
        ],
      })
      graph.sentAs.message_status = 'held_for_quality_assessment'
      const code = await send({ name: 'codigo', body: ['123456'] })
      delete graph.sentAs.message_status
      assert.deepEqual(
        [code.status, code.body.message.held, byName.body.message.held],
        [201, 'held_for_quality_assessment', undefined],
        code.text,
      )
      const parameters = [{ type: 'text', text: '123456' }]
      assert.deepEqual((sent() as Row)['components'], [
        { type: 'body', parameters },
        { type: 'button', sub_type: 'url', index: '0', parameters },
      ])
    })

    it('what changed elsewhere is told; what is gone cannot be sent', async () => {
      const { workspace, account, list, sync, stored, events, send } = await setUp(lived.slice(0, 4))
      await sync()
      const submitting = { account_id: account, language: 'pt_BR', category: null, components: [] }
      await insertTemplate(
        server.db,
        workspace.id,
        { ...submitting, name: 'em_envio', status: 'SUBMITTING' },
        server.app.now(),
      )
      list([
        row(555_000_001, 'promo_antiga', { status: 'PAUSED', category: 'MARKETING' }),
        row(555_000_004, 'recusado', { components: [body('Corrigido')] }),
        row(555_000_008, 'em_envio', { status: 'PENDING' }),
      ])
      assert.deepEqual(await sync({ dry_run: true }), [3, 0, 2, 1, 1])
      assert.deepEqual(await events(), [])
      assert.deepEqual(await sync(), [3, 0, 2, 1, 1])
      const now = await stored()
      assert.deepEqual(Object.fromEntries(Object.entries(now).map(([name, { status }]) => [name, status])), {
        // The provider keeps archived ones, whether or not it lists them.
        arquivado: 'ARCHIVED',
        aviso_nomeado: 'DELETED',
        em_envio: 'SUBMITTING',
        promo_antiga: 'PAUSED',
        recusado: 'APPROVED',
      })
      assert.deepEqual(
        [now['promo_antiga'].category, now['recusado'].rejection_reason, now['recusado'].body_preview],
        ['MARKETING', null, 'Corrigido'],
      )
      assert.deepEqual((await events()).toSorted(), [
        ['aviso_nomeado', 'APPROVED', 'DELETED'],
        ['promo_antiga', 'APPROVED', 'PAUSED'],
        ['recusado', 'REJECTED', 'APPROVED'],
      ])
      const refused = await send({ name: 'aviso_nomeado', variables: { dias: '1', primeiro_nome: 'B' } })
      assert.deepEqual([refused.status, refused.body.template_status], [409, 'DELETED'])
    })

    it('what changed here after the account was asked is kept', async () => {
      const { workspace, list, sync, stored } = await setUp(lived.slice(0, 1))
      await sync()
      await server.db
        .updateTable('templates')
        .set({ updated_at: new Date(Date.now() + 60_000).toISOString() })
        .where('workspace_id', '=', workspace.id)
        .execute()
      list([])
      assert.deepEqual(await sync(), [0, 0, 0, 0, 0])
      assert.equal((await stored())['promo_antiga'].status, 'APPROVED')
    })

    it('an account that cannot be read is told, and nothing of it is gone', async () => {
      const { run, sync, stored, counts } = await setUp(lived.slice(0, 1))
      await sync()
      graph.refusals.set('message_templates', { code: 80008, status: 400 })
      const answer = await run('messaging_sync_templates')
      graph.refusals.delete('message_templates')
      assert.deepEqual(counts(answer), [0, 0, 0, 0, 0])
      assert.deepEqual(
        answer.problems.map((one: Row) => [one['code'], one['reason']]),
        [['upstream_unavailable', 'throttled']],
      )
      assert.equal((await stored())['promo_antiga'].status, 'APPROVED')
    })

    it('an update of a template that nobody knows has it read', async () => {
      const { account, stored, send } = await setUp(lived)
      const update = {
        field: 'message_template_status_update',
        value: {
          event: 'APPROVED',
          message_template_id: 555_000_001,
          message_template_name: 'promo_antiga',
          message_template_language: 'pt_BR',
          reason: 'NONE',
        },
      }
      const sentBody = buildWebhookBody(account, update)
      const headers = { 'X-Hub-Signature-256': signWebhookBody(sentBody, DEFAULT_APP_SECRET) }
      assert.equal((await postWebhook(server, sentBody, headers)).status, 200)
      await waitUntil('the template is read', async () => 'promo_antiga' in (await stored()))
      assert.deepEqual(Object.keys(await stored()), ['promo_antiga'])
      assert.equal((await send({ name: 'promo_antiga' })).status, 201)
      await waitUntil('the update is applied', async () => {
        await server.app.jobs.job('provider-updates').runOnce()
        const waiting = await server.db
          .selectFrom('provider_updates')
          .select('id')
          .where('subject', '=', '555000001')
          .where('state', '<>', 'done')
          .execute()
        return waiting.length === 0
      })
    })

    it('each account is read by itself, once it has a channel', async () => {
      const { stored, run, workspace } = await setUp(lived)
      await waitUntil('the account is added', async () => {
        await server.app.jobs.job('provider-health').runOnce()
        return await makeDue(workspace.id)
      })
      await server.app.jobs.job('template-reads').runOnce()
      assert.equal(Object.keys(await stored()).length, 6)
      assert.equal((await run('messaging_sync_templates')).unchanged, 7)
    })

    it('a template that the provider refuses to send because it has none is marked, and looked for', async () => {
      const { workspace, run, sync, stored, send, events } = await setUp(lived.slice(0, 1))
      await sync()
      graph.refusals.set('messages', { code: 132001, status: 404 })
      const refused = await send({ name: 'promo_antiga' })
      graph.refusals.delete('messages')
      assert.deepEqual([refused.status, refused.body.reason], [400, 'template_unavailable'])
      const marked = (await stored())['promo_antiga']
      assert.deepEqual([marked.status, marked.meta_errors.code], ['DELETED', 132001])
      assert.deepEqual((await run('messaging_list_templates', { status: 'deleted' })).total, 1)
      assert.ok(await makeDue(workspace.id))
      await server.app.jobs.job('template-reads').runOnce()
      const found = (await stored())['promo_antiga']
      assert.deepEqual([found.status, found.meta_errors], ['APPROVED', null])
      assert.deepEqual(await events(), [
        ['promo_antiga', 'APPROVED', 'DELETED'],
        ['promo_antiga', 'DELETED', 'APPROVED'],
      ])
    })
  })

everyDoor('Templates: sync', (test) => {
  test('a template that only the provider has is read once', async ({ server, workspace, call }) => {
    const run = callAs(server, workspace.owner.key)
    const created = await run(
      'messaging_create_template',
      { template: orderDraft },
      { confirm: 'submit', idempotencyKey: `sync-all-${workspace.id}` },
    )
    await createTemplateDriver(server, workspace).review(created.body.id, 'approve')
    await server.db.deleteFrom('templates').where('workspace_id', '=', workspace.id).execute()
    const rehearsed = await call('messaging_sync_templates', { dry_run: true })
    assert.deepEqual([rehearsed.status, rehearsed.body.created, rehearsed.body.dry_run], [200, 1, true])
    const { body: first, status, text } = await call('messaging_sync_templates')
    assert.equal(status, 200, text)
    assert.deepEqual([first.read, first.created, first.problems], [1, 1, []])
    assert.deepEqual(
      (await run('messaging_list_templates')).body.data.map((one: Row) => [one['name'], one['status']]),
      [[orderDraft.name, 'APPROVED']],
    )
    assert.equal((await call('messaging_sync_templates')).body.unchanged, 1)
  })
})
