import { redactApiKeys } from '../catalog/redact.ts'
import { clearNameCaches } from './completion/cache.ts'
import { removeCredentials, requireHeaderText, resolveLoginUrl, storeCredentials } from './credentials.ts'
import { cliError, interruptedError, usageError } from './error.ts'
import type { LocalFlags } from './parsed-command.ts'
import { type Io, readStream } from './io.ts'
import { callOperation } from './remote.ts'
import { formatCell } from './text.ts'

type Whoami = {
  workspace: { id: string; name: string }
  staff: { name: string; role: string }
  key: { scopes: string[]; test: boolean }
}

/**
 * Reads the key from standard input: piped, or typed without echo. Never from the command line, which other
 * users of the machine can see.
 */
const readKey = async (
  io: Io,
  url: string,
  { json, withToken }: { json: boolean; withToken: boolean },
): Promise<string> => {
  if (!io.stdin.isTTY) return (await readStream(io.stdin)).toString('utf8').trim()
  if (withToken)
    throw usageError(
      '--with-token reads the key from standard input, but nothing is piped in.',
      '--with-token',
      'For example: wcrm login --with-token < key.txt',
    )
  if (json || !io.stderr.isTTY) throw usageError('login needs the key on standard input.')
  const { promptUser } = await import('./prompt.ts')
  const answer = await promptUser(io, `API key for ${url}:`, { hidden: true })
  if (answer === undefined) throw interruptedError()
  return answer.trim()
}

/** Checks a key with the server and stores it. Returns the exit code. */
export const login = async (io: Io, flags: LocalFlags & { withToken: boolean }): Promise<number> => {
  const { json, version } = flags
  const url = resolveLoginUrl(io.env, flags.url, (message) => io.stderr.write(message))
  const key = await readKey(io, url, flags)
  if (key === '') throw usageError('The key is empty.')
  requireHeaderText(key, 'The key')
  const { value } = await callOperation({ io, url, key, version }, 'workspace_whoami', {})
  const whoami = value as unknown as Whoami
  const stored = await storeCredentials({
    url,
    key,
    env: io.env,
    profile: io.env['WCRM_PROFILE'] || undefined,
  })
  if (stored.store === 'none')
    throw cliError(1, {
      type: 'about:blank',
      title: 'Key not stored',
      code: 'internal_error',
      detail: stored.reason ?? 'There is no place to store it.',
    })
  if (stored.store === 'file' && !json)
    io.stderr.write(
      `No keychain is available (${stored.reason}). ` +
        `The key is stored in ${stored.path}, which only you can read.\n`,
    )
  const result = {
    url,
    workspace: whoami.workspace,
    staff: whoami.staff,
    scopes: whoami.key.scopes,
    test: whoami.key.test,
    store: stored.store,
    profile: stored.profile,
  }
  io.stdout.write(
    json
      ? `${JSON.stringify(result)}\n`
      : `Logged in to ${url} as ${formatCell(whoami.staff.name)} (${whoami.staff.role}), workspace ` +
          `${formatCell(whoami.workspace.name)}. Profile ${stored.profile} is the default now.\n`,
  )
  return 0
}

/** Deletes a stored key: of the profile, of the server, or of the default profile. Returns the exit code. */
export const logout = async (io: Io, givenUrl: string | undefined): Promise<number> => {
  const removed = await removeCredentials(io.env, givenUrl)
  if (!removed) {
    io.stderr.write(givenUrl ? 'No key of this server was stored.\n' : 'No key was stored.\n')
    return 0
  }
  const { name, url, left } = removed
  clearNameCaches(io.env)
  io.stderr.write(
    `The key of ${url} (profile ${name}) was deleted here. It is still valid: revoke it with ` +
      'wcrm admin keys revoke.\n',
  )
  if (left !== undefined)
    io.stderr.write(`Warning: it may still be in the keychain (${redactApiKeys(left)}).\n`)
  return 0
}
