import { PassThrough } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { usageError } from '../error.ts'
import { quoteWord } from '../argv.ts'
import { streamEvents } from '../event-stream.ts'
import { hasColor, type Io } from '../io.ts'
import { callOperation, type ServerConnection } from '../remote.ts'
import { loadApprovals } from './approvals.ts'
import { createApi, describeFailure, isFatal } from './api.ts'
import { type Inbox, loadList, reloadAll, takeEvent } from './data.ts'
import { createState, type InboxState, type Send, type Draft } from './state.ts'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { credentialsPath } from '../credentials-file.ts'
import { makePrivate, writePrivateFile } from '../files.ts'

// The life of the inbox on a terminal: what it starts with, what it listens to, and how it is left.

type Whoami = {
  workspace: { name: string; timezone: string }
  staff: { id: string; name: string; hide_phone_numbers: boolean }
  key: { scopes: string[]; test: boolean }
}

/** Drafts are written this long after the last key. */
const KEEP_DRAFTS_AFTER_MS = 300
/** How long leaving waits for replies on their way. */
const SETTLE_MS = 10_000
const RECONNECT_MS = 2000

const readWhoami = async (to: ServerConnection): Promise<{ state: InboxState; owner: string }> => {
  const { io } = to
  const { value, clock } = await callOperation(to, 'workspace_whoami', {})
  const { workspace, staff, key } = value as unknown as Whoami
  const owner = `${to.url} ${staff.id}`
  const me = {
    staffId: staff.id,
    name: staff.name,
    workspace: workspace.name,
    test: key.test,
    hidesPhones: staff.hide_phone_numbers,
  }
  const fixed = {
    me,
    scopes: key.scopes,
    zone: workspace.timezone,
    clockOffset: clock ? clock.now - Date.now() : 0,
  }
  return { state: createState(fixed, readDrafts(io.env, owner)), owner }
}

/**
 * Listens to events until the signal is aborted. Whatever was shown is read again after a lost connection, so that
 * nothing is missed.
 */
const follow = async (to: ServerConnection, inbox: Inbox, signal: AbortSignal): Promise<void> => {
  const { state } = inbox
  const onConnection = (isConnected: boolean): void => {
    if (isConnected === (state.lostAt === undefined)) return
    state.lostAt = isConnected ? undefined : Date.now()
    if (isConnected) reloadAll(inbox)
    inbox.changed()
  }
  while (!signal.aborted)
    try {
      for await (const event of streamEvents(to, { after: 'now' }, { signal, onConnection }))
        takeEvent(inbox, event)
    } catch (error) {
      if (signal.aborted) return
      if (isFatal(error)) state.fatal = describeFailure(error)
      state.lostAt ??= Date.now()
      inbox.changed()
      if (state.fatal !== undefined) return
      await sleep(RECONNECT_MS, undefined, { signal }).catch(() => {})
    }
}

/** Runs a command in this process, drawn as on a terminal of this width. */
const runInPane = async (to: ServerConnection, words: readonly string[]) => {
  const { io } = to
  const output = Object.assign(new PassThrough(), { columns: (io.stdout.columns || 80) - 1 })
  const chunks: string[] = []
  output.on('data', (chunk: Buffer) => chunks.push(chunk.toString()))
  const { runCommandLine } = await import('../main.ts')
  const exitCode = await runCommandLine(words, {
    stdin: new PassThrough().end(),
    stdout: output,
    stderr: output,
    env: { ...io.env, NO_COLOR: '1', WCRM_URL: to.url, WCRM_API_KEY: to.key },
    isPane: true,
  })
  return { printed: chunks.join(''), exitCode }
}

type Listeners = Set<() => void>

const createInbox = (
  to: ServerConnection,
  state: InboxState,
  { listeners, signal, keepDrafts }: { listeners: Listeners; signal: AbortSignal; keepDrafts: () => void },
): Inbox => {
  const call = createApi(to, signal)
  const inbox: Inbox = {
    state,
    api: async (...args) => {
      const response = await call(...args)
      // A sandbox may move its clock at any time.
      if (response.clock) state.clockOffset = response.clock.now - Date.now()
      return response
    },
    changed: () => listeners.forEach((listener) => listener()),
    keepDrafts,
    approvalsChanged: () => void loadApprovals(inbox),
    copy: (text) => {
      to.io.stdout.write(`\u001b]52;c;${Buffer.from(text).toString('base64')}\u0007`)
    },
    runCommand: (words) => runInPane(to, words),
    loads: 0,
    threadLoads: 0,
    turn: Promise.resolve(),
    waiting: undefined,
    isLoadingMore: false,
    read: [],
    changedIds: new Set(),
    timer: undefined,
    limitTimer: undefined,
    countedAt: 0,
  }
  return inbox
}

const listSends = ({ sends }: InboxState): Send[] => [...sends.values()].flat()

/** Waits, for a while, until nothing is on its way. */
const settleSends = async (state: InboxState): Promise<void> => {
  const end = Date.now() + SETTLE_MS
  while (Date.now() < end && listSends(state).some(({ status }) => status === 'sending')) await sleep(50)
}

const COMMANDS = {
  reply: 'conversations reply',
  note: 'conversations note',
  template: 'messages send-template',
  'saved reply': 'conversations reply',
}

const repeatCommand = (profile: string | undefined, { kind, key, input }: Send): string =>
  [
    'wcrm',
    ...(profile === undefined ? [] : ['-p', profile]),
    COMMANDS[kind],
    // As JSON: no text is mistaken for a file or another flag.
    '--input',
    quoteWord(JSON.stringify(input)),
    ...(kind === 'note' ? [] : ['--confirm', 'send']),
    '--idempotency-key',
    key,
  ].join(' ')

/** Reports what may not have been sent, and how to repeat it without sending it twice. */
const reportOpenSends = (io: Io, state: InboxState): void => {
  for (const send of listSends(state))
    io.stderr.write(
      `A ${send.kind} ${send.status === 'failed' ? 'was not sent' : 'may not have been sent'}. ` +
        `Repeat it, never twice, by:\n  ${repeatCommand(io.profile, send)}\n`,
    )
}

const SIGNALS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const

/** Shows the inbox until it is left. Returns the exit code; throws what was thrown anywhere in it. */
export const showInbox = async (to: ServerConnection): Promise<number> => {
  const { io } = to
  const { state, owner } = await readWhoami(to)
  // Only what React keeps for developers reads this; it costs memory with every drawing.
  process.env['NODE_ENV'] ??= 'production'
  // React is CommonJS: only its default is there both from the source and in the bundle of the client.
  const [{ render }, { default: React }, { InboxApp }] = await Promise.all([
    import('ink'),
    import('react'),
    import('./app.ts'),
  ]).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error
    throw usageError(
      'This installation is for a server. The inbox is in the client: npm install --global wcrm',
    )
  })
  const listeners: Listeners = new Set()
  const stop = new AbortController()
  const keep = (): void => writeDrafts(io.env, owner, state.drafts)
  let keeping: NodeJS.Timeout | undefined
  const keepDrafts = (): void => {
    clearTimeout(keeping)
    keeping = setTimeout(keep, KEEP_DRAFTS_AFTER_MS)
  }
  const inbox = createInbox(to, state, { listeners, signal: stop.signal, keepDrafts })
  let exitCode = 0
  const quit = (code = 0): void => {
    exitCode = code
    app.unmount()
  }
  const subscribe = (listener: () => void): (() => void) => {
    listeners.add(listener)
    return () => listeners.delete(listener)
  }
  const write = (text: string): void => void io.stdout.write(text)
  const app = render(React.createElement(InboxApp, { inbox, color: hasColor(io), quit, subscribe, write }), {
    stdin: io.stdin,
    stdout: io.stdout,
    exitOnCtrlC: false,
    patchConsole: false,
    interactive: true,
    alternateScreen: true,
  })
  let failure: unknown
  const fail = (error: unknown): void => {
    failure = error
    quit(1)
  }
  const ends = Object.entries(SIGNALS).map(([name, code]) => [name, () => quit(code)] as const)
  for (const [name, end] of ends) process.once(name, end)
  process.once('uncaughtException', fail)
  void loadList(inbox)
  inbox.approvalsChanged()
  const following = follow(to, inbox, stop.signal)
  try {
    await app.waitUntilExit()
  } finally {
    app.cleanup()
    clearTimeout(inbox.timer)
    clearTimeout(inbox.limitTimer)
    clearTimeout(keeping)
    await settleSends(state)
    stop.abort()
    keep()
    for (const [name, end] of ends) process.off(name, end)
    process.off('uncaughtException', fail)
    await following
  }
  reportOpenSends(io, state)
  if (failure !== undefined) throw failure
  return exitCode
}

type Env = Readonly<Record<string, string | undefined>>

/** Drafts survive a restart, in a file that only its owner can read. `owner`: server and staff member. */
const draftsPath = (env: Env): string => join(dirname(credentialsPath(env)), 'drafts.json')

type Stored = Record<string, Record<string, Draft>>

const readAll = (env: Env): Stored => {
  try {
    const path = draftsPath(env)
    makePrivate(path)
    return JSON.parse(readFileSync(path, 'utf8')) as Stored
  } catch {
    return {}
  }
}

const isDraft = (value: unknown): value is Draft => {
  const { kind, text, at } = (value ?? {}) as Partial<Draft>
  return (kind === 'reply' || kind === 'note') && typeof text === 'string' && Number.isSafeInteger(at)
}

/** Returns the drafts by conversation; none when the file is unreadable. */
export const readDrafts = (env: Env, owner: string): Map<string, Draft> => {
  const stored = readAll(env)
  return new Map(Object.entries(stored[owner] ?? {}).filter(([, draft]) => isDraft(draft)))
}

export const writeDrafts = (env: Env, owner: string, drafts: ReadonlyMap<string, Draft>): void => {
  const kept = Object.fromEntries([...drafts].filter(([, { text }]) => text !== ''))
  writePrivateFile(draftsPath(env), `${JSON.stringify({ ...readAll(env), [owner]: kept })}\n`)
}
