import { loadCredentials } from './credentials.ts'
import { cliError } from './error.ts'
import type { LocalFlags } from './parsed-command.ts'
import type { Io } from './io.ts'
import { parseResponse, requestHeaders, unreachableError } from './remote.ts'
import { type HttpResponse, sendRequest } from './transport.ts'

const TIMEOUT_MS = 30_000

type LoginCode = { code: string; expires_at: string; staff: { name: string }; workspace: { name: string } }

/**
 * Prints a login code of the key's staff member: what they type where an AI client asks them to sign in. Returns
 * the exit code.
 */
export const printLoginCode = async (
  io: Io,
  { url: givenUrl, json, version }: LocalFlags,
): Promise<number> => {
  const { url, key } = await loadCredentials(io.env, givenUrl, (message) => io.stderr.write(message))
  let response: HttpResponse
  try {
    response = await sendRequest(io, `${url}/oauth/login-codes`, {
      method: 'POST',
      headers: { ...requestHeaders({ key, version }), Accept: 'application/json' },
      redirect: 'error',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
  } catch (error) {
    throw unreachableError(url, error, undefined)
  }
  if (response.status === 405 || response.status === 404)
    throw cliError(8, {
      type: 'about:blank',
      title: 'OAuth is off',
      status: 503,
      code: 'service_unconfigured',
      detail: `${url} does not support login codes: it needs WCRM_PUBLIC_URL with https, and not WCRM_OAUTH=off.`,
    })
  const { body, value } = await parseResponse(response, url)
  const { code, expires_at, staff, workspace } = value as unknown as LoginCode
  io.stdout.write(json ? `${body}\n` : `${code}\n`)
  if (!json)
    io.stderr.write(
      `It signs in ${staff.name} at workspace ${workspace.name}, once, until ${expires_at.slice(11, 16)} UTC. ` +
        'Type it only on a page of your own wcrm server.\n',
    )
  return 0
}
