import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { it } from 'node:test'
import type { OperationName } from '../../catalog/index.ts'
import { doorsOf, everyDatabase } from '../doors.ts'
import { generatePhone } from '../messaging/fixtures.ts'
import type { TestServer } from '../servers.ts'
import { createTemplateDriver, orderDraft } from '../templates/drafts.ts'
import { insertTemplate } from '../templates/insert-template.ts'
import { callConfirming, createAgentScene, markApproved } from './scene.ts'

type Scene = Awaited<ReturnType<typeof createAgentScene>>

/** A call that an agent asks for, what somebody does before it is approved, and what is then said to have changed. */
type Case = {
  what: string
  make: (
    scene: Scene,
    server: TestServer,
  ) => Promise<{
    call: readonly [OperationName, object]
    change: () => Promise<unknown>
    changed: string[]
    /** A line that then tells of it. */
    shown: RegExp
  }>
}

/** Lets a policy ask about everything. */
const askFor = (scene: Scene, ...names: OperationName[]) =>
  scene.setPolicy({ operations: Object.fromEntries(names.map((name) => [name, 'ask' as const])) })

const createEndpoint = async (scene: Scene) => {
  const { body } = await scene.person('webhooks_create_endpoint', {
    url: 'https://hooks.example.com/a',
    event_types: ['contact.created/1'],
  })
  return { endpoint_id: body.endpoint.id as string }
}

const createTag = async (scene: Scene, name: string): Promise<string> => {
  const { body } = await scene.person('crm_upsert_contact', { phone: `+${generatePhone()}`, tags: [name] })
  return body.contact.tags[0].id as string
}

const withdraw = (scene: Scene) =>
  scene.person('crm_record_consent', {
    contact_id: scene.contactId,
    purpose: 'marketing',
    channel: 'all',
    state: 'withdrawn',
    source: 'staff',
  })

const cases: readonly Case[] = [
  {
    what: 'which events an endpoint gets',
    make: async (scene) => {
      const one = await createEndpoint(scene)
      await scene.person('webhooks_disable_endpoint', one)
      return {
        call: ['webhooks_enable_endpoint', one],
        change: () => scene.person('webhooks_set_subscriptions', { ...one, event_types: ['*'] }),
        changed: ['endpoint_subscriptions'],
        shown: /^Events of the endpoint: \*$/m,
      }
    },
  },
  {
    what: 'whether an endpoint is on, and what it is sent',
    make: async (scene) => {
      const one = await createEndpoint(scene)
      await scene.person('webhooks_disable_endpoint', one)
      return {
        call: ['webhooks_set_subscriptions', { ...one, event_types: ['*'] }],
        change: async () => {
          await scene.person('webhooks_enable_endpoint', one)
          await scene.person('webhooks_update_endpoint', { ...one, payload_format: 'data' })
        },
        changed: ['endpoint_format', 'endpoint_status'],
        shown: /^Payload format: data$/m,
      }
    },
  },
  {
    what: 'a template that is archived',
    make: async (scene, server) => {
      const submit = { confirm: 'submit', idempotencyKey: randomUUID() } as const
      const { body } = await scene.person('messaging_create_template', { template: orderDraft }, submit)
      const id = body.id as string
      await createTemplateDriver(server, scene.workspace).review(id, 'reject', 'Say which shop writes.')
      const text = 'Hello {{1}}, your coffee {{2}} of today is on its way.'
      const changed = { ...orderDraft, body: { ...orderDraft.body, text } }
      return {
        call: ['messaging_archive_templates', { ids: [id] }],
        change: () =>
          scene.person(
            'messaging_update_template',
            { template_id: id, template: changed },
            { ...submit, idempotencyKey: randomUUID() },
          ),
        changed: ['template_content', 'template_status'],
        shown: /^Template text: UTILITY, Hello .*coffee/m,
      }
    },
  },
  {
    what: 'a quick message that is deleted',
    make: async (scene) => {
      const { body } = await scene.person('messaging_create_quick_message', {
        code: 'hi',
        text: 'Hi.',
        visibility: 'company',
      })
      const one = { quick_message_id: body.id as string }
      return {
        call: ['messaging_delete_quick_message', one],
        change: () => scene.person('messaging_update_quick_message', { ...one, text: 'What all send now.' }),
        changed: ['quick_message_content'],
        shown: /^Text of the quick message: What all send now\.$/m,
      }
    },
  },
  {
    what: 'who sees a custom field',
    make: async (scene) => {
      const { body } = await scene.person('crm_create_custom_field', {
        key: 'plan',
        label: 'Plan',
        type: 'text',
      })
      const one = { custom_field_id: body.id as string }
      return {
        call: ['crm_delete_custom_field', one],
        change: () => scene.person('crm_update_custom_field', { ...one, visibility: 'manager_only' }),
        changed: ['custom_field_details'],
        shown: /^Type and visibility: text, manager_only$/m,
      }
    },
  },
  {
    what: 'a tag that is named by its id',
    make: async (scene) => {
      await askFor(scene, 'crm_tag_contacts')
      const tagId = await createTag(scene, 'Newsletter')
      return {
        call: ['crm_tag_contacts', { contact_ids: [scene.contactId], tags: [tagId] }],
        change: () => scene.person('crm_rename_tag', { tag_id: tagId, name: 'Legal hold' }),
        changed: ['tags'],
        shown: /^Tag: Legal hold, /m,
      }
    },
  },
  {
    what: 'what a customer has declined since a grant was asked for',
    make: async (scene) => ({
      call: [
        'crm_record_consent',
        {
          contact_id: scene.contactId,
          purpose: 'marketing',
          channel: 'all',
          state: 'granted',
          source: 'staff',
        },
      ],
      change: () => withdraw(scene),
      changed: ['customer_consent'],
      shown: /^Consent withdrawn: marketing \(all\)/m,
    }),
  },
  {
    what: 'a customer who says stop before a reply',
    make: async (scene) => ({
      call: scene.reply('Our offer.'),
      change: () => scene.sandbox.say({ from: `+${scene.phone}`, text: 'STOP' }),
      changed: ['customer_consent'],
      shown: /^Consent withdrawn: marketing \(all\)/m,
    }),
  },
  {
    what: 'whose opt-out is undone, of named contacts',
    make: async (scene) => ({
      call: ['crm_update_contacts', { contact_ids: [scene.contactId], dnd: false }],
      change: () => scene.person('crm_update_contact', { contact_id: scene.contactId, dnd: true }),
      changed: ['opt_outs'],
      shown: /^Of them have declined messages: 1$/m,
    }),
  },
  {
    what: 'whose opt-out is undone, of those that a filter found',
    make: async (scene) => ({
      call: ['crm_update_contacts', { filter: {}, all: true, dnd: false }],
      change: () => withdraw(scene),
      changed: ['opt_outs'],
      shown: /^Of them have declined messages: 1$/m,
    }),
  },
  {
    what: 'out of whom an undone merge takes a contact',
    make: async (scene) => {
      const other = (await scene.person('crm_upsert_contact', { phone: `+${generatePhone()}` })).body.id
      const pair = { contact_id: scene.contactId, other_contact_id: other }
      await scene.person('crm_merge_contacts', pair, { confirm: 'delete' })
      return {
        call: ['crm_undo_contact_merge', { merged_contact_id: other }],
        change: () =>
          scene.person(
            'crm_change_phone',
            { contact_id: scene.contactId, phone: `+${generatePhone()}` },
            { confirm: 'rotate' },
          ),
        changed: ['kept_contact_phone'],
        shown: /^Out of: /m,
      }
    },
  },
  {
    what: 'whose consumer is deleted',
    make: async (scene) => {
      const { data } = (await scene.person('events_list', { limit: 1 })).body
      const one = { consumer: 'warehouse' }
      const acknowledge = () => scene.person('events_ack', { ...one, event_id: data[0].id })
      await acknowledge()
      return {
        call: ['events_delete_consumer', one],
        change: async () => {
          await scene.person('events_delete_consumer', one, { confirm: 'delete' })
          await acknowledge()
        },
        changed: ['consumer'],
        shown: /^consumer: warehouse$/m,
      }
    },
  },
]

everyDatabase('What an approver is shown', (server) => {
  for (const { what, make } of cases)
    it(`is compared: ${what}`, async () => {
      const scene = await createAgentScene(server())
      const { call, change, changed, shown } = await make(scene, server())
      const ask = async (): Promise<string> => {
        const { status, body, text } = await scene.ask(call[0], call[1] as never)
        assert.equal(status, 202, text)
        return body.approval.id as string
      }
      const id = await ask()
      const before = (await scene.person('approvals_get', { approval_id: id })).body.summary_version
      await change()
      for (const version of [undefined, before as string]) {
        const given = version === undefined ? {} : { summary_version: version }
        const { status, body, text } = await scene.person('approvals_approve', { approval_id: id, ...given })
        assert.deepEqual([status, body.reason], [409, 'subject_changed'], text)
        assert.deepEqual(body.changed.toSorted(), changed.toSorted())
      }
      const { summary } = (await scene.person('approvals_get', { approval_id: id })).body
      assert.match(summary.join('\n'), shown)
      await markApproved({ db: server().db, workspace: scene.workspace }, id)
      await scene.work()
      const { outcome } = (await scene.person('approvals_get', { approval_id: id, wait_seconds: 10 })).body
      assert.equal(outcome?.reason, 'subject_changed')
    })
})

everyDatabase('How many have declined messages', (server) => {
  it('is told of those whose opt-out a call undoes, found by a filter too, and of no others', async () => {
    const scene = await createAgentScene(server())
    await scene.person('crm_update_contact', { contact_id: scene.contactId, dnd: true })
    const summarize = async (name: OperationName, input: object): Promise<string[]> =>
      (await scene.person(name, { ...input, dry_run: true }, { plan: 'show' })).body.plan.summary
    const line = 'Of them have declined messages: 1'
    for (const target of [{ contact_ids: [scene.contactId] }, { filter: {}, all: true }])
      assert.ok((await summarize('crm_update_contacts', { ...target, dnd: false })).includes(line))
    const phone = `+${scene.phone}`
    const upserted = await summarize('crm_upsert_contact', { phone, name: 'Ada L.', dnd: false })
    assert.doesNotMatch(upserted.join('\n'), /declined/)
  })
})

everyDatabase('Long records that a person is asked about in a client', (server) => {
  it('fit into the question: a field of many options, many templates of long texts', async () => {
    const scene = await createAgentScene(server())
    const at = { url: server().url, key: scene.workspace.owner.key }
    const options = Array.from({ length: 200 }, (_, n) => ({
      label: `Option ${n} ${'x'.repeat(80)}`,
      value: `o${n}`,
    }))
    const field = await scene.person('crm_create_custom_field', {
      key: 'plan',
      label: 'Plan',
      type: 'select',
      options,
    })
    const ids: string[] = []
    for (let n = 0; n < 20; n++) {
      const components = [{ type: 'BODY', text: `Hello ${n}. ${'Long text. '.repeat(80)}` }]
      const state = { language: 'en_US', category: 'UTILITY', status: 'APPROVED', account_id: null }
      const template = { name: `long_${n}`, components, ...state }
      ids.push(await insertTemplate(server().db, scene.workspace.id, template, server().app.now()))
    }
    for (const [call, confirm, told] of [
      [['crm_delete_custom_field', { custom_field_id: field.body.id }], 'delete', /, and 170 more$/m],
      [['messaging_archive_templates', { ids }], 'archive', /^Template: long_19, /m],
    ] as const) {
      const { code, question } = await callConfirming(at, call, undefined, {
        action: 'accept',
        content: { confirm },
      })
      assert.equal(code, undefined)
      assert.match(question, told)
    }
  })
})

everyDatabase('A long list that an approver is shown', (server) => {
  const createList = async () => {
    const scene = await createAgentScene(server())
    const rows = Array.from({ length: 499 }, () => ({ phone: `+${generatePhone()}` }))
    await scene.person('crm_import_contacts', { rows })
    const ids: string[] = []
    for (let cursor: string | null = null; ;) {
      const { body } = await scene.person('crm_search_contacts', {
        limit: 100,
        sort: { field: 'id', direction: 'asc' },
        ...(cursor === null ? {} : { cursor }),
      } as never)
      ids.push(...body.data.map((one: { id: string }) => one.id))
      cursor = body.next_cursor
      if (cursor === null) break
    }
    assert.equal(ids.length, 500)
    return { ...scene, ids }
  }

  it('is compared to its last contact at every door, and its summary stays short', async () => {
    const scene = await createList()
    const { body } = await scene.ask('crm_delete_contacts', { contact_ids: scene.ids })
    const id = body.approval.id as string
    const { summary, summary_version: version } = (await scene.person('approvals_get', { approval_id: id }))
      .body
    assert.ok(summary.length < 70, String(summary.length))
    assert.ok(version.length < 200, version)
    const last = { contact_id: scene.ids.at(-1)!, phone: `+${generatePhone()}` }
    assert.equal((await scene.person('crm_change_phone', last, { confirm: 'rotate' })).status, 200)
    for (const door of doorsOf(server().url, scene.workspace.owner.key)) {
      const refused = await door.call('approvals_approve', { approval_id: id, summary_version: version })
      assert.deepEqual(
        [refused.body.reason, refused.body.changed],
        ['subject_changed', ['contact_phone']],
        door.name,
      )
    }
    assert.equal((await scene.person('crm_count_contacts', {})).body.count, 500)
  })

  it('of conversations is compared to the customer of each', async () => {
    const scene = await createAgentScene(server())
    await askFor(scene, 'inbox_close_conversations')
    const { body } = await scene.ask('inbox_close_conversations', { conversation_ids: [scene.id] })
    const id = body.approval.id as string
    const kept = (await scene.person('crm_upsert_contact', { phone: `+${generatePhone()}` })).body.id
    const pair = { contact_id: kept, other_contact_id: scene.contactId }
    await scene.person('crm_merge_contacts', pair, { confirm: 'delete' })
    const refused = await scene.person('approvals_approve', { approval_id: id })
    assert.deepEqual(refused.body.changed, ['customer', 'customer_phone'], refused.text)
  })

  it('is asked about again in a client, when its last contact changes meanwhile', async () => {
    const scene = await createList()
    await scene.setPolicy({ approval: 'client' })
    const at = { url: server().url, key: scene.agent.key }
    const change = async () => {
      const last = { contact_id: scene.ids.at(-1)!, phone: `+${generatePhone()}` }
      await scene.person('crm_change_phone', last, { confirm: 'rotate' })
    }
    let isFirst = true
    const { questions } = await callConfirming(
      at,
      ['crm_delete_contacts', { contact_ids: scene.ids }],
      async () => {
        if (isFirst) await change()
        isFirst = false
      },
      { action: 'accept', content: { confirm: 'delete' } },
    )
    assert.equal(questions, 2)
  })
})
