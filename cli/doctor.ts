import { describeSource, isCredentialsError, loadCredentials, type LoadedCredentials } from './credentials.ts'
import { type Finding, finding, type Status } from './doctor/finding.ts'
import { isCliError } from './error.ts'
import type { LocalFlags } from './parsed-command.ts'
import type { Io } from './io.ts'
import { callOperation, requestHeaders, type ServerConnection } from './remote.ts'
import { type HttpResponse, sendRequest } from './transport.ts'
import { escapeControlCharacters } from './text.ts'
import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { renderCompletion, type Shell } from './completion.ts'
import type { Env } from './credentials-file.ts'
import { openKeychainEntry } from './keychain.ts'

type Channel = {
  id: string
  name: string | null
  type: string | null
  identifier: string | null
  is_default: boolean
  status: string
  quality_rating: string | null
  health: {
    status: string
    reason: string | null
    messaging_limit: string | null
    since: string | null
    until: string | null
  } | null
}
type Endpoint = {
  id: string
  url: string
  status: string
  consecutive_failures: number
  disabled_reason: string | null
}

const REACH_TIMEOUT_MS = 10_000
const SKEW_WARNING_MS = 30_000
/** Receivers of webhooks refuse signatures whose time differs by so much. */
const SKEW_PROBLEM_MS = 300_000
const EXPIRY_WARNING_MS = 14 * 86_400_000
const MAX_PAGES = 100

const readJson = async (response: HttpResponse): Promise<unknown> =>
  JSON.parse(await response.text()) as unknown

const describeError = (error: unknown): string =>
  isCliError(error) ? error.problem.detail : (error as Error).message

/** Whether the server can be reached and works, its version and its clock. */
const checkServer = async (to: ServerConnection): Promise<Finding[]> => {
  let response: HttpResponse
  const startedAt = Date.now()
  try {
    response = await sendRequest(to.io, `${to.url}/healthz`, {
      headers: requestHeaders({ ...to, key: undefined }),
      redirect: 'error',
      signal: AbortSignal.timeout(REACH_TIMEOUT_MS),
    })
  } catch (error) {
    const { cause, message } = error as Error & { cause?: { code?: string } }
    return [
      finding('server', 'problem', `${to.url} cannot be reached: ${cause?.code ?? message}.`, {
        fix: 'Start it with wcrm serve, or name another with --url or WCRM_URL.',
      }),
    ]
  }
  const endedAt = Date.now()
  const health = (await readJson(response).catch(() => ({}))) as { status?: string; version?: string }
  if (health.status !== 'ok')
    return [
      finding('server', 'problem', `${to.url} does not respond like a wcrm server (${response.status}).`, {
        fix: 'Check the URL, and the proxy in front of the server.',
      }),
    ]
  const isSame = health.version === undefined || health.version === to.version
  return [
    finding(
      'server',
      isSame ? 'ok' : 'warning',
      `${to.url} has version ${health.version ?? 'unknown'}; this command line has ${to.version}.`,
      isSame ? {} : { fix: 'Install the same version.' },
    ),
    await checkReadiness(to),
    checkClock(response.headers.get('date'), startedAt, endedAt),
  ]
}

const checkReadiness = async (to: ServerConnection): Promise<Finding> => {
  try {
    const response = await sendRequest(to.io, `${to.url}/readyz`, {
      redirect: 'error',
      signal: AbortSignal.timeout(REACH_TIMEOUT_MS),
    })
    const { status, detail } = (await readJson(response)) as { status?: string; detail?: string }
    return status === 'ready'
      ? finding('database', 'ok', 'The server is ready.')
      : finding(
          'database',
          'problem',
          `The server is ${status ?? 'not ready'}: ${detail ?? response.status}.`,
        )
  } catch (error) {
    return finding(
      'database',
      'problem',
      `The server does not say whether it is ready: ${describeError(error)}`,
    )
  }
}

/** Compares the server's clock, which shows whole seconds, with that of this machine. */
const checkClock = (date: string | null, startedAt: number, endedAt: number): Finding => {
  const theirs = Date.parse(date ?? '')
  if (Number.isNaN(theirs)) return finding('clock', 'skipped', 'The server does not report its time.')
  const skew = theirs > endedAt ? theirs - endedAt : Math.max(0, startedAt - (theirs + 1000))
  const seconds = Math.round(skew / 1000)
  const direction = theirs > endedAt ? 'ahead of' : 'behind'
  if (skew < SKEW_WARNING_MS)
    return finding('clock', 'ok', 'The clocks of the server and this machine agree.')
  return finding(
    'clock',
    skew < SKEW_PROBLEM_MS ? 'warning' : 'problem',
    `The server's clock is ${seconds} seconds ${direction} that of this machine.`,
    { fix: 'Synchronize both clocks (NTP); signatures of webhooks are refused beyond five minutes.' },
  )
}

type Whoami = {
  workspace: { id: string; name: string }
  staff: { name: string; role: string }
  key: { scopes: string[]; test: boolean; expires_at: string | null }
}

const checkKey = async (to: ServerConnection, source: string): Promise<Finding[]> => {
  if (to.key === undefined)
    return [
      finding('key', 'problem', `There is no API key for ${to.url}.`, {
        fix: 'Store one with wcrm login, or set WCRM_API_KEY.',
      }),
    ]
  const { workspace, staff, key } = (await callOperation(to, 'workspace_whoami', {}))
    .value as unknown as Whoami
  const expiresIn = key.expires_at === null ? Infinity : Date.parse(key.expires_at) - Date.now()
  const expires = key.expires_at === null ? '' : `; it expires at ${key.expires_at}`
  return [
    finding(
      'key',
      expiresIn < EXPIRY_WARNING_MS ? 'warning' : 'ok',
      `The key from ${source} is of ${staff.name} (${staff.role}) in workspace ${workspace.name} ` +
        `(${workspace.id})${key.test ? '; it is a test key, whose changes are dry runs' : ''}${expires}.`,
      expiresIn < EXPIRY_WARNING_MS ? { fix: 'Replace it on the server: wcrm admin keys rotate.' } : {},
    ),
  ]
}

/** Fetches all rows of a list. */
const fetchRows = async <Row>(to: ServerConnection, operation: string): Promise<Row[]> => {
  const rows: Row[] = []
  let cursor: string | null = null
  for (let page = 0; page < MAX_PAGES; page++) {
    const input = { limit: 100, ...(cursor === null ? {} : { cursor }) }
    const { value } = await callOperation(to, operation, input)
    const { data, next_cursor: next } = value as { data: Row[]; next_cursor: string | null }
    rows.push(...data)
    if (next === null) break
    cursor = next
  }
  return rows
}

const checkChannel = (channel: Channel): Finding => {
  const { id, name, identifier, status, health, type, is_default, quality_rating: quality } = channel
  const facts = [
    status,
    ...(health && health.status !== 'ok' ? [`${health.status} at the provider: ${health.reason}`] : []),
    ...(health?.since != null && health.status !== 'ok' ? [`since ${health.since}`] : []),
    ...(health?.until != null ? [`until ${health.until}`] : []),
    ...(quality === null ? [] : [`quality ${quality}`]),
    ...(health?.messaging_limit != null ? [`limit ${health.messaging_limit}`] : []),
    ...(is_default ? ['default channel'] : []),
  ]
  const isBroken =
    status === 'disconnected' ||
    (health !== null && health.status !== 'ok') ||
    (is_default && status !== 'connected')
  const isDoubtful = status !== 'connected' || quality === 'RED' || quality === 'YELLOW'
  const label = [name, identifier].filter((text) => text !== null).join(', ')
  return finding(
    'channel',
    isBroken ? 'problem' : isDoubtful ? 'warning' : 'ok',
    `${label === '' ? type : label}: ${facts.join('; ')}.`,
    { about: id, ...(isBroken ? { fix: fixOfReason(health?.reason ?? null) } : {}) },
  )
}

const fixes: Readonly<Record<string, string>> = {
  token_revoked:
    'Renew the access token: wcrm admin accounts update ACCOUNT --token @FILE, or WCRM_PROVIDER_TOKEN.',
  permission_missing: 'Grant the token the permission to send messages at the provider.',
  throughput: 'Send more slowly; the limit is temporary.',
  pair_rate: 'Send more slowly to one customer; the limit is temporary.',
  api_rate_limit: 'Call less often; the limit is temporary.',
  spam_rate_limit: 'Send fewer messages that customers block or report; the limit is temporary.',
  payment_missing: 'Add a payment method to the business account at the provider.',
}

const fixOfReason = (reason: string | null): string =>
  (reason !== null ? fixes[reason] : undefined) ??
  'See the state of the number and its business account at the provider (docs/provider.md).'

const checkEndpoint = (endpoint: Endpoint): Finding => {
  const { id, url, status, consecutive_failures: failures, disabled_reason: reason } = endpoint
  const isByHand = status === 'disabled' && reason === 'manual'
  const isBroken = !isByHand && status !== 'active'
  return finding(
    'webhook',
    isBroken ? 'problem' : isByHand || failures > 0 ? 'warning' : 'ok',
    `${url} is ${status}${reason === null ? '' : ` (${reason})`}` +
      `${failures > 0 ? `; its last ${failures === 1 ? 'delivery' : `${failures} deliveries`} failed` : ''}.`,
    { about: id, ...(isBroken || failures > 0 ? { fix: `See: wcrm webhooks deliveries ${id}` } : {}) },
  )
}

/** Runs a check that the key may not be permitted to make, or that fails with the server. */
const attempt = async (check: string, run: () => Promise<Finding[]>): Promise<Finding[]> => {
  try {
    return await run()
  } catch (error) {
    const isForbidden = isCliError(error) && ['forbidden', 'insufficient_scope'].includes(error.problem.code)
    return [finding(check, isForbidden ? 'skipped' : 'problem', describeError(error))]
  }
}

/** All findings, in the order of the checks. What needs the server is left out without it. */
const runChecks = async (to: ServerConnection, source: string): Promise<Finding[]> => {
  const server = await checkServer(to)
  if (server[0]!.status === 'problem') return server
  const key = await attempt('key', () => checkKey(to, source))
  if (key[0]!.status === 'problem') return [...server, ...key]
  return [
    ...server,
    ...key,
    ...(await attempt('channel', async () =>
      (await fetchRows<Channel>(to, 'workspace_channels')).map(checkChannel),
    )),
    ...(await attempt('webhook', async () =>
      (await fetchRows<Endpoint>(to, 'webhooks_list_endpoints')).map(checkEndpoint),
    )),
  ]
}

const marks: Readonly<Record<Status, string>> = {
  ok: 'ok',
  warning: 'WARNING',
  problem: 'PROBLEM',
  skipped: 'skipped',
}

const formatFinding = ({ check, about, status, detail, fix }: Finding): string =>
  `${marks[status].padEnd(8)} ${about === null ? check : `${check} ${about}`}: ` +
  [detail, ...(fix === undefined ? [] : [fix])].map(escapeControlCharacters).join('\n         ') +
  '\n'

const printFindings = (
  { io, json }: { io: Io; json: boolean },
  about: object,
  findings: readonly Finding[],
): number => {
  const ok = findings.every(({ status }) => status !== 'problem')
  io.stdout.write(
    json ? `${JSON.stringify({ ok, ...about, findings })}\n` : findings.map(formatFinding).join(''),
  )
  return ok ? 0 : 1
}

/**
 * `wcrm doctor`: checks Node, the keychain and the completion scripts of this machine, the server, the key, the
 * clocks, and the channels and webhook endpoints that the key may see. Returns the exit code: 0 without problems, 1
 * with some. The report is printed either way.
 */
export const doctor = async (io: Io, { url: givenUrl, json, version }: LocalFlags): Promise<number> => {
  const machine = await checkMachine(io)
  let loaded: LoadedCredentials
  try {
    loaded = await loadCredentials(io.env, givenUrl, (message) => io.stderr.write(message))
  } catch (error) {
    if (!isCredentialsError(error)) throw error
    return printFindings({ io, json }, {}, [
      ...machine,
      finding('key', 'problem', describeError(error), { fix: (error as { hint?: string }).hint ?? '' }),
    ])
  }
  const { url, key } = loaded
  const source = describeSource(loaded, io.env)
  const findings = [...machine, ...(await runChecks({ io, url, key, version }, source))]
  return printFindings({ io, json }, { url, key_source: key === undefined ? null : source }, findings)
}

/** The oldest Node that runs the client; `engines` of the package. */
const OLDEST_NODE = 22

/** Whether this Node is one that the command line is tested with. */
export const checkNode = (version: string): Finding =>
  Number(version.split('.')[0]) >= OLDEST_NODE
    ? finding('node', 'ok', `Node ${version}.`)
    : finding('node', 'problem', `Node ${version} is too old: it needs ${OLDEST_NODE} or newer.`, {
        fix: 'Install a newer one: https://nodejs.org',
      })

/** An entry that nothing stores: reading it shows whether the keychain can be read. */
const PROBE = 'wcrm doctor'

/** Whether keys can be kept in the keychain of the system. A locked one may ask its owner. */
const checkKeychain = async (env: Env): Promise<Finding> => {
  if (env['WCRM_KEYCHAIN'] === 'off')
    return finding('keychain', 'ok', 'It is switched off by WCRM_KEYCHAIN: keys are kept in a file.')
  try {
    await (await openKeychainEntry(PROBE, env)).read()
    return finding('keychain', 'ok', 'It can be read.')
  } catch (error) {
    const reason = (error as Error).message.replace(/\.$/, '')
    return finding('keychain', 'warning', `It cannot be read: ${reason}. Keys are kept in a file.`, {
      fix: 'Unlock it, or set WCRM_KEYCHAIN=off on a machine without one, such as a server.',
    })
  }
}

/** Where the shells look for completion scripts, those of this person first. */
const listCompletionFiles = (env: Env): (readonly [Shell, string])[] => {
  const home = env['HOME'] || homedir()
  const data = env['XDG_DATA_HOME'] || join(home, '.local', 'share')
  const config = env['XDG_CONFIG_HOME'] || join(home, '.config')
  return [
    ['bash', join(data, 'bash-completion', 'completions', 'wcrm')],
    ['bash', '/usr/local/share/bash-completion/completions/wcrm'],
    ['bash', '/usr/share/bash-completion/completions/wcrm'],
    ['bash', '/etc/bash_completion.d/wcrm'],
    ['zsh', join(home, '.zfunc', '_wcrm')],
    ['zsh', join(home, '.zsh', 'completions', '_wcrm')],
    ['zsh', '/usr/local/share/zsh/site-functions/_wcrm'],
    ['zsh', '/usr/share/zsh/site-functions/_wcrm'],
    ['fish', join(config, 'fish', 'completions', 'wcrm.fish')],
    ['fish', '/usr/share/fish/vendor_completions.d/wcrm.fish'],
  ]
}

const readIfThere = (path: string): string | undefined => {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

/** Compares the completion scripts that are installed with those of this version; none are no finding. */
const checkCompletions = (env: Env): Finding[] =>
  listCompletionFiles(env).flatMap(([shell, path]) => {
    const installed = readIfThere(path)
    if (installed === undefined) return []
    return installed.trimEnd() === renderCompletion(shell).trimEnd()
      ? [finding('completion', 'ok', `${path} is of this version.`, { about: shell })]
      : [
          finding('completion', 'warning', `${path} is of another version: it may complete nothing.`, {
            about: shell,
            fix: `Renew it: wcrm completion ${shell} > ${path}`,
          }),
        ]
  })

/** What concerns this machine alone, whatever the server is. */
const checkMachine = async ({ env }: Io): Promise<Finding[]> => [
  checkNode(process.versions.node),
  await checkKeychain(env),
  ...checkCompletions(env),
]
