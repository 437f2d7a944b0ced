/** Ids that differ in every run. */
export type ScreenIds = { readonly endpoint: string; readonly delivery: string; readonly event: string }

const template = {
  name: 'order_delayed',
  language: 'ja',
  category: 'UTILITY',
  body: {
    text: 'ご注文の確認：{{1}}様のの商品は {{2}} に届きます 🚚 ありがとうございます。',
    examples: ['佐藤', '土曜日'],
  },
}
/** Breaks several rules. */
const badTemplate = {
  ...template,
  name: 'Order delayed',
  header: { format: 'TEXT', text: 'x'.repeat(70) },
  body: { text: '{{1}} สวัสดี {{3}}', examples: [] },
}
const sent = { name: 'order_update', language: 'en_US', body: ['佐藤 美咲', '11386'] }
const sample = ['--file-name', '写真.png', '--content-type', 'image/png', '--data', 'iVBORw0KGgo=']
const filter = { and: [{ createdAt: { gte: '-7d' } }, { name: { contains: '佐藤' } }] }
const longText = 'ありがとうございます 👨‍👩‍👧‍👦 '.repeat(200).slice(0, 4096)

const json = (value: unknown): string => JSON.stringify(value)

/**
 * The commands whose screens are recorded, by the group of their file. Of a change this is its dry run, or where it
 * asks for a confirmation what it shows before.
 */
export const listScreens = ({ endpoint, delivery, event }: ScreenIds): Record<string, string[][]> => ({
  account: [
    ['whoami'],
    ['status'],
    ['profiles'],
    ['staff', 'list'],
    ['staff', 'list', '--search', 'mara'],
    ['teams', 'list'],
    ['channels', 'list'],
  ],
  approvals: [
    ['approvals', 'list'],
    ['approvals', 'get', '1'],
    ['approvals', 'approve', '1', '--dry-run'],
    ['approvals', 'decline', '1', '--note', '値段を約束しないでください。', '--dry-run'],
    ['approvals', 'cancel', '2', '--dry-run'],
  ],
  audit: [
    ['audit', 'list'],
    ['audit', 'list', '--outcome', 'refused'],
    ['audit', 'list', '--limit', '3'],
    ['events', 'list', '--limit', '12'],
    ['events', 'list', '--after', event, '--limit', '2'],
    ['events', 'ack', 'nightly', '--event-id', event],
    ['events', 'consumers'],
    ['events', 'delete-consumer', 'nightly', '--dry-run'],
  ],
  broadcasts: [
    ['broadcasts', 'list'],
    ['broadcasts', 'get', '1'],
    ['broadcasts', 'recipients', '1'],
  ],
  contacts: [
    ['contacts', 'search'],
    ['contacts', 'search', '--limit', '2'],
    ['contacts', 'search', '--query', 'nobody at all'],
    ['contacts', 'search', '--detail', 'full', '--wide', '--limit', '2'],
    ['contacts', 'search', '--columns', 'name,phone,tags'],
    ['contacts', 'get', '1'],
    ['contacts', 'get', '7', '--detail', 'compact'],
    ['contacts', 'get', '999'],
    ['contacts', 'upsert', '--phone', '+15550100199', '--name', '鈴木 一郎', '--tags', 'VIP', '--dry-run'],
    ['contacts', 'update', '3', '--name', 'Familie 👨‍👩‍👧‍👦', '--starred', '--dry-run'],
    ['contacts', 'change-phone', '1', '--phone', '+15550100155', '--dry-run'],
    ['contacts', 'delete', '1'],
    ['contacts', 'merge', '1', '--other-contact-id', '2', '--prefer-other', 'name', '--dry-run'],
    ['contacts', 'undo-merge', '1'],
    ['contacts', 'tag', '--contact-ids', '1,2', '--tags', 'お得意様', '--dry-run'],
    ['contacts', 'untag', '--contact-ids', '1,2,999', '--tags', 'coffee ☕', '--dry-run'],
    [
      'contacts',
      'import',
      '--rows',
      json([{ phone: '+15550100155', name: '田中' }, { phone: '030 12' }]),
      '--dry-run',
    ],
    ['contacts', 'count', '--filter', json(filter)],
    ['contacts', 'check-filter', '--filter', json(filter)],
    ['contacts', 'check-filter', '--filter', json({ nam: { contains: 'สวัสดี' } })],
  ],
  conversations: [
    ['conversations', 'queue'],
    ['conversations', 'search'],
    ['conversations', 'search', '--state', 'closed', '--utc'],
    ['conversations', 'get', '3'],
    ['conversations', 'messages', '3'],
    ['conversations', 'messages', '7'],
    ['conversations', 'messages', '2', '--limit', '1'],
    ['conversations', 'reply', '3', '--text', 'すぐに確認いたします。少々お待ちください。\nMara'],
    ['conversations', 'reply', '7', '--text', longText],
    ['conversations', 'reply', '2', '--text', 'The window of this customer is shut.'],
  ],
  'conversation-changes': [
    ['conversations', 'assign', '7', '--staff-id', '2', '--dry-run'],
    ['conversations', 'unassign', '4', '--dry-run'],
    ['conversations', 'close', '3', '--reason', '配達済み', '--dry-run'],
    ['conversations', 'reopen', '1', '--title', 'Return', '--dry-run'],
    ['conversations', 'tag', '3', '--add', 'VIP', '--remove', 'wholesale', '--dry-run'],
    ['conversations', 'note', '3', '--text', 'โทรกลับพรุ่งนี้', '--dry-run'],
    ['conversations', 'remind', '3', '--at', '2026-10-02T09:00:00Z', '--dry-run'],
    ['conversations', 'read', '3', '--dry-run'],
  ],
  'custom-fields': [
    ['custom-fields', 'list'],
    ['custom-fields', 'create', '--key', 'size', '--label', 'サイズ', '--type', 'text', '--dry-run'],
    ['custom-fields', 'update', '2', '--visibility', 'manager_only', '--dry-run'],
    ['custom-fields', 'delete', '3'],
  ],
  groups: [
    ['tags', 'list'],
    ['tags', 'rename', '1', '--name', 'Gold', '--dry-run'],
    ['tags', 'delete', '1'],
    ['groups', 'list'],
    ['groups', 'update', '1', '--name', 'Regulars', '--dry-run'],
    ['groups', 'create', '--name', '👨‍👩‍👧‍👦 Familien', '--emoji', '🏡', '--dry-run'],
    ['groups', 'add-contacts', '1', '--contact-ids', '6,7', '--dry-run'],
    ['groups', 'remove-contacts', '1', '--contact-ids', '1', '--dry-run'],
    ['groups', 'delete', '2'],
  ],
  messages: [
    ['messages', 'get', '3'],
    ['messages', 'get', '9'],
    ['messages', 'media', '9'],
    ['messages', 'send-template', '--contact-id', '1', '--template', json(sent)],
  ],
  reports: [
    ['reports', 'summary', '--preset', 'last_7_days'],
    ['reports', 'staff', '--preset', 'last_7_days'],
  ],
  'saved-filters': [
    ['saved-filters', 'list'],
    ['saved-filters', 'get', '1'],
    ['saved-filters', 'create', '--name', 'السبت', '--filter', json(filter), '--dry-run'],
    ['saved-filters', 'update', '2', '--name', 'Without a group', '--dry-run'],
    ['saved-filters', 'delete', '1'],
  ],
  'saved-replies': [
    ['quick-messages', 'list'],
    [
      'quick-messages',
      'create',
      '--code',
      'ありがとう',
      '--text',
      'ご注文ありがとうございます 👨‍👩‍👧‍👦',
      '--dry-run',
    ],
    ['quick-messages', 'update', '1', '--text', 'We are open from 9 to 18.', '--dry-run'],
    ['quick-messages', 'delete', '1'],
    ['short-links', 'list'],
    ['short-links', 'get', '2'],
    ['short-links', 'create', '--message', 'Guten Tag 👋🏽', '--dry-run'],
    ['short-links', 'delete', '1'],
  ],
  schema: [
    ['schema', 'groups', 'create'],
    ['ops', 'crm_list_groups'],
  ],
  templates: [
    ['templates', 'list'],
    ['templates', 'get', '3'],
    ['templates', 'lint', '--template', json(badTemplate)],
    ['templates', 'lint', '--template', json(template)],
    ['templates', 'create', '--template', json(template)],
    [
      'templates',
      'update',
      '3',
      '--template',
      json({ ...template, name: 'autumn_offer', language: 'en_US' }),
    ],
    ['templates', 'archive', '--ids', '1,2'],
    ['templates', 'upload-sample', ...sample, '--dry-run'],
  ],
  webhooks: [
    ['webhooks', 'list'],
    ['webhooks', 'get', endpoint],
    ['webhooks', 'deliveries', endpoint],
    ['webhooks', 'delivery', delivery],
    ['webhooks', 'event-types', '--limit', '12'],
    [
      'webhooks',
      'create',
      '--url',
      'https://example.com/hooks',
      '--event-types',
      'message.received/1',
      '--dry-run',
    ],
    ['webhooks', 'update', endpoint, '--description', '注文と返品', '--dry-run'],
    ['webhooks', 'subscribe', endpoint, '--event-types', 'message.received/1', '--dry-run'],
    ['webhooks', 'test', endpoint, '--event-type-id', 'contact.created/1', '--dry-run'],
    ['webhooks', 'disable', endpoint, '--dry-run'],
    ['webhooks', 'enable', endpoint, '--dry-run'],
    ['webhooks', 'replay', delivery, '--dry-run'],
    [
      'webhooks',
      'recover',
      endpoint,
      '--from',
      '2026-10-01T00:00:00Z',
      '--to',
      '2026-10-01T06:00:00Z',
      '--dry-run',
    ],
    ['webhooks', 'rotate-secret', endpoint],
    ['webhooks', 'delete', endpoint],
  ],
})
