import { loadCredentials, removeCredentials, requireHeaderText, storeCredentials } from './credentials.ts'
import { cliError, interruptedError, usageError } from './error.ts'
import { type Io, readStream } from './io.ts'
import { callOperation } from './remote.ts'

type Whoami = {
  workspace: { id: string; name: string }
  staff: { name: string; role: string }
  key: { scopes: string[]; test: boolean }
}

/**
 * Reads the key from standard input: piped, or typed without echo. Never from the command line, which other
 * users of the machine can see.
 */
const readKey = async (io: Io, url: string, json: boolean): Promise<string> => {
  if (!io.stdin.isTTY) return (await readStream(io.stdin)).toString('utf8').trim()
  if (json || !io.stderr.isTTY) throw usageError('login needs the key on standard input.')
  const { promptUser } = await import('./prompt.ts')
  const answer = await promptUser(io, `API key for ${url}:`, { hidden: true })
  if (answer === undefined) throw interruptedError()
  return answer.trim()
}

/** Checks a key with the server and stores it. Returns the exit code. */
export const login = async (
  io: Io,
  givenUrl: string | undefined,
  json: boolean,
  version: string,
): Promise<number> => {
  const { url } = await loadCredentials({ ...io.env, WCRM_API_KEY: 'unused' }, givenUrl)
  const key = await readKey(io, url, json)
  if (key === '') throw usageError('The key is empty.')
  requireHeaderText(key, 'The key')
  const { value } = await callOperation(io, { url, key, version }, 'workspace_whoami', {})
  const whoami = value as unknown as Whoami
  const stored = await storeCredentials({ url, key, env: io.env })
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
  }
  io.stdout.write(
    json
      ? `${JSON.stringify(result)}\n`
      : `Logged in to ${url} as ${whoami.staff.name} (${whoami.staff.role}), workspace ` +
          `${whoami.workspace.name}.\n`,
  )
  return 0
}

/** Deletes the stored key of a server. Returns the exit code. */
export const logout = async (io: Io, givenUrl: string | undefined): Promise<number> => {
  const { url } = await loadCredentials({ ...io.env, WCRM_API_KEY: 'unused' }, givenUrl)
  const removed = await removeCredentials(url, io.env)
  io.stderr.write(
    removed
      ? `The key of ${url} was deleted here. It is still valid: revoke it with wcrm admin keys revoke.\n`
      : `No key of ${url} was stored.\n`,
  )
  return 0
}
