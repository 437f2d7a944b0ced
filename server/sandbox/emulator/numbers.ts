import { randomBytes } from 'node:crypto'
import { parsePhoneNumberFromString } from 'libphonenumber-js'
import {
  findNumber,
  hasAccount,
  numbersOfAccount,
  readSubscription,
  type SandboxNumber,
  writeSubscription,
} from '../../../storage/sandbox/numbers.ts'
import { type Call, isText, ok } from './call.ts'
import { invalid, noObject, refuse, required } from './errors.ts'
import { fieldsOf, page, pageQuery, pick } from './pages.ts'

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
const USUAL = FIELDS

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
  messaging_limit_tier: 'TIER_1K',
  whatsapp_business_manager_messaging_limit: 'TIER_1K',
  is_official_business_account: false,
})

/** `GET /{waba}/phone_numbers`. */
export const listNumbers = async (call: Call): Promise<Response> => {
  const account = await requireAccount(call)
  const fields = fieldsOf(call.query, 'WhatsAppBusinessPhoneNumber', FIELDS, USUAL)
  const wanted = pageQuery(call.query, 25, 100)
  const all = await numbersOfAccount(call.db, account)
  const rows =
    wanted.before === undefined
      ? all.filter((n) => BigInt(n.seq) > BigInt(wanted.after ?? 0)).slice(0, wanted.limit + 1)
      : all.filter((n) => BigInt(n.seq) < BigInt(wanted.before!)).slice(-wanted.limit - 1)
  return ok(page(rows, wanted, call.request.url, (n) => pick(numberNode(n), fields)))
}

/** `GET /{phone}`; undefined when there is no such number. */
export const readNumber = async (call: Call): Promise<Response | undefined> => {
  const number = await findNumber(call.db, call.path.id!)
  return (
    number && ok(pick(numberNode(number), fieldsOf(call.query, 'WhatsAppBusinessPhoneNumber', FIELDS, USUAL)))
  )
}

const requireAccount = async (call: Call): Promise<string> => {
  const id = call.path.id!
  if (!(await hasAccount(call.db, id))) throw noObject(id, call.method)
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
 * `POST /{waba}/subscribed_apps`: updates of this account go to the app, or to a callback of the account's
 * own, which must prove itself.
 */
export const subscribe = async (call: Call): Promise<Response> => {
  const account = await requireAccount(call)
  const { override_callback_uri: callback, verify_token: token } = call.body
  if (callback === undefined) {
    await writeSubscription(call.db, account, { subscribed: true, callback: null })
    return ok({ success: true })
  }
  if (!isText(callback) || !URL.canParse(callback) || !/^https?:$/.test(new URL(callback).protocol))
    throw invalid('Param override_callback_uri must be a valid URL.')
  if (!isText(token)) throw required('verify_token')
  if (!(await provesItself(callback, token)))
    throw refuse(100, undefined, {
      status: 422,
      message: 'Webhook callback URL is not reachable or invalid',
      details: undefined,
    })
  await writeSubscription(call.db, account, { subscribed: true, callback })
  return ok({ success: true, data: [subscribedApp(callback)] })
}

const HANDSHAKE_MS = 5_000

/** The handshake: the callback repeats a challenge when it knows the token. */
const provesItself = async (callback: string, token: string): Promise<boolean> => {
  const challenge = String(randomBytes(4).readUInt32BE())
  const url = new URL(callback)
  for (const [name, value] of [
    ['hub.mode', 'subscribe'],
    ['hub.challenge', challenge],
    ['hub.verify_token', token],
  ] as const)
    url.searchParams.set(name, value)
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(HANDSHAKE_MS), redirect: 'error' })
    return answer.status === 200 && (await answer.text()).trim() === challenge
  } catch {
    return false
  }
}

export const listSubscriptions = async (call: Call): Promise<Response> => {
  const subscription = (await readSubscription(call.db, await requireAccount(call))) ?? {
    subscribed: true,
    callback: null,
  }
  return ok({ data: subscription.subscribed ? [subscribedApp(subscription.callback)] : [] })
}

export const unsubscribe = async (call: Call): Promise<Response> => {
  await writeSubscription(call.db, await requireAccount(call), { subscribed: false, callback: null })
  return ok({ success: true })
}

/** `GET /debug_token`: what the token may do. */
export const debugToken = async (call: Call): Promise<Response> => {
  const valid = call.query.get('input_token') === call.token
  const scopes = ['whatsapp_business_management', 'whatsapp_business_messaging']
  return ok({
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
