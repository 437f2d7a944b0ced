import { usage } from '../fault.ts'
import type { Io } from '../io.ts'

export type Flags = Readonly<Record<string, string | boolean | undefined>>
type Result = Record<string, unknown>

/** Asks `/sandbox/<path>` of the server; throws a fault. */
export type Ask = (
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  input?: Record<string, unknown>,
) => Promise<Result>

type Work = {
  readonly io: Io
  readonly ask: Ask
  readonly flags: Flags
  readonly words: readonly string[]
}

export type Verb = {
  /** One word, or two. */
  readonly name: string
  /** What stands in its places after the verb, and what it is. */
  readonly places?: readonly (readonly [term: string, about: string])[]
  readonly summary: string
  readonly about?: string
  readonly required?: readonly (readonly [flags: string, about: string])[]
  readonly options?: readonly (readonly [flags: string, about: string])[]
  /** Columns of a list. */
  readonly columns?: readonly string[]
  /** It calls no server, so it takes neither `--url` nor a key. */
  readonly alone?: true
  /** Undefined when it has printed all there is to say. */
  readonly run: (work: Work) => Promise<Result | undefined>
}

const text = (flags: Flags, name: string): string | undefined =>
  typeof flags[name] === 'string' ? flags[name] : undefined

const whole = (flags: Flags, name: string, flag: string): number | undefined => {
  const value = text(flags, name)
  if (value === undefined) return undefined
  if (!/^\d{1,9}$/.test(value)) throw usage(`${flag} takes a whole number, not "${value}".`, flag)
  return Number(value)
}

/** `2s`, `500ms` or `1m` in milliseconds. */
const latency = (flags: Flags): number | undefined => {
  const value = text(flags, 'latency')
  if (value === undefined) return undefined
  const [, n, unit] = /^(\d{1,6})(ms|s|m)$/.exec(value) ?? []
  if (n === undefined)
    throw usage(`--latency takes a duration, not "${value}".`, '--latency', 'For example 2s or 500ms.')
  return Number(n) * { ms: 1, s: 1000, m: 60_000 }[unit as 'ms' | 's' | 'm']
}

/** Leaves out what was not said. */
const said = (input: Result): Result =>
  Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined))

const oneOf = (word: string, allowed: readonly string[], term: string): string => {
  if (!allowed.includes(word))
    throw usage(`${term} has no "${word}".`, term, `One of: ${allowed.join(', ')}.`)
  return word
}

const people: readonly Verb[] = [
  {
    name: 'say',
    places: [['<text...>', 'what the customer writes']],
    summary: 'Write as a customer',
    about:
      'The message goes the way of every inbound one: the sandbox signs a webhook, the server checks and stores it. It is there within a second.',
    options: [
      ['--from <phone>', "the customer's number, in international form"],
      ['--name <name>', "the name on the customer's profile"],
      ['--user-id <id>', "the customer's id at the provider; without --from, a customer who shows no number"],
      ['--channel <id>', 'the channel that is written to (default: the default chatapp one)'],
      ['--ad', 'the customer comes from an ad, which opens a window of 72 hours'],
    ],
    run: ({ ask, flags, words }) =>
      ask(
        'POST',
        'say',
        said({
          from: text(flags, 'from'),
          name: text(flags, 'name'),
          user_id: text(flags, 'userId'),
          channel_id: text(flags, 'channel'),
          ad: flags['ad'] === true ? true : undefined,
          text: words.join(' '),
        }),
      ),
  },
  {
    name: 'status',
    places: [
      ['<message-id>', 'a message that was sent; the id that wcrm shows'],
      ['<status>', 'delivered, read or failed'],
    ],
    summary: 'Say what became of a message',
    options: [['--code <n>', "the provider's error code of a failure"]],
    run: ({ ask, flags, words: [id, status] }) =>
      ask(
        'POST',
        'status',
        said({
          message_id: id,
          status: oneOf(status!, ['delivered', 'read', 'failed'], '<status>'),
          code: whole(flags, 'code', '--code'),
        }),
      ),
  },
  {
    name: 'review',
    places: [
      ['<template-id>', 'the id that wcrm shows'],
      ['<decision>', 'approve, reject, pause or category'],
    ],
    summary: 'Review a template',
    about:
      'Unasked the sandbox approves a template after two seconds. A decision is possible from any status.',
    options: [
      ['--reason <text>', 'why it is rejected or paused'],
      ['--category <category>', 'the new category: MARKETING, UTILITY or AUTHENTICATION'],
    ],
    run: ({ ask, flags, words: [id, decision] }) =>
      ask(
        'POST',
        'review',
        said({
          template_id: id,
          decision: oneOf(decision!, ['approve', 'reject', 'pause', 'category'], '<decision>'),
          reason: text(flags, 'reason'),
          category: text(flags, 'category'),
        }),
      ),
  },
]

const clock: readonly Verb[] = [
  { name: 'clock show', summary: 'Show business time', run: ({ ask }) => ask('GET', 'clock') },
  {
    name: 'clock advance',
    places: [['<duration>', 'such as 25h or "1d 2h": s, m, h, d or w']],
    summary: 'Advance business time, on every server',
    about:
      'Windows close and drafts go stale as if the time had passed. It never goes back. Leases, rate limits and signatures stay on real time.',
    run: ({ ask, words }) => ask('POST', 'clock', { advance: words[0] }),
  },
]

const trouble: readonly Verb[] = [
  {
    name: 'fault add',
    summary: 'Have the next calls to the provider fail',
    about:
      'One of --code, --drop-answer and --latency. A dropped answer is the worst of them: the work is done, and the caller never learns of it.',
    required: [['--on <calls>', 'which calls: messages, templates, links or media']],
    options: [
      ['--to <phone>', 'only messages to this customer'],
      ['--code <n>', 'refused with this error code of the provider'],
      ['--drop-answer', 'done, but the answer is lost'],
      ['--latency <duration>', 'answered late, such as 2s or 500ms'],
      ['--times <n>', 'how often (default: until cleared)'],
    ],
    run: ({ ask, flags }) =>
      ask(
        'POST',
        'faults',
        said({
          on: oneOf(text(flags, 'on')!, ['messages', 'templates', 'links', 'media'], '--on'),
          to: text(flags, 'to'),
          code: whole(flags, 'code', '--code'),
          drop_answer: flags['dropAnswer'] === true ? true : undefined,
          latency_ms: latency(flags),
          times: whole(flags, 'times', '--times'),
        }),
      ),
  },
  { name: 'fault clear', summary: 'Take back every fault', run: ({ ask }) => ask('DELETE', 'faults') },
  {
    name: 'webhooks',
    summary: 'Have webhooks repeated or out of order',
    about: 'What is not said goes back to normal.',
    options: [
      ['--duplicates <n>', 'send each this many times more'],
      ['--shuffle', 'in any order'],
    ],
    run: ({ ask, flags }) =>
      ask('POST', 'webhooks', {
        duplicates: whole(flags, 'duplicates', '--duplicates') ?? 0,
        shuffle: flags['shuffle'] === true,
      }),
  },
]

const looks: readonly Verb[] = [
  {
    name: 'messages',
    summary: 'List what the provider took, oldest first, in its own JSON',
    options: [['--to <phone>', 'only to this customer']],
    columns: ['id', 'to', 'type', 'status', 'created_at'],
    run: ({ ask, flags }) => ask('GET', 'messages', said({ to: text(flags, 'to') })),
  },
  {
    name: 'templates',
    summary: 'List the templates that the provider has',
    columns: ['id', 'name', 'language', 'category', 'status'],
    run: ({ ask }) => ask('GET', 'templates'),
  },
  {
    name: 'links',
    summary: 'List the short links that the provider has',
    columns: ['code', 'prefilled_message', 'deep_link_url'],
    run: ({ ask }) => ask('GET', 'links'),
  },
]

const server: Verb = {
  name: 'serve',
  summary: 'Run the sandbox alone, for a server elsewhere or a product of your own',
  alone: true,
  about:
    'Secrets that are not given are made and kept in the data folder. With --json one line says all that a client needs.',
  options: [
    ['--host <host>', 'address to listen on (default 127.0.0.1)'],
    ['--port <port>', 'port to listen on, 0 picks a free one (default 8788)'],
    ['--data <dir>', 'folder of its database (default .wcrm-sandbox)'],
    ['--webhook-url <url>', 'where webhooks go, until a subscription says otherwise'],
    ['--token <text>', 'the access token that calls must carry (also WCRM_PROVIDER_TOKEN)'],
    ['--app-secret <text>', 'signs webhooks (also WCRM_PROVIDER_APP_SECRET)'],
    ['--verify-token <text>', 'said when a webhook address is verified (also WCRM_PROVIDER_VERIFY_TOKEN)'],
  ],
  run: async ({ io, flags }) => {
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
    // Built from a string: the other commands load nothing of a server.
    const { serveSandbox } = (await import(new URL(`./serve.${extension}`, import.meta.url).href)) as {
      serveSandbox: (io: Io, flags: Flags) => Promise<void>
    }
    await serveSandbox(io, flags)
    return undefined
  },
}

/** Every command of `wcrm sandbox`, in the order in which help lists them. */
export const verbs: readonly Verb[] = [...people, ...clock, ...trouble, ...looks, server]

/** How a command is called, in one line. */
export const usageOf = (verb: Verb): string =>
  [
    'wcrm sandbox',
    verb.name,
    ...(verb.required ?? []).map(([flags]) => flags),
    ...(verb.options ?? []).map(([flags]) => `[${flags}]`),
    ...(verb.places ?? []).map(([term]) => term),
  ].join(' ')
