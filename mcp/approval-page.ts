import type { CallRequest } from '../server/kernel/call.ts'
import {
  CLIENT_CAPABILITIES_META_KEY,
  inputRequired,
  type InputRequiredResult,
  inputResponse,
  type ServerContext,
} from '@modelcontextprotocol/server'
import type { z } from 'zod'
import type { AskedAnswer } from '../catalog/approvals.ts'
import { findOperation } from '../catalog/index.ts'
import { isObject } from '../catalog/values.ts'
import type { Actor } from '../server/kernel/context.ts'
import { findIdempotencyKey } from '../server/guards/agents/approvals/stored-call.ts'
import type { App } from '../server/app.ts'
import { perform } from '../server/kernel/perform.ts'
import type { CallResponse } from '../server/kernel/respond.ts'
import { createRequestId } from '../server/ids.ts'
import { isAsked } from './result.ts'

/*
 * A call that waits for a person's own credential, in a client that opens pages (URL elicitation): the client is
 * asked to open the page of the approval. That it was opened proves nothing; the decision is made on the page.
 */

/** How long a call waits for the decision once the person has gone to the page. */
const WAIT_SECONDS = 25

/** Whether a client that declares these capabilities can open a page. */
export const opensPages = (capabilities: unknown): boolean => {
  const elicitation = isObject(capabilities) ? capabilities['elicitation'] : undefined
  return isObject(elicitation) && isObject(elicitation['url'])
}

/**
 * Makes a call with `run`. Where it waits for a person, the result asks the client to open the page of the approval;
 * once the client did, the same call answers what became of it, or that it still waits. A client that did not open
 * the page has decided nothing: the call waits for whoever may approve it.
 */
export const callOrOpenPage = async (
  app: App,
  { call, actor, context }: { call: CallRequest; actor: Actor; context: ServerContext },
  run: () => Promise<CallResponse>,
): Promise<CallResponse | { ask: InputRequiredResult }> => {
  const { workspace, key: caller } = actor
  const { mcpReq } = context
  const binding = `approval page\n${caller.id}`
  const answer = inputResponse(mcpReq.inputResponses, 'approval')
  const state: unknown = answer.kind === 'elicit' ? mcpReq.requestState() : undefined
  const id = typeof state === 'string' ? app.confirmSealer.open(state, binding) : undefined
  const key = id === undefined ? undefined : await findIdempotencyKey(app, workspace.id, id)
  if (id !== undefined && key !== undefined && answer.kind === 'elicit') {
    if (answer.action === 'accept') await waitForDecision(app, call, id)
    // The same call again, which finds what became of the first; another call under its key is refused.
    return await perform(app, { ...call, idempotencyKey: key ?? call.idempotencyKey })
  }
  const response = await run()
  const { envelope } = mcpReq as { envelope?: Record<string, unknown> }
  if (!isAsked(response) || !opensPages(envelope?.[CLIENT_CAPABILITIES_META_KEY])) return response
  const { approval, approval_url: url } = JSON.parse(response.body) as z.infer<typeof AskedAnswer>
  if (url === null || approval.status !== 'pending') return response
  return { ask: createQuestion(call, url, app.confirmSealer.seal(approval.id, binding)) }
}

const waitForDecision = async (app: App, call: CallRequest, approvalId: string): Promise<void> => {
  const { transport, authorization, client, address, watch } = call
  await perform(app, {
    transport,
    authorization,
    client,
    address,
    watch,
    operation: findOperation('approvals_get'),
    input: { approval_id: approvalId, wait_seconds: WAIT_SECONDS },
    requestId: createRequestId(),
  })
}

const createQuestion = ({ operation }: CallRequest, url: string, requestState: string): InputRequiredResult =>
  inputRequired({
    requestState,
    inputRequests: {
      approval: inputRequired.elicitUrl({
        message: `A person has to approve this call (${operation!.summary}). Open the page, sign in and decide.`,
        url,
      }),
    },
  })
