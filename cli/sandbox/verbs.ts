import { usageError } from '../error.ts'
import type { Io } from '../io.ts'
import type { CommandResult } from '../result.ts'

export type SandboxFlags = Readonly<Record<string, string | boolean | undefined>>
/** Calls `/sandbox/<path>` of the server. Throws a CLI error. */
export type SandboxClient = (
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  input?: Record<string, unknown>,
) => Promise<CommandResult>

type SandboxVerbContext = {
  readonly io: Io
  readonly call: SandboxClient
  readonly flags: SandboxFlags
  readonly words: readonly string[]
}

export type SandboxVerb = {
  /** One word, or two. */
  readonly name: string
  /** The positional arguments after the verb, and their descriptions. */
  readonly positionals?: readonly (readonly [term: string, about: string])[]
  readonly summary: string
  readonly about?: string
  readonly required?: readonly (readonly [flags: string, about: string])[]
  readonly options?: readonly (readonly [flags: string, about: string])[]
  /** Columns of a list; absent when the result is a record. */
  readonly columns?: readonly string[]
  /** True when it calls no server: it needs neither `--url` nor a key. */
  readonly alone?: true
  /** Returns undefined when it has printed its output itself. */
  readonly run: (work: SandboxVerbContext) => Promise<CommandResult | undefined>
}

export const stringFlag = (flags: SandboxFlags, name: string): string | undefined =>
  typeof flags[name] === 'string' ? flags[name] : undefined

const integerFlag = (flags: SandboxFlags, name: string, flag: string): number | undefined => {
  const value = stringFlag(flags, name)
  if (value === undefined) return undefined
  if (!/^\d{1,9}$/.test(value)) throw usageError(`${flag} must be an integer, not "${value}".`, flag)
  return Number(value)
}

/** Parses `2s`, `500ms` or `1m` to milliseconds. */
const latencyFlag = (flags: SandboxFlags): number | undefined => {
  const value = stringFlag(flags, 'latency')
  if (value === undefined) return undefined
  const [, n, unit] = /^(\d{1,6})(ms|s|m)$/.exec(value) ?? []
  if (n === undefined)
    throw usageError(`--latency must be a duration, not "${value}".`, '--latency', 'For example 2s or 500ms.')
  return Number(n) * { ms: 1, s: 1000, m: 60_000 }[unit as 'ms' | 's' | 'm']
}

/** Removes undefined fields. */
const omitUndefined = (input: CommandResult): CommandResult =>
  Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined))

const requireChoice = (word: string, allowed: readonly string[], term: string): string => {
  if (!allowed.includes(word))
    throw usageError(`${term} does not accept "${word}".`, term, `One of: ${allowed.join(', ')}.`)
  return word
}

const messageFlag = (json: string | undefined): unknown => {
  if (json === undefined) return undefined
  try {
    return JSON.parse(json)
  } catch {
    throw usageError(
      '--message is not JSON.',
      '--message',
      'Such as {"type":"button","button":{"text":"Yes"}}.',
    )
  }
}

const customerVerbs: readonly SandboxVerb[] = [
  {
    name: 'say',
    positionals: [['[text...]', 'text of the message']],
    summary: 'Send a message as a customer',
    about:
      'The message arrives like every inbound message: the sandbox sends a signed webhook, and the ' +
      'server verifies and stores it, within a second.',
    options: [
      ['--from <phone>', "the customer's number, in international form"],
      ['--name <name>', "the name on the customer's profile"],
      [
        '--user-id <id>',
        "the customer's id at the provider; without --from, a customer without a visible number",
      ],
      ['--channel <id>', 'the channel to write to (default: the default chatapp channel)'],
      ['--username <name>', "the customer's username"],
      [
        '--message <json>',
        'a message in the form of the provider, instead of a text: a contact card, a form, a notice, a message ' +
          'of a group',
      ],
      [
        '--tap <title>',
        'tap the button or list row with this title or id, in the last message to the customer that has any',
      ],
      ['--reply-to <message-id>', 'answer, or tap in, this message; the id that wcrm shows'],
      ['--phone-app', 'the business writes it, in the phone app of its number'],
      ['--ad', 'the message comes from an ad, which opens a reply window of 72 hours'],
    ],
    run: ({ call, flags, words }) => {
      const message = messageFlag(stringFlag(flags, 'message'))
      const tap = stringFlag(flags, 'tap')
      if ((words.length === 0) === (message === undefined && tap === undefined))
        throw Object.assign(usageError('Give a text, or --message or --tap in its place.'), {
          hint: 'See: wcrm sandbox say --help',
        })
      return call(
        'POST',
        'say',
        omitUndefined({
          from: stringFlag(flags, 'from'),
          name: stringFlag(flags, 'name'),
          user_id: stringFlag(flags, 'userId'),
          channel_id: stringFlag(flags, 'channel'),
          username: stringFlag(flags, 'username'),
          ad: flags['ad'] === true ? true : undefined,
          echo: flags['phoneApp'] === true ? true : undefined,
          text: words.length === 0 ? undefined : words.join(' '),
          message,
          tap,
          reply_to: stringFlag(flags, 'replyTo'),
        }),
      )
    },
  },
  {
    name: 'status',
    positionals: [
      ['<message-id>', 'a sent message; the id that wcrm shows'],
      ['<status>', 'delivered, read or failed'],
    ],
    summary: 'Set the delivery status of a message',
    options: [['--code <n>', "the provider's error code, for failed"]],
    run: ({ call, flags, words: [id, status] }) =>
      call(
        'POST',
        'status',
        omitUndefined({
          message_id: id,
          status: requireChoice(status!, ['delivered', 'read', 'failed'], '<status>'),
          code: integerFlag(flags, 'code', '--code'),
        }),
      ),
  },
  {
    name: 'review',
    positionals: [
      ['<template-id>', 'the id that wcrm shows'],
      ['<decision>', 'approve, reject, pause or category'],
    ],
    summary: 'Review a template',
    about:
      'Without a decision the sandbox approves a template after two seconds. A decision is possible in ' +
      'any status.',
    options: [
      ['--reason <text>', 'why the template is rejected or paused'],
      ['--category <category>', 'the new category: MARKETING, UTILITY or AUTHENTICATION'],
    ],
    run: ({ call, flags, words: [id, decision] }) =>
      call(
        'POST',
        'review',
        omitUndefined({
          template_id: id,
          decision: requireChoice(decision!, ['approve', 'reject', 'pause', 'category'], '<decision>'),
          reason: stringFlag(flags, 'reason'),
          category: stringFlag(flags, 'category'),
        }),
      ),
  },
]

const MESSAGE_ID = ['<message-id>', 'the id that wcrm shows'] as const
const CUSTOMER = ['--from <phone>', 'as this customer (default: the one of the conversation)'] as const

const changeVerbs: readonly SandboxVerb[] = [
  {
    name: 'react',
    positionals: [MESSAGE_ID, ['[emoji]', 'the emoji; it replaces an earlier one']],
    summary: 'React to a message as its customer, or remove the reaction',
    options: [['--remove', 'remove the reaction'], CUSTOMER],
    run: ({ call, flags, words: [id, emoji] }) =>
      call(
        'POST',
        'react',
        omitUndefined({
          message_id: id,
          emoji,
          remove: flags['remove'] === true ? true : undefined,
          from: stringFlag(flags, 'from'),
        }),
      ),
  },
  {
    name: 'edit',
    positionals: [MESSAGE_ID, ['<text...>', 'the new text or caption']],
    summary: 'Edit a message as the customer who wrote it',
    options: [CUSTOMER],
    run: ({ call, flags, words: [id, ...words] }) =>
      call(
        'POST',
        'edit',
        omitUndefined({ message_id: id, text: words.join(' '), from: stringFlag(flags, 'from') }),
      ),
  },
  {
    name: 'delete',
    positionals: [MESSAGE_ID],
    summary: 'Delete a message as the customer who wrote it',
    options: [CUSTOMER],
    run: ({ call, flags, words: [id] }) =>
      call('POST', 'delete', omitUndefined({ message_id: id, from: stringFlag(flags, 'from') })),
  },
]

const clockVerbs: readonly SandboxVerb[] = [
  {
    name: 'clock show',
    summary: 'Show business time of the workspace',
    run: ({ call }) => call('GET', 'clock'),
  },
  {
    name: 'clock advance',
    positionals: [['<duration>', 'such as 25h or "1d 2h": s, m, h, d or w']],
    summary: 'Advance business time of the workspace, on every server',
    about:
      'Reply windows close and reminders come due as if the time had passed: at most 400 days ahead. What ' +
      'expires or is retained uses real time: keys, cursors, signed URLs, idempotency records, events, ' +
      'deliveries and the audit trail.',
    run: ({ call, words }) => call('POST', 'clock', { advance: words[0] }),
  },
  {
    name: 'clock reset',
    summary: 'Set business time of the workspace back to real time',
    about: 'Records written meanwhile keep their times, which are then in the future.',
    run: ({ call }) => call('DELETE', 'clock'),
  },
]

const faultVerbs: readonly SandboxVerb[] = [
  {
    name: 'fault add',
    summary: 'Make the next calls to the provider fail',
    about:
      'Needs one of --code, --drop-answer and --latency. A dropped answer is the worst case: the call is ' +
      'performed, but its response is lost.',
    required: [['--on <calls>', 'affected calls: messages, templates, links or media']],
    options: [
      ['--to <phone>', 'only messages to this customer'],
      ['--code <n>', 'refuse with this error code of the provider'],
      ['--drop-answer', 'perform the call, but lose the response'],
      ['--latency <duration>', 'delay the response, such as 2s or 500ms'],
      ['--times <n>', 'number of affected calls (default: until cleared)'],
    ],
    run: ({ call, flags }) =>
      call(
        'POST',
        'faults',
        omitUndefined({
          on: requireChoice(stringFlag(flags, 'on')!, ['messages', 'templates', 'links', 'media'], '--on'),
          to: stringFlag(flags, 'to'),
          code: integerFlag(flags, 'code', '--code'),
          drop_answer: flags['dropAnswer'] === true ? true : undefined,
          latency_ms: latencyFlag(flags),
          times: integerFlag(flags, 'times', '--times'),
        }),
      ),
  },
  {
    name: 'fault clear',
    summary: 'Remove the faults of the workspace',
    run: ({ call }) => call('DELETE', 'faults'),
  },
  {
    name: 'account',
    positionals: [
      ['<action>', 'restrict, ban, revoke-token, restore, quality or limit'],
      ['[value]', 'of quality: GREEN or RED; of limit: such as TIER_10K'],
    ],
    summary:
      'Restrict the account at the provider, revoke its token, or change rating and limit of its numbers',
    about:
      'Use it to test how channels, events and wcrm doctor react. restore ends a restriction, a ban and ' +
      'a revoked token; the server notices a restored token at its next check of the account.',
    options: [['--channel <id>', 'only the account, or the number, of this channel (default: all)']],
    run: ({ call, flags, words: [action, value] }) =>
      call(
        'POST',
        'account',
        omitUndefined({
          action: requireChoice(
            action!,
            ['restrict', 'ban', 'revoke-token', 'restore', 'quality', 'limit'],
            '<action>',
          ),
          value,
          channel_id: stringFlag(flags, 'channel'),
        }),
      ),
  },
  {
    name: 'webhooks',
    summary: 'Repeat or reorder webhooks',
    about: 'Omitted settings return to normal.',
    options: [
      ['--duplicates <n>', 'send each webhook this many additional times'],
      ['--shuffle', 'send webhooks in random order'],
    ],
    run: ({ call, flags }) =>
      call('POST', 'webhooks', {
        duplicates: integerFlag(flags, 'duplicates', '--duplicates') ?? 0,
        shuffle: flags['shuffle'] === true,
      }),
  },
]

const listVerbs: readonly SandboxVerb[] = [
  {
    name: 'messages',
    summary: 'List the messages that the provider accepted, oldest first, in its JSON format',
    options: [['--to <phone>', 'only messages to this customer']],
    columns: ['id', 'to', 'type', 'status', 'created_at'],
    run: ({ call, flags }) => call('GET', 'messages', omitUndefined({ to: stringFlag(flags, 'to') })),
  },
  {
    name: 'templates',
    summary: 'List the templates at the provider',
    columns: ['id', 'name', 'language', 'category', 'status'],
    run: ({ call }) => call('GET', 'templates'),
  },
  {
    name: 'links',
    summary: 'List the short links at the provider',
    columns: ['code', 'prefilled_message', 'deep_link_url'],
    run: ({ call }) => call('GET', 'links'),
  },
]

const serveVerb: SandboxVerb = {
  name: 'serve',
  summary: 'Run a standalone sandbox, for a server elsewhere or your own product',
  alone: true,
  about:
    'Omitted secrets are generated and stored in the data folder. With --json it prints one line with ' +
    'the settings of a client.',
  options: [
    ['--host <host>', 'address to listen on (default 127.0.0.1)'],
    ['--port <port>', 'port to listen on, 0 picks a free one (default 8788)'],
    ['--data <dir>', 'folder of its database (default .wcrm-sandbox)'],
    ['--webhook-url <url>', 'destination of webhooks until a subscription is created'],
    ['--token <text>', 'access token that calls must send (also WCRM_PROVIDER_TOKEN)'],
    ['--app-secret <text>', 'secret that signs webhooks (also WCRM_PROVIDER_APP_SECRET)'],
    [
      '--verify-token <text>',
      'token that is sent to verify a webhook address (also WCRM_PROVIDER_VERIFY_TOKEN)',
    ],
  ],
  run: async ({ io, flags }) => {
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
    // The path is built at run time, so that the other commands load no server code.
    const { serveSandbox } = (await import(new URL(`./serve.${extension}`, import.meta.url).href)) as {
      serveSandbox: (io: Io, flags: SandboxFlags) => Promise<void>
    }
    await serveSandbox(io, flags)
    return undefined
  },
}

/** All commands of `wcrm sandbox`, in the order of help. */
export const sandboxVerbs: readonly SandboxVerb[] = [
  ...customerVerbs,
  ...changeVerbs,
  ...clockVerbs,
  ...faultVerbs,
  ...listVerbs,
  serveVerb,
]

/** Formats the usage of a command in one line. */
export const formatSandboxUsage = (verb: SandboxVerb): string =>
  [
    'wcrm sandbox',
    verb.name,
    ...(verb.required ?? []).map(([flags]) => flags),
    ...(verb.options ?? []).map(([flags]) => `[${flags}]`),
    ...(verb.positionals ?? []).map(([term]) => term),
  ].join(' ')
