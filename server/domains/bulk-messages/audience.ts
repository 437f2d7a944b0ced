import { reportProgress } from '../../kernel/progress.ts'
import type { Context } from '../../handler.ts'
import { type leftOutReasons, MAX_RECIPIENTS } from '../../../catalog/send-bulk.ts'
import {
  type Candidate,
  countPossibleLosses,
  hasMoreReachable,
  listCandidates,
} from '../../../storage/broadcasts/audience.ts'
import type { NewRecipient } from '../../../storage/broadcasts/sends.ts'
import { toPhoneLine } from '../contacts/phone-lines.ts'
import { invalidField, type Problem } from '../../kernel/problem.ts'
import { findCountry } from '../filters/phone-countries.ts'
import type { TemplateValues } from '../messaging/template-values.ts'
import { findOpening, type Hours, listZones } from './hours.ts'
import { digestValues, type Personal } from './values.ts'

type Reason = (typeof leftOutReasons)[number]

/** Contacts of one statement. */
const AT_ONCE = 5000

export type Audience = {
  recipients: NewRecipient[]
  leftOut: { reason: Reason; count: number }[]
  /** Recipients without a value of their own, by variable; those who are left out for it too. */
  lacking: ReadonlyMap<string, number>
  /** Digests of the values of contacts, where `holdsValues`. */
  digests: ReadonlyMap<string, string>
}

export type AudienceOf = {
  channelType: string
  isMarketing: boolean
  /** When messages are sent, business time. */
  start: string
  hours: Hours | undefined
  personal: Personal
  /** Whether the template takes values. */
  fits: (values: TemplateValues) => boolean
  /** A person approves the values. */
  holdsValues: boolean
  /** Digests of the values that a person approved, by contact; undefined where none did. */
  approved: ReadonlyMap<string, string> | undefined
}

/** Groups what has a key in common, also through others. */
const createGroups = () => {
  const parents = new Map<string, string>()
  const find = (key: string): string => {
    let root = key
    for (let next = parents.get(root); next !== undefined; next = parents.get(root)) root = next
    // The way there is short next time.
    for (let at = key; at !== root;) {
      const next = parents.get(at)!
      parents.set(at, root)
      at = next
    }
    return root
  }
  return {
    find,
    join: (keys: readonly string[]): void => {
      for (const key of keys.slice(1)) {
        const [a, b] = [find(keys[0]!), find(key)]
        if (a !== b) parents.set(b, a)
      }
    },
  }
}

/** By what a customer is one person: the phone line in any spelling, and the id at the messaging app. */
const listKeys = ({ phone, chatapp_user_id: userId }: Candidate): string[] => {
  const lines = [phone, userId !== null && /^\d+$/.test(userId) ? userId : null].filter(
    (line) => line !== null,
  )
  return [
    ...new Set([
      ...lines.map((line) => `line ${toPhoneLine(line).key}`),
      ...(userId === null ? [] : [`user ${userId}`]),
    ]),
  ]
}

/** An id at the messaging app begins with the country of its number. */
const toCountry = ({ phone, chatapp_user_id: userId }: Address): string | null =>
  phone === null ? (/^([A-Z]{2})\./.exec(userId ?? '')?.[1] ?? null) : findCountry(phone)

type Address = Pick<Candidate, 'phone' | 'chatapp_user_id'>
type Seen = Address & {
  id: string
  keys: readonly string[]
  reason: Reason | undefined
}

const declines = ({ reason }: Seen): boolean => reason === 'do_not_disturb' || reason === 'consent_withdrawn'

/** Returns why a contact by itself gets no message; undefined when it gets one. */
const findReason = (
  contact: Candidate,
  missing: readonly string[],
  isMarketing: boolean,
): Reason | undefined => {
  if (contact.dnd) return 'do_not_disturb'
  if (isMarketing && contact.withdrawn) return 'consent_withdrawn'
  if (contact.phone === null && contact.chatapp_user_id === null) return 'unreachable'
  return missing.length > 0 ? 'missing_value' : undefined
}

const isReachable = (reason: Reason | undefined): boolean =>
  reason === undefined || reason === 'missing_value' || reason === 'values_do_not_fit'

const tooManyProblem = (): Problem =>
  invalidField('filter', 'too_many', `matches more than ${MAX_RECIPIENTS} recipients`, {
    fix: 'Divide them, such as by country.',
  })

const countServed = (reasons: readonly (Reason | undefined)[]): number =>
  reasons.reduce((sum, reason) => sum + (reason === undefined ? 1 : 0), 0)

/**
 * Returns a check that throws 400 as soon as there are too many, whatever contacts follow: of a million, the first
 * hundred thousand are read and kept. A contact that follows takes one recipient away at most for each of what
 * `countPossibleLosses` counts. Where neither values nor hours leave anybody out, the database counts, and this throws.
 */
const createRefusal = async (
  ctx: Context,
  ids: readonly string[],
  { isMarketing, hours, personal }: AudienceOf,
): Promise<(seen: readonly Seen[], find: (key: string) => string) => void> => {
  const matched = ids.length
  if (matched <= MAX_RECIPIENTS) return () => {}
  const upTo = matched - MAX_RECIPIENTS
  const { tx, actor } = ctx
  const certain = MAX_RECIPIENTS + (await countPossibleLosses(tx, actor.workspace.id, { isMarketing, upTo }))
  const isCountable = certain < matched && !hours && personal.sources.length === 0
  if (isCountable && (await hasMoreReachable(tx, actor.workspace.id, ids, { isMarketing, than: certain })))
    throw tooManyProblem()
  let checkAt = certain + 1
  return (seen, find) => {
    // Nobody knows before the end.
    if (certain >= matched || seen.length < checkAt) return
    const served = countServed(chooseOnePerPerson(seen, find))
    if (served > certain) throw tooManyProblem()
    // Each contact adds one at most.
    checkAt = seen.length + certain + 1 - served
  }
}

/** Returns who of the contacts in batches gets a message, and why others do not. Throws 400 when they are too many. */
export const chooseAudience = async (
  ctx: Context,
  ids: readonly string[],
  of: AudienceOf,
): Promise<Audience> => {
  const { channelType, isMarketing, start, hours, personal, fits, holdsValues, approved } = of
  const { workspace } = ctx.actor
  const groups = createGroups()
  const seen: Seen[] = []
  const lacking = new Map<string, number>()
  const digests = new Map<string, string>()
  const openings = new Map<string | null, boolean>()
  const isEverOpen = (address: Address): boolean => {
    if (!hours) return true
    const country = toCountry(address)
    const known =
      openings.get(country) ?? findOpening(hours, start, listZones(country, workspace.timezone)) !== null
    openings.set(country, known)
    return known
  }
  const refuseTooMany = await createRefusal(ctx, ids, of)
  const isApproved = (id: string): boolean => approved === undefined || approved.get(id) === digests.get(id)
  for (let n = 0; n < ids.length; n += AT_ONCE) {
    const fieldIds = personal.fieldIds
    const some = ids.slice(n, n + AT_ONCE)
    for (const contact of await listCandidates(ctx.tx, workspace.id, some, { channelType, fieldIds })) {
      const filled = personal.fill(contact)
      if (holdsValues) digests.set(contact.id, digestValues(filled.values))
      const own =
        findReason(contact, filled.missing, isMarketing) ??
        (fits(filled.values) ? undefined : 'values_do_not_fit') ??
        (isApproved(contact.id) ? undefined : 'values_changed')
      const keys = listKeys(contact)
      if (isReachable(own))
        for (const variable of filled.lacking) lacking.set(variable, (lacking.get(variable) ?? 0) + 1)
      groups.join(keys)
      const reason = own ?? (isEverOpen(contact) ? undefined : 'no_common_hour')
      const { id, phone, chatapp_user_id } = contact
      seen.push({ id, phone, chatapp_user_id, keys, reason })
    }
    refuseTooMany(seen, groups.find)
    reportProgress(ctx, Math.min(0.9, (n + AT_ONCE) / ids.length))
  }
  const reasons = chooseOnePerPerson(seen, groups.find)
  if (countServed(reasons) > MAX_RECIPIENTS) throw tooManyProblem()
  const missing = ids.length - seen.length
  const counts = Map.groupBy(
    reasons.flatMap((reason) => reason ?? []),
    (reason) => reason,
  )
  return {
    recipients: seen.flatMap((one, n) =>
      reasons[n] === undefined
        ? [{ contactId: one.id, country: toCountry(one), digest: digests.get(one.id) ?? null }]
        : [],
    ),
    leftOut: [
      ...(missing > 0 ? [{ reason: 'not_found' as const, count: missing }] : []),
      ...[...counts].map(([reason, all]) => ({ reason, count: all.length })),
    ],
    lacking,
    digests,
  }
}

/**
 * A person who declined with one contact declined with all. Else the message goes to the first contact that has a
 * phone, by which the provider knows everybody; without one, to the first.
 */
const chooseOnePerPerson = (seen: readonly Seen[], find: (key: string) => string): (Reason | undefined)[] => {
  const persons = seen.map(({ keys }) => (keys.length === 0 ? undefined : find(keys[0]!)))
  const declined = new Map<string | undefined, Reason>()
  const served = new Map<string | undefined, Seen>()
  seen.forEach((one, n) => {
    if (persons[n] === undefined) return
    if (declines(one)) declined.set(persons[n], one.reason!)
    const before = served.get(persons[n])
    if (one.reason === undefined && (!before || (before.phone === null && one.phone !== null)))
      served.set(persons[n], one)
  })
  return seen.map((one, n) => {
    if (one.reason !== undefined) return one.reason
    return declined.get(persons[n]) ?? (served.get(persons[n]) === one ? undefined : 'double')
  })
}
