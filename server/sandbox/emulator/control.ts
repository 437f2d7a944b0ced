import { findCustomer, setMarketingStopped } from '../../../storage/sandbox/customers.ts'
import {
  addFault,
  clearFaults,
  type FaultEffect,
  type FaultKind,
  listFaults,
} from '../../../storage/sandbox/faults.ts'
import { listSandboxLinks } from '../../../storage/sandbox/links.ts'
import {
  findSandboxMessage,
  type MessageStatus,
  sentMessages,
  setMessageStatus,
} from '../../../storage/sandbox/messages.ts'
import { changeNumber, findNumber, type NewNumber, putNumbers } from '../../../storage/sandbox/numbers.ts'
import {
  changeSandboxSettings,
  readSandboxSettings,
  type SandboxSettings,
} from '../../../storage/sandbox/settings.ts'
import { listSandboxTemplates, lockSandboxTemplate } from '../../../storage/sandbox/templates.ts'
import { enqueueUpdates } from '../../../storage/sandbox/updates.ts'
import { type Call, digitsOf, isObject, isText, ok, within } from './call.ts'
import { invalid, refuse, required } from './errors.ts'
import { linkNode } from './links.ts'
import { type Decision, review } from './reviewer.ts'
import { customerOf, say } from './say.ts'
import { CATEGORIES } from './template-checks.ts'
import { keepTemplate, templateNode } from './templates.ts'
import { preferenceUpdate, qualityUpdate, statusUpdate } from './updates.ts'

const absent = (what: string, id: string) =>
  refuse(100, undefined, {
    status: 404,
    message: `The sandbox has no ${what} ${id.slice(0, 200)}.`,
    details: undefined,
  })

const oneOf = <T extends string>(body: Record<string, unknown>, name: string, values: readonly T[]): T => {
  if (body[name] === undefined) throw required(name)
  if (!values.includes(body[name] as T)) throw invalid(`Param ${name} must be one of {${values.join(', ')}}.`)
  return body[name] as T
}

/** Phone digits, or a user id as it is. */
const person = (to: string | undefined): string | undefined =>
  to === undefined || /^[A-Z]{2}\./.test(to) ? to : digitsOf(to)

/** A whole number, undefined when absent. */
const whole = (
  body: Record<string, unknown>,
  name: string,
  least: number,
  most: number,
): number | undefined => {
  const value = body[name]
  if (value === undefined) return undefined
  if (!Number.isInteger(value) || (value as number) < least || (value as number) > most)
    throw invalid(`Param ${name} must be a whole number from ${least} to ${most}.`)
  return value as number
}

const listOf = (body: Record<string, unknown>, name: string): Record<string, unknown>[] => {
  const list = body[name]
  if (!Array.isArray(list) || list.length > 10_000 || !list.every(isObject))
    throw invalid(`Param ${name} must be a list of objects.`)
  return list
}

const state = async (call: Call): Promise<Response> => ok({ sandbox: true, now: call.now() })

const numbers = async (call: Call): Promise<Response> => {
  const list = listOf(call.body, 'numbers').map((n): NewNumber => {
    for (const name of ['id', 'account_id', 'display_phone_number'])
      if (!isText(n[name])) throw invalid(`Each number needs ${name}.`)
    return {
      id: n.id as string,
      account_id: n.account_id as string,
      display_phone_number: n.display_phone_number as string,
      verified_name: isText(n.verified_name) ? n.verified_name : (n.display_phone_number as string),
      ...(isText(n.status) ? { status: n.status } : {}),
      ...(isText(n.quality_rating) ? { quality_rating: n.quality_rating } : {}),
    }
  })
  await putNumbers(call.db, list)
  return ok({ success: true })
}

const number = async (call: Call): Promise<Response> => {
  const { id } = call.body
  if (!isText(id)) throw required('id')
  const text = (name: string): string | undefined =>
    isText(call.body[name]) ? (call.body[name] as string).slice(0, 100) : undefined
  return await within(call.db, async (tx) => {
    const before = await findNumber(tx, id)
    const after = await changeNumber(tx, id, {
      status: text('status'),
      quality_rating: text('quality_rating'),
      verified_name: text('verified_name'),
    })
    if (!before || !after) throw absent('number', id)
    if (before.quality_rating !== after.quality_rating)
      await enqueueUpdates(tx, [qualityUpdate(after, before.quality_rating)])
    return ok({ success: true })
  })
}

const templates = async (call: Call): Promise<Response> => {
  const list = listOf(call.body, 'templates')
  let added = 0
  await within(call.db, async (tx) => {
    for (const template of list) if (await keepTemplate({ ...call, db: tx }, template)) added++
  })
  return ok({ success: true, added })
}

const clock = async (call: Call): Promise<Response> => {
  const offset = whole(call.body, 'offset_ms', -315_360_000_000, 315_360_000_000)
  if (offset === undefined) throw required('offset_ms')
  if (!call.clock) throw invalid('This sandbox has no clock of its own.')
  await call.clock.setOffset(offset)
  return ok({ offset_ms: call.clock.offsetMs(), now: call.now() })
}

const decide = async (call: Call): Promise<Response> => {
  const { template_id: id, reason, category } = call.body
  if (!isText(id)) throw required('template_id')
  const decision = oneOf<Decision>(call.body, 'decision', [
    'approve',
    'reject',
    'pause',
    'disable',
    'category',
  ])
  if (decision === 'category') oneOf(call.body, 'category', CATEGORIES)
  return await within(call.db, async (tx) => {
    const template = await lockSandboxTemplate(tx, id)
    if (!template) throw absent('template', id)
    const after = await review(tx, template, decision, {
      reason: isText(reason) ? reason : undefined,
      category: isText(category) ? category : undefined,
    })
    return ok(templateNode(after))
  })
}

/** What becomes of a message, in any order. */
const status = async (call: Call): Promise<Response> => {
  const { message_id: id } = call.body
  if (!isText(id)) throw required('message_id')
  const to = oneOf<'sent' | 'delivered' | 'read' | 'failed'>(call.body, 'status', [
    'sent',
    'delivered',
    'read',
    'failed',
  ])
  const code = whole(call.body, 'code', 0, 9_999_999) ?? 131026
  return await within(call.db, async (tx) => {
    const message = await findSandboxMessage(tx, id)
    if (!message || message.inbound) throw absent('message', id)
    const about = (await findNumber(tx, message.number_id))!
    const customer = (await findCustomer(tx, message.number_id, { user_id: message.user_id })) ?? {
      user_id: message.user_id,
      wa_id: message.wa_id,
      name: null,
    }
    await setMessageStatus(tx, id, to as MessageStatus)
    await enqueueUpdates(tx, [
      statusUpdate(about, customer, message, {
        status: to,
        at: call.now(),
        ...(to === 'failed'
          ? { code }
          : {
              billing: { kind: 'regular' as const, category: message.category?.toLowerCase() ?? 'service' },
            }),
      }),
    ])
    return ok({ success: true })
  })
}

/** A customer stops or resumes marketing messages. */
const preference = async (call: Call): Promise<Response> => {
  const { number_id: numberId } = call.body
  if (!isText(numberId)) throw required('number_id')
  const choice = oneOf<'stop' | 'resume'>(call.body, 'marketing', ['stop', 'resume'])
  const who = customerOf(call.body)
  return await within(call.db, async (tx) => {
    const about = await findNumber(tx, numberId)
    if (!about) throw absent('number', numberId)
    const customer = await findCustomer(tx, numberId, who)
    if (!customer) throw absent('customer', who.wa_id ?? who.user_id!)
    await setMarketingStopped(tx, numberId, customer.user_id, choice === 'stop')
    await enqueueUpdates(tx, [preferenceUpdate(about, customer, choice, call.now())])
    return ok({ success: true })
  })
}

const fault = async (call: Call): Promise<Response> => {
  const { body } = call
  const on = oneOf<FaultKind>(body, 'on', ['messages', 'templates', 'links', 'media'])
  const to = body.to === undefined ? null : isText(body.to) ? person(body.to)! : ''
  if (to === '') throw invalid('Param to must be a phone number or a user ID.')
  const code = whole(body, 'code', 0, 9_999_999)
  const latency = whole(body, 'latency_ms', 0, 600_000)
  const effect: FaultEffect = {
    ...(code === undefined ? {} : { code }),
    ...(latency === undefined ? {} : { latency_ms: latency }),
    ...(body.drop_answer === true ? { drop_answer: true } : {}),
    ...(body.async === true ? { async: true } : {}),
  }
  if (Object.keys(effect).length === 0)
    throw invalid('A fault needs one of code, drop_answer, latency_ms and async.')
  return ok({ id: await addFault(call.db, on, to, effect, whole(body, 'times', 1, 1_000_000) ?? null) })
}

/** Null lifts a limit. */
const limit = (body: Record<string, unknown>, name: string, most: number): number | null | undefined =>
  body[name] === null ? null : whole(body, name, 1, most)
const flag = (body: Record<string, unknown>, name: string): boolean | undefined => {
  if (body[name] !== undefined && typeof body[name] !== 'boolean')
    throw invalid(`Param ${name} must be a boolean.`)
  return body[name] as boolean | undefined
}

/** How webhooks are sent, how the reviewer works and what is limited; what is not given stays. */
const settings = async (call: Call): Promise<Response> => {
  const { body } = call
  const change: Record<keyof SandboxSettings, unknown> = {
    duplicates: whole(body, 'duplicates', 0, 100),
    shuffle: flag(body, 'shuffle'),
    batch: whole(body, 'batch', 1, 1000),
    free_entry: flag(body, 'free_entry'),
    review_seconds: body.review_seconds === null ? null : whole(body, 'review_seconds', 0, 31_536_000),
    throughput: limit(body, 'throughput', 100_000),
    pair_burst: limit(body, 'pair_burst', 100_000),
    pair_seconds: whole(body, 'pair_seconds', 1, 3600),
  }
  const given = Object.fromEntries(
    Object.entries(change).filter(([, value]) => value !== undefined),
  ) as Partial<SandboxSettings>
  return ok(await changeSandboxSettings(call.db, given))
}

const text = (call: Call, name: string): string | undefined => call.query.get(name) || undefined

const messagesSent = async (call: Call): Promise<Response> => {
  const rows = await sentMessages(call.db, {
    numberId: text(call, 'number_id'),
    accountId: text(call, 'account_id'),
    to: person(text(call, 'to')),
  })
  return ok({
    data: rows.map(({ body, id, status: now, created_at, number_id }) => ({
      ...body,
      id,
      status: now,
      created_at,
      number_id,
    })),
  })
}

const MOST = 10_000

const templatesKept = async (call: Call): Promise<Response> =>
  ok({
    data: (await listSandboxTemplates(call.db, text(call, 'account_id'), {}, MOST)).map((t) => ({
      ...templateNode(t),
      account_id: t.account_id,
    })),
  })

const linksKept = async (call: Call): Promise<Response> =>
  ok({
    data: (await listSandboxLinks(call.db, text(call, 'number_id'), {}, MOST)).map((link) => ({
      ...linkNode(call, link, 'PNG'),
      number_id: link.number_id,
    })),
  })

/** How the sandbox is told what happens. */
export const controls: Readonly<Record<string, (call: Call) => Promise<Response>>> = {
  'GET ': state,
  'PUT numbers': numbers,
  'POST number': number,
  'PUT templates': templates,
  'POST say': say,
  'POST clock': clock,
  'POST review': decide,
  'POST status': status,
  'POST preferences': preference,
  'POST faults': fault,
  'GET faults': async (call) => ok({ data: await listFaults(call.db) }),
  'DELETE faults': async (call) => {
    await clearFaults(call.db)
    return ok({ success: true })
  },
  'POST webhooks': settings,
  'POST settings': settings,
  'GET settings': async (call) => ok(await readSandboxSettings(call.db)),
  'GET messages': messagesSent,
  'GET templates': templatesKept,
  'GET links': linksKept,
}
