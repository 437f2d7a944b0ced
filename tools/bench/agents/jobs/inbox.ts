import assert from 'node:assert/strict'
import type { Job } from '../job.ts'

const WAIT_TEMPLATE = 'sorry_for_the_wait'

/** The longest waiting customers of the demo workspace, in order. */
const LONGEST = ['Maya Williams', 'Isla Evans-Green', 'Arjun Singh']

export const inboxJobs: readonly Job[] = [
  {
    name: 'who waits longest',
    task: 'Who waits longest for an answer from us, since when, and for what?',
    run: async (agent) => {
      const { data } = await agent.call('inbox_queue', { limit: 1 })
      return { name: data[0].contact.name, since: data[0].waiting_since, text: data[0].messages.at(-1).text }
    },
    check: (answer) =>
      assert.deepEqual(answer, {
        name: LONGEST[0],
        since: '2026-10-24T09:37:31.938Z',
        text: 'Hi! Is my order 10315 on its way?',
      }),
  },
  {
    name: 'what one customer asked',
    task: 'Read me the conversation with Ananya Singh: what does she want?',
    run: async (agent) => {
      const found = await agent.call('inbox_search_conversations', { query: 'Ananya Singh', state: 'open' })
      const { data } = await agent.call('inbox_list_messages', {
        conversation_id: found.data[0].id,
        limit: 5,
      })
      return data
        .filter((message: any) => message.direction === 'inbound')
        .map((message: any) => message.text)
    },
    check: (answer) =>
      assert.ok(answer.includes('Which beans would you take for a moka pot?'), JSON.stringify(answer)),
  },
  {
    name: 'answer the three longest waiting',
    task:
      'Answer the three customers who wait longest: tell them we are sorry, in your own words where we may write, ' +
      `by the template ${WAIT_TEMPLATE} where the window is shut.`,
    run: async (agent) => {
      const { data, templates } = await agent.call('inbox_queue', { limit: 3 })
      const sorry = templates.find(({ example }: any) => example.name === WAIT_TEMPLATE)
      for (const { id, contact, can_reply: canReply } of data) {
        if (canReply)
          await agent.call('messaging_send_reply', {
            conversation_id: id,
            text: `Hello ${contact.name}, we are sorry that you waited. We look into it now.`,
            reason: 'Waits longest.',
          })
        else
          await agent.call('messaging_send_template', {
            contact_id: contact.id,
            template: { ...sorry.example, body: [contact.name] },
            reason: 'Waits longest, and the window is shut.',
          })
      }
      await agent.learn('what became of my requests for approval', 'approvals_list')
      const asked = await agent.call('approvals_list', { limit: 3 })
      assert.deepEqual(
        asked.data.map(({ status }: any) => status),
        ['done', 'done', 'done'],
      )
      return data.map(({ contact }: any) => contact.name)
    },
    check: async (answer, { owner }) => {
      assert.deepEqual(answer, LONGEST)
      for (const name of LONGEST) {
        const { data } = await owner('inbox_search_conversations', { query: name.split(' ')[0]! })
        const last = data.find(({ contact }: any) => contact.name === name).last_message
        assert.equal(last.direction, 'outbound', name)
        assert.ok(last.text.includes(name), last.text)
      }
    },
  },
  {
    name: 'answer where the window is open',
    task: 'Nora Field wrote this morning about her order. It left us on Saturday: tell her, in her language.',
    prepare: async ({ sandbox }) => {
      await sandbox('POST', 'say', {
        from: '+15550100801',
        name: 'Nora Field',
        text: 'Good morning! Where is my order 20711?',
      })
    },
    run: async (agent) => {
      const { data } = await agent.call('inbox_search_conversations', { query: 'Nora Field', limit: 2 })
      assert.equal(data.length, 1)
      assert.ok(data[0].can_reply)
      await agent.act('messaging_send_reply', {
        conversation_id: data[0].id,
        text: 'Good morning Nora, your order 20711 left us on Saturday and should be with you today.',
      })
      return data[0].id
    },
    check: async (answer, { owner }) => {
      const conversation = await owner('inbox_get_conversation', { conversation_id: answer })
      assert.match(conversation.last_message.text, /20711 left us on Saturday/)
      assert.equal(conversation.waiting_since, null)
    },
  },
  {
    name: 'a person says no',
    task: 'Tell Nora Field that her order 20711 costs nothing, since it is late.',
    decision: 'decline',
    run: async (agent) => {
      const { data } = await agent.call('inbox_search_conversations', { query: 'Nora Field', limit: 2 })
      const { approval } = await agent.call('messaging_send_reply', {
        conversation_id: data[0].id,
        text: 'We are sorry that your order is late: it costs you nothing.',
        reason: 'The order is late.',
      })
      const { status, note } = await agent.call('approvals_get', {
        approval_id: approval.id,
        wait_seconds: 30,
      })
      // The person's no is final: it is told, and nothing else is tried.
      return { id: data[0].id, status, note }
    },
    check: async ({ id, ...answer }, { owner }) => {
      assert.deepEqual(answer, { status: 'declined', note: 'We do not give refunds by chat.' })
      const { last_message: message } = await owner('inbox_get_conversation', { conversation_id: id })
      assert.match(message.text, /left us on Saturday/)
    },
  },
  {
    name: 'VIPs who never got an answer',
    task: 'Which VIP customers have never had an answer from us in the conversation they wait in?',
    prepare: async ({ owner, sandbox }) => {
      for (const [phone, name] of [
        ['+15550100811', 'Vera Important'],
        ['+15550100812', 'Victor Answered'],
      ] as const) {
        await owner('crm_upsert_contact', { phone, name, tags: ['VIP'] })
        await sandbox('POST', 'say', { from: phone, text: 'Can I change my standing order?' })
      }
      const { data } = await owner('inbox_search_conversations', { query: 'Victor Answered' })
      await owner('messaging_send_reply', { conversation_id: data[0].id, text: 'You can, until Friday.' })
      await sandbox('POST', 'say', { from: '+15550100812', text: 'And where?' })
    },
    run: async (agent) => {
      const vips = await agent.call('crm_search_contacts', {
        filter: {
          tags: { some: { name: { eq: 'VIP' } } },
          conversations: { some: { state: { eq: 'open' }, unreadCount: { gt: 0 } } },
        },
        fields: ['id'],
      })
      const ids = new Set(vips.data.map(({ id }: any) => id))
      const { data } = await agent.call('inbox_queue')
      const names: string[] = []
      for (const { id, contact, messages } of data.filter((row: any) => ids.has(row.contact.id))) {
        const isAnswered = (message: any) => message.from === 'staff' || message.direction === 'outbound'
        // The queue shows three messages: whoever wrote more may have had an answer before them.
        const all =
          messages.length < 3 || messages.some(isAnswered)
            ? messages
            : (await agent.call('inbox_list_messages', { conversation_id: id, fields: ['direction'] })).data
        if (!all.some(isAnswered)) names.push(contact.name)
      }
      return names.toSorted()
    },
    check: (answer) => assert.deepEqual(answer, ['Vera Important', 'आरव Iyer-Reddy']),
  },
  {
    name: "a colleague's waiting customers",
    task: 'Lena is ill. Which customers who wait are assigned to her, longest first?',
    run: async (agent) => {
      const staff = await agent.call('workspace_list_staff')
      const lena = staff.data.find(({ name }: any) => name.startsWith('Lena'))
      const { data } = await agent.call('inbox_queue', { assigned_staff_id: lena.id })
      return data.map(({ contact }: any) => contact.name)
    },
    check: (answer) => assert.deepEqual(answer.slice(0, 2), ['Noah Maya Miller', 'Zeynep Şahin']),
  },
  {
    name: 'assign with a note',
    task: 'Give the unassigned chatapp customer Arjun Singh to Lena and note why: she speaks Hindi.',
    run: async (agent) => {
      const found = await agent.call('inbox_search_conversations', { query: 'Arjun', state: 'open' })
      const staff = await agent.call('workspace_list_staff')
      const conversation_id = found.data[0].id
      const lena = staff.data.find(({ name }: any) => name.startsWith('Lena'))
      await agent.call('inbox_assign_conversation', {
        conversation_id,
        staff_id: lena.id,
        only_if_unassigned: true,
      })
      await agent.call('inbox_add_note', { conversation_id, text: 'Assigned to Lena: she speaks Hindi.' })
      return conversation_id
    },
    check: async (answer, { owner }) => {
      const { assignee } = await owner('inbox_get_conversation', { conversation_id: answer })
      assert.equal(assignee.name, 'Lena Kowalska')
      const { data } = await owner('inbox_list_messages', { conversation_id: answer, limit: 1 })
      assert.match(data[0].text, /speaks Hindi/)
    },
  },
  {
    name: 'messages that failed',
    task: 'Which customers did not get our latest message, and why?',
    run: async (agent) => {
      const { data } = await agent.call('inbox_search_conversations', { delivery: 'failed' })
      return data.map(({ contact, last_message: { error } }: any) => [contact.name, error])
    },
    check: (answer) => {
      assert.ok(answer.length >= 2)
      assert.deepEqual(answer[0], ['Zeynep Şahin', 'Message undeliverable'])
    },
  },
  {
    name: 'close and remind',
    task: '吉田 直樹 only said thanks: close it. Remind us of Zeynep Şahin on 20 November at nine in Berlin.',
    run: async (agent) => {
      await agent.learn('remind us of a conversation', 'inbox_set_reminder')
      const thanks = await agent.call('inbox_search_conversations', {
        query: '吉田 直樹',
        state: 'open',
      })
      await agent.call('inbox_close_conversation', {
        conversation_id: thanks.data[0].id,
        reason: 'Said thanks',
      })
      const zeynep = await agent.call('inbox_search_conversations', {
        query: 'Zeynep Şahin',
        state: 'open',
      })
      await agent.call('inbox_set_reminder', {
        conversation_id: zeynep.data[0].id,
        at: '2026-11-20T09:00:00+01:00',
      })
      return [thanks.data[0].id, zeynep.data[0].id]
    },
    check: async ([thanks, zeynep], { owner }) => {
      assert.equal((await owner('inbox_get_conversation', { conversation_id: thanks })).state, 'closed')
      const { reminder_at: at } = await owner('inbox_get_conversation', { conversation_id: zeynep })
      assert.equal(at, '2026-11-20T08:00:00.000Z')
    },
  },
]
