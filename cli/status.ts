import { Command } from 'commander'
import { runOneCommand } from './command-tree.ts'
import { loadCredentials } from './credentials.ts'
import { credentialsPath } from './credentials-file.ts'
import type { Io } from './io.ts'
import { readManifest } from './manifest.ts'
import { callOperation, requestHeaders, type ServerConnection } from './remote.ts'
import { printResult } from './result.ts'
import { sendRequest } from './transport.ts'

type Whoami = {
  workspace: { id: string; name: string }
  staff: { id: string; name: string; role: string }
  key: { scopes: string[]; test: boolean; agent?: boolean; expires_at: string | null }
}

const VERSION_TIMEOUT_MS = 10_000

/** The version of the server; null when it does not tell. */
const fetchVersion = async (to: ServerConnection): Promise<string | null> => {
  try {
    const response = await sendRequest(to.io, `${to.url}/healthz`, {
      headers: requestHeaders({ ...to, key: undefined }),
      redirect: 'error',
      signal: AbortSignal.timeout(VERSION_TIMEOUT_MS),
    })
    return (JSON.parse(await response.text()) as { version?: string }).version ?? null
  } catch {
    return null
  }
}

/** Server, key and person in use. Throws when the key cannot be read, or the server does not take it. */
const readStatus = async (io: Io, givenUrl: string | undefined) => {
  const { version } = readManifest()
  const loaded = await loadCredentials(io.env, givenUrl, (text) => io.stderr.write(text))
  const to = { io, url: loaded.url, key: loaded.key, version }
  // The first call opens the connection, which the second one uses: its time is that of a call.
  const serverVersion = await fetchVersion(to)
  const startedAt = performance.now()
  const { value } = await callOperation(to, 'workspace_whoami', {})
  const latencyMs = Math.round(performance.now() - startedAt)
  const { workspace, staff, key } = value as unknown as Whoami
  return {
    url: loaded.url,
    key_source: loaded.source === 'WCRM_API_KEY' ? 'env' : (loaded.source ?? null),
    profile: loaded.profile ?? null,
    profile_source: io.profile === undefined ? (loaded.chosenBy ?? null) : 'flag',
    workspace: { id: workspace.id, name: workspace.name },
    staff: { id: staff.id, name: staff.name, role: staff.role },
    scopes: key.scopes,
    test: key.test,
    agent: key.agent ?? false,
    expires_at: key.expires_at,
    server_version: serverVersion,
    version,
    latency_ms: latencyMs,
  }
}

type Shown = Awaited<ReturnType<typeof readStatus>>

const describeKey = ({ key_source: from, profile, profile_source: by }: Shown, io: Io): string => {
  if (from === 'env') return 'WCRM_API_KEY'
  const place = from === 'keychain' ? 'keychain' : credentialsPath(io.env)
  const why = {
    flag: '-p',
    WCRM_PROFILE: 'WCRM_PROFILE',
    default: 'the default',
    url: 'the only one of the server',
  }
  return `${place}, profile ${profile}${by === null ? '' : ` (${why[by as keyof typeof why]})`}`
}

const toLines = (shown: Shown, io: Io): Record<string, unknown> => ({
  url: shown.url,
  key: describeKey(shown, io),
  workspace: `${shown.workspace.name} (${shown.workspace.id})`,
  staff: `${shown.staff.name} (${shown.staff.role})`,
  kind: `${shown.test ? 'test: changes are dry runs' : 'live'}${shown.agent ? ", an AI agent's" : ''}`,
  scopes: shown.scopes.join(', '),
  expires: shown.expires_at ?? 'never',
  server_version: `${shown.server_version ?? 'unknown'}${
    shown.server_version === shown.version ? '' : ` (this command line: ${shown.version})`
  }`,
  latency: `${shown.latency_ms} ms`,
})

/** The command with its flags, also for its manual page. */
export const createCommand = (io: Io): Command =>
  new Command('wcrm status')
    .description('Show the server and the key in use: where it comes from, whose it is, what it may do.')
    .option('--url <url>', 'base URL of the server (also WCRM_URL)')
    .option('--json', 'print JSON')
    .action(async ({ url, json }: { url?: string; json?: boolean }) => {
      const shown = await readStatus(io, url)
      await printResult(io, json ? shown : toLines(shown, io), { json: json === true })
    })

/** `wcrm status`: which server and key are in use, and what the key may do. Returns the exit code. */
export const run = (argv: string[], io: Io): Promise<number> => runOneCommand(createCommand, argv, io)
