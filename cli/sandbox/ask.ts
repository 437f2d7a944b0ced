import { connection } from '../credentials.ts'
import type { Io } from '../io.ts'
import { readManifest } from '../manifest.ts'
import { headersOf, replyOf, unreachable } from '../remote.ts'
import type { Ask } from './verbs.ts'

const TIMEOUT_MS = 60_000

/** Calls of `/sandbox/*` with the key of this machine. */
export const askOf = (io: Io, url: string | undefined): Ask => async (method, path, input) => {
  const to = { ...await connection(io.env, url), version: readManifest().version }
  const query = method === 'GET' && input ? `?${new URLSearchParams(input as Record<string, string>)}` : ''
  let response: Response
  try {
    response = await (io.fetch ?? fetch)(`${to.url}/sandbox/${path}${query}`, {
      method, redirect: 'error', signal: AbortSignal.timeout(TIMEOUT_MS),
      headers: { ...headersOf(to), Accept: 'application/json', ...(method === 'POST' ? { 'Content-Type': 'application/json' } : {}) },
      ...(method === 'POST' ? { body: JSON.stringify(input ?? {}) } : {}),
    })
  } catch (error) {
    throw unreachable(to.url, error, undefined)
  }
  return (await replyOf(response)).value
}
