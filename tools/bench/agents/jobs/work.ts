import assert from 'node:assert/strict'
import type { Job } from '../job.ts'

/** Templates, reports, webhooks and the audit trail. */
export const workJobs: readonly Job[] = [
  {
    name: 'why templates were rejected',
    task: 'Which templates did the provider reject, and why?',
    run: async (agent) => {
      const { data } = await agent.call('messaging_list_templates', { status: 'REJECTED' })
      return data.map(({ name, rejection_reason: reason }: any) => ({ name, reason }))
    },
    check: (answer) => {
      assert.deepEqual(
        answer.map(({ name }: any) => name),
        ['gift_boxes'],
      )
      assert.match(answer[0].reason, /does not say what customers have to do/)
    },
  },
  {
    name: 'draft, lint and submit a template',
    task:
      'Write a utility template "pickup_ready" in English that tells a customer by name that an order is ready, ' +
      'check it, and submit it.',
    run: async (agent) => {
      const draft = (text: string, examples: string[]) => ({
        name: 'pickup_ready',
        language: 'en_US',
        category: 'UTILITY',
        body: { text, examples },
      })
      await agent.learn('check and submit a template', 'messaging_lint_template', 'messaging_create_template')
      const first = await agent.call('messaging_lint_template', {
        template: draft('{{1}}, your order {{2}} is ready', ['Ada', '20711']),
      })
      const better = draft('Hello {{1}}, your order {{2}} is ready for you in our shop.', ['Ada', '20711'])
      const second = await agent.call('messaging_lint_template', { template: better })
      assert.ok(!first.valid && second.valid)
      await agent.act('messaging_create_template', { template: better })
    },
    check: async (_, { owner, server }) => {
      await server.settle()
      const { data } = await owner('messaging_list_templates', { search: 'pickup_ready' })
      assert.equal(data.length, 1)
      assert.ok(['PENDING', 'APPROVED'].includes(data[0].status))
    },
  },
  {
    name: 'a saved reply for a question',
    task: 'Do we have a saved reply about our opening hours? What does it say?',
    run: async (agent) => {
      await agent.learn('saved replies', 'messaging_list_quick_messages')
      const { data } = await agent.call('messaging_list_quick_messages', { query: 'hours' })
      return data[0].text
    },
    check: (answer) => assert.match(answer, /open|geöffnet/i),
  },
  {
    name: 'yesterday and last week compared',
    task: 'How many conversations did we close yesterday, and in the last seven days? How fast?',
    run: async (agent) => {
      const yesterday = await agent.call('reports_workspace_summary', { preset: 'yesterday' })
      const lastWeek = await agent.call('reports_workspace_summary', { preset: 'last_7_days' })
      return [yesterday, lastWeek].map(({ conversations }) => [
        conversations.closes,
        conversations.median_close_seconds,
      ])
    },
    check: async (answer, { owner }) => {
      const { conversations } = await owner('reports_workspace_summary', { preset: 'last_7_days' })
      assert.deepEqual(answer[1], [conversations.closes, conversations.median_close_seconds])
      assert.ok(answer[0][0] <= answer[1][0])
    },
  },
  {
    name: 'who answered most',
    task: 'Who of us sent the most replies in the last seven days?',
    run: async (agent) => {
      await agent.learn('figures of each staff member', 'reports_staff')
      const { data } = await agent.call('reports_staff', { preset: 'last_7_days' })
      return data.toSorted((a: any, b: any) => b.replied - a.replied)[0].name
    },
    check: async (answer, { owner }) => {
      const { data } = await owner('reports_staff', { preset: 'last_7_days' })
      const most = Math.max(...data.map(({ replied }: any) => replied))
      assert.equal(data.find(({ name }: any) => name === answer).replied, most)
    },
  },
  {
    name: 'a webhook for failures, tested',
    task: ({ receiver }) => `Tell ${receiver} of messages that fail, and show me that it works.`,
    phones: true,
    run: async (agent) => {
      await agent.learn('event types of webhooks', 'webhooks_list_event_types')
      await agent.learn('create and test a webhook', 'webhooks_create_endpoint', 'webhooks_send_test')
      const types = await agent.call('webhooks_list_event_types', { search: 'failed' })
      const type = types.data.find(({ id }: any) => id.startsWith('message.failed'))
      const url = agent.task.split(' ')[1]!
      const { ran } = await agent.act('webhooks_create_endpoint', { url, event_types: [type.id] })
      await agent.learn('list webhook endpoints', 'webhooks_list_endpoints')
      const endpoint =
        ran?.endpoint ?? (await agent.call('webhooks_list_endpoints', { url_contains: url })).data[0]
      const { outcome } = await agent.call('webhooks_send_test', {
        endpoint_id: endpoint.id,
        event_type_id: type.id,
      })
      return { id: endpoint.id, outcome: outcome.status }
    },
    check: async (answer, { owner }) => {
      const { data } = await owner('webhooks_list_endpoints', {})
      assert.ok(data.some(({ id }: any) => id === answer.id))
      assert.equal(answer.outcome, 'delivered')
    },
  },
  {
    name: 'what the assistant changed',
    task: 'What did assistants delete or send today?',
    phones: true,
    run: async (agent) => {
      const { staff } = await agent.call('workspace_whoami')
      await agent.learn('audit trail: who did what', 'audit_list')
      const { data } = await agent.call('audit_list', { staff_id: staff.id, outcome: 'done', limit: 100 })
      return [...new Set(data.map(({ operation }: any) => operation))].filter((name) =>
        /^(?:messaging_send|crm_delete)/.test(name as string),
      )
    },
    check: (answer) =>
      assert.deepEqual(answer.toSorted(), [
        'crm_delete_contact',
        'messaging_send_reply',
        'messaging_send_template',
      ]),
  },
]
