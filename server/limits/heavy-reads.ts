import { isHeavy } from '../kernel/heavy.ts'
import { pluralize } from '../../catalog/values.ts'
import { clientGoneError, type ClientPresence } from '../../storage/client/client-presence.ts'
import type { App } from '../app.ts'
import type { Actor } from '../kernel/context.ts'
import type { HeavyTurn, HeavyTurns } from './heavy-turns.ts'
import { Problem } from '../kernel/problem.ts'
import type { Guard } from '../kernel/guard.ts'

/*
 * Expensive reads (`heavy` in the catalog) run over connections of their own, a few at a time, so that
 * whatever they take, other calls find a connection and a processor. Their turns are shared fairly: one key
 * leaves turns to the others of its workspace, and one workspace to the other workspaces.
 */

/** Expensive reads that may wait for a turn. Those beyond are refused at once. */
const MAX_WAITING = { key: 32, workspace: 64, server: 256 }
const MAX_WAIT_MS = 5_000
/** A key whose reads take longer than this on average has one turn at a time. */
const SLOW_READ_MS = 50
/** For so many turns after its last one a turn is left to another workspace. */
const TURNS_OF_OTHERS = 1000
const MAX_REMEMBERED_KEYS = 10_000

type Scope = 'key' | 'workspace' | 'server'
const policies: Record<Scope, string> = {
  key: 'expensive-reads',
  workspace: 'workspace-expensive-reads',
  server: 'server-expensive-reads',
}

const SCOPES = ['key', 'workspace', 'server'] as const

const countOf = (turns: HeavyTurns, scope: Scope, { keyId, workspaceId }: HeavyTurn): number =>
  scope === 'server' ? turns.size : turns.count(scope === 'key' ? keyId : workspaceId)

/** Whether no other workspace has had a turn of late, has one or waits for one. */
const isAlone = ({ heavyReadQueue }: App, { workspaceId }: HeavyTurn): boolean => {
  const { running, waiting, turns } = heavyReadQueue
  return (
    (turns.workspaceId ?? workspaceId) === workspaceId &&
    turns.count - turns.mixed > TURNS_OF_OTHERS &&
    running.count(workspaceId) === running.size &&
    waiting.count(workspaceId) === waiting.size
  )
}

/**
 * How many turns at a time the server has, or a workspace or key may have: one is left to the others. Where there are
 * no other workspaces, a key whose reads are fast takes that one too.
 */
const getLimit = (app: App, scope: Scope, turn: HeavyTurn): number => {
  const { heavyReads, heavyReadQueue } = app
  if (scope === 'server') return heavyReads
  const isSlow = (heavyReadQueue.meanMs.get(turn.keyId) ?? 0) > SLOW_READ_MS
  if (scope === 'key' && isSlow) return 1
  if (scope === 'workspace' && !isSlow && isAlone(app, turn)) return heavyReads
  return Math.max(1, heavyReads - 1)
}

/** Returns whose turns are all taken; undefined when this read may run. */
const findFull = (app: App, turn: HeavyTurn): Scope | undefined =>
  SCOPES.find((scope) => countOf(app.heavyReadQueue.running, scope, turn) >= getLimit(app, scope, turn))

/** Whether `a` comes before `b`: the workspace, then the key, with the fewest turns, then whose last was longer ago. */
const isBefore = ({ heavyReadQueue }: App, a: HeavyTurn, b: HeavyTurn): boolean => {
  const { running, lastTurn } = heavyReadQueue
  const byRunning =
    running.count(a.workspaceId) - running.count(b.workspaceId) ||
    running.count(a.keyId) - running.count(b.keyId)
  if (byRunning !== 0) return byRunning < 0
  const last = (id: string): number => lastTurn.get(id) ?? 0
  return (last(a.workspaceId) - last(b.workspaceId) || last(a.keyId) - last(b.keyId)) < 0
}

/** Returns the read whose turn it is. Of each key the one that has waited longest is looked at. */
const findNext = (app: App): HeavyTurn | undefined => {
  const { running, waiting } = app.heavyReadQueue
  if (running.size >= app.heavyReads) return undefined
  const keys = new Set<string>()
  let next: HeavyTurn | undefined
  for (const turn of waiting.values()) {
    if (keys.has(turn.keyId)) continue
    keys.add(turn.keyId)
    if ((!next || isBefore(app, turn, next)) && findFull(app, turn) === undefined) next = turn
  }
  return next
}

/** Starts those that wait while there is room. */
const startWaiting = (app: App): void => {
  for (let next = findNext(app); next; next = findNext(app)) {
    app.heavyReadQueue.waiting.delete(next)
    if (next.reader?.isGone()) next.drop()
    else next.start()
  }
}

/** Drops the reads whose clients are gone. */
const dropAbandoned = ({ heavyReadQueue: { waiting } }: App): void => {
  for (const turn of waiting.values()) {
    if (!turn.reader?.isGone()) continue
    waiting.delete(turn)
    turn.drop()
  }
}

const remember = <T>(map: Map<string, T>, key: string, value: T): void => {
  map.delete(key)
  map.set(key, value)
  if (map.size > MAX_REMEMBERED_KEYS) map.delete(map.keys().next().value!)
}

const finish = (app: App, turn: HeavyTurn): void => {
  const { running, meanMs } = app.heavyReadQueue
  if (!running.delete(turn)) return
  const tookMs = performance.now() - turn.startedAt
  remember(meanMs, turn.keyId, ((meanMs.get(turn.keyId) ?? tookMs) * 3 + tookMs) / 4)
  startWaiting(app)
}

const createBusyProblem = (app: App, turn: HeavyTurn, full: Scope): Problem => {
  const turns = getLimit(app, full, turn)
  const owner = { key: 'this key', workspace: 'this workspace', server: 'this server' }[full]
  return new Problem(
    'rate_limited',
    `${pluralize(turns, 'expensive read')} of ${owner} may run at a time, and too many wait: ` +
      'searches, counts, filters, reports and filtered logs. Send them one after another.',
    { violated_policies: [policies[full]] },
    { 'Retry-After': String(Math.ceil(MAX_WAIT_MS / 1000)) },
  )
}

/**
 * Waits for the turn of an expensive read. Returns the function that ends it. Throws 429 when too many wait,
 * or for too long.
 */
export const takeHeavyTurn = (
  app: App,
  { key, workspace }: Actor,
  reader?: ClientPresence,
): Promise<() => void> => {
  const { running, waiting, lastTurn, turns } = app.heavyReadQueue
  return new Promise((resolve, reject) => {
    const turn: HeavyTurn = {
      reader,
      keyId: `key:${key.id}`,
      workspaceId: `workspace:${workspace.id}`,
      startedAt: 0,
      start: () => {
        clearTimeout(timer)
        turn.startedAt = performance.now()
        running.add(turn)
        turns.count++
        if (turns.workspaceId !== undefined && turns.workspaceId !== turn.workspaceId)
          turns.mixed = turns.count
        turns.workspaceId = turn.workspaceId
        for (const id of [turn.keyId, turn.workspaceId]) remember(lastTurn, id, turns.count)
        resolve(() => finish(app, turn))
      },
      drop: () => {
        clearTimeout(timer)
        reject(clientGoneError())
      },
    }
    const findCrowded = () => SCOPES.find((scope) => countOf(waiting, scope, turn) >= MAX_WAITING[scope])
    if (findCrowded()) dropAbandoned(app)
    const crowded = findCrowded()
    if (crowded) return reject(createBusyProblem(app, turn, crowded))
    const timer = setTimeout(() => {
      waiting.delete(turn)
      if (reader?.isGone()) return turn.drop()
      reject(createBusyProblem(app, turn, findFull(app, turn) ?? 'server'))
    }, MAX_WAIT_MS)
    waiting.add(turn)
    startWaiting(app)
  })
}

/**
 * A call that reads, checks or counts what is expensive has a turn of its own, which ends with its work, even when a
 * deadline comes first.
 */
export const heavyTurns: Guard<App> = {
  before: async (app, { actor, op, input, kind, request, onEnd }) => {
    if (!isHeavy(op, input)) return
    const endTurn = await takeHeavyTurn(app, actor, kind === 'read' ? request.presence : undefined)
    onEnd(({ work = Promise.resolve() }) => {
      void work.catch(() => {}).finally(endTurn)
    })
  },
}
