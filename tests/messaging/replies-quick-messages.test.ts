import assert from 'node:assert/strict'
import { it } from 'node:test'
import { callAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { summarizeReply } from './fixtures.ts'
import { createTeamWithMembers, insertQuickMessageRow } from './quick-messages.ts'
import { createReplyScene } from './replies.ts'

everyDatabase('Replies with quick messages', (server) => {
  const createScene = () => createReplyScene(server())

  it('placeholders are filled for the contact and the staff member', async () => {
    const { workspace, reply, contactId, run, sandbox, phone } = await createScene()
    const owner = workspace.owner.staffId
    await run('crm_create_custom_field', {
      key: 'plan',
      label: 'Plan',
      type: 'select',
      options: [{ label: 'Gold plan', value: 'gold' }],
    })
    await run('crm_update_contact', { contact_id: contactId, attributes: { plan: 'gold' } })
    const textId = await insertQuickMessageRow(server(), workspace.id, {
      owner_staff_id: owner,
      text: 'Hi {{contact.name}}, {{ staff.name }} here: {{contact.plan}}, +{{contact.phone}}.',
    })
    await reply({ quick_message_id: textId })
    assert.deepEqual((await sandbox.sent(phone)).at(-1)!['text'], {
      body: `Hi Ada, Owner here: Gold plan, +${phone}.`,
      preview_url: false,
    })
    const documentId = await insertQuickMessageRow(server(), workspace.id, {
      owner_staff_id: owner,
      type: 'DOCUMENT',
      text: 'For {{contact.name}}',
      media_url: 'https://files.example.com/a',
      file_name: 'a.pdf',
    })
    assert.equal((await reply({ quick_message_id: documentId })).body.message.text, 'For Ada')
    assert.deepEqual((await sandbox.sent(phone)).at(-1)!['document'], {
      link: 'https://files.example.com/a',
      caption: 'For Ada',
      filename: 'a.pdf',
    })
    // Of a quick message that was a document once.
    const imageId = await insertQuickMessageRow(server(), workspace.id, {
      owner_staff_id: owner,
      type: 'IMAGE',
      media_url: 'https://files.example.com/a',
      file_name: 'a.pdf',
    })
    await reply({ quick_message_id: imageId })
    assert.deepEqual((await sandbox.sent(phone)).at(-1)!['image'], { link: 'https://files.example.com/a' })
  })

  it('a quick message that cannot be sent as a reply is rejected with the reason', async () => {
    const { workspace, reply } = await createScene()
    const owner = workspace.owner.staffId
    for (const [fields, expected] of [
      [
        { text: 'Hi {{contact.shoe_size}}' },
        [400, 'invalid_input', '#/quick_message_id unknown_placeholder'],
      ],
      [{ text: 'Hi {{contact.email}}' }, [409, 'conflict', 'placeholder_empty']],
      [{ text: 'x'.repeat(4097) }, [400, 'invalid_input', '#/quick_message_id too_long']],
      [
        { type: 'IMAGE', media_url: 'https://a.example/', text: 'x'.repeat(1025) },
        [400, 'invalid_input', '#/quick_message_id too_long'],
      ],
      [{ text: ' ' }, [409, 'conflict', 'quick_message_incomplete']],
      [{ type: 'VIDEO', text: 'x' }, [409, 'conflict', 'quick_message_incomplete']],
      [{ type: 'TEMPLATE', template_name: 'offer' }, [409, 'conflict', 'quick_message_is_template']],
      [{ type: 'INTERACTIVE', text: 'x' }, [409, 'conflict', 'quick_message_not_supported']],
    ] as const)
      assert.deepEqual(
        summarizeReply(
          await reply({
            quick_message_id: await insertQuickMessageRow(server(), workspace.id, {
              owner_staff_id: owner,
              ...fields,
            }),
            dry_run: true,
          }),
        ),
        expected,
        JSON.stringify(fields),
      )
  })

  it('agents: no hidden phone numbers and no manager-only fields', async () => {
    const { workspace, id, contactId, run } = await createScene()
    const owner = workspace.owner.staffId
    await run('crm_create_custom_field', {
      key: 'secret',
      label: 'Secret',
      type: 'text',
      visibility: 'manager_only',
    })
    await run('crm_update_contact', { contact_id: contactId, attributes: { secret: 'x' } })
    const agent = await workspace.staff({ hide_phone_numbers: true })
    const replyAsAgent = async (text: string) =>
      summarizeReply(
        await callAs(server(), agent.key)('messaging_send_reply', {
          conversation_id: id,
          quick_message_id: await insertQuickMessageRow(server(), workspace.id, {
            owner_staff_id: owner,
            text,
          }),
          dry_run: true,
        }),
      )
    assert.deepEqual(await replyAsAgent('Hi {{contact.name}}, +{{contact.phone}}.'), [
      403,
      'forbidden',
      'phone_hidden',
    ])
    assert.deepEqual(await replyAsAgent('{{contact.secret}}'), [
      400,
      'invalid_input',
      '#/quick_message_id unknown_placeholder',
    ])
  })

  it('what is hidden is refused, then what is missing, whatever else the text has', async () => {
    const { workspace, id, contactId, run, phone } = await createScene()
    const owner = workspace.owner
    for (const [key, type] of [
      ['mobile', 'phone'],
      ['plan', 'text'],
    ])
      await run('crm_create_custom_field', { key, label: key, type })
    const agent = await workspace.staff({ name: 'Bea', hide_phone_numbers: true })
    const named = ['contact.name', 'contact.phone', 'contact.mobile', 'contact.plan', 'staff.name']
    const texts = await Promise.all(
      named.flatMap((first, n) =>
        named.slice(n).map(async (second) => {
          const text = `{{ ${first} }} and {{${second}}}`
          const quickId = await insertQuickMessageRow(server(), workspace.id, {
            owner_staff_id: owner.staffId,
            text,
          })
          return { names: [first, second], quickId }
        }),
      ),
    )
    const contacts = [
      { name: 'Ada', attributes: { mobile: '+1 555 010 7777', plan: 'Gold' } },
      { name: 'Ada +1 555 010 7777', attributes: { mobile: null, plan: 'Gold' } },
      { name: 'Ada', attributes: { mobile: '+1 555 010 7777', plan: null } },
    ]
    for (const contact of contacts) {
      await run('crm_update_contact', { contact_id: contactId, ...contact })
      for (const reader of [owner, agent]) {
        const call = callAs(server(), reader.key)
        const values = new Map<string, string | undefined>([
          ['contact.name', contact.name],
          ['contact.phone', phone],
          ['contact.mobile', contact.attributes.mobile?.replaceAll(/\D/g, '')],
          ['contact.plan', contact.attributes.plan ?? undefined],
          ['staff.name', reader === agent ? 'Bea' : 'Owner'],
        ])
        const hidden = [
          'contact.phone',
          'contact.mobile',
          ...(contact.name === 'Ada' ? [] : ['contact.name']),
        ]
        for (const { names, quickId } of texts) {
          const answer = await call('messaging_send_reply', {
            conversation_id: id,
            quick_message_id: quickId,
            dry_run: true,
          })
          const missing = [...new Set(names)].filter((name) => !values.get(name))
          const isHidden = reader === agent && names.some((name) => hidden.includes(name))
          const [status, found, expected] = isHidden
            ? [403, answer.body.reason, 'phone_hidden']
            : missing.length > 0
              ? [409, answer.body.placeholders, missing]
              : [201, answer.body.message?.text, names.map((name) => values.get(name)).join(' and ')]
          const what = `${names.join()} ${contact.name} ${answer.text}`
          assert.deepEqual([answer.status, found], [status, expected], what)
          if (isHidden) assert.ok(!answer.text.includes('5550107777') && !answer.text.includes(phone), what)
        }
      }
    }
  })

  it('quick messages of the company, of own teams and own private ones can be sent', async () => {
    const { workspace, id } = await createScene()
    const agent = await workspace.staff({})
    const ownTeam = await createTeamWithMembers(server(), workspace.id, 'Own', [agent])
    const otherTeam = await createTeamWithMembers(server(), workspace.id, 'Other')
    const owner = workspace.owner.staffId
    for (const [staffId, fields, status] of [
      [owner, { visibility: 'company' }, 201],
      [owner, { visibility: 'team', team_id: ownTeam }, 201],
      [owner, { visibility: 'team', team_id: otherTeam }, 404],
      [owner, { visibility: 'private' }, 404],
      [agent.staffId, { visibility: 'private' }, 201],
    ] as const) {
      const quickMessageId = await insertQuickMessageRow(server(), workspace.id, {
        owner_staff_id: staffId,
        ...fields,
        text: 'Hi',
      })
      assert.equal(
        (
          await callAs(server(), agent.key)('messaging_send_reply', {
            conversation_id: id,
            quick_message_id: quickMessageId,
            dry_run: true,
          })
        ).status,
        status,
        JSON.stringify(fields),
      )
    }
  })
})
