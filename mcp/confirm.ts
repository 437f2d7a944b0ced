import { hash } from 'node:crypto'
import {
  CLIENT_CAPABILITIES_META_KEY,
  inputRequired,
  type InputRequiredResult,
  inputResponse,
  type ServerContext,
} from '@modelcontextprotocol/server'
import type { Operation } from '../catalog/operation.ts'
import type { App } from '../server/core/app.ts'
import { canonicalJson } from '../server/core/cursors.ts'
import { type CallRequest, perform } from '../server/core/perform.ts'
import type { CallResponse } from '../server/core/respond.ts'

/** How long a person may take to answer. */
const CONFIRMATION_TTL_MS = 600_000
const MAX_SHOWN_CHARACTERS = 2000

/**
 * Asks the person behind the client to confirm a call that needs a confirm verb (MCP 2026-07-28, multi
 * round-trip requests): an argument written by a model is not a person's consent. A dry run comes first, so
 * that nobody is asked about a call that would fail. The question carries a state that is sealed to this key,
 * operation and input; the call runs when the state comes back with the verb. Clients that cannot ask get
 * `confirm_required`.
 */
export const confirmCall = async (
  app: App,
  op: Operation,
  call: CallRequest & { input: Record<string, unknown> },
  caller: { keyId: string; test: boolean },
  context: ServerContext,
): Promise<{ ask: InputRequiredResult } | { refused: CallResponse } | { call: CallRequest }> => {
  if (op.confirm === undefined || caller.test || call.input.dry_run === true || !canElicit(context))
    return { call }
  const binding = `${caller.keyId}\n${op.name}\n${hash('sha256', canonicalJson(call.input), 'base64url')}`
  const response = inputResponse(context.mcpReq.inputResponses, 'confirm')
  const key = response.kind === 'elicit' ? openState(app, context, binding) : undefined
  if (response.kind === 'elicit' && key !== undefined) {
    const isConfirmed = response.action === 'accept' && response.content?.confirm === op.confirm
    return { call: isConfirmed ? { ...call, confirm: op.confirm, idempotencyKey: key } : call }
  }
  const dryRun = await perform(app, { ...call, input: { ...call.input, dry_run: true } })
  if (dryRun.status >= 400) return { refused: dryRun }
  return {
    ask: createQuestion(
      op,
      call.input,
      app.confirmSealer.seal(
        JSON.stringify({ until: Date.now() + CONFIRMATION_TTL_MS, key: call.idempotencyKey }),
        binding,
      ),
    ),
  }
}

/**
 * True when the client can ask the person. Only revision 2026-07-28 carries a question in a result; its
 * requests declare the client's capabilities.
 */
const canElicit = (context: ServerContext): boolean => {
  const envelope = context.mcpReq.envelope as Record<string, unknown> | undefined
  const { elicitation } = (envelope?.[CLIENT_CAPABILITIES_META_KEY] ?? {}) as {
    elicitation?: { form?: unknown; url?: unknown }
  }
  return elicitation !== undefined && (elicitation.form !== undefined || elicitation.url === undefined)
}

/**
 * Returns the Idempotency-Key that the question was asked under, so that an answer sent twice runs once.
 * Undefined when the state is invalid or has expired.
 */
const openState = (app: App, context: ServerContext, binding: string): string | undefined => {
  const state = context.mcpReq.requestState() as unknown
  const opened = typeof state === 'string' ? app.confirmSealer.open(state, binding) : undefined
  if (opened === undefined) return undefined
  const { until, key } = JSON.parse(opened) as { until: number; key: string }
  return until > Date.now() ? key : undefined
}

const createQuestion = (
  op: Operation,
  input: Record<string, unknown>,
  requestState: string,
): InputRequiredResult => {
  const json = JSON.stringify(input, null, 2)
  const shownInput = json.length > MAX_SHOWN_CHARACTERS ? `${json.slice(0, MAX_SHOWN_CHARACTERS)}…` : json
  return inputRequired({
    requestState,
    inputRequests: {
      confirm: inputRequired.elicit({
        message: `${op.summary}? The dry run found no errors.\n\n${op.name} ${shownInput}`,
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
}
