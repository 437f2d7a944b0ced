/** One line for each group of commands, under the heading that help and man pages file it under. */
export const groups: readonly { heading: string; commands: Readonly<Record<string, string>> }[] = [
  {
    heading: 'Contacts',
    commands: {
      contacts: 'Find, write, tag, import and export contacts',
      tags: 'List tags',
      groups: 'Contact groups and who is in them',
      'custom-fields': 'The fields that contacts can have',
      'saved-filters': 'Contact filters kept for the team',
    },
  },
  {
    heading: 'Messaging',
    commands: {
      conversations: 'Read, answer, assign, close and tag conversations',
      messages: 'Send templates and read messages',
      templates: 'Message templates: check, submit, change, archive',
      'quick-messages': 'Saved replies',
      'short-links': 'Click-to-chat links with a QR image',
      broadcasts: 'Broadcasts and who received them',
    },
  },
  {
    heading: 'Integration',
    commands: {
      webhooks: 'Webhook endpoints, subscriptions and deliveries',
      events: 'The event log, once or as it grows',
    },
  },
  {
    heading: 'Workspace',
    commands: {
      whoami: 'Show the workspace, staff member and key in use',
      channels: 'List the channels of the workspace',
      staff: 'List the staff',
      teams: 'List the teams',
      reports: 'Workspace summary and staff report',
      audit: 'Who did what through which door',
    },
  },
]

/** Commands that are not operations: each is a file of its own, imported when it is asked for. */
export const local: Readonly<Record<string, string>> = {
  login: 'Keep an API key for this machine',
  logout: 'Forget the kept key',
  completion: 'Print the completion script of bash, zsh or fish',
  mcp: 'Serve MCP on stdin and stdout, bridged to the server',
  serve: 'Run the server',
  worker: 'Deliver webhooks beside the servers of a PostgreSQL database',
  sandbox: 'Be the customer and the provider of the built-in sandbox, or run one alone',
  admin: "Administer workspaces, staff, channels and keys on the server's machine",
}

export const exitCodes: readonly (readonly [number, string])[] = [
  [0, 'done'],
  [1, 'unexpected error'],
  [2, 'invalid input or usage'],
  [3, 'not found'],
  [4, 'not authenticated or not permitted'],
  [5, 'conflict'],
  [6, 'confirmation missing or declined'],
  [7, 'rate limited'],
  [8, 'provider or service unavailable, or timeout'],
  [9, 'partly failed: the answer was printed'],
]
