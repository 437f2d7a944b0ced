import { redactApiKeys } from '../../catalog/redact.ts'
import { BridgeMessage, BridgeStatus } from '../../catalog/channel-messages.ts'
import { isObject } from '../../catalog/values.ts'
import { findChannelByToken, type TokenChannel } from '../../storage/channels/secrets.ts'
import { hashApiKey, isChannelToken } from '../api-keys.ts'
import type { App } from '../app.ts'
import { parseBearer, unauthenticated } from '../kernel/bearer.ts'
import { Problem } from '../kernel/problem.ts'
import { takeChannelToken } from '../limits/rate-limit.ts'
import { lookUpLimited } from '../kernel/throttle.ts'
import { parseFields } from '../kernel/validate.ts'
import { getClientAddress } from './address.ts'
import { parseJson, withBody } from './body.ts'
import { problemResponse } from './door.ts'
import { createRequestId } from '../ids.ts'
import { isTooDeep, toStorableJson } from '../domains/inbound/json.ts'
import { receiveBridgeMessage, receiveBridgeStatus } from '../domains/channels/receive.ts'

/** The path of both endpoints, below which each channel has its own. */
export const CHANNELS_PATH = '/channels'

const BODY_RULES = { maxBytes: 512 * 1024, maxBytesInFlight: 8 * 1024 * 1024 }
const MAX_KNOWN_TOKENS = 100_000

/**
 * Where the bridges of bridged channels post: `/channels/{id}/inbound` takes what customers write,
 * `/channels/{id}/statuses` what became of replies. The order of checks is that of the API.
 */
export const createChannelEndpoint =
  (app: App) =>
  async (request: Request): Promise<Response> => {
    try {
      const { channelId, serve } = findRoute(request)
      const channel = await authenticateBridge(app, request, channelId)
      const limits = await takeChannelToken(app, channel.workspace_id, channel.id)
      requireConnected(channel)
      requireNoQuery(request)
      return await withBody(app, request, BODY_RULES, async (body) => {
        const { status, answer } = await serve(
          app,
          channel,
          readJson(await body.text(`channel ${channel.id}`)),
        )
        return new Response(JSON.stringify(answer), {
          status,
          headers: { ...limits, 'Content-Type': 'application/json', 'Request-Id': createRequestId() },
        })
      })
    } catch (error) {
      if (error instanceof Problem) return problemResponse(app, error)
      throw error
    }
  }

type Served = { status: number; answer: object }
type Serve = (app: App, channel: TokenChannel, input: unknown) => Promise<Served>

const routes: Readonly<Record<string, Serve>> = {
  inbound: async (app, channel, input) => {
    const received = await receiveBridgeMessage(app, channel, parseFields(BridgeMessage, input))
    return { status: received.duplicate ? 200 : 201, answer: received }
  },
  statuses: async (app, channel, input) => ({
    status: 200,
    answer: await receiveBridgeStatus(app, channel, parseFields(BridgeStatus, input)),
  }),
}

const findRoute = (request: Request): { channelId: string; serve: Serve } => {
  const { pathname } = new URL(request.url)
  const [, channelId = '', name = ''] = /^\/channels\/([^/]+)\/([^/]+)$/.exec(pathname) ?? []
  if (!Object.hasOwn(routes, name))
    throw new Problem(
      'not_found',
      'Bridges post to /channels/{channel_id}/inbound and /channels/{channel_id}/statuses.',
    )
  if (request.method !== 'POST')
    throw new Problem(
      'method_not_allowed',
      `Bridges post to this address; ${request.method} is not possible.`,
      { allowed: ['POST'] },
      { Allow: 'POST' },
    )
  return { channelId, serve: routes[name]! }
}

/**
 * Returns the channel of the request's token. Throws 401 unless it is this one, and 429 when the client's
 * address failed too often; a token that was valid before is looked up nevertheless.
 */
const authenticateBridge = async (app: App, request: Request, channelId: string): Promise<TokenChannel> => {
  const token = parseBearer(request.headers.get('authorization'))
  if (token === undefined)
    throw unauthenticated('Send "Authorization: Bearer <token of the channel>" (wc_chan_…).')
  const { known } = app.keyCache
  const hash = hashApiKey(token)
  const id = hash.toString('base64')
  const lookUp = async (): Promise<TokenChannel | undefined> => {
    const channel = isChannelToken(token) ? await findChannelByToken(app.db, hash) : undefined
    return channel?.id === channelId ? channel : undefined
  }
  const channel = known.has(id)
    ? await lookUp()
    : await lookUpLimited(app, getClientAddress(app, request), lookUp, 'channel_token')
  if (!channel) {
    known.delete(id)
    throw unauthenticated('The token is unknown, replaced or of another channel.')
  }
  if (known.size >= MAX_KNOWN_TOKENS) known.clear()
  known.add(id)
  return channel
}

const requireConnected = ({ id, status }: TokenChannel): void => {
  if (status === 'connected') return
  throw new Problem(
    'conflict',
    `Channel ${id} is ${status}, so it takes nothing. Connect it on the server, then send this again: ` +
      `wcrm admin channels update ${id} --status connected.`,
    { reason: 'channel_not_connected', channel_id: id },
  )
}

/** A `?dry_run=true` that is ignored would store what was only to be tried. */
const requireNoQuery = (request: Request): void => {
  const names = [...new Set(new URL(request.url).searchParams.keys())].slice(0, 50)
  if (names.length === 0) return
  throw new Problem('invalid_input', 'The addresses of bridges take no query, and no dry run.', {
    errors: names.map((name) => ({
      parameter: name.slice(0, 100),
      code: 'unknown_field',
      detail: 'is not a parameter of this address',
      fix: 'Leave out the query.',
    })),
  })
}

/**
 * Customers write anything: what cannot be stored is replaced, and keys that they paste are redacted. Ids stay as
 * they are, so that the schema refuses such ones: replaced, two ids could become one. So does what is too deep,
 * for which the replacement would take more stack than there is.
 */
const readJson = (text: string): unknown => {
  const raw = parseJson(redactApiKeys(text))
  if (isTooDeep(raw)) return raw
  const input = keepId(raw, toStorableJson(raw))
  return isObject(raw) && isObject(input) ? { ...input, ...keepSenderId(raw['from'], input['from']) } : input
}

const keepSenderId = (raw: unknown, from: unknown): object =>
  isObject(from) ? { from: keepId(raw, from) } : {}

/** The storable copy of an object, with its id as it was. */
const keepId = (raw: unknown, storable: unknown): unknown =>
  isObject(raw) && isObject(storable) && 'id' in raw ? { ...storable, id: raw['id'] } : storable
