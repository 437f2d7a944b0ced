import { requireUndenied } from '../../agent-policy.ts'
import type { InputOf } from '../../handler.ts'
import { requireScope } from '../../kernel/access.ts'
import { type Operation, findOperation } from '../../../catalog/index.ts'
import { addSends } from '../../../storage/agents/policy.ts'
import { listCandidates } from '../../../storage/broadcasts/audience.ts'
import {
  type DueRow,
  failRecipient,
  findSend,
  listDueRecipients,
  readProgress,
  type SendRow,
  hasWaiting,
  setBroadcastStatus,
  setErrorBase,
  setWaiting,
  startSend,
  writeProgress,
} from '../../../storage/broadcasts/sends.ts'
import { lockJob } from '../../../storage/work/bulk-jobs.ts'
import { advanceRun, type Run } from '../../../storage/work/runs.ts'
import { listFields } from '../../../storage/contacts/custom-fields.ts'
import { end, fail, findActor } from '../bulk-jobs/run.ts'
import { ANY_READER } from '../bulk-jobs/view.ts'
import { businessTime } from '../../clock.ts'
import type { App } from '../../app.ts'
import { Problem } from '../../kernel/problem.ts'
import { withTransaction } from '../../kernel/write-call.ts'
import { createRunJob, type Progress, type Turn } from '../../work/engine.ts'
import type { JobDefinition } from '../../work/runner.ts'
import type { TemplateValues } from '../messaging/template-values.ts'
import { requireApprovedText } from './approved-text.ts'
import { findOpenCountries, findRetry, findRoom } from './limits.ts'
import { MAX_WAIT_SECONDS, OWN_REFUSALS, type Outcome } from './outcome.ts'
import { createPace } from './pace.ts'
import { type DueRecipient, type Sending, sendToRecipient } from './send.ts'
import { digestValues, personalize, type Personal } from './values.ts'

/*
 * The job of a broadcast. One server at a time sends it; should two, a recipient is still taken once (send.ts).
 */

/** After this others get their turn. */
const TURN_MS = 5000
/** Broadcasts that a server sends at once, so that a slow one holds up no other. */
const TURNS = 4
/** Messages on their way at once, of all broadcasts; the embedded database writes one after another. */
const IN_FLIGHT = { embedded: 4, postgres: 24 }
/**
 * Recipients, and time, between two looks at the progress, the hours, and the key and policy that it is sent with: what
 * is revoked, or closed, sends no longer than this.
 */
const CHUNK = 100
const CHUNK_MS = 500
/** The error rate is that of the last messages, of so many at least and at most. */
const RATE_OF = { least: 20, most: 200 }
/** A clock that is moved, or a limit that is raised, is noticed after this. */
const MAX_LOOK_SECONDS = 60
/** How often outcomes are looked for that are not known yet, when nothing else is left. */
const OPEN_SECONDS = 10

const bulkOperation = findOperation('messaging_send_bulk') as Operation

type Frozen = Omit<InputOf<'messaging_send_bulk'>, 'channel_id'> & {
  channel_id: string
  text_digest?: string
}
type Job = Sending & { send: SendRow; input: Frozen; personal: Personal; workspaceZone: string }

/** Loads a job with the rights of this moment. Throws what forbids it by now. */
const loadJob = async (app: App, { workspace_id: workspaceId, subject: jobId }: Run): Promise<Job> => {
  const send = await findSend(app.db, workspaceId, jobId)
  if (!send) throw new Problem('not_found', 'The broadcast of the job is gone.')
  const { approved_by: approvedBy } = send
  const found = await findActor(app, { ...send, workspace_id: workspaceId })
  requireScope(found, bulkOperation)
  requireUndenied(found, bulkOperation)
  const actor = approvedBy ? { ...found, approvedBy } : found
  const input = send.input as unknown as Frozen
  const fields = await listFields(app.db, workspaceId)
  const personal = personalize(actor, input.template, fields)
  await requireApprovedText(app.db, workspaceId, input, personal)
  return {
    workspaceId,
    broadcastId: send.broadcast_id,
    jobId,
    channelId: input.channel_id,
    actor,
    trace: { door: send.door, client: send.client, requestId: send.request_id, confirmed: false },
    send,
    input,
    personal,
    workspaceZone: actor.workspace.timezone,
  }
}

/** Returns the recipients with their values as they are now. Those who cannot be sent to any more are failed. */
const fillRecipients = async (
  app: App,
  { workspaceId, broadcastId, personal }: Job,
  due: readonly DueRow[],
): Promise<DueRecipient[]> => {
  const ids = due.map(({ id }) => id)
  const options = { channelType: 'chatapp', fieldIds: personal.fieldIds }
  const contacts = new Map(
    (await listCandidates(app.db, workspaceId, ids, options)).map((contact) => [contact.id, contact]),
  )
  const filled: DueRecipient[] = []
  for (const { id: contactId, attempts, digest } of due) {
    const contact = contacts.get(contactId)
    const { values, missing } = contact ? personal.fill(contact) : { missing: [] }
    const failure = findFailure(values, missing, digest)
    if (!failure) filled.push({ contactId, attempts, values: values! })
    else
      await failRecipient(
        app.db,
        workspaceId,
        { broadcastId, contactId },
        { ...failure, now: businessTime(app, workspaceId) },
      )
  }
  return filled
}

/** Returns why a recipient gets no message. `values`: undefined of a contact that is gone. */
const findFailure = (
  values: TemplateValues | undefined,
  missing: readonly string[],
  approved: string | null,
): { code: string; error: string } | undefined => {
  if (!values) return { code: 'not_found', error: 'The contact was deleted.' }
  if (approved !== null && digestValues(values) !== approved)
    return {
      code: 'values_changed',
      error: 'The values of the contact are not those that a person approved.',
    }
  return missing.length === 0
    ? undefined
    : { code: 'missing_value', error: `The contact has no value for ${missing.join(', ')}.` }
}

type Halt = { kind: 'wait'; seconds: number } | { kind: 'stop'; problem: Problem }
type Chunk = { sent: number; tried: number; errors: number; halt: Halt | undefined }

/** `inFlight`: how many messages may be on their way at once. */
type Sends = { pace: ReturnType<typeof createPace>; inFlight: number; signal: AbortSignal }

/**
 * Sends to some recipients, several at once, until one outcome concerns them all, one is not to be sent to now, such as
 * after a pause, or the time of the chunk is over.
 */
const sendChunk = async (
  app: App,
  job: Job,
  recipients: readonly DueRecipient[],
  { pace, inFlight, signal }: Sends,
): Promise<Chunk> => {
  const queue = [...recipients]
  const chunk: Chunk = { sent: 0, tried: 0, errors: 0, halt: undefined }
  const until = performance.now() + CHUNK_MS
  let isOver = false
  const note = (outcome: Outcome | undefined): void => {
    isOver ||= !outcome
    if (!outcome || outcome.kind === 'later') return
    if (outcome.kind === 'wait' || outcome.kind === 'stop') {
      chunk.halt ??= outcome
      return
    }
    chunk.tried++
    if (outcome.kind === 'sent') chunk.sent++
    if (outcome.kind === 'open' || (outcome.kind === 'refused' && !isOwn(outcome.code))) chunk.errors++
  }
  const work = async (): Promise<void> => {
    for (;;) {
      isOver ||= performance.now() > until
      if (isOver || queue.length === 0) return
      await pace.wait()
      const next = isOver || chunk.halt || signal.aborted || isRuined(job, chunk) ? undefined : queue.shift()
      if (!next) return
      note(await sendToRecipient(app, job, next))
    }
  }
  const results = await Promise.allSettled(Array.from({ length: Math.min(inFlight, queue.length) }, work))
  const failed = results.find((result) => result.status === 'rejected')
  if (failed) throw failed.reason
  return chunk
}

/** Whether too many failed. Of what was begun before a server died, little is known: that is no error. */
const isRuined = ({ input }: Job, { tried, errors }: Pick<Chunk, 'tried' | 'errors'>): boolean =>
  tried >= RATE_OF.least && errors * 100 > tried * input.stop_at_error_percent

const isOwn = (code: string): boolean => (OWN_REFUSALS as readonly string[]).includes(code)

const rateProblem = ({ errors, tried }: Pick<Chunk, 'tried' | 'errors'>): Problem =>
  new Problem(
    'upstream_error',
    `${errors} of the last ${tried} messages failed or were not confirmed. messaging_list_broadcast_recipients ` +
      'says why; jobs_resume goes on.',
    { reason: 'error_rate' },
  )

type Noted = { goesOn: boolean; isDone: boolean }

/** Writes how far the job is. Throws when too many of the last messages failed. */
const noteProgress = async (
  app: App,
  job: Job,
  tookMs: number,
  chunk?: Pick<Chunk, 'tried' | 'errors'>,
): Promise<Noted> => {
  const { workspaceId, broadcastId, jobId, send } = job
  const { pending, sent, failed, open, errors } = await readProgress(
    app.db,
    workspaceId,
    broadcastId,
    OWN_REFUSALS,
  )
  const done = send.total - (pending - open)
  const goesOn = await writeProgress(app.db, workspaceId, jobId, { done, changed: sent, failed, tookMs })
  const last = { tried: done - send.tried_before, errors: errors - send.errors_before }
  const ruined = [last, ...(chunk ? [chunk] : [])].find((some) => isRuined(job, some))
  if (ruined || last.tried >= RATE_OF.most) {
    await setErrorBase(app.db, workspaceId, broadcastId, { tried: done, errors })
    Object.assign(send, { tried_before: done, errors_before: errors })
  }
  if (ruined && goesOn) throw rateProblem(ruined)
  return { goesOn, isDone: pending === open }
}

/** Ends a job that has come to everybody. Returns false where it has not. */
const finish = (app: App, { workspaceId, jobId, broadcastId }: Job): Promise<boolean> =>
  withTransaction(app, async (tx) => {
    const job = await lockJob(tx, workspaceId, ANY_READER, jobId)
    // A call of a server that lost the job may have let its recipient wait again.
    if (job?.state !== 'running' || (await hasWaiting(tx, workspaceId, broadcastId))) {
      await tx.rollback().execute()
      return false
    }
    await setBroadcastStatus(tx, workspaceId, jobId, 'completed')
    await end(app, tx, job, { state: 'done', problem: null })
    return true
  })

/** What a job does next: sends to these, or waits. */
type Next = { due: DueRow[] } | { waiting: NonNullable<SendRow['waiting']> } | 'none'

const findNext = async (app: App, job: Job): Promise<Next> => {
  const { workspaceId, channelId, broadcastId, workspaceZone } = job
  const now = businessTime(app, workspaceId)
  const open = await findOpenCountries(app.db, job, { hours: job.input.hours, workspaceZone, now })
  if (open === 'none' || 'waiting' in open) return open
  const { room, until } = await findRoom(app.db, workspaceId, channelId, now)
  if (room <= 0) return { waiting: { reason: 'messaging_limit', until } }
  const limit = Math.min(CHUNK, room, Math.ceil((job.input.per_second * CHUNK_MS) / 1000))
  const due = await listDueRecipients(app.db, workspaceId, broadcastId, {
    ...open,
    now,
    limit,
    maxWaitSeconds: MAX_WAIT_SECONDS,
  })
  return due.length > 0 ? { due } : { waiting: await findRetry(app.db, job, now) }
}

/** Returns after how many seconds a job looks again that waits until then. */
const secondsUntil = (app: App, { workspaceId }: Job, until: string): number => {
  const seconds = (Date.parse(until) - Date.parse(businessTime(app, workspaceId))) / 1000
  return Math.min(Math.max(seconds, 0.1), MAX_LOOK_SECONDS)
}

/** Starts a scheduled broadcast that is due, however late. Returns what the job does where it is not, or no more. */
const start = async (app: App, job: Job): Promise<Progress | undefined> => {
  const { workspaceId, broadcastId, jobId, send } = job
  if (send.status !== 'scheduled') return undefined
  const now = businessTime(app, workspaceId)
  const isDue = Date.parse(send.scheduled_at!) <= Date.parse(now)
  if (!isDue) return { seconds: secondsUntil(app, job, send.scheduled_at!), tries: 0 }
  // Where it was put off, paused or cancelled meanwhile, the run has begun again or ended.
  return (await startSend(app.db, workspaceId, { broadcastId, jobId, now })) ? undefined : 'over'
}

/** Says what the job waits for. Returns after how many seconds it looks again. */
const wait = async (app: App, job: Job, waiting: NonNullable<SendRow['waiting']>): Promise<number> => {
  await setWaiting(app.db, job.workspaceId, job.broadcastId, waiting)
  return secondsUntil(app, job, waiting.until)
}

/** Sends to the next recipients. */
const sendNext = async (
  app: App,
  run: Run,
  { paceOf, inFlight, signal }: Omit<Sends, 'pace'> & { paceOf: (perSecond: number) => Sends['pace'] },
): Promise<Progress> => {
  const startedAt = performance.now()
  const job = await loadJob(app, run)
  const { workspaceId, broadcastId, actor, input } = job
  const waits = await start(app, job)
  if (waits) return waits
  const pace = paceOf(input.per_second)
  const next = await findNext(app, job)
  if (next === 'none') {
    const { goesOn, isDone } = await noteProgress(app, job, 0)
    return !goesOn || (isDone && (await finish(app, job))) ? 'over' : { seconds: OPEN_SECONDS, tries: 0 }
  }
  if ('waiting' in next) return { seconds: await wait(app, job, next.waiting), tries: 0 }
  await setWaiting(app.db, workspaceId, broadcastId, null)
  const recipients = await fillRecipients(app, job, next.due)
  const chunk = await sendChunk(app, job, recipients, { pace, inFlight, signal })
  const { sent, halt } = chunk
  if (actor.key.policy?.bounds.sends_per_hour !== undefined && sent > 0)
    await addSends(app.db, workspaceId, actor.key.familyId, sent)
  const { goesOn } = await noteProgress(app, job, performance.now() - startedAt, chunk)
  if (!goesOn) return 'over'
  if (halt?.kind === 'stop') throw halt.problem
  if (!halt) return (await advanceRun(app.db, run)) ? 'on' : 'over'
  const until = new Date(Date.parse(businessTime(app, workspaceId)) + halt.seconds * 1000).toISOString()
  await setWaiting(app.db, workspaceId, broadcastId, { reason: 'provider', until })
  return { seconds: halt.seconds, tries: 0 }
}

export const bulkSendsJob = (app: App): JobDefinition => {
  const most = IN_FLIGHT[app.embedded ? 'embedded' : 'postgres']
  /** Of each turn: what a chunk did not use of its time, the next one makes up for. */
  const paces = new WeakMap<AbortSignal, Sends['pace']>()
  const step = (run: Run, { signal, turns }: Turn): Promise<Progress> =>
    sendNext(app, run, {
      signal,
      inFlight: Math.max(1, Math.floor(most / turns())),
      paceOf: (perSecond) => {
        const pace = paces.get(signal) ?? createPace(perSecond)
        paces.set(signal, pace)
        return pace
      },
    })
  return createRunJob(app, {
    kind: 'broadcasts',
    job: 'bulk-sends',
    knows: [bulkOperation.name],
    turnMs: TURN_MS,
    turns: TURNS,
    step,
    fail: async (run, error) => {
      if (!(error instanceof Problem)) return false
      await fail(app, run, error)
      return true
    },
  })
}
