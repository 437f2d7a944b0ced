import { randomBytes } from 'node:crypto'
import { parsePhoneNumberFromString } from 'libphonenumber-js'
import {
  findSandboxNumber,
  hasSandboxAccount,
  listSandboxNumbers,
  findSubscription,
  type SandboxNumber,
  upsertSubscription,
} from '../storage/numbers.ts'
import { type SandboxCall, isNonEmptyText, okResponse } from './call.ts'
import { invalidParameter, unknownObject, providerError, parameterRequired } from './errors.ts'
import { parseFieldList, formatPage, parsePageQuery, pickNodeFields } from './pages.ts'

const FIELDS = [
  'id',
  'display_phone_number',
  'verified_name',
  'status',
  'quality_rating',
  'country_code',
  'country_dial_code',
  'code_verification_status',
  'unified_cert_status',
  'platform_type',
  'throughput',
  'account_mode',
  'host_platform',
  'name_status',
  'messaging_limit_tier',
  'whatsapp_business_manager_messaging_limit',
  'is_official_business_account',
  'webhook_configuration',
]
const DEFAULT_FIELDS = FIELDS

const countryOf = (digits: string): Record<string, unknown> => {
  const phone = parsePhoneNumberFromString(`+${digits}`)
  return phone?.country === undefined
    ? {}
    : { country_code: phone.country, country_dial_code: phone.countryCallingCode }
}

const numberNode = (n: SandboxNumber): Record<string, unknown> => ({
  id: n.id,
  display_phone_number: n.display_phone_number,
  verified_name: n.verified_name,
  status: n.status,
  quality_rating: n.quality_rating,
  ...countryOf(n.digits),
  code_verification_status: 'VERIFIED',
  unified_cert_status: 'APPROVED',
  platform_type: 'CLOUD_API',
  host_platform: 'CLOUD_API',
  throughput: { level: 'STANDARD' },
  account_mode: 'SANDBOX',
  name_status: 'APPROVED',
  messaging_limit_tier: n.messaging_limit,
  whatsapp_business_manager_messaging_limit: n.messaging_limit,
  is_official_business_account: false,
})

/** Serves `GET /{waba}/phone_numbers`. */
export const handleListNumbers = async (call: SandboxCall): Promise<Response> => {
  const account = await requireAccount(call)
  const fields = parseFieldList(call.query, 'WhatsAppBusinessPhoneNumber', FIELDS, DEFAULT_FIELDS)
  const wanted = parsePageQuery(call.query, 25, 100)
  const all = await listSandboxNumbers(call.db, account)
  const rows =
    wanted.before === undefined
      ? all.filter((n) => BigInt(n.seq) > BigInt(wanted.after ?? 0)).slice(0, wanted.limit + 1)
      : all.filter((n) => BigInt(n.seq) < BigInt(wanted.before!)).slice(-wanted.limit - 1)
  return okResponse(formatPage(rows, wanted, call.request.url, (n) => pickNodeFields(numberNode(n), fields)))
}

/** Serves `GET /{phone}`; undefined when the id is not of a number. */
export const handleReadNumber = async (call: SandboxCall): Promise<Response | undefined> => {
  const number = await findSandboxNumber(call.db, call.path.id!)
  return (
    number &&
    okResponse(
      pickNodeFields(
        numberNode(number),
        parseFieldList(call.query, 'WhatsAppBusinessPhoneNumber', FIELDS, DEFAULT_FIELDS),
      ),
    )
  )
}

/** Returns the account of the path. Throws the provider's error where there is none. */
export const requireAccount = async (call: SandboxCall): Promise<string> => {
  const id = call.path.id!
  if (!(await hasSandboxAccount(call.db, id))) throw unknownObject(id, call.method)
  return id
}

const subscribedApp = (callback: string | null) => ({
  ...(callback === null ? {} : { override_callback_uri: callback }),
  whatsapp_business_api_data: {
    id: 'sandbox',
    name: 'Sandbox',
    link: 'https://developers.facebook.com/docs/whatsapp',
  },
})

/**
 * Serves `POST /{waba}/subscribed_apps`: updates of this account go to the app, or to a callback of the
 * account's own, which must pass the handshake.
 */
export const handleSubscribe = async (call: SandboxCall): Promise<Response> => {
  const account = await requireAccount(call)
  const { override_callback_uri: callback, verify_token: token } = call.body
  if (callback === undefined) {
    await upsertSubscription(call.db, account, { subscribed: true, callback: null })
    return okResponse({ success: true })
  }
  if (!isNonEmptyText(callback) || !URL.canParse(callback) || !/^https?:$/.test(new URL(callback).protocol))
    throw invalidParameter('Param override_callback_uri must be a valid URL.')
  if (!isNonEmptyText(token)) throw parameterRequired('verify_token')
  if (!(await verifyCallback(callback, token)))
    throw providerError(100, undefined, {
      status: 422,
      message: 'Webhook callback URL is not reachable or invalid',
      details: undefined,
    })
  await upsertSubscription(call.db, account, { subscribed: true, callback })
  return okResponse({ success: true, data: [subscribedApp(callback)] })
}

const HANDSHAKE_TIMEOUT_MS = 5_000

/** The handshake: whether the callback repeats a challenge, which it does when it knows the token. */
const verifyCallback = async (callback: string, token: string): Promise<boolean> => {
  const challenge = String(randomBytes(4).readUInt32BE())
  const url = new URL(callback)
  for (const [name, value] of [
    ['hub.mode', 'subscribe'],
    ['hub.challenge', challenge],
    ['hub.verify_token', token],
  ] as const)
    url.searchParams.set(name, value)
  try {
    const response = await fetch(url, {
      signal: AbortSignal.timeout(HANDSHAKE_TIMEOUT_MS),
      redirect: 'error',
    })
    return response.status === 200 && (await response.text()).trim() === challenge
  } catch {
    return false
  }
}

export const handleListSubscriptions = async (call: SandboxCall): Promise<Response> => {
  const subscription = (await findSubscription(call.db, await requireAccount(call))) ?? {
    subscribed: true,
    callback: null,
  }
  return okResponse({ data: subscription.subscribed ? [subscribedApp(subscription.callback)] : [] })
}

export const handleUnsubscribe = async (call: SandboxCall): Promise<Response> => {
  await upsertSubscription(call.db, await requireAccount(call), { subscribed: false, callback: null })
  return okResponse({ success: true })
}

/** Serves `GET /debug_token`: what the token is allowed to do. */
export const handleDebugToken = async (call: SandboxCall): Promise<Response> => {
  const valid = call.query.get('input_token') === call.token
  const scopes = ['whatsapp_business_management', 'whatsapp_business_messaging']
  return okResponse({
    data: {
      app_id: 'sandbox',
      type: 'SYSTEM_USER',
      application: 'Sandbox',
      expires_at: 0,
      is_valid: valid,
      scopes: valid ? scopes : [],
      granular_scopes: valid ? scopes.map((scope) => ({ scope })) : [],
    },
  })
}
