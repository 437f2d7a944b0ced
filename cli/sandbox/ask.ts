import { connection } from '../credentials.ts'
import { type Fault, type FieldFault, isFault } from '../fault.ts'
import type { Io } from '../io.ts'
import { readManifest } from '../manifest.ts'
import { headersOf, replyOf, unreachable } from '../remote.ts'
import type { Ask } from './verbs.ts'

const TIMEOUT_MS = 60_000

/** Calls of `/sandbox/*` with the key of this machine. */
export const askOf =
  (io: Io, url: string | undefined): Ask =>
  async (method, path, input) => {
    const to = { ...(await connection(io.env, url)), version: readManifest().version }
    const query = method === 'GET' && input ? `?${new URLSearchParams(input as Record<string, string>)}` : ''
    let response: Response
    try {
      response = await (io.fetch ?? fetch)(`${to.url}/sandbox/${path}${query}`, {
        method,
        redirect: 'error',
        signal: AbortSignal.timeout(TIMEOUT_MS),
        headers: {
          ...headersOf(to),
          Accept: 'application/json',
          ...(method === 'POST' ? { 'Content-Type': 'application/json' } : {}),
        },
        ...(method === 'POST' ? { body: JSON.stringify(input ?? {}) } : {}),
      })
    } catch (error) {
      throw unreachable(to.url, error, undefined)
    }
    try {
      return (await replyOf(response)).value
    } catch (error) {
      throw isFault(error) ? inWords(error) : error
    }
  }

/** Where a field is typed, when it is not a flag of its own name. */
const places: Readonly<Record<string, string>> = {
  text: '<text>',
  advance: '<duration>',
  message_id: '<message-id>',
  status: '<status>',
  template_id: '<template-id>',
  decision: '<decision>',
  channel_id: '--channel',
  latency_ms: '--latency',
}

const placeOf = ({ pointer, ...rest }: FieldFault): FieldFault => {
  const name = pointer?.split('/')[1]
  return name === undefined
    ? { ...rest, ...(pointer === undefined ? {} : { pointer }) }
    : { ...rest, parameter: places[name] ?? `--${name.replaceAll('_', '-')}` }
}

/** A refusal that names what was typed; as JSON it stays what the server sent. */
const inWords = (fault: Fault): Fault =>
  Object.assign(fault, {
    problem: {
      ...fault.problem,
      ...(fault.problem.errors ? { errors: fault.problem.errors.map(placeOf) } : {}),
    },
  })
