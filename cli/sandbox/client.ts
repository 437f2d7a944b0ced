import { loadCredentials } from '../credentials.ts'
import { type CliError, type CliFieldError, isCliError } from '../error.ts'
import type { Io } from '../io.ts'
import { readManifest } from '../manifest.ts'
import { requestHeaders, parseResponse, unreachableError } from '../remote.ts'
import { type HttpResponse, sendRequest } from '../transport.ts'
import type { SandboxClient } from './verbs.ts'

const TIMEOUT_MS = 60_000

/** Creates a client of `/sandbox/*` that uses the credentials of this machine. */
export const createSandboxClient =
  (io: Io, url: string | undefined): SandboxClient =>
  async (method, path, input) => {
    const to = {
      ...(await loadCredentials(io.env, url, (message) => io.stderr.write(message))),
      version: readManifest().version,
    }
    const query = method === 'GET' && input ? `?${new URLSearchParams(input as Record<string, string>)}` : ''
    let response: HttpResponse
    try {
      response = await sendRequest(io, `${to.url}/sandbox/${path}${query}`, {
        method,
        redirect: 'error',
        signal: AbortSignal.timeout(TIMEOUT_MS),
        headers: {
          ...requestHeaders(to),
          Accept: 'application/json',
          ...(method === 'POST' ? { 'Content-Type': 'application/json' } : {}),
        },
        ...(method === 'POST' ? { body: JSON.stringify(input ?? {}) } : {}),
      })
    } catch (error) {
      throw unreachableError(to.url, error, undefined)
    }
    try {
      return (await parseResponse(response, to.url)).value
    } catch (error) {
      throw isCliError(error) ? explain(locateFields(error)) : error
    }
  }

/** Says where there is a sandbox, in place of the general advice for a 404. */
const explain = (error: CliError): CliError =>
  error.problem['reason'] === 'no_sandbox'
    ? Object.assign(error, {
        hint:
          'A server uses the sandbox with the embedded database or with WCRM_PROVIDER=sandbox; with ' +
          'WCRM_PROVIDER_URL as well, a standalone one.',
      })
    : error

/** Command line names of fields that are not the flag of the same name. */
const FIELD_LOCATIONS: Readonly<Record<string, string>> = {
  text: '<text>',
  emoji: '<emoji>',
  advance: '<duration>',
  message_id: '<message-id>',
  status: '<status>',
  template_id: '<template-id>',
  decision: '<decision>',
  action: '<action>',
  value: '[value]',
  channel_id: '--channel',
  latency_ms: '--latency',
}

const locateField = ({ pointer, ...others }: CliFieldError): CliFieldError => {
  const name = pointer?.split('/')[1]
  return name === undefined
    ? { ...others, ...(pointer === undefined ? {} : { pointer }) }
    : { ...others, parameter: FIELD_LOCATIONS[name] ?? `--${name.replaceAll('_', '-')}` }
}

/** Names the flags of a problem's fields in the printed text. The JSON body stays as the server sent it. */
const locateFields = (error: CliError): CliError =>
  Object.assign(error, {
    problem: {
      ...error.problem,
      ...(error.problem.errors ? { errors: error.problem.errors.map(locateField) } : {}),
    },
  })
