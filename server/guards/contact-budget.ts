import { type ContactSubjects, takeContactViews } from '../../storage/contacts/budgets.ts'
import type { Db } from '../../storage/database.ts'
import type { App } from '../app.ts'
import type { SeenContacts } from '../app-state.ts'
import type { Actor } from '../kernel/context.ts'
import type { Guard } from '../kernel/guard.ts'
import { Problem } from '../kernel/problem.ts'
import { listContactSubjects } from '../visibility/contact-subjects.ts'
import { recordContactRead } from './audit/contact-reads.ts'
import { listPlanned } from './snapshot/plan.ts'

/** Whether what a caller sees of contacts is counted. What a person approved is not refused for the budget. */
export const hasContactBudget = ({ key, approvedBy }: Actor): boolean => key.agent && !approvedBy

const getLimit = ({ config }: App, { key }: Actor): number => key.contactsPerDay ?? config.contactBudget

const toIso = (ms: number): string => new Date(ms).toISOString()

const MAX_KEYS = 1000

/** Returns what this process knows to be counted on the day of the workspace that it is now. */
const getSeen = ({ seenContacts, now }: App, { key, workspace: { timezone } }: Actor): SeenContacts => {
  const time = now()
  const ms = Date.parse(time)
  const existing = seenContacts.get(key.familyId)
  if (existing && ms >= existing.from && ms < existing.until && existing.timezone === timezone)
    return existing
  if (seenContacts.size >= MAX_KEYS) seenContacts.clear()
  const today = Temporal.Instant.from(time).toZonedDateTimeISO(timezone).toPlainDate()
  const seen = {
    from: today.toZonedDateTime(timezone).epochMilliseconds,
    until: today.add({ days: 1 }).toZonedDateTime(timezone).epochMilliseconds,
    timezone,
    subjects: new Map<string, string | null>(),
  }
  seenContacts.set(key.familyId, seen)
  return seen
}

const budgetProblem = (app: App, actor: Actor, { until }: SeenContacts): Problem => {
  const limit = getLimit(app, actor)
  const resetsAt = toIso(until)
  const seconds = Math.max(1, Math.ceil((until - Date.parse(app.now())) / 1000))
  return new Problem(
    'rate_limited',
    `This key of an AI agent may see ${limit} different contacts a day, and this response would show ` +
      `more; contacts seen today are still shown, others from ${resetsAt}. Ask for fewer contacts, or ` +
      'have an administrator raise the budget.',
    { reason: 'contact_budget', limit, resets_at: resetsAt },
    { 'Retry-After': String(seconds) },
  )
}

const kinds = { contacts: 'c', conversations: 'v', messages: 'm', questions: 'q' } as const

/** Leaves out what was counted before, and collects the contacts of it. */
const dropSeen = (
  subjects: ContactSubjects,
  { subjects: seen }: SeenContacts,
  contacts: Set<string>,
): ContactSubjects => {
  const isNew = (kind: keyof ContactSubjects) => (id: string) => {
    const contact = seen.get(kinds[kind] + id)
    if (contact) contacts.add(contact)
    return contact === undefined
  }
  return {
    contacts: subjects.contacts.filter(isNew('contacts')),
    conversations: subjects.conversations.filter(isNew('conversations')),
    messages: subjects.messages.filter(isNew('messages')),
    questions: subjects.questions.filter(isNew('questions')),
  }
}

/** More than these are looked up again. */
const MAX_SEEN = 20_000

/**
 * Counts what an answer tells of contacts, before it is given. Whatever the key saw before on this day of the
 * workspace is free. Days are of real time. In a transaction it counts only if that is committed. Returns the
 * contacts. Throws 429 `contact_budget`: then nothing is counted, and a transaction must be rolled back.
 */
export const takeContacts = async (
  app: App,
  db: Db,
  actor: Actor,
  subjects: ContactSubjects,
): Promise<ReadonlySet<string>> => {
  const contacts = new Set<string>()
  if (Object.values(subjects).every(({ length }) => length === 0)) return contacts
  const seen = getSeen(app, actor)
  const fresh = dropSeen(subjects, seen, contacts)
  if (Object.values(fresh).every(({ length }) => length === 0)) return contacts
  const budget = {
    workspaceId: actor.workspace.id,
    familyId: actor.key.familyId,
    day: toIso(seen.from),
    limit: getLimit(app, actor),
  }
  const taken = await takeContactViews(db, budget, fresh)
  if (!taken) throw budgetProblem(app, actor, seen)
  for (const contact of taken.found.values()) contacts.add(contact)
  if (db.isTransaction) return contacts
  if (seen.subjects.size > MAX_SEEN) seen.subjects.clear()
  for (const [ref, contact] of taken.found) seen.subjects.set(ref, contact)
  for (const digest of fresh.questions) seen.subjects.set(`q${digest}`, null)
  return contacts
}

/** An answer tells of the contacts in it, and a refusal of those that the input names. */
export const contactBudget: Guard<App> = {
  only: { agents: true },
  after: async (app, { actor, op, input, trace, planned, progress }, outcome) => {
    if (!hasContactBudget(actor)) return
    const { kind, db, output, problem, thrown } = outcome
    switch (kind) {
      case 'read': {
        const contacts = await takeContacts(app, db, actor, listContactSubjects(op, input, output))
        if (contacts.size > 0) recordContactRead(app, { actor, op, trace }, contacts)
        return
      }
      case 'rehearsed': {
        const told = { ...(output as object), planned: listPlanned(planned) }
        await takeContacts(app, db, actor, listContactSubjects(op, input, told))
        return
      }
      case 'changed':
      case 'begun':
        await takeContacts(app, db, actor, listContactSubjects(op, input, output))
        return
      case 'failed':
        if (!progress?.understood || !(thrown instanceof Problem)) return
        if (problem?.extras.reason === 'contact_budget') return
        await takeContacts(app, db, actor, listContactSubjects(op, input))
        return
      case 'refused':
        await takeContacts(app, db, actor, listContactSubjects(op, input))
    }
  },
  // It shows contacts again, perhaps on another day.
  onReplay: async (app, { actor, op, input }, { body }) => {
    if (body !== null && hasContactBudget(actor))
      await takeContacts(app, app.db, actor, listContactSubjects(op, input, JSON.parse(body)))
  },
}
