import { isObject } from '../../../catalog/values.ts'
import { findSandboxCustomer, setMarketingStopped } from '../storage/customers.ts'
import {
  insertFault,
  deleteAccountFaults,
  deleteFaults,
  type FaultEffect,
  type FaultKind,
  listFaults,
} from '../storage/faults.ts'
import { listSandboxLinks } from '../storage/links.ts'
import {
  findSandboxMessage,
  type SandboxMessageStatus,
  listSentMessages,
  setSandboxMessageStatus,
} from '../storage/messages.ts'
import {
  updateSandboxNumber,
  findSandboxNumber,
  type NewSandboxNumber,
  upsertSandboxNumbers,
} from '../storage/numbers.ts'
import { updateSandboxSettings, loadSandboxSettings, type SandboxSettings } from '../storage/settings.ts'
import { listSandboxTemplates, lockSandboxTemplate } from '../storage/templates.ts'
import { insertSandboxUpdates } from '../storage/updates.ts'
import {
  type SandboxCall,
  stripNonDigits,
  isNonEmptyText,
  okResponse,
  inTransaction,
  timeAt,
} from './call.ts'
import { invalidParameter, providerError, parameterRequired } from './errors.ts'
import { linkNode } from './links.ts'
import { type ReviewDecision, reviewTemplate } from './reviewer.ts'
import { parseCustomerKey, handleSay } from './say.ts'
import { TEMPLATE_CATEGORIES } from './template-checks.ts'
import { importTemplates, templateNode } from './templates.ts'
import { preferenceUpdate, qualityUpdate, statusUpdate, accountUpdate, limitUpdate } from './updates.ts'

const notFoundError = (what: string, id: string) =>
  providerError(100, undefined, {
    status: 404,
    message: `The sandbox has no ${what} ${id.slice(0, 200)}.`,
    details: undefined,
  })

const requireOneOf = <T extends string>(
  body: Record<string, unknown>,
  name: string,
  values: readonly T[],
): T => {
  if (body[name] === undefined) throw parameterRequired(name)
  if (!values.includes(body[name] as T))
    throw invalidParameter(`Param ${name} must be one of {${values.join(', ')}}.`)
  return body[name] as T
}

/** Returns phone digits, or a user id unchanged. */
const normalizeRecipient = (to: string | undefined): string | undefined =>
  to === undefined || /^[A-Z]{2}\./.test(to) ? to : stripNonDigits(to)

/** Returns the integer of a parameter; undefined without it. Throws when it is out of range. */
const parseInteger = (
  body: Record<string, unknown>,
  name: string,
  min: number,
  max: number,
): number | undefined => {
  const value = body[name]
  if (value === undefined) return undefined
  if (!Number.isInteger(value) || (value as number) < min || (value as number) > max)
    throw invalidParameter(`Param ${name} must be a whole number from ${min} to ${max}.`)
  return value as number
}

/** The clock of a number that a server moves, or of the sandbox: at most ten years from real time. */
const parseOffset = (body: Record<string, unknown>, name: string): number | undefined =>
  parseInteger(body, name, -315_360_000_000, 315_360_000_000)

/** Returns the accounts that a change is limited to; undefined for all. */
const parseAccounts = (given: unknown): string[] | undefined => {
  if (given === undefined) return undefined
  if (!Array.isArray(given) || given.length > 10_000 || !given.every(isNonEmptyText))
    throw invalidParameter('Param account_ids must be a list of ids.')
  return given as string[]
}

const requireObjects = (body: Record<string, unknown>, name: string): Record<string, unknown>[] => {
  const list = body[name]
  if (!Array.isArray(list) || list.length > 10_000 || !list.every(isObject))
    throw invalidParameter(`Param ${name} must be a list of objects.`)
  return list
}

const handleState = async (call: SandboxCall): Promise<Response> =>
  okResponse({ sandbox: true, now: call.now() })

const handlePutNumbers = async (call: SandboxCall): Promise<Response> => {
  const list = requireObjects(call.body, 'numbers').map((n): NewSandboxNumber => {
    for (const name of ['id', 'account_id', 'display_phone_number'])
      if (!isNonEmptyText(n[name])) throw invalidParameter(`Each number needs ${name}.`)
    return {
      id: n.id as string,
      account_id: n.account_id as string,
      display_phone_number: n.display_phone_number as string,
      verified_name: isNonEmptyText(n.verified_name) ? n.verified_name : (n.display_phone_number as string),
      ...(isNonEmptyText(n.status) ? { status: n.status } : {}),
      ...(isNonEmptyText(n.quality_rating) ? { quality_rating: n.quality_rating } : {}),
      ...(n.clock_offset_ms === undefined ? {} : { clock_offset_ms: parseOffset(n, 'clock_offset_ms')! }),
    }
  })
  await upsertSandboxNumbers(call.db, list)
  return okResponse({ success: true })
}

const handleChangeNumber = async (call: SandboxCall): Promise<Response> => {
  const { id } = call.body
  if (!isNonEmptyText(id)) throw parameterRequired('id')
  const text = (name: string): string | undefined =>
    isNonEmptyText(call.body[name]) ? (call.body[name] as string).slice(0, 100) : undefined
  return await inTransaction(call.db, async (tx) => {
    const before = await findSandboxNumber(tx, id)
    const after = await updateSandboxNumber(tx, id, {
      status: text('status'),
      quality_rating: text('quality_rating'),
      verified_name: text('verified_name'),
      messaging_limit: text('messaging_limit'),
    })
    if (!before || !after) throw notFoundError('number', id)
    if (before.quality_rating !== after.quality_rating)
      await insertSandboxUpdates(tx, [qualityUpdate(after, before.quality_rating)])
    if (before.messaging_limit !== after.messaging_limit)
      await insertSandboxUpdates(tx, [limitUpdate(after, before.messaging_limit)])
    return okResponse({ success: true })
  })
}

/** What the provider does to an account; `restore` ends all of it. */
const ACCOUNT_ACTIONS = ['restrict', 'ban', 'revoke-token', 'restore'] as const

/** Messages of a restricted account are refused with this code. */
const ACCOUNT_LOCKED = 131031

/** `at`: makes two updates of one kind differ, as the provider's dates do. */
const accountUpdates = (at: string): Readonly<Record<string, Record<string, unknown> | undefined>> => ({
  restrict: {
    event: 'ACCOUNT_RESTRICTION',
    restriction_info: [{ restriction_type: 'RESTRICTED_BIZ_INITIATED_MESSAGING' }],
  },
  ban: { event: 'DISABLED_UPDATE', ban_info: { waba_ban_state: 'DISABLE', waba_ban_date: at } },
  restore: { event: 'DISABLED_UPDATE', ban_info: { waba_ban_state: 'REINSTATE', waba_ban_date: at } },
})

const handleAccount = async (call: SandboxCall): Promise<Response> => {
  const action = requireOneOf(call.body, 'action', ACCOUNT_ACTIONS)
  const accounts = parseAccounts(call.body.account_ids)
  if (!accounts) throw parameterRequired('account_ids')
  await inTransaction(call.db, async (tx) => {
    await deleteAccountFaults(tx, accounts)
    const fault = { to: null, accounts, remaining: null }
    if (action === 'revoke-token') await insertFault(tx, { on: 'all', ...fault }, { code: 190 })
    if (action === 'restrict' || action === 'ban')
      await insertFault(tx, { on: 'restricted', ...fault }, { code: ACCOUNT_LOCKED })
    const update = accountUpdates(call.now())[action]
    if (update)
      await insertSandboxUpdates(
        tx,
        accounts.map((account) => accountUpdate(account, update)),
      )
  })
  return okResponse({ success: true })
}

const handlePutTemplates = async (call: SandboxCall): Promise<Response> => {
  const list = requireObjects(call.body, 'templates')
  const added = await inTransaction(call.db, (tx) => importTemplates({ ...call, db: tx }, list))
  return okResponse({ success: true, added })
}

const handleSetClock = async (call: SandboxCall): Promise<Response> => {
  const offset = parseOffset(call.body, 'offset_ms')
  if (offset === undefined) throw parameterRequired('offset_ms')
  if (!call.clock)
    throw invalidParameter('This sandbox has no clock of its own: its numbers have. Use /sandbox/clock.')
  await call.clock.setOffset(offset)
  return okResponse({ offset_ms: call.clock.offsetMs(), now: call.now() })
}

const handleReview = async (call: SandboxCall): Promise<Response> => {
  const { template_id: id, reason, category } = call.body
  if (!isNonEmptyText(id)) throw parameterRequired('template_id')
  const decision = requireOneOf<ReviewDecision>(call.body, 'decision', [
    'approve',
    'reject',
    'pause',
    'disable',
    'category',
  ])
  if (decision === 'category') requireOneOf(call.body, 'category', TEMPLATE_CATEGORIES)
  return await inTransaction(call.db, async (tx) => {
    const template = await lockSandboxTemplate(tx, id)
    if (!template) throw notFoundError('template', id)
    const after = await reviewTemplate(tx, template, decision, {
      reason: isNonEmptyText(reason) ? reason : undefined,
      category: isNonEmptyText(category) ? category : undefined,
    })
    return okResponse(templateNode(after))
  })
}

/** Sets the delivery status of a message, in any order. */
const handleSetStatus = async (call: SandboxCall): Promise<Response> => {
  const { message_id: id } = call.body
  if (!isNonEmptyText(id)) throw parameterRequired('message_id')
  const to = requireOneOf<'sent' | 'delivered' | 'read' | 'failed'>(call.body, 'status', [
    'sent',
    'delivered',
    'read',
    'failed',
  ])
  const code = parseInteger(call.body, 'code', 0, 9_999_999) ?? 131026
  return await inTransaction(call.db, async (tx) => {
    const message = await findSandboxMessage(tx, id)
    if (!message || message.inbound) throw notFoundError('message', id)
    const number = (await findSandboxNumber(tx, message.number_id))!
    const customer = (await findSandboxCustomer(tx, message.number_id, { user_id: message.user_id })) ?? {
      user_id: message.user_id,
      wa_id: message.wa_id,
      name: null,
    }
    await setSandboxMessageStatus(tx, id, to as SandboxMessageStatus)
    await insertSandboxUpdates(tx, [
      statusUpdate(number, customer, message, {
        status: to,
        at: timeAt(call, number),
        ...(to === 'failed'
          ? { code }
          : {
              billing: { kind: 'regular' as const, category: message.category?.toLowerCase() ?? 'service' },
            }),
      }),
    ])
    return okResponse({ success: true })
  })
}

/** Stops or resumes marketing messages for a customer. */
const handleSetPreference = async (call: SandboxCall): Promise<Response> => {
  const { number_id: numberId } = call.body
  if (!isNonEmptyText(numberId)) throw parameterRequired('number_id')
  const choice = requireOneOf<'stop' | 'resume'>(call.body, 'marketing', ['stop', 'resume'])
  const key = parseCustomerKey(call.body)
  return await inTransaction(call.db, async (tx) => {
    const number = await findSandboxNumber(tx, numberId)
    if (!number) throw notFoundError('number', numberId)
    const customer = await findSandboxCustomer(tx, numberId, key)
    if (!customer) throw notFoundError('customer', key.wa_id ?? key.user_id!)
    await setMarketingStopped(tx, numberId, customer.user_id, choice === 'stop')
    await insertSandboxUpdates(tx, [preferenceUpdate(number, customer, choice, timeAt(call, number))])
    return okResponse({ success: true })
  })
}

const handleAddFault = async (call: SandboxCall): Promise<Response> => {
  const { body } = call
  const on = requireOneOf<FaultKind>(body, 'on', ['messages', 'templates', 'links', 'media'])
  const to = body.to === undefined ? null : isNonEmptyText(body.to) ? normalizeRecipient(body.to)! : ''
  if (to === '') throw invalidParameter('Param to must be a phone number or a user ID.')
  const code = parseInteger(body, 'code', 0, 9_999_999)
  const latency = parseInteger(body, 'latency_ms', 0, 600_000)
  const effect: FaultEffect = {
    ...(code === undefined ? {} : { code }),
    ...(latency === undefined ? {} : { latency_ms: latency }),
    ...(body.drop_answer === true ? { drop_answer: true } : {}),
    ...(body.async === true ? { async: true } : {}),
  }
  if (Object.keys(effect).length === 0)
    throw invalidParameter('A fault needs one of code, drop_answer, latency_ms and async.')
  return okResponse({
    id: await insertFault(
      call.db,
      {
        on,
        to,
        accounts: parseAccounts(body.account_ids) ?? null,
        remaining: parseInteger(body, 'times', 1, 1_000_000) ?? null,
      },
      effect,
    ),
  })
}

/** Returns a limit; null removes it. */
const parseLimit = (body: Record<string, unknown>, name: string, max: number): number | null | undefined =>
  body[name] === null ? null : parseInteger(body, name, 1, max)
const parseFlag = (body: Record<string, unknown>, name: string): boolean | undefined => {
  if (body[name] !== undefined && typeof body[name] !== 'boolean')
    throw invalidParameter(`Param ${name} must be a boolean.`)
  return body[name] as boolean | undefined
}

/** Changes how webhooks are sent, how the reviewer works and what is limited; the rest stays unchanged. */
const handleChangeSettings = async (call: SandboxCall): Promise<Response> => {
  const { body } = call
  const change: Record<keyof SandboxSettings, unknown> = {
    duplicates: parseInteger(body, 'duplicates', 0, 100),
    shuffle: parseFlag(body, 'shuffle'),
    batch: parseInteger(body, 'batch', 1, 1000),
    free_entry: parseFlag(body, 'free_entry'),
    review_seconds: body.review_seconds === null ? null : parseInteger(body, 'review_seconds', 0, 31_536_000),
    throughput: parseLimit(body, 'throughput', 100_000),
    pair_burst: parseLimit(body, 'pair_burst', 100_000),
    pair_seconds: parseInteger(body, 'pair_seconds', 1, 3600),
  }
  const changed = Object.fromEntries(
    Object.entries(change).filter(([, value]) => value !== undefined),
  ) as Partial<SandboxSettings>
  const accounts = parseAccounts(body.account_ids)
  await updateSandboxSettings(call.db, changed, accounts)
  return okResponse(await loadSandboxSettings(call.db, accounts?.[0]))
}

const queryText = (call: SandboxCall, name: string): string | undefined => call.query.get(name) || undefined

const handleListSentMessages = async (call: SandboxCall): Promise<Response> => {
  const rows = await listSentMessages(call.db, {
    numberId: queryText(call, 'number_id'),
    accountId: queryText(call, 'account_id'),
    to: normalizeRecipient(queryText(call, 'to')),
  })
  return okResponse({
    data: rows.map(({ body, id, status: now, created_at, number_id }) => ({
      ...body,
      id,
      status: now,
      created_at,
      number_id,
    })),
  })
}

const MAX_ROWS = 10_000

const handleListAllTemplates = async (call: SandboxCall): Promise<Response> =>
  okResponse({
    data: (await listSandboxTemplates(call.db, queryText(call, 'account_id'), {}, MAX_ROWS)).map((t) => ({
      ...templateNode(t),
      account_id: t.account_id,
    })),
  })

const handleListAllLinks = async (call: SandboxCall): Promise<Response> =>
  okResponse({
    data: (await listSandboxLinks(call.db, queryText(call, 'number_id'), {}, MAX_ROWS)).map((link) => ({
      ...linkNode(call, link, 'PNG'),
      number_id: link.number_id,
    })),
  })

/** Endpoints below `control/`, which set what happens in the sandbox. */
export const controlEndpoints: Readonly<Record<string, (call: SandboxCall) => Promise<Response>>> = {
  'GET ': handleState,
  'PUT numbers': handlePutNumbers,
  'POST number': handleChangeNumber,
  'POST account': handleAccount,
  'PUT templates': handlePutTemplates,
  'POST say': handleSay,
  'POST clock': handleSetClock,
  'POST review': handleReview,
  'POST status': handleSetStatus,
  'POST preferences': handleSetPreference,
  'POST faults': handleAddFault,
  'GET faults': async (call) => okResponse({ data: await listFaults(call.db) }),
  'DELETE faults': async (call) => {
    await deleteFaults(call.db, parseAccounts(call.body.account_ids) ?? null)
    return okResponse({ success: true })
  },
  'POST webhooks': handleChangeSettings,
  'POST settings': handleChangeSettings,
  'GET settings': async (call) => okResponse(await loadSandboxSettings(call.db)),
  'GET messages': handleListSentMessages,
  'GET templates': handleListAllTemplates,
  'GET links': handleListAllLinks,
}
