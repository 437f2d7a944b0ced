import { randomUUID } from 'node:crypto'
import { isObject } from '../catalog/values.ts'

/*
 * A client of a 2025 revision is asked by a request of the server on its session. Operations ask within an answer,
 * as revision 2026-07-28 does; the stdio bridge and old-sessions.ts, which have the session with such a client,
 * make its calls in the newer revision, and ask on its behalf.
 */

/** How often one call may ask; then it is made as for a client that cannot ask. */
export const MAX_ROUNDS = 10

const MODERN_VERSION = '2026-07-28'
// The names of the SDK, which the bridge does not load.
const META = 'io.modelcontextprotocol/'
const PROTOCOL_VERSION = `${META}protocolVersion`

type Message = { id?: string | number | null; method?: string; params?: Record<string, unknown> | undefined }

/** What an old client said of itself in `initialize`: what it can ask its person, if it can. */
export type OldClient = { info: unknown; elicitation: object }

/** Returns the client of an `initialize` request, if it can show a form or open a page. */
export const readOldClient = ({ method, params }: Message): OldClient | undefined => {
  const capabilities = method === 'initialize' ? params?.['capabilities'] : undefined
  const elicitation = isObject(capabilities) ? capabilities['elicitation'] : undefined
  if (!isObject(elicitation)) return undefined
  const showsForms = 'form' in elicitation || !('url' in elicitation)
  const opensPages = isObject(elicitation['url'])
  return showsForms || opensPages
    ? {
        info: params?.['clientInfo'],
        elicitation: { ...(showsForms ? { form: {} } : {}), ...(opensPages ? { url: {} } : {}) },
      }
    : undefined
}

/** Whether a message is a tool call of an old revision. */
export const isOldCall = ({ method, params }: Message): boolean =>
  method === 'tools/call' && !(isObject(params?.['_meta']) && PROTOCOL_VERSION in params['_meta'])

/** Returns a tool call in the newer revision, under an id of its own. */
export const toModernCall = (
  { params }: Message,
  { info, elicitation }: OldClient,
  answer: object = {},
): { jsonrpc: '2.0'; id: string; method: 'tools/call'; params: Record<string, unknown> } => ({
  jsonrpc: '2.0',
  id: `call-${randomUUID()}`,
  method: 'tools/call',
  params: {
    ...params,
    ...answer,
    _meta: {
      ...(params?.['_meta'] as object | undefined),
      [PROTOCOL_VERSION]: MODERN_VERSION,
      [`${META}clientCapabilities`]: { elicitation },
      ...(isObject(info) ? { [`${META}clientInfo`]: { name: info['name'], version: info['version'] } } : {}),
    },
  },
})

type InputRequest = { method: string; params: Record<string, unknown> }

/** A page that is opened has an id in the 2025 revisions. */
const toOldRequest = ({ method, params }: InputRequest): InputRequest => ({
  method,
  params: params['mode'] === 'url' ? { ...params, elicitationId: randomUUID() } : params,
})

/** Returns what a result asks of the person, by name; undefined when it asks nothing. */
export const readQuestions = (
  result: unknown,
): { requests: [name: string, request: InputRequest][]; state: unknown } | undefined => {
  if (!isObject(result) || result['resultType'] !== 'input_required' || !isObject(result['inputRequests']))
    return undefined
  return {
    requests: Object.entries(result['inputRequests'] as Record<string, InputRequest>).map(
      ([name, request]) => [name, toOldRequest(request)],
    ),
    state: result['requestState'],
  }
}

/** Returns a result as clients of the 2025 revisions know it. */
export const toOldResult = (result: unknown): unknown => {
  if (!isObject(result)) return result
  const { resultType: _resultType, _meta, ...rest } = result
  if (!isObject(_meta)) return rest
  const { [`${META}serverInfo`]: _serverInfo, ...meta } = _meta
  return Object.keys(meta).length > 0 ? { ...rest, _meta: meta } : rest
}
