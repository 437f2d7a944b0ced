import { getApprovalMs, getDecision, getMaxOpenApprovals } from '../../../agent-policy.ts'
import type { ExecutionResult, WriteCall } from '../../../kernel/call.ts'
import type { AskReason } from '../../../../catalog/approvals.ts'
import type { Operation } from '../../../../catalog/index.ts'
import { redactApiKeys } from '../../../../catalog/redact.ts'
import { findBoundFacts } from '../../../../storage/agents/policy.ts'
import {
  type ApprovalRow,
  countPending,
  findApproval,
  findEarlier,
  insertApproval,
  lockAsking,
  type NewApproval,
} from '../../../../storage/agents/approvals.ts'
import { insertAuditRow } from '../../../../storage/access/audit.ts'
import type { Db } from '../../../../storage/database.ts'
import { countErasures, holdErasures } from '../../../../storage/privacy/erasures.ts'
import { insertEvents } from '../../../../storage/events/events.ts'
import { businessTime } from '../../../clock.ts'
import type { App } from '../../../app.ts'
import type { Actor } from '../../../kernel/context.ts'
import { createEmit } from '../../../kernel/emit.ts'
import { execute } from '../../../kernel/execute.ts'
import { clientDeclinedProblem } from '../declined.ts'
import { Problem } from '../../../kernel/problem.ts'
import { computeFingerprint, keyReusedProblem } from '../../../kernel/idempotency.ts'
import { applyPolicy } from '../policy.ts'
import type { SendCount } from '../send-count.ts'
import { withTransaction } from '../../../kernel/write-call.ts'
import { toAuditEntry } from '../../audit/entry.ts'
import { notifyEvents } from '../../../domains/events/signal.ts'
import { toStoredView } from '../../../visibility/replays.ts'
import { createSalt, readSubjects, toConversationId } from './call-subjects.ts'
import { digestTemplate, freezeCall, type Frozen } from './freeze.ts'
import { findKeptId, toOwner } from '../../snapshot/plan.ts'
import { toApprovalUrl } from './page-url.ts'
import { mayReplay, splitSecrets, toApprovedCall, toReplayInput, toReplayLimit } from './stored-call.ts'
import { getStatus, showApproval, toEventApproval } from '../../../visibility/approvals.ts'

/** A change of an agent's key. */
export type AgentCall = WriteCall & {
  /** The input as the agent sent it, where what it refers to is written out in `input`. */
  readonly asked: Record<string, unknown> | undefined
  /** Why, in the words of the agent. */
  readonly reason: string | undefined
}

const DAY_MS = 86_400_000
/** How long an approved call may wait for a server that runs it. */
const RUN_MS = 12 * 3_600_000
const MAX_INPUT_BYTES = 256 * 1024
const MAX_PREVIEW_CHARACTERS = 64 * 1024
const MAX_REASON_CHARACTERS = 1000
const MAX_REHEARSALS = 3

type EarlierCall = Pick<AgentCall, 'actor' | 'op' | 'input' | 'asked' | 'key'>

/** Finds earlier requests for a call, and whether it runs or ran. */
const findEarlierRequests = async (
  app: App,
  { actor, op, input, asked, key }: EarlierCall,
  db: Db = app.db,
) => {
  const now = businessTime(app, actor.workspace.id)
  const fingerprint = computeFingerprint(op, input)
  // A person decides on what was sent: what became of it holds at every door.
  const digest = asked ? computeFingerprint(op, asked) : fingerprint
  const asker = { workspaceId: actor.workspace.id, familyId: actor.key.familyId, staffId: actor.staff.id }
  const since = new Date(Date.parse(now) - DAY_MS).toISOString()
  const found = await findEarlier(db, asker, {
    key,
    digest,
    fingerprint,
    since,
    recordedUntil: toReplayLimit(app),
  })
  return { ...found, now, digest }
}

/** Whether a person decides on the same call, or said no to it, in the last 24 hours. */
export const wasAsked = async (
  app: App,
  actor: Actor,
  op: Operation,
  input: Record<string, unknown>,
): Promise<boolean> => {
  const call = { actor, op, input, asked: undefined, key: '' }
  const { byDigest, isRefused } = await findEarlierRequests(app, call)
  return isRefused || byDigest !== undefined
}

type Earlier = Awaited<ReturnType<typeof findEarlierRequests>>

/** Returns what earlier requests say of a call: an answer, that its record answers it, or nothing. */
const answerByEarlier = async (
  app: App,
  call: AgentCall,
  { byKey, byDigest, isRecorded, isRefused, digest }: Earlier,
): Promise<ExecutionResult | 'recorded' | undefined> => {
  if (byKey && Buffer.compare(Buffer.from(byKey.digest), digest) !== 0)
    throw keyReusedProblem(byKey.operation)
  if (byKey) return await answerEarlier(app, call, byKey)
  if (isRecorded) return 'recorded'
  // Bounds that are met by now change nothing: a no stays a no, and what waits is not sent beside its approval.
  if (getDecision(call.actor, call.op).decision === 'deny') return undefined
  if (byDigest) return await answerEarlier(app, call, byDigest)
  if (isRefused) throw clientDeclinedProblem()
  return undefined
}

/**
 * Applies the policy of the key to a change. Returns the answer where a person decides or has decided, and undefined
 * where the call may run, which `count` has, or runs or ran, so that its answer is given again. Throws 403
 * `denied_by_policy` and `declined`.
 */
export const askPerson = async (
  app: App,
  call: AgentCall,
  count: SendCount,
): Promise<ExecutionResult | undefined> => {
  const earlier = await findEarlierRequests(app, call)
  const answer = await answerByEarlier(app, call, earlier)
  if (answer !== undefined) return answer === 'recorded' ? undefined : answer
  const askedFor = await applyPolicy(app, call, count)
  return askedFor.length === 0 ? undefined : await ask(app, call, { ...earlier, askedFor })
}

/** Asks a person about a call that was allowed, for what it would have changed. Returns as `askPerson`. */
export const askAbout = async (
  app: App,
  call: AgentCall,
  askedFor: AskReason[],
): Promise<ExecutionResult | undefined> =>
  await ask(app, call, { ...(await findEarlierRequests(app, call)), askedFor })

const toNext = (row: ApprovalRow, status: ApprovalRow['status']): string =>
  status === 'pending'
    ? `A person decides on this call; nothing was changed. approvals_get with approval_id ${row.id} and ` +
      'wait_seconds 30 waits for it. Do not call again in another way.'
    : `This call was approved and is about to run. approvals_get with approval_id ${row.id} tells how it ended.`

const answer202 = (app: App, call: AgentCall, row: ApprovalRow): ExecutionResult => {
  const now = businessTime(app, call.actor.workspace.id)
  return {
    status: 202,
    body: JSON.stringify({
      approval: showApproval(call.actor, row, now),
      approval_url: toApprovalUrl(app.config.publicUrl, row.id),
      next: toNext(row, getStatus(row, now)),
    }),
    headers: { 'Approval-Id': row.id },
  }
}

/** Returns what became of an earlier request for the same call. Throws 403 `declined`. */
const answerEarlier = async (app: App, call: AgentCall, row: ApprovalRow): Promise<ExecutionResult> => {
  const now = businessTime(app, row.workspace_id)
  const status = getStatus(row, now)
  if (status === 'pending' || status === 'approved') return answer202(app, call, row)
  if (status === 'done') {
    const stored = toApprovedCall(row, call.actor, call.op, toReplayInput(row, call.input))
    if (await mayReplay(app, stored)) return await execute(app, stored)
    throw new Problem(
      'conflict',
      `This call was approved, and ran at ${row.ended_at}; it does not run again.`,
      {
        reason: 'already_decided',
        approval_id: row.id,
      },
    )
  }
  if (status === 'failed' && row.outcome && 'code' in row.outcome)
    throw new Problem(row.outcome.code as Problem['code'], row.outcome.detail, {
      ...(row.outcome.reason === null ? {} : { reason: row.outcome.reason as never }),
      approval_id: row.id,
    })
  throw declinedProblem(row, status)
}

const declinedProblem = (row: ApprovalRow, status: ApprovalRow['status']): Problem => {
  const [detail, reason] =
    status === 'expired'
      ? ['Nobody decided on this call in time, so it was not made.', 'expired' as const]
      : status === 'cancelled'
        ? ['This call was withdrawn before anybody decided.', 'cancelled' as const]
        : [`A person declined this call${row.note === null ? '.' : `: ${row.note}`}`, undefined]
  return new Problem('declined', detail, {
    ...(reason ? { reason } : {}),
    approval_id: row.id,
    ...(row.note === null ? {} : { note: row.note }),
  })
}

const addMs = (time: string, ms: number): string => new Date(Date.parse(time) + ms).toISOString()

type Asking = { askedFor: AskReason[]; digest: Buffer; now: string }

/** The request for a call, as it is stored, and what its event says of the call. */
type Prepared = { row: NewApproval; summary: string[] }

/** Rehearses the call. */
const prepare = async (app: App, call: AgentCall, asking: Asking): Promise<Prepared> => {
  const { actor, op, input, trace } = call
  // What a filter matched stays the same, for as long as the call may take to run.
  const planUntil = addMs(asking.now, getApprovalMs(actor) + RUN_MS)
  const frozen = await freezeCall(app, { actor, op, input, trace, plan: call.plan }, planUntil)
  const row = await toNewApproval(app, call, asking, frozen)
  const planId = findKeptId(app, toOwner(actor), frozen.plan)
  const summary = await app.summarizeCall(app.db, actor, {
    op,
    input: row.input,
    output: row.preview,
    planId,
  })
  return { row, summary: limitSummary(summary) }
}

const MAX_SUMMARY_CHARACTERS = 16_000

/** Leaves out the end of what no chat would show. */
const limitSummary = (lines: readonly string[]): string[] => {
  let left = MAX_SUMMARY_CHARACTERS
  const kept = lines.filter((line) => (left -= line.length) >= 0)
  return kept.length === lines.length ? kept : [...kept, 'More than fits here: see the page.']
}

type Stored =
  | { inserted: string; needsDelivery: boolean }
  | { inserted: undefined; earlier: Earlier }
  /** A person was erased since the rehearsal, whose preview may tell of that person. */
  | { isOutdated: true }

/** Stores a request, unless the same call was asked for, or somebody was erased, meanwhile. */
const store = (
  app: App,
  call: AgentCall,
  { row, summary, erased, now }: Prepared & { erased: string; now: string },
): Promise<Stored> => {
  const { actor } = call
  const workspaceId = actor.workspace.id
  return withTransaction(app, async (tx): Promise<Stored> => {
    await lockAsking(tx, workspaceId, actor.key.familyId)
    await holdErasures(tx, workspaceId)
    if ((await countErasures(tx, workspaceId)) !== erased) {
      await tx.rollback().execute()
      return { isOutdated: true }
    }
    // A repeat that came while the first was under way finds here what that has done meanwhile.
    const earlier = await findEarlierRequests(app, call, tx)
    const inserted =
      earlier.byKey || earlier.byDigest || earlier.isRecorded || earlier.isRefused
        ? undefined
        : await insertApproval(tx, row)
    if (inserted === undefined) {
      await tx.rollback().execute()
      return { inserted, earlier }
    }
    requireFewer(getMaxOpenApprovals(actor) + 1, await countPending(tx, workspaceId, actor.key.familyId))
    const events: Parameters<typeof createEmit>[0] = []
    createEmit(events, now)('approval.requested/1', {
      approval: {
        ...toEventApproval({ ...row, id: inserted }, 'pending'),
        reason: row.reason,
        asked_for: row.asked_for,
        contact_id: row.contact_id,
        summary,
        url: toApprovalUrl(app.config.publicUrl, inserted),
      },
    })
    const needsDelivery = await insertEvents(tx, workspaceId, events)
    if (app.config.audit) {
      const outcome = { at: app.now(), outcome: 'refused' as const, code: 'approval_required' }
      await insertAuditRow(tx, workspaceId, toAuditEntry({ ...call, dryRun: false }, outcome))
    }
    await tx.commit().execute()
    return { inserted, needsDelivery }
  })
}

/** Rehearses a call and stores the request for it: again while persons are erased between the two. */
const rehearseAndStore = async (app: App, call: AgentCall, asking: Asking): Promise<Stored> => {
  for (let attempt = 1; ; attempt++) {
    const erased = await countErasures(app.db, call.actor.workspace.id)
    const prepared = await prepare(app, call, asking)
    const stored = await store(app, call, { ...prepared, erased, now: asking.now })
    if (!('isOutdated' in stored) || attempt === MAX_REHEARSALS) return stored
  }
}

/** Rehearses the call, stores it and tells who may decide. */
const ask = async (app: App, call: AgentCall, asking: Asking): Promise<ExecutionResult | undefined> => {
  const { actor, input } = call
  const workspaceId = actor.workspace.id
  requireStorable(input)
  // Before the rehearsal, which costs more; the count that holds is in the transaction.
  requireFewer(getMaxOpenApprovals(actor), await countPending(app.db, workspaceId, actor.key.familyId))
  const stored = await rehearseAndStore(app, call, asking)
  if ('isOutdated' in stored)
    throw new Problem('conflict', 'Persons are being erased at this time. Retry.', {
      reason: 'still_running',
    })
  if (stored.inserted === undefined) {
    const answer = await answerByEarlier(app, call, stored.earlier)
    if (answer !== undefined) return answer === 'recorded' ? undefined : answer
    throw new Problem('conflict', 'The same call is being decided at this time. Retry.', {
      reason: 'still_running',
    })
  }
  notifyEvents(app, { workspaceId, needsDelivery: stored.needsDelivery })
  return answer202(app, call, (await findApproval(app.db, workspaceId, stored.inserted))!)
}

/** Throws 429 `too_many_approvals`: one person cannot decide on all that an agent can ask. */
const requireFewer = (max: number, pending: number): void => {
  if (pending >= max)
    throw new Problem(
      'rate_limited',
      'Too many calls of this key wait for a decision. Wait until some are decided, or cancel some.',
      { reason: 'too_many_approvals', violated_policies: ['open-approvals'] },
      { 'Retry-After': '60' },
    )
}

const requireStorable = (input: object): void => {
  if (Buffer.byteLength(JSON.stringify(input)) > MAX_INPUT_BYTES)
    throw new Problem(
      'payload_too_large',
      `A call that a person decides may have at most ${MAX_INPUT_BYTES / 1024} KiB. Split it.`,
      { limit_bytes: MAX_INPUT_BYTES },
    )
}

const toReason = (text: string | undefined): string | null =>
  Array.from(
    redactApiKeys(text ?? '')
      .toWellFormed()
      .replaceAll('\0', ''),
  )
    .slice(0, MAX_REASON_CHARACTERS)
    .join('')
    .trim() || null

/** What a template would send is kept whatever its length, which the provider limits: the run is compared with it. */
const toPreview = (op: Operation, output: Record<string, unknown>): Record<string, unknown> | null =>
  JSON.stringify(output).length > MAX_PREVIEW_CHARACTERS && !digestTemplate(op, output) ? null : output

const toNewApproval = async (
  app: App,
  call: AgentCall,
  { askedFor, digest, now }: Asking,
  { input: frozen, output, plan }: Frozen,
): Promise<NewApproval> => {
  const { actor, op, trace } = call
  const { input, secrets } = splitSecrets(app, call, frozen)
  const preview = op.secret ? null : toPreview(op, output)
  const salt = createSalt()
  return {
    workspace_id: actor.workspace.id,
    key_id: actor.key.id,
    staff_id: actor.staff.id,
    operation: op.name,
    input,
    secrets,
    digest,
    idempotency_key: call.fresh ? null : call.key,
    door: trace.door,
    client: trace.client,
    request_id: trace.requestId,
    reason: toReason(call.reason),
    asked_for: askedFor,
    preview,
    plan: plan ?? null,
    summary_version: await readSubjects(app, app.db, {
      asker: actor,
      op,
      call: { input, conversationId: toConversationId(preview), plan },
      salt,
    }),
    summary_salt: salt,
    view: toStoredView(actor),
    ...(await findSubject(app, actor.workspace.id, frozen, output)),
    requested_at: now,
    expires_at: addMs(now, getApprovalMs(actor)),
  }
}

const pickText = (record: unknown, name: string): string | null => {
  const value =
    record !== null && typeof record === 'object' ? (record as Record<string, unknown>)[name] : null
  return typeof value === 'string' ? value : null
}

/** Returns the contact and the channels that a call is about, which decide who may see it. */
const findSubject = async (
  app: App,
  workspaceId: string,
  input: Record<string, unknown>,
  output: Record<string, unknown>,
): Promise<Pick<NewApproval, 'contact_id' | 'channel_ids'>> => {
  const conversationId = pickText(input, 'conversation_id') ?? pickText(output, 'conversation_id')
  const facts =
    conversationId === null ? undefined : await findBoundFacts(app.db, workspaceId, { conversationId })
  const channelIds = [
    facts?.channel_id ?? null,
    pickText(input, 'channel_id'),
    pickText(output['message'], 'channel_id'),
    pickText(output['short_link'], 'channel_id'),
  ].filter((id) => id !== null)
  return {
    contact_id: facts?.contact_id ?? pickText(input, 'contact_id'),
    channel_ids: [...new Set(channelIds)],
  }
}
