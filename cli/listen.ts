import { Command } from 'commander'
import { runOneCommand } from './command-tree.ts'
import { loadCredentials } from './credentials.ts'
import { isCliError, usageError } from './error.ts'
import { type StreamedEvent, streamEvents } from './event-stream.ts'
import { abortOnStop } from './follow.ts'
import { type Io, writeOut } from './io.ts'
import { watchConnection } from './listen/catch-up.ts'
import { readManifest } from './manifest.ts'
import { callOperation, type ServerConnection } from './remote.ts'
import { parseSince, type Since } from './since.ts'
import { formatCell, formatTsv } from './text.ts'
import { createArgumentReader } from './values.ts'
import { createHash, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { makePrivate, writePrivateFile } from './files.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import { signatureHeaders } from '../catalog/webhooks/sign.ts'
import { sendRequest } from './transport.ts'

type ListenFlags = {
  readonly forwardTo?: string
  readonly since?: string
  readonly events?: string
  readonly secret?: string
  readonly attempts: string
  readonly url?: string
  readonly json?: boolean
}

/** Parses the address of the receiver; without a scheme it is http. Never quotes what may hold a password. */
const parseTargetUrl = (text: string): string => {
  const url = URL.parse(/^[a-z]+:\/\//i.test(text) ? text : `http://${text}`)
  if (url && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '') return url.href
  throw usageError(
    'The target must be an http(s) URL without a user.',
    '--forward-to',
    'For example --forward-to http://localhost:3000/hooks.',
  )
}

const parseAttempts = (text: string): number => {
  if (/^[1-9]\d?$/.test(text)) return Number(text)
  throw usageError(`--attempts must be a number from 1 to 99, not "${text}".`, '--attempts')
}

/** Finds where to begin: without `--since` after the last event of the last time, else with what happens now. */
const findStart = async (
  to: ServerConnection,
  since: Since | undefined,
  { start }: ListenState,
): Promise<Start> => {
  if (since === undefined && start !== undefined) return start
  if (since !== undefined && since !== 'now' && 'after' in since) return since
  const { value, clock } = await callOperation(to, 'events_list', { after: 'now' })
  return since === undefined || since === 'now'
    ? { after: (value['next_cursor'] as string | null) ?? undefined }
    : { from: (clock?.now ?? Date.now()) - since.agoMs }
}

const readSecret = async (io: Io, given: string, flag: string): Promise<string> => {
  const secret = (await createArgumentReader(io)(given, flag)).trim()
  if (isSigningSecret(secret)) return secret
  throw usageError(`${flag} is no signing secret: whsec_ and base64.`, flag, 'Leave it out to have one made.')
}

const formatLine = (event: StreamedEvent, outcome: Outcome | undefined, json: boolean): string => {
  const { occurred_at: time, type, id } = event
  if (json)
    return `${JSON.stringify({ time, type, id, ...outcome, ...(outcome ? {} : { data: event['data'] }) })}\n`
  const status = outcome ? `${outcome.status ?? 'none'} ${outcome.ms} ms` : ''
  return formatTsv([{ time, type, id, status }], ['time', 'type', 'id', 'status'])
}

type Session = {
  readonly to: ServerConnection
  readonly types: string[] | undefined
  readonly start: Start
  readonly path: string
  readonly state: ListenState
  readonly target: Target | undefined
  readonly json: boolean
}

/** Forwards until it is stopped. Each event is forwarded, then recorded, before the next one is read. */
const forwardAll = async (
  io: Io,
  { to, types, start, path, state, target, json }: Session,
): Promise<void> => {
  const { signal, unsubscribe } = abortOnStop()
  const say = (text: string): void => void io.stderr.write(text)
  const watch = watchConnection({ to, types }, start.after, say)
  // Before it is printed: who sees the line may end this process.
  const note = ({ id }: StreamedEvent): void => writeState(path, { ...state, start: { after: String(id) } })
  const counts = { accepted: 0, refused: 0 }
  const input = {
    ...(types ? { types } : {}),
    ...(start.after === undefined ? {} : { after: start.after }),
    ...(start.from === undefined ? {} : { from: new Date(start.from).toISOString() }),
  }
  try {
    for await (const event of streamEvents(to, input, { signal, onConnection: watch.connection })) {
      watch.begin()
      if (start.from === undefined || Date.parse(String(event['occurred_at'])) >= start.from) {
        const outcome = target ? await forwardEvent({ io, target, signal, warn: say }, event) : undefined
        if (signal.aborted) break
        note(event)
        counts[outcome && !(outcome.status! < 300) ? 'refused' : 'accepted']++
        await writeOut(io, formatLine(event, outcome, json))
      }
      watch.end(event)
    }
  } catch (error) {
    if (isCliError(error) && error.problem.code === 'not_found')
      Object.assign(error, {
        hint: 'The event to continue after was deleted. Start again with --since now or --since 1d.',
      })
    throw error
  } finally {
    unsubscribe()
    await watch.settle()
  }
  say(`${target ? 'Forwarded' : 'Printed'} ${counts.accepted}, refused ${counts.refused}.\n`)
}

const listen = async (io: Io, flags: ListenFlags): Promise<void> => {
  const targetUrl = flags.forwardTo === undefined ? undefined : parseTargetUrl(flags.forwardTo)
  const attempts = parseAttempts(flags.attempts)
  const since = flags.since === undefined ? undefined : parseSince(flags.since)
  const types = flags.events?.split(',').map((type) => type.trim())
  const given = flags.secret === undefined ? undefined : await readSecret(io, flags.secret, '--secret')
  const { version } = readManifest()
  const { url, key } = await loadCredentials(io.env, flags.url, (text) => io.stderr.write(text))
  const to = { io, url, key, version }
  const { workspace } = (await callOperation(to, 'workspace_whoami', {})).value as {
    workspace: { id: string; name: string }
  }
  const path = statePath(io.env, [url, workspace.id, targetUrl, types?.toSorted().join(',')])
  const stored = readState(path)
  const state = given === undefined ? stored : { ...stored, secret: given }
  const start = await findStart(to, since, stored)
  writeState(path, { ...state, start })
  const { currentVersion } = await import('../catalog/index.ts')
  const target = targetUrl && {
    url: targetUrl,
    secret: state.secret,
    workspaceId: workspace.id,
    apiVersion: currentVersion,
    attempts,
  }
  const begin =
    start.from !== undefined
      ? `the last ${flags.since}`
      : start.after === undefined
        ? 'now'
        : `after ${start.after}`
  const signedWith = given === undefined ? state.secret : 'the given secret'
  const destination = target ? `, to ${target.url}, signed with ${signedWith}` : ''
  io.stderr.write(`Events of ${formatCell(workspace.name)}, ${begin}${destination}. Ctrl-C ends it.\n`)
  await forwardAll(io, {
    to,
    types,
    start,
    path,
    state,
    target: target || undefined,
    json: flags.json === true,
  })
}

/** The command with its flags, also for its manual page. */
export const createCommand = (io: Io): Command =>
  new Command('wcrm listen')
    .description(
      'Forward events to a URL on this machine or network, signed like webhooks, in order, until Ctrl-C. ' +
        'Continues where the last run ended, and reconnects automatically.',
    )
    .option('--forward-to <url>', 'the target; without it events are only printed')
    .option(
      '--since <start>',
      'now, the id of an event, or a duration such as 1h (default: where the last run ended)',
    )
    .option('--events <types>', 'only these types, separated by commas')
    .option('--secret <whsec>', 'the signing secret, or @file (default: generated and stored)')
    .option('--attempts <n>', 'attempts for each event if the target responds with an error', '5')
    .option('--url <url>', 'base URL of the server (also WCRM_URL)')
    .option('--json', 'print a line of JSON for each event')
    .action((flags: ListenFlags) => listen(io, flags))

/** `wcrm listen`: forwards events to an address, as an endpoint gets them, until Ctrl-C. Returns the exit code. */
export const run = (argv: string[], io: Io): Promise<number> => runOneCommand(createCommand, argv, io)

/**
 * Where to begin: after an event (the last one forwarded), else with the oldest one; `from` leaves out those
 * before a time of the workspace, in milliseconds.
 */
type Start = { readonly after?: string | undefined; readonly from?: number }

/** The state of `wcrm listen` for its next start; no `start` on the first one. */
type ListenState = { readonly secret: string; readonly start?: Start | undefined }

/** Returns the path of the state: each server, workspace, target and list of types has its own. */
const statePath = (env: Io['env'], subject: readonly (string | undefined)[]): string => {
  const folder = env['XDG_STATE_HOME'] || join(env['HOME'] || homedir(), '.local', 'state')
  const name = createHash('sha256').update(JSON.stringify(subject)).digest('hex').slice(0, 16)
  return join(folder, 'wcrm', `listen-${name}.json`)
}

const SECRET = /^whsec_[A-Za-z0-9+/]{32,}={0,2}$/

/** True for a signing secret as endpoints have it. */
const isSigningSecret = (text: string): boolean => SECRET.test(text)

/** Reads the state; a new secret alone where there is none. */
const readState = (path: string): ListenState => {
  try {
    makePrivate(path)
    const { secret, start } = JSON.parse(readFileSync(path, 'utf8')) as Partial<ListenState>
    if (typeof secret === 'string' && isSigningSecret(secret))
      return { secret, ...(typeof start === 'object' ? { start } : {}) }
  } catch {
    /* There is none yet, or it is broken: listening begins with what happens now. */
  }
  return { secret: `whsec_${randomBytes(32).toString('base64')}` }
}

const writeState = (path: string, state: ListenState): void =>
  writePrivateFile(path, `${JSON.stringify(state)}\n`)

type Target = {
  readonly url: string
  readonly secret: string
  readonly workspaceId: string
  readonly apiVersion: string
  /** How often a target that answers with an error gets an event. */
  readonly attempts: number
}

/** The outcome of an event: the status of the last answer, null when there was none. */
type Outcome = { readonly status: number | null; readonly attempts: number; readonly ms: number }

const TIMEOUT_MS = 15_000
const FIRST_RETRY_MS = 500
const MAX_RETRY_MS = 30_000

/** The body that an endpoint gets (docs/webhooks.md). */
const buildBody = (event: StreamedEvent, { workspaceId, apiVersion }: Target): string => {
  const type = String(event['type'])
  const slash = type.lastIndexOf('/')
  return JSON.stringify({
    id: event['id'],
    type: type.slice(0, slash),
    version: type.slice(slash + 1),
    api_version: apiVersion,
    occurred_at: event['occurred_at'],
    company_id: workspaceId,
    data: event['data'],
  })
}

type Forwarding = {
  readonly io: Io
  readonly target: Target
  readonly signal: AbortSignal
  readonly warn: (text: string) => void
}

/** Makes one attempt. Returns the status of the answer; the code of the error when there was none. */
const attempt = async (
  { io, target, signal }: Forwarding,
  { event, body }: { event: StreamedEvent; body: string },
  count: number,
): Promise<number | string> => {
  const id = String(event['id'])
  const unread = new AbortController()
  try {
    const response = await sendRequest(io, target.url, {
      method: 'POST',
      body,
      headers: {
        'content-type': 'application/json',
        'user-agent': 'wcrm-webhooks/1',
        'wc-event-type': String(event['type']),
        'wc-attempt': String(count),
        ...signatureHeaders([target.secret], id, Math.floor(Date.now() / 1000), body),
      },
      redirect: 'manual',
      signal: AbortSignal.any([signal, unread.signal, AbortSignal.timeout(TIMEOUT_MS)]),
    })
    const { status } = response
    // Only the status of the answer is used.
    unread.abort()
    return status
  } catch (error) {
    const { name, message, cause } = error as Error & { cause?: { code?: string } }
    return name === 'TimeoutError' ? `no answer within ${TIMEOUT_MS / 1000} s` : (cause?.code ?? message)
  }
}

/**
 * Sends an event to the target until it is accepted. A target that answers with an error gets it again so many
 * times; one that is not there is waited for. Undefined when the signal ended it before.
 */
const forwardEvent = async (forwarding: Forwarding, event: StreamedEvent): Promise<Outcome | undefined> => {
  const { target, signal, warn } = forwarding
  const body = buildBody(event, target)
  let answers = 0
  for (let count = 1; ; count++) {
    const startedAt = performance.now()
    const answer = await attempt(forwarding, { event, body }, count)
    if (signal.aborted) return undefined
    const status = typeof answer === 'number' ? answer : null
    if (status !== null) answers++
    const isDone = status !== null && status >= 200 && status < 300
    if (isDone || answers >= target.attempts)
      return { status, attempts: count, ms: Math.round(performance.now() - startedAt) }
    const delay = Math.min(MAX_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(count - 1, 10))
    warn(`${String(event['id'])}: ${status ?? answer}, again in ${delay / 1000} s.\n`)
    await sleep(delay, undefined, { signal }).catch(() => {})
    if (signal.aborted) return undefined
  }
}
