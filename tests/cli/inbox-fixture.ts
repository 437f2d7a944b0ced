import type { Key } from 'ink'
import { type Api, createApi } from '../../cli/inbox/api.ts'
import { type Inbox, loadList } from '../../cli/inbox/data.ts'
import { pressKey } from '../../cli/inbox/keys.ts'
import { drawScreen } from '../../cli/inbox/screen.ts'
import { createState } from '../../cli/inbox/state.ts'
import type { TestServer, TestWorkspace } from '../servers.ts'

export const noKey = new Proxy({} as Key, { get: () => false })
export const named = (...names: (keyof Key)[]): Key =>
  new Proxy({} as Key, { get: (_, name) => names.includes(name as keyof Key) })

export const makeConversation = (name: string, words: string) => ({
  id: '1',
  state: 'open' as const,
  contact: { id: '1', name, phone: '15550100042' },
  channel: { id: '1', name: words, type: 'chatapp' },
  assignee: null,
  team_id: null,
  reply_status: 'incoming_no_reply',
  tags: [{ name: words }],
  unread_count: 1,
  waiting_since: '2026-10-01T09:30:00.000Z',
  sla: { status: 'breached' },
  window: { closes_at: '2026-10-01T10:30:00.000Z' },
  can_reply: true,
  last_message: { text: words, type: 'TEXT', direction: 'inbound', status: 'received' },
})

type Owner = { key: string; staffId: string }

/** An inbox without a terminal: its keys and its screen. `wrap` may come between it and the server. */
export const openInbox = async (
  server: TestServer,
  workspace: TestWorkspace,
  {
    owner = workspace.owner,
    wrap = (api) => api,
    scopes = ['mcp:read', 'inbox:write', 'messaging:write'],
  }: { owner?: Owner; wrap?: (api: Api) => Api; scopes?: string[] } = {},
) => {
  const io = { stdin: process.stdin, stdout: process.stdout, stderr: process.stderr, env: {} }
  const calls: Promise<unknown>[] = []
  const copied: string[] = []
  let watcher: (() => void) | undefined
  const api = wrap(createApi({ io, url: server.url, key: owner.key, version: '0' }))
  const inbox: Inbox = {
    state: createState(
      {
        me: { staffId: owner.staffId, name: 'Mara', workspace: 'Demo', test: false, hidesPhones: false },
        scopes,
        zone: 'UTC',
        clockOffset: 0,
      },
      new Map(),
    ),
    api: (...call) => {
      const called = api(...call)
      calls.push(called.catch(() => {}))
      return called
    },
    changed: () => watcher?.(),
    keepDrafts: () => {},
    approvalsChanged: () => {},
    loads: 0,
    threadLoads: 0,
    turn: Promise.resolve(),
    waiting: undefined,
    isLoadingMore: false,
    read: [],
    changedIds: new Set(),
    copy: (text) => void copied.push(text),
    runCommand: async (words) => ({ printed: words.join(' '), exitCode: 0 }),
    timer: undefined,
    limitTimer: undefined,
    countedAt: Infinity,
  }
  /** Waits until no call is under way, and none follows from those. */
  const settle = async (): Promise<void> => {
    do {
      await Promise.all(calls.splice(0))
      await new Promise((resolve) => setImmediate(resolve))
    } while (calls.length > 0)
  }
  const press = async (input: string, key: Key = noKey): Promise<void> => {
    pressKey(inbox, input, key, { quit: () => {}, suspend: () => {}, width: 120, height: 24 })
    await settle()
  }
  const screen = (width = 120, height = 24): string =>
    drawScreen(inbox.state, { width, height, color: false }).join('\n')
  /** Resolves once the state is as wanted. */
  const until = (isWanted: () => boolean): Promise<void> =>
    new Promise((resolve) => {
      watcher = () => isWanted() && resolve()
    })
  await loadList(inbox)
  return { inbox, press, screen, until, copied }
}
