/** What the operations of a tag are about, for readers of the API reference. */
export const tagDescriptions: Readonly<Record<string, string>> = {
  workspace: 'Who calls: the workspace, the staff member and the key, with its scopes and limits.',
  staff: 'The people of the workspace, to whom conversations are assigned.',
  teams: 'Teams, to which conversations are assigned and saved replies belong.',
  channels: 'The numbers and sites at which customers reach the workspace, and what is wrong with them.',
  contacts: 'Customers: find them by filters, write them by phone number, tag, import and delete them.',
  tags: 'The tags of contacts.',
  groups: 'Contact groups and their members.',
  'custom-fields': 'The custom fields of contacts: their types, options, and who may see them.',
  'saved-filters': 'Contact filters that are saved for the team, and used by name in searches.',
  conversations:
    'The inbox: who waits, replies while the window is open, assignment, notes, tags and reminders.',
  messages: 'Templates to one contact, and single messages with their files.',
  templates: 'Message templates: lint a draft, submit it for review, change and archive it.',
  'short-links': 'Click-to-chat links with a QR code.',
  'quick-messages': 'Saved replies with placeholders.',
  broadcasts: 'Broadcasts with their totals and recipients.',
  webhooks: 'Signed webhooks: endpoints, subscriptions, deliveries, tests and replays.',
  events: 'The event log: read it from any place, or follow it as a stream.',
  reports: 'The summary of the workspace, and the report of the staff.',
  audit: 'Who did what, through which door, and how it ended.',
  approvals: 'Calls of AI agents, on which a person decides.',
}
