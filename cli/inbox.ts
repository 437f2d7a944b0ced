import { parseArgs } from 'node:util'
import { loadCredentials } from './credentials.ts'
import { usageError } from './error.ts'
import { streamEvents } from './event-stream.ts'
import { loadApprovals } from './inbox/approvals.ts'
import { createApi } from './inbox/api.ts'
import { type Inbox, loadList, notify, takeEvent } from './inbox/data.ts'
import { readDrafts, writeDrafts } from './inbox/drafts.ts'
import { createState, type InboxState } from './inbox/state.ts'
import { hasColor, type Io, isInteractive } from './io.ts'
import { readManifest } from './manifest.ts'
import { callOperation, type ServerConnection } from './remote.ts'
import { reportError } from './report-error.ts'

const help = `Usage: wcrm inbox [--url URL]

Answer customers without leaving the terminal: the queue, the conversations and a composer on the
whole screen, live. ? shows the keys. The key's scopes decide which of them work. Drafts are kept.
`

type Whoami = {
  workspace: { name: string; timezone: string }
  staff: { id: string; name: string }
  key: { scopes: string[]; test: boolean }
}

/** Drafts are written this long after the last key. */
const KEEP_DRAFTS_AFTER_MS = 300

const readWhoami = async (io: Io, to: ServerConnection): Promise<{ state: InboxState; owner: string }> => {
  const { value, clock } = await callOperation(io, to, 'workspace_whoami', {})
  const { workspace, staff, key } = value as unknown as Whoami
  const owner = `${to.url} ${staff.id}`
  const me = { staffId: staff.id, name: staff.name, workspace: workspace.name, test: key.test }
  const fixed = {
    me,
    scopes: key.scopes,
    zone: workspace.timezone,
    clockOffset: clock ? clock.now - Date.now() : 0,
  }
  return { state: createState(fixed, readDrafts(io.env, owner)), owner }
}

/** Listens to events until the signal is aborted; nothing that happens after this call is missed. */
const follow = async (io: Io, to: ServerConnection, inbox: Inbox, signal: AbortSignal): Promise<void> => {
  const onConnection = (isConnected: boolean): void => {
    if (isConnected === (inbox.state.lostAt === undefined)) return
    inbox.state.lostAt = isConnected ? undefined : Date.now()
    inbox.changed()
  }
  try {
    for await (const event of streamEvents(io, to, { after: 'now' }, { signal, onConnection }))
      takeEvent(inbox, event)
  } catch (error) {
    inbox.state.lostAt = Date.now()
    notify(inbox, `No longer live: ${(error as Error).message}`)
  }
}

const showInbox = async (io: Io, to: ServerConnection): Promise<void> => {
  const { state, owner } = await readWhoami(io, to)
  const [{ render }, { createElement }, { InboxApp }] = await Promise.all([
    import('ink'),
    import('react'),
    import('./inbox/app.ts'),
  ])
  const listeners = new Set<() => void>()
  const stop = new AbortController()
  const keep = (): void => writeDrafts(io.env, owner, state.drafts)
  let keeping: NodeJS.Timeout | undefined
  const inbox: Inbox = {
    state,
    api: createApi(io, to),
    changed: () => listeners.forEach((listener) => listener()),
    keepDrafts: () => {
      clearTimeout(keeping)
      keeping = setTimeout(keep, KEEP_DRAFTS_AFTER_MS)
    },
    approvalsChanged: () => void loadApprovals(inbox),
    loads: 0,
    threadLoads: 0,
    timer: undefined,
  }
  const app = render(
    createElement(InboxApp, {
      inbox,
      color: hasColor(io),
      quit: () => app.unmount(),
      subscribe: (listener) => {
        listeners.add(listener)
        return () => listeners.delete(listener)
      },
    }),
    {
      stdin: io.stdin,
      stdout: io.stdout,
      exitOnCtrlC: false,
      patchConsole: false,
      interactive: true,
      alternateScreen: true,
      incrementalRendering: true,
    },
  )
  const end = (): void => app.unmount()
  for (const name of ['SIGTERM', 'SIGHUP', 'SIGINT'] as const) process.once(name, end)
  void loadList(inbox)
  void loadApprovals(inbox)
  const following = follow(io, to, inbox, stop.signal)
  try {
    await app.waitUntilExit()
  } finally {
    for (const name of ['SIGTERM', 'SIGHUP', 'SIGINT'] as const) process.off(name, end)
    stop.abort()
    clearTimeout(inbox.timer)
    clearTimeout(keeping)
    keep()
    app.cleanup()
    await following
  }
}

/** `wcrm inbox`: runs until it is left. Returns the exit code; 2 without a terminal. */
export const run = async (argv: string[], io: Io): Promise<number> => {
  try {
    const { values } = parseArgs({
      args: argv,
      options: { url: { type: 'string' }, help: { type: 'boolean', short: 'h' } },
    })
    if (values.help) {
      io.stdout.write(help)
      return 0
    }
    if (!isInteractive(io))
      throw usageError('The inbox needs a terminal. For scripts: wcrm conversations --help')
    const credentials = await loadCredentials(io.env, values.url, (message) => io.stderr.write(message))
    await showInbox(io, { ...credentials, version: readManifest().version })
    return 0
  } catch (error) {
    return await reportError(io, error, undefined, false)
  }
}
