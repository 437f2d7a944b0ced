import type { Call, Transaction } from '../../kernel/call.ts'
import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { isByFilter } from '../../../catalog/operation.ts'
import type { Plan } from '../../../catalog/plan.ts'
import { isObject } from '../../../catalog/values.ts'
import type { Db } from '../../../storage/database.ts'
import { undone } from '../../../storage/client/savepoint.ts'
import { insertJob, takePlan } from '../../../storage/work/bulk-jobs.ts'
import { countIds } from '../../../storage/contacts/matches.ts'
import type { App } from '../../app.ts'
import { businessTime } from '../../clock.ts'
import { toNewJob } from '../../domains/bulk-jobs/find-records.ts'
import type { Actor, FoundRecords, PendingWrites } from '../../kernel/context.ts'
import { canonicalJson } from '../../kernel/cursors.ts'
import { type Rehearsed, rehearseIn } from '../../kernel/dry-run.ts'
import type { Guard } from '../../kernel/guard.ts'
import { Problem } from '../../kernel/problem.ts'
import { createRead, createRecordReader } from './read-records.ts'
import { computeFingerprint } from '../../kernel/idempotency.ts'
import { ID, listKnownIds, toIdKind, toKnownId, withoutNewIds } from './record-ids.ts'
import { createExistenceTest, listTouched, type Touched } from './touched.ts'

/*
 * What a change would do: the fields of each record that would differ, before and after. A token seals a digest of it.
 * A change that is sent with the token is rehearsed again, in the transaction in which it then runs and from the same
 * snapshot, and is refused where the digest differs (docs/decisions/0035). Records that a filter found are kept, and
 * the token names what is kept.
 */

type Json = Record<string, unknown>
type Change = Plan['records'][number]

/** `touched`: the records of which the plan tells. */
type Planned = { plan: Plan; digest: string; touched: readonly Touched[] }

/** Records that are read and shown; of the others only their ids count. */
const MAX_RECORDS = 100

/** What asks a dry run for its plan. */
export const SHOW_PLAN = 'show'

const planProblem = (detail: string, fix: string): Problem =>
  new Problem('invalid_input', `Api-Plan ${detail}. ${fix}`, {
    errors: [{ header: 'Api-Plan', code: 'invalid_value', detail, fix }],
  })

/** Fields that follow from others and the time, or that every change writes. */
const DERIVED = new Set(['updated_at', 'version', 'window', 'sla'])

/** Returns the fields that differ; undefined when none does. */
const compare = ({ kind, id }: Touched, was: Json | null, is: Json | null): Change | undefined => {
  if (was === null && is === null) return undefined
  const names = [...new Set([...Object.keys(was ?? {}), ...Object.keys(is ?? {})])].filter(
    (name) => !DERIVED.has(name) && !isDeepStrictEqual(was?.[name], is?.[name]),
  )
  if (names.length === 0 && was !== null && is !== null) return undefined
  const pick = (record: Json | null): Json | null =>
    record && Object.fromEntries(names.map((name) => [name, record[name] ?? null]))
  return { kind, id: was === null ? null : id, before: pick(was), after: pick(is) }
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/

const SECRET = /^whsec_/

/** What was there before a rehearsal: all of it as text, and the ids in it with what they are of. */
type Known = { text: string; ids: ReadonlySet<string> }

/**
 * Replaces what differs from one rehearsal to the next, unless it is known from the input or the records as they are:
 * ids of new records, times, and new secrets.
 */
const stabilize = (value: unknown, known: Known, record = ''): unknown => {
  if (typeof value === 'string')
    return (TIME.test(value) || SECRET.test(value)) && !known.text.includes(value) ? 'new' : value
  if (Array.isArray(value)) return value.map((one) => stabilize(one, known, record))
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => !DERIVED.has(name) && !name.endsWith('_seconds'))
      .map(([name, member]) => [
        name,
        typeof member === 'string' && ID.test(name) && !known.ids.has(toKnownId(name, record, member))
          ? null
          : stabilize(member, known, name),
      ]),
  )
}

/** Names of answers whose records are of any kind: the answer itself, and its list. */
const ANY_KIND = new Set(['', 'data'])

/** Leaves out of an answer the records that were compared: what they have beyond the changes does not count. */
const withoutRecords = (value: unknown, touched: readonly Touched[], record = ''): unknown => {
  if (Array.isArray(value)) return value.map((one) => withoutRecords(one, touched, record))
  if (!isObject(value)) return value
  const { id } = value
  const isKind = (kind: string) => ANY_KIND.has(record) || toIdKind('id', record) === toIdKind('id', kind)
  if (typeof id === 'string' && touched.some((one) => one.id === id && isKind(one.kind))) return { id }
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, withoutRecords(member, touched, name)]),
  )
}

/** `touched`: without those that the actor may not see, and those that are made. `records`: changes as shown. */
type Observed = { touched: Touched[]; changes: Change[]; records: Change[]; more: number }

const toDigest = ({ op, input }: Call, { output }: Rehearsed, { touched, changes }: Observed): string => {
  const before = changes.map((change) => ({ [change.kind]: change.before }))
  const known: Known = {
    text: JSON.stringify([input, touched.map((one) => one.id), before]),
    ids: new Set([
      ...touched.map(({ kind, id }) => toKnownId('id', kind, id)),
      ...listKnownIds(input),
      ...listKnownIds(before),
    ]),
  }
  const content = {
    call: computeFingerprint(op, input).toString('base64'),
    touched: touched.map(({ kind, id }) => `${kind} ${id}`),
    changes: changes.map(({ kind, id, before: was, after }) => [
      kind,
      id,
      ...[was, after].map((one) => stabilize(one, known, kind)),
    ]),
    answer: op.secret ? null : stabilize(withoutRecords(output, touched), known),
  }
  return createHash('sha256').update(canonicalJson(content)).digest('base64url')
}

/** Runs the call, reads what it touched, undoes it and reads the same again; all in one snapshot. */
const observe = async (
  app: App,
  tx: Transaction,
  call: Call,
  attempt: number,
): Promise<{ rehearsed: Rehearsed; observed: Observed }> => {
  const readable = call.actor.key.scopes.includes('mcp:read')
  const { rehearsed, touched, shown, after } = await undone(tx, async () => {
    const result = await rehearseIn(app, call, tx, attempt)
    const all = listTouched(call.op.name, { input: call.input, output: result.output }, result.pending.events)
    const read = createRecordReader(createRead(app, tx, call.actor))
    const first = readable ? all.slice(0, MAX_RECORDS) : []
    const records: (Json | null)[] = []
    for (const one of first) records.push(await read(one))
    return { rehearsed: result, touched: all, shown: first, after: records }
  })
  const read = createRecordReader(createRead(app, tx, call.actor))
  const exists = createExistenceTest(tx, call.actor, read)
  const changes: Change[] = []
  const records: Change[] = []
  const visible = touched.slice(shown.length).filter((one) => !one.made)
  for (const [i, one] of shown.entries()) {
    const before = one.made ? null : await read(one)
    const change = compare(one, before, after[i]!)
    if (change) {
      changes.push(change)
      records.push({ ...change, after: await withoutNewIds(change, exists) })
    }
    if (before !== null) visible.push(one)
  }
  return { rehearsed, observed: { touched: visible, changes, records, more: touched.length - shown.length } }
}

/** Whose plan it is. */
type Owner = { readonly workspace_id: string; readonly staff_id: string }

export const toOwner = ({ workspace, staff }: Actor): Owner => ({
  workspace_id: workspace.id,
  staff_id: staff.id,
})

const toBinding = ({ workspace_id, staff_id }: Owner): string => `${workspace_id} ${staff_id}`

/** What a token says: a digest of what the call would do, or the id of what is kept of it. */
type Sealed = { readonly digest?: string; readonly keptId?: string }

const seal = ({ planSealer }: App, actor: Actor, sealed: Sealed): string =>
  planSealer.seal(JSON.stringify(sealed), toBinding(toOwner(actor)))

const open = ({ planSealer }: Pick<App, 'planSealer'>, owner: Owner, token: string): Sealed | undefined => {
  const text = planSealer.open(token, toBinding(owner))
  return text === undefined ? undefined : (JSON.parse(text) as Sealed)
}

/** Returns the id of the plan that a token names; undefined where nothing is kept of one, or there is none. */
export const findKeptId = (
  app: Pick<App, 'planSealer'>,
  owner: Owner,
  token: string | null | undefined,
): string | undefined => (token ? open(app, owner, token)?.keptId : undefined)

/**
 * Returns what a call would do. The transaction must be one snapshot (`repeatable read`); nothing of the call is left
 * in it.
 */
const makePlan = async (app: App, tx: Transaction, call: Call, attempt: number): Promise<Planned> => {
  const { rehearsed, observed } = await observe(app, tx, call, attempt)
  const digest = toDigest(call, rehearsed, observed)
  return {
    digest,
    touched: observed.touched,
    plan: {
      token: seal(app, call.actor, { digest }),
      records: observed.records,
      more_records: observed.more,
    },
  }
}

/** Throws 409 `plan_changed` with the present plan, unless that is the one that was made. */
const requirePlan = (expected: string, { plan, digest }: Planned): void => {
  if (expected === digest) return
  throw new Problem(
    'conflict',
    'What the call would do has changed since it was planned, so nothing was done. `plan` shows what it would do now.',
    { reason: 'plan_changed', plan },
  )
}

/** How long the records that a filter found are kept, unless a person decides on the call. */
const KEPT_MS = 60 * 60_000

/**
 * Keeps the records that the filter of a call has found, for an hour or until then. Returns the token of the plan;
 * undefined for a call that looked for none.
 */
export const keepFound = async (
  app: App,
  { actor, op, input, trace }: Pick<Call, 'actor' | 'op' | 'input' | 'trace'>,
  { found }: PendingWrites,
  until?: string,
): Promise<string | undefined> => {
  if (!found) return undefined
  const now = businessTime(app, actor.workspace.id)
  const batches = found.map(({ ids }) => ids)
  const plan = {
    ...toNewJob({ actor, call: { trace }, now }),
    operation: op.name,
    input: {},
    total: countIds(batches),
    state: 'planned',
    digest: computeFingerprint(op, input),
    expires_at: until ?? new Date(Date.parse(now) + KEPT_MS).toISOString(),
  } as const
  const digests = found.map((batch) => batch.digests)
  return seal(app, actor, { keptId: await insertJob(app.db, plan, batches, digests) })
}

/** Returns what a plan keeps, for the one call that carries it out. */
const takeFound = async (
  app: App,
  tx: Transaction,
  { actor, op, input }: Call,
  id: string,
): Promise<FoundRecords> => {
  const plan = await takePlan(tx, actor.workspace.id, id)
  const now = Date.parse(businessTime(app, actor.workspace.id))
  if (!plan || now > Date.parse(plan.expires_at!))
    throw new Problem(
      'conflict',
      'The plan was carried out, or has expired. Nothing was changed; make a new dry run.',
      { reason: 'plan_unknown' },
    )
  if (!computeFingerprint(op, input).equals(plan.digest!)) throw otherCallProblem()
  return plan.found
}

const otherCallProblem = (): Problem =>
  planProblem('is the plan of another call', 'Send the input of the dry run with it, unchanged.')

/** Returns what a call would do, if it was rehearsed with a plan. */
export const getPlanned = ({ planned }: Pick<Call, 'planned'>): Planned | undefined =>
  planned as Planned | undefined

/** The records of a plan, as an answer names them. */
export const listPlanned = (planned: Call['planned']): Json[] | undefined =>
  getPlanned({ planned })?.touched.map(({ kind, id }) => ({ [`${kind}_id`]: id }))

/** A change takes the token of a plan, and no word for dry runs. */
export const planTokens: Guard<App> = {
  only: { changes: true },
  before: (_app, { plan, dryRun }) => {
    if (plan === SHOW_PLAN && !dryRun)
      throw planProblem('is for dry runs', 'Send it with `dry_run`, and then the `token` of its plan.')
  },
}

type Rehearsal = Rehearsed & { planned: Plan | undefined }

/** Returns the plan of a dry run that was asked for it, in words too for those who may read what it names. */
const showPlan = async (
  app: App,
  db: Db,
  call: Call,
  { planned, output, pending }: Rehearsal,
): Promise<Json> => {
  const { actor, op, input } = call
  const token = await keepFound(app, call, pending)
  const planId = findKeptId(app, toOwner(actor), token)
  const more = countIds((pending.found ?? []).map(({ ids }) => ids))
  const summary = actor.key.scopes.includes('mcp:read')
    ? await app.summarizeCall(db, actor, { op, input, output, planId })
    : undefined
  return { ...(planned ?? { records: [], more_records: more }), ...(token ? { token } : {}), summary }
}

/**
 * A call with a plan is rehearsed in the transaction in which it runs, and does what the plan says or nothing. One by a
 * filter is not: it is for the records that its plan keeps.
 */
export const plans: Guard<App> = {
  only: { changes: true },
  inTransaction: async (app, call, tx, attempt) => {
    const { actor, op, input, plan } = call
    if (plan === undefined) return
    const opened = plan === SHOW_PLAN ? {} : open(app, toOwner(actor), plan)
    if (!opened)
      throw planProblem(
        'is no plan of this workspace and key owner',
        'Send the `token` that a dry run with Api-Plan: show answers.',
      )
    const { keptId, digest } = opened
    if (keptId !== undefined) call.found = await takeFound(app, tx, call, keptId)
    else if (isByFilter(op, input)) {
      if (digest !== undefined) throw otherCallProblem()
    } else {
      const planned = await makePlan(app, tx, call, attempt)
      if (digest !== undefined) requirePlan(digest, planned)
      call.planned = planned
    }
  },
  after: async (app, call, { kind, db, output, pending, answer }) => {
    const planned = getPlanned(call)?.plan
    if (kind === 'dry_run' && call.plan === SHOW_PLAN)
      answer!['plan'] = await showPlan(app, db, call, { planned, output: output as Json, pending: pending! })
    else if (kind === 'dry_run' && planned) answer!['plan'] = planned
  },
}
