/** A summary of each group of commands, by the headings of help and the man page. */
export const commandGroups: readonly { heading: string; commands: Readonly<Record<string, string>> }[] = [
  {
    heading: 'Contacts',
    commands: {
      contacts: 'Find, write, tag, import and export contacts',
      tags: 'List, rename and delete tags',
      groups: 'Contact groups and their members',
      'custom-fields': 'Custom fields of contacts',
      'saved-filters': 'Contact filters saved for the team',
      jobs: 'Bulk changes: progress, pause, undo',
      exports: 'Exports of data: progress, and the file',
    },
  },
  {
    heading: 'Messaging',
    commands: {
      conversations: 'Read, answer, assign, close and tag conversations',
      messages: 'Send templates and read messages',
      templates: 'Message templates: check, submit, change, archive, read from the provider',
      'quick-messages': 'Saved replies',
      'short-links': 'Click-to-chat links with a QR image',
      broadcasts: 'Broadcasts and their recipients',
    },
  },
  {
    heading: 'Integration',
    commands: {
      webhooks: 'Webhook endpoints, subscriptions and deliveries',
      events: 'List or follow the event log',
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
      audit: 'The audit trail: who did what',
      approvals: 'Approval requests of AI agents',
    },
  },
]

/** Commands that are not operations: each is a module of its own, loaded on demand. */
export const localCommands: Readonly<Record<string, string>> = {
  inbox: 'Answer customers in a live, full-screen inbox',
  diff: 'Show a plan, and whether it still applies',
  apply: 'Execute a plan, or nothing',
  login: 'Store an API key on this machine',
  logout: 'Delete a stored key',
  status: 'Show the server and the key in use: where it comes from, whose it is, what it may do',
  profiles: 'List the stored keys',
  switch: 'Make another stored key the default',
  'login-code': 'Print a one-time code to sign in an AI client',
  listen: 'Forward events to a URL of yours, signed like webhooks',
  trigger: 'Trigger an event in the sandbox, or send it as a test to an endpoint',
  api: 'Call the REST API with the key in use',
  ops: 'Run an operation by its name',
  schema: 'Show the input of an operation: fields, types, limits, an example',
  doctor: 'Check this machine, the server, the key, the channels and the webhooks',
  completion: 'Print the completion script for bash, zsh or fish',
  mcp: 'Serve MCP on stdin and stdout, bridged to the server',
  serve: 'Run the server',
  worker: 'Deliver webhooks next to the servers of a PostgreSQL database',
  sandbox: 'Control the built-in sandbox as customer and provider, or run it standalone',
  admin: "Administer workspaces, staff, channels and keys on the server's machine",
}

/** Local commands that come with the package of the server. */
export const SERVER_COMMANDS: readonly string[] = ['serve', 'worker', 'admin']

export const exitCodes: readonly (readonly [number, string])[] = [
  [0, 'done'],
  [1, 'unexpected error'],
  [2, 'invalid input or usage, or a check that found errors'],
  [3, 'not found'],
  [4, 'not authenticated or not permitted'],
  [5, 'conflict'],
  [6, 'confirmation missing or declined'],
  [7, 'rate limited'],
  [8, 'provider or service unavailable, or timeout'],
  [9, 'partly failed: the response was printed'],
  [10, 'a person has to approve the call: the request was printed, nothing was changed'],
]

/** The commands that install the scripts of completion, one for each shell. */
export const completionInstalls: readonly string[] = [
  'mkdir -p ~/.local/share/bash-completion/completions && ' +
    'wcrm completion bash > ~/.local/share/bash-completion/completions/wcrm',
  'wcrm completion zsh > ~/.zfunc/_wcrm',
  'wcrm completion fish > ~/.config/fish/completions/wcrm.fish',
]
