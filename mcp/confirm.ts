import { getDecision, mayClientConfirm } from '../server/agent-policy.ts'
import { type CallRequest, toTrace } from '../server/kernel/call.ts'
import { hash } from 'node:crypto'
import {
  CLIENT_CAPABILITIES_META_KEY,
  inputRequired,
  type InputRequiredResult,
  inputResponse,
  type ServerContext,
} from '@modelcontextprotocol/server'
import type { Operation } from '../catalog/operation.ts'
import {
  createSalt,
  readSubjects,
  toConversationId,
} from '../server/guards/agents/approvals/call-subjects.ts'
import { summarizeCall } from '../server/guards/agents/approvals/call-summary.ts'
import { mayReplay } from '../server/guards/agents/approvals/stored-call.ts'
import { wasAsked } from '../server/guards/agents/approvals/ask.ts'
import { digestTemplate, freezeCall } from '../server/guards/agents/approvals/freeze.ts'
import { findKeptId, toOwner } from '../server/guards/snapshot/plan.ts'
import type { App } from '../server/app.ts'
import type { Actor } from '../server/kernel/context.ts'
import { canonicalJson } from '../server/kernel/cursors.ts'
import { perform } from '../server/kernel/perform.ts'
import { Problem } from '../server/kernel/problem.ts'
import { wouldAsk } from '../server/guards/agents/policy.ts'
import { validate } from '../server/kernel/validate.ts'
import type { CallResponse } from '../server/kernel/respond.ts'

/** How long a person may take to answer. */
const CONFIRMATION_TTL_MS = 600_000
/** A longer question is not sent to a client, which might cut it. */
const MAX_QUESTION_CHARACTERS = 10_000

type ToolCall = CallRequest & { input: Record<string, unknown> }
/** A tool call of an actor. */
type AgentCall = { op: Operation; call: ToolCall; actor: Actor }
type Confirmation = { ask: InputRequiredResult } | { refused: CallResponse } | { call: CallRequest }

/**
 * Whether the person behind the client may be asked about calls of an operation with a confirm verb: for an agent's
 * key only where its policy takes that answer. Otherwise its calls wait for an approval, and no answer that a client
 * reports counts.
 */
export const mayAskClient = (actor: Actor, op: Operation): boolean =>
  op.confirm !== undefined &&
  (!actor.key.agent || (mayClientConfirm(actor) && getDecision(actor, op).decision !== 'deny'))

/** Whether a person decides on this call: of an agent's, also where a bound of its policy is not met. */
const needsPerson = async (app: App, { actor, op, call }: AgentCall): Promise<boolean> => {
  if (!actor.key.agent || getDecision(actor, op).decision === 'ask') return true
  const input = tryValidate(op, call.input)
  return input !== undefined && (await wouldAsk(app, actor, op, input))
}

/** Returns the input of a call; undefined where it is wrong, which the call itself says. */
const tryValidate = (op: Operation, given: unknown): Record<string, unknown> | undefined => {
  try {
    return validate(op, given).input
  } catch (error) {
    if (error instanceof Problem) return undefined
    throw error
  }
}

/**
 * Asks the person behind the client to confirm a call that needs a confirm verb (MCP 2026-07-28, multi
 * round-trip requests): an argument written by a model is not a person's consent. A dry run comes first, so
 * that nobody is asked about a call that would fail. The question carries a state that is sealed to this key,
 * operation and input; the call runs when the state comes back with the verb. A no is final: it is stored under
 * the idempotency key of the question, so that the same state with a yes finds it, and an agent's also for the same
 * call under another key. Clients that cannot ask get `confirm_required`.
 */
export const confirmCall = async (
  app: App,
  agentCall: AgentCall,
  context: ServerContext,
): Promise<Confirmation> => {
  const { op, call, actor } = agentCall
  if (!mayAskClient(actor, op) || actor.key.test || call.input.dry_run === true || !canElicit(context))
    return { call }
  const binding = `${actor.key.id}\n${op.name}\n${hash('sha256', canonicalJson(call.input), 'base64url')}`
  const response = inputResponse(context.mcpReq.inputResponses, 'confirm')
  const state = response.kind === 'elicit' ? openState(app, context, binding) : undefined
  if (response.kind === 'elicit' && state !== undefined) {
    const answered = {
      ...call,
      input: state.input ?? call.input,
      idempotencyKey: state.key,
      plan: state.plan ?? call.plan,
    }
    const asked = state.input ? { asked: call.input } : {}
    if (response.action !== 'accept') return { call: { ...answered, person: { said: 'no', ...asked } } }
    const isYes = response.content?.confirm === op.confirm
    if (isYes && (await isAsShown(app, { actor, op, call: answered, shown: state })))
      return { call: { ...answered, confirm: op.confirm, person: { said: 'yes', ...asked } } }
    // A client whose form does not ask for the verb would ask its person without end.
    if (!isYes && state.isRepeated && actor.key.agent) return { call }
    if (!isYes && state.isRepeated)
      throw new Problem(
        'confirm_required',
        `The client answered twice without ${op.confirm} in the field confirm. Let a person make the call.`,
        { confirm: op.confirm },
      )
    return await ask(app, agentCall, { binding, key: state.key, isRepeated: !isYes })
  }
  return await ask(app, agentCall, { binding, key: call.idempotencyKey, isRepeated: false })
}

/**
 * Whether a template still reads as the person was shown, and the call acts on what they were shown; where it does not,
 * they are asked again.
 */
const isAsShown = async (
  app: App,
  { actor, op, call, shown }: { actor: Actor; op: Operation; call: ToolCall; shown: QuestionState },
): Promise<boolean> => {
  const { template, subjects } = shown
  if (subjects) {
    const { input } = validate(op, call.input)
    const acted = { input, conversationId: subjects.conversationId, plan: call.plan }
    const version = await readSubjects(app, app.db, { asker: actor, op, call: acted, salt: subjects.salt })
    // What the call has changed itself is no reason to ask again: its answer is given again.
    if (version !== subjects.version) return await mayReplay(app, { actor, key: shown.key })
  }
  if (template === undefined) return true
  const { status, body } = await perform(app, { ...call, input: { ...call.input, dry_run: true } })
  // What the real call is refused for, or answered again, is its to say.
  return status >= 400 || digestTemplate(op, JSON.parse(body) as Record<string, unknown>) === template
}

type Asking = {
  binding: string
  key: string | undefined
  /** The client has answered this question once, with neither yes nor no. */
  isRepeated: boolean
}

/** Makes a dry run and returns the question, or what the dry run refuses. */
const ask = async (
  app: App,
  asked: AgentCall,
  { binding, key, isRepeated }: Asking,
): Promise<Confirmation> => {
  const { op, call, actor } = asked
  if (!(await needsPerson(app, asked))) return { call }
  const dryRun = await perform(app, { ...call, input: { ...call.input, dry_run: true } })
  if (dryRun.status >= 400) return { refused: dryRun }
  const { input } = validate(op, call.input)
  // Where the same call waits for a person, or got a no, that is the answer.
  if (actor.key.agent && (await wasAsked(app, actor, op, input))) return { call }
  // What the person is shown is what runs.
  const asking = { actor, op, input, trace: toTrace(call), plan: call.plan }
  const { input: frozen, output: shown, plan } = await freezeCall(app, asking)
  const subjects = { conversationId: toConversationId(shown), salt: createSalt() }
  const acted = frozen === input ? input : validate(op, frozen).input
  const version = await readSubjects(app, app.db, {
    asker: actor,
    op,
    call: { input: acted, conversationId: subjects.conversationId, plan },
    salt: subjects.salt,
  })
  const planId = findKeptId(app, toOwner(actor), plan)
  const summary = await summarizeCall(app, app.db, { actor, op, input: frozen, output: shown, planId })
  const question = summary.join('\n')
  // For an agent's key a person decides elsewhere then.
  if (question.length > MAX_QUESTION_CHARACTERS && actor.key.agent) return { call }
  if (question.length > MAX_QUESTION_CHARACTERS)
    throw new Problem(
      'confirm_required',
      `The question for a person would have ${question.length} characters, and only ${MAX_QUESTION_CHARACTERS} ` +
        'are asked in a client. Make the call smaller, or let a person make it.',
      { confirm: op.confirm },
    )
  const until = Date.parse(app.now()) + CONFIRMATION_TTL_MS
  const state = JSON.stringify({
    until,
    key,
    plan,
    template: digestTemplate(op, shown),
    subjects: { ...subjects, version },
    ...(frozen === input ? {} : { input: frozen }),
    ...(isRepeated ? { isRepeated } : {}),
  })
  return { ask: createQuestion(op, question, app.confirmSealer.seal(state, binding)) }
}

/**
 * True when the client can ask the person. Only revision 2026-07-28 carries a question in a result; its
 * requests declare the client's capabilities. The stdio bridge asks for clients of 2025 revisions.
 */
const canElicit = (context: ServerContext): boolean => {
  const envelope = context.mcpReq.envelope as Record<string, unknown> | undefined
  const { elicitation } = (envelope?.[CLIENT_CAPABILITIES_META_KEY] ?? {}) as {
    elicitation?: { form?: unknown; url?: unknown }
  }
  return elicitation !== undefined && (elicitation.form !== undefined || elicitation.url === undefined)
}

/** The Idempotency-Key of a question, so that an answer sent twice runs once, and what it showed of a template. */
type QuestionState = {
  until: number
  key: string
  plan?: string
  template?: string
  /** What the call acts on; undefined in questions of an earlier server. */
  subjects?: { conversationId: string | undefined; salt: string; version: string }
  input?: Record<string, unknown>
  isRepeated?: boolean
}

/** Returns the state that the question was asked with; undefined when it is invalid or has expired. */
const openState = (app: App, context: ServerContext, binding: string): QuestionState | undefined => {
  const state = context.mcpReq.requestState() as unknown
  const opened = typeof state === 'string' ? app.confirmSealer.open(state, binding) : undefined
  if (opened === undefined) return undefined
  const asked = JSON.parse(opened) as QuestionState
  return asked.until > Date.parse(app.now()) ? asked : undefined
}

const createQuestion = (op: Operation, message: string, requestState: string): InputRequiredResult =>
  inputRequired({
    requestState,
    inputRequests: {
      confirm: inputRequired.elicit({
        message,
        requestedSchema: {
          type: 'object',
          required: ['confirm'],
          properties: {
            confirm: {
              type: 'string',
              title: 'Confirm',
              description: `Choose "${op.confirm}" to run it, or decline: then nothing changes.`,
              enum: [op.confirm!],
            },
          },
        },
      }),
    },
  })
