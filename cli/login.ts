import { connection, removeCredentials, storeCredentials } from './credentials.ts'
import { fault, usage } from './fault.ts'
import { type Io, readAll } from './io.ts'
import { callOperation } from './remote.ts'

type Whoami = {
  workspace: { id: string; name: string }
  staff: { name: string; role: string }
  key: { scopes: string[]; test: boolean }
}

/**
 * The key from standard input: piped, or typed without being shown. Never from the command line, which
 * others can read.
 */
const readKey = async (io: Io, url: string, json: boolean): Promise<string> => {
  if (!io.stdin.isTTY) return (await readAll(io.stdin)).toString('utf8').trim()
  if (json || !io.stderr.isTTY) throw usage('login needs the key on standard input.', undefined)
  const { ask } = await import('./prompt.ts')
  return (await ask(io, `API key for ${url}:`, { hidden: true }))?.trim() ?? ''
}

/** Checks a key with the server and keeps it. */
export const login = async (
  io: Io,
  givenUrl: string | undefined,
  json: boolean,
  version: string,
): Promise<number> => {
  const { url } = await connection({ ...io.env, WCRM_API_KEY: 'unused' }, givenUrl)
  const key = await readKey(io, url, json)
  if (key === '') throw usage('No key was given.')
  const { value } = await callOperation(io, { url, key, version }, 'workspace_whoami', {})
  const me = value as unknown as Whoami
  const stored = await storeCredentials({ url, key, env: io.env })
  if (stored.store === 'none')
    throw fault(1, {
      type: 'about:blank',
      title: 'Key not kept',
      code: 'internal_error',
      detail: stored.reason ?? 'No place to keep it.',
    })
  if (stored.store === 'file' && !json)
    io.stderr.write(
      `No keychain here (${stored.reason}): the key is kept in ${stored.path}, which only you can read.\n`,
    )
  const answer = {
    url,
    workspace: me.workspace,
    staff: me.staff,
    scopes: me.key.scopes,
    test: me.key.test,
    store: stored.store,
  }
  io.stdout.write(
    json
      ? `${JSON.stringify(answer)}\n`
      : `Logged in to ${url} as ${me.staff.name} (${me.staff.role}), workspace ${me.workspace.name}.\n`,
  )
  return 0
}

/** Forgets the kept key of a server. */
export const logout = async (io: Io, givenUrl: string | undefined): Promise<number> => {
  const { url } = await connection({ ...io.env, WCRM_API_KEY: 'unused' }, givenUrl)
  const gone = await removeCredentials(url, io.env)
  io.stderr.write(
    gone
      ? `The key of ${url} is forgotten here. It still works: revoke it with wcrm admin keys revoke.\n`
      : `No key of ${url} was kept.\n`,
  )
  return 0
}
