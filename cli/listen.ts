import { Command } from 'commander'
import { runCommandTree } from './command-tree.ts'
import { loadCredentials } from './credentials.ts'
import { isCliError, usageError } from './error.ts'
import { type StreamedEvent, streamEvents } from './event-stream.ts'
import { abortOnStop } from './follow.ts'
import { type Io, writeOut } from './io.ts'
import { watchConnection } from './listen/catch-up.ts'
import { forwardEvent, type Outcome, type Target } from './listen/forward.ts'
import {
  isSigningSecret,
  type ListenState,
  readState,
  type Start,
  statePath,
  writeState,
} from './listen/state.ts'
import { readManifest } from './manifest.ts'
import { callOperation, type ServerConnection } from './remote.ts'
import { parseSince, type Since } from './since.ts'
import { formatCell, formatTsv } from './text.ts'
import { createArgumentReader } from './values.ts'

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
  io: Io,
  to: ServerConnection,
  since: Since | undefined,
  { start }: ListenState,
): Promise<Start> => {
  if (since === undefined && start !== undefined) return start
  if (since !== undefined && since !== 'now' && 'after' in since) return since
  const { value, clock } = await callOperation(io, to, 'events_list', { after: 'now' })
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

/** Forwards until it is stopped. Each event is dealt with, then noted, then the next one is taken. */
const forwardAll = async (
  io: Io,
  { to, types, start, path, state, target, json }: Session,
): Promise<void> => {
  const { signal, unsubscribe } = abortOnStop()
  const say = (text: string): void => void io.stderr.write(text)
  const watch = watchConnection(io, to, types, start.after, say)
  // Before it is printed: who sees the line may end this process.
  const note = ({ id }: StreamedEvent): void => writeState(path, { ...state, start: { after: String(id) } })
  const counts = { accepted: 0, refused: 0 }
  const input = {
    ...(types ? { types } : {}),
    ...(start.after === undefined ? {} : { after: start.after }),
    ...(start.from === undefined ? {} : { from: new Date(start.from).toISOString() }),
  }
  try {
    for await (const event of streamEvents(io, to, input, { signal, onConnection: watch.connection })) {
      watch.begin()
      if (start.from === undefined || Date.parse(String(event['occurred_at'])) >= start.from) {
        const outcome = target ? await forwardEvent(io, target, event, signal, say) : undefined
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
  const to = { url, key, version }
  const { workspace } = (await callOperation(io, to, 'workspace_whoami', {})).value as {
    workspace: { id: string; name: string }
  }
  const path = statePath(io.env, [url, workspace.id, targetUrl, types?.toSorted().join(',')])
  const stored = readState(path)
  const state = given === undefined ? stored : { ...stored, secret: given }
  const start = await findStart(io, to, since, stored)
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
export const run = (argv: string[], io: Io): Promise<number> =>
  runCommandTree(createCommand(io), argv.length > 0 ? argv : ['--'], io)
