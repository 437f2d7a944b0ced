import {
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  JSONRPC_VERSION,
  PROTOCOL_VERSION_META_KEY,
  SERVER_INFO_META_KEY,
  SUPPORTED_PROTOCOL_VERSIONS,
} from '@modelcontextprotocol/server'
import { isObject } from '../catalog/values.ts'
import { opensPages } from './approval-page.ts'

/*
 * Nearly all messages are plain tool calls. The SDK makes a server, a transport and a stream for each message,
 * which takes longer than a read of a contact; these calls are answered without it. Whatever is not exactly a
 * well-formed call goes to the SDK, which knows every rule and every refusal of both protocol eras.
 */

/** The revision whose requests say who calls in `_meta`. */
const MODERN_VERSION = '2026-07-28'

export type DirectCall = {
  id: string | number
  name: string
  input: Record<string, unknown>
  /** Name and version that the client reports in the request. */
  client: string | undefined
  modern: boolean
  /** The client wants to be told how far the call is, which takes a stream. */
  watched: boolean
  /** The client can open a page for its person; in the older revisions, it may be able to. */
  opensPages: boolean
}

const hasOnly = (object: object, names: readonly string[]): boolean =>
  Object.keys(object).every((name) => names.includes(name))

const isId = (id: unknown): id is string | number => typeof id === 'string' || Number.isSafeInteger(id)

/** Whether the client takes both types of response, as it must. */
const acceptsBoth = (accept: string | null): boolean =>
  accept !== null && accept.includes('application/json') && accept.includes('text/event-stream')

const readEra = (
  headers: Headers,
  meta: Record<string, unknown>,
  name: string,
): DirectCall['modern'] | undefined => {
  const version = headers.get('mcp-protocol-version')
  if (!(PROTOCOL_VERSION_META_KEY in meta))
    return version === null || SUPPORTED_PROTOCOL_VERSIONS.includes(version) ? false : undefined
  const isConsistent =
    version === MODERN_VERSION &&
    meta[PROTOCOL_VERSION_META_KEY] === version &&
    headers.get('mcp-method') === 'tools/call' &&
    headers.get('mcp-name') === name &&
    isObject(meta[CLIENT_CAPABILITIES_META_KEY])
  return isConsistent ? true : undefined
}

/** Returns what the client calls itself: undefined when it does not say, null when that is malformed. */
const readClient = (meta: Record<string, unknown>): string | undefined | null => {
  const info = meta[CLIENT_INFO_META_KEY]
  if (info === undefined) return undefined
  return isObject(info) && typeof info['name'] === 'string' && typeof info['version'] === 'string'
    ? `${info['name']}/${info['version']}`
    : null
}

/** Returns the tool call that a message is; undefined when it is anything else or anything unusual. */
export const readDirectCall = ({ headers }: Request, message: object): DirectCall | undefined => {
  if (!isObject(message) || !hasOnly(message, ['jsonrpc', 'id', 'method', 'params'])) return undefined
  const { jsonrpc, id, method, params } = message
  if (jsonrpc !== JSONRPC_VERSION || method !== 'tools/call' || !isId(id)) return undefined
  if (!isObject(params) || !hasOnly(params, ['name', 'arguments', '_meta'])) return undefined
  const { name, arguments: input = {}, _meta: meta = {} } = params
  if (typeof name !== 'string' || !isObject(input) || !isObject(meta)) return undefined
  if (!acceptsBoth(headers.get('accept'))) return undefined
  const modern = readEra(headers, meta, name)
  const client = readClient(meta)
  if (modern === undefined || client === null) return undefined
  const watched = 'progressToken' in meta
  return {
    id,
    name,
    input,
    client,
    modern,
    watched,
    opensPages: modern ? opensPages(meta[CLIENT_CAPABILITIES_META_KEY]) : headers.has('mcp-session-id'),
  }
}

/**
 * Returns the response to a call. `structured`: the JSON text of `structuredContent`, which is not parsed only
 * to be written again.
 */
export const writeDirectResult = (
  { id, modern }: DirectCall,
  result: { content: object[]; isError?: boolean; _meta: Record<string, unknown> },
  structured: string | undefined,
  serverInfo: object,
): string => {
  const { _meta, ...rest } = result
  const head = JSON.stringify({
    _meta: modern ? { ..._meta, [SERVER_INFO_META_KEY]: serverInfo } : _meta,
    ...rest,
  })
  const tail = [
    structured === undefined ? '' : `,"structuredContent":${structured}`,
    modern ? ',"resultType":"complete"' : '',
  ].join('')
  return `{"result":${head.slice(0, -1)}${tail}},"jsonrpc":"${JSONRPC_VERSION}","id":${JSON.stringify(id)}}`
}
